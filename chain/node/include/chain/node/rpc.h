/* JSON-RPC 2.0 over one WebSocket (net/ws_client.h) to one endpoint: ids, deadlines, subscriptions,
 * reconnecting. Of Substrate's methods it knows only those that the newer JSON-RPC replaces
 * (rpc_ways.c).
 *
 *   CLOSED -> CONNECT_WAIT -> OPEN -> (lost) BACKOFF_WAIT -> CONNECT_WAIT
 *
 * A lost connection fails every call with ERR_NET and ends every subscription; the owner subscribes
 * again after on_state(OPEN). Answers may come in any order. A notification may come before the
 * answer that names its subscription; it is buffered until then.
 *
 * An endpoint that answers "too many" is asked more slowly: calls wait for their turn, reads and
 * submissions in turn, and a refused read is repeated. Submissions are not: their owner decides.
 *
 * A call that is started while the state is not OPEN fails with ERR_NET. A call whose deadline
 * passes fails with ERR_TIMEOUT. If no call at all was answered since it was written, the
 * connection is considered dead and is replaced. */
#ifndef CHAIN_NODE_RPC_H
#define CHAIN_NODE_RPC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/list.h"
#include "chain/node/json_view.h"
#include "chain/node/rpc_error.h"
#include "loop/loop.h"

struct rpc;
struct rpc_way;

enum rpc_state { RPC_CLOSED, RPC_CONNECTING, RPC_OPEN, RPC_BACKOFF };

struct rpc_config {
    const char *url;             /* ws://host:port/path or wss://...; copied */
    const char *ca_file;         /* wss: NULL: the system's certificates */
    bool insecure;               /* wss: accept any certificate (development only) */
    uint32_t connect_timeout_ms; /* default 5000 */
    uint32_t call_timeout_ms;    /* default deadline of a call: 10000 */
    /* without a byte or a pong, the connection is dead; default 15000 */
    uint32_t silence_timeout_ms;
    uint32_t backoff_base_ms;   /* default 100 */
    uint32_t backoff_cap_ms;    /* default 5000 */
    uint32_t message_max_bytes; /* default 64 MiB: metadata and blocks are large */
    /* OPEN; BACKOFF with the reason (the connection was lost or an attempt failed; err names the
     * url); CLOSED after rpc_stop. The calls and subscriptions of a lost connection end before this
     * callback. */
    void (*on_state)(void *arg, enum rpc_state state, const struct err *err);
    void *arg;
};

/* NULL: ret_err (ERR_CONFIG) says what is wrong with the url or with ca_file. */
struct rpc *rpc_new(struct loop *l, const struct rpc_config *config, struct err *ret_err);
void rpc_open(struct rpc *r); /* PRE: CLOSED */
/* Every call fails with ERR_CANCELED first; cb fires once, when r is freed. */
void rpc_close(struct rpc *r, void (*cb)(void *arg), void *arg);
enum rpc_state rpc_state(const struct rpc *r);
/* The endpoint asked for no new connection before this (HTTP Retry-After). BACKOFF heeds it; an
 * owner that stops and opens heeds it himself. */
uint64_t rpc_not_before_ms(const struct rpc *r);
/* Drop the present connection and make a new one after the back-off, from the loop. The calls fail
 * with `why`, and on_state gets it. Not OPEN: nothing happens. */
void rpc_reconnect(struct rpc *r, const struct err *why);
/* The same, but stay CLOSED (on_state reports it) until rpc_open is called again. PRE: not CLOSED.
 * An owner that changes endpoints stops one rpc and opens another instead of freeing it, because
 * destroying the WebSocket context is slow and delicate. */
void rpc_stop(struct rpc *r, const struct err *why);

/* One call, embedded by its owner, who keeps it until cb. */
struct rpc_call {
    /* out: valid in cb only */
    struct err err;     /* ERR_RPC: the node's error; code and data below. ERR_NET, ERR_TIMEOUT,
                         ERR_CANCELED */
    int64_t rpc_code;   /* if err.code is ERR_RPC: the JSON-RPC error code; err.text is its message
                         unchanged */
    char rpc_data[256]; /* error.data as text, cut; "" if absent */
    enum rpc_error refused;  /* what that error means; RPC_ERROR_NONE without one */
    const struct jv *result; /* borrowed; NULL on an error */
    bool written; /* the frame went to the socket; false: the node never received the call */
    /* private: not yours below */
    struct list node;      /* by deadline */
    struct list bucket;    /* by id */
    struct loop_task task; /* reports a failure from the loop */
    void (*cb)(struct rpc_call *call);
    uint64_t id;
    uint64_t deadline_ms;
    uint64_t answers_before; /* r->answers when this was written */
    uint64_t connection;     /* r->connection when this was started */
    const char *method;
    struct rpc *rpc;
    struct rpc_sub *sub;
    struct ws_frame *frame; /* until it is written */
    bool (*before_write)(void *arg);
    void *before_arg;
    uint32_t timeout_ms;
    bool paced; /* it waits for its turn: no deadline yet */
    uint64_t begun_ms, sent_ms;
    char again[256]; /* the parameters, if they fit: the call is repeated when it was too many */
    char *params;    /* the parameters of a call that waits for its turn and does not fit */
    struct rpc_way *way; /* it is asked in another way */
};

/* Start a call; cb fires exactly once, from the loop. The caller zeroes the call before its first
 * use.
 *   method        a literal
 *   params        the text of a JSON array, sent as it is
 *   timeout_ms    0: the default
 *   before_write  (may be NULL) the gate: asked immediately before the frame goes to the socket.
 *                 False: nothing is sent and the call fails with ERR_NOT_LEADER. */
void rpc_call_start(struct rpc *r, struct rpc_call *call, const char *method, const char *params,
                    uint32_t timeout_ms, bool (*before_write)(void *arg), void *before_arg,
                    void (*cb)(struct rpc_call *call));

/* A subscription. The answer to its call is its id; after that, notifications go to on_item until
 * rpc_unsubscribe or until on_end: the connection was lost, or the node ended the subscription. */
struct rpc_sub {
    struct rpc_call call;
    /* private */
    struct list node;       /* while active: by id */
    struct list unanswered; /* until the answer: in the order of their start */
    char id[72];
    void (*on_item)(struct rpc_sub *sub, const struct jv *item);
    void (*on_end)(struct rpc_sub *sub, const struct err *err); /* not after rpc_unsubscribe */
    bool active;
    bool id_number; /* the id came as a number */
};
void rpc_subscribe_start(struct rpc *r, struct rpc_sub *sub, const char *method, const char *params,
                         bool (*before_write)(void *arg), void *before_arg,
                         void (*cb)(struct rpc_call *call),
                         void (*on_item)(struct rpc_sub *sub, const struct jv *item),
                         void (*on_end)(struct rpc_sub *sub, const struct err *err));
/* Forget the subscription: no callback fires any more, and the owner may free it at once. If
 * `method` is given and the connection is open, the node is asked to end it. If the id is not known
 * yet, that happens when the answer comes, even after the call's time-out. */
void rpc_unsubscribe(struct rpc *r, struct rpc_sub *sub, const char *method);

/* Append which methods of the newer JSON-RPC were used on this connection, in place of which. */
void rpc_ways_text(const struct rpc *r, struct buf *out);

#endif
