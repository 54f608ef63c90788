/* A server of HTTP/1: a listener and its connections. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "http_internal.h"

struct connection {
    struct list node;
    struct http_conn *conn;
    struct http_server *server;
};

struct http_server {
    struct loop *loop;
    struct http_server_config config;
    struct loop_listener *listener; /* NULL: it drains */
    char *address;
    struct list connections;
    size_t count;
    size_t bodies; /* bytes */
};

static void forget(struct connection *x)
{
    list_remove(&x->node);
    x->server->count--;
    free(x);
}

static void on_end(void *arg, struct http_conn *c)
{
    (void)c;
    forget(arg);
}

static void on_accept(void *arg, struct loop_socket *socket)
{
    struct http_server *s = arg;
    if (s->count >= s->config.limits.connections_max) {
        loop_socket_close(socket);
        return;
    }
    struct connection *x = xcalloc(1, sizeof(*x));
    struct http_conn_config config = {
        .loop = s->loop,
        .tls = s->config.tls,
        .limits = &s->config.limits,
        .headers = s->config.headers,
        .bodies = &s->bodies,
        .on_request = s->config.on_request,
        .on_end = on_end,
        .arg = s->config.arg,
    };
    x->server = s;
    list_append(&s->connections, &x->node);
    s->count++;
    x->conn = http__conn_accept(&config, socket, x);
}

static void fill(uint32_t *limit, uint32_t value)
{
    if (!*limit)
        *limit = value;
}

static void fill_limits(struct http_limits *l)
{
    fill(&l->connections_max, 200);
    fill(&l->head_bytes, 16 << 10);
    fill(&l->body_bytes, 1 << 20);
    fill(&l->bodies_bytes, 16 << 20);
    fill(&l->head_ms, 10000);
    fill(&l->body_ms, 30000);
    fill(&l->idle_ms, 60000);
    fill(&l->stall_ms, 30000);
}

struct http_server *http_server_new(struct loop *l, const struct http_server_config *config,
                                    struct err *err)
{
    if (tls_listen_check(config->tls, config->address, err))
        return NULL;
    struct http_server *s = xcalloc(1, sizeof(*s));
    s->loop = l;
    s->config = *config;
    fill_limits(&s->config.limits);
    list_init(&s->connections);
    s->listener = loop_listener_new(l, config->address, on_accept, s, err);
    if (!s->listener)
        return http_server_close(s);
    s->address = xstrdup(loop_listener_address(s->listener));
    return s;
}

const char *http_server_address(const struct http_server *s)
{
    return s->address;
}

size_t http_server_connections(const struct http_server *s)
{
    return s->count;
}

void http_server_drain(struct http_server *s)
{
    s->listener = loop_listener_close(s->listener);
    LIST_EACH (n, &s->connections)
        http__conn_drain(CONTAINER_OF(n, struct connection, node)->conn);
}

struct http_server *http_server_close(struct http_server *s)
{
    if (!s)
        return NULL;
    loop_listener_close(s->listener);
    for (struct list *n = list_first(&s->connections); n; n = list_first(&s->connections)) {
        struct connection *x = CONTAINER_OF(n, struct connection, node);
        http__conn_close(x->conn);
        forget(x);
    }
    free(s->address);
    free(s);
    return NULL;
}
