#include "chain/node/json_view.h"

#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "json_internal.h"

/* ---- look-ups ---- */

static bool equals(const struct jv *v, const char *text, size_t left)
{
    PRE(v->kind == JV_STRING);
    char out[4];
    if (!v->escaped)
        return v->len == left && memcmp(v->text, text, left) == 0;
    size_t n;
    for (const char *p = v->text, *end = p + v->len; p < end; text += n, left -= n) {
        const char *from = json__piece(&p, end, out, &n);
        if (n > left || memcmp(from, text, n) != 0)
            return false;
    }
    return left == 0;
}

bool jv_equals(const struct jv *v, const char *text)
{
    return jv_is(v, JV_STRING) && equals(v, text, strlen(text));
}

const struct jv *jv_at(const struct jv *array, size_t i)
{
    const struct jv *v = jv_first(array);
    for (; v && i > 0; i--)
        v = jv_next(array, v);
    return v;
}

const struct jv *jv_get(const struct jv *object, const char *name)
{
    const struct jv *found = NULL;
    size_t len = strlen(name);
    if (!jv_is(object, JV_OBJECT))
        return NULL;
    for (const struct jv *key = object + 1; key < object + object->span; key += 1 + key[1].span)
        if (equals(key, name, len))
            found = key + 1;
    return found;
}

bool jv_pair(const struct jv *object, const struct jv **ret_key, const struct jv **ret_value)
{
    if (!jv_is(object, JV_OBJECT) || !object->count)
        return false;
    *ret_key = object + 1;
    *ret_value = object + 2;
    return true;
}

/* ---- strings ---- */

struct cut { /* output that may be too small for the text */
    char *out;
    size_t size, len;
};

static void cut_put(struct cut *c, const char *from, size_t n)
{
    size_t room = c->len + 1 < c->size ? c->size - 1 - c->len : 0;
    memcpy(c->out + (c->len < c->size ? c->len : 0), from, n < room ? n : room);
    c->len += n;
}

static size_t cut_end(const struct cut *c)
{
    PRE(c->size > 0);
    c->out[c->len < c->size ? c->len : c->size - 1] = 0;
    return c->len;
}

size_t jv_copy(const struct jv *v, char *out, size_t size)
{
    struct cut c = {.out = out, .size = size};
    char decoded[4];
    if (jv_is(v, JV_STRING)) {
        for (const char *p = v->text, *end = p + v->len; p < end;) {
            size_t n;
            const char *from = json__piece(&p, end, decoded, &n);
            cut_put(&c, from, n);
        }
    }
    return cut_end(&c);
}

const char *jv_raw(const struct jv *v, size_t *ret_len)
{
    PRE(v);
    size_t quote = v->kind == JV_STRING;
    *ret_len = v->len + 2 * quote;
    return v->text - quote;
}

size_t jv_text(const struct jv *v, char *out, size_t size)
{
    struct cut c = {.out = out, .size = size};
    bool inside = false;
    size_t len = 0;
    const char *p = v ? jv_raw(v, &len) : "";
    for (const char *end = p + len; p < end; p++) {
        if (*p == '"')
            inside = !inside;
        else if (!inside && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
            continue;
        size_t n = inside && *p == '\\' ? 2 : 1;
        cut_put(&c, p, n);
        p += n - 1;
    }
    return cut_end(&c);
}

/* ---- numbers, bytes ---- */

bool jv_int(const struct jv *v, int64_t *ret)
{
    if (!jv_is(v, JV_NUMBER))
        return false;
    bool negative = v->text[0] == '-';
    int64_t n = 0;
    for (uint32_t i = negative; i < v->len; i++) {
        int digit = v->text[i] - '0';
        if (digit < 0 || digit > 9) /* a fraction, an exponent */
            return false;
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_sub_overflow(n, digit, &n))
            return false; /* counted down, because INT64_MIN has no positive counterpart */
    }
    if (!negative && n == INT64_MIN)
        return false;
    *ret = negative ? n : -n;
    return true;
}

/* The decoded text of a string. No node escapes hexadecimal digits, but JSON allows it. */
static bool unescaped(const struct jv *v, struct buf *decoded, const char **ret_text,
                      size_t *ret_len)
{
    if (!jv_is(v, JV_STRING))
        return false;
    *ret_text = v->text;
    *ret_len = v->len;
    if (!v->escaped)
        return true;
    *ret_len = jv_copy(v, (char *)buf_grow(decoded, v->len + 1), v->len + 1);
    *ret_text = (const char *)decoded->data;
    return true;
}

bool jv_hex(const struct jv *v, struct buf *out)
{
    struct buf decoded = {0};
    const char *text;
    size_t len;
    bool good = unescaped(v, &decoded, &text, &len) && hex_decode(text, len, out);
    buf_done(&decoded);
    return good;
}

bool jv_hex_fixed(const struct jv *v, uint8_t *out, size_t n)
{
    struct buf decoded = {0};
    const char *text;
    size_t len;
    bool good = unescaped(v, &decoded, &text, &len) && hex_decode_fixed(text, len, out, n);
    buf_done(&decoded);
    return good;
}
