/* Deadlines and cancellations. Both are facts of the table (one clock, the database's), so the core asks for
 * them: at the beginning, when it is told to, when the next deadline has come, and at a slow pace in between.
 *
 * A row that is to be stopped gets no new bytes and is not sent again. Nothing else can be done about bytes
 * that may be in a pool: they get in, and it ends as the chain says, or their eras end; then a filler takes
 * the nonce and the row ends as expired or cancelled. Both ends are certain when they are recorded. Where no
 * bytes ever left, the filler comes at once. Bytes without an era never die: such a row goes on as if nothing
 * had been said. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "manager_internal.h"

/* ---- when to look ---- */

static bool looks(const struct manager *m)
{
    return m->phase >= MANAGER_CHAIN_WAIT && m->config.look_ms != UINT32_MAX;
}

void manager__look_reset(struct manager *m)
{
    m->look_now = true;
    m->look_out = false;
    m->look_at = UINT64_MAX;
}

void manager__look(struct manager *m)
{
    m->look_now = true;
}

void manager__look_tick(struct manager *m)
{
    if (m->now < m->look_at)
        return;
    m->look_out = false;
    m->look_now = true;
}

uint64_t manager__look_deadline(const struct manager *m)
{
    return looks(m) ? m->look_at : UINT64_MAX;
}

void manager__look_pump(struct manager *m)
{
    if (!looks(m) || !m->look_now || m->look_out)
        return;
    m->look_now = false;
    m->look_out = true;
    m->look_at = m->now + LOOK_TIMEOUT_MS;
    manager__fx(m, MANAGER_FX_LOOK);
}

/* ---- what it brings ---- */

static void stop(struct manager *m, const struct manager_stop *s)
{
    struct row *row = manager__at(m, s->nonce);
    if (!row || row->id != s->id || !row->id || row->end || row->stop)
        return;
    row->stop = xcalloc(1, sizeof(*row->stop));
    row->stop->outcome = !strcmp(s->outcome, "cancelled") ? "cancelled" : "expired";
    manager__plain(row->stop->reason, sizeof(row->stop->reason), s->reason);
    if (row->state == ROW_UNSENT || row->state == ROW_RESIGN)
        manager__stopped(m, row);
}

void manager__looked(struct manager *m, const struct manager_event *ev)
{
    if (!m->look_out)
        return;
    m->look_out = false;
    uint64_t wait = ev->failed ? LOOK_RETRY_MS : m->config.look_ms;
    if (!ev->failed && ev->next_ms < wait)
        wait = ev->next_ms + 1;
    m->look_at = m->now + wait;
    for (size_t i = 0; !ev->failed && i < ev->count; i++)
        stop(m, &ev->stops[i]);
}

bool manager__guarded(const struct manager *m, uint32_t guard, char *reason, size_t size)
{
    if (!guard || guard == m->spec_version)
        return false;
    snprintf(reason, size, "it may be signed under runtime spec version %u only; the chain's is %u", guard,
             m->spec_version);
    return true;
}

/* A call that was made for another runtime may mean something else now: no new signature, with or without an
 * era. What was signed for the old one cannot be included under the new one, but which of the two the final
 * chain has is not known before the era has ended. */
static void guard(struct manager *m, struct row *row)
{
    char reason[sizeof(row->stop->reason)];
    if (row->stop || !row->id || !manager__guarded(m, row->guard, reason, sizeof(reason)))
        return;
    row->stop = xcalloc(1, sizeof(*row->stop));
    row->stop->outcome = "failed";
    memcpy(row->stop->reason, reason, sizeof(reason));
    if (row->was_out && row->out_death == INT64_MAX)
        manager__alert_once(
            m, ALERT_GUARD,
            "nonce %llu: %s; its immortal bytes may still be included, so it holds the account",
            (unsigned long long)row->nonce, reason);
}

bool manager__stopped(struct manager *m, struct row *row)
{
    bool immortal = row->was_out && row->out_death == INT64_MAX;
    bool other_runtime = row->guard && row->guard != m->spec_version;
    guard(m, row);
    if (!row->stop || (immortal && !other_runtime))
        return false;
    row->reason = REASON_STOP;
    manager__move(m, row, ROW_FILL);
    return true;
}
