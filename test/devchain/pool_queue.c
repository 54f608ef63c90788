/* The pool's two queues: import into ready or future, promotion, replacement, removal. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "pool_internal.h"

static void queue_add(struct pool_queue *q, struct pool_tx *t)
{
    list_append(&q->txs, &t->node);
    q->count++;
    q->bytes += t->tx->len;
}

static void queue_remove(struct pool_queue *q, struct pool_tx *t)
{
    list_remove(&t->node);
    q->count--;
    q->bytes -= t->tx->len;
}

void pool__free(struct pool_tx *t)
{
    tx_unref(t->tx);
    free(t);
}

static struct pool_tx *provider(const struct pool *p, struct tag tag)
{
    return map_get(&p->provided, tag.key);
}

struct pool_tx *pool__successor(const struct pool *p, const struct pool_tx *t)
{
    return provider(p, pool__tag(t->tx->signer, (uint64_t)t->tx->nonce + 1));
}

bool pool__satisfied(const struct pool *p, const struct pool_tx *t)
{
    if (!t->requires)
        return true;
    struct tag tag = pool__requires(t);
    return provider(p, tag) || map_get(&p->pruned[0], tag.key) || map_get(&p->pruned[1], tag.key);
}

static void unlink_ready(struct pool *p, struct pool_tx *t)
{
    queue_remove(&p->ready, t);
    map_del(&p->provided, pool__provides(t).key);
    list_remove(&t->chain);
    struct pool_tx *next = pool__successor(p, t);
    if (next && !list_linked(&next->chain))
        list_append(&p->roots, &next->chain);
}

static void unlink_future(struct pool *p, struct pool_tx *t)
{
    queue_remove(&p->future, t);
    struct tag tag = pool__requires(t);
    struct waiters *w = map_get(&p->waiting, tag.key);
    list_remove(&t->chain);
    if (w && list_empty(&w->txs)) {
        map_del(&p->waiting, tag.key);
        free(w);
    }
}

void pool__unlink(struct pool *p, struct pool_tx *t)
{
    if (t->ready)
        unlink_ready(p, t);
    else
        unlink_future(p, t);
    map_del(&p->by_hash, t->tx->hash);
}

static void link_future(struct pool *p, struct pool_tx *t)
{
    struct tag tag = pool__requires(t);
    struct waiters *w = map_get(&p->waiting, tag.key);
    if (!w) {
        w = xmalloc(sizeof *w);
        list_init(&w->txs);
        map_put(&p->waiting, tag.key, w);
    }
    t->ready = false;
    list_append(&w->txs, &t->chain);
    queue_add(&p->future, t);
    map_put(&p->by_hash, t->tx->hash, t);
}

static void link_ready(struct pool *p, struct pool_tx *t)
{
    t->ready = true;
    t->insertion = ++p->insertions;
    queue_add(&p->ready, t);
    map_put(&p->provided, pool__provides(t).key, t);
    map_put(&p->by_hash, t->tx->hash, t);
    struct pool_tx *next = pool__successor(p, t);
    if (next)
        list_remove(&next->chain);
    if (t->tx->nonce == 0 || !provider(p, pool__tag(t->tx->signer, (uint64_t)t->tx->nonce - 1)))
        list_append(&p->roots, &t->chain);
}

/* Into ready, against the provider of the same tag if there is one. false: that one stays (see
 * *old). The replaced one is told usurped(cause); its dependants stay, because the newcomer
 * provides the same tag. */
static bool insert_ready(struct pool *p, struct pool_tx *t, const uint8_t cause[32], uint64_t *old)
{
    struct pool_tx *rival = provider(p, pool__provides(t));
    if (rival && rival->priority >= t->priority) {
        *old = rival->priority;
        return false;
    }
    if (rival)
        pool__unlink(p, rival);
    link_ready(p, t);
    p->policy->tell(p, t->tx->hash, STATUS_READY, NULL);
    if (rival) {
        p->policy->tell(p, rival->tx->hash, STATUS_USURPED, cause);
        pool__free(rival);
    }
    return true;
}

/* Futures whose missing tag appeared enter ready, and so on along the nonces. A loser is told
 * usurped. */
void pool__promote(struct pool *p, struct tag tag, const uint8_t cause[32])
{
    for (;;) {
        struct waiters *w = map_get(&p->waiting, tag.key);
        struct pool_tx *any = NULL;
        if (!w)
            return;
        size_t left = 0;
        LIST_EACH (n, &w->txs)
            left++;
        while (left--) {
            struct pool_tx *t = CONTAINER_OF(list_first(&w->txs), struct pool_tx, chain);
            uint64_t old;
            pool__unlink(p, t); /* frees w with the last one */
            any = t;
            struct tag next = pool__provides(t);
            if (!insert_ready(p, t, cause ? cause : t->tx->hash, &old)) {
                p->policy->tell(p, t->tx->hash, STATUS_USURPED, cause ? cause : t->tx->hash);
                pool__free(t);
            }
            tag = next;
        }
        if (!any)
            return;
    }
}

void pool__demote(struct pool *p, struct pool_tx *t, bool silent)
{
    while (t) {
        struct pool_tx *next = pool__successor(p, t);
        pool__unlink(p, t);
        t->requires = true;
        link_future(p, t);
        if (!silent)
            p->policy->tell(p, t->tx->hash, STATUS_FUTURE, NULL);
        t = next;
    }
}

struct pool_result pool__import(struct pool *p, uint64_t best, struct tx *tx,
                                const struct validity *v)
{
    struct pool_tx *t = xcalloc(1, sizeof *t);
    t->tx = tx_ref(tx);
    t->requires = v->requires;
    t->priority = v->priority;
    t->valid_till = v->longevity > UINT64_MAX - best ? UINT64_MAX : best + v->longevity;
    if (t->valid_till < p->earliest_till)
        p->earliest_till = t->valid_till;
    if (!pool__satisfied(p, t)) {
        link_future(p, t);
        p->policy->tell(p, tx->hash, STATUS_FUTURE, NULL);
        return (struct pool_result){.kind = POOL_OK};
    }
    uint64_t old = 0;
    if (!insert_ready(p, t, tx->hash, &old)) {
        struct pool_result r = {
            .kind = POOL_TOO_LOW_PRIORITY, .old_priority = old, .new_priority = t->priority};
        pool__free(t);
        return r;
    }
    pool__promote(p, pool__provides(t), tx->hash);
    return (struct pool_result){.kind = POOL_OK};
}
