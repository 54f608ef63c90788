/* What the manager does next: the conditions of its pumps as pure functions. A view names each
 * latch and fact that a pump depends on; the pump fills it in, asks, and acts. A test goes
 * through all inputs of each function (test/unit/relay/manager_next_test.c). The order of the
 * pumps is in manager.c. Inline, so that a step pays only for the conditions that decide it. */
#ifndef RELAY_TX_NEXT_H
#define RELAY_TX_NEXT_H

#include <stdbool.h>

enum probe_action { PROBE_NOT_NOW, PROBE_BEGIN };
struct probe_view {
    bool wanted; /* some row is uncertain, or the first probe is due */
    bool phase;  /* CHAIN_WAIT or LEADING */
    bool node_up;
    bool asking;       /* a question is open */
    bool node_behind;  /* the node lacks blocks that the table or another node knows of */
    bool final_unread; /* a final block is still to be read */
    bool adopting;     /* lost commits are being stored */
    bool backing_off;  /* a question failed a moment ago */
};
static inline enum probe_action probe_next(const struct probe_view *v)
{
    bool may = v->phase && v->node_up && !v->node_behind && !v->final_unread;
    return v->wanted && may && !v->asking && !v->adopting && !v->backing_off ? PROBE_BEGIN
                                                                             : PROBE_NOT_NOW;
}

enum suspension_action { SUSPENSION_STAYS, SUSPENSION_END, SUSPENSION_STORE };
struct suspension_view {
    bool payment; /* suspended because the account cannot pay */
    bool leading;
    bool rows_open; /* some row could still find out that it can */
    bool loaded;    /* the rows are in memory */
    bool unstored;  /* the table does not say what `suspension` says */
    bool storing;
};
static inline enum suspension_action suspension_next(const struct suspension_view *v)
{
    if (v->payment && v->leading && !v->rows_open)
        return SUSPENSION_END; /* nothing is left that could find out */
    return v->loaded && v->unstored && !v->storing ? SUSPENSION_STORE : SUSPENSION_STAYS;
}

enum life_action { LIFE_KEEP, LIFE_BURY, LIFE_BEGIN };
struct life_view {
    bool ordered; /* an operator ordered a reaped account to go on */
    bool leading, node_up;
    bool rows;        /* some are left of the former life */
    bool nonce_known; /* the chain showed the nonce of the present life */
    bool bytes_alive; /* an era of the former life may not be over */
    bool final_unread;
    bool storing; /* a next nonce, this one or another */
};
static inline enum life_action life_next(const struct life_view *v)
{
    if (!v->ordered || !v->leading || !v->node_up)
        return LIFE_KEEP;
    if (v->rows)
        return LIFE_BURY;
    return v->nonce_known && !v->bytes_alive && !v->final_unread && !v->storing ? LIFE_BEGIN
                                                                                : LIFE_KEEP;
}

enum era_wait_action { ERA_WAIT_KEEP, ERA_WAIT_BEGIN, ERA_WAIT_STORE, ERA_WAIT_END };
struct era_wait_view {
    bool loaded;
    bool unprobed; /* no probe is under way */
    bool in_wait;
    bool waiting;  /* what lost commits have sent may still be included */
    bool unstored; /* for how long is found, and not in the table */
    bool storing;
};
static inline enum era_wait_action era_wait_next(const struct era_wait_view *v)
{
    if (v->unprobed && v->waiting)
        return ERA_WAIT_BEGIN;
    if (v->in_wait && !v->waiting)
        return ERA_WAIT_END;
    return v->loaded && v->unstored && !v->storing ? ERA_WAIT_STORE : ERA_WAIT_KEEP;
}

enum adopt_action { ADOPT_NOT_NOW, ADOPT_STORE };
struct adopt_view {
    bool due;
    bool loaded;
    bool first_probe; /* under way: its pool answer may show more */
    bool ending;      /* ends of rows are stored first: what is found may be their next attempt, or
                         may need their nonces */
    bool storing;
};
static inline enum adopt_action adopt_next(const struct adopt_view *v)
{
    return v->due && v->loaded && !v->first_probe && !v->ending && !v->storing ? ADOPT_STORE
                                                                               : ADOPT_NOT_NOW;
}

enum nonce_action { NONCE_KEEP, NONCE_GIVE_BACK, NONCE_STORE };
struct nonce_view {
    bool leading;
    bool unstored; /* the next nonce has changed */
    bool storing;
    bool given_back; /* some nonce may be free again */
    bool admitting;  /* rows are about to take nonces */
    bool rewinding;  /* the stored next nonce is too high, and that is not settled yet */
    bool final_known;
};
static inline enum nonce_action nonce_next(const struct nonce_view *v)
{
    if (!v->leading || v->storing)
        return NONCE_KEEP;
    if (v->unstored)
        return NONCE_STORE;
    return v->given_back && v->final_known && !v->admitting && !v->rewinding ? NONCE_GIVE_BACK
                                                                             : NONCE_KEEP;
}

enum send_action { SEND_WAIT, SEND_SUBMIT, SEND_RESIGN };
struct send_view {
    /* of the account */
    bool leading, node_up;
    bool node_unverified; /* the node did not show the account's nonce yet, or shows one that is too
                             low */
    bool gate_closed;
    bool suspended;
    /* of its lowest row that is not on the wire */
    bool funds_wait;       /* the account could not pay a moment ago */
    bool refusal_unstored; /* what a node said of these bytes is stored before it is asked again */
    bool backing_off;
    bool lower_repaired; /* a lower nonce is being repaired */
    bool window_full;
    bool era_ends; /* a pool would throw the bytes out at once */
};
static inline enum send_action send_next(const struct send_view *v)
{
    if (!v->leading || !v->node_up || v->node_unverified || v->gate_closed || v->suspended)
        return SEND_WAIT;
    if (v->funds_wait || v->refusal_unstored || v->backing_off || v->lower_repaired ||
        v->window_full)
        return SEND_WAIT;
    return v->era_ends ? SEND_RESIGN : SEND_SUBMIT;
}

enum sign_action { SIGN_NOT_NOW, SIGN_ROWS };
struct sign_view {
    bool wanted; /* rows need new bytes or a filler */
    bool leading, node_up, node_unverified, suspended;
    bool backing_off; /* nothing could be signed in this tick */
};
static inline enum sign_action sign_next(const struct sign_view *v)
{
    bool may = v->leading && v->node_up && !v->node_unverified && !v->suspended;
    return v->wanted && may && !v->backing_off ? SIGN_ROWS : SIGN_NOT_NOW;
}

enum admit_action { ADMIT_NOT_NOW, ADMIT_ROWS };
struct admit_view {
    bool leading, node_up, gate_closed;
    /* a suspension that is over must be over in the table too */
    bool suspended, suspension_unstored;
    bool rewinding, nonce_unstored;    /* a next nonce that is about to be corrected must be */
    bool rejecting, noting, admitting; /* such rows are still in the outbox */
    bool storing_nonce, storing_suspension;
    bool room; /* in the window */
    bool backing_off;
};
static inline enum admit_action admit_next(const struct admit_view *v)
{
    bool may = v->leading && v->node_up && !v->gate_closed && v->room && !v->backing_off;
    bool settled = !v->suspended && !v->suspension_unstored && !v->rewinding && !v->nonce_unstored;
    bool stored =
        !v->rejecting && !v->noting && !v->admitting && !v->storing_nonce && !v->storing_suspension;
    return may && settled && stored ? ADMIT_ROWS : ADMIT_NOT_NOW;
}

#endif
