/* How a row ends: by a finalized block, with or without one of its extrinsics, and how the ends
 * are stored. */
#include "ends.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/hex.h"
#include "effects.h"
#include "probe.h"
#include "reconcile.h"
#include "sign.h"
#include "submit.h"

/* `hash`: the attempt of ours that `block` holds; with no block, what was last signed and never
 * included. */
static struct row_end *end(struct manager *m, struct row *row, const char *outcome,
                           const uint8_t hash[32], const struct manager_block *block)
{
    PRE(!row->end && row->state != ROW_FINISHING);
    if (row->state == ROW_SUBMITTED)
        row_went_out(row); /* the answer will be dropped */
    row->end = xcalloc(1, sizeof(*row->end));
    row->end->tx.outcome = outcome;
    memcpy(row->end->tx.hash, hash, 32);
    row->end->tx.has_block = block != NULL;
    if (block) {
        row->end->tx.block_number = (int64_t)block->number;
        memcpy(row->end->tx.block_hash, block->hash, 32);
    }
    manager__unwatch(m, row);
    line_refresh(&m->line, row);
    if (row->state != ROW_ENDING &&
        row->state != ROW_SIGNING) /* that ends when its new attempt is stored */
        line_move(&m->line, row, ROW_ENDING);
    return row->end;
}

/* Of two extrinsics at one nonce the block holds the filler that was signed against the
 * transaction. */
static bool filler_won(const struct row *row, const uint8_t hash[32])
{
    if (PLANTED(FILLER_COUNTS))
        return false;
    if (row->bytes && !memcmp(row->hash, hash, 32))
        return row->filler;
    for (size_t i = row->earlier_own; i < row->earlier_count; i++)
        if (!memcmp(row->earlier[i], hash, 32))
            return row->stop != NULL;
    return false;
}

void manager__end_ours(struct manager *m, struct row *row, const struct tx_included *x,
                       const struct manager_block *block)
{
    PRE(row_knows(row, x->hash, NULL) && block);
    const struct dispatch_result *r = &x->result;
    if (filler_won(row, x->hash)) {
        struct row_end *e = end(m, row, row->stop->outcome, x->hash, block);
        e->tx.index = x->index;
        e->tx.has_fee = r->has_fee;
        e->tx.fee = r->fee;
        memcpy(e->tx.error, row->stop->reason, sizeof(e->tx.error));
        return;
    }
    static const char *const outcomes[] = {
        [DISPATCH_NONE] = "unknown", [DISPATCH_OK] = "ok", [DISPATCH_FAILED] = "dispatch_error"};
    struct row_end *e = end(m, row, outcomes[r->outcome], x->hash, block);
    e->tx.index = x->index;
    e->tx.has_fee = r->has_fee;
    e->tx.fee = r->fee;
    if (r->outcome == DISPATCH_FAILED)
        plain_text(e->tx.error, sizeof(e->tx.error), r->error);
    e->requeue = r->outcome == DISPATCH_FAILED && (!r->inner || PLANTED(RETRY_INNER)) && row->id &&
                 !row->stop && ((row->terms && row->terms->retries) || PLANTED(RETRY_ENDLESS));
    if (r->outcome != DISPATCH_NONE)
        return;
    snprintf(e->tx.error, sizeof(e->tx.error),
             "it is in block %llu, whose events no endpoint has; it may have taken effect",
             (unsigned long long)block->number);
    manager__alert(m, "nonce %llu is in block %llu but its dispatch outcome could not be read",
                   (unsigned long long)row->nonce, (unsigned long long)block->number);
}

bool manager__try_drop_gap(struct manager *m, struct row *row)
{
    if (!manager__bare(row))
        return false;
    line_remove(&m->line, row);
    return true;
}

/* Why the transaction was to be stopped, if it was, and how its nonce was lost. */
__attribute__((format(printf, 2, 3))) static void why_lost(struct row *row, const char *fmt, ...)
{
    char text[2 * sizeof(row->end->tx.error)];
    size_t at = 0;
    if (row->stop)
        at = (size_t)snprintf(text, sizeof(text), "%s; ", row->stop->reason);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text + at, sizeof(text) - at, fmt, ap);
    va_end(ap);
    plain_text(row->end->tx.error, sizeof(row->end->tx.error), text);
}

void manager__end_usurped(struct manager *m, struct row *row, const struct tx_included *x,
                          const struct manager_block *block)
{
    PRE(!row->end && block);
    unsigned long long nonce = row->nonce, number = block->number;
    const char *whose = row->presigned ? "not by what was signed for it elsewhere"
                                       : "which this relay did not sign";
    manager__alert(m, "nonce %llu was used in block %llu by %s, %s", nonce, number,
                   hex_log(x->hash, 32), whose);
    if (manager__try_drop_gap(m, row))
        return;
    /* A row that was to be stopped can no longer take effect, as requested. */
    struct row_end *e = end(m, row, row->stop ? row->stop->outcome : "usurped", row->hash, NULL);
    e->tx.used_block = (int64_t)block->number;
    e->requeue = m->account.requeue_usurped && row->id && !row->presigned &&
                 (!row->stop || PLANTED(REQUEUE_STOPPED));
    why_lost(row, "nonce %llu was used in block %llu by %s, %s", nonce, number,
             hex_log(x->hash, 32), whose);
}

/* None of its bytes can still be included, and its nonce is unused. */
void manager__end_unused(struct manager *m, struct row *row, const char *outcome, const char *why)
{
    PRE(row->state != ROW_SUBMITTED && row->state != ROW_SIGNING);
    struct row_end *e = end(m, row, outcome, row->hash, NULL);
    e->given_back = true;
    plain_text(e->tx.error, sizeof(e->tx.error), why);
}

void manager__end_overtaken(struct row *row, const struct manager_block *block)
{
    PRE(row->end && block);
    if (!row->end->given_back || PLANTED(END_NOT_OVERTAKEN))
        return;
    row->end->given_back = false;
    row->end->tx.used_block = (int64_t)block->number;
}

void manager__end_unseen(struct manager *m, struct row *row, const struct manager_block *block)
{
    PRE(row->bytes && row->refollowed);
    unsigned long long nonce = row->nonce, number = block->number;
    manager__alert(m, "nonce %llu is used as of block %llu, by an extrinsic that no block showed",
                   nonce, number);
    bool unread = manager__may_be_unread(m, row);
    struct row_end *e = end(m, row, unread ? "unknown" : "usurped", row->hash, NULL);
    e->tx.used_block = (int64_t)block->number;
    if (unread) {
        snprintf(e->tx.error, sizeof(e->tx.error),
                 "nonce %llu is used as of block %llu, and no endpoint has block %llu, which may "
                 "hold it; it may have taken effect",
                 nonce, number, (unsigned long long)m->final.unread_to);
        return;
    }
    snprintf(e->tx.error, sizeof(e->tx.error),
             "nonce %llu is used as of block %llu, by an extrinsic that no block showed", nonce,
             number);
}

#ifdef TXRELAY_PLANT
void manager__requeue_early(struct manager *m, struct row *row)
{
    if (row->id && !row->end)
        end(m, row, "usurped", row->hash, NULL)->requeue = true;
}

void manager__trust_watch(struct manager *m, struct row *row, const uint8_t *block_hash)
{
    struct manager_block block = {.number = m->chain.finalized};
    memcpy(block.hash, block_hash, 32);
    end(m, row, "ok", row->hash, &block);
}
#endif

/* ---- storing ends ---- */

/* That a nonce was lost is certain only when all that is final was seen: a node that catches up
 * may show the account's former life, in which another program used it, then the end of that life,
 * after which the same bytes are good again, and then a block that holds them. */
static bool is_lost(const struct manager *m, const struct row *row)
{
    return m->final.processed >= m->chain.finalized &&
           (m->suspension.why != MANAGER_SUSPENSION_REAPED || manager__dead(m, row));
}

/* While commits may be lost, only what a block shows is certain: other bytes of the transaction may
 * be out there at another nonce. In the outbox these find it. */
static bool is_doubtful(const struct manager *m, const struct row *row)
{
    return m->reconcile.on && !row->end->tx.has_block && !row->end->requeue &&
           !manager__displaced(m, row);
}

/* A refusal is stored before the end of its row, or it would be missing in the history. */
static struct row *ending(const struct manager *m, uint64_t from, bool requeue)
{
    struct row *row = line_first(&m->line, ROW_ENDING, from);
    while (row && (row->refused || row->end->requeue != requeue || is_doubtful(m, row) ||
                   ((requeue || !row->end->tx.has_block) && !is_lost(m, row))))
        row = line_first(&m->line, ROW_ENDING, row->nonce + 1);
    return row;
}

/* Also what is not certain in this moment, because a block was announced that is not read. */
bool manager__requeuing(const struct manager *m)
{
    const struct row *row = line_first(&m->line, ROW_ENDING, 0);
    bool reaped = m->suspension.why == MANAGER_SUSPENSION_REAPED;
    while (row && (!row->end->requeue || (reaped && !manager__dead(m, row))))
        row = line_first(&m->line, ROW_ENDING, row->nonce + 1);
    return row || m->writes.out[MANAGER_FX_STORE_REQUEUE];
}

static void ends_pump(struct manager *m, bool requeue)
{
    PRE(m->phase >= MANAGER_CHAIN_WAIT);
    enum manager_effect_type write = requeue ? MANAGER_FX_STORE_REQUEUE : MANAGER_FX_STORE_FINISH;
    if (m->writes.out[write])
        return;
    struct row *row = ending(m, 0, requeue);
    if (!row)
        return;
    size_t max = line_count(&m->line, ROW_ENDING) < FINISH_BATCH_MAX
                     ? line_count(&m->line, ROW_ENDING)
                     : FINISH_BATCH_MAX;
    struct manager_effect *fx = manager__write(m, write);
    fx->ends.rows = manager__arena_add(m, xcalloc(max, sizeof(*fx->ends.rows)));
    for (; row && fx->ends.count < max; row = ending(m, row->nonce + 1, requeue)) {
        struct tx_end *x = &fx->ends.rows[fx->ends.count++];
        *x = row->end->tx;
        x->nonce = row->nonce;
        x->id = row->id;
        manager__batch_put(&m->writes.batch[write], row->nonce);
        line_move(&m->line, row, ROW_FINISHING);
    }
}

void manager__finish_pump(struct manager *m)
{
    if (m->phase < MANAGER_CHAIN_WAIT || !line_count(&m->line, ROW_ENDING))
        return;
    ends_pump(m, false);
    ends_pump(m, true);
}

void manager__ends_stored(struct manager *m, const struct manager_event *ev)
{
    const struct batch *b = &m->writes.batch[ev->stored.write];
    for (size_t i = 0; i < b->count; i++) {
        struct row *row = line_at(&m->line, b->nonces[i]);
        INVARIANT(row && row->state == ROW_FINISHING && row->end);
        if (row->end->given_back) {
            manager__probe_soon(m);
            if (row->nonce < m->nonces.given_back)
                m->nonces.given_back = row->nonce;
        }
        line_remove(&m->line, row);
    }
}

/* Holes with nothing signed behind them need not be closed when the next nonce goes back below
 * them. A relay without the key could not: they would wait for presigned rows, and those for the
 * rewind (seed 400004515). */
void manager__drop_holes(struct manager *m)
{
    struct row *row;
    for (uint64_t at = 0; (row = line_first(&m->line, SET_LIVE, at)); at = row->nonce + 1)
        if (!manager__bare(row))
            return;
    while ((row = line_first(&m->line, SET_LIVE, 0)))
        manager__try_drop_gap(m, row);
}

/* ---- a former life ---- */

static bool comes_back(const struct manager *m, const struct row *row)
{
    return m->account.requeue_usurped && row->id && !row->presigned && !row->stop;
}

/* A row of the account's former life whose bytes are all dead. */
static void end_former(struct manager *m, struct row *row)
{
    PRE(row->state != ROW_SUBMITTED && row->state != ROW_SIGNING);
    struct row_end *e = end(m, row, row->stop ? row->stop->outcome : "failed", row->hash, NULL);
    e->requeue = comes_back(m, row);
    why_lost(row, "nonce %llu belongs to a former life of the account, which was reaped or rewound",
             (unsigned long long)row->nonce);
}

void manager__end_life(struct manager *m)
{
    PRE(m->life.ordered);
    struct row *row;
    for (uint64_t at = 0; (row = line_first(&m->line, SET_LIVE, at));) {
        at = row->nonce + 1;
        if (row->state == ROW_SIGNING || row->state == ROW_SUBMITTED ||
            manager__try_drop_gap(m, row))
            continue;
        if (row->was_out && row->out_death == INT64_MAX)
            manager__alert_once(
                m, ALERT_GUARD,
                "nonce %llu of the account's former life was signed without an era: its bytes "
                "stay valid, so the account cannot go on",
                (unsigned long long)row->nonce);
        if (manager__dead(m, row))
            end_former(m, row);
    }
}

/* The lost commits may have sent it back to the outbox, and then sent it again in the new life. It
 * goes the same way, and what they have sent is adopted by its call. */
void manager__requeue_resent(struct manager *m)
{
    PRE(m->reconcile.on && m->reconcile.adopt_due);
    struct row *row;
    for (uint64_t at = 0; (row = line_first(&m->line, SET_LIVE, at)); at = row->nonce + 1) {
        bool here = row->state != ROW_SIGNING && row->state != ROW_SUBMITTED;
        if (here && comes_back(m, row) && manager__dead(m, row) && manager__resent(m, row))
            end_former(m, row);
    }
}
