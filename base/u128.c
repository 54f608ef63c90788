/* Decimal text of 128 bits: printf has no conversion for them. */
#include "base/u128.h"

#include <stddef.h>

const char *u128_text(u128 v, char out[40])
{
    char digits[40];
    size_t n = 0;
    do {
        digits[n++] = (char)('0' + (int)(v % 10));
        v /= 10;
    } while (v);
    for (size_t i = 0; i < n; i++)
        out[i] = digits[n - 1 - i];
    out[n] = 0;
    return out;
}

bool u128_parse(const char *text, u128 *ret_v)
{
    const u128 max = ~(u128)0;
    u128 v = 0;
    if (!*text)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return false;
        unsigned digit = (unsigned)(*text - '0');
        if (v > (max - digit) / 10)
            return false;
        v = v * 10 + digit;
    }
    *ret_v = v;
    return true;
}
