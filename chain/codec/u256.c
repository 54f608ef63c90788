/* Decimal and hexadecimal text of 256-bit numbers, one digit at a time: speed does not matter
 * here. */
#include "u256.h"

#include <string.h>

/* value = value * factor + digit. False: the result does not fit. */
static bool push(uint8_t value[U256_BYTES], unsigned factor, unsigned digit)
{
    unsigned carry = digit;
    for (int i = 0; i < U256_BYTES; i++, carry >>= 8) {
        carry += value[i] * factor;
        value[i] = (uint8_t)carry;
    }
    return carry == 0;
}

bool u256__parse(const char *text, uint8_t ret[U256_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    bool hex = strncmp(text, "0x", 2) == 0;
    memset(ret, 0, U256_BYTES);
    text += hex ? 2 : 0;
    if (!*text)
        return false;
    for (; *text; text++) {
        const char *at = strchr(digits, hex && *text >= 'A' && *text <= 'F' ? *text | 0x20 : *text);
        unsigned digit = at ? (unsigned)(at - digits) : 16;
        if (digit >= (hex ? 16u : 10u) || !push(ret, hex ? 16 : 10, digit))
            return false;
    }
    return true;
}

const char *u256__text(const uint8_t value[U256_BYTES], char out[U256_TEXT])
{
    uint8_t rest[U256_BYTES];
    size_t at = U256_TEXT;
    unsigned any;
    memcpy(rest, value, sizeof(rest));
    out[--at] = 0;
    do {
        unsigned remainder = 0;
        any = 0;
        for (int i = U256_BYTES - 1; i >= 0; i--) {
            remainder = remainder << 8 | rest[i];
            rest[i] = (uint8_t)(remainder / 10);
            any |= rest[i];
            remainder %= 10;
        }
        out[--at] = (char)('0' + remainder);
    } while (any);
    memmove(out, out + at, U256_TEXT - at);
    return out;
}
