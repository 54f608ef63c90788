/* Operators: they resume what waits for them, after a while; pause accounts now and then; and ask for higher
 * tips where something is stuck (account_pause, account_resume, bump: schema/functions). */
#include <string.h>

#include "sim.h"

/* account_resume: what it means depends on what stood. */
static void resume(struct world *w, int account)
{
    struct account_row *a = &w->db.t.accounts[account];
    note(w, "an operator resumes a%d, hold %d", account, (int)a->hold);
    if (a->hold == MANAGER_HOLD_REAPED)
        a->reborn = true;
    if (a->hold == MANAGER_HOLD_TRANSACTION_VERSION)
        a->version = 0;
    a->paused = a->by_leader = false;
    a->hold = MANAGER_HOLD_NONE;
    w->stats.orders++;
    for (int i = 0; i < w->plan.relays; i++) { /* who orders it may try once more */
        w->relays[i].accounts[account].duty.poor = false;
        w->relays[i].accounts[account].duty.ordered_at = w->now;
        w->relays[i].accounts[account].duty.order_unheard = true;
    }
    rows_audible(w, account);
    notify_signal(w, "wake", account);
}

static void look_around(struct world *w, struct event *e)
{
    int64_t now = db_now_us(w), patience = (int64_t)between(w, SECOND, w->healing ? 5 * SECOND : 30 * SECOND);
    (void)e;
    for (int i = 0; w->db.up && i < w->plan.accounts; i++) {
        const struct account_row *a = &w->db.t.accounts[i];
        bool waits = !a->by_leader || a->hold != MANAGER_HOLD_PAYMENT ||
                     (has(w, FEATURE_PAUSES) && !w->healing && chance(w, 10));
        if (a->paused && waits && now - a->paused_us > patience)
            resume(w, i);
    }
    later(w, between(w, SECOND / 2, 2 * SECOND), "operator looks around", look_around);
}

void operator_pauses(struct world *w)
{
    struct account_row *a = &w->db.t.accounts[rng_below(&w->rng, (uint64_t)w->plan.accounts)];
    if (!w->db.up)
        return;
    a->paused = true; /* a leader's hold stays, if one stands */
    a->by_leader = false;
    a->paused_us = db_stamp(w);
    note(w, "an operator pauses a%d", (int)(a - w->db.t.accounts));
}

/* bump() of some transaction, by as much as is allowed. */
void operator_bumps(struct world *w)
{
    struct tables *t = &w->db.t;
    if (!w->db.up || t->next_id < 2)
        return;
    int64_t id = (int64_t)between(w, 1, (uint64_t)t->next_id - 1);
    struct id_row *r = &t->ids[id];
    if ((r->stage != STAGE_OUTBOX && r->stage != STAGE_PENDING) || r->fixed)
        return;
    uint64_t limit = tip_limit(w, id, r->account);
    int64_t tip = (int64_t)between(w, 1, chance(w, 50) ? 30 : 300);
    int64_t from =
        r->stage == STAGE_PENDING ? (int64_t)w->chain.txs[t->pending[r->account][r->nonce].tx].tip : r->tip;
    if ((uint64_t)tip > limit)
        tip = (int64_t)limit;
    if (tip <= from || tip <= r->bump)
        return;
    note(w, "somebody bumps transaction %lld to %lld", (long long)id, (long long)tip);
    w->stats.bumps++;
    if (r->stage == STAGE_OUTBOX) {
        r->tip = tip;
        return;
    }
    r->bump = tip;
    r->bumped_at = w->now;
    notify_signal(w, "wake", r->account);
}

void operator_start(struct world *w)
{
    if (has(w, FEATURE_REAP) || has(w, FEATURE_VERSION) || has(w, FEATURE_PAUSES))
        later(w, SECOND, "operator looks around", look_around);
}
