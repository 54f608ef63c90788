/* Private to rpc_way*.c: a question that is asked in the newer JSON-RPC, and its steps. */
#ifndef CHAIN_NODE_RPC_WAYS_H
#define CHAIN_NODE_RPC_WAYS_H

#include "rpc_internal.h"

enum way_step {
    STEP_NONE,
    STEP_BEST,   /* which block is the best one */
    STEP_HEIGHT, /* which one is the last final one */
    STEP_HASH,
    STEP_HEADER,
    STEP_BODY,
    STEP_CALL,
    STEP_STORAGE, /* its items come as notifications */
};

struct rpc_way {
    struct rpc *rpc;
    struct rpc_call *outer; /* the owner's */
    enum rpc_way_kind kind;
    size_t step; /* of its row */
    bool finding_best;
    char older[256];      /* the parameters of the owner's call */
    struct jv_doc given;  /* the same, read */
    char block[80];       /* its hash in quotes, once it is known */
    struct rpc_sub sub;   /* the call of the step */
    struct buf text;      /* the answer in the older shape */
    struct jv_doc answer; /* the same, read */
};

/* ---- rpc_ways.c ---- */
enum way_step rpc__way_now(const struct rpc_way *w); /* the step that it is at */
/* End the owner's call: a result, or the err that the call has already. Frees the way. */
void rpc__way_end(struct rpc_way *w, const struct jv *result);

/* ---- rpc_way_steps.c ---- */
void rpc__way_step(struct rpc_way *w); /* ask what the present step asks */
/* The block's hash, or the height, for the steps that follow. False: it is too long. */
bool rpc__way_keep_block(struct rpc_way *w, const struct jv *v);

/* A parameter of the owner's call. NULL: it has fewer. */
static inline const struct jv *rpc__way_given(const struct rpc_way *w, size_t i)
{
    return jv_at(w->given.values, i);
}

/* ---- rpc_way_shapes.c: append in the older shape. False: it is something else ---- */
bool rpc__way_put_header(const struct jv *hex, struct buf *out);
bool rpc__way_put_metadata(const struct jv *hex, struct buf *out);
void rpc__way_put_raw(struct buf *out, const struct jv *v); /* as it is */

#endif
