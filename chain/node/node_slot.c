/* One height of the pipeline: how a step of its reading ends. A step succeeds, and the next one
 * begins; it fails, and the height is read again from the start, NODE_ATTEMPTS times before the
 * endpoint is left; or the endpoint lacks the block or its state, and node_lack.c decides whether
 * another endpoint is asked or the block is reported without its body or its results. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "node_internal.h"

void slot_clear(struct slot *s)
{
    struct node *n = s->node;
    bool abandoned = s->abandoned; /* what is kept is of a height that nobody reads any more */
    struct slot kept = {.node = n,
                        .attempts = s->attempts,
                        .lacked_since = s->lacked_since,
                        .begun_at = s->begun_at,
                        .broken_since = s->broken_since,
                        .given_up = s->given_up,
                        .why = s->why};
    PRE(!list_linked(&s->call.bucket) && s->fetch.step == FETCH_IDLE);
    runtime_unref(s->runtime);
    buf_done(&s->bytes);
    free(s->extrinsics);
    free(s->included);
    free(s->unverified);
    free(s->nonces);
    free(s->balances);
    free(s->asked);
    *s = abandoned ? (struct slot){.node = n} : kept;
}

void slot_renew(struct slot *s)
{
    struct node *n = s->node;
    slot_clear(s);
    *s = (struct slot){.node = n};
}

/* ---- failures ---- */

void slot_again(struct slot *s)
{
    slot_clear(s);
    if (s->node->phase == NODE_READY)
        blocks_kick(s->node);
}

/* The endpoint has answered, and only this question by an error, or by what nobody can read: events
 * and accounts in a form that the runtime's metadata does not have. The block itself is whole. */
static bool only_this_question(const struct slot *s)
{
    const struct rpc_call *call = s->state == SLOT_RUNTIME_WAIT ? &s->fetch.call : &s->call;
    bool of_state =
        s->state == SLOT_EVENTS_WAIT || s->state == SLOT_NONCES_WAIT || s->state == SLOT_NONCE_WAIT;
    return s->state != SLOT_DONE && (call->err.code == ERR_RPC || (of_state && !call->err.code));
}

void slot_failed(struct slot *s, const struct err *err)
{
    PRE(s->state != SLOT_IDLE && err->code);
    struct node *n = s->node;
    struct err reason = *err;
    if (node__gone(&reason) || n->phase != NODE_READY) {
        slot_clear(s); /* node__ready kicks again */
        return;
    }
    log_debug("node.block", "url=%s number=%llu error=\"%s\"", node__url(n),
              (unsigned long long)s->number, reason.text);
    bool mute = reason.code == ERR_TIMEOUT && n->endpoint_count > 1; /* others may answer it */
    if (!mute && (s->call.refused == RPC_ERROR_PACE || ++s->attempts < NODE_ATTEMPTS)) {
        slot_again(s);
        return;
    }
    if (only_this_question(s)) {
        later_broken(s, &reason);
        return;
    }
    s->attempts = 0;
    slot_clear(s);
    node__fault(n, &reason);
}

void slot_failed_protocol(struct slot *s, const char *what)
{
    struct err err;
    err_set(&err, ERR_PROTOCOL, "%s: block %llu: %s", node__url(s->node),
            (unsigned long long)s->number, what);
    slot_failed(s, &err);
}

/* Every callback of a slot begins with this. */
bool slot_going_on(struct slot *s)
{
    PRE(s->state != SLOT_IDLE && s->state != SLOT_DONE);
    if (s->abandoned) {
        slot_again(s);
        return false;
    }
    if (s->call.err.code) {
        slot_failed(s, &s->call.err);
        return false;
    }
    return true;
}

void slot_finished(struct slot *s)
{
    PRE(s->state != SLOT_IDLE && s->state != SLOT_DONE);
    s->state = SLOT_DONE;
    if (!s->broken_since)
        s->node->later.read_at = loop_now_ms(s->node->loop);
    blocks_kick(s->node);
}

/* ---- what the endpoint lacks ---- */

/* The block is reported without its body. Its nonces may be there, if its hash is. */
static void slot_unread(struct slot *s)
{
    static const uint8_t none[32];
    s->unread = true;
    s->time_ms = -1;
    s->included_count = 0;
    if (memcmp(s->head.hash, none, 32) != 0)
        slot_nonces(s);
    else
        slot_nonces_unknown(s);
}

void slot_decide(struct slot *s)
{
    struct node *n = s->node;
    struct err why = s->why;
    if (lack_leave(n, s->lack, s->number, &why))
        return; /* blocks_reset has cleared the slot */
    if (lack_wait(n, s->lack, s->number))
        return;
    if (s->lack == LACK_BODY)
        slot_unread(s);
    else
        slot_nonces(s); /* the results stay DISPATCH_NONE */
}

void slot_lacks(struct slot *s, enum lack kind, const struct err *why)
{
    struct node *n = s->node;
    if (n->phase != NODE_READY) { /* the endpoint was left meanwhile: the next one is asked */
        slot_renew(s);
        return;
    }
    s->lack = kind;
    s->why = *why;
    s->state = SLOT_REACH_WAIT;
    if (kind == LACK_BODY && n->config.needs && !n->config.needs(n->config.arg, s->number))
        slot_unread(s);
    else if (!later_wait(s) && !lack_search(n, kind, s->number, why) && s->state == SLOT_REACH_WAIT)
        slot_decide(s);
}

/* The answer says that this endpoint does not have the block, or does not answer this question.
 * True: it is handled. */
bool slot_lacks_body(struct slot *s)
{
    const struct rpc_call *call = &s->call;
    bool refused = call->refused == RPC_ERROR_BLOCK || call->refused == RPC_ERROR_METHOD ||
                   call->refused == RPC_ERROR_SIZE || slot_gave_up(s, call);
    bool null = !call->err.code && jv_is(call->result, JV_NULL);
    if (s->abandoned || (!refused && !null))
        return false;
    if (later_goes_on(s, &call->err))
        return true;
    if (++s->attempts < NODE_ATTEMPTS) { /* a balancer may have asked a node that lags */
        slot_again(s);
        return true;
    }
    struct err why;
    char of[40];
    snprintf(of, sizeof(of), " of block %llu", (unsigned long long)s->number);
    lack_refusal(call, node__url(s->node), of, &why);
    slot_lacks(s, LACK_BODY, &why);
    return true;
}
