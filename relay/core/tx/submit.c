/* To the node and back: submissions in nonce order, and what their answers mean. */
#include "submit.h"

#include <stdio.h>
#include <string.h>

#include "admit.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "effects.h"
#include "ends.h"
#include "probe.h"
#include "sign.h"
#include "stop.h"
#include "suspend.h"

static void submit(struct manager *m, struct row *row)
{
    PRE(row->state == ROW_UNSENT && row->bytes && !row->end);
    row->submitted_tick = m->send.no_funds_tick = m->chain_tick.count;
    m->send.no_funds_until = m->now + NO_FUNDS_RETRY_MS;
    row->watched = true;
    line_move(&m->line, row, PLANTED(ILLEGAL_STATE) ? ROW_FINISHING : ROW_SUBMITTED);
    struct manager_effect *fx = manager__fx(m, MANAGER_FX_SUBMIT);
    fx->submit.nonce = row->nonce;
    fx->submit.bytes = row->bytes;
    fx->submit.bytes_len = row->bytes_len;
    fx->submit.era_death = row->era_death;
    memcpy(fx->submit.hash, row->hash, 32);
}

static struct send_view account_view(const struct manager *m)
{
    return (struct send_view){.leading = m->phase == MANAGER_LEADING,
                              .node_up = m->chain.up,
                              .node_unverified = m->probe.node_unverified,
                              .gate_closed = m->send.gate_shut,
                              .suspended = manager__blocked(m)};
}

static void row_view(const struct manager *m, const struct row *row, struct send_view *v)
{
    const struct row *held = line_first(&m->line, SET_BARRIER, 0);
    /* One try a block, whichever nonce is the lowest, and few where blocks are milliseconds
     * apart. */
    bool submitted_tick =
        m->send.no_funds_tick == m->chain_tick.count || m->now < m->send.no_funds_until;
    v->funds_wait = m->suspension.no_funds && submitted_tick && !PLANTED(PAYMENT_HAMMERED);
    v->refusal_unstored = row->refused && !PLANTED(REFUSAL_LOST);
    v->backing_off = row->not_before_tick > m->chain_tick.count;
    v->lower_repaired = held && held->nonce < row->nonce;
    v->window_full = !manager__window_open(m, row);
    /* A pool throws it out one block before its era ends; sending it would only ban it. */
    v->era_ends = row_era_over(row, m->chain.best + 1);
}

/* Lowest nonce first, and never past a row that has to be mended or waits for its tick: a node
 * that sees a later nonce first parks it (or, as chopsticks, throws it away). */
void manager__send_pump(struct manager *m)
{
    struct row *row;
    struct send_view v = account_view(m);
    if (send_next(&v) == SEND_WAIT)
        return;
    while (manager__wire_open(m) && (row = line_first(&m->line, ROW_UNSENT, 0))) {
        if (manager__try_stop(m, row))
            continue;
        row_view(m, row, &v);
        switch (send_next(&v)) {
        case SEND_WAIT:
            return;
        case SEND_RESIGN:
            if (row->was_out && manager__unborn(m, row->nonce))
                manager__unsure(m, row, false, false); /* what it becomes is decided by a probe */
            else
                manager__resign(m, row, REASON_ERA);
            break;
        case SEND_SUBMIT:
            submit(m, row);
            break;
        }
    }
}

/* ---- answers ---- */

static void accepted(struct manager *m, struct row *row)
{
    PRE(row->state == ROW_SUBMITTED && row->was_out);
    row->resigns = 0;
    row->futures = 0;
    m->send.half_open = false;
    manager__window_accepted(m);
    manager__paid(m);
    manager__alert_over(m, ALERTS_OF_SENDING);
    manager__pooled(m, row, false);
}

static void again(struct manager *m, struct row *row, bool half_open)
{
    PRE(row->state == ROW_SUBMITTED);
    row->not_before_tick = m->chain_tick.count + 1;
    m->send.half_open = m->send.half_open || half_open;
    line_move(&m->line, row, ROW_UNSENT);
}

static void pool_full(struct manager *m, struct row *row)
{
    row->let_go = true;
    manager__window_shrink(m);
    m->send.half_open = true;
    if (!manager__window_outbid(m, row))
        again(m, row, true);
}

/* That a node refuses the bytes does not prove that no pool has them, so the transaction ends only
 * when a final block uses its nonce or when its bytes are dead: a filler races them. A filler is
 * signed again. Where nothing can be signed in their place, the same bytes are tried again. */
static void invalid(struct manager *m, struct row *row, const char *text)
{
    PRE(row->state == ROW_SUBMITTED && row->bytes);
    unsigned long long nonce = row->nonce;
    bool filler = row->id == 0 || row->filler;
    if (manager__presigned(row)) {
        manager__alert_once(m, ALERT_INVALID,
                            "nonce %llu was signed elsewhere and is refused as invalid: %s", nonce,
                            text);
        manager__presigned_retry(m, row, REASON_INVALID);
        return;
    }
    if (!filler && !m->config.keyless) {
        manager__give_up(m, row, text);
        return;
    }
    manager__alert_once(m, ALERT_INVALID,
                        "nonce %llu is refused as invalid and cannot be given up yet: %s", nonce,
                        text);
    if (!filler) {
        again(m, row, true);
        return;
    }
    if (row->resign_after <= m->chain_tick.count)
        row->resign_after = m->chain_tick.count + 1;
    manager__resign(m, row, REASON_INVALID);
}

/* What the account's policy lists is refused for now: the same bytes are submitted again at the
 * next block, one at a time until one is accepted. Deadlines, cancellations and skip_after_blocks
 * end the wait. */
static bool try_retry_later(struct manager *m, struct row *row, const struct answer *a,
                            const char *text)
{
    if (a->first != 1010 || !answer_listed(m->account.retry_refusals, text))
        return false;
    manager__alert_once(m, ALERT_BUSY,
                        "the chain refuses nonce %llu for now, and it is retried: %s",
                        (unsigned long long)row->nonce, text);
    again(m, row, true);
    return true;
}

/* A node bans what it has seen: it may be in its pool. What its pool dropped is not, and needs no
 * probe and no block until it is signed anew. */
static void banned(struct manager *m, struct row *row)
{
    row->banned = true;
    if (row->let_go)
        manager__resign(m, row, REASON_BANNED);
    else
        manager__unsure(m, row, false, false);
}

/* A runtime that traps on these bytes always does; a node in trouble reports it once. */
static void trapped(struct manager *m, struct row *row, const char *text)
{
    if (row->futures >= TRAPS_MAX) {
        invalid(m, row, text);
        return;
    }
    row->futures++;
    manager__alert_once(m, ALERT_BUSY, "the runtime traps on nonce %llu: %s",
                        (unsigned long long)row->nonce, text);
    again(m, row, true);
}

/* Every try that a node did not accept goes into the history, once each time. */
static void note(struct manager *m, struct row *row, const char *text)
{
    if (PLANTED(REFUSAL_UNTOLD))
        return;
    if (!row->note)
        row->note = xmalloc(NOTE_SIZE);
    plain_text(row->note, NOTE_SIZE, *text ? text : "refused without a reason");
    row->refused = true;
    row->tried = false;
    line_refresh(&m->line, row);
}

static void turned_away(struct manager *m, struct row *row, const char *text)
{
    note(m, row, text);
    row->turned_away = true;
}

/* So does one that had no answer, or found the bytes in the pool. */
static void note_try(struct manager *m, struct row *row, int code, const char *text)
{
    char line[NOTE_SIZE];
    bool answer = code == ERR_RPC;
    snprintf(line, sizeof(line), "%s%s",
             answer ? "" : "no answer: ", *text ? text : err_text(code));
    note(m, row, line);
    row->tried = true;
}

static void bad_proof(struct manager *m, struct row *row)
{
    manager__fx(m, MANAGER_FX_RECHECK_RUNTIME);
    if (row->resign_after <= m->chain_tick.count)
        row->resign_after =
            m->chain_tick.count + 1; /* unless the runtime turns out to have changed */
    manager__resign(m, row, REASON_PROOF);
}

/* A node that lags answers this for a block or two. If it continues, its view of the account
 * differs. */
static void future(struct manager *m, struct row *row)
{
    if (row->futures < FUTURES_MAX)
        row->futures++;
    else
        manager__alert_once(m, ALERT_FUTURE,
                            "the node goes on to answer that nonce %llu is in the future",
                            (unsigned long long)row->nonce);
    again(m, row, false);
}

static void underpriced(struct manager *m, struct row *row, const char *text)
{
    if (row->earlier_count) {
        manager__pooled(m, row, true);
        return;
    }
    manager__alert_once(m, ALERT_FOREIGN_POOL,
                        "the pool holds another transaction with our nonce %llu: %s",
                        (unsigned long long)row->nonce, text);
    if (row->resign_after <= m->chain_tick.count)
        row->resign_after = m->chain_tick.count + 1;
    if (!manager__try_outbid(m, row))
        manager__unsure(m, row, false, false);
}

void manager__send_forget(struct manager *m)
{
    m->send.half_open = false;
}

void manager__gate_open(struct manager *m)
{
    m->send.gate_shut = false;
}

static void unpaid(struct manager *m, struct row *row, const char *text)
{
    manager__unpaid(m, row->nonce, text);
    again(m, row, true);
    if (PLANTED(PAYMENT_HAMMERED))
        row->not_before_tick = 0;
}

static void busy(struct manager *m, struct row *row, const char *text)
{
    manager__alert_once(m, ALERT_BUSY, "the node does not take nonce %llu now: %s",
                        (unsigned long long)row->nonce, text);
    again(m, row, true);
    if (PLANTED(NONCE_FREED) && row->id && !manager__presigned(row))
        manager__end_unused(m, row, "failed", text);
}

static void refused(struct manager *m, struct row *row, const struct answer *a, int code,
                    const char *text)
{
    PRE(row->state == ROW_SUBMITTED && text);
    enum refusal why = a->means;
    row->watched = false;
    if (why == REFUSAL_TRANSPORT || why == REFUSAL_POOLED)
        note_try(m, row, code, text);
    else if (why != REFUSAL_GATE)
        turned_away(m, row, text);
    switch (why) {
    case REFUSAL_STALE: /* finalized blocks will show by whom; the probe of the next tick checks it
                         */
        line_move(&m->line, row, ROW_IN_BLOCK);
        manager__probe_at_beat(m);
        return;
    case REFUSAL_POOLED:
        manager__pooled(m, row, true);
        return;
    case REFUSAL_BANNED:
        banned(m, row);
        return;
    case REFUSAL_UNDERPRICED:
        underpriced(m, row, text);
        return;
    case REFUSAL_POOL_FULL:
        pool_full(m, row);
        return;
    case REFUSAL_PAYMENT:
        unpaid(m, row, text);
        return;
    case REFUSAL_BAD_PROOF:
        bad_proof(m, row);
        return;
    case REFUSAL_FUTURE:
        future(m, row);
        return;
    case REFUSAL_INVALID:
        if (!try_retry_later(m, row, a, text))
            invalid(m, row, text);
        return;
    case REFUSAL_TRAPPED:
        trapped(m, row, text);
        return;
    case REFUSAL_TRANSPORT:
        manager__unsure(m, row, true, false);
        return;
    case REFUSAL_GATE:
        m->send.gate_shut = true;
        row->submitted_tick = 0;
        row->not_before_tick = 0;
        line_move(&m->line, row, ROW_UNSENT);
        return;
    case REFUSAL_NONE:
        break;
    case REFUSAL_BUSY:
        busy(m, row, text);
        return;
    }
    UNREACHABLE();
}

struct row *manager__known(const struct manager *m, uint64_t nonce, const uint8_t hash[32],
                           bool *ret_current)
{
    struct row *row = line_at(&m->line, nonce);
    return row && !row->end && row_knows(row, hash, ret_current) ? row : NULL;
}

/* Nothing was written to the socket. What was submitted before may be in a pool all the same:
 * was_out is never taken back. */
static bool unwritten(const struct answer *a)
{
    bool invalid = a->means == REFUSAL_INVALID || a->means == REFUSAL_TRAPPED;
    return a->means == REFUSAL_GATE || (PLANTED(REFUSAL_BELIEVED) && invalid) ||
           (PLANTED(ERROR_TRUSTED) && a->means == REFUSAL_BUSY) ||
           (PLANTED(SILENCE_TRUSTED) && a->means == REFUSAL_TRANSPORT) ||
           (PLANTED(FULL_TRUSTED) && a->means == REFUSAL_POOL_FULL);
}

void manager__used_meanwhile(struct manager *m, struct row *row)
{
    bool waits = row->state == ROW_UNSENT || row->state == ROW_RESIGN;
    if (!waits || row->nonce >= m->probe.used_below)
        return;
    line_move(&m->line, row, ROW_IN_BLOCK);
    manager__probe_at_beat(m);
}

void manager__reply(struct manager *m, const struct manager_event *ev)
{
    bool current;
    struct row *row = manager__known(m, ev->reply.nonce, ev->reply.hash, &current);
    if (!row || !current || row->state != ROW_SUBMITTED)
        return; /* it ended meanwhile, or belongs to what was forgotten */
    const char *text = ev->reply.text ? ev->reply.text : "";
    const struct answer *a = answer_of(ev->reply.code, ev->reply.rpc_code, text);
    if (!unwritten(a))
        row_went_out(row);
    if (a->means == REFUSAL_NONE)
        accepted(m, row);
    else
        refused(m, row, a, ev->reply.code, text);
    manager__used_meanwhile(m, row);
}
