/* Statuses of watched submissions, and the ones that are stored for readers. They only save
 * time; only finalized blocks end a row. */
#include <string.h>

#include "base/alloc.h"
#include "effects.h"
#include "ends.h"
#include "probe.h"
#include "submit.h"

void manager__unwatch(struct manager *m, struct row *row)
{
    if (!row->watched)
        return;
    row->watched = false;
    struct manager_effect *fx = manager__fx(m, MANAGER_FX_UNWATCH);
    fx->unwatch.nonce = row->nonce;
    memcpy(fx->unwatch.hash, row->hash, 32);
}

static bool waits_for_answer(const struct row *row)
{
    return row->state == ROW_SUBMITTED || row->state == ROW_SIGNING;
}

static void in_pool(struct manager *m, struct row *row, enum tx_status status)
{
    PRE(!row->end);
    if (row->state == ROW_IN_BLOCK)
        return; /* a late status: a state does not go back without a retraction */
    line_status(&m->line, row, status, NULL);
    if (row->state == ROW_UNSURE)
        manager__pooled(m, row, false);
    else
        line_news(&m->line, row);
}

static void in_block(struct manager *m, struct row *row, const uint8_t *block_hash)
{
    PRE(!row->end);
    line_status(&m->line, row, TX_IN_BLOCK, block_hash);
    if (!waits_for_answer(row))
        line_move(&m->line, row, ROW_IN_BLOCK);
}

static void retracted(struct manager *m, struct row *row, const uint8_t *block_hash)
{
    if (row->state != ROW_IN_BLOCK)
        return;
    if (block_hash && row->block_hash && memcmp(block_hash, row->block_hash, 32))
        return; /* it is in another block by now */
    line_status(&m->line, row, TX_RETRACTED, block_hash);
    manager__unsure(m, row, false, true);
}

/* The node has nothing more to say about it. */
static void watch_over(struct manager *m, struct row *row, enum tx_status status,
                       const uint8_t *block_hash)
{
    PRE(!row->end);
    row->watched = row->state == ROW_SUBMITTED; /* else a late status of an earlier watch */
#ifdef TXRELAY_PLANT
    if (PLANTED(REQUEUE_EARLY) && status == TX_USURPED && !waits_for_answer(row)) {
        manager__requeue_early(m, row);
        return;
    }
    if (PLANTED(TRUST_WATCH) && status == TX_FINALIZED && block_hash && !waits_for_answer(row)) {
        manager__trust_watch(m, row, block_hash);
        return;
    }
#endif
    if (status == TX_FINALIZED) { /* may be false: only a followed block ends the row */
        in_block(m, row, block_hash);
        return;
    }
    bool timeout = status == TX_FINALITY_TIMEOUT;
    if (status == TX_DROPPED) {
        row->let_go = true;
        manager__window_shrink(m);
    }
    line_status(&m->line, row, status, timeout ? block_hash : NULL);
    if (!waits_for_answer(row))
        manager__unsure(m, row, true, timeout);
}

/* An earlier attempt's status only shows that it is alive, or that the nonce is used. */
static void earlier_heard(struct manager *m, struct row *row, enum tx_status status)
{
    PRE(!row->end && row->earlier_count);
    if ((status == TX_IN_BLOCK || status == TX_FINALIZED) && !waits_for_answer(row))
        line_move(&m->line, row, ROW_IN_BLOCK);
    else if (status <= TX_BROADCAST)
        line_news(&m->line, row);
}

void manager__watch_status(struct manager *m, const struct manager_event *ev)
{
    bool current;
    struct row *row = manager__known(m, ev->status.nonce, ev->status.hash, &current);
    if (!row)
        return;
    if (!current) {
        earlier_heard(m, row, ev->status.status);
        return;
    }
    row_went_out(row); /* whatever the submission was answered */
    switch (ev->status.status) {
    case TX_FUTURE:
    case TX_READY:
    case TX_BROADCAST:
        in_pool(m, row, ev->status.status);
        return;
    case TX_IN_BLOCK:
        in_block(m, row, ev->status.block_hash);
        return;
    case TX_RETRACTED:
        retracted(m, row, ev->status.block_hash);
        return;
    case TX_FINALIZED:
    case TX_FINALITY_TIMEOUT:
    case TX_USURPED:
    case TX_DROPPED:
    case TX_INVALID:
        watch_over(m, row, ev->status.status, ev->status.block_hash);
        return;
    }
    UNREACHABLE();
}

void manager__watch_lost(struct manager *m, const struct manager_event *ev)
{
    bool current;
    struct row *row = manager__known(m, ev->lost.nonce, ev->lost.hash, &current);
    if (!row || !current)
        return;
    row->watched = row->state == ROW_SUBMITTED;
    if (row->state == ROW_POOLED)
        manager__unsure(m, row, true, false);
}

/* ---- storing them ---- */

/* A refusal, or a try without one, leaves the state as it is; a status that is to be stored too
 * follows with the next batch. */
static void refusal(struct manager *m, struct row *row, struct tx_report *x)
{
    PRE(row->refused && row->note);
    x->state = row->tried ? "tried" : "refused";
    memcpy(x->hash, row->hash, 32);
    memcpy(x->error, row->note, NOTE_SIZE);
    row->refused = false;
    line_refresh(&m->line, row);
}

void manager__states_pump(struct manager *m)
{
    struct row *row = line_first(&m->line, SET_DIRTY, 0);
    if (m->phase < MANAGER_CHAIN_WAIT || m->writes.out[MANAGER_FX_STORE_STATES] || !row)
        return;
    size_t max = line_count(&m->line, SET_DIRTY);
    if (max > m->config.state_batch_max)
        max = m->config.state_batch_max;
    struct manager_effect *fx = manager__write(m, MANAGER_FX_STORE_STATES);
    fx->states.rows = manager__arena_add(m, xcalloc(max, sizeof(*fx->states.rows)));
    for (; row && fx->states.count < max; row = line_first(&m->line, SET_DIRTY, row->nonce + 1)) {
        struct tx_report *x = &fx->states.rows[fx->states.count++];
        x->nonce = row->nonce;
        x->id = row->id;
        x->block_number = -1;
        if (row->refused) {
            refusal(m, row, x);
            continue;
        }
        x->state = row_status_name(row->status);
        memcpy(x->hash, row->hash, 32);
        if (row->block_hash) {
            x->has_block = true;
            memcpy(x->block_hash, row->block_hash, 32);
        }
        row->unstored = false;
        line_refresh(&m->line, row);
    }
}
