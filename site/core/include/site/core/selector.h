/* The selector: which site of a committee orders an account's transactions, and who comes after it.
 * It is a pure function of the account, the names of the members and a range of heights. Sites that
 * see the same range have the same ranking, without a message.
 *
 * The ring is base/ring.h. The key is the account with the number of the range, so accounts with
 * the same committee do not rotate in step. */
#ifndef SITE_SELECTOR_H
#define SITE_SELECTOR_H

#include <stddef.h>
#include <stdint.h>

struct ring;

enum { SELECTOR_ACCOUNT_BYTES = 64 }; /* the account id, then zeros */

/* The number of the range that has this height: floor(height / blocks). The first block of a range
 * begins it. */
uint64_t selector_range(uint64_t height, uint64_t blocks);

/* All members of the ring, the first one first. A member that is not available is skipped: without
 * it the others have the same order. `order` has room for ring_count. */
void selector_rank(const struct ring *members, const uint8_t account[SELECTOR_ACCOUNT_BYTES],
                   uint64_t range, size_t *order);

#endif
