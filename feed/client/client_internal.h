/* Private to feed/client/: the publisher's machine (client.h has its picture).
 *
 *   client.c   its life; its connection, where to try next, back-off
 *   batch.c    batches: kept, signed, sent
 *   answer.c   the stream, and what the relay answers on it */
#ifndef FEED_CLIENT_INTERNAL_H
#define FEED_CLIENT_INTERNAL_H

#include "base/backoff.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/rng.h"
#include "chain/keys/keys.h"
#include "feed/client/client.h"

struct grpc_call;
struct grpc_client;

enum phase {
    BACKOFF_WAIT,
    CONNECT_WAIT,
    STREAM_IDLE, /* nothing to offer */
    SENDING,
    ANSWER_WAIT,
    SKIPPED_WAIT,
    BEHIND_WAIT,  /* the relay needs a number that we do not have */
    ENDING_WAIT,  /* EndStream is sent, since all is acknowledged */
    TOO_FAR_WAIT, /* EndStream is sent, since the relay needs a number that we do not have */
    ENDED_WAIT,   /* the relay's EndOfStream is here, the end of the call is not */
    OVER,
};

struct batch {
    struct list node;
    int64_t number;
    uint32_t count;
    unsigned refused;
    struct buf body; /* what is hashed: each call as 4 bytes of length and itself */
    uint8_t digest[FEED_WIRE_DIGEST];
    uint8_t signature[KEY_SIG_MAX];
};

struct feed_client {
    struct loop *loop;
    struct feed_client_config config; /* strings are owned copies */
    char **targets;
    char *leader;  /* where NOT_LEADER sent us; NULL: nowhere */
    size_t target; /* the next to try */
    enum phase phase;
    struct loop_timer *timer; /* of a back-off or an answer */
    struct loop_task task;    /* opens the stream, or goes on */
    struct rng rng;
    struct backoff backoff;
    struct list batches; /* ascending */
    size_t kept;
    int64_t last; /* acknowledged; -1: unknown */
    bool ending;
    bool too_far; /* the present stream was ended with TOO_FAR_BEHIND */

    struct grpc_client *link;
    bool up;
    struct grpc_call *call;
    struct batch *sending; /* NULL: none */
    size_t sent_at;        /* of its body */
    bool header_sent;
    struct feed_wire_response end; /* of ENDED_WAIT */
};

/* client.c */
void feed__client_note(struct feed_client *c, enum feed_client_note n, int64_t number,
                       const char *text);
/* Again in delay_ms, at the same relay or at the next one. */
void feed__client_again(struct feed_client *c, uint64_t delay_ms, bool elsewhere);
uint64_t feed__client_delay(struct feed_client *c); /* the next one of the back-off */
/* In this phase, for ms at most. */
void feed__client_wait_answer(struct feed_client *c, enum phase phase, uint64_t ms);
/* The ends: nothing follows on_failed and on_done, which may close the client. */
void feed__client_fail(struct feed_client *c, const struct err *why);
void feed__client_finish(struct feed_client *c);

/* batch.c */
struct batch *feed__client_first_batch(const struct feed_client *c); /* NULL: none is kept */
struct batch *feed__client_batch_free(struct feed_client *c, struct batch *b);
/* Every number up to this one is stored. on_acked may put more, or end. */
void feed__client_acked(struct feed_client *c, int64_t number);
/* The relay's last number is this, and it may need one below the first that is kept. */
enum missing {
    MISSING_NONE,   /* it does not, or the owner has put that number again */
    MISSING_OTHERS, /* we never had it: another publisher has to send it */
    MISSING_LOST,   /* it was acknowledged to us, and the relay's database has lost it */
};
enum missing feed__client_missing(struct feed_client *c, int64_t last);
void feed__client_send_end(struct feed_client *c, int code, enum phase phase);
void feed__client_wake(struct feed_client *c); /* goes on with the first batch, from the loop */

/* answer.c */
void feed__client_open_stream(struct feed_client *c); /* PRE: the connection is up */

#endif
