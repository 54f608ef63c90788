/* Lists of what can be called, as JSON. */
#include <string.h>

#include "codec_internal.h"

static void put_text(struct buf *out, const char *text)
{
    codec__print_text(out, (const uint8_t *)text, (uint32_t)strlen(text));
}

static void put_arg(const struct metadata *md, const struct type_field *f, struct buf *out)
{
    struct buf type = {0};
    metadata__type_text(md, f->type, NULL, &type);
    buf_puts(out, "{\"name\":");
    put_text(out, f->name ? f->name : "");
    buf_puts(out, ",\"type\":");
    put_text(out, buf_str(&type));
    buf_puts(out, "}");
    buf_done(&type);
}

static void put_call(const struct metadata *md, const struct type_variant *v, struct buf *out)
{
    buf_puts(out, "{\"name\":");
    put_text(out, v->name);
    buf_puts(out, ",\"args\":[");
    for (uint32_t i = 0; i < v->count; i++) {
        buf_puts(out, i ? "," : "");
        put_arg(md, &md->fields[v->first + i], out);
    }
    buf_puts(out, "]}");
}

static void put_pallets(const struct metadata *md, struct buf *out)
{
    bool first = true;
    for (size_t i = 0; i < md->pallet_count; i++) {
        const struct type *calls = metadata__type(md, md->pallets[i].calls);
        if (!calls || !calls->count)
            continue;
        buf_puts(out, first ? "{\"name\":" : ",{\"name\":");
        put_text(out, md->pallets[i].name);
        buf_printf(out, ",\"calls\":%u}", calls->count);
        first = false;
    }
}

int codec_list_calls_json(const struct metadata *md, const char *pallet, struct buf *out,
                          struct err *err)
{
    const struct metadata_pallet *p = pallet ? codec__pallet_with_calls(md, pallet, err) : NULL;
    if (pallet && !p)
        return ERR_ARGUMENT;
    buf_puts(out, "[");
    if (!p)
        put_pallets(md, out);
    for (uint32_t i = 0; p && i < md->types[p->calls].count; i++) {
        buf_puts(out, i ? "," : "");
        put_call(md, &md->variants[md->types[p->calls].first + i], out);
    }
    buf_puts(out, "]");
    return 0;
}
