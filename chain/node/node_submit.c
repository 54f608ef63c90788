/* Submits an extrinsic and watches it (author_submitAndWatchExtrinsic).
 *
 * A node limits the subscriptions of a connection (1024 by default) and refuses another one with
 * -32006 before it reads the extrinsic; some endpoints refuse the method. Then it is submitted
 * without a watch: finalized blocks show its outcome, and the transaction manager asks about it
 * when it stays silent. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "base/log.h"
#include "node_internal.h"

static const char unwatch[] = "author_unwatchExtrinsic";

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
    rpc_unsubscribe(sub->call.rpc, sub, unwatch);
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

static void submit_end(struct rpc_sub *sub, const struct err *err)
{
    struct node_submit *s = of_sub(sub);
    (void)err;
    submit_done(s);
    s->on_lost(s);
}

static void submit_replied(struct rpc_call *call);

/* Was the watch refused? Then submit again without one, behind the same gate. */
static bool no_room(struct node_submit *s)
{
    struct node *n = s->node;
    const struct rpc_call *call = &s->sub.call;
    if (!s->watched || (call->refused != RPC_ERROR_WATCHES && call->refused != RPC_ERROR_METHOD))
        return false;
    submit_done(s);
    s->done = false;
    n->no_watch = n->no_watch || call->refused == RPC_ERROR_METHOD;
    if (!n->watch_full)
        log_info("node.watch_limit", "url=%s watches=%u text=\"%s\"", node__url(n), n->watches,
                 call->err.text);
    n->watch_max = n->watches;
    n->watch_full = true;
    s->written = true;
    rpc_call_start(node__rpc(n), &s->sub.call, "author_submitExtrinsic", buf_str(&s->params), 0,
                   s->gate, s->gate_arg, submit_replied);
    return true;
}

static void submit_replied(struct rpc_call *call)
{
    struct node_submit *s = of_sub(CONTAINER_OF(call, struct rpc_sub, call));
    struct err err = call->err;
    if (err.code == ERR_TIMEOUT) { /* if the node accepts it later, end that watch */
        rpc_unsubscribe(call->rpc, &s->sub, s->watched ? unwatch : NULL);
        call->err = err;
    }
    if (no_room(s))
        return;
    if (err.code == ERR_NOT_LEADER && s->written)
        err_set(&call->err, ERR_NET, "%s: the watch was refused, and then the gate was shut",
                node__url(s->node));
    buf_done(&s->params);
    if (err.code || !s->watched)
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
    s->watched = !n->watch_full && !n->no_watch;
    n->watches += s->watched;
    if (s->watched)
        rpc_subscribe_start(node__rpc(n), &s->sub, "author_submitAndWatchExtrinsic",
                            buf_str(params), gate, gate_arg, submit_replied, submit_item,
                            submit_end);
    else
        rpc_call_start(node__rpc(n), &s->sub.call, "author_submitExtrinsic", buf_str(params), 0,
                       gate, gate_arg, submit_replied);
}

void node_submit_forget(struct node_submit *s)
{
    struct rpc_call *call = &s->sub.call;
    bool watched = s->watched;
    if (s->done)
        return;
    submit_done(s);
    buf_done(&s->params);
    if (call->rpc)
        rpc_unsubscribe(call->rpc, &s->sub, watched ? unwatch : NULL);
    else
        loop_task_cancel(&call->task); /* "no node is ready" was about to be reported */
}
