/* The subscriptions of a connection: best heads, finalized heads, the runtime's version. The
 * handshake makes them one after another; where an endpoint refuses one, or has no room for it, the
 * timer of node_heads.c polls instead. A subscription that ends is a fault of the endpoint. */
#include <stdio.h>

#include "base/check.h"
#include "base/log.h"
#include "node_internal.h"

static void subscribed(struct rpc_call *call);

static void sub_ended(struct node *n, const struct err *err)
{
    if (!node__gone(err) && (n->phase == NODE_READY || n->phase == NODE_HANDSHAKE_WAIT))
        node__fault(n, err);
}

static void heads_ended(struct rpc_sub *sub, const struct err *err)
{
    sub_ended(CONTAINER_OF(sub, struct head_watch, sub)->node, err);
}

static void version_ended(struct rpc_sub *sub, const struct err *err)
{
    sub_ended(CONTAINER_OF(sub, struct node, runtime_sub), err);
}

static void version_item(struct rpc_sub *sub, const struct jv *item)
{
    runtime_changed(CONTAINER_OF(sub, struct node, runtime_sub), item);
}

static void subscribe_heads(struct head_watch *w, const char *method)
{
    rpc_subscribe_start(node__rpc(w->node), &w->sub, method, "[]", NULL, NULL, subscribed,
                        heads_item, heads_ended);
}

static struct node *node_of_sub(struct rpc_call *call)
{
    struct rpc_sub *sub = CONTAINER_OF(call, struct rpc_sub, call);
    struct node *n = CONTAINER_OF(sub, struct node, runtime_sub);
    if (call->method[0] == 's') /* state_subscribeRuntimeVersion */
        return n;
    return CONTAINER_OF(sub, struct head_watch, sub)->node;
}

void handshake_subscribe(struct node *n)
{
    switch ((int)n->step) {
    case HS_NEW_HEADS_WAIT:
        subscribe_heads(&n->best, "chain_subscribeNewHeads");
        return;
    case HS_FINALIZED_HEADS_WAIT:
        subscribe_heads(&n->finalized, "chain_subscribeFinalizedHeads");
        return;
    case HS_RUNTIME_VERSION_WAIT:
        rpc_subscribe_start(node__rpc(n), &n->runtime_sub, "state_subscribeRuntimeVersion", "[]",
                            NULL, NULL, subscribed, version_item, version_ended);
        return;
    default:
        UNREACHABLE();
    }
}

static void subscribed(struct rpc_call *call)
{
    struct node *n = node_of_sub(call);
    if (call->refused == RPC_ERROR_PACE && n->phase == NODE_HANDSHAKE_WAIT) {
        handshake_subscribe(n);
        return;
    }
    bool none = call->refused == RPC_ERROR_METHOD || call->refused == RPC_ERROR_WATCHES;
    if (none && n->phase == NODE_HANDSHAKE_WAIT) {
        n->no_heads = n->no_heads || n->step == HS_NEW_HEADS_WAIT;
        n->no_finalized = n->no_finalized || n->step == HS_FINALIZED_HEADS_WAIT;
        log_warn("node.polled", "url=%s method=%s text=\"%s\"", node__url(n), call->method,
                 call->err.text);
    } else if (call->err.code || n->phase != NODE_HANDSHAKE_WAIT) {
        handshake_failed_call(n, call);
        return;
    }
    switch ((int)n->step) {
    case HS_NEW_HEADS_WAIT:
        n->step = HS_FINALIZED_HEADS_WAIT;
        handshake_subscribe(n);
        return;
    case HS_FINALIZED_HEADS_WAIT:
        n->step = HS_RUNTIME_VERSION_WAIT;
        handshake_subscribe(n);
        return;
    case HS_RUNTIME_VERSION_WAIT:
        handshake_subscribed(n);
        return;
    default:
        UNREACHABLE();
    }
}

/* Too many: the next poll tries again. Without the subscription nothing tells what is final. */
static void renewed(struct rpc_call *call)
{
    struct node *n = node_of_sub(call);
    struct err err;
    if (!call->err.code || node__gone(&call->err) || n->phase != NODE_READY ||
        call->refused == RPC_ERROR_PACE)
        return;
    lack_refusal(call, node__url(n), "", &err);
    node__fault(n, &err);
}

void heads_renew_finalized(struct node *n)
{
    struct head_watch *w = &n->finalized;
    PRE(n->phase == NODE_READY && !n->no_finalized);
    rpc_unsubscribe(node__rpc(n), &w->sub, "chain_unsubscribeFinalizedHeads");
    w->heard_ms = loop_now_ms(n->loop);
    w->renewed = true;
    rpc_subscribe_start(node__rpc(n), &w->sub, "chain_subscribeFinalizedHeads", "[]", NULL, NULL,
                        renewed, heads_item, heads_ended);
}
