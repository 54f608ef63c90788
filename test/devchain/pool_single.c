/* The single-state pool: there is nothing beside the queues, and every word of theirs goes to the
 * watchers at once. */
#include "pool_internal.h"

static void nothing(struct pool *p)
{
    (void)p;
}

static struct pool_result submit(struct pool *p, uint64_t now_ms, uint64_t best, struct tx *tx)
{
    if (pool_banned(p, tx->hash))
        return (struct pool_result){.kind = POOL_BANNED};
    if (pool_find(p, tx->hash)) {
        pool_ban(p, now_ms, tx->hash); /* also the pooled one's hash (behaviour.md, line 14) */
        return (struct pool_result){.kind = POOL_ALREADY_IMPORTED};
    }
    struct validity v;
    struct pool_result r = pool__examine(p, now_ms, tx, &v);
    return r.kind == POOL_OK ? pool__enter(p, now_ms, best, tx, &v) : r;
}

static void resubmit(struct pool *p, uint64_t now_ms, uint64_t best, struct tx *tx)
{
    if (pool_find(p, tx->hash))
        return;
    struct validity v = p->runtime.at_best(p->runtime.arg, tx);
    if (v.kind == VALIDITY_OK)
        pool__enter(p, now_ms, best, tx, &v);
}

static void tell(struct pool *p, const uint8_t tx[32], enum pool_status status, const uint8_t *hash)
{
    listener_tell(p->listener, tx, status, hash);
}

static void limited(struct pool *p, const uint8_t tx[32])
{
    listener_tell(p->listener, tx, STATUS_DROPPED, NULL);
}

static void included(struct pool *p, const uint8_t tx[32], const struct block *b, bool falsely)
{
    (void)falsely; /* the same, up to a false `finalized` */
    listener_in_block(p->listener, tx, b->hash);
}

static void retracted(struct pool *p, const struct block *b)
{
    listener_retracted(p->listener, b->hash);
}

static void maintain(struct pool *p, uint64_t now_ms, uint64_t best)
{
    (void)p;
    (void)now_ms;
    (void)best;
}

static void finalized(struct pool *p, const struct block *b)
{
    listener_finalized(p->listener, b->hash);
}

static void finality_reached(struct pool *p, uint64_t number)
{
    (void)p;
    (void)number;
}

static void remove_invalid(struct pool *p, uint64_t now_ms, const uint8_t hash[32],
                           struct buf *ret_removed)
{
    struct pool_tx *t = map_get(&p->by_hash, hash);
    if (t)
        pool__evict(p, now_ms, t, POOL_LEAVE_INVALID, ret_removed);
}

static void report_invalid(struct pool *p, uint64_t now_ms, const uint8_t hash[32],
                           const struct validity *why)
{
    (void)why;
    remove_invalid(p, now_ms, hash, NULL);
}

static void drop(struct pool *p, const uint8_t *hash, bool silent)
{
    (void)p;
    (void)hash;
    (void)silent;
}

const struct pool_policy pool__single_state = {
    .init = nothing,
    .done = nothing,
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
