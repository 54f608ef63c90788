/* Private to node*.c: the node itself. Each part of it has a header of its own. */
#ifndef CHAIN_NODE_NODE_INTERNAL_H
#define CHAIN_NODE_NODE_INTERNAL_H

#include "base/backoff.h"
#include "base/heard.h"
#include "base/list.h"
#include "chain/node/node.h"
#include "node_blocks.h"
#include "node_broadcast.h"
#include "node_confirm.h"
#include "node_eligible.h"
#include "node_handshake.h"
#include "node_heads.h"
#include "node_later.h"
#include "node_second.h"
#include "node_slow.h"
#include "rpc_internal.h"

enum node_phase {
    NODE_CLOSED,
    NODE_OFFLINE, /* the endpoint's rpc connects, or backs off */
    NODE_HANDSHAKE_WAIT,
    NODE_READY,
    NODE_ROTATE_WAIT, /* the endpoint's rpc is being stopped */
    NODE_RETRY_WAIT,  /* back-off after every endpoint has failed */
    NODE_CLOSING,
};

struct endpoint {
    struct node *node;
    struct rpc *rpc;
    char down[200];                /* the last text given to on_down */
    uint64_t told_at;              /* when it was given */
    uint64_t failed_at;            /* the last attempt to make it READY that failed; 0: none */
    uint64_t lacks_to[LACK_COUNT]; /* of this height and all below, when it was asked last */
    uint64_t lacks_at[LACK_COUNT]; /* then; 0: never */
    bool other_chain;              /* its genesis was another one, when it was asked last */
    bool waited;                   /* a wait for it has ended without it, since it was up last */
    uint64_t back_at;              /* it was back while something waited for it; 0: never */
    uint64_t lagged_at;            /* an account waited for a block that it lacked; 0: never */
    uint64_t slow_at;              /* it fell behind its own blocks; 0: never */
    uint64_t tried;                /* the last round in which it was left or failed */
    unsigned soon_lost;            /* connections that ended soon after READY, in a row */
};

struct node {
    struct loop *loop;
    struct node_config config; /* only callbacks, arg and times are read after node_new */
    struct endpoint *endpoints;
    size_t endpoint_count, endpoint_at;
    enum node_phase phase;
    struct loop_timer *retry;
    struct backoff backoff;
    struct rng rng;
    unsigned failures; /* since READY; back off after each has failed once, which is a round */
    uint64_t round;
    size_t open_rpcs;
    void (*close_cb)(void *arg);
    void *close_arg;

    bool genesis_known; /* configured, or of the first node; every other chain is refused */
    uint8_t genesis[32];
    uint8_t (*refused)[32]; /* chains that the owner has nothing to do on */
    size_t refused_count;
    struct node_info info;

    enum handshake_step step;
    unsigned unheard;     /* blocks that the endpoint named and did not have, in this handshake */
    struct rpc_call call; /* of the handshake */
    struct runtime_fetch fetch;
    bool verify_blocks;   /* of this endpoint */
    bool hash_computable; /* on this chain a block's hash is blake2b-256 of its header */
    bool roots_v1;        /* the last root of extrinsics was one of sp-trie's layout V1 */
    unsigned lag_refusals;
    uint64_t lag_retry_at;
    struct loop_task expect; /* node_expect_height raised info.best_known */

    unsigned watches;   /* extrinsics watched, or being submitted with a watch */
    unsigned watch_max; /* if watch_full: the number at which the node refused another */
    bool watch_full;

    struct list broadcasts; /* node_broadcast.c */
    struct list runtimes;   /* a few, by last use */
    struct runtime *runtime;
    struct runtime_fetch refetch;
    bool refetch_again;
    struct rpc_sub runtime_sub;

    struct head_watch best, finalized;
    struct heard heard; /* heights, of this node and of others */
    struct loop_timer *poll;
    struct rpc_call poll_call;
    bool polling;

    bool following, follow_restart;
    uint64_t follow_from; /* of the restart */
    uint64_t follow_next; /* the next height to be reported */
    bool link_known;      /* link: hash of the height before */
    uint8_t link[32];
    bool handing_out;
    struct slot slots[NODE_PIPELINE];
    struct birth births[NODE_BIRTHS]; /* by number; of the present connection */
    struct account *accounts;
    size_t account_count;
    struct reach reach;
    struct later later;
    struct slow slow;
    struct away {
        bool on;
        uint64_t number, since;
        struct loop_timer *timer;
    } away;               /* what the present endpoint lacks waits for others that are away */
    uint64_t unread_last; /* the last height that was reported as unread */
    /* Methods that this endpoint refuses. */
    bool no_query_storage, no_storage, no_header, no_heads, no_finalized;
    bool no_submit[SUBMIT_WAYS];
    unsigned late_submits; /* in a row: they were not answered in time */
    bool no_block_hash, no_final_head, no_version;
    bool best_known_fell; /* and the owner was not told */
    bool final_heard;     /* a finalized head was notified on this connection */
    uint64_t ready_at;    /* it became READY the last time */
    bool hasty;           /* it ended soon after that, again and again */
    uint64_t recheck_at;  /* the runtime is asked for again */
    struct confirm confirm;
    struct second second;
    struct peer *peers;    /* of each endpoint */
    char unconfirmed[400]; /* the text of node_unconfirmed */
};

static inline struct rpc *node__rpc(struct node *n)
{
    return n->endpoints[n->endpoint_at].rpc;
}

static inline const char *node__url(struct node *n)
{
    return node__rpc(n)->config.url;
}

/* Between two questions to an endpoint about what is to be confirmed. */
static inline uint64_t node__tick_ms(const struct node *n)
{
    enum { TICK_MS = 1000 };
    return n->config.confirm_ms ? n->config.confirm_ms : TICK_MS;
}

/* The header in the answer to chain_getHeader, or to chain_getBlock where that is refused. */
static inline const struct jv *node__header(const struct node *n, const struct jv *result)
{
    return n->no_header ? jv_get(jv_get(result, "block"), "header") : result;
}

/* Leave this endpoint and try the next one. */
void node__fault(struct node *n, const struct err *err);
void node__ready(struct node *n);
/* Did the call end because its connection is gone? on_state handles that. */
static inline bool node__gone(const struct err *err)
{
    return err->code == ERR_NET || err->code == ERR_CANCELED;
}

#endif
