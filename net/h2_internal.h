/* Private to net/: one HTTP/2 connection and its calls, without socket, TLS or clock. Bytes come
 * in by h2_conn_bytes and leave by io.write; time comes in as a number.
 *
 *   h2_conn.c     life of the connection: pump, time, limits, drain, end
 *   h2_session.c  what nghttp2 reports
 *   grpc_call.c   course and end of a call; grpc_headers.c: its headers; grpc_receive.c: when it
 *                 takes what comes; grpc_send.c: its queue and its status
 *
 * Nothing is freed while a callback runs (busy). A call dies in nghttp2's on_stream_close or with
 * its connection. */
#ifndef NET_H2_INTERNAL_H
#define NET_H2_INTERNAL_H

#include <nghttp2/nghttp2.h>
#include <string.h>

#include "base/list.h"
#include "grpc_internal.h"

/* A header. */
#define NV(n, v)                                                                                   \
    {                                                                                              \
        .name = (uint8_t *)(uintptr_t)(n), .value = (uint8_t *)(uintptr_t)(v),                     \
        .namelen = strlen(n), .valuelen = strlen(v)                                                \
    }

struct h2_conn;

/* The transport, and who is asked. */
struct h2_io {
    void (*write)(void *arg, const uint8_t *data, size_t len); /* taken at once, sent later */
    size_t (*queued)(void *arg);                               /* bytes not sent yet */
    void (*wake)(void *arg);  /* call h2_conn_turn in the next round; repeated: once is enough */
    void (*on_up)(void *arg); /* the peer's SETTINGS came; may be NULL */
    bool (*on_call)(void *arg, struct grpc_call *call); /* server */
    /* The connection is over: send what was written, then close. Last callback, once. */
    void (*on_end)(void *arg, const struct err *why);
};

/* How much of something came in the present ten seconds. */
struct h2_meter {
    uint64_t since_ms;
    uint64_t count;
};

struct h2_conn {
    nghttp2_session *session;
    bool server;
    struct grpc_limits limits; /* no value is 0 */
    struct h2_io io;
    void *arg;
    const char *peer;     /* for people; borrowed */
    const char *identity; /* borrowed */

    uint64_t now;
    struct list calls;
    struct buf wire; /* output that is gathered for one write */
    unsigned busy;   /* depth of callbacks and of nghttp2 */
    bool up;
    bool draining;
    bool drain_final; /* the second GOAWAY is out */
    bool gone_away;   /* the peer sent GOAWAY */
    bool ending;      /* why is set: end at the outermost exit */
    bool over;        /* on_end was called */
    struct err why;

    uint64_t start_ms;
    uint64_t header_ms; /* a block of headers began; 0: none is open */
    uint64_t heard_ms;
    uint64_t ping_ms;        /* a PING of ours is unanswered; 0: none */
    uint64_t taken_ms;       /* when the peer last took output, or none was queued */
    uint64_t used_ms;        /* a call was served last, or it began */
    uint64_t written, taken; /* bytes of output, in all */
    size_t out_bytes;        /* queued in calls */
    size_t partial_bytes;    /* of messages that are not whole, in all calls */
    uint64_t idle_bytes;     /* received since anything useful happened */
    struct h2_meter settings, pings, resets, refused, empties;
};

struct grpc_call {
    struct list node;
    struct h2_conn *conn;
    int32_t stream;
    const struct grpc_call_events *events;
    void *arg;

    /* headers */
    char path[256];
    char token[1024];
    size_t header_bytes;
    bool post, grpc_type, encoded, timeout_bad, begun;
    unsigned http_status;    /* client */
    bool has_status;         /* client: grpc-status came */
    enum grpc_status status; /* client: the peer's; server: ours */
    char text[256];
    uint64_t deadline_ms; /* 0: none */

    /* what came */
    struct grpc_frames frames;
    size_t partial;      /* of frames, as counted in conn->partial_bytes */
    uint64_t partial_ms; /* since when there is a part of a message */
    struct buf held;     /* bytes that are not taken: their window stays closed */
    size_t held_at;
    bool paused;
    bool deaf;      /* what comes is dropped: the call has its status */
    bool peer_half; /* the peer ended its side */
    bool half_told;

    /* what leaves */
    struct buf out;
    size_t out_at;
    uint64_t moved_ms; /* when a byte of it was last taken, or none was queued */
    bool headers_sent, deferred, finishing, trailers, was_full;
    bool reset; /* our RST_STREAM is on its way */
    bool told;  /* on_end was called */
};

/* ---- h2_conn.c ---- */
struct h2_conn *h2__conn_new(bool server, const struct grpc_limits *limits, const struct h2_io *io,
                             void *arg, uint64_t now);
struct h2_conn *h2__conn_free(struct h2_conn *c); /* PRE: not busy; no callback follows */
void h2__conn_bytes(struct h2_conn *c, uint64_t now, const uint8_t *data, size_t len);
/* Sends, resumes, and ends what is overdue. */
void h2__conn_turn(struct h2_conn *c, uint64_t now);
uint64_t h2__conn_deadline(const struct h2_conn *c); /* when to turn at the latest */
void h2__conn_drain(struct h2_conn *c, uint64_t now);
/* The owner goes: no callback follows, of a call neither. */
void h2__conn_silence(struct h2_conn *c);
/* The transport is gone, or the owner wants it gone: calls end, then on_end. */
void h2__conn_lost(struct h2_conn *c, uint64_t now, const struct err *why);

/* For the other files. */
void h2__enter(struct h2_conn *c);
void h2__leave(struct h2_conn *c);
void h2__fail(struct h2_conn *c, uint32_t code, const char *why); /* GOAWAY, then end */
bool h2__over(struct h2_meter *m, uint64_t now, uint64_t max);    /* counts one */
void h2__useful(struct h2_conn *c);

/* ---- h2_session.c ---- */
nghttp2_session *h2__session_new(struct h2_conn *c);
void h2__limits_fill(struct grpc_limits *l);

/* ---- grpc_call.c ---- */
struct grpc_call *grpc__call_new(struct h2_conn *c, int32_t stream);
void grpc__call_free(struct grpc_call *call);
void grpc__call_closed(struct grpc_call *call, uint32_t code);
void grpc__call_silence(struct grpc_call *call);
bool grpc__call_served(const struct grpc_call *call); /* it has a listener, and has not ended */
void grpc__call_turn(struct grpc_call *call);         /* go on after a pause; what is overdue */
uint64_t grpc__call_deadline(const struct grpc_call *call);
/* The call ends with the status: told to the peer where that is possible. */
void grpc__call_fail(struct grpc_call *call, enum grpc_status status, const char *text);
void grpc__call_end(struct grpc_call *call, enum grpc_status status, const char *text); /* tells */

/* For the other files of a call. */
void grpc__call_wake(struct grpc_call *call); /* a turn follows */
/* The call has its status: what still comes is dropped. */
void grpc__call_decide(struct grpc_call *call, enum grpc_status status, const char *text);
/* Decides, and sends RST_STREAM with the code. */
void grpc__call_reset(struct grpc_call *call, uint32_t code, enum grpc_status status,
                      const char *text);

/* ---- grpc_headers.c ---- */
void grpc__call_header(struct grpc_call *call, const char *name, size_t name_len, const char *value,
                       size_t len);
void grpc__call_headers_end(struct grpc_call *call, bool end_stream);
struct grpc_call *grpc__call_start(struct h2_conn *c, const char *path, const char *authority,
                                   const char *token, uint64_t deadline_ms,
                                   const struct grpc_call_events *events, void *arg);

/* ---- grpc_receive.c ---- */
void grpc__call_bytes(struct grpc_call *call, const uint8_t *data, size_t len);
void grpc__call_half(struct grpc_call *call);          /* the peer ended its side */
bool grpc__call_blocked(const struct grpc_call *call); /* takes nothing now */
void grpc__call_take_held(struct grpc_call *call);     /* unless it is blocked */
void grpc__call_report_half(struct grpc_call *call);   /* once every message is delivered */

/* ---- grpc_send.c ---- */
/* Of nghttp2's data provider, whose source is the call. */
ssize_t grpc__call_read_output(nghttp2_session *session, int32_t stream, uint8_t *data, size_t max,
                               uint32_t *flags, nghttp2_data_source *source, void *arg);
bool grpc__call_output_blocks(const struct grpc_call *call); /* over a quarter of its cap */
void grpc__call_output_drop(struct grpc_call *call);

#endif
