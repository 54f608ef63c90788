/* The life of an HTTP/2 connection: the pump, time, limits, drain, the end. */
#include "h2_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum {
    TRANSPORT_BYTES = 256 << 10, /* the pump stops while so much is not sent */
    WRITE_BYTES = 16 << 10,      /* gathered for one write */
    METER_MS = 10000,
    IDLE_BYTES = 1 << 20, /* received without anything useful */
};

static void lose(struct h2_conn *c, int code, const char *what)
{
    if (c->ending)
        return;
    c->ending = true;
    err_set(&c->why, code, "%s", what);
}

void h2__useful(struct h2_conn *c)
{
    c->idle_bytes = 0;
}

bool h2__over(struct h2_meter *m, uint64_t now, uint64_t max)
{
    if (now - m->since_ms >= METER_MS)
        *m = (struct h2_meter){.since_ms = now};
    return ++m->count > max;
}

void h2__fail(struct h2_conn *c, uint32_t code, const char *why)
{
    if (c->ending)
        return;
    /* terminate_session carries no text: the one with the text goes first. */
    nghttp2_submit_goaway(c->session, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(c->session), code,
                          (const uint8_t *)why, strlen(why));
    nghttp2_session_terminate_session(c->session, code);
    lose(c, ERR_PROTOCOL, why);
}

struct h2_conn *h2__conn_new(bool server, const struct grpc_limits *limits, const struct h2_io *io,
                             void *arg, uint64_t now)
{
    struct h2_conn *c = xcalloc(1, sizeof(*c));
    *c = (struct h2_conn){
        .server = server,
        .limits = *limits,
        .io = *io,
        .arg = arg,
        .peer = "",
        .identity = "",
        .now = now,
        .start_ms = now,
        .heard_ms = now,
        .taken_ms = now,
        .used_ms = now,
    };
    list_init(&c->calls);
    h2__limits_fill(&c->limits);
    c->session = h2__session_new(c);
    c->io.wake(arg);
    return c;
}

struct h2_conn *h2__conn_free(struct h2_conn *c)
{
    if (!c)
        return NULL;
    PRE(!c->busy);
    nghttp2_session_del(c->session);
    for (struct list *n = list_first(&c->calls); n; n = list_first(&c->calls))
        grpc__call_free(CONTAINER_OF(n, struct grpc_call, node));
    buf_done(&c->wire);
    free(c);
    return NULL;
}

/* ---- the pump ---- */

static void flush(struct h2_conn *c)
{
    if (!c->wire.len)
        return;
    if (c->io.queued(c->arg) == 0)
        c->taken_ms = c->now;
    c->written += c->wire.len;
    c->io.write(c->arg, c->wire.data, c->wire.len);
    buf_clear(&c->wire);
}

static void pump(struct h2_conn *c)
{
    while (c->io.queued(c->arg) + c->wire.len < TRANSPORT_BYTES) {
        const uint8_t *data = NULL;
        ssize_t n = nghttp2_session_mem_send(c->session, &data);
        if (n < 0)
            lose(c, ERR_PROTOCOL, nghttp2_strerror((int)n));
        if (n <= 0)
            break;
        buf_put(&c->wire, data, (size_t)n);
        if (c->wire.len >= WRITE_BYTES)
            flush(c);
    }
    flush(c);
}

/* ---- busy ---- */

void h2__enter(struct h2_conn *c)
{
    c->busy++;
}

static void end(struct h2_conn *c)
{
    c->over = true;
    c->busy++;
    /* The calls stay on the list, since nghttp2 may hold them, until the connection is freed. */
    LIST_EACH (n, &c->calls)
        grpc__call_end(CONTAINER_OF(n, struct grpc_call, node), GRPC_UNAVAILABLE, c->why.text);
    c->busy--;
    c->io.on_end(c->arg, &c->why);
}

/* At the outermost exit: send what the callbacks queued, and end. */
void h2__leave(struct h2_conn *c)
{
    PRE(c->busy > 0);
    if (c->busy > 1 || c->over) {
        c->busy--;
        return;
    }
    pump(c);
    if (!c->ending && !nghttp2_session_want_read(c->session) &&
        !nghttp2_session_want_write(c->session))
        lose(c, ERR_OK, c->gone_away ? "the peer closed the connection" : "closed");
    c->busy--;
    if (c->ending)
        end(c);
}

/* ---- what comes ---- */

void h2__conn_bytes(struct h2_conn *c, uint64_t now, const uint8_t *data, size_t len)
{
    if (c->over)
        return;
    c->now = now;
    c->heard_ms = now;
    h2__enter(c);
    c->idle_bytes += len;
    ssize_t n = nghttp2_session_mem_recv(c->session, data, len);
    if (n < 0 && !c->ending) {
        pump(c); /* a GOAWAY may be queued */
        lose(c, ERR_PROTOCOL, nghttp2_strerror((int)n));
    }
    if (c->idle_bytes > IDLE_BYTES)
        h2__fail(c, NGHTTP2_ENHANCE_YOUR_CALM, "too many bytes without a message");
    h2__leave(c);
}

void h2__conn_lost(struct h2_conn *c, uint64_t now, const struct err *why)
{
    if (c->over)
        return;
    c->now = now;
    h2__enter(c);
    if (!c->ending) {
        c->ending = true;
        c->why = *why;
    }
    h2__leave(c);
}

void h2__conn_silence(struct h2_conn *c)
{
    c->ending = c->over = true;
    LIST_EACH (n, &c->calls)
        grpc__call_silence(CONTAINER_OF(n, struct grpc_call, node));
}

/* ---- time ---- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The transport: does the peer take what is written? */
static void watch_output(struct h2_conn *c)
{
    uint64_t taken = c->written - c->io.queued(c->arg);
    if (taken != c->taken || taken == c->written)
        c->taken_ms = c->now;
    if (taken != c->taken)
        h2__useful(c);
    c->taken = taken;
}

static bool serves(const struct h2_conn *c)
{
    LIST_EACH (n, &c->calls)
        if (grpc__call_served(CONTAINER_OF(n, struct grpc_call, node)))
            return true;
    return false;
}

static uint64_t unused_at(const struct h2_conn *c)
{
    return c->used_ms + c->limits.unused_ms + (c->draining ? c->limits.ping_ms : 0);
}

/* Who has no call that is served keeps a place that others need. A call that is refused is none. */
static void watch_use(struct h2_conn *c)
{
    if (!c->server || serves(c))
        c->used_ms = c->now;
    else if (c->now >= unused_at(c) && !c->draining)
        h2__conn_drain(c, c->now); /* one that begins at this moment is still taken */
    else if (c->now >= unused_at(c))
        lose(c, ERR_TIMEOUT, "it has no call");
}

static void watch_peer(struct h2_conn *c)
{
    const struct grpc_limits *l = &c->limits;
    if (c->heard_ms > c->ping_ms)
        c->ping_ms = 0;
    if (!c->up && c->now - c->start_ms >= l->up_ms)
        lose(c, ERR_TIMEOUT, "no HTTP/2 SETTINGS came in time");
    else if (c->header_ms && c->now - c->header_ms >= l->header_ms)
        lose(c, ERR_TIMEOUT, "a block of headers did not end in time");
    else if (c->now - c->taken_ms >= l->stall_ms)
        lose(c, ERR_TIMEOUT, "the peer takes no output");
    else if (c->ping_ms && c->now - c->ping_ms >= l->ping_ms)
        lose(c, ERR_TIMEOUT, "the peer is silent");
    else if (!c->ping_ms && c->now - c->heard_ms >= l->keepalive_ms) {
        c->ping_ms = c->now;
        nghttp2_submit_ping(c->session, NGHTTP2_FLAG_NONE, NULL);
    }
}

void h2__conn_turn(struct h2_conn *c, uint64_t now)
{
    if (c->over)
        return;
    c->now = now;
    h2__enter(c);
    watch_output(c);
    watch_peer(c);
    watch_use(c);
    for (struct list *n = c->calls.next, *next; n != &c->calls && !c->ending; n = next) {
        next = n->next;
        grpc__call_turn(CONTAINER_OF(n, struct grpc_call, node)); /* may free it, and no other */
    }
    h2__leave(c);
}

uint64_t h2__conn_deadline(const struct h2_conn *c)
{
    const struct grpc_limits *l = &c->limits;
    uint64_t at = c->ping_ms ? c->ping_ms + l->ping_ms : c->heard_ms + l->keepalive_ms;
    if (!c->up)
        at = earlier(at, c->start_ms + l->up_ms);
    if (c->header_ms)
        at = earlier(at, c->header_ms + l->header_ms);
    if (c->taken != c->written)
        at = earlier(at, c->taken_ms + l->stall_ms);
    if (c->server && !serves(c))
        at = earlier(at, unused_at(c));
    LIST_EACH (n, &c->calls)
        at = earlier(at, grpc__call_deadline(CONTAINER_OF(n, struct grpc_call, node)));
    return at;
}

/* ---- drain ---- */

/* First a GOAWAY that refuses nothing, and a PING: when its answer is here, the client knows, and
 * the second GOAWAY names the last call. Until then new calls are still taken. */
void h2__conn_drain(struct h2_conn *c, uint64_t now)
{
    if (c->over || c->draining)
        return;
    c->now = now;
    c->draining = true;
    h2__enter(c);
    nghttp2_submit_shutdown_notice(c->session);
    nghttp2_submit_ping(c->session, NGHTTP2_FLAG_NONE, (const uint8_t *)"draining");
    h2__leave(c);
}
