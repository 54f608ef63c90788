/* The database's sessions: statements in order for each, advisory locks, notifications, and what ends them.
 * A statement takes effect in one moment, its commit; the answer may be lost after that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

int64_t db_now_us(const struct world *w)
{
    return (int64_t)w->now + w->db.offset_us;
}

/* clock_timestamp(): two changes of one row never have the same. */
int64_t db_stamp(struct world *w)
{
    int64_t now = db_now_us(w);
    w->db.clock_us = now > w->db.clock_us ? now : w->db.clock_us + 1;
    return w->db.clock_us;
}

const char *holder_name(int holder, char out[24])
{
    if (holder)
        snprintf(out, 24, "relay-%d-%d", holder / 100000, holder % 100000);
    else
        out[0] = 0;
    return out;
}

void stmt_unref(struct stmt *s)
{
    if (--s->refs)
        return;
    free(s->rows);
    free(s->txs);
    free(s->lookups);
    free(s->snapshot);
    free(s->outbox);
    free(s->fixed);
    free(s->stops);
    free(s->bytes);
    free(s->hashes);
    free(s->events);
    free(s);
}

/* ---- sessions ---- */

struct session *session_open(struct world *w, struct link *l)
{
    struct db *d = &w->db;
    for (int i = 0; i < SESSIONS; i++) {
        struct session *s = &d->sessions[i];
        if (s->serial)
            continue;
        *s = (struct session){.serial = ++d->serial,
                              .link = l,
                              .link_number = l->number,
                              .relay = l->relay,
                              .life = l->life,
                              .last_in = w->now,
                              .last_out = w->now,
                              .idle_since = w->now};
        list_init(&s->queue);
        return s;
    }
    UNREACHABLE();
}

static void told_end(struct world *w, struct event *e)
{
    struct link *l = e->p;
    if (l->up && l->number == e->a)
        link_lost(w, l);
}

/* `tell`: the client's end finds out after the answers that are on their way, and not before `when`. */
void session_end(struct world *w, struct session *s, bool tell, uint64_t when)
{
    for (struct list *n = list_first(&s->queue); n; n = list_first(&s->queue)) {
        list_remove(n);
        stmt_unref(CONTAINER_OF(n, struct stmt, queue)); /* rolled back: it was not carried out */
    }
    if (tell) {
        uint64_t at = s->last_out > w->now && chance(w, 60) ? s->last_out : w->now; /* or a reset overtakes */
        struct event *e =
            relay_at(w, s->relay, s->life, (at > when ? at : when) + 1, "session end", told_end);
        e->p = s->link;
        e->a = s->link_number;
    }
    note(w, "session %u of r%d ends", s->serial, s->relay);
    s->serial = 0;
}

struct session *lock_owner(struct world *w, int kind, int account)
{
    for (int i = 0; i < SESSIONS; i++) {
        struct session *s = &w->db.sessions[i];
        if (s->serial && (kind == KIND_ACCOUNT ? s->lock[account] : s->bell[account]))
            return s;
    }
    return NULL;
}

/* ---- statements ---- */

static void hear_answer(struct world *w, struct event *e)
{
    struct stmt *q = e->p;
    struct link *l = q->link;
    if (l->up && l->number == q->link_number && list_linked(&q->sent)) {
        list_remove(&q->sent);
        q->done(w, q);
        stmt_unref(q); /* the client's */
    }
    stmt_unref(q);
}

static void drop_stmt(struct event *e)
{
    stmt_unref(e->p);
}

static void answer(struct world *w, struct session *s, struct stmt *q)
{
    uint64_t at = w->now + latency(w);
    if (at <= s->last_out)
        at = s->last_out + 1;
    if (at < s->link->stall_until)
        at = s->link->stall_until;
    s->last_out = at;
    struct event *e = relay_at(w, q->relay, q->life, at, "db answers", hear_answer);
    e->p = q;
    e->drop = drop_stmt;
    e->account = q->account;
    e->a = (uint32_t)q->op;
    e->b = (uint32_t)-q->code;
}

static void carry_out(struct world *w, struct session *s, struct stmt *q)
{
    static void (*const control[])(struct world * w, struct session * s, struct stmt * q) = {
        [OP_LOCK] = sql_lock,       [OP_UNLOCK] = sql_lock, [OP_ARM] = sql_lock,
        [OP_DISARM] = sql_lock,     [OP_CLAIM] = sql_claim, [OP_RENEW] = sql_renew,
        [OP_RELEASE] = sql_release, [OP_EVICT] = sql_evict, [OP_SCAN] = sql_scan,
    };
    q->code = 0;
    if (q->op <= OP_SCAN)
        control[q->op](w, s, q);
    else if (q->op >= OP_ADMIT && q->op <= OP_ADOPT)
        sql_write(w, q);
    else
        sql_read(w, q);
}

static void run_next(struct world *w, struct event *e);

static void schedule(struct world *w, struct session *s)
{
    uint64_t exec = rng_between(&w->rng, w->plan.exec_us / 4 + 1, w->plan.exec_us);
    if (!w->healing && w->plan.fault_mask >> fault_number("slow-db") & 1 && rng_below(&w->rng, 150) == 0)
        exec = between(w, 100 * MS, 4 * SECOND);
    if (w->now < w->db.slow_until)
        exec = rng_between(&w->rng, 100 * MS, 3 * SECOND);
    s->busy = true;
    struct event *e = later(w, exec, "db runs", run_next);
    e->a = (uint32_t)(s - w->db.sessions);
    e->b = s->serial;
}

static bool loses_answer(struct world *w, const struct session *s)
{
    bool may = !w->healing && s->relay >= 0 && w->plan.fault_mask >> fault_number("session-loss") & 1;
    return may && rng_below(&w->rng, s->link->kind == LINK_WORK ? 60 : 1000) == 0;
}

static void run_next(struct world *w, struct event *e)
{
    struct session *s = &w->db.sessions[e->a];
    if (s->serial != e->b)
        return;
    struct list *n = list_first(&s->queue);
    struct stmt *q = CONTAINER_OF(n, struct stmt, queue);
    list_remove(n);
    carry_out(w, s, q);
    note(w, "  r%d a%d op %d epoch %lld: code %d", q->relay, q->account, (int)q->op, (long long)q->epoch,
         q->code);
    s->busy = false;
    s->idle_since = w->now;
    if (s->serial != e->b) { /* it ended its own session */
        stmt_unref(q);
        return;
    }
    if (loses_answer(w, s)) { /* committed, and nobody is told */
        stmt_unref(q);
        session_end(w, s, true, w->now + latency(w));
        return;
    }
    answer(w, s, q);
    if (!list_empty(&s->queue))
        schedule(w, s);
}

void session_take(struct world *w, struct session *s, struct stmt *q)
{
    list_append(&s->queue, &q->queue);
    if (!s->busy)
        schedule(w, s);
}

/* ---- notifications ---- */

struct notice {
    struct link *link;
    uint32_t number;
    bool signal;
    char channel;
    int account;
    char holder[24];
    int64_t epoch;
    struct listen_event ev;
};

static void hear_notice(struct world *w, struct event *e)
{
    struct notice *x = e->p;
    struct link *l = x->link;
    bool good = l->up && l->number == x->number;
    if (l->relay < 0) {
        struct follower *f = l->owner;
        f->in_flight--;
        if (good)
            follower_hear(w, f, &x->ev);
    } else if (good) {
        struct relay *r = l->owner;
        if (x->channel == 'w') {
            if (r->running && r->accounts[x->account].leader)
                account_rung(w, r, x->account);
        } else if (r->running && !r->draining) {
            elect_feed(w, r,
                       &(struct elector_event){.type = ELECTOR_EV_LEADER_CHANGE,
                                               .account = x->account,
                                               .holder = x->holder,
                                               .address = x->holder,
                                               .epoch = x->epoch});
        }
    }
    free(x);
}

static void drop_notice(struct event *e)
{
    free(e->p);
}

static void send_notice(struct world *w, struct session *s, const struct notice *x)
{
    struct notice *copy = xmalloc(sizeof(*copy));
    *copy = *x;
    copy->link = s->link;
    copy->number = s->link_number;
    uint64_t at = w->now + latency(w);
    if (at <= s->last_out)
        at = s->last_out + 1;
    if (at < s->link->stall_until)
        at = s->link->stall_until;
    s->last_out = at;
    if (s->relay < 0)
        ((struct follower *)s->link->owner)->in_flight++;
    struct event *e = relay_at(w, s->relay, s->life, at, "notification", hear_notice);
    e->p = copy;
    e->drop = drop_notice;
    e->account = x->account;
}

void notify_signal(struct world *w, const char *channel, int account)
{
    const struct account_row *a = &w->db.t.accounts[account];
    struct notice x = {.channel = channel[0], .account = account, .epoch = a->epoch};
    holder_name(a->holder, x.holder);
    for (int i = 0; i < SESSIONS; i++)
        if (w->db.sessions[i].serial && w->db.sessions[i].listens && !w->db.sessions[i].all)
            send_notice(w, &w->db.sessions[i], &x);
}

void notify_row(struct world *w, const struct listen_event *ev)
{
    struct notice x = {.channel = 'r', .account = ev->account - 1, .ev = *ev};
    for (int i = 0; i < SESSIONS; i++)
        if (w->db.sessions[i].serial && w->db.sessions[i].all)
            send_notice(w, &w->db.sessions[i], &x);
}

/* ---- restart, failover ---- */

static void db_back(struct world *w, struct event *e)
{
    if (w->db.starts == e->a)
        w->db.up = true;
}

void db_stop(struct world *w, uint64_t down)
{
    w->db.up = false;
    w->db.starts++;
    for (int i = 0; i < SESSIONS; i++)
        if (w->db.sessions[i].serial)
            session_end(w, &w->db.sessions[i], true,
                        w->now + (chance(w, 80) ? latency(w) : between(w, 5 * SECOND, 35 * SECOND)));
    for (int i = 0; i < SESSIONS; i++)
        w->db.sessions[i].serial = 0;
    app_database_lost(w);
    later(w, down, "db is up", db_back)->a = w->db.starts;
}

static void mark_lost(struct world *w)
{
    const struct tables *now = &w->db.t, *then = &w->db.standby;
    for (int64_t id = 1; id < now->next_id; id++) {
        const struct id_row *a = &now->ids[id], *b = &then->ids[id];
        bool same = a->stage == b->stage && a->nonce == b->nonce && a->outcome == b->outcome;
        if (same || a->stage == STAGE_OPEN)
            continue;
        w->was_failed_over[id] = true;
        if (b->stage == STAGE_NONE || b->stage == STAGE_OPEN) { /* the application's commit itself is lost */
            w->open -= a->stage != STAGE_FINISHED;
            w->must_end[id] = false;
        } else if (a->stage == STAGE_FINISHED) {
            w->open++;
        }
    }
}

/* The standby becomes the primary. With `lossy` it lacks what was committed since it fell behind. */
void db_failover(struct world *w, bool lossy)
{
    struct db *d = &w->db;
    db_stop(w, between(w, SECOND, 4 * SECOND));
    d->timeline++;
    if (!lossy || !d->standby_behind)
        return;
    mark_lost(w);
    d->lossy = true;
    int64_t next_id = d->t.next_id; /* sequences run ahead of what is logged */
    d->t = d->standby;
    d->t.next_id = next_id;
    for (int64_t id = 1; id < next_id; id++)
        if (d->t.ids[id].stage == STAGE_OPEN)
            d->t.ids[id].stage = STAGE_NONE;
    d->standby_behind = false;
    note(w, "failover with loss");
}
