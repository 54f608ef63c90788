/* Sockets for bytes.
 *
 * Every write goes through uv_write, whose callback comes in a later round: an owner that writes
 * more from on_written never starves the others. */
#include "loop/socket.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "internal.h"

enum { KEEPALIVE_S = 30 }; /* idle, before TCP asks whether the peer is there */

struct loop_socket {
    union loop_endpoint uv;
    struct loop *loop;
    struct loop_socket_events events;
    void *arg;
    uv_connect_t connect;
    bool ended;  /* on_end was called */
    bool closed; /* by its owner */
    char name[64];
    char chunk[LOOP_SOCKET_READ];
};

struct loop_listener {
    struct loop *loop;
    struct loop_acceptor *acceptor;
    bool is_unix;
    void (*on_accept)(void *arg, struct loop_socket *s);
    void *arg;
};

static void end(struct loop_socket *s, int code, const char *what)
{
    struct err why = {0};
    if (s->ended || s->closed)
        return;
    s->ended = true;
    uv_read_stop(&s->uv.stream);
    if (code != UV_EOF)
        err_set(&why, ERR_NET, "%s: %s", what, uv_strerror(code));
    s->events.on_end(s->arg, &why);
}

static void alloc(uv_handle_t *h, size_t hint, uv_buf_t *buf)
{
    (void)hint;
    struct loop_socket *s = CONTAINER_OF(h, struct loop_socket, uv);
    *buf = uv_buf_init(s->chunk, sizeof(s->chunk));
}

static void on_read(uv_stream_t *h, ssize_t n, const uv_buf_t *buf)
{
    struct loop_socket *s = CONTAINER_OF(h, struct loop_socket, uv);
    if (s->closed || s->ended)
        return;
    if (n > 0)
        s->events.on_bytes(s->arg, (const uint8_t *)buf->base, (size_t)n);
    else if (n < 0)
        end(s, (int)n, "read");
}

static void set_options(struct loop_socket *s)
{
    struct sockaddr_storage ss;
    int len = sizeof(ss), port = 0;
    char host[46] = "";
    if (s->uv.handle.type != UV_TCP) {
        snprintf(s->name, sizeof(s->name), "unix");
        return;
    }
    uv_tcp_nodelay(&s->uv.tcp, 1);
    uv_tcp_keepalive(&s->uv.tcp, 1, KEEPALIVE_S);
    if (uv_tcp_getpeername(&s->uv.tcp, (struct sockaddr *)&ss, &len) == 0) {
        bool six = ss.ss_family == AF_INET6;
        uv_ip_name((const struct sockaddr *)&ss, host, sizeof(host));
        port =
            six ? ((struct sockaddr_in6 *)&ss)->sin6_port : ((struct sockaddr_in *)&ss)->sin_port;
        snprintf(s->name, sizeof(s->name), six ? "[%s]:%d" : "%s:%d", host,
                 ((port & 255) << 8) | (port >> 8 & 255));
    }
}

static struct loop_socket *socket_new(struct loop *l, bool is_unix)
{
    struct loop_socket *s = xcalloc(1, sizeof(*s));
    s->loop = l;
    loop__endpoint_init(l, &s->uv, is_unix);
    return s;
}

static void connected(uv_connect_t *req, int status)
{
    struct loop_socket *s = CONTAINER_OF(req, struct loop_socket, connect);
    if (s->closed)
        return;
    if (status < 0) {
        end(s, status, "connect");
        return;
    }
    set_options(s);
    uv_read_start(&s->uv.stream, alloc, on_read);
    s->events.on_open(s->arg);
}

struct loop_socket *loop_socket_connect(struct loop *l, const char *address,
                                        const struct loop_socket_events *events, void *arg,
                                        struct err *err)
{
    struct loop_address a;
    if (loop__address_parse(address, &a, err))
        return NULL;
    struct loop_socket *s = socket_new(l, a.is_unix);
    s->events = *events;
    s->arg = arg;
    if (a.is_unix) {
        uv_pipe_connect(&s->connect, &s->uv.pipe, a.path, connected);
        return s;
    }
    int rc = uv_tcp_connect(&s->connect, &s->uv.tcp, (const struct sockaddr *)&a.tcp, connected);
    if (rc) {
        err_set(err, ERR_NET, "connect %s: %s", address, uv_strerror(rc));
        return loop_socket_close(s);
    }
    return s;
}

void loop_socket_start(struct loop_socket *s, const struct loop_socket_events *events, void *arg)
{
    PRE(!s->events.on_bytes);
    s->events = *events;
    s->arg = arg;
    uv_read_start(&s->uv.stream, alloc, on_read);
}

struct outgoing {
    uv_write_t req;
    struct shared *bytes;
};

static void written(uv_write_t *req, int status)
{
    struct loop_socket *s = CONTAINER_OF(req->handle, struct loop_socket, uv);
    struct outgoing *w = CONTAINER_OF(req, struct outgoing, req);
    shared_drop(w->bytes);
    free(w);
    if (s->closed)
        return;
    if (status < 0)
        end(s, status, "write");
    else if (!s->ended)
        s->events.on_written(s->arg);
}

void loop_socket_share(struct loop_socket *s, struct shared *bytes)
{
    PRE(!s->closed && bytes->len > 0);
    if (s->ended)
        return;
    struct outgoing *w = xmalloc(sizeof(*w));
    w->bytes = shared_take(bytes);
    uv_buf_t buf = uv_buf_init((char *)bytes->data, (unsigned)bytes->len);
    /* It fails only for a socket that is not connected: its reader says so. */
    if (uv_write(&w->req, &s->uv.stream, &buf, 1, written) != 0) {
        shared_drop(w->bytes);
        free(w);
    }
}

void loop_socket_write(struct loop_socket *s, const void *data, size_t len)
{
    struct shared *bytes = shared_new(len);
    memcpy(bytes->data, data, len);
    loop_socket_share(s, bytes);
    shared_drop(bytes);
}

size_t loop_socket_queued(const struct loop_socket *s)
{
    return uv_stream_get_write_queue_size(&s->uv.stream);
}

const char *loop_socket_name(const struct loop_socket *s)
{
    return s->name;
}

struct loop_socket *loop_socket_close(struct loop_socket *s)
{
    if (!s)
        return NULL;
    PRE(!s->closed);
    s->closed = true;
    loop__close(s->loop, &s->uv.handle, s);
    return NULL;
}

/* ---- listeners ---- */

static void on_connection(void *arg, int fd)
{
    struct loop_listener *ls = arg;
    struct loop_socket *s = socket_new(ls->loop, ls->is_unix);
    loop__endpoint_open(&s->uv, fd);
    set_options(s);
    ls->on_accept(ls->arg, s);
}

struct loop_listener *loop_listener_new(struct loop *l, const char *address,
                                        void (*on_accept)(void *arg, struct loop_socket *s),
                                        void *arg, struct err *err)
{
    struct loop_address a;
    if (loop__address_parse(address, &a, err))
        return NULL;
    struct loop_listener *ls = xcalloc(1, sizeof(*ls));
    *ls =
        (struct loop_listener){.loop = l, .is_unix = a.is_unix, .on_accept = on_accept, .arg = arg};
    ls->acceptor = loop__acceptor_new(l, &a, on_connection, ls, err);
    return ls->acceptor ? ls : loop_listener_close(ls);
}

const char *loop_listener_address(const struct loop_listener *ls)
{
    return loop__acceptor_address(ls->acceptor);
}

struct loop_listener *loop_listener_close(struct loop_listener *ls)
{
    if (ls)
        loop__acceptor_close(ls->acceptor);
    free(ls);
    return NULL;
}
