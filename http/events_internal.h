/* Private to http/hub.c and http/follower*.c: events for many readers.
 *
 *   hub.c               one listener, the ring of what it delivered, and the readers
 *   follower.c          one reader: the ring, as fast as it reads; its beat and its end
 *   follower_missed.c   what it missed, by SQL
 *   follower_route.c    the route: whose events, and from where on
 *
 *   WAIT -> POSITION -> ENDS -> PENDING -> RING
 *     |        ^                   |         ^
 *     |        '- the ring went on '         |   (it has forgotten events that this reader needs)
 *     '--------------------------------------'   (from now on, or right after an event of the ring)
 */
#ifndef HTTP_EVENTS_INTERNAL_H
#define HTTP_EVENTS_INTERNAL_H

#include "api_internal.h"
#include "base/list.h"
#include "http/core/told.h"
#include "listen/listen.h"

/* Events of the ring from `from` to before `end`, as every reader without a filter gets them. */
struct batch {
    uint64_t from, end;
    struct shared *piece;
};

struct hub {
    struct api *api;
    char *dsn;
    struct listen *listen; /* NULL: nobody reads */
    bool live, closing, draining;
    bool fresh;            /* not live since it opened */
    struct err why;        /* not live */
    struct recent *recent; /* with listen */
    uint32_t tag;          /* of the ring: no other one has it */
    int64_t position_us;
    struct list followers;
    size_t count;
    struct loop_timer *timer;
    uint64_t beat_at, pump_at, leave_at; /* UINT64_MAX: not due */
    uint64_t rest_until;                 /* no pump before it */
    size_t writes, bytes;                /* to readers since the last pump began */
    struct batch batches[4];             /* of the ring as it is */
    size_t batched;                      /* how many were made */
    struct buf text;                     /* of one reader, while it is made */
    void (*cb)(void *arg);
    void *cb_arg;
};

enum follower_phase {
    FOLLOWER_WAIT,
    FOLLOWER_POSITION,
    FOLLOWER_ENDS,
    FOLLOWER_PENDING,
    FOLLOWER_RING
};

struct follower {
    struct list node; /* on none: the stream has ended, and only a query is waited for */
    struct hub *hub;
    struct http_stream *stream;
    enum follower_phase phase;
    struct event_filter filter;
    int64_t since_us; /* 0: from now on */
    struct event_id from;
    struct conn_query query, check;
    bool asking, checking;
    bool told_live, told_stale;
    bool written;            /* since the last beat */
    bool behind;             /* its socket was full before the ring ended */
    char hash[API_HASH_HEX]; /* of its token */
    uint64_t joined, number; /* of the ring: when it joined; the next event */
    int64_t complete_us, split_us;
    struct told *told; /* from the tables; NULL: nothing, or the ring is past it */
    uint64_t told_until;
    struct {
        int64_t us, nonce, id;
        int32_t account;
    } after; /* the last row that was read */
};

/* hub.c */
struct hub *hub__new(struct api *a, const char *dsn);
void hub__drain(struct hub *h); /* says so to every reader, and ends its stream */
void hub__close(struct hub *h, void (*cb)(void *arg), void *arg); /* without readers; frees h */
/* false: there are too many, or the relay stops. */
bool hub__has_room(const struct hub *h);
void hub__join(struct hub *h, struct follower *f);
void hub__left(struct hub *h, struct follower *f);

/* follower.c */
/* Frees r. f is the stream's from then on. */
void follower__start(struct follower *f, struct hub *h, struct http_request *r, const char *hash);
void follower__go_on(struct follower *f);
void follower__beat(struct follower *f, uint64_t now);
void follower__stale(struct follower *f);
void follower__end(struct follower *f, const char *why);
void follower__say(struct follower *f, struct buf *text); /* and clears it */
void follower__forget_batches(struct hub *h);             /* the ring changes */
void follower__free(struct follower *f);                  /* if nothing waits for it */

/* follower_missed.c */
void follower__read(struct follower *f); /* the next page of its phase */

#endif
