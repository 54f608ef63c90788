/* Deadlines and cancellations. Both are facts of the table (one clock, the database's), so the core asks for
 * them: at the beginning, when it is told to, when the next deadline has come, and at a slow pace in between.
 *
 * A row that is to be stopped gets no new bytes and is not sent again. Nothing else can be done about bytes
 * that may be in a pool: they get in, and it ends as the chain says, or their eras end; then a filler takes
 * the nonce and the row ends as expired or cancelled. Both ends are certain when they are recorded. Where no
 * bytes ever left, the filler comes at once. Bytes without an era never die: such a row goes on as if nothing
 * had been said. */
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

bool manager__stopped(struct manager *m, struct row *row)
{
    if (!row->stop || (row->was_out && row->out_death == INT64_MAX))
        return false;
    row->reason = REASON_STOP;
    manager__move(m, row, ROW_FILL);
    return true;
}
