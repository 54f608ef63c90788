/* The connection: connect, dispatch messages, be lost, come back.
 *
 *   CLOSED -> CONNECT_WAIT -> OPEN                  (*_WAIT: suspended until a callback)
 *               ^     |        |
 *               |     v        v
 *             BACKOFF_WAIT <- rpc__lose             any -> CLOSING -> freed
 *             (CLOSED after rpc_stop)
 *
 * The WebSocket client (net/) resolves, connects, pings and reports the end of a connection. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/host.h"
#include "base/log.h"
#include "rpc_internal.h"

static void on_open(void *arg);
static void on_text(void *arg, const char *text, size_t len);
static void on_closed(void *arg, const struct err *why);
static void backoff_over(void *arg);

/* ---- making ---- */

static uint32_t value_or(uint32_t value, uint32_t fallback)
{
    return value ? value : fallback;
}

static struct rpc_config config_copy(const struct rpc_config *config)
{
    struct rpc_config c = *config;
    c.url = host_url_shown(config->url); /* for messages; the client connects */
    c.ca_file = NULL;
    c.call_timeout_ms = value_or(c.call_timeout_ms, 10000);
    c.backoff_base_ms = value_or(c.backoff_base_ms, 100);
    c.backoff_cap_ms = value_or(c.backoff_cap_ms, 5000);
    if (c.backoff_cap_ms < c.backoff_base_ms)
        c.backoff_cap_ms = c.backoff_base_ms;
    return c;
}

struct rpc *rpc_new(struct loop *l, const struct rpc_config *config, struct err *ret_err)
{
    PRE(config->url);
    struct rpc *r = xcalloc(1, sizeof(*r));
    struct ws_client_config ws = {
        .url = config->url,
        .peer = "node",
        .ca_file = config->ca_file,
        .insecure = config->insecure,
        .connect_timeout_ms = config->connect_timeout_ms,
        .silence_timeout_ms = config->silence_timeout_ms,
        .message_max_bytes = config->message_max_bytes,
        .on_open = on_open,
        .on_text = on_text,
        .on_closed = on_closed,
        .arg = r,
    };
    r->ws = ws_client_new(l, &ws, ret_err);
    if (!r->ws) {
        free(r);
        return NULL;
    }
    r->loop = l;
    r->config = config_copy(config);
    r->phase = RPC_PHASE_CLOSED;
    r->backoff = (struct backoff){.base_ms = r->config.backoff_base_ms,
                                  .cap_ms = r->config.backoff_cap_ms,
                                  .knee_ms = RPC_KNEE_MS};
    r->rng = (struct rng){loop_seed(l)};
    r->retry = loop_timer_new(l, backoff_over, r);
    rpc__calls_init(r);
    rpc__subs_init(r);
    rpc__follow_init(r);
    return r;
}

static void rpc_free(struct rpc *r)
{
    loop_timer_close(r->retry);
    rpc__follow_done(r);
    rpc__calls_done(r);
    rpc__subs_done(r);
    jv_done(&r->message);
    free((char *)r->config.url);
    free(r);
}

enum rpc_state rpc_state(const struct rpc *r)
{
    switch (r->phase) {
    case RPC_PHASE_CONNECT_WAIT:
        return RPC_CONNECTING;
    case RPC_PHASE_OPEN:
        return RPC_OPEN;
    case RPC_PHASE_BACKOFF_WAIT:
        return RPC_BACKOFF;
    case RPC_PHASE_CLOSED:
    case RPC_PHASE_CLOSING:
        return RPC_CLOSED;
    }
    UNREACHABLE();
}

/* ---- connecting ---- */

static void connect_start(struct rpc *r)
{
    r->phase = RPC_PHASE_CONNECT_WAIT;
    ws_client_open(r->ws);
}

uint64_t rpc_not_before_ms(const struct rpc *r)
{
    return r->not_before_ms;
}

void rpc_open(struct rpc *r)
{
    PRE(r->phase == RPC_PHASE_CLOSED);
    backoff_reset(&r->backoff);
    connect_start(r);
}

static void backoff_over(void *arg)
{
    struct rpc *r = arg;
    PRE(r->phase == RPC_PHASE_BACKOFF_WAIT);
    connect_start(r);
}

/* ---- open ---- */

static void on_open(void *arg)
{
    struct rpc *r = arg;
    PRE(r->phase == RPC_PHASE_CONNECT_WAIT);
    r->phase = RPC_PHASE_OPEN;
    r->connection++;
    r->opened_ms = loop_now_ms(r->loop);
    r->proven = false;
    memset(r->ways, 0, sizeof(r->ways));
    r->queries = false;
    if (r->config.on_state)
        r->config.on_state(r->config.arg, RPC_OPEN, NULL);
}

/* It may end the connection. What came together with that is not heard: the owner has given the
 * endpoint up, and its calls fail. */
static void take_message(struct rpc *r, const struct jv *message)
{
    if (list_linked(&r->drop_task.node))
        return;
    if (jv_get(message, "method"))
        rpc__notification(r, jv_get(message, "params"));
    else if (jv_is(message, JV_OBJECT))
        rpc__answer(r, message);
}

/* Gateways put messages that come at the same time into an array. */
static void take_messages(struct rpc *r, const struct jv *all)
{
    if (!jv_is(all, JV_ARRAY)) {
        take_message(r, all);
        return;
    }
    uint64_t connection = r->connection;
    for (const struct jv *m = jv_first(all); m; m = jv_next(all, m))
        if (r->phase == RPC_PHASE_OPEN && r->connection == connection)
            take_message(r, m);
}

static void on_text(void *arg, const char *text, size_t len)
{
    struct rpc *r = arg;
    PRE(r->phase == RPC_PHASE_OPEN);
    struct err error;
    const struct jv *message = jv_read(&r->message, text, len, &error);
    if (message && !jv_is(message, JV_OBJECT) && !jv_is(message, JV_ARRAY)) {
        err_set(&error, ERR_PROTOCOL, "neither an object nor an array");
        message = NULL;
    }
    if (!message) {
        /* If it was an answer, its call fails by the deadline. */
        log_debug("rpc.garbage", "url=%s bytes=%zu error=\"%s\"", r->config.url, len, error.text);
        return;
    }
    /* An endpoint that ends each connection after a few answers is not tried ever faster. */
    if (!r->proven && loop_now_ms(r->loop) >= r->opened_ms + r->config.backoff_base_ms) {
        r->proven = true;
        backoff_reset(&r->backoff);
    }
    take_messages(r, message);
    jv_trim(&r->message);
}

/* ---- losing ---- */

void rpc__lose(struct rpc *r, const struct err *why)
{
    PRE(why->code);
    struct err reason = *why; /* it may live in something that ends now */
    if (r->phase == RPC_PHASE_CLOSED || r->phase == RPC_PHASE_CLOSING)
        return;
    if (r->phase == RPC_PHASE_BACKOFF_WAIT && !r->stopping)
        return;
    enum rpc_phase next = r->stopping ? RPC_PHASE_CLOSED : RPC_PHASE_BACKOFF_WAIT;
    r->phase = next;
    r->stopping = false;
    ws_client_drop(r->ws);
    loop_task_cancel(&r->drop_task);
    loop_timer_stop(r->retry);
    uint64_t now = loop_now_ms(r->loop), after = ws_client_retry_after_ms(r->ws);
    if (after)
        r->not_before_ms = now + after;
    if (next == RPC_PHASE_BACKOFF_WAIT) {
        uint64_t at = now + backoff_next(&r->backoff, &r->rng);
        loop_timer_at(r->retry, at > r->not_before_ms ? at : r->not_before_ms);
    }
    rpc__calls_fail(r, &reason);
    rpc__subs_end(r, &reason);
    rpc__follow_reset(r);
    if (r->phase == next && r->config.on_state)
        r->config.on_state(r->config.arg, rpc_state(r), &reason);
}

static void on_closed(void *arg, const struct err *why)
{
    rpc__lose(arg, why);
}

static void drop_now(struct loop_task *task)
{
    struct rpc *r = CONTAINER_OF(task, struct rpc, drop_task);
    rpc__lose(r, &r->drop_why);
}

void rpc_reconnect(struct rpc *r, const struct err *why)
{
    if (r->phase != RPC_PHASE_OPEN || list_linked(&r->drop_task.node))
        return;
    r->drop_why = *why;
    loop_post(r->loop, &r->drop_task, drop_now);
}

void rpc_stop(struct rpc *r, const struct err *why)
{
    PRE(r->phase != RPC_PHASE_CLOSED && r->phase != RPC_PHASE_CLOSING);
    r->stopping = true;
    r->drop_why = *why;
    if (!list_linked(&r->drop_task.node))
        loop_post(r->loop, &r->drop_task, drop_now);
}

/* ---- closing ---- */

static void ws_closed(void *arg)
{
    struct rpc *r = arg;
    void (*cb)(void *arg) = r->close_cb;
    void *cb_arg = r->close_arg;
    rpc_free(r);
    if (cb)
        cb(cb_arg);
}

static void close_now(struct loop_task *task)
{
    struct rpc *r = CONTAINER_OF(task, struct rpc, close_task);
    struct err why;
    err_set(&why, ERR_CANCELED, "%s: the connection is being closed", r->config.url);
    rpc__calls_fail(r, &why);
    rpc__subs_end(r, &why);
    rpc__follow_reset(r);
    ws_client_close(r->ws, ws_closed, r);
}

void rpc_close(struct rpc *r, void (*cb)(void *arg), void *arg)
{
    PRE(r->phase != RPC_PHASE_CLOSING);
    r->phase = RPC_PHASE_CLOSING;
    r->close_cb = cb;
    r->close_arg = arg;
    ws_client_drop(r->ws);
    loop_timer_stop(r->retry);
    loop_timer_stop(r->deadline);
    loop_timer_stop(r->pace_timer);
    loop_task_cancel(&r->drop_task);
    loop_post(r->loop, &r->close_task, close_now);
}
