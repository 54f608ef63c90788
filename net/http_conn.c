/* One connection of HTTP/1: its states, one timer, and its end.
 *
 *   SHAKE -> IDLE -> HEAD -> BODY -> SERVE -> WRITE -> IDLE ...
 *                      |-> WRITE (a refusal) -> LINGER -> closed
 *                      '------------> STREAM -> WRITE -> LINGER -> closed
 *
 * SHAKE is the TLS handshake. In SERVE the owner has the request; in WRITE the kernel has not taken
 * the whole answer. What arrives in these two is held, and read in the next IDLE. STREAM is an
 * answer that goes on, the last one of its connection. LINGER reads and drops what the client
 * still sends, because a socket that is closed with unread bytes resets the connection, and the
 * client may lose the answer. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "http_conn_internal.h"

enum { LINGER_MS = 1000 };

/* ---- memory and handles ---- */

void http__enter(struct http_conn *c)
{
    c->busy++;
}

void http__leave(struct http_conn *c)
{
    if (--c->busy || !c->closed)
        return;
    tls__session_free(c->tls);
    buf_done(&c->held);
    free(c);
}

static void close_handles(struct http_conn *c)
{
    c->closed = true;
    c->timer = loop_timer_close(c->timer);
    loop_task_cancel(&c->turn);
    c->socket = loop_socket_close(c->socket);
    if (c->request && c->state == CONN_SERVE) {
        c->request->conn = NULL; /* its owner still answers it */
        *c->request->bodies -= c->request->body.len;
        c->request->bodies = NULL;
        c->request = NULL;
    }
    http__request_free(c->request);
    c->request = NULL;
    http__stream_gone(c);
}

void http__finish(struct http_conn *c)
{
    if (c->closed)
        return;
    close_handles(c);
    c->config.on_end(c->end_arg, c);
}

/* ---- time ---- */

void http__move(struct http_conn *c, enum http_conn_state state, uint32_t limit_ms)
{
    c->state = state;
    c->deadline_ms = limit_ms ? loop_now_ms(c->config.loop) + limit_ms : 0;
    if (c->deadline_ms)
        loop_timer_at(c->timer, c->deadline_ms);
    else
        loop_timer_stop(c->timer);
}

/* ---- turns ---- */

static void on_turn(struct loop_task *task)
{
    struct http_conn *c = CONTAINER_OF(task, struct http_conn, turn);
    http__enter(c);
    if (c->state == CONN_IDLE && c->draining) {
        http__finish(c);
    } else if (c->state == CONN_IDLE && c->held.len) {
        struct buf held = c->held;
        c->held = (struct buf){0};
        http__parse(c, held.data, held.len);
        buf_done(&held);
    }
    http__leave(c);
}

void http__turn_later(struct http_conn *c)
{
    if (!list_linked(&c->turn.node))
        loop_post(c->config.loop, &c->turn, on_turn);
}

/* ---- the socket ---- */

static void on_written(void *arg)
{
    struct http_conn *c = arg;
    if (c->state == CONN_STREAM) {
        http__enter(c);
        http__stream_room(c);
        http__leave(c);
        return;
    }
    if (c->state != CONN_WRITE || loop_socket_queued(c->socket))
        return;
    if (http__conn_ends(c)) {
        http__move(c, CONN_LINGER, LINGER_MS);
        return;
    }
    http__move(c, CONN_IDLE, c->config.limits->idle_ms);
    http__turn_later(c);
}

static void on_socket_end(void *arg, const struct err *why)
{
    struct http_conn *c = arg;
    (void)why;
    http__enter(c);
    http__finish(c);
    http__leave(c);
}

static void on_timer(void *arg)
{
    struct http_conn *c = arg;
    http__enter(c);
    size_t queued = loop_socket_queued(c->socket);
    if (c->state == CONN_HEAD || c->state == CONN_BODY) {
        http__refuse(c, 408, "the request did not arrive in time");
    } else if (c->state == CONN_WRITE && queued < c->queued) {
        c->queued = queued;
        http__move(c, CONN_WRITE, c->config.limits->stall_ms);
    } else if (c->state != CONN_STREAM || http__stream_stalls(c)) {
        http__finish(c);
    }
    http__leave(c);
}

static const struct loop_socket_events socket_events = {
    .on_bytes = http__bytes, .on_written = on_written, .on_end = on_socket_end};

struct http_conn *http__conn_accept(const struct http_conn_config *config, struct loop_socket *s,
                                    void *end_arg)
{
    struct http_conn *c = xcalloc(1, sizeof(*c));
    c->config = *config;
    c->end_arg = end_arg;
    c->socket = s;
    llhttp_init(&c->parser, HTTP_REQUEST, &http__settings);
    c->parser.data = c;
    c->timer = loop_timer_new(config->loop, on_timer, c);
    if (config->tls)
        c->tls = tls__session_new(config->tls, NULL);
    http__move(c, c->tls ? CONN_SHAKE : CONN_IDLE, config->limits->head_ms);
    loop_socket_start(s, &socket_events, c);
    return c;
}

void http__conn_drain(struct http_conn *c)
{
    c->draining = true;
    http__turn_later(c);
}

struct http_conn *http__conn_close(struct http_conn *c)
{
    http__enter(c);
    if (!c->closed)
        close_handles(c);
    http__leave(c);
    return NULL;
}
