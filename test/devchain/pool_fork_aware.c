/* The fork-aware pool: a mempool beside the queues, which are the view at the best block. A
 * transaction stays in the mempool until it is final; what the view says of it reaches its watchers
 * filtered, because another view might have said otherwise. Views of side forks are not kept: the
 * best one is changed by retracting and enacting.
 *
 *   submit -> mempool + view --(block)--> included --(finality)--> finalized, gone
 *                 ^    |                     | reorg
 *                 |    v not valid here      v
 *                 +-- out of the view <------+   each new best block tries it in the view again;
 *                        |                       `invalid` when a revalidation at finality agrees,
 *                        v                       `dropped` when every view that had it is final */
#include <stdlib.h>

#include "base/check.h"
#include "pool_internal.h"
#include "pool_mempool.h"

enum { REVALIDATE_AFTER_BLOCKS = 10, REVALIDATE_BATCH = 1000, COUNT_FACTOR = 4 };

static void init(struct pool *p)
{
    p->mempool = mempool_new();
}

static void done(struct pool *p)
{
    mempool_free(p->mempool);
    p->mempool = NULL;
}

/* A last word, and out of the mempool. The queues must have let go of it. */
static void give_up(struct pool *p, struct mem_tx *e, enum pool_status status, const uint8_t *hash)
{
    struct tx *tx = tx_ref(e->tx);
    mempool_remove(p->mempool, e);
    listener_tell(p->listener, tx->hash, status, hash);
    tx_unref(tx);
}

static void tell(struct pool *p, const uint8_t tx[32], enum pool_status status, const uint8_t *hash)
{
    struct mem_tx *e = mempool_find(p->mempool, tx);
    if (!e || status == STATUS_INVALID || status == STATUS_DROPPED)
        return;
    if (status == STATUS_USURPED) {
        give_up(p, e, status, hash);
        return;
    }
    bool *told = status == STATUS_READY ? &e->told_ready : &e->told_future;
    bool again = e->told_ready || *told;
    if (e->limited)
        e->in_view_since = p->mempool->best;
    e->limited = false;
    *told = true;
    if (!again)
        listener_tell(p->listener, tx, status, NULL);
}

/* `dropped` when no view has it any more: at once when it was in this view only, else with their
 * finality. */
static void limited(struct pool *p, const uint8_t tx[32])
{
    struct mem_tx *e = mempool_find(p->mempool, tx);
    if (!e)
        return;
    e->limited = true;
    e->limited_at = p->mempool->best;
    if (e->in_view_since == e->limited_at)
        give_up(p, e, STATUS_DROPPED, NULL);
}

static void push_out(struct pool *p, uint64_t now_ms, const struct buf *victims)
{
    for (size_t i = 0; i < victims->len; i += 32) {
        struct pool_tx *t = map_get(&p->by_hash, victims->data + i);
        if (t)
            pool__evict(p, now_ms, t, POOL_LEAVE_INVALID,
                        NULL); /* dependants stay in the mempool */
        struct mem_tx *e = mempool_find(p->mempool, victims->data + i);
        if (e)
            give_up(p, e, STATUS_DROPPED, NULL);
    }
}

static struct pool_result enter(struct pool *p, uint64_t now_ms, uint64_t best, struct tx *tx,
                                const struct validity *v, const struct buf *victims)
{
    mempool_add(p->mempool, tx)->priority = v->priority;
    struct pool_result r = pool__enter(p, now_ms, best, tx, v);
    struct mem_tx *e = mempool_find(p->mempool, tx->hash);
    if (r.kind == POOL_OK)
        push_out(p, now_ms, victims);
    else if (e)
        mempool_remove(p->mempool, e);
    return r;
}

static struct pool_result submit(struct pool *p, uint64_t now_ms, uint64_t best, struct tx *tx)
{
    const struct pool_config *c = &p->config;
    p->mempool->best = best;
    if (mempool_find(p->mempool, tx->hash) || pool_find(p, tx->hash))
        return (struct pool_result){.kind = POOL_ALREADY_IMPORTED};
    if (pool_banned(p, tx->hash))
        return (struct pool_result){.kind = POOL_BANNED};
    struct validity v;
    struct pool_result r = pool__examine(p, now_ms, tx, &v);
    if (r.kind != POOL_OK)
        return r;
    struct buf victims = {0};
    if (mempool_room(p->mempool, COUNT_FACTOR * (c->ready_count_max + c->future_count_max),
                     c->ready_bytes_max + c->future_bytes_max, v.priority, tx->len, &victims))
        r = enter(p, now_ms, best, tx, &v, &victims);
    else
        r.kind = POOL_IMMEDIATELY_DROPPED;
    buf_done(&victims);
    return r;
}

static void into_view(struct pool *p, uint64_t now_ms, uint64_t best, struct mem_tx *e)
{
    struct validity v = p->runtime.at_best(p->runtime.arg, e->tx);
    e->priority = v.kind == VALIDITY_OK ? v.priority : e->priority;
    if (v.kind == VALIDITY_OK)
        pool__enter(p, now_ms, best, e->tx, &v);
}

static void resubmit(struct pool *p, uint64_t now_ms, uint64_t best, struct tx *tx)
{
    p->mempool->best = best;
    struct mem_tx *e = mempool_find(p->mempool, tx->hash);
    if (!e)
        e = mempool_add(p->mempool, tx);
    if (!pool_find(p, tx->hash))
        into_view(p, now_ms, best, e);
}

static void included(struct pool *p, const uint8_t tx[32], const struct block *b, bool falsely)
{
    struct mem_tx *e = mempool_find(p->mempool, tx);
    if (e && !falsely) {
        e->included = true;
        e->block_number = b->number;
        memcpy(e->block, b->hash, 32);
    }
    listener_tell(p->listener, tx, STATUS_IN_BLOCK, b->hash);
}

/* Not told: a second inBlock is the only sign. */
static void retracted(struct pool *p, const struct block *b)
{
    for (size_t i = 0; i < b->tx_count; i++) {
        struct mem_tx *e = mempool_find(p->mempool, b->txs[i]->hash);
        if (e && memcmp(e->block, b->hash, 32) == 0)
            e->included = false;
    }
}

static void time_out(struct pool *p, struct mem_tx *e)
{
    uint8_t block[32];
    memcpy(block, e->block, 32);
    give_up(p, e, STATUS_FINALITY_TIMEOUT, block);
}

static void maintain(struct pool *p, uint64_t now_ms, uint64_t best)
{
    struct buf hashes = {0};
    p->mempool->best = best;
    mempool_hashes(p->mempool, &hashes);
    for (size_t i = 0; i < hashes.len; i += 32) {
        struct mem_tx *e = mempool_find(p->mempool, hashes.data + i);
        if (!e)
            continue;
        if (!e->included && !pool_find(p, e->tx->hash))
            into_view(p, now_ms, best, e);
        else if (e->included && best > e->block_number + p->config.finality_timeout_blocks)
            time_out(p, e);
    }
    buf_done(&hashes);
}

static void finalized(struct pool *p, const struct block *b)
{
    for (size_t i = 0; i < b->tx_count; i++) {
        struct mem_tx *e = mempool_find(p->mempool, b->txs[i]->hash);
        if (e)
            mempool_remove(p->mempool, e);
        listener_tell(p->listener, b->txs[i]->hash, STATUS_FINALIZED, b->hash);
    }
}

/* The mempool's own revalidation. What the view holds is valid there, whatever is said here. */
static void revalidate(struct pool *p, struct mem_tx *e, uint64_t number)
{
    bool valid = p->runtime.at_finalized(p->runtime.arg, e->tx).kind == VALIDITY_OK;
    if (valid || pool_find(p, e->tx->hash))
        e->validated_at = number;
    else
        give_up(p, e, STATUS_INVALID, NULL);
}

static void finality_reached(struct pool *p, uint64_t number)
{
    struct mempool *m = p->mempool;
    size_t left = REVALIDATE_BATCH;
    m->finalized = number;
    struct list *next;
    for (struct list *n = m->order.next; n != &m->order; n = next) {
        struct mem_tx *e = CONTAINER_OF(n, struct mem_tx, node);
        next = n->next;
        if (e->limited && number >= e->limited_at) {
            give_up(p, e, STATUS_DROPPED, NULL);
        } else if (left && !e->included && number - e->validated_at > REVALIDATE_AFTER_BLOCKS) {
            revalidate(p, e, number);
            left--;
        }
    }
}

/* Only the named one is told; its dependants are futures of the next view, in silence. */
static void remove_invalid(struct pool *p, uint64_t now_ms, const uint8_t hash[32],
                           struct buf *ret_removed)
{
    struct pool_tx *t = map_get(&p->by_hash, hash);
    struct mem_tx *e = mempool_find(p->mempool, hash);
    if (!t)
        return;
    if (ret_removed)
        buf_put(ret_removed, hash, 32);
    pool__evict(p, now_ms, t, POOL_LEAVE_INVALID, NULL);
    if (e)
        give_up(p, e, STATUS_INVALID, NULL);
}

/* A nonce that is not right in one view may be right in another. */
static void report_invalid(struct pool *p, uint64_t now_ms, const uint8_t hash[32],
                           const struct validity *why)
{
    bool nonce = why->kind == VALIDITY_INVALID &&
                 (why->code == INVALID_STALE || why->code == INVALID_FUTURE);
    struct pool_tx *t = map_get(&p->by_hash, hash);
    if (!nonce)
        remove_invalid(p, now_ms, hash, NULL);
    else if (t)
        pool__evict(p, now_ms, t, POOL_LEAVE_INVALID, NULL);
}

static void lose(struct pool *p, struct mem_tx *e, bool silent)
{
    if (silent)
        mempool_remove(p->mempool, e);
    else
        give_up(p, e, STATUS_DROPPED, NULL);
}

static void drop(struct pool *p, const uint8_t *hash, bool silent)
{
    struct mem_tx *e = hash ? mempool_find(p->mempool, hash) : NULL;
    if (e)
        lose(p, e, silent);
    while (!hash && !list_empty(&p->mempool->order))
        lose(p, CONTAINER_OF(list_first(&p->mempool->order), struct mem_tx, node), silent);
}

const struct pool_policy pool__fork_aware = {
    .init = init,
    .done = done,
    .submit = submit,
    .resubmit = resubmit,
    .tell = tell,
    .limited = limited,
    .included = included,
    .retracted = retracted,
    .maintain = maintain,
    .finalized = finalized,
    .finality_reached = finality_reached,
    .remove_invalid = remove_invalid,
    .report_invalid = report_invalid,
    .drop = drop,
};
