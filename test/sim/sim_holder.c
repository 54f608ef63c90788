/* Sessions that hold what leaders need: an application whose open transaction has cancelled a row
 * that waits, and a session that takes the lock of an account and keeps it. Leaders pass over the
 * row and end the session. Both have a generator of their own. */
#include <stdio.h>
#include <string.h>

#include "election/election.h"
#include "sim.h"
#include "store/operator.h"

static uint64_t draw(struct world *w, uint64_t from, uint64_t to)
{
    return rng_between(&w->holder.rng, from, to);
}

/* ---- a row ---- */

/* Who sends it himself must not ask for its end; after a failover cancel waits without a lock. */
static int64_t some_row(struct world *w)
{
    if (!w->db.up || w->next_id < 2)
        return 0;
    int64_t id = (int64_t)draw(w, 1, (uint64_t)w->next_id - 1);
    const struct mem_row *r = mem_row_of(w->db.mem, id);
    const struct call *c = &w->calls[id];
    bool waits = r && r->table != MEM_PENDING && !r->held;
    return waits && !c->self_sent && !db_doubtful(w, c->account) ? id : 0;
}

/* The commit, at which the transaction is cancelled, or a rollback. */
static void let_go(struct world *w, struct event *e)
{
    struct holder *h = &w->holder;
    int64_t id = h->id;
    if (!h->session || h->starts != e->b || id != (int64_t)e->a)
        return; /* the database has rolled it back */
    const struct mem_row *r = mem_row_of(w->db.mem, id);
    HOLDS(w, r && r->table != MEM_PENDING && r->held == h->session, "held",
          "transaction %lld was taken while an open transaction held its row", (long long)id);
    mem_unlock_row(h->session);
    h->id = 0;
    if (rng_below(&h->rng, 2) == 0)
        return;
    struct store_ask ask = {.id = id};
    w->calls[id].cancelled = true;
    mem_session_run(h->session, MEM_REQUEST_cancel, &ask.req);
    HOLDS(w, !ask.req.err.code, "cancel", "transaction %lld cannot be cancelled: %s", (long long)id,
          ask.req.err.text);
    store_req_done(&ask.req);
}

static void hold(struct world *w, struct event *e)
{
    struct holder *h = &w->holder;
    int64_t id = h->id ? 0 : some_row(w);
    (void)e;
    if (w->now >= w->plan.faults_end)
        return;
    if (id) {
        if (!h->session)
            h->session = mem_session_new(w->db.mem, NULL, false);
        bool held = mem_lock_row(h->session, id);
        INVARIANT(held);
        h->id = id;
        h->starts++;
        w->stats.held++;
        note(w, "an application holds the row of transaction %lld", (long long)id);
        uint64_t us = rng_below(&h->rng, 3) ? draw(w, MS, SECOND) : draw(w, SECOND, 40 * SECOND);
        struct event *end = later(w, us, "a holder lets go", let_go);
        end->a = (uint32_t)id;
        end->b = h->starts;
    }
    later(w, id ? draw(w, MS, 2 * SECOND) : draw(w, MS, 300 * MS), "a row is held", hold);
}

/* ---- a lock ---- */

/* It asks until it has the lock, and then something each second, as a tool that was left open:
 * a session that does nothing for long would be taken for one that hung. */
static void lock(struct world *w, struct event *e)
{
    struct holder *h = &w->holder;
    (void)e;
    if (!w->db.up || (!h->locker && w->now >= w->plan.faults_end)) {
        if (w->now < w->plan.faults_end)
            later(w, SECOND, "a stranger locks", lock);
        return;
    }
    if (!h->locker) {
        h->locker = mem_session_new(w->db.mem, NULL, true);
        mem_session_foreign(h->locker);
        h->account = (int)rng_below(&h->rng, (uint64_t)w->plan.accounts);
        h->locked = false;
    }
    struct store_lock r = {.lock_key = db_account(w, h->account)->lead.lock_key};
    mem_session_active(h->locker);
    if (!h->locked) {
        mem_session_run(h->locker, MEM_REQUEST_lock, &r.req);
        h->locked = r.got;
        store_req_done(&r.req);
        w->stats.locked += h->locked;
    }
    later(w, h->locked ? SECOND : draw(w, 20 * MS, 200 * MS), "a stranger locks", lock);
}

/* leader_evict, or the end of the server. */
void holder_ended(struct world *w, const struct mem_session *m)
{
    struct holder *h = &w->holder;
    if (m == h->session) {
        h->session = NULL;
        h->id = 0;
    } else if (m == h->locker) {
        h->locker = NULL;
        note(w, "who had the lock of a%d is gone", h->account);
    }
}

void holder_start(struct world *w)
{
    memset(&w->holder, 0, sizeof(w->holder));
    w->holder.rng.state = w->seed ^ UINT64_C(0x401de25ca7c4b1d3);
    if (!has(w, FEATURE_HOLDERS))
        return;
    later(w, draw(w, 0, 2 * SECOND), "a row is held", hold);
    later(w, draw(w, SECOND, 20 * SECOND), "a stranger locks", lock);
}
