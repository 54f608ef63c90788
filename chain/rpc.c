/* The connection: resolve, connect, stay alive, be lost, come back.
 *
 *   CLOSED -> RESOLVE_WAIT -> CONNECT_WAIT -> OPEN        (*_WAIT: suspended until a callback)
 *                 |  ^            |            |
 *                 |  |            v            v
 *                 +->+----- BACKOFF_WAIT <- rpc__lose      any -> CLOSING -> freed
 *                           (CLOSED when rpc_stop asked for it)
 *
 * OPEN beats: a ping each third of the silence time-out; three beats in a row without a byte from the peer
 * and the connection is lost. Beats are counted, not clocked, so a process that was stopped for a while
 * reads what waits in the socket before it judges. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "rpc_internal.h"

enum { BEATS = 3 };

static void connect_next(struct loop_task *task);
static void timer_fired(void *arg);
static void beat(void *arg);

/* ---- making ---- */

static uint32_t value_or(uint32_t value, uint32_t fallback)
{
    return value ? value : fallback;
}

static struct rpc_config config_copy(const struct rpc_config *config)
{
    struct rpc_config c = *config;
    c.url = xstrdup(config->url);
    c.ca_file = config->ca_file ? xstrdup(config->ca_file) : NULL;
    c.connect_timeout_ms = value_or(c.connect_timeout_ms, 5000);
    c.call_timeout_ms = value_or(c.call_timeout_ms, 10000);
    c.silence_timeout_ms = value_or(c.silence_timeout_ms, 15000);
    c.backoff_base_ms = value_or(c.backoff_base_ms, 100);
    c.backoff_cap_ms = value_or(c.backoff_cap_ms, 5000);
    if (c.backoff_cap_ms < c.backoff_base_ms)
        c.backoff_cap_ms = c.backoff_base_ms;
    c.message_max_bytes = value_or(c.message_max_bytes, 64u << 20);
    return c;
}

struct rpc *rpc_new(struct loop *l, const struct rpc_config *config, struct err *ret_err)
{
    struct rpc_url url;
    if (rpc__url_parse(config->url, &url, ret_err))
        return NULL;
    struct rpc *r = xcalloc(1, sizeof(*r));
    r->loop = l;
    r->config = config_copy(config);
    r->url = url;
    r->phase = RPC_PHASE_CLOSED;
    r->backoff = (struct backoff){.base_ms = r->config.backoff_base_ms, .cap_ms = r->config.backoff_cap_ms};
    r->rng = (struct rng){loop_seed(l)};
    rpc__calls_init(r);
    rpc__subs_init(r);
    r->ws = rpc__ws_new(r, ret_err);
    if (!r->ws) {
        rpc__free(r);
        return NULL;
    }
    r->timer = loop_timer_new(l, timer_fired, r);
    r->beat = loop_timer_new(l, beat, r);
    rpc__calls_arm(r);
    return r;
}

void rpc__free(struct rpc *r)
{
    r->timer = loop_timer_close(r->timer);
    r->beat = loop_timer_close(r->beat);
    rpc__calls_done(r);
    rpc__subs_done(r);
    rpc__url_done(&r->url);
    jv_done(&r->message);
    free((char *)r->config.url);
    free((char *)r->config.ca_file);
    free(r);
}

enum rpc_state rpc_state(const struct rpc *r)
{
    switch (r->phase) {
    case RPC_PHASE_RESOLVE_WAIT:
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

static void resolved(struct loop_resolve *resolve)
{
    struct rpc *r = CONTAINER_OF(resolve, struct rpc, resolve);
    PRE(r->phase == RPC_PHASE_RESOLVE_WAIT);
    if (resolve->err.code) {
        struct err why;
        err_set(&why, ERR_NET, "%s: %s", r->config.url, resolve->err.text);
        rpc__lose(r, &why);
        return;
    }
    r->phase = RPC_PHASE_CONNECT_WAIT;
    r->addr_next = 0;
    connect_next(&r->next_task);
}

static void resolve(struct rpc *r)
{
    r->phase = RPC_PHASE_RESOLVE_WAIT;
    loop_timer_at(r->timer, loop_now_ms(r->loop) + r->config.connect_timeout_ms);
    loop_resolve_start(r->loop, &r->resolve, r->url.host, resolved);
}

void rpc_open(struct rpc *r)
{
    PRE(r->phase == RPC_PHASE_CLOSED);
    backoff_reset(&r->backoff);
    resolve(r);
}

/* The addresses of a name in turn, each with its own time; after the last one, back off. */
static void connect_next(struct loop_task *task)
{
    struct rpc *r = CONTAINER_OF(task, struct rpc, next_task);
    PRE(r->phase == RPC_PHASE_CONNECT_WAIT);
    while (r->addr_next < r->resolve.count) {
        const char *addr = r->resolve.addr[r->addr_next++];
        loop_timer_at(r->timer, loop_now_ms(r->loop) + r->config.connect_timeout_ms);
        if (rpc__ws_connect(r->ws, addr))
            return;
        err_set(&r->attempt_why, ERR_NET, "%s: cannot connect to %s", r->config.url, addr);
    }
    rpc__lose(r, &r->attempt_why);
}

static void attempt_failed(struct rpc *r, const char *why)
{
    loop_timer_stop(r->timer);
    err_set(&r->attempt_why, ERR_NET, "%s: %s", r->config.url, why);
    if (!list_linked(&r->next_task.node))
        loop_post(r->loop, &r->next_task, connect_next);
}

static void timer_fired(void *arg)
{
    struct rpc *r = arg;
    struct err why;
    switch (r->phase) {
    case RPC_PHASE_BACKOFF_WAIT:
        resolve(r);
        return;
    case RPC_PHASE_RESOLVE_WAIT:
        err_set(&why, ERR_TIMEOUT, "%s: its name did not resolve within %u ms", r->config.url,
                r->config.connect_timeout_ms);
        rpc__lose(r, &why);
        return;
    case RPC_PHASE_CONNECT_WAIT:
        rpc__ws_drop(r->ws);
        attempt_failed(r, "no connection in time");
        return;
    case RPC_PHASE_OPEN:
    case RPC_PHASE_CLOSED:
    case RPC_PHASE_CLOSING:
        return;
    }
}

/* ---- open ---- */

static uint64_t beat_ms(const struct rpc *r)
{
    uint64_t ms = r->config.silence_timeout_ms / BEATS;
    return ms ? ms : 1;
}

void rpc__on_connected(struct rpc *r)
{
    PRE(r->phase == RPC_PHASE_CONNECT_WAIT);
    r->phase = RPC_PHASE_OPEN;
    r->connection++;
    r->heard = true;
    r->missed = 0;
    r->proven = false;
    loop_timer_stop(r->timer);
    loop_timer_at(r->beat, loop_now_ms(r->loop) + beat_ms(r));
    if (r->config.on_state)
        r->config.on_state(r->config.arg, RPC_OPEN, NULL);
}

void rpc__on_bytes(struct rpc *r)
{
    r->heard = true;
}

static void beat(void *arg)
{
    struct rpc *r = arg;
    if (r->phase != RPC_PHASE_OPEN)
        return;
    r->missed = r->heard ? 0 : r->missed + 1;
    r->heard = false;
    if (r->missed >= BEATS) {
        struct err why;
        err_set(&why, ERR_NET, "%s: silent for %u ms", r->config.url, r->config.silence_timeout_ms);
        rpc__lose(r, &why);
        return;
    }
    rpc__ws_ping(r->ws);
    loop_timer_at(r->beat, loop_now_ms(r->loop) + beat_ms(r));
}

void rpc__on_text(struct rpc *r, const char *text, size_t len)
{
    struct err error;
    const struct jv *message = jv_read(&r->message, text, len, &error);
    if (message && !jv_is(message, JV_OBJECT) && !jv_is(message, JV_ARRAY)) {
        err_set(&error, ERR_PROTOCOL, "neither an object nor an array");
        message = NULL;
    }
    if (!message) {
        /* The call that it was meant for, if any, meets its deadline. */
        log_debug("rpc.garbage", "url=%s bytes=%zu error=\"%s\"", r->config.url, len, error.text);
        return;
    }
    if (!r->proven) {
        r->proven = true;
        backoff_reset(&r->backoff);
    }
    if (jv_get(message, "method"))
        rpc__notification(r, jv_get(message, "params"));
    else if (jv_is(message, JV_OBJECT))
        rpc__answer(r, message);
    jv_trim(&r->message);
}

/* ---- losing ---- */

void rpc__lose(struct rpc *r, const struct err *why)
{
    struct err reason = *why; /* it may live in something that ends now */
    if (r->phase == RPC_PHASE_CLOSED || r->phase == RPC_PHASE_CLOSING)
        return;
    if (r->phase == RPC_PHASE_BACKOFF_WAIT && !r->stopping)
        return;
    enum rpc_phase next = r->stopping ? RPC_PHASE_CLOSED : RPC_PHASE_BACKOFF_WAIT;
    r->phase = next;
    r->stopping = false;
    rpc__ws_drop(r->ws);
    loop_resolve_cancel(&r->resolve);
    loop_task_cancel(&r->next_task);
    loop_task_cancel(&r->drop_task);
    loop_timer_stop(r->beat);
    loop_timer_stop(r->timer);
    if (next == RPC_PHASE_BACKOFF_WAIT)
        loop_timer_at(r->timer, loop_now_ms(r->loop) + backoff_next(&r->backoff, &r->rng));
    rpc__calls_fail(r, &reason);
    rpc__subs_end(r, &reason);
    if (r->phase == next && r->config.on_state)
        r->config.on_state(r->config.arg, rpc_state(r), &reason);
}

void rpc__on_closed(struct rpc *r, const char *why)
{
    struct err reason;
    if (r->phase == RPC_PHASE_CONNECT_WAIT) {
        attempt_failed(r, why);
        return;
    }
    err_set(&reason, ERR_NET, "%s: %s", r->config.url, why);
    rpc__lose(r, &reason);
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

static void door_closed(struct rpc *r)
{
    void (*cb)(void *arg) = r->close_cb;
    void *arg = r->close_arg;
    rpc__free(r);
    if (cb)
        cb(arg);
}

static void close_now(struct loop_task *task)
{
    struct rpc *r = CONTAINER_OF(task, struct rpc, close_task);
    struct err why;
    err_set(&why, ERR_CANCELED, "%s: the connection is being closed", r->config.url);
    rpc__ws_drop(r->ws);
    rpc__calls_fail(r, &why);
    rpc__subs_end(r, &why);
    rpc__ws_free(r->ws, door_closed);
}

void rpc_close(struct rpc *r, void (*cb)(void *arg), void *arg)
{
    PRE(r->phase != RPC_PHASE_CLOSING);
    r->phase = RPC_PHASE_CLOSING;
    r->close_cb = cb;
    r->close_arg = arg;
    loop_timer_stop(r->timer);
    loop_timer_stop(r->beat);
    loop_timer_stop(r->deadline);
    loop_resolve_cancel(&r->resolve);
    loop_task_cancel(&r->next_task);
    loop_task_cancel(&r->drop_task);
    loop_post(r->loop, &r->close_task, close_now);
}
