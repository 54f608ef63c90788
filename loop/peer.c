/* Line-oriented sockets over uv streams: one connection, of a client or of a server. */
#define _GNU_SOURCE
#include "loop/peer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "peer_internal.h"

enum { BACKLOG_MAX = 16 << 20 }; /* unsent bytes of one peer */

/* The server's share of unfinished lines follows the peer's buffer. */
static void count_bytes(struct loop_peer *p, size_t before)
{
    if (p->server)
        p->server->unfinished += p->in.len - before;
}

void peer__end(struct loop_peer *p, int code, const char *what)
{
    struct err err = {0};
    if (p->closed)
        return;
    if (code != UV_EOF)
        err_set(&err, ERR_NET, "%s: %s", what, uv_strerror(code));
    void (*on_end)(void *arg, struct loop_peer *peer, const struct err *err) = p->events.on_end;
    void *arg = p->events.arg;
    p->closed = true;
    if (on_end)
        on_end(arg, p, &err);
    p->closed = false;
    loop_peer_close(p);
}

static void peer_lines(struct loop_peer *p)
{
    size_t from = 0, before = p->in.len;
    while (!p->closed && from < p->in.len) {
        char *start = (char *)p->in.data + from;
        char *nl = memchr(start, '\n', p->in.len - from);
        if (!nl)
            break;
        *nl = 0;
        from += (size_t)(nl - start) + 1;
        p->events.on_line(p->events.arg, p, start, (size_t)(nl - start));
    }
    if (p->closed)
        return;
    if (from) {
        memmove(p->in.data, p->in.data + from, p->in.len - from);
        p->in.len -= from;
        count_bytes(p, before);
    }
    if (p->in.len > LOOP_LINE_MAX)
        peer__end(p, UV_E2BIG, "line too long");
    else if (p->server && p->server->unfinished > LOOP_UNFINISHED_MAX)
        peer__end(p, UV_ENOBUFS, "too many unfinished lines");
}

static void peer_alloc(uv_handle_t *h, size_t hint, uv_buf_t *buf)
{
    (void)hint;
    struct loop_peer *p = CONTAINER_OF(h, struct loop_peer, uv);
    *buf = uv_buf_init(p->chunk, sizeof(p->chunk));
}

static void peer_read(uv_stream_t *h, ssize_t n, const uv_buf_t *buf)
{
    struct loop_peer *p = CONTAINER_OF(h, struct loop_peer, uv);
    if (n > 0 && !p->closed) {
        size_t before = p->in.len;
        buf_put(&p->in, buf->base, (size_t)n);
        count_bytes(p, before);
        p->heard_ms = loop_now_ms(p->loop);
        peer_lines(p);
    }
    if (n < 0)
        peer__end(p, (int)n, "read");
}

struct loop_peer *peer__new(struct loop *l, const struct loop_peer_events *events, bool is_unix)
{
    struct loop_peer *p = xcalloc(1, sizeof(*p));
    p->loop = l;
    p->events = *events;
    loop__endpoint_init(l, &p->uv, is_unix);
    return p;
}

void peer__opened(struct loop_peer *p)
{
    if (p->events.on_open)
        p->events.on_open(p->events.arg, p);
    if (!p->closed)
        uv_read_start(&p->uv.stream, peer_alloc, peer_read);
}

static void peer_connected(uv_connect_t *req, int status)
{
    struct loop_peer *p = CONTAINER_OF(req, struct loop_peer, connect);
    if (p->closed)
        return;
    if (status < 0) {
        peer__end(p, status, "connect");
        return;
    }
    peer__opened(p);
}

struct loop_peer *loop_peer_connect(struct loop *l, const char *address,
                                    const struct loop_peer_events *events, struct err *err)
{
    struct loop_address a;
    if (loop__address_parse(address, &a, err))
        return NULL;
    struct loop_peer *p = peer__new(l, events, a.is_unix);
    if (a.is_unix) {
        uv_pipe_connect(&p->connect, &p->uv.pipe, a.path, peer_connected);
        return p;
    }
    int rc =
        uv_tcp_connect(&p->connect, &p->uv.tcp, (const struct sockaddr *)&a.tcp, peer_connected);
    if (rc) {
        err_set(err, ERR_NET, "connect %s: %s", address, uv_strerror(rc));
        return loop_peer_close(p);
    }
    return p;
}

struct outgoing {
    uv_write_t req;
    struct loop_peer *peer;
    char data[];
};

static void peer_written(uv_write_t *req, int status)
{
    (void)status; /* a broken peer is noticed by its reader */
    free(CONTAINER_OF(req, struct outgoing, req));
}

void loop_peer_write(struct loop_peer *p, const void *data, size_t len)
{
    if (p->closed)
        return;
    if (uv_stream_get_write_queue_size(&p->uv.stream) > BACKLOG_MAX) {
        peer__end(p, UV_ENOBUFS, "peer reads too slowly");
        return;
    }
    struct outgoing *w = xmalloc(sizeof(*w) + len);
    memcpy(w->data, data, len);
    uv_buf_t buf = uv_buf_init(w->data, (unsigned)len);
    if (uv_write(&w->req, &p->uv.stream, &buf, 1, peer_written) != 0)
        free(w);
}

struct loop_peer *loop_peer_close(struct loop_peer *p)
{
    if (!p || p->closed)
        return NULL;
    p->closed = true;
    list_remove(&p->node);
    if (p->server) {
        p->server->peer_count--;
        p->server->unfinished -= p->in.len;
    }
    buf_done(&p->in);
    loop__close(p->loop, &p->uv.handle, p);
    return NULL;
}

bool loop_peer_uid(const struct loop_peer *p, unsigned *ret_uid)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    uv_os_fd_t fd;
    if (uv_fileno(&p->uv.handle, &fd) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0 || peer.pid == 0)
        return false;
    *ret_uid = peer.uid;
    return true;
}
