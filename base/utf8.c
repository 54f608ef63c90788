#include "base/utf8.h"

#include <stdbool.h>

size_t utf8_len(const uint8_t *at, size_t left)
{
    uint32_t first = at[0];
    size_t n = first < 0x80                     ? 1
               : first >= 0xc2 && first < 0xe0  ? 2
               : first >= 0xe0 && first < 0xf0  ? 3
               : first >= 0xf0 && first <= 0xf4 ? 4
                                                : 0;
    uint32_t code = n == 3 ? first & 0x0f : first & 0x07;
    for (size_t i = 1; i < n; i++) {
        if (i >= left || (at[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    bool overlong = (n == 3 && code < 0x800) || (n == 4 && code < 0x10000);
    bool surrogate = n == 3 && code >= 0xd800 && code < 0xe000;
    return overlong || surrogate || (n == 4 && code > 0x10ffff) ? 0 : n;
}

int utf8_count(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}
