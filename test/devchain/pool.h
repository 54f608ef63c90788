/* The transaction pool of a node: ready and future queues, replacement, bans, limits, longevity.
 * Pure: time and validation come in, statuses go to the listener. A transaction provides the tag
 * (signer, nonce) and requires at most the tag before it.
 *
 * Two pools exist. The queues here are the whole of the single-state pool, and the view at the best
 * block of the fork-aware one; a policy (pool_single.c, pool_fork_aware.c) holds all in which they
 * differ. */
#ifndef DEVCHAIN_POOL_H
#define DEVCHAIN_POOL_H

#include "listener.h"
#include "runtime.h"

enum pool_type { POOL_TYPE_SINGLE_STATE, POOL_TYPE_FORK_AWARE };

struct pool_config {
    size_t ready_count_max, ready_bytes_max;
    size_t future_count_max, future_bytes_max;
    uint64_t ban_ms;
    enum pool_type type;
    uint64_t finality_timeout_blocks; /* fork-aware: an older block that is not final is given up */
};

/* What the runtime says of a transaction. */
struct pool_runtime {
    struct validity (*at_best)(void *arg, struct tx *tx);
    struct validity (*at_finalized)(void *arg, struct tx *tx);
    void *arg;
};

struct pool_tx {
    struct list node;  /* ready or future queue, oldest first */
    struct list chain; /* roots (ready), or the futures that wait for the same tag */
    struct tx *tx;     /* owned reference */
    bool ready;
    bool requires;
    uint64_t priority;
    uint64_t valid_till;
    uint64_t insertion;
};

struct pool_queue {
    struct list txs;
    size_t count, bytes;
};

struct pool_policy;
struct mempool;

struct pool {
    struct pool_config config;
    const struct pool_policy *policy;
    struct mempool *mempool; /* the fork-aware policy's own; else NULL */
    struct listener *listener;
    struct pool_runtime runtime;
    struct map by_hash;
    struct map provided; /* tag -> ready transaction */
    struct map waiting;  /* tag -> list of futures that require it */
    struct pool_queue ready, future;
    struct list roots; /* ready transactions without a ready predecessor */
    uint64_t insertions;
    uint64_t earliest_till; /* no valid_till is below it */
    struct map pruned[2];   /* tags of the last two prune calls */
    unsigned pruned_at;
    struct map bans;
    struct list ban_order;
};

enum pool_error_kind {
    POOL_OK,
    POOL_BANNED,
    POOL_ALREADY_IMPORTED,
    POOL_NOT_VALID, /* see validity */
    POOL_NO_TAGS,
    POOL_UNACTIONABLE,
    POOL_TOO_LOW_PRIORITY, /* see old, new */
    POOL_CYCLE,
    POOL_IMMEDIATELY_DROPPED,
};
struct pool_result {
    enum pool_error_kind kind;
    struct validity validity;
    uint64_t old_priority, new_priority;
};

void pool_init(struct pool *p, const struct pool_config *config, struct listener *listener,
               const struct pool_runtime *runtime);
void pool_done(struct pool *p);

/* Submission from outside at block `best`. watch (may be NULL) is attached before the first
 * status. */
struct pool_result pool_submit(struct pool *p, uint64_t now_ms, uint64_t best, struct tx *tx,
                               struct watch *watch);
/* A transaction of a retracted block comes back: bans are ignored, an error is swallowed. */
void pool_resubmit(struct pool *p, uint64_t now_ms, uint64_t best, struct tx *tx);

/* A block left the best chain. All such blocks come before those that took their place. */
void pool_retracted(struct pool *p, const struct block *b);
/* One enacted block: its transactions leave, their tags count as provided, futures are promoted. */
void pool_prune(struct pool *p, uint64_t now_ms, uint64_t best, const struct block *b,
                bool false_in_block);
/* After the blocks of one change of the best chain. */
void pool_maintain(struct pool *p, uint64_t now_ms, uint64_t best);
/* One newly final block, oldest first; then once the number that finality has reached. */
void pool_finalized(struct pool *p, const struct block *b);
void pool_finality_reached(struct pool *p, uint64_t number);
void pool_clear_stale(struct pool *p, uint64_t now_ms,
                      uint64_t best); /* longevity, then lapsed bans */
/* Validate again the ready transactions of one signer from this nonce on, or all. */
void pool_revalidate_signer(struct pool *p, uint64_t now_ms, const uint8_t signer[32],
                            uint32_t nonce, size_t max);
void pool_revalidate_all(struct pool *p, uint64_t now_ms);

/* Removed on request: it is told `invalid` and banned, its ready dependants go with it as far as
 * the policy says. ret_removed (may be NULL) gets the hashes of what the pool lost. */
void pool_remove_invalid(struct pool *p, uint64_t now_ms, const uint8_t hash[32],
                         struct buf *ret_removed);
/* The same at the block author's word: it was applied and found not valid. */
void pool_report_invalid(struct pool *p, uint64_t now_ms, const uint8_t hash[32],
                         const struct validity *why);
/* Lose transactions: with `dropped` told, or in silence. hash NULL: all; else that one, and its
 * dependants become futures. Returns how many the queues lost. Nothing is banned. */
size_t pool_drop(struct pool *p, const uint8_t *hash, bool silent);

const struct pool_tx *pool_find(const struct pool *p, const uint8_t hash[32]);
const struct pool_tx *pool_ready_at(const struct pool *p, const uint8_t signer[32], uint32_t nonce);
bool pool_banned(const struct pool *p, const uint8_t hash[32]);
void pool_clear_bans(struct pool *p);
void pool_ban(struct pool *p, uint64_t now_ms, const uint8_t hash[32]);

/* The order in which a block author would take ready transactions. */
struct pool_iter {
    const struct pool *pool;
    const struct pool_tx **heap;
    size_t len, cap;
};
void pool_iter_init(struct pool_iter *it, const struct pool *p);
const struct pool_tx *pool_iter_next(struct pool_iter *it); /* NULL: no more */
/* The last one given was taken: its successor becomes available. Without this its dependants stay
 * out. */
void pool_iter_taken(struct pool_iter *it, const struct pool_tx *t);
void pool_iter_done(struct pool_iter *it);

#endif
