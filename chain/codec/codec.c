/* Walk over SCALE values without printing them: measure and check. */
#include "chain/codec/codec.h"

#include "base/check.h"
#include "codec_internal.h"

static int skip(struct codec *c, uint32_t id);

static int skip_child(struct codec *c, uint32_t id, const char *name, uint32_t index)
{
    if (!codec__enter(&c->path, name, index))
        return codec__fail(c, c->in->p, "nested deeper than %d levels", CODEC_DEPTH_MAX);
    int rc = skip(c, id);
    codec__leave(&c->path);
    return rc;
}

static int skip_fields(struct codec *c, uint32_t first, uint32_t count)
{
    int rc = 0;
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        const struct type_field *f = &c->md->fields[first + i];
        rc = skip_child(c, f->type, f->name, f->name || count == 1 ? CODEC_NO_INDEX : i);
    }
    return rc;
}

static int skip_variant(struct codec *c, const struct type *t)
{
    const struct type_variant *v;
    int rc = codec__variant(c, t, &v);
    if (rc != 0 || v->count == 0)
        return rc;
    if (!codec__enter(&c->path, v->name, CODEC_NO_INDEX))
        return codec__fail(c, c->in->p, "nested deeper than %d levels", CODEC_DEPTH_MAX);
    rc = skip_fields(c, v->first, v->count);
    codec__leave(&c->path);
    return rc;
}

static int skip_elements(struct codec *c, const struct type *t, uint32_t count)
{
    uint32_t each = c->md->types[t->inner].plain_size;
    const uint8_t *bytes;
    if (each != TYPE_SIZE_VARIES) {
        uint64_t all = (uint64_t)each * count;
        return all ? codec__take(c, (size_t)all, &bytes) : 0;
    }
    int rc = 0; /* each takes at least one byte, so the input bounds the loop */
    for (uint32_t i = 0; i < count && rc == 0; i++)
        rc = skip_child(c, t->inner, NULL, i);
    return rc;
}

static int skip_prim(struct codec *c, enum type_prim prim)
{
    const uint8_t *bytes;
    uint32_t len;
    if (prim == PRIM_STR)
        return codec__str(c, &bytes, &len);
    int rc = codec__take(c, codec__prim_size(prim), &bytes);
    return rc != 0 ? rc : codec__check_prim(c, prim, bytes);
}

static int skip(struct codec *c, uint32_t id)
{
    const struct type *t = &c->md->types[id];
    const uint8_t *bytes;
    uint32_t count = 0;
    u128 number;
    if (t->plain_size != TYPE_SIZE_VARIES)
        return codec__take(c, t->plain_size, &bytes);
    switch ((enum type_kind)t->kind) {
    case TYPE_COMPOSITE:
    case TYPE_TUPLE:
        return skip_fields(c, t->first, t->count);
    case TYPE_VARIANT:
        return skip_variant(c, t);
    case TYPE_SEQUENCE: {
        int rc = codec__count(c, &count);
        return rc != 0 ? rc : skip_elements(c, t, count);
    }
    case TYPE_ARRAY:
        return skip_elements(c, t, t->len);
    case TYPE_PRIMITIVE:
        return skip_prim(c, (enum type_prim)t->prim);
    case TYPE_COMPACT:
        return codec__compact(c, t, &number);
    case TYPE_BITS:
        return codec__bits(c, t, &bytes, &count);
    }
    UNREACHABLE(); /* the parser checked the kind */
}

static int begin(struct codec *c, uint32_t type)
{
    if (c->in->bad)
        return err_set(c->err, ERR_DECODE, "the input is spoiled already");
    if (type >= c->md->type_count)
        return err_set(c->err, ERR_DECODE, "type %u is not in the metadata", type);
    return 0;
}

int codec_skip(const struct metadata *md, uint32_t type, struct scale_in *in, struct err *err)
{
    struct codec c = {.md = md, .in = in, .start = in->p, .err = err};
    int rc = begin(&c, type);
    return rc != 0 ? rc : skip(&c, type);
}

int codec_check_call(const struct metadata *md, const uint8_t *call, size_t len, struct err *err)
{
    struct scale_in in = scale_in_of(call, len);
    int rc = codec_skip(md, md->type_call, &in, err);
    if (rc != 0 || scale_left(&in) == 0)
        return rc;
    const char *pallet = metadata_pallet_name(md, call[0]);
    const char *name = len > 1 ? metadata_call_name(md, call[0], call[1]) : NULL;
    return err_set(err, ERR_DECODE, "%s.%s ends at byte %zu of %zu: %zu bytes are left over",
                   pallet ? pallet : "?", name ? name : "?", len - scale_left(&in), len,
                   scale_left(&in));
}
