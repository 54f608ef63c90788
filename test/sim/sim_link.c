/* Connections to the database: the client's end (a link) and the server's (a session), with what
 * is on its way between them. Messages of a connection arrive in the order in which they were
 * sent, and are carried out one after the other; each is one transaction of the memory database.
 * What a message finds may never reach whoever sent it: then its outcome is not known. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

/* Each way, beside the latency that all have. */
uint64_t work_delay(struct world *w, const struct link *l)
{
    bool slow = !w->healing && l->kind == LINK_WORK && has(w, FEATURE_SLOW_WORK);
    return slow ? w->plan.work_delay_us : 0;
}

/* ---- messages: shared by the two ends ---- */

void message_unref(struct message *m)
{
    if (--m->refs)
        return;
    if (list_linked(&m->borrowed))
        list_remove(&m->borrowed);
    m->release(m);
    free(m);
}

static void drop_message(struct event *e)
{
    message_unref(e->p);
}

static void failed(struct world *w, struct event *e)
{
    struct message *m = e->p;
    m->done(w, m);
    message_unref(m);
}

/* The client's end answers by itself, from its loop. Takes the client's share of the message. */
void message_fail_later(struct world *w, struct message *m, int code)
{
    m->code = code;
    struct event *e = process_at(w, m->process, m->life, w->now, "request failed", failed);
    e->p = m;
    e->drop = drop_message;
    e->account = m->account;
}

static struct session *session_of(const struct world *w, const struct link *l)
{
    return l->up && l->session && l->session->serial == l->serial && w->db.up ? l->session : NULL;
}

static void arrive(struct world *w, struct event *e)
{
    struct session *s = &w->db.sessions[e->a];
    if (s->serial == e->b && w->db.up)
        session_take(w, s, e->p);
    else
        message_unref(e->p);
}

void message_send(struct world *w, struct link *l, struct message *m)
{
    m->refs = 1;
    m->process = l->process;
    m->life = l->life;
    m->link = l;
    m->link_number = l->number;
    m->sent_at = w->now;
    if (!l->up) {
        message_fail_later(w, m, ERR_DB_UNAVAILABLE);
        return;
    }
    list_append(&l->sent, &m->sent);
    if (!session_of(w, l))
        return; /* the peer is gone: this end will find out */
    struct session *at = l->session;
    uint64_t when = w->now + latency(w) + work_delay(w, l);
    if (when <= at->last_in)
        when = at->last_in + 1;
    if (when < l->stall_until)
        when = l->stall_until;
    at->last_in = when;
    m->refs++;
    struct event *e = later(w, when - w->now, "statement arrives", arrive);
    e->p = m;
    e->drop = drop_message;
    e->a = (uint32_t)(at - w->db.sessions);
    e->b = at->serial;
}

/* ---- the client's end ---- */

static void link_retry(struct world *w, struct event *e);

static void link_backoff(struct world *w, struct link *l)
{
    struct event *e =
        process_at(w, l->process, l->life, w->now + backoff_next(&l->backoff, &w->rng) * MS,
                   "connect again", link_retry);
    e->p = l;
    e->a = l->number;
}

static void link_result(struct world *w, struct event *e)
{
    struct link *l = e->p;
    if (l->number != e->a || l->up || l->closing)
        return;
    if (!w->db.up || w->now < l->stall_until) {
        l->number++;
        link_backoff(w, l);
        l->on_down(w, l);
        return;
    }
    l->up = true;
    l->backoff.attempt = 0;
    l->session = session_open(w, l);
    l->serial = l->session->serial;
    l->on_up(w, l);
}

static void link_retry(struct world *w, struct event *e)
{
    struct link *l = e->p;
    if (l->number == e->a && !l->up && !l->closing)
        link_open(w, l);
}

/* A few round trips; a peer that is silent is given up after five seconds. */
void link_open(struct world *w, struct link *l)
{
    uint64_t takes = 4 * latency(w);
    if (w->now < l->stall_until)
        takes = 5 * SECOND;
    struct event *e = process_at(w, l->process, l->life, w->now + takes, "connected?", link_result);
    e->p = l;
    e->a = l->number;
}

static void link_is_down(struct world *w, struct event *e)
{
    struct link *l = e->p;
    if (l->number == e->a && !l->closing)
        l->on_down(w, l);
}

static void fail_all(struct world *w, struct link *l, int code)
{
    for (struct list *n = list_first(&l->sent); n; n = list_first(&l->sent)) {
        list_remove(n);
        w->stats.unknown += code == ERR_DB_UNKNOWN_OUTCOME;
        message_fail_later(w, CONTAINER_OF(n, struct message, sent), code);
    }
}

static void close_session(struct world *w, struct event *e)
{
    struct session *s = &w->db.sessions[e->a];
    if (s->serial != e->b)
        return;
    if (s->busy ||
        !list_empty(&s->queue)) { /* the backend reads the end of input after what is before it */
        struct event *again = later(w, 5 * MS, "session closes", close_session);
        again->a = e->a;
        again->b = e->b;
        return;
    }
    session_end(w, s, false, 0);
}

static void close_session_in(struct world *w, const struct session *s, uint64_t us)
{
    struct event *e = later(w, us, "session closes", close_session);
    e->a = (uint32_t)(s - w->db.sessions);
    e->b = s->serial;
}

/* Nobody answers what was sent: its outcome is not known. Those callbacks come first. */
void link_lost(struct world *w, struct link *l)
{
    if (!l->up)
        return;
    struct session *s = session_of(w, l);
    l->up = false;
    l->number++;
    if (s)
        close_session_in(w, s, latency(w));
    fail_all(w, l, ERR_DB_UNKNOWN_OUTCOME);
    struct event *e = process_at(w, l->process, l->life, w->now, "connection down", link_is_down);
    e->p = l;
    e->a = l->number;
    link_backoff(w, l);
}

/* The owner closes it: what is on its way is cancelled, as far as this end is concerned. */
void link_shut(struct world *w, struct link *l)
{
    struct session *s = session_of(w, l);
    l->closing = true;
    l->up = false;
    l->number++;
    if (s)
        close_session_in(w, s, latency(w));
    fail_all(w, l, ERR_CANCELED);
}

/* The client's process is gone. Its host's end leaves the server in the dark for a while. */
void link_close(struct world *w, struct link *l, bool host)
{
    struct session *s = session_of(w, l);
    for (struct list *n = list_first(&l->sent); n; n = list_first(&l->sent)) {
        list_remove(n);
        message_unref(CONTAINER_OF(n, struct message, sent));
    }
    l->up = false;
    l->number++;
    if (!s)
        return;
    uint64_t at = host ? between(w, 5 * SECOND, 11 * SECOND) : latency(w);
    if (w->now + at <= s->last_in)
        at = s->last_in - w->now + 1;
    close_session_in(w, s, at);
}

void link_init(struct world *w, struct link *l, const struct process *p, int kind, void *owner)
{
    uint32_t number = l->number;
    (void)w;
    *l = (struct link){.process = p->index,
                       .life = p->life,
                       .kind = kind,
                       .owner = owner,
                       .number = number + 1,
                       .backoff = {.base_ms = 50, .cap_ms = 5000}};
    list_init(&l->sent);
}

/* ---- faults ---- */

static void found_out(struct world *w, struct event *e)
{
    struct link *l = e->p;
    if (l->up && l->number == e->a)
        link_lost(w, l);
}

/* One end is cut off first, the other finds out. */
void link_cut(struct world *w, struct link *l, bool client_first)
{
    struct session *s = session_of(w, l);
    if (!l->up)
        return;
    if (client_first) {
        if (s)
            close_session_in(w, s, latency(w));
        struct event *e = process_at(w, l->process, l->life, w->now, "connection cut", found_out);
        e->p = l;
        e->a = l->number;
    } else if (s) {
        session_end(w, s, true, w->now + latency(w));
    }
}

static void server_gives_up(struct world *w, struct event *e)
{
    struct session *s = &w->db.sessions[e->a];
    if (s->serial == e->b)
        session_end(w, s, true, e->n);
}

static void client_gives_up(struct world *w, struct event *e)
{
    struct link *l = e->p;
    if (l->number == e->a && l->up && w->now < l->stall_until)
        link_lost(w, l);
}

/* Nothing gets through for so long, either way; both ends give up after a time of their own. */
void link_stall(struct world *w, struct link *l, uint64_t us)
{
    struct session *s = session_of(w, l);
    uint64_t server = between(w, 10 * SECOND, 12 * SECOND), client = 35 * SECOND;
    l->stall_until = w->now + us;
    if (s && us > server) {
        struct event *e = later(w, server, "server gives up", server_gives_up);
        e->a = (uint32_t)(s - w->db.sessions);
        e->b = s->serial;
        e->n = l->stall_until;
    }
    if (l->up && us > client) {
        struct event *e =
            process_at(w, l->process, l->life, w->now + client, "client gives up", client_gives_up);
        e->p = l;
        e->a = l->number;
    }
}
