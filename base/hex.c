#include "base/hex.h"

#include <string.h>

#include "base/check.h"

static const char digits[] = "0123456789abcdef";

void hex_put(struct buf *b, const void *data, size_t n)
{
    const uint8_t *p = data;
    char *out = (char *)buf_grow(b, 2 * n);
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[p[i] >> 4];
        out[2 * i + 1] = digits[p[i] & 15];
    }
    b->len += 2 * n;
}

void hex_put_0x(struct buf *b, const void *data, size_t n)
{
    buf_put(b, "0x", 2);
    hex_put(b, data, n);
}

/* One more than the value of a digit; 0: not a digit. */
static const uint8_t values[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

static bool decode(const char *text, size_t n, uint8_t *out)
{
    const uint8_t *digit = (const uint8_t *)text;
    for (size_t i = 0; i < n; i++, digit += 2) {
        unsigned high = values[digit[0]], low = values[digit[1]];
        if (!high || !low)
            return false;
        out[i] = (uint8_t)((high - 1) << 4 | (low - 1));
    }
    return true;
}

static void strip(const char **text, size_t *len)
{
    if (*len >= 2 && (*text)[0] == '0' && ((*text)[1] == 'x' || (*text)[1] == 'X')) {
        *text += 2;
        *len -= 2;
    }
}

bool hex_decode(const char *text, size_t len, struct buf *b)
{
    strip(&text, &len);
    if (len % 2)
        return false;
    if (!decode(text, len / 2, buf_grow(b, len / 2 + 1)))
        return false;
    b->len += len / 2;
    return true;
}

bool hex_decode_fixed(const char *text, size_t len, uint8_t *out, size_t n)
{
    uint8_t tmp[64];
    PRE(n <= sizeof(tmp));
    strip(&text, &len);
    if (len != 2 * n || !decode(text, n, tmp))
        return false;
    memcpy(out, tmp, n);
    return true;
}

const char *hex_log(const void *data, size_t n)
{
    static char ring[8][2 * 32 + 3];
    static unsigned next;
    PRE(n <= 32);
    char *out = ring[next++ % 8];
    const uint8_t *p = data;
    memcpy(out, "0x", 2);
    for (size_t i = 0; i < n; i++) {
        out[2 + 2 * i] = digits[p[i] >> 4];
        out[3 + 2 * i] = digits[p[i] & 15];
    }
    out[2 + 2 * n] = 0;
    return out;
}
