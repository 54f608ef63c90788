/* JSON-RPC 2.0 over one WebSocket (ws, wss) to one endpoint, on the loop. Knows frames, ids, deadlines,
 * subscriptions and reconnecting; knows nothing of Substrate's methods.
 *
 *   CLOSED -> RESOLVE_WAIT -> CONNECT_WAIT -> OPEN -> (lost) BACKOFF_WAIT -> RESOLVE_WAIT
 *
 * A lost connection fails every call with ERR_NET and ends every subscription; the owner subscribes
 * again after `on_state(OPEN)`. Answers may come in any order; a notification may come before the answer
 * that names its subscription, and is then kept for it.
 *
 * A call that is started while the state is not OPEN fails with ERR_NET. A call whose deadline passes
 * fails with ERR_TIMEOUT, whatever else flows; if nothing at all was answered since it was written, the
 * connection is taken for dead and made anew. */
#ifndef CHAIN_NODE_RPC_H
#define CHAIN_NODE_RPC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/list.h"
#include "chain/node/json_view.h"
#include "loop/loop.h"

struct rpc;

enum rpc_state { RPC_CLOSED, RPC_CONNECTING, RPC_OPEN, RPC_BACKOFF };

struct rpc_config {
    const char *url;             /* ws://host:port/path or wss://...; copied */
    const char *ca_file;         /* wss: NULL = system store */
    bool insecure;               /* wss: accept any certificate (development only) */
    uint32_t connect_timeout_ms; /* default 5000 */
    uint32_t call_timeout_ms;    /* default deadline of a call: 10000 */
    uint32_t silence_timeout_ms; /* no bytes and no pong for so long: the connection is dead; default 15000 */
    uint32_t backoff_base_ms;    /* default 100 */
    uint32_t backoff_cap_ms;     /* default 5000 */
    uint32_t message_max_bytes;  /* default 64 MiB: metadata and blocks are large */
    /* OPEN; BACKOFF with the reason (the connection was lost, or an attempt failed; err names the url);
     * CLOSED after rpc_stop. Calls and subscriptions of the lost connection have ended before it. */
    void (*on_state)(void *arg, enum rpc_state state, const struct err *err);
    void *arg;
};

struct rpc *rpc_new(struct loop *l, const struct rpc_config *config, struct err *ret_err); /* NULL: bad url */
void rpc_open(struct rpc *r);                                                              /* while CLOSED */
/* Every call fails with ERR_CANCELED first; cb fires once when all handles are closed and r is freed. */
void rpc_close(struct rpc *r, void (*cb)(void *arg), void *arg);
enum rpc_state rpc_state(const struct rpc *r);
/* Give the present connection up and make a new one after the back-off; `why` is what the calls fail with
 * and what on_state hears. Takes effect in the next round. Not OPEN: nothing happens. */
void rpc_reconnect(struct rpc *r, const struct err *why);
/* The same, but stay CLOSED (on_state says so) until rpc_open is called again. Not while CLOSED. Destroying
 * a connection's context is dear and delicate: who changes endpoints stops one and opens another. */
void rpc_stop(struct rpc *r, const struct err *why);

/* One call. The request is embedded by its owner, who keeps it until cb. */
struct rpc_call {
    /* out: valid in cb only */
    struct err err;   /* ERR_RPC: the node's error; code and data below. ERR_NET, ERR_TIMEOUT, ERR_CANCELED */
    int64_t rpc_code; /* JSON-RPC error code when err.code == ERR_RPC; its message is err.text, as it is */
    char rpc_data[256];      /* error.data as text, cut; "" when absent */
    const struct jv *result; /* borrowed, NULL on error */
    bool written; /* the frame went to the socket; false on an error: the node never saw the call */
    /* private: not yours below */
    struct list node;      /* by deadline */
    struct list bucket;    /* by id */
    struct loop_task task; /* a failure on its way */
    void (*cb)(struct rpc_call *call);
    uint64_t id;
    uint64_t deadline_ms;
    uint64_t answers_before; /* what the connection had answered when this was written */
    uint64_t connection;     /* the connection that it was started on */
    const char *method;
    struct rpc *rpc;
    struct rpc_sub *sub;
    struct ws_frame *frame; /* while it waits to be written */
};

/* The call is zeroed before its first use. method: a literal. params: JSON array text ("[]"), sent as it is:
 * hot callers print it themselves. timeout_ms 0: default.
 * before_write (may be NULL) is asked immediately before the frame goes to the socket: false drops
 * the call with ERR_NOT_LEADER and nothing is sent. This is where the gate sits (L06, L07). */
void rpc_call_start(struct rpc *r, struct rpc_call *call, const char *method, const char *params,
                    uint32_t timeout_ms, bool (*before_write)(void *arg), void *before_arg,
                    void (*cb)(struct rpc_call *call));
void rpc_call_cancel(struct rpc_call *call); /* cb fires with ERR_CANCELED; idle: allowed */

/* A subscription: the call's answer is its id, notifications go to on_item until rpc_unsubscribe or the
 * connection is lost. `call` behaves as any call (its cb tells success or the node's refusal). */
struct rpc_sub {
    struct rpc_call call;
    /* private */
    struct list node;       /* active: by id */
    struct list unanswered; /* the answer is out: in order of their start */
    char id[72];
    void (*on_item)(struct rpc_sub *sub, const struct jv *item);
    void (*on_end)(struct rpc_sub *sub,
                   const struct err *err); /* connection lost; not after rpc_unsubscribe */
    bool active;
    bool id_number; /* the id came as a number */
};
void rpc_subscribe_start(struct rpc *r, struct rpc_sub *sub, const char *method, const char *params,
                         bool (*before_write)(void *arg), void *before_arg, void (*cb)(struct rpc_call *call),
                         void (*on_item)(struct rpc_sub *sub, const struct jv *item),
                         void (*on_end)(struct rpc_sub *sub, const struct err *err));
/* Forget the subscription now (nothing fires any more) and, if `method` is given and the connection is open,
 * tell the node, fire and forget; when the answer is still out, as soon as it names the id (also after a
 * timeout). The sub may be freed at once. */
void rpc_unsubscribe(struct rpc *r, struct rpc_sub *sub, const char *method);

#endif
