/* The selector: see selector.h. */
#include "site/core/selector.h"

#include <string.h>

#include "base/check.h"
#include "base/ring.h"

uint64_t selector_range(uint64_t height, uint64_t blocks)
{
    PRE(blocks > 0);
    return height / blocks;
}

void selector_rank(const struct ring *members, const uint8_t account[SELECTOR_ACCOUNT_BYTES],
                   uint64_t range, size_t *order)
{
    uint8_t key[SELECTOR_ACCOUNT_BYTES + 8];
    memcpy(key, account, SELECTOR_ACCOUNT_BYTES);
    for (int i = 0; i < 8; i++)
        key[SELECTOR_ACCOUNT_BYTES + i] = (uint8_t)(range >> (56 - 8 * i));
    ring_order(members, ring_key(members, key, sizeof(key)), order);
}
