/* The leaves of SCALE values, and errors that name the path and offset of a failure. */
#include "codec_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/utf8.h"

static const uint8_t prim_size[PRIM_COUNT] = {
    [PRIM_BOOL] = 1, [PRIM_CHAR] = 4,  [PRIM_U8] = 1,    [PRIM_U16] = 2,   [PRIM_U32] = 4,
    [PRIM_U64] = 8,  [PRIM_U128] = 16, [PRIM_U256] = 32, [PRIM_I8] = 1,    [PRIM_I16] = 2,
    [PRIM_I32] = 4,  [PRIM_I64] = 8,   [PRIM_I128] = 16, [PRIM_I256] = 32,
};

const char *codec__path_text(const struct codec_path *path, char out[CODEC_PATH_TEXT])
{
    char part[CODEC_PATH_TEXT];
    size_t end = CODEC_PATH_TEXT - 1; /* from the end, because the last steps matter most */
    out[end] = 0;
    for (unsigned i = path->depth; i > 0; i--) {
        const struct codec_step *s = &path->steps[i - 1];
        int n = 0;
        if (s->name)
            n = snprintf(part, sizeof(part), "%s%s", i > 1 ? "." : "", s->name);
        else if (s->index != CODEC_NO_INDEX)
            n = snprintf(part, sizeof(part), "[%u]", s->index);
        if (n < 0 || (size_t)n + 3 > end) {
            end -= 3;
            memcpy(out + end, "...", 3);
            break;
        }
        end -= (size_t)n;
        memcpy(out + end, part, (size_t)n);
    }
    if (out[end] == '.' && out[end + 1] != '.') /* the outermost steps have no names */
        end++;
    memmove(out, out + end, CODEC_PATH_TEXT - end);
    return out;
}

int codec__fail(struct codec *c, const uint8_t *at, const char *fmt, ...)
{
    PRE(at >= c->start && at <= c->in->end);
    char what[120];
    char path[CODEC_PATH_TEXT];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    size_t offset = (size_t)(at - c->start);
    size_t len = (size_t)(c->in->end - c->start);
    c->in->bad = true;
    codec__path_text(&c->path, path);
    return err_set(c->err, ERR_DECODE, "%s%sbyte %zu of %zu: %s", path, *path ? ": " : "", offset,
                   len, what);
}

int codec__take(struct codec *c, size_t n, const uint8_t **ret_bytes)
{
    const uint8_t *at = c->in->p;
    if (n > scale_left(c->in))
        return codec__fail(c, at, "%zu bytes needed, %zu left", n, scale_left(c->in));
    *ret_bytes = at;
    if (n) /* an empty input may be NULL */
        c->in->p += n;
    return 0;
}

int codec__count(struct codec *c, uint32_t *ret_count)
{
    const uint8_t *at = c->in->p;
    uint32_t n = scale_get_compact_u32(c->in);
    if (c->in->bad)
        return codec__fail(c, at, "not a compact length");
    *ret_count = n;
    return 0;
}

int codec__length(struct codec *c, uint32_t *ret_len)
{
    const uint8_t *at = c->in->p;
    uint32_t n = 0;
    int rc = codec__count(c, &n);
    if (rc != 0)
        return rc;
    if (n > scale_left(c->in))
        return codec__fail(c, at, "length %u, but %zu bytes left", n, scale_left(c->in));
    *ret_len = n;
    return 0;
}

static uint32_t code_point(const uint8_t *s, size_t n)
{
    uint32_t v = n == 1 ? s[0] : s[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++)
        v = v << 6 | (s[i] & 0x3f);
    return v;
}

static bool is_shown(uint32_t v)
{
    if (v < 0xa0)
        return (v >= 0x20 && v < 0x7f) || v == '\n' || v == '\t';
    return !((v >= 0x200b && v <= 0x200f) || (v >= 0x2028 && v <= 0x202e) ||
             (v >= 0x2060 && v <= 0x206f) || v == 0xad || v == 0xfeff);
}

bool codec__is_plain_text(const uint8_t *s, uint32_t len)
{
    for (uint32_t i = 0; i < len;) {
        size_t n = utf8_len(s + i, len - i);
        if (n == 0 || !is_shown(code_point(s + i, n)))
            return false;
        i += (uint32_t)n;
    }
    return true;
}

int codec__str(struct codec *c, const uint8_t **ret_text, uint32_t *ret_len)
{
    int rc = codec__length(c, ret_len);
    if (rc == 0)
        rc = codec__take(c, *ret_len, ret_text);
    for (size_t i = 0; rc == 0 && i < *ret_len;) {
        size_t n = utf8_len(*ret_text + i, *ret_len - i);
        if (n == 0)
            return codec__fail(c, *ret_text + i, "text is not UTF-8");
        i += n;
    }
    return rc;
}

unsigned codec__prim_size(enum type_prim prim)
{
    return prim_size[prim];
}

bool codec__prim_is_unsigned(enum type_prim prim)
{
    return prim >= PRIM_U8 && prim <= PRIM_U256;
}

u128 codec__prim_max(enum type_prim prim)
{
    unsigned bits = prim_size[prim] * 8u;
    return bits >= 128 ? ~(u128)0 : ((u128)1 << bits) - 1;
}

bool codec__compact_prim(const struct metadata *md, const struct type *t, enum type_prim *ret_prim)
{
    const struct type *inner = &md->types[metadata__unwrap(md, t->inner)];
    *ret_prim = (enum type_prim)inner->prim;
    return inner->kind == TYPE_PRIMITIVE && codec__prim_is_unsigned(*ret_prim) &&
           *ret_prim != PRIM_U256;
}

int codec__compact(struct codec *c, const struct type *t, u128 *ret_value)
{
    const uint8_t *at = c->in->p;
    enum type_prim prim;
    if (!codec__compact_prim(c->md, t, &prim))
        return codec__fail(c, at, "a compact of something that is not a number");
    u128 v = scale_get_compact(c->in);
    if (c->in->bad)
        return codec__fail(c, at, "not a compact number");
    if (v > codec__prim_max(prim))
        return codec__fail(c, at, "compact number larger than u%u", prim_size[prim] * 8u);
    *ret_value = v;
    return 0;
}

unsigned codec__store_bits(const struct metadata *md, const struct type *t)
{
    const struct type *store = &md->types[metadata__unwrap(md, t->inner)];
    bool good = store->kind == TYPE_PRIMITIVE && store->prim >= PRIM_U8 && store->prim <= PRIM_U64;
    return good ? prim_size[store->prim] * 8u : 0;
}

bool codec__msb_first(const struct metadata *md, const struct type *t)
{
    return strcmp(md->types[t->len].name, "Msb0") == 0;
}

int codec__bits(struct codec *c, const struct type *t, const uint8_t **ret_bytes,
                uint32_t *ret_bits)
{
    const uint8_t *at = c->in->p;
    unsigned store = codec__store_bits(c->md, t);
    if (!store)
        return codec__fail(c, at, "a bit sequence over something that is not u8 to u64");
    int rc = codec__count(c, ret_bits);
    if (rc != 0)
        return rc;
    size_t elements = ((size_t)*ret_bits + store - 1) / store;
    return codec__take(c, elements * (store / 8), ret_bytes);
}

int codec__variant(struct codec *c, const struct type *t, const struct type_variant **ret_variant)
{
    const uint8_t *at = NULL;
    int rc = codec__take(c, 1, &at);
    if (rc != 0)
        return rc;
    *ret_variant = metadata__variant(c->md, t, *at);
    if (!*ret_variant)
        return codec__fail(c, at, "%s has no variant %u", *t->name ? t->name : "the enum", *at);
    return 0;
}

int codec__check_prim(struct codec *c, enum type_prim prim, const uint8_t *bytes)
{
    if (prim == PRIM_BOOL && *bytes > 1)
        return codec__fail(c, bytes, "a bool is 0 or 1, not %u", *bytes);
    if (prim == PRIM_CHAR) {
        struct scale_in in = scale_in_of(bytes, 4);
        uint32_t v = scale_get_u32(&in);
        if (v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
            return codec__fail(c, bytes, "a char cannot be 0x%x", v);
    }
    return 0;
}

bool codec__is_bytes(const struct metadata *md, const struct type *t)
{
    if (t->kind != TYPE_SEQUENCE && t->kind != TYPE_ARRAY)
        return false;
    const struct type *inner = &md->types[t->inner];
    return inner->kind == TYPE_PRIMITIVE && inner->prim == PRIM_U8;
}

bool codec__is_newtype(const struct metadata *md, const struct type *t)
{
    return t->kind == TYPE_COMPOSITE && t->count == 1 && !md->fields[t->first].name;
}

bool codec__is_nullable(const struct metadata *md, uint32_t id)
{
    const struct type *t = &md->types[id];
    while (codec__is_newtype(md, t)) /* no cycles: the parser checked */
        t = &md->types[md->fields[t->first].type];
    return t->role == ROLE_OPTION;
}
