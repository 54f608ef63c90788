/* The server's end of a connection: statements one after the other, each a transaction of the
 * memory database in one moment; answers and notifications in their order; and what ends a
 * session. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"
#include "sim_memory.h"

enum { LOCK_TIMEOUT = 500000 }; /* microseconds; set_relay_session.sql */

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
                              .process = l->process,
                              .life = l->life,
                              .last_in = w->now,
                              .last_out = w->now};
        list_init(&s->queue);
        s->mem = db_session(w, s, link_channels(l));
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

/* `tell`: the client's end finds out after the answers that are on their way, and not before
 * `when`. */
void session_end(struct world *w, struct session *s, bool tell, uint64_t when)
{
    for (struct list *n = list_first(&s->queue); n; n = list_first(&s->queue)) {
        list_remove(n);
        message_unref(CONTAINER_OF(n, struct message, queue)); /* it was not carried out */
    }
    if (tell) {
        uint64_t at =
            s->last_out > w->now && chance(w, 60) ? s->last_out : w->now; /* or a reset overtakes */
        struct event *e = process_at(w, s->process, s->life, (at > when ? at : when) + 1,
                                     "session end", told_end);
        e->p = s->link;
        e->a = s->link_number;
    }
    note(w, "session %u of r%d ends", s->serial, s->process);
    db_session_end(w, s);
    s->serial = 0;
}

/* ---- statements ---- */

static void hear_answer(struct world *w, struct event *e)
{
    struct message *m = e->p;
    struct link *l = m->link;
    if (l->up && l->number == m->link_number && list_linked(&m->sent)) {
        list_remove(&m->sent);
        m->done(w, m);
        message_unref(m); /* the client's */
    }
    message_unref(m);
}

static void drop_message(struct event *e)
{
    message_unref(e->p);
}

static uint64_t out_at(struct world *w, struct session *s)
{
    uint64_t at = w->now + latency(w) + work_delay(w, s->link);
    if (at <= s->last_out)
        at = s->last_out + 1;
    if (at < s->link->stall_until)
        at = s->link->stall_until;
    return s->last_out = at;
}

static void answer(struct world *w, struct session *s, struct message *m)
{
    struct event *e = process_at(w, m->process, m->life, out_at(w, s), "db answers", hear_answer);
    e->p = m;
    e->drop = drop_message;
    e->account = m->account;
}

static void run_next(struct world *w, struct event *e);

/* As Postgres waits for a row: up to lock_timeout. */
bool session_lead_held(const struct world *w, const struct mem_session *asks, int account)
{
    for (int i = 0; i < SESSIONS; i++) {
        const struct session *s = &w->db.sessions[i];
        if (!s->serial || !s->busy || s->mem == asks || s->ends < w->now + LOCK_TIMEOUT)
            continue;
        const struct message *m = CONTAINER_OF(list_first(&s->queue), struct message, queue);
        if (m->locks && m->account == account)
            return true;
    }
    return false;
}

static void schedule(struct world *w, struct session *s)
{
    uint64_t exec = rng_between(&w->rng, w->plan.exec_us / 4 + 1, w->plan.exec_us);
    if (!w->healing && w->plan.fault_mask >> fault_number("slow-db") & 1 &&
        rng_below(&w->rng, 150) == 0)
        exec = between(w, 100 * MS, 4 * SECOND);
    if (w->now < w->db.slow_until)
        exec = rng_between(&w->rng, 100 * MS, 3 * SECOND);
    if (!w->healing && s->link->kind == LINK_WORK && has(w, FEATURE_SLOW_WORK) &&
        rng_below(&w->rng, 6) == 0)
        exec = between(w, 200 * MS, 8 * SECOND);
    s->busy = true;
    s->ends = w->now + exec;
    db_session_active(s);
    struct event *e = later(w, exec, "db runs", run_next);
    e->a = (uint32_t)(s - w->db.sessions);
    e->b = s->serial;
}

static bool loses_answer(struct world *w, const struct session *s)
{
    bool may = !w->healing && s->process < RELAYS &&
               w->plan.fault_mask >> fault_number("session-loss") & 1;
    return may && rng_below(&w->rng, s->link->kind == LINK_WORK ? 60 : 1000) == 0;
}

static void run_next(struct world *w, struct event *e)
{
    struct session *s = &w->db.sessions[e->a];
    if (s->serial != e->b)
        return;
    struct list *n = list_first(&s->queue);
    struct message *m = CONTAINER_OF(n, struct message, queue);
    list_remove(n);
    w->db.running = s;
    m->run(w, s, m);
    w->db.running = NULL;
    s->busy = false;
    if (s->serial != e->b) { /* it ended its own session */
        message_unref(m);
        return;
    }
    if (loses_answer(w, s)) { /* committed, and nobody is told */
        message_unref(m);
        session_end(w, s, true, w->now + latency(w));
        return;
    }
    answer(w, s, m);
    if (!list_empty(&s->queue))
        schedule(w, s);
}

void session_take(struct world *w, struct session *s, struct message *m)
{
    list_append(&s->queue, &m->queue);
    if (!s->busy)
        schedule(w, s);
}

/* ---- notifications ---- */

struct notice {
    struct link *link;
    uint32_t number;
    int from_pid;
    const char *channel;
    uint32_t *in_flight; /* of a follower */
    char payload[];
};

static void hear_notice(struct world *w, struct event *e)
{
    struct notice *x = e->p;
    struct link *l = x->link;
    if (x->in_flight)
        (*x->in_flight)--;
    if (l->up && l->number == x->number)
        link_notify(w, l, x->from_pid, x->channel, x->payload);
    free(x);
}

static void drop_notice(struct event *e)
{
    struct notice *x = e->p;
    if (x->in_flight)
        (*x->in_flight)--;
    free(x);
}

void session_notify(struct world *w, struct session *s, int from_pid, const char *channel,
                    const char *payload)
{
    struct notice *x = world_alloc(sizeof(*x) + strlen(payload) + 1);
    x->link = s->link;
    x->number = s->link_number;
    x->from_pid = from_pid;
    x->channel = channel;
    memcpy(x->payload, payload, strlen(payload) + 1);
    if (s->process >= RELAYS) {
        x->in_flight = &w->followers[s->process - RELAYS].in_flight;
        (*x->in_flight)++;
    }
    struct event *e = process_at(w, s->process, s->life, out_at(w, s), "notification", hear_notice);
    e->p = x;
    e->drop = drop_notice;
}
