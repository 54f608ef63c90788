/* The fork-aware pool's mempool: every transaction it took and that is neither final nor given up,
 * in or out of the view. Private to the pool's files. */
#ifndef DEVCHAIN_POOL_MEMPOOL_H
#define DEVCHAIN_POOL_MEMPOOL_H

#include "pool.h"

struct mem_tx {
    struct list node; /* oldest first */
    struct tx *tx;    /* owned reference */
    uint64_t priority;
    uint64_t validated_at;  /* the final block's number when the runtime last agreed */
    uint64_t in_view_since; /* best's number when it entered the view */
    bool limited;           /* the view's limits pushed it out, at this best number: */
    uint64_t limited_at;
    bool told_future, told_ready;
    bool included; /* in this block of the best chain: */
    uint64_t block_number;
    uint8_t block[32];
};

struct mempool {
    struct map by_hash;
    struct list order;
    size_t bytes;
    uint64_t best, finalized; /* numbers */
};

struct mempool *mempool_new(void);
void mempool_free(struct mempool *m);
struct mem_tx *mempool_find(const struct mempool *m, const uint8_t hash[32]);
struct mem_tx *mempool_add(struct mempool *m, struct tx *tx); /* it is not there yet */
void mempool_remove(struct mempool *m, struct mem_tx *e);
/* Hashes of all, oldest first: for walks during which entries may go. */
void mempool_hashes(const struct mempool *m, struct buf *ret_hashes);

/* Is there room for `len` bytes of this priority? ret_victims gets the hashes that must go for it:
 * of strictly lower priority, the lowest first, the oldest of equals first. */
bool mempool_room(const struct mempool *m, size_t count_max, size_t bytes_max, uint64_t priority,
                  size_t len, struct buf *ret_victims);

#endif
