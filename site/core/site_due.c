/* When the core wants to be stepped again. */
#include "site_internal.h"

/* What was due at `now` or before is done, or waits for an event. */
static void soon(uint64_t *due, uint64_t now, uint64_t at)
{
    if (at > now && at < *due)
        *due = at;
}

static void due_tx(const struct site_core *c, uint64_t now, const struct site_tx *t, uint64_t *due)
{
    if (t->state == SITE_TX_ASKED || (t->state == SITE_TX_WAITING && !t->cancel))
        soon(due, now, t->retry_at);
    if (t->state != SITE_TX_GRANTED)
        return;
    soon(due, now, t->send_at);
    if (c->chosen != SITE_NOBODY && (!t->acked || t->again))
        soon(due, now, t->retry_at);
}

static void due_work(const struct site_core *c, uint64_t now, const struct site_work *w,
                     uint64_t *due)
{
    if (w->state == SITE_WORK_DISPATCHED)
        soon(due, now, w->send_at);
    if (w->state != SITE_WORK_DISPATCHED || !w->told)
        soon(due, now, w->retry_at);
    if (w->state == SITE_WORK_PROPOSED || w->state == SITE_WORK_APPROVING)
        soon(due, now, w->since + c->config.propose_ms);
}

uint64_t site_due(const struct site_core *c, uint64_t now)
{
    uint64_t due = SITE_NEVER;
    if (!c->led)
        return due;
    if (!c->loaded) {
        soon(&due, now, c->load_at == SITE_NEVER ? 0 : c->load_at);
        return due;
    }
    if (c->more)
        return now + 1;
    for (size_t i = 0; i < c->config.members; i++) {
        const struct site_member *m = &c->members[i];
        if (m->owes_since != SITE_NEVER) {
            soon(&due, now, m->owes_since + c->config.silence_ms);
            soon(&due, now, m->probe_at + c->config.probe_ms);
        }
        if (site__coordinates(c, now, i))
            soon(&due, now, m->beat_at + c->config.silence_ms);
    }
    if (c->state >= SITE_ELECT)
        soon(&due, now, c->beat_at);
    if (c->state == SITE_ELECT)
        soon(&due, now, c->state_at + c->config.elect_ms);
    if (c->txs || c->works)
        soon(&due, now, c->head_at + c->config.blind_ms);
    if (c->hole_at)
        soon(&due, now, c->hole_at + c->config.hole_ms);
    if (c->lost && !c->wait_stored)
        soon(&due, now, c->lost_at + c->config.probe_ms + c->config.silence_ms);
    for (size_t i = 0; i < c->letter_count; i++)
        soon(&due, now, c->letters[i].retry_at);
    for (const struct site_tx *t = c->txs; t; t = t->hh.next)
        due_tx(c, now, t, &due);
    for (const struct site_work *w = c->works; w; w = w->hh.next)
        due_work(c, now, w, &due);
    return due;
}
