/* Private to the pool's files. */
#ifndef DEVCHAIN_POOL_INTERNAL_H
#define DEVCHAIN_POOL_INTERNAL_H

#include <string.h>

#include "pool.h"

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

struct pool_tx *pool__successor(const struct pool *p, const struct pool_tx *t); /* ready one, or NULL */
void pool__unlink(struct pool *p, struct pool_tx *t); /* out of its queue and of by_hash */
void pool__free(struct pool_tx *t);
bool pool__satisfied(const struct pool *p, const struct pool_tx *t);
struct pool_result pool__import(struct pool *p, uint64_t best, struct tx *tx, const struct validity *v);
void pool__promote(struct pool *p, struct tag tag, const uint8_t cause[32]);
void pool__demote(struct pool *p, struct pool_tx *t, bool silent); /* ready to future, with its dependants */
void pool__bans_done(struct pool *p);
void pool__bans_expire(struct pool *p, uint64_t now_ms);

#endif
