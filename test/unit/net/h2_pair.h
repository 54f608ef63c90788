/* Two HTTP/2 connections back to back, without sockets: byte queues in between, on virtual time.
 * Bytes cross in pieces whose sizes a seeded generator chooses. */
#ifndef TEST_H2_PAIR_H
#define TEST_H2_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "h2_internal.h"

struct side {
    struct pair *pair;
    struct h2_conn *conn;
    struct buf out; /* written, on its way to the other side */
    bool stuck;     /* its bytes do not leave: the other side reads nothing */
    bool woken, up, over;
    struct err why;
};

struct pair {
    uint64_t now;
    struct rng rng;
    size_t piece_max;
    struct side client, server;
    bool (*on_call)(struct pair *p, struct grpc_call *call);
};

static inline void side_write(void *arg, const uint8_t *data, size_t len)
{
    buf_put(&((struct side *)arg)->out, data, len);
}

static inline size_t side_queued(void *arg)
{
    return ((struct side *)arg)->out.len;
}

static inline void side_wake(void *arg)
{
    ((struct side *)arg)->woken = true;
}

static inline void side_up(void *arg)
{
    ((struct side *)arg)->up = true;
}

static inline void side_end(void *arg, const struct err *why)
{
    struct side *s = arg;
    assert_false(s->over); /* once */
    s->over = true;
    s->why = *why;
}

static inline bool side_call(void *arg, struct grpc_call *call)
{
    struct side *s = arg;
    return s->pair->on_call && s->pair->on_call(s->pair, call);
}

static inline void side_open(struct pair *p, struct side *s, bool server,
                             const struct grpc_limits *limits)
{
    static const struct h2_io io = {
        .write = side_write,
        .queued = side_queued,
        .wake = side_wake,
        .on_up = side_up,
        .on_call = side_call,
        .on_end = side_end,
    };
    s->pair = p;
    s->conn = h2__conn_new(server, limits, &io, s, p->now);
}

static inline void pair_open(struct pair *p, uint64_t seed, size_t piece_max,
                             const struct grpc_limits *client, const struct grpc_limits *server)
{
    static const struct grpc_limits none;
    *p = (struct pair){.now = 1000, .rng = {seed}, .piece_max = piece_max, .on_call = p->on_call};
    side_open(p, &p->client, false, client ? client : &none);
    side_open(p, &p->server, true, server ? server : &none);
}

static inline bool cross(struct pair *p, struct side *from, struct side *to)
{
    if (!from->out.len || from->stuck || to->over)
        return false;
    size_t n = (size_t)rng_between(&p->rng, 1, p->piece_max);
    n = n < from->out.len ? n : from->out.len;
    uint8_t *piece = xmalloc(n); /* of exactly this size: a read past the end is seen */
    memcpy(piece, from->out.data, n);
    memmove(from->out.data, from->out.data + n, from->out.len - n);
    from->out.len -= n;
    from->woken = true; /* the socket took bytes */
    h2__conn_bytes(to->conn, p->now, piece, n);
    free(piece);
    return true;
}

static inline bool side_turn(struct pair *p, struct side *s)
{
    if (!s->woken || s->over)
        return false;
    s->woken = false;
    h2__conn_turn(s->conn, p->now);
    return true;
}

/* Until nothing moves. */
static inline void pair_run(struct pair *p)
{
    for (bool more = true; more;) {
        more = side_turn(p, &p->client);
        more = side_turn(p, &p->server) || more;
        more = cross(p, &p->client, &p->server) || more;
        more = cross(p, &p->server, &p->client) || more;
    }
}

/* Time passes; each side turns when its deadline comes. */
static inline void pair_wait(struct pair *p, uint64_t ms)
{
    for (uint64_t end = p->now + ms; p->now < end;) {
        uint64_t next = end;
        struct side *sides[] = {&p->client, &p->server};
        for (int i = 0; i < 2; i++)
            if (!sides[i]->over && h2__conn_deadline(sides[i]->conn) < next)
                next = h2__conn_deadline(sides[i]->conn);
        assert_true(next > p->now || next == end); /* a deadline that stays in the past spins */
        p->now = next;
        for (int i = 0; i < 2; i++)
            if (!sides[i]->over && h2__conn_deadline(sides[i]->conn) <= p->now)
                h2__conn_turn(sides[i]->conn, p->now);
        pair_run(p);
    }
}

static inline void pair_close(struct pair *p)
{
    h2__conn_free(p->client.conn);
    h2__conn_free(p->server.conn);
    buf_done(&p->client.out);
    buf_done(&p->server.out);
}

#endif
