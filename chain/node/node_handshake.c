/* The handshake of a fresh connection.
 *
 *   [VERSION_WAIT ->] GENESIS_WAIT                                  what is the node, the chain
 *     -> BEST_WAIT -> BEST_HEADER_WAIT -> RUNTIME_WAIT                its head
 *     -> FINALIZED_WAIT -> FINALIZED_HEADER_WAIT                      what is final
 *     -> NEW_HEADS_WAIT -> FINALIZED_HEADS_WAIT -> RUNTIME_VERSION_WAIT  subscriptions
 *     [-> FINAL_ITEM_WAIT]                                          what is final, at last
 *     -> READY
 *
 * A refusal in any step is a fault of the endpoint, unless there is another way. A head that the
 * endpoint names and does not have is asked for again: a balancer may have asked two nodes. A lost
 * connection ends the handshake; on_state handles it. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/host.h"
#include "base/log.h"
#include "node_internal.h"

static void answered(struct rpc_call *call);

static void ask(struct node *n, enum handshake_step step, const char *method, const char *params)
{
    n->step = step;
    rpc_call_start(node__rpc(n), &n->call, method, params, 0, NULL, NULL, answered);
}

static void ask_header(struct node *n, enum handshake_step step, const uint8_t hash[32])
{
    char text[HASH_TEXT], params[HASH_TEXT + 8];
    wire_hash_text(hash, text);
    snprintf(params, sizeof(params), "[\"%s\"]", text);
    ask(n, step, n->no_header ? "chain_getBlock" : "chain_getHeader", params);
}

static void ask_genesis(struct node *n)
{
    n->step = HS_GENESIS_WAIT;
    hash_start(node__rpc(n), &n->call, 0, n->no_block_hash, answered);
}

/* Where the hash of the best block is not told, it is computed from its header. */
static void ask_best(struct node *n)
{
    if (n->no_block_hash)
        ask(n, HS_BEST_HEADER_WAIT, n->no_header ? "chain_getBlock" : "chain_getHeader", "[]");
    else
        ask(n, HS_BEST_WAIT, "chain_getBlockHash", "[]");
}

/* Where the finalized head is not told, its subscription begins with it. */
static void ask_finalized(struct node *n)
{
    if (!n->no_final_head) {
        ask(n, HS_FINALIZED_WAIT, "chain_getFinalizedHead", "[]");
        return;
    }
    n->step = HS_NEW_HEADS_WAIT;
    handshake_subscribe(n);
}

/* The endpoint refuses a method, and there is another way. */
static bool ask_in_another_way(struct node *n)
{
    bool best = n->step == HS_BEST_HEADER_WAIT;
    if (n->call.refused != RPC_ERROR_METHOD)
        return false;
    if (n->step == HS_GENESIS_WAIT && !n->no_block_hash) {
        n->no_block_hash = true;
        ask_genesis(n);
    } else if (n->step == HS_BEST_WAIT) {
        n->no_block_hash = true;
        ask_best(n);
    } else if (n->step == HS_FINALIZED_WAIT) {
        n->no_final_head = true;
        ask_finalized(n);
    } else if ((best || n->step == HS_FINALIZED_HEADER_WAIT) && !n->no_header) {
        n->no_header = true; /* a block has its header, too */
        if (best && n->no_block_hash)
            ask_best(n);
        else
            ask_header(n, n->step, best ? n->info.best_hash : n->info.finalized_hash);
    } else {
        return false;
    }
    return true;
}

/* The block that was named is not there. True: its name is asked for again. */
static bool ask_again(struct node *n)
{
    enum { UNHEARD_MAX = 10 };
    bool finalized = n->step == HS_FINALIZED_HEADER_WAIT;
    if (n->phase != NODE_HANDSHAKE_WAIT || ++n->unheard > UNHEARD_MAX)
        return false;
    if (finalized)
        ask_finalized(n);
    else
        ask_best(n);
    return true;
}

static bool lacks_head(const struct node *n)
{
    bool header = n->step == HS_BEST_HEADER_WAIT || n->step == HS_FINALIZED_HEADER_WAIT;
    return header && (n->call.refused == RPC_ERROR_BLOCK ||
                      (!n->call.err.code && jv_is(n->call.result, JV_NULL)));
}

static void fail(struct node *n, const struct err *err)
{
    n->step = HS_IDLE;
    if (n->phase == NODE_HANDSHAKE_WAIT && !node__gone(err))
        node__fault(n, err);
}

/* An error answer does not name its endpoint and method. */
void handshake_failed_call(struct node *n, const struct rpc_call *call)
{
    struct err err = call->err;
    if (err.code == ERR_RPC)
        lack_refusal(call, node__url(n), "", &err);
    fail(n, &err);
}

static void fail_protocol(struct node *n, const char *what)
{
    struct err err;
    err_set(&err, ERR_PROTOCOL, "%s: %s", node__url(n), what);
    fail(n, &err);
}

/* Where nothing else tells the finalized head, its first notification does. */
void handshake_subscribed(struct node *n)
{
    n->step = HS_FINAL_ITEM_WAIT;
    if (!n->no_final_head || n->final_heard)
        handshake_final_head(n);
    else
        loop_timer_at(n->poll, loop_now_ms(n->loop) + n->config.silence_timeout_ms);
}

void handshake_final_head(struct node *n)
{
    if (n->phase != NODE_HANDSHAKE_WAIT || n->step != HS_FINAL_ITEM_WAIT)
        return;
    n->step = HS_IDLE;
    if (n->no_final_head)
        heard_base(&n->heard, n->info.finalized_number);
    heads_raise_best_known(n, n->info.best_number, false);
    node__ready(n);
}

void handshake_silent(struct node *n)
{
    if (n->step == HS_FINAL_ITEM_WAIT)
        fail_protocol(n, "chain_getFinalizedHead is refused, and no finalized head was notified");
}

/* ---- answers ---- */

/* Chopsticks, a fork of a chain for development, makes up the roots of its blocks. A node of
 * another host could claim to be one and would then be believed. */
static bool may_be_chopsticks(struct node *n)
{
    size_t len;
    const char *host = host_of_url(node__url(n), &len);
    return n->config.verify_blocks && n->config.allow_chopsticks && host_is_loopback(host, len);
}

static void got_version(struct node *n, const struct jv *version)
{
    static const char name[] = "chopsticks";
    char text[sizeof(name)];
    jv_copy(version, text, sizeof(text));
    n->verify_blocks = strcmp(text, name) != 0;
    if (!n->verify_blocks)
        log_warn("node.blocks_unverified",
                 "url=%s text=\"it says that it is chopsticks, which makes up the roots of its "
                 "blocks: they are not checked; chain.verify_blocks: true checks them\"",
                 node__url(n));
    ask_genesis(n);
}

static void got_genesis(struct node *n, const uint8_t hash[32])
{
    struct err why;
    if (!eligible_chain(n, hash, &why)) {
        fail(n, &why);
        return;
    }
    memcpy(n->genesis, hash, 32);
    memcpy(n->info.genesis, hash, 32);
    n->genesis_known = true;
    ask_best(n);
}

static void runtime_fetched(struct runtime_fetch *f)
{
    struct node *n = f->node;
    PRE(n->step == HS_RUNTIME_WAIT);
    if (n->phase != NODE_HANDSHAKE_WAIT || !f->runtime) {
        runtime_unref(f->runtime);
        if (!f->pruned || !ask_again(n))
            fail(n, &f->err);
        return;
    }
    bool changed = n->runtime && n->runtime != f->runtime;
    runtime_adopt(n, f->runtime);
    ask_finalized(n);
    if (changed && n->config.on_runtime)
        n->config.on_runtime(n->config.arg, &n->info);
}

static void got_best_header(struct node *n, const struct wire_header *h)
{
    if (n->no_block_hash)
        memcpy(n->info.best_hash, h->head.hash, 32);
    n->hash_computable = h->complete && memcmp(h->head.hash, n->info.best_hash, 32) == 0;
    n->info.best_number = h->head.number;
    if (n->verify_blocks && !n->hash_computable) {
        fail_protocol(n,
                      "the header of the best block does not have the block's hash; if this "
                      "chain's headers have a form of their own, set chain.verify_blocks: false");
        return;
    }
    if (eligible_lags(n)) {
        eligible_leave_lagging(n);
        return;
    }
    heads_raise_best_known(n, n->info.best_number, false);
    n->step = HS_RUNTIME_WAIT;
    runtime_fetch_start(n, &n->fetch, n->info.best_hash, runtime_fetched);
}

static void got_result(struct node *n, const struct rpc_call *call)
{
    PRE(!call->err.code && n->phase == NODE_HANDSHAKE_WAIT);
    uint8_t hash[32];
    struct wire_header h;
    bool is_hash = wire_hash(call->result, hash);
    bool is_header = wire_header(node__header(n, call->result), &h);
    switch ((int)n->step) {
    case HS_VERSION_WAIT:
        got_version(n, call->result);
        return;
    case HS_GENESIS_WAIT:
        if (is_hash)
            got_genesis(n, hash);
        else
            fail_protocol(n, "chain_getBlockHash [0] gave no hash");
        return;
    case HS_BEST_WAIT:
        if (!is_hash) {
            fail_protocol(n, "chain_getBlockHash [] gave no hash");
            return;
        }
        memcpy(n->info.best_hash, hash, 32);
        ask_header(n, HS_BEST_HEADER_WAIT, hash);
        return;
    case HS_BEST_HEADER_WAIT:
        if (is_header)
            got_best_header(n, &h);
        else
            fail_protocol(n, "chain_getHeader of the best block gave no header");
        return;
    case HS_FINALIZED_WAIT:
        if (!is_hash) {
            fail_protocol(n, "chain_getFinalizedHead gave no hash");
            return;
        }
        memcpy(n->info.finalized_hash, hash, 32);
        ask_header(n, HS_FINALIZED_HEADER_WAIT, hash);
        return;
    case HS_FINALIZED_HEADER_WAIT:
        if (!is_header) {
            fail_protocol(n, "chain_getHeader of the finalized block gave no header");
            return;
        }
        n->info.finalized_number = h.head.number;
        heard_base(&n->heard, h.head.number);
        heads_raise_best_known(n, n->info.best_number, false);
        n->step = HS_NEW_HEADS_WAIT;
        handshake_subscribe(n);
        return;
    default:
        UNREACHABLE();
    }
}

static void answered(struct rpc_call *call)
{
    struct node *n = CONTAINER_OF(call, struct node, call);
    PRE(n->step != HS_IDLE);
    if (n->step == HS_VERSION_WAIT && call->err.code == ERR_RPC &&
        n->phase == NODE_HANDSHAKE_WAIT) { /* whatever it is, it is no chopsticks */
        got_version(n, NULL);
        return;
    }
    if (call->err.code && n->phase == NODE_HANDSHAKE_WAIT && ask_in_another_way(n))
        return;
    if (lacks_head(n) && ask_again(n))
        return;
    if (call->err.code || n->phase != NODE_HANDSHAKE_WAIT) {
        handshake_failed_call(n, call);
        return;
    }
    got_result(n, call);
}

void handshake_start(struct node *n)
{
    PRE(n->phase == NODE_HANDSHAKE_WAIT);
    n->no_query_storage = n->no_storage = n->no_header = false;
    n->unheard = 0;
    memset(n->no_submit, 0, sizeof(n->no_submit));
    n->late_submits = 0;
    n->no_heads = n->no_finalized = false;
    n->no_block_hash = n->no_final_head = n->no_version = n->final_heard = false;
    n->verify_blocks = n->config.verify_blocks;
    if (may_be_chopsticks(n))
        ask(n, HS_VERSION_WAIT, "system_version", "[]");
    else
        ask_genesis(n);
}
