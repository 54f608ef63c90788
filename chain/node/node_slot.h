/* One height of the pipeline of node_blocks.c: its state, its steps and how they end.
 *
 *   slot_body -> slot_signatures -> slot_events -> slot_nonces -> slot_finished
 *
 * Each step starts its question and returns. It ends in the next step, in slot_failed or in
 * slot_lacks; only one of its questions is in flight at a time. */
#ifndef CHAIN_NODE_NODE_SLOT_H
#define CHAIN_NODE_NODE_SLOT_H

#include "node_lack.h"
#include "node_runtime.h"

enum slot_state {
    SLOT_IDLE,
    SLOT_HASH_WAIT,
    SLOT_BLOCK_WAIT,
    SLOT_RUNTIME_WAIT,
    SLOT_BIRTH_WAIT,
    SLOT_EVENTS_WAIT,
    SLOT_NONCES_WAIT,
    SLOT_NONCE_WAIT,
    SLOT_LATER_WAIT, /* the endpoint lacks it and may have it soon: it is read again */
    SLOT_REACH_WAIT, /* the endpoint lacks it: lack_search finds out from where on it has blocks */
    SLOT_DONE,
};

struct span {
    size_t at, len;
};

/* One height of the pipeline. */
struct slot {
    struct node *node;
    enum slot_state state;
    bool abandoned; /* its call is in flight; the answer will be ignored */
    unsigned attempts;
    uint64_t lacked_since; /* the endpoint has said so from then on; 0: it has not */
    uint64_t begun_at;     /* the endpoint was asked for it the first time */
    uint64_t broken_since; /* it answers by errors of no known meaning; 0: it did not */
    bool given_up;         /* it waited to the end: an error counts as a lack */
    uint64_t number;
    struct node_head head;
    struct rpc_call call;
    struct runtime_fetch fetch;
    struct runtime *runtime; /* NULL: not known yet; the current one is assumed */
    bool has_events;         /* they were read; their hash is known */
    uint8_t events[32];
    bool state_pruned;
    bool unread;    /* no endpoint has its body */
    enum lack lack; /* SLOT_REACH_WAIT */
    struct err why;
    struct buf bytes; /* of all extrinsics */
    int64_t time_ms;
    struct span *extrinsics;
    uint32_t extrinsic_count;
    struct node_included *included;
    size_t included_count;
    bool *unverified; /* of `included` */
    size_t verified;  /* SLOT_BIRTH_WAIT: signatures before this one are checked */
    uint64_t *nonces;
    struct node_balance *balances;
    size_t nonce_count;
    size_t *asked; /* indices of the accounts to read, ascending */
    size_t asked_count;
    size_t nonce_next; /* SLOT_NONCE_WAIT: number of them answered */
    bool confirmed;    /* it may be reported */
};

/* ---- the steps ---- */

/* node_body.c. Read the block of this height. Must be called in SLOT_IDLE. */
void slot_body(struct slot *s);
/* node_signatures.c. Check the signatures of wanted extrinsics that are to be verified. */
void slot_signatures(struct slot *s);
/* node_events.c. Read the results of the wanted extrinsics, if there are any. */
void slot_events(struct slot *s);
/* node_nonces.c. Read the watched accounts' nonces and balances; or report them as not known. */
void slot_nonces(struct slot *s);
void slot_nonces_unknown(struct slot *s);

/* ---- node_slot.c: how a step ends ---- */

/* For the head of each callback. False: the slot was abandoned, or its call failed; both are
 * handled. */
bool slot_going_on(struct slot *s);
void slot_finished(struct slot *s); /* the block may be reported */
/* Read the height again from the start; after NODE_ATTEMPTS leave the endpoint, or, if it was an
 * error answer, or a state that nobody can read, wait (node_later.c). */
void slot_failed(struct slot *s, const struct err *err);
void slot_failed_protocol(struct slot *s, const char *what);
/* The endpoint lacks the body or the state: ask another one, wait for one, or go on without. */
void slot_lacks(struct slot *s, enum lack kind, const struct err *why);
/* The answer says that the endpoint has no such block, or does not answer this question. True: it
 * is handled. */
bool slot_lacks_body(struct slot *s);
/* The range that this endpoint lacks is known: leave it for one that may have the block, wait for
 * such an endpoint, or go on without. Must be called in SLOT_REACH_WAIT. */
void slot_decide(struct slot *s);
/* An error answer counts as a lack: others were given in vain for a while. */
static inline bool slot_gave_up(const struct slot *s, const struct rpc_call *call)
{
    return s->given_up && call->err.code == ERR_RPC && call->refused != RPC_ERROR_PACE;
}
void slot_clear(struct slot *s); /* back to SLOT_IDLE; the attempts are kept */
void slot_renew(struct slot *s); /* the same, for another height or endpoint */
void slot_again(struct slot *s); /* the same, and the pipeline goes on */

#endif
