/* SCALE values as JSON text: the walk of codec.c, printing every value. */
#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "codec_internal.h"

int codec__print_child(struct codec *c, uint32_t id, const char *name, uint32_t index)
{
    if (!codec__enter(&c->path, name, index))
        return codec__fail(c, c->in->p, "nested deeper than %d levels", CODEC_DEPTH_MAX);
    int rc = codec__print(c, id);
    codec__leave(&c->path);
    return rc;
}

/* Named fields become an object, unnamed ones an array, a single unnamed field the field itself. */
int codec__print_fields(struct codec *c, uint32_t first, uint32_t count, bool lone)
{
    const struct type_field *f = &c->md->fields[first];
    if (lone && count == 1 && !f->name)
        return codec__print_child(c, f->type, NULL, CODEC_NO_INDEX);
    bool object = count > 0 ? f->name != NULL : lone;
    int rc = 0;
    buf_put_u8(c->out, object ? '{' : '[');
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        if (i)
            buf_put_u8(c->out, ',');
        if (object)
            buf_printf(c->out, "\"%s\":", f[i].name ? f[i].name : "");
        rc = codec__print_child(c, f[i].type, f[i].name, f[i].name ? CODEC_NO_INDEX : i);
    }
    buf_put_u8(c->out, object ? '}' : ']');
    return rc;
}

/* null or the value. A value that can be null itself is wrapped as {"Some": value}. */
static int print_option(struct codec *c, const struct type_variant *v)
{
    if (v->count == 0) {
        buf_puts(c->out, "null");
        return 0;
    }
    uint32_t inner = c->md->fields[v->first].type;
    bool wrap = codec__is_nullable(c->md, inner);
    if (wrap)
        buf_puts(c->out, "{\"Some\":");
    int rc = codec__print_child(c, inner, NULL, CODEC_NO_INDEX);
    if (wrap)
        buf_put_u8(c->out, '}');
    return rc;
}

static int print_variant(struct codec *c, const struct type *t)
{
    const struct type_variant *v;
    int rc = codec__variant(c, t, &v);
    if (rc != 0)
        return rc;
    if (t->role == ROLE_OPTION)
        return print_option(c, v);
    if (v->count == 0) {
        buf_printf(c->out, "\"%s\"", v->name);
        return 0;
    }
    if (!codec__enter(&c->path, v->name, CODEC_NO_INDEX))
        return codec__fail(c, c->in->p, "nested deeper than %d levels", CODEC_DEPTH_MAX);
    buf_printf(c->out, "{\"%s\":", v->name);
    rc = codec__print_fields(c, v->first, v->count, true);
    buf_put_u8(c->out, '}');
    codec__leave(&c->path);
    return rc;
}

static int print_elements(struct codec *c, const struct type *t, uint32_t count)
{
    int rc = 0;
    if (codec__is_bytes(c->md, t)) {
        const uint8_t *bytes = NULL;
        rc = codec__take(c, count, &bytes);
        if (rc == 0) {
            buf_put_u8(c->out, '"');
            hex_put_0x(c->out, bytes, count);
            buf_put_u8(c->out, '"');
        }
        return rc;
    }
    buf_put_u8(c->out, '[');
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        if (i)
            buf_put_u8(c->out, ',');
        rc = codec__print_child(c, t->inner, NULL, i);
    }
    buf_put_u8(c->out, ']');
    return rc;
}

void codec__print_text(struct buf *out, const uint8_t *s, uint32_t len)
{
    buf_put_u8(out, '"');
    for (uint32_t i = 0; i < len; i++) {
        if (s[i] == '"' || s[i] == '\\')
            buf_put_u8(out, '\\');
        if (s[i] < 0x20)
            buf_printf(out, "\\u%04x", s[i]);
        else
            buf_put_u8(out, s[i]);
    }
    buf_put_u8(out, '"');
}

/* Numbers of 64 bits and more as text: JSON readers lose the low digits of large numbers. */
static void print_number(struct buf *out, u128 magnitude, bool negative, unsigned size)
{
    char digits[40];
    const char *quote = size >= 8 ? "\"" : "";
    buf_printf(out, "%s%s%s%s", quote, negative ? "-" : "", u128_text(magnitude, digits), quote);
}

static int print_prim(struct codec *c, enum type_prim prim)
{
    const uint8_t *bytes = NULL;
    uint32_t len = 0;
    unsigned size = codec__prim_size(prim);
    int rc = prim == PRIM_STR ? codec__str(c, &bytes, &len) : codec__take(c, size, &bytes);
    if (rc == 0)
        rc = codec__check_prim(c, prim, bytes);
    if (rc != 0)
        return rc;
    if (prim == PRIM_STR) {
        codec__print_text(c->out, bytes, len);
    } else if (prim == PRIM_BOOL) {
        buf_puts(c->out, *bytes ? "true" : "false");
    } else if (size > 16) { /* u256, i256: the bytes as they are */
        buf_put_u8(c->out, '"');
        hex_put_0x(c->out, bytes, size);
        buf_put_u8(c->out, '"');
    } else {
        u128 v = 0;
        for (unsigned i = size; i > 0; i--)
            v = v << 8 | bytes[i - 1];
        bool negative = prim >= PRIM_I8 && bytes[size - 1] >> 7;
        u128 magnitude = negative ? ((~v + 1) & ((size == 16 ? 0 : (u128)1 << (8 * size)) - 1)) : v;
        print_number(c->out, magnitude, negative, size);
    }
    return 0;
}

static int print_compact(struct codec *c, const struct type *t)
{
    u128 v = 0;
    enum type_prim prim = PRIM_U128;
    if (t->plain_size == 0)
        return codec__print_child(c, t->inner, NULL, CODEC_NO_INDEX);
    int rc = codec__compact(c, t, &v);
    if (rc != 0)
        return rc;
    codec__compact_prim(c->md, t, &prim);
    print_number(c->out, v, false, codec__prim_size(prim));
    return 0;
}

/* "0b1101", the first bit first. An element of the store is little endian. */
static int print_bits(struct codec *c, const struct type *t)
{
    const uint8_t *bytes = NULL;
    uint32_t count = 0;
    int rc = codec__bits(c, t, &bytes, &count);
    if (rc != 0)
        return rc;
    unsigned store = codec__store_bits(c->md, t);
    bool msb = codec__msb_first(c->md, t);
    buf_puts(c->out, "\"0b");
    for (uint32_t i = 0; i < count; i++) {
        unsigned bit = msb ? store - 1 - i % store : i % store;
        const uint8_t *element = bytes + i / store * (store / 8);
        buf_put_u8(c->out, element[bit / 8] >> bit % 8 & 1 ? '1' : '0');
    }
    buf_put_u8(c->out, '"');
    return 0;
}

int codec__print(struct codec *c, uint32_t id)
{
    const struct type *t = &c->md->types[id];
    uint32_t count = 0;
    int rc = 0;
    if (c->out->len - c->out_start > CODEC_JSON_MAX)
        return codec__fail(c, c->in->p, "more than %d bytes as JSON", CODEC_JSON_MAX);
    if (c->readable && codec__print_readable(c, id, &rc))
        return rc;
    switch ((enum type_kind)t->kind) {
    case TYPE_COMPOSITE:
        return codec__print_fields(c, t->first, t->count, true);
    case TYPE_TUPLE:
        return codec__print_fields(c, t->first, t->count, false);
    case TYPE_VARIANT:
        return print_variant(c, t);
    case TYPE_SEQUENCE:
        rc = codec__count(c, &count);
        return rc != 0 ? rc : print_elements(c, t, count);
    case TYPE_ARRAY:
        return print_elements(c, t, t->len);
    case TYPE_PRIMITIVE:
        return print_prim(c, (enum type_prim)t->prim);
    case TYPE_COMPACT:
        return print_compact(c, t);
    case TYPE_BITS:
        return print_bits(c, t);
    }
    UNREACHABLE(); /* the parser checked the kind */
}

static int to_json(struct codec *c, uint32_t type)
{
    if (c->in->bad || type >= c->md->type_count)
        return err_set(c->err, ERR_DECODE,
                       "type %u is not in the metadata, or the input is spoiled", type);
    int rc = codec__print(c, type);
    if (rc != 0)
        c->out->len = c->out_start;
    return rc;
}

int codec_to_json(const struct metadata *md, uint32_t type, struct scale_in *in, struct buf *out,
                  struct err *err)
{
    struct codec c = {
        .md = md, .in = in, .start = in->p, .out = out, .out_start = out->len, .err = err};
    return to_json(&c, type);
}

int codec_to_readable(const struct metadata *md, uint32_t type, struct scale_in *in,
                      struct buf *out, struct err *err)
{
    struct codec c = {
        .md = md, .in = in, .start = in->p, .out = out, .out_start = out->len, .err = err};
    c.readable = true;
    c.prefix = metadata__ss58_prefix(md);
    return to_json(&c, type);
}

int codec_call_to_json(const struct metadata *md, const uint8_t *call, size_t len, struct buf *out,
                       struct err *err)
{
    int rc = codec_check_call(md, call, len, err);
    if (rc != 0)
        return rc;
    struct scale_in in = scale_in_of(call, len);
    return codec_to_json(md, md->type_call, &in, out, err);
}

int codec_call_to_readable(const struct metadata *md, const uint8_t *call, size_t len,
                           struct buf *out, struct err *err)
{
    int rc = codec_check_call(md, call, len, err);
    if (rc != 0)
        return rc;
    struct scale_in in = scale_in_of(call, len);
    return codec_to_readable(md, md->type_call, &in, out, err);
}
