#include "base/utf8.h"

size_t utf8_len(const uint8_t *at, size_t left)
{
    size_t n = at[0] < 0x80                     ? 1
               : at[0] >= 0xc2 && at[0] < 0xe0  ? 2
               : at[0] >= 0xe0 && at[0] < 0xf0  ? 3
               : at[0] >= 0xf0 && at[0] <= 0xf4 ? 4
                                                : 0;
    for (size_t i = 1; i < n; i++)
        if (i >= left || (at[i] & 0xc0) != 0x80)
            return 0;
    return n;
}
