/* Socket, TLS and HTTP/2 of one connection, and its one timer.
 *
 * HTTP/2 begins when the socket is open, or the handshake over. Output is gathered in h2_conn, and
 * sent once for each read or round: a record of TLS for each message would cost ten times as much.
 * Everything that a callback asks for happens in `turn`, a posted task; `freed` keeps the memory
 * until the outermost callback is over. */
#include "grpc_link.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct grpc_link {
    struct loop *loop;
    const struct grpc_link_events *events;
    void *arg;
    struct loop_socket *socket; /* NULL: closed */
    struct tls_session *tls;
    struct h2_conn *conn;
    struct grpc_limits limits;
    bool server;
    bool draining;
    struct loop_timer *timer;
    struct loop_task turn;
    uint64_t start_ms;
    unsigned busy;
    bool closed; /* by its owner, or on_end was called: free it at the outermost exit */
    bool cut;    /* end in the next turn, because of why */
    struct err why;
    char peer[64];
};

static void enter(struct grpc_link *link)
{
    link->busy++;
}

static void leave(struct grpc_link *link)
{
    if (--link->busy || !link->closed)
        return;
    h2__conn_free(link->conn);
    tls__session_free(link->tls);
    free(link);
}

/* Handles go at once, memory at the outermost exit. */
static void close_handles(struct grpc_link *link)
{
    link->closed = true;
    link->timer = loop_timer_close(link->timer);
    loop_task_cancel(&link->turn);
    link->socket = loop_socket_close(link->socket);
}

static void finish(struct grpc_link *link, const struct err *why)
{
    if (link->closed)
        return;
    if (link->tls && link->socket) {
        const uint8_t *data = NULL;
        tls__session_goodbye(link->tls);
        size_t n = tls__session_out(link->tls, &data);
        if (n)
            loop_socket_write(link->socket, data, n);
    }
    close_handles(link);
    link->events->on_end(link->arg, link, why);
}

static void lost(struct grpc_link *link, const struct err *why)
{
    if (link->closed)
        return;
    if (link->conn)
        h2__conn_lost(link->conn, loop_now_ms(link->loop), why); /* finish follows from on_end */
    else
        finish(link, why);
}

static void set_timer(struct grpc_link *link)
{
    if (link->closed)
        return;
    loop_timer_at(link->timer,
                  link->conn ? h2__conn_deadline(link->conn) : link->start_ms + link->limits.up_ms);
}

/* ---- HTTP/2's transport ---- */

static void send_tls(struct grpc_link *link)
{
    const uint8_t *data = NULL;
    size_t n = tls__session_out(link->tls, &data);
    if (n && link->socket)
        loop_socket_write(link->socket, data, n);
    tls__session_sent(link->tls);
}

static void io_write(void *arg, const uint8_t *data, size_t len)
{
    struct grpc_link *link = arg;
    if (link->closed)
        return;
    if (!link->tls) {
        loop_socket_write(link->socket, data, len);
        return;
    }
    struct err err = {0};
    if (tls__session_put(link->tls, data, len, &err))
        grpc__link_cut(link, err.text);
    send_tls(link);
}

static size_t io_queued(void *arg)
{
    struct grpc_link *link = arg;
    return link->closed ? 0 : loop_socket_queued(link->socket);
}

static void turn(struct loop_task *task)
{
    struct grpc_link *link = CONTAINER_OF(task, struct grpc_link, turn);
    enter(link);
    if (link->cut)
        lost(link, &link->why);
    else if (link->conn)
        h2__conn_turn(link->conn, loop_now_ms(link->loop));
    set_timer(link);
    leave(link);
}

static void io_wake(void *arg)
{
    struct grpc_link *link = arg;
    if (!link->closed && !list_linked(&link->turn.node))
        loop_post(link->loop, &link->turn, turn);
}

static void io_up(void *arg)
{
    struct grpc_link *link = arg;
    if (!link->closed && link->events->on_up)
        link->events->on_up(link->arg);
}

static bool io_call(void *arg, struct grpc_call *call)
{
    struct grpc_link *link = arg;
    return !link->closed && link->events->on_call(link->arg, call);
}

static void io_end(void *arg, const struct err *why)
{
    finish(arg, why);
}

static const struct h2_io io = {
    .write = io_write,
    .queued = io_queued,
    .wake = io_wake,
    .on_up = io_up,
    .on_call = io_call,
    .on_end = io_end,
};

static void begin(struct grpc_link *link)
{
    uint64_t now = loop_now_ms(link->loop);
    link->conn = h2__conn_new(link->server, &link->limits, &io, link, now);
    link->conn->start_ms = link->start_ms;
    snprintf(link->peer, sizeof(link->peer), "%s", loop_socket_name(link->socket));
    link->conn->peer = link->peer;
    if (link->tls)
        link->conn->identity = tls__session_identity(link->tls);
    if (link->draining)
        h2__conn_drain(link->conn, now);
}

/* ---- the socket ---- */

static bool plain_bytes(void *arg, const uint8_t *data, size_t len)
{
    struct grpc_link *link = arg;
    if (link->closed)
        return false;
    if (!link->conn)
        begin(link);
    h2__conn_bytes(link->conn, loop_now_ms(link->loop), data, len);
    return !link->closed;
}

static void on_bytes(void *arg, const uint8_t *data, size_t len)
{
    struct grpc_link *link = arg;
    enter(link);
    if (!link->tls) {
        plain_bytes(link, data, len);
    } else {
        struct err err = {0};
        int rc = tls__session_feed(link->tls, data, len, plain_bytes, link, &err);
        if (!link->closed) {
            send_tls(link);
            if (rc)
                lost(link, &err);
            else if (tls__session_up(link->tls) && !link->conn)
                begin(link);
        }
    }
    set_timer(link);
    leave(link);
}

static void on_written(void *arg)
{
    io_wake(arg);
}

static void on_socket_end(void *arg, const struct err *why)
{
    struct grpc_link *link = arg;
    bool handshake = link->tls && !tls__session_up(link->tls);
    struct err text = *why;
    enter(link);
    if (!why->code)
        err_set(&text, handshake ? ERR_NET : ERR_OK, "the peer closed the connection%s",
                handshake ? " in the TLS handshake" : "");
    lost(link, &text);
    leave(link);
}

static void on_open(void *arg)
{
    struct grpc_link *link = arg;
    struct err err = {0};
    enter(link);
    if (!link->tls)
        begin(link);
    else if (tls__session_start(link->tls, &err))
        lost(link, &err);
    else
        send_tls(link);
    set_timer(link);
    leave(link);
}

static void on_timer(void *arg)
{
    struct grpc_link *link = arg;
    struct err err;
    enter(link);
    if (link->conn) {
        h2__conn_turn(link->conn, loop_now_ms(link->loop));
    } else {
        err_set(&err, ERR_TIMEOUT, "no connection within %u ms", link->limits.up_ms);
        lost(link, &err);
    }
    set_timer(link);
    leave(link);
}

static const struct loop_socket_events socket_events = {
    .on_open = on_open,
    .on_bytes = on_bytes,
    .on_written = on_written,
    .on_end = on_socket_end,
};

static struct grpc_link *link_new(const struct grpc_link_config *config, bool server)
{
    struct grpc_link *link = xcalloc(1, sizeof(*link));
    link->loop = config->loop;
    link->events = config->events;
    link->arg = config->arg;
    link->limits = *config->limits;
    link->server = server;
    link->start_ms = loop_now_ms(link->loop);
    h2__limits_fill(&link->limits);
    link->timer = loop_timer_new(link->loop, on_timer, link);
    if (config->tls)
        link->tls = tls__session_new(config->tls, config->host);
    return link;
}

struct grpc_link *grpc__link_accept(const struct grpc_link_config *config, struct loop_socket *s)
{
    struct grpc_link *link = link_new(config, true);
    link->socket = s;
    snprintf(link->peer, sizeof(link->peer), "%s", loop_socket_name(s));
    enter(link);
    if (!link->tls)
        begin(link);
    loop_socket_start(s, &socket_events, link);
    set_timer(link);
    leave(link);
    return link;
}

struct grpc_link *grpc__link_connect(const struct grpc_link_config *config, const char *address,
                                     struct err *err)
{
    struct grpc_link *link = link_new(config, false);
    link->socket = loop_socket_connect(config->loop, address, &socket_events, link, err);
    if (!link->socket)
        return grpc__link_close(link);
    set_timer(link);
    return link;
}

struct grpc_link *grpc__link_close(struct grpc_link *link)
{
    if (!link)
        return NULL;
    enter(link);
    if (link->conn)
        h2__conn_silence(link->conn);
    if (!link->closed)
        close_handles(link);
    leave(link);
    return NULL;
}

void grpc__link_drain(struct grpc_link *link)
{
    enter(link);
    link->draining = true;
    if (link->conn)
        h2__conn_drain(link->conn, loop_now_ms(link->loop));
    set_timer(link);
    leave(link);
}

void grpc__link_cut(struct grpc_link *link, const char *why)
{
    if (link->cut)
        return;
    link->cut = true;
    err_set(&link->why, ERR_NET, "%s", why);
    io_wake(link);
}

const char *grpc__link_peer(const struct grpc_link *link)
{
    return link->peer;
}

struct h2_conn *grpc__link_conn(struct grpc_link *link)
{
    return link->conn;
}
