/* Operators: they resume what waits for them, after a while; pause accounts now and then; and
 * ask for higher tips where something is stuck (account_pause, account_resume, bump:
 * schema/migrations). */
#include <stdio.h>
#include <string.h>

#include "sim.h"
#include "store/operator.h"

/* account_resume. */
static void resume(struct world *w, int account)
{
    note(w, "an operator resumes a%d, hold %s", account, db_account(w, account)->suspension);
    struct store_ask r = {.account = account_alias(account)};
    mem_session_run(w->db.desk, MEM_REQUEST_resume, &r.req);
    INVARIANT(!r.req.err.code);
    store_req_done(&r.req);
    w->stats.orders++;
    for (int i = 0; i < w->plan.relays; i++) { /* who orders it may try once more */
        struct duty *d = &w->relays[i].accounts[account].duty;
        d->no_funds = false;
        d->ordered_at = w->now;
        d->order_unheard = true;
    }
}

static void look_around(struct world *w, struct event *e)
{
    int64_t now = db_now_us(w),
            patience = (int64_t)between(w, SECOND, w->healing ? 5 * SECOND : 30 * SECOND);
    (void)e;
    for (int i = 0; w->db.up && i < w->plan.accounts; i++) {
        const struct mem_account *a = db_account(w, i);
        bool waits = a->paused_by_operator || strcmp(a->suspension, "payment") != 0 ||
                     (has(w, FEATURE_PAUSES) && !w->healing && chance(w, 10));
        if (a->paused && waits && now - a->paused_us > patience)
            resume(w, i);
    }
    later(w, between(w, SECOND / 2, 2 * SECOND), "operator looks around", look_around);
}

void operator_pauses(struct world *w)
{
    int account = (int)rng_below(&w->rng, (uint64_t)w->plan.accounts);
    struct err err;
    if (!w->db.up)
        return;
    int rc = mem_account_pause(w->db.desk, account_alias(account), "an operator's", &err);
    INVARIANT(!rc);
    note(w, "an operator pauses a%d", account);
}

/* bump() of some transaction, by as much as is allowed. */
void operator_bumps(struct world *w)
{
    if (!w->db.up || w->next_id < 2)
        return;
    int64_t id = (int64_t)between(w, 1, (uint64_t)w->next_id - 1);
    struct call *c = &w->calls[id];
    const struct mem_row *r = mem_row_of(w->db.mem, id);
    if (!r || r->held || c->presigned)
        return;
    bool pending = r->table == MEM_PENDING;
    uint64_t limit = tip_limit(w, id, c->account);
    int64_t tip = (int64_t)between(w, 1, chance(w, 50) ? 30 : 300);
    int64_t from = pending      ? (int64_t)w->chain.txs[tx_of_row(w, r)].tip
                   : r->has_tip ? (int64_t)r->tip
                                : -1;
    if ((uint64_t)tip > limit)
        tip = (int64_t)limit;
    if (tip <= from || tip <= c->bump)
        return;
    char text[24];
    snprintf(text, sizeof(text), "%lld", (long long)tip);
    struct store_ask ask = {.id = id, .tip = text};
    mem_session_run(w->db.desk, MEM_REQUEST_bump, &ask.req);
    note(w, "an operator bumps transaction %lld to %lld: %s", (long long)id, (long long)tip,
         ask.req.err.code ? ask.req.err.text : ask.answer);
    store_req_done(&ask.req);
    if (ask.req.err.code)
        return;
    w->stats.bumps++;
    if (!pending)
        return;
    c->bump = tip;
    c->bumped_at = w->now;
}

void operator_start(struct world *w)
{
    if (has(w, FEATURE_REAP) || has(w, FEATURE_VERSION) || has(w, FEATURE_PAUSES))
        later(w, SECOND, "operator looks around", look_around);
}
