/* What a peer and its server know of each other. */
#ifndef LOOP_PEER_INTERNAL_H
#define LOOP_PEER_INTERNAL_H

#include "base/buf.h"
#include "internal.h"
#include "loop/peer.h"

struct loop_peer {
    union loop_endpoint uv;
    struct list node; /* on the server's list */
    struct loop *loop;
    struct loop_peer_events events;
    struct buf in;
    char chunk[16384];
    uv_connect_t connect;
    struct loop_server *server; /* NULL: a client's */
    uint64_t heard_ms;          /* when the last byte came */
    bool closed;
};

struct loop_server {
    struct loop *loop;
    struct loop_acceptor *acceptor;
    struct loop_peer_events events;
    struct list peers;
    size_t peer_count;
    size_t unfinished;        /* bytes in the peers' buffers */
    struct loop_timer *timer; /* idle peers are looked for */
    uint64_t idle_ms;
    bool is_unix;
};

struct loop_peer *peer__new(struct loop *l, const struct loop_peer_events *events, bool is_unix);
/* Its socket is there: on_open, and it is read. */
void peer__opened(struct loop_peer *p);
/* on_end, with why (uv's code; UV_EOF: without an error), then it is closed. */
void peer__end(struct loop_peer *p, int code, const char *what);

#endif
