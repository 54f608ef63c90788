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

static int nibble(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static bool decode(const char *text, size_t n, uint8_t *out)
{
    for (size_t i = 0; i < n; i++) {
        int hi = nibble(text[2 * i]);
        int lo = nibble(text[2 * i + 1]);
        if (hi < 0 || lo < 0)
            return false;
        out[i] = (uint8_t)(hi << 4 | lo);
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
