/* A server of line-oriented sockets: it accepts peers and closes idle ones. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "peer_internal.h"

static void server_accept(void *arg, int fd)
{
    struct loop_server *s = arg;
    struct loop_peer *p = peer__new(s->loop, &s->events, s->is_unix);
    loop__endpoint_open(&p->uv, fd);
    if (s->peer_count >= LOOP_PEERS_MAX) {
        loop_peer_close(p);
        return;
    }
    list_append(&s->peers, &p->node);
    p->server = s;
    p->heard_ms = loop_now_ms(s->loop);
    s->peer_count++;
    peer__opened(p);
}

static struct loop_peer *find_idle(const struct loop_server *s)
{
    uint64_t now = loop_now_ms(s->loop);
    LIST_EACH (n, &s->peers) {
        struct loop_peer *p = CONTAINER_OF(n, struct loop_peer, node);
        if (now - p->heard_ms >= s->idle_ms)
            return p;
    }
    return NULL;
}

static void close_idle(void *arg)
{
    struct loop_server *s = arg;
    loop_timer_at(s->timer, loop_now_ms(s->loop) + s->idle_ms / 4);
    for (struct loop_peer *p;
         s->timer && (p = find_idle(s));) /* the owner may close the server meanwhile */
        peer__end(p, UV_ETIMEDOUT, "idle");
}

struct loop_server *loop_server_new(struct loop *l, const char *address,
                                    const struct loop_peer_events *events, struct err *err)
{
    struct loop_address a;
    if (loop__address_parse(address, &a, err))
        return NULL;
    struct loop_server *s = xcalloc(1, sizeof(*s));
    s->loop = l;
    s->events = *events;
    s->is_unix = a.is_unix;
    list_init(&s->peers);
    s->acceptor = loop__acceptor_new(l, &a, server_accept, s, err);
    if (!s->acceptor)
        return loop_server_close(s);
    s->timer = loop_timer_new(l, close_idle, s);
    loop_server_idle(s, LOOP_PEER_IDLE_MS);
    return s;
}

void loop_server_idle(struct loop_server *s, uint64_t ms)
{
    PRE(ms >= 4);
    s->idle_ms = ms;
    loop_timer_at(s->timer, loop_now_ms(s->loop) + ms / 4);
}

const char *loop_server_address(const struct loop_server *s)
{
    return loop__acceptor_address(s->acceptor);
}

struct loop_server *loop_server_close(struct loop_server *s)
{
    if (!s)
        return NULL;
    for (struct list *n = list_first(&s->peers); n; n = list_first(&s->peers))
        loop_peer_close(CONTAINER_OF(n, struct loop_peer, node));
    s->timer = loop_timer_close(s->timer);
    loop__acceptor_close(s->acceptor);
    free(s);
    return NULL;
}
