/* A client of gRPC: one server, one connection at a time.
 *
 *   DOWN -> RESOLVE_WAIT -> CONNECT_WAIT -> UP      (*_WAIT: suspended until a callback)
 *    ^           |            ^  |  |        |
 *    |           |            +--+  |        |       the next address of the name
 *    +-----------+------------------+--------+       on_down with the reason
 *
 * It is up when the server's SETTINGS are here: in TLS 1.3 a client ends its handshake before the
 * server has judged its certificate. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/host.h"
#include "grpc_link.h"

enum phase { DOWN, RESOLVE_WAIT, CONNECT_WAIT, UP };

struct grpc_client {
    struct loop *loop;
    struct grpc_client_config config; /* target and server_name are owned copies */
    char *host;                       /* NULL: a unix socket */
    char *port;
    enum phase phase;
    struct loop_resolve resolve;
    struct loop_timer *deadline; /* of resolving */
    int addr_next;
    struct grpc_link *link;
    struct err why;        /* why the last address failed */
    struct loop_task task; /* tries the next address, or reports */
};

static bool parse_target(struct grpc_client *c, struct err *err)
{
    const char *target = c->config.target, *host = target, *port = NULL;
    if (!strncmp(target, "unix:", 5) && target[5])
        return true;
    size_t n = host_split(&host, strlen(target), &port);
    char *end = NULL;
    unsigned long number = port ? strtoul(port, &end, 10) : 0;
    if (!n || !number || number > 65535 || *end) {
        err_set(err, ERR_CONFIG, "\"%s\" is neither HOST:PORT nor unix:/path", target);
        return false;
    }
    if (!c->config.tls && !host_is_loopback(host, n)) {
        err_set(err, ERR_CONFIG, "%s is another machine: give a ca_file for TLS", target);
        return false;
    }
    c->host = xstrndup(host, n);
    c->port = xstrdup(port);
    return true;
}

static void resolve_late(void *arg);

struct grpc_client *grpc_client_new(struct loop *l, const struct grpc_client_config *config,
                                    struct err *err)
{
    struct grpc_client *c = xcalloc(1, sizeof(*c));
    c->loop = l;
    c->config = *config;
    c->config.target = xstrdup(config->target);
    c->config.server_name = config->server_name ? xstrdup(config->server_name) : NULL;
    h2__limits_fill(&c->config.limits);
    if (!parse_target(c, err))
        return grpc_client_close(c);
    c->deadline = loop_timer_new(l, resolve_late, c);
    return c;
}

static void down(struct grpc_client *c, const struct err *why)
{
    struct err text;
    err_set(&text, why->code ? why->code : ERR_NET, "%s: %s", c->config.target, why->text);
    c->phase = DOWN;
    c->link = NULL;
    loop_timer_stop(c->deadline);
    c->config.on_down(c->config.arg, &text);
}

static void connect_next(struct loop_task *task);

static void on_up(void *arg)
{
    struct grpc_client *c = arg;
    c->phase = UP;
    c->config.on_up(c->config.arg);
}

static void on_link_end(void *arg, struct grpc_link *link, const struct err *why)
{
    struct grpc_client *c = arg;
    (void)link;
    c->link = NULL;
    if (c->phase == UP) {
        down(c, why);
        return;
    }
    c->why = *why;
    loop_post(c->loop, &c->task, connect_next);
}

static const struct grpc_link_events link_events = {.on_up = on_up, .on_end = on_link_end};

static bool connect_to(struct grpc_client *c, const char *address)
{
    const char *name = c->config.server_name ? c->config.server_name : c->host;
    struct grpc_link_config config = {
        .loop = c->loop,
        .tls = c->config.tls,
        .host = name ? name : "localhost",
        .limits = &c->config.limits,
        .events = &link_events,
        .arg = c,
    };
    c->link = grpc__link_connect(&config, address, &c->why);
    return c->link != NULL;
}

static void connect_next(struct loop_task *task)
{
    struct grpc_client *c = CONTAINER_OF(task, struct grpc_client, task);
    char address[LOOP_ADDR_LEN + 16];
    int count = c->host ? c->resolve.count : 1;
    c->phase = CONNECT_WAIT;
    while (c->addr_next < count) {
        int i = c->addr_next++;
        if (c->host)
            snprintf(address, sizeof(address), "tcp:%s:%s", c->resolve.addr[i], c->port);
        if (connect_to(c, c->host ? address : c->config.target))
            return;
    }
    struct err why = c->why;
    down(c, &why);
}

static void resolve_late(void *arg)
{
    struct grpc_client *c = arg;
    struct err why;
    loop_resolve_cancel(&c->resolve);
    err_set(&why, ERR_TIMEOUT, "its name did not resolve within %u ms", c->config.limits.up_ms);
    down(c, &why);
}

static void resolved(struct loop_resolve *r)
{
    struct grpc_client *c = CONTAINER_OF(r, struct grpc_client, resolve);
    loop_timer_stop(c->deadline);
    c->why = r->err;
    loop_post(c->loop, &c->task, connect_next);
}

void grpc_client_open(struct grpc_client *c)
{
    PRE(c->phase == DOWN);
    c->phase = RESOLVE_WAIT;
    c->addr_next = 0;
    err_clear(&c->why);
    if (!c->host) {
        loop_post(c->loop, &c->task, connect_next);
        return;
    }
    loop_timer_at(c->deadline, loop_now_ms(c->loop) + c->config.limits.up_ms);
    loop_resolve_start(c->loop, &c->resolve, c->host, resolved);
}

struct grpc_call *grpc_client_call(struct grpc_client *c, const char *path, const char *token,
                                   uint64_t deadline_ms, const struct grpc_call_events *events,
                                   void *arg)
{
    PRE(c->phase == UP);
    struct h2_conn *conn = grpc__link_conn(c->link);
    conn->now = loop_now_ms(c->loop);
    return grpc__call_start(conn, path, c->host ? c->config.target : "localhost", token,
                            deadline_ms, events, arg);
}

struct grpc_client *grpc_client_close(struct grpc_client *c)
{
    if (!c)
        return NULL;
    loop_resolve_cancel(&c->resolve);
    loop_task_cancel(&c->task);
    loop_timer_close(c->deadline);
    grpc__link_close(c->link);
    free((char *)(uintptr_t)c->config.target);
    free((char *)(uintptr_t)c->config.server_name);
    free(c->host);
    free(c->port);
    free(c);
    return NULL;
}
