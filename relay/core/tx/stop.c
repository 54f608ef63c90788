/* Deadlines and cancellations. Both are facts of the table (one clock, the database's): request
 * polls bring them (relay/core/poll/). The manager asks for one when its rows are loaded and when a
 * suspension is stored. A deadline that is a block is the core's own to watch.
 *
 * A row that is to be stopped gets no new bytes of its own and is not sent again. Where none ever
 * left, it ends at once if nothing is behind it, and its nonce is free again; else a filler takes
 * the nonce. Where some may be in a pool, a filler with a higher tip is signed at the same nonce:
 * the chain takes one of the two, and the record says which (I5 allows it). Where the tip may not
 * rise, the row waits: its bytes get in, or their eras end and a filler takes the nonce. Bytes
 * without an era never die: such a row goes on as if nothing had been said.
 *
 * What a node refuses as invalid is stopped in the same way: some pool may have it in spite of the
 * answer. It is raced even if its tip may not rise, because the pool that was asked holds nothing
 * to outbid. That it is invalid is on no record, so each leader finds it out by submitting the
 * bytes again: if leaders change more often than eras end, a row that waited would never end. */
#include "stop.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "effects.h"
#include "ends.h"
#include "sign.h"
#include "suspend.h"

/* ---- request polls ---- */

void manager__poll_requests(struct manager *m)
{
    manager__fx(m, MANAGER_FX_POLL_REQUESTS)->number = ++m->polls;
}

static const char *known_outcome(const char *outcome)
{
    static const char *const known[] = {"cancelled", "failed", "expired"};
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (!strcmp(outcome, known[i]))
            return known[i];
    return "expired";
}

void manager__stop(struct row *row, const char *outcome, const char *fmt, ...)
{
    PRE(outcome);
    if (row->stop)
        return;
    va_list ap;
    char text[sizeof(row->stop->reason)];
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    row->stop = xcalloc(1, sizeof(*row->stop));
    row->stop->outcome = known_outcome(outcome);
    plain_text(row->stop->reason, sizeof(row->stop->reason), text);
}

void manager__stop_now(struct manager *m, struct row *row)
{
    PRE(row->stop && !row->end);
    if (row->state == ROW_UNSENT || row->state == ROW_RESIGN)
        manager__try_stop(m, row);
    else if (row->state == ROW_POOLED)
        manager__try_unblock_head(m, row);
}

static void stop(struct manager *m, const struct tx_stop *s)
{
    struct row *row = line_at(&m->line, s->nonce);
    if (!row || row->id != s->id || !row->id || row->stop || m->config.keyless)
        return;
    if (row->end && (!row->end->requeue || row->state != ROW_ENDING))
        return;
    manager__stop(row, s->outcome, "%s", s->reason);
    if (row->end) { /* it was to go back to the outbox: it ends here */
        row->end->requeue = false;
        if (!row->end->tx.has_block)
            row->end->tx.outcome = row->stop->outcome;
        return;
    }
    manager__stop_now(m, row);
}

void manager__requests_polled(struct manager *m, const struct manager_event *ev)
{
    if (m->phase < MANAGER_CHAIN_WAIT)
        return; /* the load is followed by another one */
    if (ev->requests.account)
        manager__account_polled(m, ev->requests.account, ev->requests.number);
    /* What a stop would end in place of a retry, the lost commits may have sent again. Once that is
     * adopted, the manager asks again. */
    bool later = m->reconcile.on;
    for (size_t i = ev->requests.count; i-- > 0;) { /* the highest nonce first: see reusable */
        if (!ev->requests.stops[i].outcome)
            manager__bump(m, &ev->requests.stops[i]);
        else if (!later)
            stop(m, &ev->requests.stops[i]);
    }
}

/* A call that was made for another runtime may mean something else now: no new signature, with or
 * without an era. What was signed for the old one cannot be included under the new one, but which
 * of the two the final chain has is not known before the era has ended. */
static void guard(struct manager *m, struct row *row)
{
    char reason[sizeof(row->stop->reason)];
    if (manager__guarded(m, row->guard, reason, sizeof(reason)))
        manager__stop(row, "failed", "%s", reason);
}

void manager__late(struct manager *m, struct row *row)
{
    PRE(!row->end);
    uint64_t deadline = row->terms ? row->terms->deadline_block : UINT64_MAX;
    if (row->id && manager__era_late(m, deadline))
        manager__stop(row, "expired", "block %llu is best and its deadline is block %llu",
                      (unsigned long long)manager__plausible_best(m), (unsigned long long)deadline);
}

static bool may_race(const struct manager *m, const struct row *row)
{
    return !m->config.keyless && !row->filler && !row->racing;
}

static void race(struct manager *m, struct row *row)
{
    row->racing = true;
    manager__sign_soon(m, row);
    row->reason = REASON_STOP;
    line_move(&m->line, row, ROW_RESIGN);
}

bool manager__try_replace(struct manager *m, struct row *row)
{
    PRE(row->stop && row->bytes);
    if (!may_race(m, row) || (!manager__try_raise_tip(m, row) && !row->stop->invalid))
        return false;
    race(m, row);
    return true;
}

/* Its nonce can be given to another transaction: no byte of it was ever written to a socket, which
 * only the leader that signed it can know, and nothing that goes on is behind it. Bytes without an
 * era may be the same ones that a lost commit had sent (keys that sign deterministically). */
static bool reusable(const struct manager *m, const struct row *row)
{
    bool sent = (row->was_out || row->earlier_count) && !PLANTED(REUSE_SENT);
    if (sent || row->era_death < 0 || !row->id || row->presigned || m->phase != MANAGER_LEADING ||
        m->admit.count || m->reconcile.on || m->nonces.rewind || !m->final.known)
        return false;
    for (uint64_t nonce = row->nonce + 1; nonce < m->line.next; nonce++) {
        const struct row *later = line_at(&m->line, nonce);
        if (!later || !later->end || !later->end->given_back)
            return false;
    }
    return true;
}

bool manager__try_stop(struct manager *m, struct row *row)
{
    PRE(!row->end);
    bool immortal = row->was_out && row->out_death == INT64_MAX;
    bool other_runtime = row->guard && row->guard != m->chain.spec_version;
    if (row->racing || (row->filler && manager__searched(m) < (uint64_t)row->own_death))
        return false; /* its bytes are no longer its own */
    guard(m, row);
    if (!row->stop)
        return false;
    if (manager__live(m, row) && manager__try_replace(m, row))
        return true;
    if (immortal && !other_runtime)
        return false;
    if (immortal)
        manager__alert_once(
            m, ALERT_GUARD,
            "nonce %llu: %s; its immortal bytes may still be included, so it holds the account",
            (unsigned long long)row->nonce, row->stop->reason);
    if (reusable(m, row)) {
        manager__end_unused(m, row, row->stop->outcome, row->stop->reason);
        return true;
    }
    row->reason = REASON_STOP;
    line_move(&m->line, row, ROW_FILL);
    return true;
}

void manager__give_up(struct manager *m, struct row *row, const char *why)
{
    PRE(row->bytes && row->id && !row->filler && !m->config.keyless);
    manager__stop(row, "failed", "%s", why);
    row->stop->invalid = true;
    bool stopped = manager__try_stop(m, row);
    INVARIANT(stopped);
}
