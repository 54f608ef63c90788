/* Private to the pool's files. */
#ifndef DEVCHAIN_POOL_INTERNAL_H
#define DEVCHAIN_POOL_INTERNAL_H

#include <string.h>

#include "pool.h"

/* What the two kinds of pool do differently. Every function is called after the queues did their
 * part. */
struct pool_policy {
    void (*init)(struct pool *p);
    void (*done)(struct pool *p);
    struct pool_result (*submit)(struct pool *p, uint64_t now_ms, uint64_t best, struct tx *tx);
    void (*resubmit)(struct pool *p, uint64_t now_ms, uint64_t best, struct tx *tx);
    /* The queues' word on a transaction. */
    void (*tell)(struct pool *p, const uint8_t tx[32], enum pool_status status,
                 const uint8_t *hash);
    void (*limited)(struct pool *p, const uint8_t tx[32]); /* it left by the queues' limits */
    /* falsely: the block holds another one of the same nonce. */
    void (*included)(struct pool *p, const uint8_t tx[32], const struct block *b, bool falsely);
    void (*retracted)(struct pool *p, const struct block *b);
    void (*maintain)(struct pool *p, uint64_t now_ms, uint64_t best);
    void (*finalized)(struct pool *p, const struct block *b);
    void (*finality_reached)(struct pool *p, uint64_t number);
    void (*remove_invalid)(struct pool *p, uint64_t now_ms, const uint8_t hash[32],
                           struct buf *ret_removed);
    void (*report_invalid)(struct pool *p, uint64_t now_ms, const uint8_t hash[32],
                           const struct validity *why);
    void (*drop)(struct pool *p, const uint8_t *hash, bool silent);
};
extern const struct pool_policy pool__single_state, pool__fork_aware;

/* What removes a transaction from the queues with its ready dependants. */
enum pool_leave { POOL_LEAVE_INVALID, POOL_LEAVE_LIMIT };

struct tag {
    uint8_t key[40]; /* signer, nonce (u64 LE) */
};

struct waiters {
    struct list txs; /* by pool_tx.chain */
};

static inline struct tag pool__tag(const uint8_t signer[32], uint64_t nonce)
{
    struct tag t;
    memcpy(t.key, signer, 32);
    for (unsigned i = 0; i < 8; i++)
        t.key[32 + i] = (uint8_t)(nonce >> (8 * i));
    return t;
}

static inline struct tag pool__provides(const struct pool_tx *t)
{
    return pool__tag(t->tx->signer, t->tx->nonce);
}

/* Only of a transaction that requires something: its nonce is above 0. */
static inline struct tag pool__requires(const struct pool_tx *t)
{
    return pool__tag(t->tx->signer, (uint64_t)t->tx->nonce - 1);
}

struct pool_tx *pool__successor(const struct pool *p,
                                const struct pool_tx *t); /* ready one, or NULL */
/* Validation of a newcomer, and the bans that follow from it. */
struct pool_result pool__examine(struct pool *p, uint64_t now_ms, struct tx *tx,
                                 struct validity *ret_validity);
/* Into a queue, then the limits; it may be their victim itself. */
struct pool_result pool__enter(struct pool *p, uint64_t now_ms, uint64_t best, struct tx *tx,
                               const struct validity *v);
void pool__evict(struct pool *p, uint64_t now_ms, struct pool_tx *t, enum pool_leave why,
                 struct buf *ret_removed);
void pool__unlink(struct pool *p, struct pool_tx *t); /* out of its queue and of by_hash */
void pool__free(struct pool_tx *t);
bool pool__satisfied(const struct pool *p, const struct pool_tx *t);
struct pool_result pool__import(struct pool *p, uint64_t best, struct tx *tx,
                                const struct validity *v);
void pool__promote(struct pool *p, struct tag tag, const uint8_t cause[32]);
void pool__demote(struct pool *p, struct pool_tx *t,
                  bool silent); /* ready to future, with its dependants */
void pool__bans_done(struct pool *p);
void pool__bans_expire(struct pool *p, uint64_t now_ms);

#endif
