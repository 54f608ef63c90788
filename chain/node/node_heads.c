/* The best and the finalized head, from their subscriptions.
 *
 * A header does not contain its hash. If the hash is blake2b-256 of the header (the handshake found
 * out), we compute it; otherwise (chopsticks, chains with another hasher), and where a height
 * jumps, we ask the node for the hash of that height. A node may drop a subscription silently, so
 * the heads are also polled: when two polls in a row find a head that the subscription did not
 * report, the connection is replaced. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "node_internal.h"

static void hash_ask(struct head_watch *w);

/* Each reading may drop a height; the poll reports it. */
static void note_best_known(struct node *n, uint64_t now)
{
    uint64_t before = n->info.best_known;
    n->info.best_known = heard_best(&n->heard, now);
    n->best_known_fell |= n->info.best_known < before;
}

bool heads_raise_best_known(struct node *n, uint64_t height, bool told)
{
    uint64_t now = loop_now_ms(n->loop), before = heard_best(&n->heard, now);
    if (told)
        heard_told(&n->heard, height, now);
    else
        heard_add(&n->heard, height, now);
    note_best_known(n, now);
    return n->info.best_known > before;
}

/* Heights reach the owner with a best head, and final ones with their blocks. A dropped one holds
 * it up until then, and so does a final one whose block the owner does not read; and a chain that
 * makes blocks on demand may have no other head to report. */
static void tell_best_again(struct node *n)
{
    struct node_head head = {.number = n->info.best_number};
    memcpy(head.hash, n->info.best_hash, 32);
    if (n->phase == NODE_READY && n->config.on_best)
        n->config.on_best(n->config.arg, &head);
}

void heads_apply(struct head_watch *w, const struct node_head *head)
{
    struct node *n = w->node;
    if (w->finalized) {
        bool invented = !heard_is_near(head->number, n->info.finalized_number);
        bool reads = n->following && head->number >= n->follow_next;
        n->final_heard = true;
        n->info.finalized_number = head->number;
        if (head->number < n->heard.base)
            heard_base(&n->heard, head->number); /* it said more before */
        memcpy(n->info.finalized_hash, head->hash, 32);
        if (n->phase != NODE_READY) {
            handshake_final_head(n);
            return;
        }
        blocks_kick(n);
        if (n->phase == NODE_READY)
            slow_check(n);
        if (invented || !reads)
            tell_best_again(n);
        return;
    }
    n->info.best_number = head->number;
    memcpy(n->info.best_hash, head->hash, 32);
    heads_raise_best_known(n, head->number, false);
    if (n->phase == NODE_READY && n->config.on_best)
        n->config.on_best(n->config.arg, head);
}

/* The first finalized head of a node that was not asked for it. */
static bool is_first(const struct head_watch *w)
{
    return w->finalized && w->node->no_final_head && !w->node->final_heard;
}

/* A height far above the last one is believed only if the node has a block there: a notification
 * alone proves nothing. */
static bool jumps(const struct head_watch *w, uint64_t number)
{
    const struct node_info *info = &w->node->info;
    if (is_first(w))
        return number > info->best_number;
    uint64_t last = w->finalized ? info->finalized_number : info->best_number;
    return !heard_is_near(last, number);
}

static void hash_answered(struct rpc_call *call)
{
    struct head_watch *w = CONTAINER_OF(call, struct head_watch, call);
    struct node_head head = w->asked;
    PRE(w->asking);
    if (hash_again(node__rpc(w->node), call, head.number, &w->node->no_block_hash, hash_answered))
        return;
    w->asking = false;
    uint8_t hash[32]; /* null: a reorganisation took the height back, or it never was */
    bool found = !call->err.code && wire_hash(call->result, hash);
    if (found && w->node->hash_computable && memcmp(hash, head.hash, 32) != 0)
        found = false;
    if (found) {
        memcpy(head.hash, hash, 32);
        heads_apply(w, &head);
    }
    if (call->err.code && !node__gone(&call->err))
        log_debug("node.head_hash", "url=%s number=%llu error=\"%s\"", node__url(w->node),
                  (unsigned long long)head.number, call->err.text);
    if (w->waiting && !w->asking)
        hash_ask(w);
}

static void hash_ask(struct head_watch *w)
{
    PRE(w->waiting && !w->asking);
    w->asked = w->next;
    w->waiting = false;
    w->asking = true;
    hash_start(node__rpc(w->node), &w->call, w->asked.number, w->node->no_block_hash,
               hash_answered);
}

static bool known(const struct head_watch *w, const struct node_head *head)
{
    const struct node_info *info = &w->node->info;
    if (w->finalized)
        return info->finalized_number == head->number;
    return info->best_number == head->number && memcmp(info->best_hash, head->hash, 32) == 0;
}

static void take(struct head_watch *w, const struct jv *item)
{
    struct wire_header h;
    if (!wire_header(item, &h)) {
        log_debug("node.bad_header", "url=%s", node__url(w->node));
        return;
    }
    if (w->node->hash_computable && h.complete && !jumps(w, h.head.number)) {
        if (is_first(w) || !known(w, &h.head))
            heads_apply(w, &h.head);
        return;
    }
    w->next = h.head;
    w->waiting = true;
    if (!w->asking)
        hash_ask(w);
}

void heads_item(struct rpc_sub *sub, const struct jv *item)
{
    struct head_watch *w = CONTAINER_OF(sub, struct head_watch, sub);
    struct node *n = w->node;
    uint64_t before = n->info.finalized_number;
    w->notified = true;
    w->heard_ms = loop_now_ms(n->loop);
    w->strikes = 0;
    take(w, item);
    if (w->renewed && n->info.finalized_number > before)
        log_warn("node.silent_subscription", "url=%s subscription=finalized from=%llu to=%llu",
                 node__url(n), (unsigned long long)before,
                 (unsigned long long)n->info.finalized_number);
    w->renewed = false;
}

void heads_reset(struct node *n)
{
    n->best.waiting = n->finalized.waiting = false;
    n->best.strikes = n->finalized.strikes = 0;
    n->best.notified = n->finalized.notified = false;
    n->finalized.renewed = false;
    if (n->runtime)
        n->runtime->confirmed = false;
    memset(n->births, 0, sizeof(n->births)); /* the next endpoint may be of another mind */
    loop_timer_stop(n->poll);
    confirm_stop(n);
    second_stop(n);
    lack_stop(n);
    later_stop(n);
    slow_forget(n);
    n->second.alone = false;
}

/* ---- the poll ---- */

enum { POLL_MS = 1000 }; /* where the node has no subscription to heads */

void heads_poll_later(struct node *n)
{
    uint64_t ms = n->config.silence_timeout_ms;
    if ((n->no_heads || n->no_finalized) && ms > POLL_MS)
        ms = POLL_MS;
    loop_timer_at(n->poll, loop_now_ms(n->loop) + ms);
}

static void poll_again(struct node *n)
{
    n->polling = false;
    if (n->phase == NODE_READY)
        heads_poll_later(n);
}

static void poll_header(struct rpc_call *call)
{
    struct node *n = CONTAINER_OF(call, struct node, poll_call);
    struct wire_header h;
    PRE(n->polling);
    poll_again(n);
    const struct jv *header = node__header(n, call->result);
    if (call->err.code || n->phase != NODE_READY || !wire_header(header, &h))
        return;
    bool invented = !heard_is_near(h.head.number, n->info.finalized_number);
    if (n->finalized.notified || (h.head.number <= n->info.finalized_number && !invented))
        return;
    n->finalized.strikes += !n->no_finalized && !invented;
    take(&n->finalized, header);
    if (n->finalized.strikes < 2)
        return;
    struct err why;
    err_set(&why, ERR_NET, "%s: finalized heads were not notified any more", node__url(n));
    rpc_reconnect(node__rpc(n), &why);
}

static void poll_finalized(struct rpc_call *call)
{
    struct node *n = CONTAINER_OF(call, struct node, poll_call);
    PRE(n->polling);
    uint8_t hash[32];
    char text[HASH_TEXT], params[HASH_TEXT + 8];
    n->no_final_head = n->no_final_head || call->refused == RPC_ERROR_METHOD;
    if (call->err.code || n->phase != NODE_READY || !wire_hash(call->result, hash)) {
        poll_again(n);
        return;
    }
    wire_hash_text(hash, text);
    snprintf(params, sizeof(params), "[\"%s\"]", text);
    rpc_call_start(node__rpc(n), call, n->no_header ? "chain_getBlock" : "chain_getHeader", params,
                   0, NULL, NULL, poll_header);
}

/* Where nothing else tells the finalized head, a new subscription does: it begins with it. A chain
 * whose finality stalls costs one in each silence_timeout_ms. */
static bool is_silent(const struct node *n)
{
    return !n->no_finalized &&
           loop_now_ms(n->loop) >= n->finalized.heard_ms + n->config.silence_timeout_ms;
}

static void ask_finalized(struct node *n)
{
    if (n->finalized.notified || n->no_final_head) {
        n->finalized.notified = false;
        poll_again(n);
        if (n->no_final_head && is_silent(n))
            heads_renew_finalized(n);
        return;
    }
    rpc_call_start(node__rpc(n), &n->poll_call, "chain_getFinalizedHead", "[]", 0, NULL, NULL,
                   poll_finalized);
}

static void poll_best(struct rpc_call *call)
{
    struct node *n = CONTAINER_OF(call, struct node, poll_call);
    PRE(n->polling);
    if (n->phase != NODE_READY) {
        poll_again(n);
        return;
    }
    if (!call->err.code && !n->best.notified)
        take(&n->best, node__header(n, call->result));
    ask_finalized(n);
}

/* A height that no endpoint repeats was invented, or is of a fork that was left. */
static void drop_heights(struct node *n)
{
    uint64_t now = loop_now_ms(n->loop);
    heard_repeat(&n->heard, n->info.best_number, now);
    note_best_known(n, now);
    if (n->best_known_fell)
        tell_best_again(n);
    n->best_known_fell = false;
}

void heads_poll(void *arg)
{
    struct node *n = arg;
    if (n->phase == NODE_HANDSHAKE_WAIT)
        handshake_silent(n);
    if (n->phase != NODE_READY || n->polling)
        return;
    uint64_t now = loop_now_ms(n->loop);
    if (now >= n->recheck_at) {
        n->recheck_at = now + n->config.silence_timeout_ms;
        backoff_reset(&n->backoff); /* it has held for a while */
        node_recheck_runtime(n);
    }
    drop_heights(n);
    if (n->phase != NODE_READY)
        return; /* the owner has left it */
    n->polling = true;
    bool silent = !n->best.notified;
    n->best.notified = false;
    if (silent)
        rpc_call_start(node__rpc(n), &n->poll_call,
                       n->no_header ? "chain_getBlock" : "chain_getHeader", "[]", 0, NULL, NULL,
                       poll_best);
    else
        ask_finalized(n);
}
