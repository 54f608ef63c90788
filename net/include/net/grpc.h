/* gRPC over HTTP/2, as a server and as a client, on the loop.
 *
 * Callbacks fire from the loop, never inside the call that started them, and may call every
 * function below. A call has exactly one on_end; its pointer is dead after that. What a call queues
 * is sent in the next round of the loop.
 *
 * Flow control: a peer may send a window's worth of bytes that this side has not taken. Bytes are
 * taken when their message was delivered. A call that is paused takes none, nor does one whose
 * output queue is over a quarter of its cap: who does not read answers cannot ask more. */
#ifndef NET_GRPC_H
#define NET_GRPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "loop/loop.h"
#include "net/tls.h"

enum grpc_status {
    GRPC_OK = 0,
    GRPC_CANCELLED = 1,
    GRPC_UNKNOWN = 2,
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_DEADLINE_EXCEEDED = 4,
    GRPC_NOT_FOUND = 5,
    GRPC_ALREADY_EXISTS = 6,
    GRPC_PERMISSION_DENIED = 7,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_FAILED_PRECONDITION = 9,
    GRPC_ABORTED = 10,
    GRPC_OUT_OF_RANGE = 11,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_INTERNAL = 13,
    GRPC_UNAVAILABLE = 14,
    GRPC_DATA_LOSS = 15,
    GRPC_UNAUTHENTICATED = 16,
};
const char *grpc_status_name(enum grpc_status status);

/* What one peer may take. 0: the default behind it. */
struct grpc_limits {
    uint32_t connections_max;    /* of a server: 1,000 */
    uint32_t streams_max;        /* calls at a time of one connection: 100 */
    uint32_t message_bytes;      /* of one message: 4 MiB */
    uint32_t window_bytes;       /* not taken yet, of one call: 256 KiB */
    uint32_t call_out_bytes;     /* queued for a reader, of one call: 1 MiB */
    uint32_t conn_out_bytes;     /* the same, of all calls of a connection: 4 MiB */
    uint32_t conn_partial_bytes; /* of messages that are not whole, of a connection: 16 MiB */
    uint32_t up_ms;              /* from the socket to the peer's first SETTINGS: 5,000 */
    uint32_t header_ms;          /* for a block of headers: 10,000 */
    uint32_t message_ms;         /* for a message, from its first byte on: 60,000 */
    uint32_t stall_ms;           /* output is queued and no byte of it is taken: 30,000 */
    uint32_t keepalive_ms;       /* of silence, before a PING: 10,000 */
    uint32_t ping_ms;            /* for its answer: 5,000 */
    uint32_t unused_ms;          /* of a server: without a call that is not refused: 60,000 */
};

/* ---- calls ---- */

struct grpc_call;

struct grpc_call_events {
    void (*on_message)(void *arg, const uint8_t *data, size_t len); /* borrowed */
    void (*on_half)(void *arg); /* the peer sends no more messages; may be NULL */
    void (*on_room)(void *arg); /* the output queue is under a quarter of its cap; may be NULL */
    void (*on_end)(void *arg, enum grpc_status status, const char *text);
};

/* Queue a message. Over the cap of the call or of its connection the call ends as
 * RESOURCE_EXHAUSTED: nothing waits for a reader that does not read. */
void grpc_call_send(struct grpc_call *c, const void *message, size_t len);
size_t grpc_call_queued(const struct grpc_call *c);
/* true: deliver no message, and let the peer's window close. */
void grpc_call_pause(struct grpc_call *c, bool paused);
/* Server: end the call with a status, after what is queued. Client: see grpc_call_cancel. */
void grpc_call_finish(struct grpc_call *c, enum grpc_status status, const char *text);
void grpc_call_half_close(struct grpc_call *c); /* client: no more messages, after what is queued */
void grpc_call_cancel(struct grpc_call *c, const char *why); /* at once; on_end: CANCELLED */

/* ---- server ---- */

struct grpc_server;

struct grpc_server_config {
    const char *address;     /* unix:/path or tcp:HOST:PORT */
    struct tls_context *tls; /* borrowed; NULL: cleartext, on loopback or a unix socket only */
    struct grpc_limits limits;
    /* A call came. Answer it with grpc_call_listen, or refuse it with grpc_call_finish. false: the
     * server has no such method. */
    bool (*on_call)(void *arg, struct grpc_call *call);
    /* A connection ended, or was refused: for the log. May be NULL. */
    void (*on_lost)(void *arg, const char *peer, const struct err *why);
    void *arg;
};

struct grpc_server *grpc_server_new(struct loop *l, const struct grpc_server_config *config,
                                    struct err *err);
const char *grpc_server_address(const struct grpc_server *s); /* with the real port */
/* Tell every client to go elsewhere (GOAWAY) and accept no more. Open calls go on for grace_ms;
 * what is left then ends as UNAVAILABLE. */
void grpc_server_drain(struct grpc_server *s, uint64_t grace_ms);
size_t grpc_server_connections(const struct grpc_server *s);
struct grpc_server *grpc_server_close(struct grpc_server *s); /* at once; no callback follows */

void grpc_call_listen(struct grpc_call *c, const struct grpc_call_events *events, void *arg);
const char *grpc_call_path(const struct grpc_call *c);     /* "/package.Service/Method" */
const char *grpc_call_token(const struct grpc_call *c);    /* of "authorization: Bearer"; "" */
const char *grpc_call_peer(const struct grpc_call *c);     /* its address */
const char *grpc_call_identity(const struct grpc_call *c); /* names in its certificate; "" */

/* ---- client ---- */

/* One server, one connection at a time. It does not connect again by itself. */
struct grpc_client;

struct grpc_client_config {
    const char *target;      /* unix:/path or HOST:PORT; copied */
    struct tls_context *tls; /* borrowed; NULL: cleartext, to loopback or a unix socket only */
    const char *server_name; /* in its certificate; NULL: the target's host; copied */
    struct grpc_limits limits;
    void (*on_up)(void *arg);
    /* The attempt failed, or the connection ended: once for each grpc_client_open. */
    void (*on_down)(void *arg, const struct err *why);
    void *arg;
};

struct grpc_client *grpc_client_new(struct loop *l, const struct grpc_client_config *config,
                                    struct err *err);
void grpc_client_open(struct grpc_client *c); /* on_up or on_down follows; PRE: it is down */
/* PRE: up. deadline_ms: of the loop's clock; 0: none. token: for "authorization: Bearer"; or
 * NULL. */
struct grpc_call *grpc_client_call(struct grpc_client *c, const char *path, const char *token,
                                   uint64_t deadline_ms, const struct grpc_call_events *events,
                                   void *arg);
struct grpc_client *grpc_client_close(struct grpc_client *c); /* at once; no callback follows */

#endif
