/* The pool's life: submission, blocks, revalidation, limits. The queues themselves are in
 * pool_queue.c, what the two kinds of pool do differently in their policies. */
#include "pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "pool_internal.h"

void pool_init(struct pool *p, const struct pool_config *config, struct listener *listener,
               const struct pool_runtime *runtime)
{
    *p = (struct pool){.config = *config, .listener = listener, .runtime = *runtime};
    p->policy = config->type == POOL_TYPE_FORK_AWARE ? &pool__fork_aware : &pool__single_state;
    map_init(&p->by_hash, 32);
    map_init(&p->provided, 40);
    map_init(&p->waiting, 40);
    map_init(&p->pruned[0], 40);
    map_init(&p->pruned[1], 40);
    map_init(&p->bans, 32);
    list_init(&p->ready.txs);
    list_init(&p->future.txs);
    list_init(&p->roots);
    list_init(&p->ban_order);
    p->earliest_till = UINT64_MAX;
    p->policy->init(p);
}

void pool_done(struct pool *p)
{
    pool_drop(p, NULL, true);
    p->policy->done(p);
    map_done(&p->by_hash);
    map_done(&p->provided);
    map_done(&p->waiting);
    map_done(&p->pruned[0]);
    map_done(&p->pruned[1]);
    pool__bans_done(p);
}

const struct pool_tx *pool_find(const struct pool *p, const uint8_t hash[32])
{
    return map_get(&p->by_hash, hash);
}

const struct pool_tx *pool_ready_at(const struct pool *p, const uint8_t signer[32], uint32_t nonce)
{
    return map_get(&p->provided, pool__tag(signer, nonce).key);
}

static struct pool_tx *first_of(struct pool_queue *q)
{
    return CONTAINER_OF(list_first(&q->txs), struct pool_tx, node);
}

/* Out of the queues; ready dependants follow with the same word. Invalid bans the first one
 * only. */
void pool__evict(struct pool *p, uint64_t now_ms, struct pool_tx *t, enum pool_leave why,
                 struct buf *ret_removed)
{
    for (size_t n = 0; t; n++) {
        struct pool_tx *next = t->ready ? pool__successor(p, t) : NULL;
        pool__unlink(p, t);
        if (why == POOL_LEAVE_LIMIT || n == 0)
            pool_ban(p, now_ms, t->tx->hash);
        if (ret_removed)
            buf_put(ret_removed, t->tx->hash, 32);
        if (why == POOL_LEAVE_LIMIT)
            p->policy->limited(p, t->tx->hash);
        else
            p->policy->tell(p, t->tx->hash, STATUS_INVALID, NULL);
        pool__free(t);
        t = next;
    }
}

/* The lowest priority goes, the oldest of equals. */
static struct pool_tx *worst_ready(struct pool *p)
{
    struct pool_tx *worst = NULL;
    LIST_EACH (n, &p->ready.txs) {
        struct pool_tx *t = CONTAINER_OF(n, struct pool_tx, node);
        if (!worst || t->priority < worst->priority)
            worst = t;
    }
    return worst;
}

static void enforce_limits(struct pool *p, uint64_t now_ms)
{
    const struct pool_config *c = &p->config;
    while (p->ready.count > c->ready_count_max || p->ready.bytes > c->ready_bytes_max)
        pool__evict(p, now_ms, worst_ready(p), POOL_LEAVE_LIMIT, NULL);
    while (p->future.count > c->future_count_max || p->future.bytes > c->future_bytes_max)
        pool__evict(p, now_ms, first_of(&p->future), POOL_LEAVE_LIMIT, NULL);
}

struct pool_result pool__examine(struct pool *p, uint64_t now_ms, struct tx *tx,
                                 struct validity *ret_validity)
{
    struct validity v = *ret_validity = p->runtime.at_best(p->runtime.arg, tx);
    if (v.kind != VALIDITY_OK) {
        if (v.kind != VALIDITY_UNKNOWN)
            pool_ban(p, now_ms, tx->hash);
        return (struct pool_result){.kind = POOL_NOT_VALID, .validity = v};
    }
    if (v.no_provides) {
        pool_ban(p, now_ms, tx->hash);
        return (struct pool_result){.kind = POOL_NO_TAGS};
    }
    return (struct pool_result){.kind = v.no_propagate ? POOL_UNACTIONABLE : POOL_OK};
}

struct pool_result pool__enter(struct pool *p, uint64_t now_ms, uint64_t best, struct tx *tx,
                               const struct validity *v)
{
    struct pool_result r = pool__import(p, best, tx, v);
    if (r.kind != POOL_OK)
        return r;
    enforce_limits(p, now_ms);
    if (!pool_find(p, tx->hash))
        return (struct pool_result){.kind = POOL_IMMEDIATELY_DROPPED};
    return r;
}

struct pool_result pool_submit(struct pool *p, uint64_t now_ms, uint64_t best, struct tx *tx,
                               struct watch *watch)
{
    /* A refused one must not end an older watch of the same hash, nor be told anything itself. */
    if (watch)
        listener_watch(p->listener, watch, tx->hash);
    struct pool_result r = p->policy->submit(p, now_ms, best, tx);
    if (r.kind != POOL_OK && watch)
        listener_unwatch(p->listener, watch);
    return r;
}

void pool_resubmit(struct pool *p, uint64_t now_ms, uint64_t best, struct tx *tx)
{
    p->policy->resubmit(p, now_ms, best, tx);
}

/* What a block's transaction with this tag does to the pool: the ready provider and every future
 * that provides it leave. *ret_rival: a ready transaction of another hash, to be verified again. */
static bool prune_tag(struct pool *p, uint64_t now_ms, const struct tx *tx,
                      struct pool_tx **ret_rival)
{
    struct tag tag = pool__tag(tx->signer, tx->nonce);
    bool known = false;
    struct pool_tx *t = map_get(&p->provided, tag.key);
    *ret_rival = NULL;
    if (t) {
        pool__unlink(p, t);
        known = memcmp(t->tx->hash, tx->hash, 32) == 0;
        if (known)
            pool__free(t);
        else
            *ret_rival = t;
    }
    struct waiters *w;
    while (tx->nonce &&
           (w = map_get(&p->waiting, pool__tag(tx->signer, (uint64_t)tx->nonce - 1).key))) {
        struct pool_tx *f = CONTAINER_OF(list_first(&w->txs), struct pool_tx, chain);
        bool same = memcmp(f->tx->hash, tx->hash, 32) == 0;
        pool__unlink(p, f);
        if (!same)
            p->policy->tell(p, f->tx->hash, STATUS_DROPPED, NULL);
        known = known || same;
        pool__free(f);
    }
    map_put(&p->pruned[p->pruned_at], tag.key, p);
    if (known)
        pool_ban(p, now_ms, tx->hash);
    return known;
}

/* A rival of an included transaction: it comes back when it is still valid. */
static void verify_rival(struct pool *p, uint64_t now_ms, uint64_t best, struct pool_tx *t,
                         const struct block *b, bool false_in_block)
{
    struct validity v = p->runtime.at_best(p->runtime.arg, t->tx);
    if (v.kind == VALIDITY_OK) {
        pool__import(p, best, t->tx, &v);
    } else if (false_in_block) {
        p->policy->included(p, t->tx->hash, b, true);
    } else {
        pool_ban(p, now_ms, t->tx->hash);
        p->policy->tell(p, t->tx->hash, STATUS_INVALID, NULL);
    }
    pool__free(t);
}

void pool_retracted(struct pool *p, const struct block *b)
{
    p->policy->retracted(p, b);
}

void pool_maintain(struct pool *p, uint64_t now_ms, uint64_t best)
{
    p->policy->maintain(p, now_ms, best);
}

void pool_finalized(struct pool *p, const struct block *b)
{
    p->policy->finalized(p, b);
}

void pool_finality_reached(struct pool *p, uint64_t number)
{
    p->policy->finality_reached(p, number);
}

void pool_prune(struct pool *p, uint64_t now_ms, uint64_t best, const struct block *b,
                bool false_in_block)
{
    struct tx *const *txs = b->txs;
    size_t count = b->tx_count;
    struct pool_tx **rivals = xmalloc((count + 1) * sizeof(struct pool_tx *));
    size_t rival_count = 0;
    p->pruned_at ^= 1;
    map_clear(&p->pruned[p->pruned_at]);
    for (size_t i = 0; i < count; i++) {
        if (txs[i]->signer_kind != TX_SIGNED)
            continue;
        struct pool_tx *rival;
        prune_tag(p, now_ms, txs[i], &rival);
        if (rival)
            rivals[rival_count++] = rival;
    }
    for (size_t i = 0; i < count; i++)
        if (txs[i]->signer_kind == TX_SIGNED)
            pool__promote(p, pool__tag(txs[i]->signer, txs[i]->nonce), NULL);
    for (size_t i = 0; i < count; i++)
        p->policy->included(p, txs[i]->hash, b, false);
    for (size_t i = 0; i < rival_count; i++)
        verify_rival(p, now_ms, best, rivals[i], b, false_in_block);
    free(rivals);
}

/* Hashes first, because removing one removes its dependants too. */
static uint8_t (*ready_hashes(const struct pool *p))[32]
{
    uint8_t(*hashes)[32] = xmalloc((p->ready.count + 1) * sizeof *hashes);
    size_t n = 0;
    LIST_EACH (node, &p->ready.txs)
        memcpy(hashes[n++], CONTAINER_OF(node, struct pool_tx, node)->tx->hash, 32);
    return hashes;
}

static void collect_stale(const struct pool_queue *q, uint64_t best, struct buf *hashes,
                          uint64_t *earliest)
{
    LIST_EACH (n, &q->txs) {
        const struct pool_tx *t = CONTAINER_OF(n, struct pool_tx, node);
        if (t->valid_till <= best)
            buf_put(hashes, t->tx->hash, 32);
        else if (t->valid_till < *earliest)
            *earliest = t->valid_till;
    }
}

void pool_clear_stale(struct pool *p, uint64_t now_ms, uint64_t best)
{
    pool__bans_expire(p, now_ms);
    if (p->earliest_till > best)
        return;
    struct buf hashes = {0};
    uint64_t earliest = UINT64_MAX;
    collect_stale(&p->ready, best, &hashes, &earliest);
    collect_stale(&p->future, best, &hashes, &earliest);
    p->earliest_till = earliest;
    for (size_t i = 0; i < hashes.len; i += 32) {
        struct pool_tx *t = map_get(&p->by_hash, hashes.data + i);
        if (t)
            pool__evict(p, now_ms, t, POOL_LEAVE_INVALID, NULL);
    }
    buf_done(&hashes);
}

static bool revalidate(struct pool *p, uint64_t now_ms, struct pool_tx *t)
{
    struct validity v = p->runtime.at_best(p->runtime.arg, t->tx);
    if (v.kind != VALIDITY_OK) {
        pool__evict(p, now_ms, t, POOL_LEAVE_INVALID, NULL);
        return false;
    }
    t->requires = v.requires;
    if (!pool__satisfied(p, t))
        pool__demote(p, t, false);
    return t->ready;
}

void pool_revalidate_signer(struct pool *p, uint64_t now_ms, const uint8_t signer[32],
                            uint32_t nonce, size_t max)
{
    for (size_t i = 0; i < max; i++) {
        struct pool_tx *t = map_get(&p->provided, pool__tag(signer, (uint64_t)nonce + i).key);
        if (!t || !revalidate(p, now_ms, t))
            return;
    }
}

void pool_revalidate_all(struct pool *p, uint64_t now_ms)
{
    size_t count = p->ready.count;
    uint8_t(*hashes)[32] = ready_hashes(p);
    for (size_t i = 0; i < count; i++) {
        struct pool_tx *t = map_get(&p->by_hash, hashes[i]);
        if (t && t->ready)
            revalidate(p, now_ms, t);
    }
    free(hashes);
}

void pool_remove_invalid(struct pool *p, uint64_t now_ms, const uint8_t hash[32],
                         struct buf *ret_removed)
{
    p->policy->remove_invalid(p, now_ms, hash, ret_removed);
}

void pool_report_invalid(struct pool *p, uint64_t now_ms, const uint8_t hash[32],
                         const struct validity *why)
{
    p->policy->report_invalid(p, now_ms, hash, why);
}

static void drop_one(struct pool *p, struct pool_tx *t, bool silent)
{
    struct pool_tx *next = t->ready ? pool__successor(p, t) : NULL;
    pool__unlink(p, t);
    if (!silent)
        p->policy->tell(p, t->tx->hash, STATUS_DROPPED, NULL);
    pool__free(t);
    if (next)
        pool__demote(p, next, silent);
}

static struct pool_tx *last_of(struct pool_queue *q)
{
    return CONTAINER_OF(q->txs.prev, struct pool_tx, node);
}

size_t pool_drop(struct pool *p, const uint8_t *hash, bool silent)
{
    size_t n = 0;
    if (hash) {
        struct pool_tx *t = map_get(&p->by_hash, hash);
        if (t)
            drop_one(p, t, silent);
        n = t ? 1 : 0;
    } else {
        n = p->ready.count + p->future.count;
        while (p->ready.count)
            drop_one(p, last_of(&p->ready), silent);
        while (p->future.count)
            drop_one(p, last_of(&p->future), silent);
    }
    p->policy->drop(p, hash, silent);
    return n;
}

/* Higher priority, then the one that lapses sooner, then the older. */
static bool goes_first(const struct pool_tx *a, const struct pool_tx *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (a->valid_till != b->valid_till)
        return a->valid_till < b->valid_till;
    return a->insertion < b->insertion;
}

static void heap_push(struct pool_iter *it, const struct pool_tx *t)
{
    if (it->len == it->cap) {
        it->cap = it->cap ? it->cap * 2 : 64;
        it->heap = xrealloc(it->heap, it->cap * sizeof(struct pool_tx *));
    }
    size_t i = it->len++;
    for (; i && goes_first(t, it->heap[(i - 1) / 2]); i = (i - 1) / 2)
        it->heap[i] = it->heap[(i - 1) / 2];
    it->heap[i] = t;
}

void pool_iter_init(struct pool_iter *it, const struct pool *p)
{
    *it = (struct pool_iter){.pool = p};
    LIST_EACH (n, &p->roots)
        heap_push(it, CONTAINER_OF(n, struct pool_tx, chain));
}

const struct pool_tx *pool_iter_next(struct pool_iter *it)
{
    if (!it->len)
        return NULL;
    const struct pool_tx *top = it->heap[0], *last = it->heap[--it->len];
    size_t i = 0;
    for (size_t kid; (kid = 2 * i + 1) < it->len; i = kid) {
        if (kid + 1 < it->len && goes_first(it->heap[kid + 1], it->heap[kid]))
            kid++;
        if (!goes_first(it->heap[kid], last))
            break;
        it->heap[i] = it->heap[kid];
    }
    it->heap[i] = last;
    return top;
}

void pool_iter_taken(struct pool_iter *it, const struct pool_tx *t)
{
    const struct pool_tx *next = pool__successor(it->pool, t);
    if (next)
        heap_push(it, next);
}

void pool_iter_done(struct pool_iter *it)
{
    free(it->heap);
}
