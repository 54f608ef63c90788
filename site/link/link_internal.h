/* Private to site/link: a relay's streams to other sites.
 *
 *   links.c    its life; who may come in
 *   dial.c     streams that this relay opens: where to, when again, what waits meanwhile
 *   stream.c   one stream: frames in both directions, its end
 *   route.c    which relay of a site speaks for an account */
#ifndef SITE_LINK_INTERNAL_H
#define SITE_LINK_INTERNAL_H

#include "base/backoff.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/rng.h"
#include "base/table.h"
#include "net/grpc.h"
#include "site/link/link.h"

struct peer {
    struct site_links *links;
    char *name;
    char **targets;
    size_t target_count, next_target, index;
    struct list streams; /* both directions */
    struct list dials;
    size_t taken; /* streams that the peer opened */
    struct backoff backoff;
    uint64_t retry_at;
    uint64_t sent, received, sent_bytes, dropped, refused;
};

/* A connection that this relay opens. */
struct dial {
    struct list node;
    struct peer *peer;
    char *target;
    struct grpc_client *client;
    struct stream *stream; /* NULL: it is not up yet */
    struct list waiting;   /* frames */
    size_t waiting_bytes;
};

struct stream {
    struct list node;
    struct peer *peer;
    struct grpc_call *call;
    struct dial *dial;        /* NULL: the peer opened it */
    char *address;            /* of the peer's relay; NULL: not known */
    struct loop_timer *timer; /* of the Hello, then of idleness */
    uint64_t used_at;
    bool hello;
    bool ending; /* nothing is sent any more */
    bool broken; /* the peer broke the protocol */
};

struct route_key {
    size_t peer;
    uint8_t account[SELECTOR_ACCOUNT_BYTES];
};

/* The relay that speaks for an account at a site. */
struct route {
    struct route_key key;
    char *address;
    UT_hash_handle hh;
};

struct site_links {
    struct loop *loop;
    struct site_links_config config; /* strings are owned copies; peers is NULL */
    char *address;
    struct tls_context *tls_server, *tls_client;
    struct grpc_server *server;
    struct grpc_limits limits;
    struct peer *peers;
    struct route *routes;
    struct rng rng;
    struct stream *current; /* whose message is being given to on_message */
    const uint8_t *current_account;
};

void site__links_note(struct site_links *s, enum site_links_note note, const struct peer *p,
                      const char *text);

/* dial.c */

/* The connection to this relay of the peer, or any if target is NULL; NULL: there is none. */
struct dial *site__dial_find(struct peer *p, const char *target);
/* Opens one; NULL: not now, or it is no address. target NULL: the next one of the list. */
struct dial *site__dial(struct peer *p, const char *target);
bool site__dial_queue(struct dial *d, const struct buf *frame);
/* It failed, or its stream ended: the site is not dialled again before the back-off is over, unless
 * this relay ended the stream. */
void site__dial_over(struct dial *d, const char *why);
void site__dial_free(struct dial *d); /* with its stream */
const char *site__next_target(struct peer *p);

/* stream.c */

struct stream *site__stream_new(struct peer *p, struct dial *d); /* without its call yet */
void site__stream_begin(struct stream *s);
void site__stream_free(struct stream *s);
/* A stream that can be used: to this relay, or to any if address is NULL. */
struct stream *site__stream_find(struct peer *p, const char *address);
bool site__stream_send(struct stream *s, const void *frame, size_t len);
extern const struct grpc_call_events site__stream_events;

/* route.c */

const char *site__route(const struct site_links *s, size_t peer,
                        const uint8_t account[SELECTOR_ACCOUNT_BYTES]); /* NULL: not known */
void site__route_set(struct site_links *s, size_t peer,
                     const uint8_t account[SELECTOR_ACCOUNT_BYTES], const char *address);
void site__routes_forget(struct site_links *s, size_t peer, const char *address);
void site__routes_free(struct site_links *s);

#endif
