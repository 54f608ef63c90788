/* store/conn.h for simulated processes: a connection is a link (sim_link.c), a query a message
 * on it. The product above it (store/pg/, listen/listen*.c) runs as it is. What the
 * server says to a statement is in sim_sql.c. As in store/conn*.c a callback never fires inside
 * the call that started it, queries are answered before on_down, and a session whose oldest
 * query waits for too long is given up. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "sim.h"
#include "sim_sql.h"
#include "store/mem_db.h"

struct conn {
    struct world *w;
    struct loop *loop;
    struct link *link;
    struct conn_config config;
    unsigned channels;
    struct loop_timer *answer; /* armed while a query waits for its answer */
    struct loop_task reconnect, closed;
    bool opened;
    void (*close_cb)(void *arg);
    void *close_arg;
};

unsigned link_channels(const struct link *l)
{
    return ((const struct conn *)l->owner)->channels;
}

void link_notify(struct world *w, struct link *l, int from_pid, const char *channel,
                 const char *payload)
{
    struct conn *c = l->owner;
    (void)w;
    if (c->config.on_notify)
        c->config.on_notify(c->config.arg, channel, payload, from_pid);
}

/* ---- answers in time ---- */

static void watch(struct conn *c)
{
    struct list *n = list_first(&c->link->sent);
    if (!c->config.answer_timeout_ms || !c->link->up || !n)
        loop_timer_stop(c->answer);
    else if (!loop_timer_armed(c->answer))
        loop_timer_at(c->answer, loop_now_ms(c->loop) + c->config.answer_timeout_ms);
}

static void on_overdue(void *arg)
{
    struct conn *c = arg;
    if (c->link->up && !list_empty(&c->link->sent))
        link_lost(c->w, c->link);
}

/* A result came: the time of the next one begins. */
void conn_answered(struct conn *c)
{
    loop_timer_stop(c->answer);
    watch(c);
}

void conn_send(struct conn *c, struct message *m)
{
    message_send(c->w, c->link, m);
    watch(c);
}

/* ---- ups and downs ---- */

static void on_up(struct world *w, struct link *l)
{
    struct conn *c = l->owner;
    (void)w;
    c->config.on_up(c->config.arg);
}

static void on_down(struct world *w, struct link *l)
{
    struct conn *c = l->owner;
    struct err err;
    (void)w;
    loop_timer_stop(c->answer);
    err_set(&err, ERR_DB_UNAVAILABLE, "the connection to the database is lost");
    c->config.on_down(c->config.arg, &err);
}

static void reconnect(struct loop_task *task)
{
    struct conn *c = CONTAINER_OF(task, struct conn, reconnect);
    if (c->link->up)
        link_lost(c->w, c->link);
}

const char *conn_login(const struct conn *c)
{
    (void)c;
    return "relay";
}

void conn_reconnect(struct conn *c, const struct err *why)
{
    (void)why;
    if (c->link->up && !list_linked(&c->reconnect.node))
        loop_post(c->loop, &c->reconnect, reconnect);
}

bool conn_is_up(const struct conn *c)
{
    return c->link->up;
}

bool conn_is_pooled(const struct conn *c)
{
    (void)c;
    return false;
}

/* ---- queries ---- */

static void query_done(struct world *w, struct message *m)
{
    struct query *x = CONTAINER_OF(m, struct query, message);
    struct conn_query *q = m->client;
    struct conn *c = m->link->owner;
    err_clear(&q->err);
    if (m->code) {
        err_set(&q->err, m->code, "the database did not answer");
    } else {
        conn_answered(c);
        query_heard(w, x);
    }
    q->cb(q, m->code ? NULL : x->result);
}

void conn_query_start(struct conn *c, struct conn_query *q, const char *prepare_name,
                      const char *sql, int nparams, const struct conn_param *params,
                      int result_format,
                      void (*cb)(struct conn_query *q, const struct conn_result *r))
{
    (void)prepare_name;
    struct query *x = query_new(sql, nparams, params, result_format);
    q->cb = cb;
    x->message.client = q;
    x->message.done = query_done;
    conn_send(c, &x->message);
}

/* ---- life ---- */

static unsigned channels_of(const char *const *setup)
{
    static const struct {
        const char *sql;
        unsigned channel;
    } all[] = {{"LISTEN leader_change", MEM_LEADER_CHANGE},
               {"LISTEN outbox_wake", MEM_OUTBOX_WAKE},
               {"LISTEN pending_tx_new", MEM_TX_NEW},
               {"LISTEN pending_tx_update", MEM_TX_UPDATE},
               {"LISTEN pending_tx_removed", MEM_TX_REMOVED}};
    unsigned channels = 0;
    for (size_t i = 0; setup && setup[i]; i++)
        for (size_t k = 0; k < ARRAY_LEN(all); k++)
            channels |= strcmp(setup[i], all[k].sql) ? 0 : all[k].channel;
    return channels;
}

struct conn *conn_new(struct loop *l, const struct conn_config *config)
{
    struct conn *c = xcalloc(1, sizeof(*c));
    struct process *p = loop_process(l);
    c->w = loop_world(l);
    c->loop = l;
    c->config = *config;
    c->config.dsn = c->config.name = NULL;
    c->config.setup = NULL;
    c->channels = channels_of(config->setup);
    c->answer = loop_timer_new(l, on_overdue, c);
    int kind = link_kind(config->dsn, config->name);
    c->link = process_link(c->w, p, kind);
    link_init(c->w, c->link, p, kind, c);
    c->link->on_up = on_up;
    c->link->on_down = on_down;
    return c;
}

void conn_open(struct conn *c)
{
    c->opened = true;
    link_open(c->w, c->link);
}

static void closed(struct loop_task *task)
{
    struct conn *c = CONTAINER_OF(task, struct conn, closed);
    void (*cb)(void *arg) = c->close_cb;
    void *arg = c->close_arg;
    free(c);
    if (cb)
        cb(arg);
}

/* Two rounds later: what was on its way is answered in the next one. */
static void nearly_closed(struct loop_task *task)
{
    struct conn *c = CONTAINER_OF(task, struct conn, closed);
    loop_post(c->loop, &c->closed, closed);
}

void conn_close(struct conn *c, void (*cb)(void *arg), void *arg)
{
    c->close_cb = cb;
    c->close_arg = arg;
    c->answer = loop_timer_close(c->answer);
    loop_task_cancel(&c->reconnect);
    link_shut(c->w, c->link);
    loop_post(c->loop, &c->closed, nearly_closed);
}
