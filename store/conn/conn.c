/* One connection: its states, deadlines and end.
 *
 *                  .---------------- next address / next host <---------------.
 *                  v                                                          |
 *   IDLE -> RESOLVE_WAIT -> CONNECT_WAIT -> SETUP_WAIT ----failed-------------+
 *              ^   (a number or a socket       |                              | none left
 *              |    skips the look-up)         v                              v
 *              |                               UP --lost--------------> BACKOFF_WAIT
 *              '--------------------------------------------------------------'
 *   any -> CLOSING -> freed
 *
 * One timer serves the state: the deadline of an address, the back-off, or (UP) the next answer.
 * The back-off starts anew only after a whole setup succeeded. */
#include "conn/conn_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "sql.h"

enum {
    DEFAULT_CONNECT_MS = 5000,
    DEFAULT_BACKOFF_MS = 50,
    DEFAULT_BACKOFF_CAP_MS = 5000,
    TELL_NO_ROOM_MS = 60000
};

static const char *const state_names[] = {
    [CONN_IDLE] = "IDLE",
    [CONN_RESOLVE_WAIT] = "RESOLVE_WAIT",
    [CONN_CONNECT_WAIT] = "CONNECT_WAIT",
    [CONN_SETUP_WAIT] = "SETUP_WAIT",
    [CONN_UP] = "UP",
    [CONN_BACKOFF_WAIT] = "BACKOFF_WAIT",
    [CONN_CLOSING] = "CLOSING",
};

static const char *conn_name(const struct conn *c)
{
    return c->config.name ? c->config.name : "-";
}

void conn__move(struct conn *c, enum conn_state state)
{
    log_debug("conn.state", "conn=%s from=%s to=%s", conn_name(c), state_names[c->state],
              state_names[state]);
    c->state = state;
}

void conn__deadline(struct conn *c, uint64_t ms)
{
    c->deadline_ms = ms;
    loop_timer_at(c->timer, loop_now_ms(c->loop) + ms);
}

/* ---- the timer ---- */

static void on_timer(void *arg)
{
    struct conn *c = arg;
    struct err err = {0};
    switch (c->state) {
    case CONN_RESOLVE_WAIT:
        loop_resolve_cancel(&c->resolve);
        err_set(&err, ERR_DB_UNAVAILABLE, "name \"%s\" does not resolve within %llu ms",
                c->dsn.hosts[c->host].host, (unsigned long long)c->deadline_ms);
        conn__address_failed(c, &err);
        return;
    case CONN_CONNECT_WAIT:
    case CONN_SETUP_WAIT: {
        const char *host = PQhost(c->pg);
        const char *port = PQport(c->pg);
        err_set(&err, ERR_DB_UNAVAILABLE, "no answer from \"%s\" port %s within %llu ms%s",
                host ? host : "", port ? port : "", (unsigned long long)c->deadline_ms,
                c->deadline_ms == c->config.connect_timeout_ms
                    ? " (connect_timeout=SECONDS in the connection string allows more)"
                    : "");
        conn__address_failed(c, &err);
        return;
    }
    case CONN_UP:
        conn__answer_overdue(c);
        return;
    case CONN_BACKOFF_WAIT:
        conn__round_start(c);
        return;
    case CONN_IDLE:
    case CONN_CLOSING:
        return;
    }
    UNREACHABLE();
}

/* ---- ups and downs ---- */

/* Who waits for this session tries again, and has nothing to say of an outage that the others do
 * not see: the server is there and has no room for one more. */
static void tell_no_room(struct conn *c)
{
    uint64_t now = loop_now_ms(c->loop);
    if (strcmp(c->down_err.sqlstate, "53300") != 0 || now < c->tell_no_room_ms)
        return;
    c->tell_no_room_ms = now + TELL_NO_ROOM_MS;
    log_warn("database.no_connection", "session=\"%s\" text=\"%s\"",
             c->config.name ? c->config.name : "", c->down_err.text);
}

static void report_down(struct loop_task *task)
{
    struct conn *c = CONTAINER_OF(task, struct conn, down_task);
    tell_no_room(c);
    if (c->config.on_down)
        c->config.on_down(c->config.arg, &c->down_err);
}

/* The task runs after those of the queries that were answered just before: they come first. */
static void go_down(struct conn *c, const struct err *err)
{
    c->down_err = *err;
    if (!list_linked(&c->down_task.node))
        loop_post(c->loop, &c->down_task, report_down);
}

static void wait_backoff(struct conn *c)
{
    conn__move(c, CONN_BACKOFF_WAIT);
    conn__deadline(c, backoff_next(&c->backoff, &c->rng));
}

void conn__up(struct conn *c)
{
    c->first_host = c->host;
    backoff_reset(&c->backoff);
    loop_timer_stop(c->timer);
    conn__move(c, CONN_UP);
    if (c->config.on_up)
        c->config.on_up(c->config.arg);
}

/* A standby or a refused login says more than "connection refused" of another host. */
static void remember_failure(struct conn *c, const struct err *err)
{
    if (!c->round_err.code || c->round_err.code == ERR_DB_UNAVAILABLE)
        c->round_err = *err;
}

void conn__address_failed(struct conn *c, const struct err *err)
{
    log_debug("conn.address_failed", "conn=%s error=%s text=\"%s\"", conn_name(c),
              err_name(err->code), err->text);
    remember_failure(c, err);
    conn__session_end(c);
    conn__next_address(c);
}

void conn__round_failed(struct conn *c, const struct err *err)
{
    wait_backoff(c);
    go_down(c, err);
}

void conn__session_lost(struct conn *c, const struct err *err)
{
    if (c->state == CONN_SETUP_WAIT) {
        conn__address_failed(c, err);
        return;
    }
    PRE(c->state == CONN_UP);
    struct err why = *err; /* err may live in what ends now */
    conn__session_end(c);
    conn__abandon(c, ERR_DB_UNKNOWN_OUTCOME, ERR_DB_UNAVAILABLE, why.text);
    wait_backoff(c);
    go_down(c, &why);
}

/* ---- a look at the session from the loop ---- */

static void check_session(struct loop_task *task)
{
    struct conn *c = CONTAINER_OF(task, struct conn, check_task);
    if (c->state != CONN_UP && c->state != CONN_SETUP_WAIT)
        return;
    if (!conn__read(c)) /* what the server said last explains more */
        return;
    if (c->check_err.code && (c->state == CONN_UP || c->state == CONN_SETUP_WAIT))
        conn__session_lost(c, &c->check_err);
}

void conn__check_later(struct conn *c, const struct err *why)
{
    c->check_err = *why;
    if (!list_linked(&c->check_task.node))
        loop_post(c->loop, &c->check_task, check_session);
}

void conn_reconnect(struct conn *c, const struct err *why)
{
    if (c->state == CONN_UP || c->state == CONN_SETUP_WAIT)
        conn__check_later(c, why);
}

/* ---- life ---- */

static char *copy(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

struct conn *conn_new(struct loop *l, const struct conn_config *config)
{
    PRE(config->dsn);
    struct conn *c = xcalloc(1, sizeof(*c));
    c->loop = l;
    c->config = *config;
    c->config.name = copy(config->name);
    c->config.dsn = NULL; /* may hold a password: kept once, in c->dsn */
    size_t own = 0;
    while (config->setup && config->setup[own])
        own++;
    c->setup_count = 1 + own;
    c->setup = xcalloc(c->setup_count + 1, sizeof(char *));
    c->setup[0] = xstrdup(sql__text(SQL_SET_SESSION));
    for (size_t i = 0; i < own; i++)
        c->setup[1 + i] = xstrdup(config->setup[i]);
    c->backoff.base_ms = config->backoff_base_ms ? config->backoff_base_ms : DEFAULT_BACKOFF_MS;
    c->backoff.cap_ms = config->backoff_cap_ms ? config->backoff_cap_ms : DEFAULT_BACKOFF_CAP_MS;
    if (c->backoff.cap_ms < c->backoff.base_ms)
        c->backoff.cap_ms = c->backoff.base_ms;
    c->rng.state = loop_seed(l);
    list_init(&c->queued);
    list_init(&c->sent);
    conn__dsn_parse(&c->dsn, config->dsn, &c->dsn_err);
    if (c->dsn.connect_timeout_ms)
        c->config.connect_timeout_ms = c->dsn.connect_timeout_ms;
    else if (!config->connect_timeout_ms)
        c->config.connect_timeout_ms = DEFAULT_CONNECT_MS;
    c->config.refuse_standby |= c->dsn.want_primary;
    c->timer = loop_timer_new(l, on_timer, c);
    return c;
}

void conn_open(struct conn *c)
{
    PRE(c->state == CONN_IDLE);
    if (c->dsn_err.code)
        go_down(c, &c->dsn_err); /* no second try would read it differently */
    else
        conn__round_start(c);
}

bool conn_is_up(const struct conn *c)
{
    return c->state == CONN_UP;
}

const char *conn_login(const struct conn *c)
{
    PRE(conn_is_up(c));
    return PQuser(c->pg);
}

bool conn_is_pooled(const struct conn *c)
{
    return c->state == CONN_UP && c->pooled;
}

static void free_conn(struct loop_task *task)
{
    struct conn *c = CONTAINER_OF(task, struct conn, close_task);
    void (*cb)(void *arg) = c->close_cb;
    void *arg = c->close_arg;
    for (size_t i = 0; i < c->setup_count; i++)
        free(c->setup[i]);
    for (size_t i = 0; i < c->statement_count; i++) {
        free(c->statements[i]->name);
        free(c->statements[i]);
    }
    free(c->setup);
    free(c->statements);
    free((char *)c->config.name);
    conn__dsn_done(&c->dsn);
    free(c);
    if (cb)
        cb(arg);
}

void conn_close(struct conn *c, void (*cb)(void *arg), void *arg)
{
    PRE(c->state != CONN_CLOSING);
    conn__session_end(c);
    loop_resolve_cancel(&c->resolve);
    conn__move(c, CONN_CLOSING);
    c->timer = loop_timer_close(c->timer);
    loop_task_cancel(&c->down_task);
    loop_task_cancel(&c->check_task);
    conn__abandon(c, ERR_CANCELED, ERR_CANCELED, "the connection was closed");
    c->close_cb = cb;
    c->close_arg = arg;
    loop_post(c->loop, &c->close_task, free_conn); /* after the callbacks of the queries */
}
