/* The characters of JSON strings: where a string ends, and what its escapes mean. */
#include <endian.h>
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "base/utf8.h"
#include "json_internal.h"

/* ---- escapes ---- */

static bool four_digits(const char *p, const char *end, uint32_t *ret)
{
    uint8_t bytes[2];
    if (end - p < 4 || !hex_decode_fixed(p, 4, bytes, sizeof(bytes)))
        return false;
    *ret = (uint32_t)bytes[0] << 8 | bytes[1];
    return true;
}

static const char *unicode_escape(const char *p, const char *end, uint32_t *ret_code)
{
    uint32_t high, low;
    if (!four_digits(p, end, &high) || high == 0 || (high >= 0xdc00 && high <= 0xdfff))
        return NULL;
    *ret_code = high;
    p += 4;
    if (high < 0xd800 || high > 0xdbff)
        return p;
    if (end - p < 6 || p[0] != '\\' || p[1] != 'u' || !four_digits(p + 2, end, &low) ||
        low < 0xdc00 || low > 0xdfff)
        return NULL;
    *ret_code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    return p + 6;
}

/* Read one escape; p is after its backslash. Returns its end, with the code point in *ret_code.
 * NULL: not a valid escape, an escaped NUL, or half of a surrogate pair. */
static const char *escape(const char *p, const char *end, uint32_t *ret_code)
{
    static const char names[] = "\"\\/bfnrt", codes[] = "\"\\/\b\f\n\r\t";
    if (p == end)
        return NULL;
    if (*p == 'u')
        return unicode_escape(p + 1, end, ret_code);
    const char *name = *p ? strchr(names, *p) : NULL;
    if (!name)
        return NULL;
    *ret_code = (uint8_t)codes[name - names];
    return p + 1;
}

/* ---- finding the end ---- */

#define EVERY(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Finds the first byte of eight that is not plain (a control character, a quote, a backslash, or
 * not ASCII): the lowest set bit of the result is that byte's high bit. Higher bits mean
 * nothing. */
static uint64_t not_plain(uint64_t w)
{
    uint64_t quote = w ^ EVERY('"'), backslash = w ^ EVERY('\\');
    return (w | (w - EVERY(0x20)) | (quote - EVERY(1)) | (backslash - EVERY(1))) & EVERY(0x80);
}

static bool is_plain(char c)
{
    return (uint8_t)c >= 0x20 && (uint8_t)c < 0x80 && c != '"' && c != '\\';
}

/* Fast path: nearly everything that a node sends is hexadecimal. */
static const char *plain_end(const char *p, const char *end)
{
    for (; end - p >= 8; p += 8) {
        uint64_t w;
        memcpy(&w, p, sizeof(w));
        uint64_t found = not_plain(le64toh(w)); /* first byte lowest */
        if (found)
            return p + __builtin_ctzll(found) / 8;
    }
    while (p < end && is_plain(*p))
        p++;
    return p;
}

/* Step over one character that is neither plain nor a quote. NULL: it is not allowed in a string;
 * *ret_why says why. */
static const char *step(const char *p, const char *end, bool *ret_escaped, const char **ret_why)
{
    uint32_t code;
    if (*p == '\\') {
        *ret_escaped = true;
        *ret_why = "not an escape that may stand here";
        return escape(p + 1, end, &code);
    }
    bool control = (uint8_t)*p < 0x20;
    *ret_why = control ? "a control character in a string" : "not UTF-8";
    size_t n = control ? 0 : utf8_len((const uint8_t *)p, (size_t)(end - p));
    return n ? p + n : NULL;
}

const char *json__string_end(const char *p, const char *end, bool *ret_escaped,
                             const char **ret_why)
{
    *ret_escaped = false;
    for (;;) {
        p = plain_end(p, end);
        *ret_why = p == end ? "the string does not end" : NULL;
        if (p == end || *p == '"')
            return p;
        const char *next = step(p, end, ret_escaped, ret_why);
        if (!next)
            return p;
        p = next;
    }
}

/* ---- decoding ---- */

static size_t utf8_put(uint32_t code, char out[4])
{
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(leads[n] | code);
    return n;
}

const char *json__piece(const char **p, const char *end, char out[4], size_t *ret_len)
{
    PRE(*p < end);
    const char *from = *p;
    uint32_t code;
    if (*from == '\\') {
        *p = escape(from + 1, end, &code);
        INVARIANT(*p); /* json__string_end accepted it */
        *ret_len = utf8_put(code, out);
        return out;
    }
    const char *backslash = memchr(from, '\\', (size_t)(end - from));
    *p = backslash ? backslash : end;
    *ret_len = (size_t)(*p - from);
    return from;
}
