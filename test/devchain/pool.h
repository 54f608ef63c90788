/* The transaction pool of a node with the single-state pool: ready and future queues, replacement, bans,
 * limits, longevity (pool.md 2.3 and 3.1..3.7). Pure: time and validation come in, statuses go to the
 * listener. A transaction provides the tag (signer, nonce) and requires at most the tag before it. */
#ifndef DEVCHAIN_POOL_H
#define DEVCHAIN_POOL_H

#include "listener.h"
#include "runtime.h"

struct pool_config {
    size_t ready_count_max, ready_bytes_max;
    size_t future_count_max, future_bytes_max;
    uint64_t ban_ms;
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

struct pool {
    struct pool_config config;
    struct listener *listener;
    struct validity (*validate)(void *arg, struct tx *tx); /* at the best block */
    void *arg;
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

/* fork_hash etc. are never seen here: blocks arrive as lists of transactions. */
void pool_init(struct pool *p, const struct pool_config *config, struct listener *listener,
               struct validity (*validate)(void *arg, struct tx *tx), void *arg);
void pool_done(struct pool *p);

/* Submission from outside at block `best`. watch (may be NULL) is attached before the first status. */
struct pool_result pool_submit(struct pool *p, uint64_t now_ms, uint64_t best, struct tx *tx,
                               struct watch *watch);
/* A transaction of a retracted block comes back: bans are ignored, an error is swallowed. */
void pool_resubmit(struct pool *p, uint64_t now_ms, uint64_t best, struct tx *tx);

/* One enacted block: its transactions leave, their tags count as provided, futures are promoted. */
void pool_prune(struct pool *p, uint64_t now_ms, uint64_t best, const uint8_t block[32],
                struct tx *const *txs, size_t count, bool false_in_block);
void pool_clear_stale(struct pool *p, uint64_t now_ms, uint64_t best); /* longevity, then lapsed bans */
/* Validate again the ready transactions of one signer from this nonce on, or all. */
void pool_revalidate_signer(struct pool *p, uint64_t now_ms, const uint8_t signer[32], uint32_t nonce,
                            size_t max);
void pool_revalidate_all(struct pool *p, uint64_t now_ms);

/* Not valid any more: it and its ready dependants are told `invalid`; only it is banned. */
void pool_remove_invalid(struct pool *p, uint64_t now_ms, const uint8_t hash[32]);
/* Lose transactions: with `dropped` told, or in silence. hash NULL: all; else that one, and its dependants
 * become futures. Returns how many were lost. Nothing is banned. */
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
/* The last one given was taken: its successor becomes available. Without this its dependants stay out. */
void pool_iter_taken(struct pool_iter *it, const struct pool_tx *t);
void pool_iter_done(struct pool_iter *it);

#endif
