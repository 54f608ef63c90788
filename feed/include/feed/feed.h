/* The feeds of one relay: sessions of publishers, their copies of batches, and what becomes of
 * them. One core (feed/core/feed.h) per feed decides. The room keeps the bytes, verifies copies on
 * the thread pool, and asks its host, the relay, for everything that it does not have: which feeds
 * there are, whether this relay leads their account, the chain's metadata, and the database.
 *
 *   door (gRPC) --> feed_session_*        send, hold <-- feed_session_ops
 *                         |
 *                   room: copies, verification, timers
 *                         |
 *   relay       --> feed_room_*           load, take, check_call <-- feed_host_ops
 *
 * Everything runs on the loop's thread, but for hashing and the check of signatures. */
#ifndef FEED_FEED_H
#define FEED_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "feed/core/feed.h"
#include "loop/loop.h"

struct buf;
struct metric;
struct feed_room;
struct feed_session;

enum { FEED_KEY = 32, FEED_DIGEST = 32, FEED_SIGNATURE = 64, FEED_NAME_MAX = 64 };

/* ---- for the door ---- */

struct feed_message_out {
    enum feed_message message;
    enum feed_end end;  /* of FEED_MSG_END */
    int64_t number;     /* FEED_MSG_BEHIND and FEED_MSG_END: the last stored number */
    const char *leader; /* FEED_END_NOT_LEADER: "HOST:PORT"; "" if it is not known */
    const char *detail; /* what was wrong, for people; "" if there is nothing to say */
};

struct feed_session_ops {
    /* Queues a message. After FEED_MSG_END nothing follows: flush, send the trailers, close. */
    void (*send)(void *ctx, const struct feed_message_out *m);
    /* held: give the session nothing more, and stop reading its stream, until it is released. Both
     * may be called inside any feed_session_* call but feed_session_gone, and from the loop. */
    void (*hold)(void *ctx, bool held);
};

/* One stream, from the moment that it is accepted. `peer` names it in the log; copied. */
struct feed_session *feed_session_open(struct feed_room *room, const struct feed_session_ops *ops,
                                       void *ctx, const char *peer);
/* What came, in its order. Nothing while the session is held. What comes after the end was sent is
 * ignored. Bytes are copied if they are kept. */
void feed_session_header(struct feed_session *s, const char *feed, int64_t number,
                         const uint8_t publisher[FEED_KEY]);
void feed_session_call(struct feed_session *s, const uint8_t *data, size_t len);
void feed_session_trailer(struct feed_session *s, uint32_t count, const uint8_t digest[FEED_DIGEST],
                          const uint8_t signature[FEED_SIGNATURE]);
/* The client's EndStream: its code, the lowest number that it has, the highest one that was
 * acknowledged to it. */
void feed_session_end_stream(struct feed_session *s, int code, int64_t earliest,
                             int64_t latest_acked);
void feed_session_bad(struct feed_session *s, const char *why); /* it is not understood */
/* The stream was cut without an end: the answers are not read, a request is too long, the
 * connection is lost. For the log; feed_session_gone follows. */
void feed_session_cut(struct feed_session *s, const char *why);
/* The stream is closed: exactly once, and s is gone. */
void feed_session_gone(struct feed_session *s);

/* ---- for the relay ---- */

/* A feed as the database has it. */
struct feed_row {
    const char *name;
    int32_t account;
    int64_t last;
    const uint8_t *publishers; /* keys, FEED_KEY bytes each */
    size_t publisher_count;
    const char *options; /* a JSON object */
    bool paused;
    const char *leader; /* where the account's leader takes feeds; "" if that is not known */
};

/* One call of a batch, as its publisher described it. */
struct feed_call {
    const uint8_t *data;
    size_t len;
    int64_t priority, not_before_ms, deadline_ms, spec_version, deadline_block; /* -1: none, but
                                                                                   for priority */
    int64_t retries;
    const char *tip, *max_tip; /* decimal; NULL: none */
};

/* A batch that is to be stored. The host calls feed_take_done once, from the loop. */
struct feed_take {
    int32_t account;
    int64_t epoch;
    const char *feed;
    int64_t number;
    const uint8_t *publisher, *digest;
    size_t count;
    const struct feed_call *calls;
    /* private */
    void *copy;
};

struct feed_host_ops {
    /* Reads the feeds; feed_room_rows or feed_room_no_rows follows, from the loop. Not while one is
     * under way. */
    void (*load)(void *arg);
    void (*take)(void *arg, struct feed_take *t);
    /* Is it exactly one call of this chain? 0; ERR_DECODE with the reason; any other error: that
     * is not known now. */
    int (*check_call)(void *arg, const uint8_t *call, size_t len, struct err *err);
};

struct feed_room *feed_room_new(struct loop *l, const struct feed_host_ops *ops, void *arg);
/* All feeds of the relay's accounts. Those that are missing are gone. */
void feed_room_rows(struct feed_room *room, const struct feed_row *rows, size_t count);
void feed_room_no_rows(struct feed_room *room);
/* This relay leads the account under this epoch; 0: it does not, or not any more. */
void feed_room_lead(struct feed_room *room, int32_t account, int64_t epoch);
void feed_take_done(struct feed_take *t, enum feed_stored outcome, int64_t last,
                    const struct err *err); /* err: why, for people; NULL: nothing to say */
/* A feed as it is now. Texts are valid until the loop goes on. */
struct feed_view {
    const char *name;
    int32_t account;
    bool served; /* this relay takes its batches */
    bool paused;
    enum feed_phase phase;
    int64_t last;       /* stored, as far as this relay knows; FEED_NONE: none, or not known */
    size_t sessions;    /* streams of publishers */
    uint64_t primary;   /* the session whose copy is being taken; 0: none */
    const char *leader; /* where publishers find the leader; "" if that is not known */
};
/* Each feed. The feeds were read: false until the database has answered once. */
bool feed_room_view(const struct feed_room *room,
                    void (*each)(void *arg, const struct feed_view *v), void *arg);
size_t feed_room_sessions(const struct feed_room *room); /* with those that named no feed yet */
void feed_room_metrics(const struct feed_room *room, struct buf *out); /* Prometheus' text */
const struct metric *feed_metric(size_t i); /* its metrics; NULL after the last one */
/* No batch is begun any more; what is being verified or stored ends first. `cb` once all sessions
 * have been told to go elsewhere. */
void feed_room_drain(struct feed_room *room, void (*cb)(void *arg));
/* All sessions are gone, and no take is under way. `cb` when the thread pool is done with it, and a
 * load has ended; the room is freed before. */
void feed_room_close(struct feed_room *room, void (*cb)(void *arg));

#endif
