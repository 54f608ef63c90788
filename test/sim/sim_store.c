/* A client's connections to the database: what store/conn*.c and store/store_pg.c do. A relay has three:
 * control (locks, claims), work, and one that listens; a follower has one. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

/* ---- connections ---- */

static void link_retry(struct world *w, struct event *e);

static void link_backoff(struct world *w, struct link *l)
{
    struct event *e = relay_at(w, l->relay, l->life, w->now + backoff_next(&l->backoff, &w->rng) * MS,
                               "connect again", link_retry);
    e->p = l;
    e->a = l->number;
}

static void link_result(struct world *w, struct event *e)
{
    struct link *l = e->p;
    if (l->number != e->a || l->up)
        return;
    if (!w->db.up || w->now < l->stall_until) {
        l->number++;
        link_backoff(w, l);
        return;
    }
    l->up = true;
    l->backoff.attempt = 0;
    l->session = session_open(w, l);
    l->serial = l->session->serial;
    l->session->listens = l->kind == LINK_LISTEN;
    l->session->all = l->kind == LINK_LISTEN && l->relay < 0;
    l->on_up(w, l);
}

static void link_retry(struct world *w, struct event *e)
{
    struct link *l = e->p;
    if (l->number == e->a && !l->up)
        link_open(w, l);
}

/* A few round trips; a peer that is silent is given up after five seconds. */
void link_open(struct world *w, struct link *l)
{
    uint64_t takes = 4 * latency(w);
    if (w->now < l->stall_until)
        takes = 5 * SECOND;
    struct event *e = relay_at(w, l->relay, l->life, w->now + takes, "connected?", link_result);
    e->p = l;
    e->a = l->number;
}

static void stmt_failed(struct world *w, struct event *e)
{
    struct stmt *s = e->p;
    s->done(w, s);
    stmt_unref(s);
}

static void drop_stmt(struct event *e)
{
    stmt_unref(e->p);
}

void stmt_fail_later(struct world *w, struct stmt *s, int code)
{
    s->code = code;
    struct event *e = relay_at(w, s->relay, s->life, w->now, "request failed", stmt_failed);
    e->p = s;
    e->drop = drop_stmt;
    e->account = s->account;
    e->a = (uint32_t)s->op;
}

static void link_is_down(struct world *w, struct event *e)
{
    struct link *l = e->p;
    l->on_down(w, l);
}

/* Nobody answers what was sent: its outcome is not known. Those callbacks come first. */
void link_lost(struct world *w, struct link *l)
{
    if (!l->up)
        return;
    l->up = false;
    l->number++;
    for (struct list *n = list_first(&l->sent); n; n = list_first(&l->sent)) {
        struct stmt *s = CONTAINER_OF(n, struct stmt, sent);
        list_remove(n);
        w->stats.unknown++;
        /* The server's end of it may still be carried out: what it finds is not what this end hears. */
        struct stmt *lost = xmalloc(sizeof(*lost));
        *lost = *s;
        lost->refs = 1;
        lost->queue = (struct list){0};
        lost->lookups = NULL;
        lost->snapshot = NULL;
        lost->outbox = NULL;
        lost->fixed = NULL;
        lost->stops = NULL;
        lost->bytes = NULL;
        lost->hashes = NULL;
        lost->events = NULL;
        lost->rows = NULL;
        lost->txs = NULL;
        if (s->rows) {
            lost->rows = xcalloc(s->count, sizeof(*s->rows));
            memcpy(lost->rows, s->rows, s->count * sizeof(*s->rows));
        }
        if (s->txs) {
            lost->txs = xcalloc(s->count, sizeof(*s->txs));
            memcpy(lost->txs, s->txs, s->count * sizeof(*s->txs));
        }
        stmt_unref(s);
        stmt_fail_later(w, lost, ERR_DB_UNKNOWN_OUTCOME);
    }
    struct event *e = relay_at(w, l->relay, l->life, w->now, "connection down", link_is_down);
    e->p = l;
    link_backoff(w, l);
}

static struct session *session_of(struct world *w, const struct link *l)
{
    return l->up && l->session && l->session->serial == l->serial && w->db.up ? l->session : NULL;
}

static void close_session(struct world *w, struct event *e)
{
    struct session *s = &w->db.sessions[e->a];
    if (s->serial != e->b)
        return;
    if (s->busy || !list_empty(&s->queue)) { /* the backend reads the end of input after what is before it */
        struct event *again = later(w, 5 * MS, "session closes", close_session);
        again->a = e->a;
        again->b = e->b;
        return;
    }
    session_end(w, s, false, 0);
}

/* The client's process is gone. Its host's end leaves the server in the dark for a while. */
void link_close(struct world *w, struct link *l, bool host)
{
    struct session *s = session_of(w, l);
    for (struct list *n = list_first(&l->sent); n; n = list_first(&l->sent)) {
        list_remove(n);
        stmt_unref(CONTAINER_OF(n, struct stmt, sent));
    }
    l->up = false;
    l->number++;
    if (!s)
        return;
    uint64_t at = host ? between(w, 5 * SECOND, 11 * SECOND) : latency(w);
    if (w->now + at <= s->last_in)
        at = s->last_in - w->now + 1;
    struct event *e = later(w, at, "session closes", close_session);
    e->a = (uint32_t)(s - w->db.sessions);
    e->b = s->serial;
}

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
        if (s) {
            struct event *e = later(w, latency(w), "session closes", close_session);
            e->a = (uint32_t)(s - w->db.sessions);
            e->b = s->serial;
        }
        struct event *e = relay_at(w, l->relay, l->life, w->now, "connection cut", found_out);
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
        struct event *e = relay_at(w, l->relay, l->life, w->now + client, "client gives up", client_gives_up);
        e->p = l;
        e->a = l->number;
    }
}

/* ---- statements on their way ---- */

static void arrive(struct world *w, struct event *e)
{
    struct session *s = &w->db.sessions[e->a];
    if (s->serial == e->b && w->db.up)
        session_take(w, s, e->p);
    else
        stmt_unref(e->p);
}

void stmt_send(struct world *w, struct link *l, struct stmt *s)
{
    if (!l->up) {
        stmt_fail_later(w, s, ERR_DB_UNAVAILABLE);
        return;
    }
    s->link = l;
    s->link_number = l->number;
    s->sent_at = w->now;
    list_append(&l->sent, &s->sent);
    if (!session_of(w, l))
        return; /* the peer is gone: this end will find out */
    struct session *at = l->session;
    uint64_t when = w->now + latency(w);
    if (when <= at->last_in)
        when = at->last_in + 1;
    if (when < l->stall_until)
        when = l->stall_until;
    at->last_in = when;
    s->refs++;
    struct event *e = later(w, when - w->now, "statement arrives", arrive);
    e->p = s;
    e->drop = drop_stmt;
    e->a = (uint32_t)(at - w->db.sessions);
    e->b = at->serial;
}

struct stmt *stmt_new(struct world *w, struct relay *r, int account, enum op op,
                      void (*done)(struct world *w, struct stmt *s))
{
    struct stmt *s = xcalloc(1, sizeof(*s));
    (void)w;
    s->refs = 1;
    s->op = op;
    s->relay = r ? r->index : -1;
    s->life = r ? r->life : 0;
    s->account = account;
    s->done = done;
    if (r) {
        s->holder = r->holder;
        s->generation = account >= 0 ? r->accounts[account].generation : 0;
        s->epoch = account >= 0 ? r->accounts[account].epoch : 0;
    }
    return s;
}

/* ---- the two sessions and their owner ---- */

static void store_moved(struct world *w, struct relay *r)
{
    r->store_up = r->links[LINK_CONTROL].up && r->links[LINK_WORK].up;
    relay_store_moved(w, r);
}

static void on_up(struct world *w, struct link *l)
{
    if (l->kind != LINK_LISTEN)
        store_moved(w, l->owner);
}

static void on_down(struct world *w, struct link *l)
{
    struct relay *r = l->owner;
    if (l->kind == LINK_LISTEN)
        return;
    r->store_up = false;
    if (l->kind == LINK_CONTROL) {
        locks_lost(w, r);
        if (r->running)
            account_poll(w, r, 0, (struct poll_event){.type = POLL_EV_CONTROL_LOST});
        if (r->running && !r->draining)
            elect_feed(w, r, &(struct elector_event){.type = ELECTOR_EV_CONTROL_LOST});
    }
    store_moved(w, r);
}

void store_links(struct world *w, struct relay *r)
{
    for (int k = 0; k < LINKS; k++) {
        struct link *l = &r->links[k];
        uint32_t number = l->number;
        *l = (struct link){.relay = r->index,
                           .life = r->life,
                           .kind = k,
                           .owner = r,
                           .number = number + 1,
                           .backoff = {.base_ms = 50, .cap_ms = 5000},
                           .on_up = on_up,
                           .on_down = on_down};
        list_init(&l->sent);
        link_open(w, l);
    }
}
