/* Submits an extrinsic and watches it.
 *
 *   author_submitAndWatchExtrinsic -> author_submitExtrinsic -> transactionWatch_v1_submitAndWatch
 *     -> transaction_v1_broadcast          the next one where an endpoint refuses the method
 *
 * A node limits the subscriptions of a connection (1024 by default) and refuses another one with
 * -32006 before it reads the extrinsic. Then it is submitted without a watch: finalized blocks show
 * its outcome, and the transaction manager asks about it when it stays silent. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "base/log.h"
#include "node_internal.h"
#include "node_transaction.h"

enum { LATE_MAX = 2 };

static const struct submit_way {
    const char *method;
    const char *unwatch; /* NULL: it starts no watch */
} ways[SUBMIT_WAYS] = {
    [SUBMIT_WATCHED] = {"author_submitAndWatchExtrinsic", "author_unwatchExtrinsic"},
    [SUBMIT_PLAIN] = {"author_submitExtrinsic", NULL},
    [SUBMIT_TRANSACTION] = {"transactionWatch_v1_submitAndWatch", "transactionWatch_v1_unwatch"},
    [SUBMIT_BROADCAST] = {"transaction_v1_broadcast", NULL},
};

/* As the node writes them (author_extrinsicUpdate; chopsticks has {"ready":null} shapes). */
static const struct status_shape {
    enum tx_status status;
    const char *wire;
    bool hash; /* its value is one: of a block, or of the usurper */
} statuses[] = {
    {TX_FUTURE, "future", false},       {TX_READY, "ready", false},
    {TX_BROADCAST, "broadcast", false}, {TX_IN_BLOCK, "inBlock", true},
    {TX_RETRACTED, "retracted", true},  {TX_FINALITY_TIMEOUT, "finalityTimeout", true},
    {TX_FINALIZED, "finalized", true},  {TX_USURPED, "usurped", true},
    {TX_DROPPED, "dropped", false},     {TX_INVALID, "invalid", false},
};

/* "ready", {"ready":null}, {"inBlock":"0x.."}, {"invalid":{"stale":null}}. */
static const struct status_shape *status_read(const struct jv *item, const struct jv **ret_value)
{
    const struct jv *name = item;
    *ret_value = NULL;
    jv_pair(item, &name, ret_value);
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
        if (jv_equals(name, statuses[i].wire))
            return &statuses[i];
    return NULL;
}

static struct node_submit *of_sub(struct rpc_sub *sub)
{
    return CONTAINER_OF(sub, struct node_submit, sub);
}

/* No status follows any more. */
static void submit_done(struct node_submit *s)
{
    PRE(s->node->watches >= s->watched);
    s->done = true;
    s->node->watches -= s->watched;
    s->watched = false;
    s->pending = false;
    s->first = loop_timer_close(s->first);
}

/* A status without the hash that it must have breaks the protocol: nothing of it is reported. With
 * other endpoints this one is left, which ends the watch; alone, it only loses its watch. */
static void bad_status(struct node_submit *s, const char *name)
{
    struct node *n = s->node;
    struct rpc_sub *sub = &s->sub;
    struct err err;
    err_set(&err, ERR_PROTOCOL, "%s: the status %s of a submission has no hash", node__url(n),
            name);
    log_warn("node.bad_status", "url=%s status=%s", node__url(n), name);
    if (n->endpoint_count > 1) {
        node__fault(n, &err);
        return;
    }
    submit_done(s);
    rpc_unsubscribe(sub->call.rpc, sub, ways[s->way].unwatch);
    s->on_lost(s);
}

static void submit_item(struct rpc_sub *sub, const struct jv *item)
{
    struct node_submit *s = of_sub(sub);
    const struct jv *value;
    uint8_t hash[32];
    const struct status_shape *shape = status_read(item, &value);
    if (!shape) {
        log_debug("node.unknown_status", "url=%s subscription=%s", node__url(s->node), sub->id);
        return;
    }
    if (shape->hash && !wire_hash(value, hash)) {
        bad_status(s, shape->wire);
        return;
    }
    if (tx_status_final(shape->status)) {
        submit_done(s);
        rpc_unsubscribe(sub->call.rpc, sub, NULL); /* the node has ended it itself */
    }
    s->on_status(s, shape->status, shape->hash ? hash : NULL);
}

/* ---- transactionWatch_v1: the first event is the reply ---- */

/* The watch ends before the owner has had its reply: this is it. */
static void replied_by(struct node_submit *s, const struct err *err, const char *unwatch)
{
    struct rpc_sub *sub = &s->sub;
    struct err why = *err;
    submit_done(s);
    rpc_unsubscribe(sub->call.rpc, sub, unwatch);
    sub->call.err = why;
    s->on_reply(s);
}

static void refused_by_event(struct node_submit *s, const struct transaction_event *e)
{
    struct err err;
    err_set(&err, ERR_RPC, "%s", e->message);
    s->sub.call.rpc_code = e->code;
    snprintf(s->sub.call.rpc_data, sizeof(s->sub.call.rpc_data), "%s", e->data);
    replied_by(s, &err, NULL);
}

static void first_is_late(void *arg)
{
    struct node_submit *s = arg;
    struct err err;
    err_set(&err, ERR_TIMEOUT, "%s: no event from %s in time", ways[s->way].method,
            node__url(s->node));
    replied_by(s, &err, ways[s->way].unwatch);
}

static void wait_for_event(struct node_submit *s)
{
    struct node *n = s->node;
    s->pending = true;
    s->first = loop_timer_new(n->loop, first_is_late, s);
    loop_timer_at(s->first, loop_now_ms(n->loop) + node__rpc(n)->config.call_timeout_ms);
}

static void watch_status(struct node_submit *s, const struct transaction_event *e)
{
    const uint8_t *hash = NULL;
    if (e->has_block) {
        memcpy(s->block, e->block, 32);
        s->in_block = true;
    }
    if (e->kind == TRANSACTION_NOT_IN && !s->in_block)
        return; /* it was in none before */
    if (e->has_block || e->kind == TRANSACTION_NOT_IN)
        hash = s->block;
    if (tx_status_final(e->status)) {
        submit_done(s);
        rpc_unsubscribe(s->sub.call.rpc, &s->sub, NULL); /* the node has ended it itself */
    }
    s->on_status(s, e->status, hash);
}

/* False: the owner has forgotten the submission meanwhile. */
static bool accepted(struct node_submit *s)
{
    bool gone = false;
    s->pending = false;
    s->first = loop_timer_close(s->first);
    s->gone = &gone;
    s->on_reply(s);
    if (!gone)
        s->gone = NULL;
    return !gone;
}

static void transaction_item(struct rpc_sub *sub, const struct jv *item)
{
    struct node_submit *s = of_sub(sub);
    struct transaction_event e;
    if (!transaction_event_read(item, &e)) {
        bad_status(s, "of transactionWatch_v1");
        return;
    }
    if (e.kind == TRANSACTION_OTHER)
        return;
    if (s->pending && e.kind == TRANSACTION_REFUSED) {
        refused_by_event(s, &e);
        return;
    }
    if (s->pending && !accepted(s))
        return;
    if (e.kind == TRANSACTION_UNTRACKED) {
        submit_done(s);
        rpc_unsubscribe(sub->call.rpc, sub, NULL);
        s->on_lost(s);
        return;
    }
    watch_status(s, &e);
}

static void submit_end(struct rpc_sub *sub, const struct err *err)
{
    struct node_submit *s = of_sub(sub);
    if (s->pending) {
        replied_by(s, err, NULL);
        return;
    }
    submit_done(s);
    s->on_lost(s);
}

/* ---- ways ---- */

static void submit_replied(struct rpc_call *call);

/* The best way that this endpoint does not refuse. */
static enum node_submit_way choose(const struct node *n)
{
    size_t i = 0;
    while (i < SUBMIT_WAYS && (n->no_submit[i] || (ways[i].unwatch && n->watch_full)))
        i++;
    return i < SUBMIT_WAYS ? (enum node_submit_way)i : SUBMIT_PLAIN;
}

static void start(struct node_submit *s)
{
    struct rpc *r = node__rpc(s->node);
    const struct submit_way *way = &ways[s->way];
    s->watched = way->unwatch != NULL;
    s->node->watches += s->watched;
    if (s->watched)
        rpc_subscribe_start(
            r, &s->sub, way->method, buf_str(&s->params), s->gate, s->gate_arg, submit_replied,
            s->way == SUBMIT_TRANSACTION ? transaction_item : submit_item, submit_end);
    else
        rpc_call_start(r, &s->sub.call, way->method, buf_str(&s->params), 0, s->gate, s->gate_arg,
                       submit_replied);
}

/* It is never answered, while other questions are. One submission may be late. */
static bool is_mute(struct node_submit *s)
{
    struct node *n = s->node;
    const struct rpc_call *call = &s->sub.call;
    bool late = call->err.code == ERR_TIMEOUT && call->written && s->way != SUBMIT_BROADCAST;
    n->late_submits = late ? n->late_submits + 1 : 0;
    return n->late_submits >= LATE_MAX;
}

/* The endpoint takes submissions in no way. True: the node leaves it for another one. */
static bool leave(struct node_submit *s)
{
    struct err why = s->sub.call.err;
    return s->node->phase == NODE_READY && lack_leave(s->node, LACK_SUBMIT, UINT64_MAX, &why);
}

/* Did the endpoint refuse this way, or answer what is no answer? Then submit again in the next one,
 * behind the same gate. */
static bool in_another_way(struct node_submit *s)
{
    struct node *n = s->node;
    const struct rpc_call *call = &s->sub.call;
    bool full = s->watched && call->refused == RPC_ERROR_WATCHES, mute = is_mute(s);
    bool closed = call->refused == RPC_ERROR_METHOD || call->err.code == ERR_PROTOCOL;
    if ((!full && !closed && !mute) || n->phase != NODE_READY || (mute && leave(s)))
        return false;
    submit_done(s);
    s->done = false;
    if (full && !n->watch_full)
        log_info("node.watch_limit", "url=%s watches=%u text=\"%s\"", node__url(n), n->watches,
                 call->err.text);
    if (full) {
        n->watch_max = n->watches;
        n->watch_full = true;
    } else {
        n->no_submit[s->way] = true;
    }
    enum node_submit_way next = choose(n);
    if (next <= s->way) {
        s->done = true; /* there is none */
        if (!full)
            leave(s);
        return false;
    }
    s->way = next;
    s->written = true;
    start(s);
    return true;
}

/* A broadcast that its server does not take any more is answered with null. */
static bool no_room_to_broadcast(const struct node_submit *s)
{
    return s->way == SUBMIT_BROADCAST && !s->sub.call.err.code &&
           jv_is(s->sub.call.result, JV_NULL);
}

static void submit_replied(struct rpc_call *call)
{
    struct node_submit *s = of_sub(CONTAINER_OF(call, struct rpc_sub, call));
    if (no_room_to_broadcast(s))
        err_set(&call->err, ERR_RPC, "the endpoint takes no other broadcast on this connection");
    struct err err = call->err;
    if (err.code == ERR_TIMEOUT && s->way == SUBMIT_BROADCAST) {
        broadcast_add_late(s);
    } else if (err.code == ERR_TIMEOUT) { /* if the node accepts it later, end that watch */
        rpc_unsubscribe(call->rpc, &s->sub, ways[s->way].unwatch);
    }
    call->err = err;
    if (in_another_way(s))
        return;
    if (err.code == ERR_NOT_LEADER && s->written)
        err_set(&call->err, ERR_NET, "%s: the way before was refused, and then the gate was shut",
                node__url(s->node));
    buf_done(&s->params);
    if (!err.code && s->way == SUBMIT_TRANSACTION) {
        wait_for_event(s);
        return;
    }
    if (!err.code && s->way == SUBMIT_BROADCAST)
        broadcast_add(s);
    if (!s->done && (err.code || !s->watched))
        submit_done(s);
    s->on_reply(s);
}

void node_submit_start(struct node *n, struct node_submit *s, const uint8_t *bytes, size_t len,
                       bool (*gate)(void *arg), void *gate_arg,
                       void (*on_reply)(struct node_submit *s),
                       void (*on_status)(struct node_submit *s, enum tx_status status,
                                         const uint8_t *block_hash),
                       void (*on_lost)(struct node_submit *s))
{
    PRE(len > 0 && on_reply && on_status && on_lost);
    struct buf *params = &s->params;
    *s = (struct node_submit){.node = n,
                              .on_reply = on_reply,
                              .on_status = on_status,
                              .on_lost = on_lost,
                              .last = {SIZE_MAX, UINT64_MAX, UINT64_MAX},
                              .gate = gate,
                              .gate_arg = gate_arg};
    if (n->phase != NODE_READY) {
        rpc__call_fail_later(n->loop, &s->sub.call,
                             n->phase == NODE_CLOSING ? ERR_CANCELED : ERR_NET, "no node is ready",
                             submit_replied);
        return;
    }
    buf_grow(params, 2 * len + sizeof("[\"0x\"]"));
    buf_puts(params, "[\"");
    hex_put_0x(params, bytes, len);
    buf_puts(params, "\"]");
    n->watch_full = n->watch_full && n->watches >= n->watch_max;
    s->way = choose(n);
    start(s);
}

void node_submit_until(struct node_submit *s, const struct node_last *last)
{
    PRE(!s->done);
    s->last = *last;
}

void node_submit_forget(struct node_submit *s)
{
    struct rpc_call *call = &s->sub.call;
    bool watched = s->watched;
    if (s->gone)
        *s->gone = true;
    if (s->done)
        return;
    submit_done(s);
    buf_done(&s->params);
    if (call->rpc && s->way == SUBMIT_BROADCAST)
        broadcast_add_late(s);
    if (call->rpc)
        rpc_unsubscribe(call->rpc, &s->sub, watched ? ways[s->way].unwatch : NULL);
    else
        loop_task_cancel(&call->task); /* "no node is ready" was about to be reported */
}
