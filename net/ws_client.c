/* The life of a connection; the picture is in net/ws_client.h.
 *
 * While OPEN it sends a ping each third of the silence time-out; after three pings in a row without
 * a byte from the peer the connection is dead. It counts pings instead of reading the clock, so a
 * process that was stopped for a while reads what waits in the socket before it judges. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/host.h"
#include "ws_internal.h"

enum { PINGS_MISSED_MAX = 3 };

static void connect_next(struct loop_task *task);
static void deadline_passed(void *arg);
static void ping(void *arg);

/* ---- making ---- */

static uint32_t value_or(uint32_t value, uint32_t fallback)
{
    return value ? value : fallback;
}

static struct ws_client_config config_copy(const struct ws_client_config *config)
{
    struct ws_client_config c = *config;
    c.url = host_url_shown(config->url); /* for messages; ws_url has the parts */
    c.peer = config->peer ? config->peer : "server";
    c.ca_file = config->ca_file ? xstrdup(config->ca_file) : NULL;
    c.connect_timeout_ms = value_or(c.connect_timeout_ms, 5000);
    c.silence_timeout_ms = value_or(c.silence_timeout_ms, 15000);
    c.message_max_bytes = value_or(c.message_max_bytes, 64u << 20);
    return c;
}

static void client_free(struct ws_client *c)
{
    loop_timer_close(c->deadline);
    loop_timer_close(c->ping);
    ws__frames_done(c);
    ws__url_done(&c->url);
    free((char *)c->config.url);
    free((char *)c->config.ca_file);
    free(c);
}

struct ws_client *ws_client_new(struct loop *l, const struct ws_client_config *config,
                                struct err *ret_err)
{
    struct ws_url url;
    PRE(config->on_open && config->on_text && config->on_closed);
    if (ws__url_parse(config->url, config->peer ? config->peer : "server", &url, ret_err))
        return NULL;
    struct ws_client *c = xcalloc(1, sizeof(*c));
    c->loop = l;
    c->config = config_copy(config);
    c->url = url;
    ws__frames_init(c);
    c->conn = ws__conn_new(c, ret_err);
    if (!c->conn) {
        client_free(c);
        return NULL;
    }
    c->deadline = loop_timer_new(l, deadline_passed, c);
    c->ping = loop_timer_new(l, ping, c);
    return c;
}

/* ---- ending ---- */

void ws_client_drop(struct ws_client *c)
{
    if (c->phase == WS_CLOSED || c->phase == WS_CLOSING)
        return;
    c->phase = WS_CLOSED;
    ws__conn_drop(c->conn);
    loop_resolve_cancel(&c->resolve);
    loop_task_cancel(&c->next_task);
    loop_timer_stop(c->deadline);
    loop_timer_stop(c->ping);
    ws__frames_end(c);
}

static void lose(struct ws_client *c, const struct err *why)
{
    struct err reason = *why; /* the next attempt overwrites attempt_why */
    ws_client_drop(c);
    c->config.on_closed(c->config.arg, &reason);
}

static void conn_freed(struct ws_client *c)
{
    void (*cb)(void *arg) = c->close_cb;
    void *arg = c->close_arg;
    client_free(c);
    if (cb)
        cb(arg);
}

void ws_client_close(struct ws_client *c, void (*cb)(void *arg), void *arg)
{
    PRE(c->phase != WS_CLOSING);
    ws_client_drop(c);
    c->phase = WS_CLOSING;
    c->close_cb = cb;
    c->close_arg = arg;
    ws__conn_free(c->conn, conn_freed);
}

/* ---- connecting ---- */

uint64_t ws_client_retry_after_ms(const struct ws_client *c)
{
    return c->retry_after_ms;
}

static void resolved(struct loop_resolve *resolve)
{
    struct ws_client *c = CONTAINER_OF(resolve, struct ws_client, resolve);
    PRE(c->phase == WS_RESOLVE_WAIT);
    if (resolve->err.code) {
        struct err why;
        err_set(&why, ERR_NET, "%s: %s", c->config.url, resolve->err.text);
        lose(c, &why);
        return;
    }
    c->phase = WS_CONNECT_WAIT;
    c->addr_next = 0;
    connect_next(&c->next_task);
}

void ws_client_open(struct ws_client *c)
{
    PRE(c->phase == WS_CLOSED);
    c->phase = WS_RESOLVE_WAIT;
    c->retry_after_ms = 0;
    loop_timer_at(c->deadline, loop_now_ms(c->loop) + c->config.connect_timeout_ms);
    loop_resolve_start(c->loop, &c->resolve, c->url.host, resolved);
}

/* Try the addresses of the name in turn, each with its own deadline. */
static void connect_next(struct loop_task *task)
{
    struct ws_client *c = CONTAINER_OF(task, struct ws_client, next_task);
    PRE(c->phase == WS_CONNECT_WAIT);
    while (c->addr_next < c->resolve.count) {
        const char *addr = c->resolve.addr[c->addr_next++];
        loop_timer_at(c->deadline, loop_now_ms(c->loop) + c->config.connect_timeout_ms);
        if (ws__conn_connect(c->conn, addr))
            return;
        err_set(&c->attempt_why, ERR_NET, "%s: cannot connect to %s", c->config.url, addr);
    }
    lose(c, &c->attempt_why);
}

static void attempt_failed(struct ws_client *c, const char *why)
{
    loop_timer_stop(c->deadline);
    err_set(&c->attempt_why, ERR_NET, "%s: %s", c->config.url, why);
    if (!list_linked(&c->next_task.node))
        loop_post(c->loop, &c->next_task, connect_next);
}

static void deadline_passed(void *arg)
{
    struct ws_client *c = arg;
    struct err why;
    switch (c->phase) {
    case WS_RESOLVE_WAIT:
        err_set(&why, ERR_TIMEOUT, "%s: its name did not resolve within %u ms", c->config.url,
                c->config.connect_timeout_ms);
        lose(c, &why);
        return;
    case WS_CONNECT_WAIT:
        ws__conn_drop(c->conn);
        attempt_failed(c, "no connection in time");
        return;
    case WS_OPEN:
    case WS_CLOSED:
    case WS_CLOSING:
        return;
    }
}

/* ---- open ---- */

static uint64_t ping_ms(const struct ws_client *c)
{
    uint64_t ms = c->config.silence_timeout_ms / PINGS_MISSED_MAX;
    return ms ? ms : 1;
}

void ws__on_open(struct ws_client *c)
{
    PRE(c->phase == WS_CONNECT_WAIT);
    c->phase = WS_OPEN;
    c->alive = true;
    c->missed = 0;
    loop_timer_stop(c->deadline);
    loop_timer_at(c->ping, loop_now_ms(c->loop) + ping_ms(c));
    c->config.on_open(c->config.arg);
}

void ws__on_bytes(struct ws_client *c)
{
    c->alive = true;
}

void ws__on_text(struct ws_client *c, const char *text, size_t len)
{
    PRE(c->phase == WS_OPEN);
    c->config.on_text(c->config.arg, text, len);
}

void ws__on_closed(struct ws_client *c, const char *why)
{
    struct err reason;
    PRE(c->phase == WS_CONNECT_WAIT || c->phase == WS_OPEN);
    if (c->phase == WS_CONNECT_WAIT) {
        attempt_failed(c, why);
        return;
    }
    err_set(&reason, ERR_NET, "%s: %s", c->config.url, why);
    lose(c, &reason);
}

static void ping(void *arg)
{
    struct ws_client *c = arg;
    PRE(c->phase == WS_OPEN);
    c->missed = c->alive ? 0 : c->missed + 1;
    c->alive = false;
    if (c->missed >= PINGS_MISSED_MAX) {
        struct err why;
        err_set(&why, ERR_NET, "%s: silent for %u ms", c->config.url, c->config.silence_timeout_ms);
        lose(c, &why);
        return;
    }
    ws__conn_ping(c->conn);
    loop_timer_at(c->ping, loop_now_ms(c->loop) + ping_ms(c));
}
