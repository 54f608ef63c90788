/* The simulated node without its door: runtime, chain, pool and listener put together. Blocks,
 * forks and finality happen on command; time comes in. What happened is told through the callbacks,
 * at once. */
#ifndef DEVCHAIN_CORE_H
#define DEVCHAIN_CORE_H

#include "pool.h"

struct core_config {
    struct pool_config pool;
    struct runtime runtime; /* chain and genesis are filled in by core_init */
    size_t finality_blocks_max;
    size_t keep_bytes_max;
    uint32_t block_extrinsics_max;
    uint64_t seed;
};

struct core_callbacks {
    void (*on_status)(void *arg, struct watch *w, enum pool_status status, const uint8_t *hash);
    void (*on_block)(void *arg, const struct block *b,
                     bool best);                            /* imported; best: it is the new tip */
    void (*on_finalized)(void *arg, const struct block *b); /* the last one of the round */
    void (*on_runtime)(void *arg);                          /* another version at best */
    /* Scripted: may the author take this transaction? What does validation say instead? */
    bool (*may_include)(void *arg, const struct tx *tx);
    bool (*verdict)(void *arg, const struct tx *tx, struct validity *ret_validity);
    /* And does its dispatch fail? */
    bool (*fails)(void *arg, const struct tx *tx, struct dispatch_error *ret_error);
    void *arg;
};

struct core_change { /* a scripted change of an account, made by the next block */
    uint8_t id[32];
    bool set_free, set_nonce;
    u128 free;
    uint32_t nonce;
};

struct core {
    struct core_config config;
    struct core_callbacks cb;
    struct runtime rt;
    struct chain chain;
    struct listener listener;
    struct pool pool;
    uint64_t salt;
    u128 min_tip; /* the author leaves out what tips less */
    bool false_in_block;
    bool upgrade_pending;
    struct chain_version upgrade;
    struct buf changes; /* struct core_change, for the next block */
};

void core_init(struct core *c, const struct core_config *config, const struct core_callbacks *cb);
void core_done(struct core *c);
void core_genesis(struct core *c, const struct core_change *accounts, size_t count,
                  uint64_t wall_ms);

enum core_decode { CORE_DECODE_OK, CORE_DECODE_BAD };
/* Submit bytes. BAD: the frame does not decode. *ret_tx (a reference) is set otherwise. */
enum core_decode core_submit(struct core *c, uint64_t now_ms, const uint8_t *bytes, size_t len,
                             struct watch *watch, struct tx **ret_tx,
                             struct pool_result *ret_result);

void core_change_account(struct core *c, const struct core_change *change);
void core_upgrade(struct core *c,
                  struct chain_version version); /* takes effect with the next block */

/* One block on best. empty: without transactions of the pool. */
const struct block *core_author(struct core *c, uint64_t now_ms, uint64_t wall_ms, bool empty);
/* `count` blocks that the pool hears of at once (behaviour.md, line 32: above 20 of none). */
void core_author_burst(struct core *c, uint64_t now_ms, uint64_t wall_ms, size_t count);

struct core_reorg {
    uint64_t depth;   /* blocks that leave the best chain */
    uint64_t length;  /* of the new branch; 0: depth + 1 */
    bool keep_txs;    /* the new branch holds the same transactions, in its first block */
    bool from_pool;   /* and takes more from the pool */
    bool no_resubmit; /* transactions of the lost blocks do not come back to the pool */
};
/* false: depth reaches a final block. */
bool core_reorg(struct core *c, uint64_t now_ms, uint64_t wall_ms, const struct core_reorg *r);

void core_finalize(struct core *c, uint64_t number); /* cut to best; going back does nothing */

/* The account's nonce at best plus its contiguous ready transactions. */
uint32_t core_next_index(const struct core *c, const uint8_t id[32]);

#endif
