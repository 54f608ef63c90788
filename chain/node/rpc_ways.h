/* Private to rpc_way*.c and rpc_follow.c: a question that is asked in the newer JSON-RPC, and its
 * steps. */
#ifndef CHAIN_NODE_RPC_WAYS_H
#define CHAIN_NODE_RPC_WAYS_H

#include "rpc_internal.h"

enum way_step {
    STEP_NONE,
    STEP_BEST,    /* which block is the best one */
    STEP_GENESIS, /* which one is block 0 */
    STEP_HEIGHT,  /* which height is the last final one */
    STEP_HASH,
    STEP_HEADER,
    STEP_BODY,
    STEP_CALL,
    STEP_STORAGE, /* its items come as notifications */
    /* Those of chainHead_v1 need its subscription. */
    STEP_KNOWN, /* a hash that its events have told */
    STEP_WATCH, /* heads, or versions, from its events */
    STEP_PINNED_HEADER,
    /* Operations: what they find comes as events of the subscription. */
    STEP_PINNED_BODY,
    STEP_PINNED_CALL,
    STEP_PINNED_STORAGE,
};

struct rpc_way {
    struct rpc *rpc;
    struct rpc_call *outer; /* the owner's */
    enum rpc_way_kind kind;
    enum rpc_via via;
    size_t step; /* of its row */
    bool finding_best;
    char older[256];         /* the parameters of the owner's call */
    struct jv_doc given;     /* the same, read */
    char block[80];          /* its hash in quotes, once it is known; or the height */
    struct rpc_sub sub;      /* the call of the step */
    struct list follow_node; /* rpc_follow.c: waiting, or asking */
    bool operation;          /* it counts as one */
    bool may_end;            /* the call that began it has returned */
    struct buf text;         /* the answer in the older shape */
    struct jv_doc answer;    /* the same, read */
};

/* ---- rpc_ways.c ---- */
enum way_step rpc__way_now(const struct rpc_way *w); /* the step that it is at */
/* End the owner's call: a result, or the err that the call has already. Frees the way. */
void rpc__way_end(struct rpc_way *w, const struct jv *result);
/* A step of it was refused. Not this method: go on with the methods that are tried next, or end. */
void rpc__way_refused_newer(struct rpc_way *w, const struct rpc_call *step);

/* ---- rpc_way_steps.c ---- */
void rpc__way_step(struct rpc_way *w); /* ask what the present step asks */
/* The block's hash, or the height, for the steps that follow. False: it is too long. */
bool rpc__way_set_block(struct rpc_way *w, const struct jv *v);
/* End the way: with `text`, with null, with an error. */
void rpc__way_end_text(struct rpc_way *w);
void rpc__way_end_null(struct rpc_way *w);
void rpc__way_fail(struct rpc_way *w, enum rpc_error refused, const char *text);
void rpc__way_fail_protocol(struct rpc_way *w);
void rpc__way_got_header(struct rpc_way *w, const struct jv *header);
void rpc__way_got_body(struct rpc_way *w, const struct jv *body);
void rpc__way_got_value(struct rpc_way *w, const struct jv *value); /* of a runtime's function */
void rpc__way_answered(struct rpc_call *call);                      /* of the step's call */

/* ---- rpc_way_follow.c: the steps of chainHead_v1 ---- */
void rpc__way_follow_step(struct rpc_way *w);
void rpc__way_follow_answered(struct rpc_way *w, const struct rpc_call *call);
void rpc__way_stop_operation(struct rpc_way *w); /* nobody waits for it any more */

/* ---- rpc_follow.c ---- */
/* The way goes on when the subscription is there and takes another operation, or is refused. */
void rpc__follow_wait(struct rpc_way *w);
bool rpc__follow_room(const struct rpc *r); /* for another operation */
/* Its question is asked now: if the subscription ends, it is asked again in the next one. */
void rpc__follow_asking(struct rpc_way *w, bool operation);
void rpc__follow_leave(struct rpc_way *w); /* it is neither waiting nor asking any more */

/* A parameter of the owner's call. NULL: it has fewer. */
static inline const struct jv *rpc__way_given(const struct rpc_way *w, size_t i)
{
    return jv_at(w->given.values, i);
}

/* ---- rpc_way_shapes.c: append in the older shape. False: it is something else ---- */
bool rpc__way_put_header(const struct jv *hex, struct buf *out);
bool rpc__way_header_height(const struct jv *hex, uint64_t *ret_height);
bool rpc__way_put_metadata(const struct jv *hex, struct buf *out);
void rpc__way_put_raw(struct buf *out, const struct jv *v); /* as it is */
/* The parameters [.., ARGS] of a runtime's function, behind those that are there. */
void rpc__way_put_function(const struct rpc_way *w, struct buf *out);

#endif
