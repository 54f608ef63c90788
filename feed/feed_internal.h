/* Private to feed/: the room's data.
 *
 *   room.c     effects of the cores; who leads; the end
 *   rows.c     feeds, as the database has them
 *   session.c  streams of publishers
 *   copy.c     the bytes of a copy, its verification, and its way to the database
 *   report.c   metrics and status */
#ifndef FEED_FEED_INTERNAL_H
#define FEED_FEED_INTERNAL_H

#include "base/backoff.h"
#include "base/buf.h"
#include "base/metrics.h"
#include "base/rng.h"
#include "base/table.h"
#include "feed/feed.h"

struct feed;

enum { COPY_LENGTH = 4 }; /* bytes of a call's length in a copy */
#define EVERY_SESSION UINT64_MAX

/* A trailer, as long as the call that brought it. */
struct feed_trailer {
    uint32_t count;
    const uint8_t *digest, *signature;
};

/* What one session sent after one header. It lives until the core drops it and nothing that is
 * under way for it uses it any more. */
struct feed_copy_bytes {
    struct feed *feed;
    uint64_t id;
    int64_t number, epoch; /* won under it; the database refuses it under a later one */
    uint64_t session;
    uint8_t publisher[FEED_KEY], digest[FEED_DIGEST], signature[FEED_SIGNATURE];
    struct buf body;          /* each call as its length (4 bytes, big-endian) and its bytes */
    uint32_t count, promised; /* calls; how many the trailer says */
    char *name;               /* of the feed, for the thread */
    /* made by the verification */
    struct buf data; /* calls and texts */
    struct feed_call *calls;
    struct err err;   /* why it is not valid */
    uint32_t checked; /* calls that decode */
    struct loop_work work;
    struct loop_task slice;
    struct loop_timer *again; /* the chain's metadata is not known now */
    struct feed_take take;
    bool dropped, busy;
    UT_hash_handle hh;
};

struct feed_session {
    struct feed_room *room;
    struct feed *feed; /* NULL: no header yet, or the end is sent */
    uint64_t id;
    const struct feed_session_ops *ops;
    void *ctx;
    char *peer;
    int64_t number; /* of its last header */
    uint8_t publisher[FEED_KEY];
    bool ended;
    char *asked;          /* a feed that is not known: held until the feeds are read; NULL: none */
    uint64_t asked_after; /* by a read that began after this many had begun */
    UT_hash_handle hh;
};

struct feed {
    struct feed_room *room;
    char *name, *leader, *options;
    int32_t account;
    int64_t row_last; /* as last read */
    uint8_t publishers[FEED_PUBLISHERS_MAX][FEED_KEY];
    int publisher_count;
    bool paused, listed, stepping;
    int64_t epoch;     /* that it is served under; 0: it is not */
    enum feed_end end; /* of its sessions, when it was left */
    struct feed_core *core;
    struct loop_timer *timer;
    uint64_t load;                  /* of the core, to be answered; 0: none */
    uint64_t load_after;            /* by a read that began after this many had begun */
    uint64_t store_after;           /* a read that began after this many shows the last store */
    struct feed_copy_bytes *copies; /* uthash by id */
    /* What the event of the present step brought. */
    const uint8_t *item;
    size_t item_len;
    struct feed_trailer trailer;
    /* For the message of an end: whose, and why. */
    uint64_t why_session;
    char why[300];
    struct metric_histogram took[FEED_NOT_STORED + 1];
    UT_hash_handle hh;
};

struct feed_lead {
    int32_t account;
    int64_t epoch;
    UT_hash_handle hh;
};

struct feed_room {
    struct loop *loop;
    const struct feed_host_ops *ops;
    void *arg;
    struct feed *feeds;            /* uthash by name */
    struct feed_lead *leads;       /* uthash by account */
    struct feed_session *sessions; /* uthash by id */
    uint64_t session_ids;
    size_t asking;            /* sessions that wait for a read of the feeds */
    struct loop_timer *timer; /* the next read of all feeds */
    uint64_t reads, read_at;  /* that began; when the last one did */
    bool reading, read_again, known, draining, closing;
    struct backoff first; /* of reads, until the feeds are known */
    struct rng rng;
    struct loop_task task;
    void (*drained)(void *arg);
    void (*closed)(void *arg);
};

/* room.c */
void feed__step(struct feed *f, const struct feed_event *ev);
/* The same, for an event of a session that may end it: says why. */
void feed__step_why(struct feed *f, const struct feed_event *ev, const char *why);
/* The same for an answer about a copy, whose session it may end. */
void feed__step_why_of(struct feed *f, const struct feed_event *ev, uint64_t session,
                       const char *why);
struct feed *feed__find(struct feed_room *room, const char *name);
/* The place of a publisher's key; -1: it is none of this feed's. */
int feed__publisher(const struct feed *f, const uint8_t key[FEED_KEY]);
const char *feed__why_not(const struct feed *f); /* it is not served; "": another relay leads */
void feed__progress(struct feed_room *room);     /* a drain or close may be over */
void feed__tick(void *arg);                      /* the timer of a feed */
void feed__arm(struct feed *f);                  /* sets it */
/* Serves it if this relay leads its account and it takes batches; otherwise its sessions end. */
void feed__serve(struct feed *f);
/* An operator removed the feed and created it again, or its cursor moved in another way: publishers
 * send other numbers than the core waits for. The read of this row began after the last store. */
void feed__renew(struct feed *f);

const char *feed_outcome_name(enum feed_outcome outcome);

/* rows.c */
void feed__rows_begin(struct feed_room *room);
/* One read at a time. A load that is asked for during one needs the next. */
void feed__read(struct feed_room *room);
void feed__read_soon(struct feed_room *room); /* reads the feeds soon */

/* session.c */
struct feed_session *feed__session_of(struct feed_room *room, uint64_t id);
void feed__deliver(struct feed *f, const struct feed_effect *fx);
/* A read of the feeds is done, and may answer what the session asked. */
void feed__asked(struct feed_session *s, bool failed);

/* copy.c */
void feed__copy_begin(struct feed *f, const struct feed_effect *fx);
void feed__copy_append(struct feed_copy_bytes *c, const uint8_t *data, size_t len);
void feed__copy_drop(struct feed *f, uint64_t id);
struct feed_copy_bytes *feed__copy_of(struct feed *f, uint64_t id);
void feed__copy_verify(struct feed_copy_bytes *c, const struct feed_trailer *t);
void feed__copy_store(struct feed_copy_bytes *c);

#endif
