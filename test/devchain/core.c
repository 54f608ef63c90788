/* See core.h. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { SKIPPED_MAX = 8, JUMP_MAX = 20, REVALIDATE_PER_SIGNER = 64 };

static struct validity validate(void *arg, struct tx *tx)
{
    struct core *c = arg;
    struct validity v = runtime_validate(&c->rt, tx);
    if (c->cb.verdict)
        c->cb.verdict(c->cb.arg, tx, &v);
    return v;
}

/* Near enough to the state of the last final block: a nonce that only later blocks have used is not
 * stale there. */
static struct validity validate_at_finalized(void *arg, struct tx *tx)
{
    struct core *c = arg;
    struct validity v = validate(c, tx);
    if (v.kind == VALIDITY_INVALID && v.code == INVALID_STALE &&
        tx->nonce >= chain_account_at(&c->chain, c->chain.finalized, tx->signer).nonce)
        v.kind = VALIDITY_OK;
    return v;
}

static void on_status(void *arg, struct watch *w, enum pool_status status, const uint8_t *hash)
{
    struct core *c = arg;
    c->cb.on_status(c->cb.arg, w, status, hash);
}

void core_init(struct core *c, const struct core_config *config, const struct core_callbacks *cb)
{
    *c = (struct core){.config = *config, .cb = *cb, .rt = config->runtime, .salt = config->seed};
    c->rt.chain = &c->chain;
    c->rt.fails = cb->fails;
    c->rt.fails_arg = cb->arg;
    chain_init(&c->chain, config->keep_bytes_max);
    listener_init(&c->listener, config->finality_blocks_max, on_status, c);
    struct pool_runtime runtime = {validate, validate_at_finalized, c};
    pool_init(&c->pool, &config->pool, &c->listener, &runtime);
}

void core_done(struct core *c)
{
    pool_done(&c->pool);
    listener_done(&c->listener);
    chain_done(&c->chain);
    buf_done(&c->changes);
}

static void apply_change(struct core *c, const struct core_change *ch)
{
    struct account *a = state_account(&c->chain.state, ch->id);
    struct account_rec rec = a->rec;
    if (ch->set_nonce)
        rec.nonce = ch->nonce;
    if (ch->set_free) {
        rec.free = ch->free;
        rec.providers = ch->free >= c->rt.existential_deposit;
        if (!rec.providers)
            rec = (struct account_rec){0};
    }
    state_write(&c->chain.state, a, rec);
}

void core_genesis(struct core *c, const struct core_change *accounts, size_t count,
                  uint64_t wall_ms)
{
    struct buf none = {0};
    for (size_t i = 0; i < count; i++)
        apply_change(c, &accounts[i]);
    const struct block *b =
        chain_seal(&c->chain, NULL, 0, &none, 0, wall_ms, c->rt.version, c->salt);
    memcpy(c->rt.genesis, b->hash, 32);
}

void core_change_account(struct core *c, const struct core_change *change)
{
    buf_put(&c->changes, change, sizeof *change);
}

void core_upgrade(struct core *c, struct chain_version version)
{
    c->upgrade_pending = true;
    c->upgrade = version;
}

enum core_decode core_submit(struct core *c, uint64_t now_ms, const uint8_t *bytes, size_t len,
                             struct watch *watch, struct tx **ret_tx,
                             struct pool_result *ret_result)
{
    if (tx_decode(bytes, len, ret_tx) == TX_DECODE_BAD_FRAME)
        return CORE_DECODE_BAD;
    *ret_result = pool_submit(&c->pool, now_ms, c->chain.best->number, *ret_tx, watch);
    return CORE_DECODE_OK;
}

/* Scripted changes go first, so that they are part of the block's state. */
static void open_block(struct core *c, struct exec *x, uint64_t wall_ms)
{
    uint64_t after = c->chain.best->timestamp_ms + 1;
    exec_init(x, &c->rt, wall_ms > after ? wall_ms : after);
    for (size_t i = 0; i + sizeof(struct core_change) <= c->changes.len;
         i += sizeof(struct core_change)) {
        struct core_change ch;
        memcpy(&ch, c->changes.data + i, sizeof ch);
        apply_change(c, &ch);
    }
    buf_clear(&c->changes);
    if (c->upgrade_pending)
        exec__event(x, PALLET_SYSTEM, 2, NULL); /* CodeUpdated */
}

static struct block *close_block(struct core *c, struct exec *x)
{
    if (c->upgrade_pending)
        c->rt.version = c->upgrade;
    c->upgrade_pending = false;
    struct block *b = chain_seal(&c->chain, x->txs, x->tx_count, &x->events, x->event_count,
                                 x->timestamp_ms, c->rt.version, ++c->salt);
    x->tx_count = 0; /* the block has the references now */
    exec_done(x);
    return b;
}

static bool may_take(const struct core *c, const struct tx *tx)
{
    if (tx->tip < c->min_tip)
        return false;
    return !c->cb.may_include || c->cb.may_include(c->cb.arg, tx);
}

/* A transaction that the block author could not apply. */
struct condemned {
    uint8_t hash[32];
    struct validity why;
};

static void condemn(struct buf *out, const struct tx *tx, struct validity why)
{
    struct condemned d = {.why = why};
    memcpy(d.hash, tx->hash, 32);
    buf_put(out, &d, sizeof d);
}

/* A full block skips up to eight transactions; another validity error removes the transaction. */
static void take_from_pool(struct core *c, struct exec *x, struct buf *ret_invalid)
{
    struct pool_iter it;
    unsigned skipped = 0;
    pool_iter_init(&it, &c->pool);
    for (const struct pool_tx *t; skipped <= SKIPPED_MAX && (t = pool_iter_next(&it));) {
        struct dispatch_error e;
        if (!may_take(c, t->tx))
            continue;
        if (x->tx_count > c->config.block_extrinsics_max)
            break;
        struct validity v = exec_apply(x, t->tx, &e);
        if (v.kind == VALIDITY_OK)
            pool_iter_taken(&it, t);
        else if (v.kind == VALIDITY_INVALID && v.code == INVALID_EXHAUSTS_RESOURCES)
            skipped++;
        else
            condemn(ret_invalid, t->tx, v);
    }
    pool_iter_done(&it);
}

static void report(struct core *c, uint64_t now_ms, struct buf *invalid)
{
    for (size_t i = 0; i < invalid->len; i += sizeof(struct condemned)) {
        struct condemned d;
        memcpy(&d, invalid->data + i, sizeof d);
        pool_report_invalid(&c->pool, now_ms, d.hash, &d.why);
    }
    buf_done(invalid);
}

static struct block *build(struct core *c, uint64_t now_ms, uint64_t wall_ms, bool empty)
{
    struct exec x;
    struct buf invalid = {0};
    open_block(c, &x, wall_ms);
    if (!empty)
        take_from_pool(c, &x, &invalid);
    struct block *b = close_block(c, &x);
    report(c, now_ms, &invalid);
    return b;
}

static bool in_blocks(struct block *const *blocks, size_t count, const uint8_t hash[32])
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < blocks[i]->tx_count; k++)
            if (memcmp(blocks[i]->txs[k]->hash, hash, 32) == 0)
                return true;
    return false;
}

/* What the new branch does not hold comes back to the pool, or (as scripted) is lost for good. */
static void return_lost(struct core *c, uint64_t now_ms, const struct block *lost,
                        struct block *const *fresh, size_t fresh_count, bool no_resubmit)
{
    for (size_t k = 0; k < lost->tx_count; k++) {
        struct tx *tx = lost->txs[k];
        if (tx->signer_kind != TX_SIGNED || in_blocks(fresh, fresh_count, tx->hash))
            continue;
        if (no_resubmit)
            pool_drop(&c->pool, tx->hash, true);
        else
            pool_resubmit(&c->pool, now_ms, c->chain.best->number, tx);
    }
}

static void revalidate_touched(struct core *c, uint64_t now_ms, const struct block *b)
{
    for (size_t i = 0; i < b->diff.count; i++) {
        const struct account *a = b->diff.changes[i].account;
        if (!a->rec
                 .providers) { /* reaped: its ready ones are at nonces that tell nothing any more */
            pool_revalidate_all(&c->pool, now_ms);
            return;
        }
        pool_revalidate_signer(&c->pool, now_ms, a->id, a->rec.nonce, REVALIDATE_PER_SIGNER);
    }
}

/* The best chain changed: lost blocks (newest first) gave way to fresh ones (oldest first). */
static void new_best(struct core *c, uint64_t now_ms, struct block *const *lost, size_t lost_count,
                     struct block *const *fresh, size_t fresh_count, struct chain_version before,
                     bool no_resubmit)
{
    uint64_t best = c->chain.best->number;
    for (size_t i = 0; i < fresh_count; i++)
        c->cb.on_block(c->cb.arg, fresh[i], i + 1 == fresh_count);
    bool upgraded = before.spec != c->rt.version.spec || before.tx != c->rt.version.tx;
    if (upgraded)
        c->cb.on_runtime(c->cb.arg);
    if (fresh_count > JUMP_MAX)
        return;
    for (size_t i = lost_count; i--;)
        pool_retracted(&c->pool, lost[i]);
    for (size_t i = 0; i < fresh_count; i++)
        pool_prune(&c->pool, now_ms, best, fresh[i], c->false_in_block);
    pool_clear_stale(&c->pool, now_ms, best);
    for (size_t i = lost_count; i--;)
        return_lost(c, now_ms, lost[i], fresh, fresh_count, no_resubmit);
    pool_maintain(&c->pool, now_ms, best);
    if (upgraded || lost_count)
        pool_revalidate_all(&c->pool, now_ms);
    else
        for (size_t i = 0; i < fresh_count; i++)
            revalidate_touched(c, now_ms, fresh[i]);
}

const struct block *core_author(struct core *c, uint64_t now_ms, uint64_t wall_ms, bool empty)
{
    struct chain_version before = c->rt.version;
    struct block *b = build(c, now_ms, wall_ms, empty);
    new_best(c, now_ms, NULL, 0, &b, 1, before, false);
    return b;
}

void core_author_burst(struct core *c, uint64_t now_ms, uint64_t wall_ms, size_t count)
{
    struct chain_version before = c->rt.version;
    struct block **fresh = xmalloc((count + 1) * sizeof(struct block *));
    for (size_t i = 0; i < count; i++)
        fresh[i] = build(c, now_ms, wall_ms,
                         i > 0); /* the pool does not know yet what the first one took */
    new_best(c, now_ms, NULL, 0, fresh, count, before, false);
    free(fresh);
}

/* The transactions of the lost blocks, in order; those that the new branch refuses are left out. */
static void take_lost(struct exec *x, struct block *const *lost, size_t lost_count)
{
    struct dispatch_error e;
    for (size_t i = lost_count; i--;)
        for (size_t k = 0; k < lost[i]->tx_count; k++)
            if (lost[i]->txs[k]->signer_kind == TX_SIGNED)
                exec_apply(x, lost[i]->txs[k], &e);
}

bool core_reorg(struct core *c, uint64_t now_ms, uint64_t wall_ms, const struct core_reorg *r)
{
    if (r->depth > c->chain.best->number - c->chain.finalized->number)
        return false;
    struct chain_version before = c->rt.version;
    size_t length = (size_t)(r->length ? r->length : r->depth + 1);
    struct block **lost = xmalloc(((size_t)r->depth + 1) * sizeof(struct block *));
    struct block **fresh = xmalloc(length * sizeof(struct block *));
    struct buf invalid = {0};
    for (size_t i = 0; i < r->depth; i++)
        lost[i] = chain_retract(&c->chain);
    c->rt.version = c->chain.best->version;
    for (size_t i = 0; i < length; i++) {
        struct exec x;
        open_block(c, &x, wall_ms);
        if (i == 0 && r->keep_txs)
            take_lost(&x, lost, (size_t)r->depth);
        if (i == 0 && r->from_pool)
            take_from_pool(c, &x, &invalid);
        fresh[i] = close_block(c, &x);
    }
    report(c, now_ms, &invalid);
    new_best(c, now_ms, lost, (size_t)r->depth, fresh, length, before, r->no_resubmit);
    free(lost);
    free(fresh);
    return true;
}

void core_finalize(struct core *c, uint64_t number)
{
    struct chain *ch = &c->chain;
    if (number > ch->best->number)
        number = ch->best->number;
    uint64_t from = ch->finalized->number;
    if (number <= from)
        return;
    for (uint64_t n = from + 1; n <= number; n++)
        pool_finalized(&c->pool, chain_canonical(ch, n)); /* before the chain may drop a body */
    chain_finalize(ch, number);
    c->cb.on_finalized(c->cb.arg, ch->finalized);
    pool_finality_reached(&c->pool, number);
}

uint32_t core_next_index(const struct core *c, const uint8_t id[32])
{
    const struct account *a = state_find(&c->chain.state, id);
    uint32_t nonce = a ? a->rec.nonce : 0;
    while (pool_ready_at(&c->pool, id, nonce))
        nonce++;
    return nonce;
}
