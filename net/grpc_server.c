/* A server of gRPC: a listener and its connections. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "grpc_link.h"

struct connection {
    struct list node;
    struct grpc_link *link;
    struct grpc_server *server;
};

struct grpc_server {
    struct loop *loop;
    struct grpc_server_config config;
    struct loop_listener *listener; /* NULL: it drains */
    char *address;
    struct list connections;
    size_t count;
    struct loop_timer *grace;
};

static bool on_call(void *arg, struct grpc_call *call)
{
    struct grpc_server *s = ((struct connection *)arg)->server;
    return s->config.on_call(s->config.arg, call);
}

static void forget(struct connection *c)
{
    list_remove(&c->node);
    c->server->count--;
    free(c);
}

static void on_link_end(void *arg, struct grpc_link *link, const struct err *why)
{
    struct connection *c = arg;
    struct grpc_server *s = c->server;
    forget(c);
    if (s->config.on_lost)
        s->config.on_lost(s->config.arg, grpc__link_peer(link), why);
}

static const struct grpc_link_events link_events = {.on_call = on_call, .on_end = on_link_end};

static void on_accept(void *arg, struct loop_socket *socket)
{
    struct grpc_server *s = arg;
    if (s->count >= s->config.limits.connections_max) {
        struct err why;
        err_set(&why, ERR_NET, "refused: there are %zu connections already", s->count);
        if (s->config.on_lost)
            s->config.on_lost(s->config.arg, loop_socket_name(socket), &why);
        loop_socket_close(socket);
        return;
    }
    struct connection *c = xcalloc(1, sizeof(*c));
    struct grpc_link_config config = {
        .loop = s->loop,
        .tls = s->config.tls,
        .limits = &s->config.limits,
        .events = &link_events,
        .arg = c,
    };
    c->server = s;
    list_append(&s->connections, &c->node);
    s->count++;
    c->link = grpc__link_accept(&config, socket);
}

static void grace_over(void *arg)
{
    struct grpc_server *s = arg;
    LIST_EACH (n, &s->connections)
        grpc__link_cut(CONTAINER_OF(n, struct connection, node)->link, "the server drains");
}

struct grpc_server *grpc_server_new(struct loop *l, const struct grpc_server_config *config,
                                    struct err *err)
{
    if (tls_listen_check(config->tls, config->address, err))
        return NULL;
    struct grpc_server *s = xcalloc(1, sizeof(*s));
    s->loop = l;
    s->config = *config;
    h2__limits_fill(&s->config.limits);
    list_init(&s->connections);
    s->listener = loop_listener_new(l, config->address, on_accept, s, err);
    if (!s->listener)
        return grpc_server_close(s);
    s->address = xstrdup(loop_listener_address(s->listener));
    s->grace = loop_timer_new(l, grace_over, s);
    return s;
}

const char *grpc_server_address(const struct grpc_server *s)
{
    return s->address;
}

size_t grpc_server_connections(const struct grpc_server *s)
{
    return s->count;
}

void grpc_server_drain(struct grpc_server *s, uint64_t grace_ms)
{
    s->listener = loop_listener_close(s->listener);
    LIST_EACH (n, &s->connections)
        grpc__link_drain(CONTAINER_OF(n, struct connection, node)->link);
    loop_timer_at(s->grace, loop_now_ms(s->loop) + grace_ms);
}

struct grpc_server *grpc_server_close(struct grpc_server *s)
{
    if (!s)
        return NULL;
    loop_listener_close(s->listener);
    loop_timer_close(s->grace);
    for (struct list *n = list_first(&s->connections); n; n = list_first(&s->connections)) {
        struct connection *c = CONTAINER_OF(n, struct connection, node);
        grpc__link_close(c->link);
        forget(c);
    }
    free(s->address);
    free(s);
    return NULL;
}
