/* Endpoints, and the life of the connection to the present one.
 *
 *   CLOSED -> OFFLINE ---> HANDSHAKE_WAIT ---> READY
 *              ^  ^  |           |               |
 *              |  |  |           |               |
 *              |  +--|-----------+---------------+   connection lost; the rpc reconnects by itself
 *              |     |           |               |
 *              |     +-----------+---------------+---> ROTATE_WAIT
 *              |                                           |
 *              +-------------- RETRY_WAIT <----------------+
 *
 * ROTATE_WAIT stops the rpc of an endpoint that has a fault (another chain, metadata that does not
 * parse, no answers), or, while there are others, that cannot be reached, ends the connection
 * during the handshake, or twice in a row soon after it. RETRY_WAIT then moves to the next
 * endpoint: at once, or after a back-off if every endpoint has failed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "node_internal.h"

enum {
    TELL_AGAIN_MS = 60000, /* between two reports of the same failure of an endpoint */
    SOON_MS = 10000,       /* after READY: a connection that ends so early may end each time */
    SOON_MAX = 2,
};

static void rpc_moved(void *arg, enum rpc_state state, const struct err *err);
static void retry_fired(void *arg);

/* ---- making ---- */

static int endpoint_make(struct node *n, struct endpoint *e, const char *url, struct err *err)
{
    struct rpc_config config = {
        .url = url,
        .ca_file = n->config.ca_file,
        .insecure = n->config.insecure,
        .call_timeout_ms = n->config.call_timeout_ms,
        .silence_timeout_ms = n->config.silence_timeout_ms,
        .on_state = rpc_moved,
        .arg = e,
    };
    e->node = n;
    e->rpc = rpc_new(n->loop, &config, err);
    return e->rpc ? 0 : err->code;
}

static void node_free(struct node *n)
{
    loop_timer_close(n->retry);
    loop_timer_close(n->poll);
    confirm_done(n);
    blocks_done(n);
    broadcasts_reset(n);
    runtimes_done(n);
    free(n->endpoints);
    free(n->refused);
    free(n);
}

static void rpc_closed(void *arg)
{
    struct node *n = arg;
    if (--n->open_rpcs > 0)
        return;
    void (*cb)(void *arg) = n->close_cb;
    void *cb_arg = n->close_arg;
    node_free(n);
    if (cb)
        cb(cb_arg);
}

static void close_rpcs(struct node *n)
{
    n->phase = NODE_CLOSING;
    n->open_rpcs += peers_close(n, rpc_closed);
    for (size_t i = 0; i < n->endpoint_count; i++)
        rpc_close(n->endpoints[i].rpc, rpc_closed, n);
}

struct node *node_new(struct loop *l, const struct node_config *config, struct err *ret_err)
{
    struct err err;
    struct node *n = xcalloc(1, sizeof(*n));
    PRE(config->url_count > 0);
    n->loop = l;
    n->config = *config;
    if (!n->config.silence_timeout_ms)
        n->config.silence_timeout_ms = 15000;
    n->round = 1;
    n->genesis_known = config->genesis != NULL;
    if (config->genesis)
        memcpy(n->genesis, config->genesis, 32);
    n->backoff = (struct backoff){.base_ms = 200, .cap_ms = 5000, .knee_ms = RPC_KNEE_MS};
    n->rng = (struct rng){loop_seed(l)};
    n->best.node = n->finalized.node = n;
    n->finalized.finalized = true;
    list_init(&n->broadcasts);
    list_init(&n->runtimes);
    blocks_init(n);
    n->retry = loop_timer_new(l, retry_fired, n);
    n->poll = loop_timer_new(l, heads_poll, n);
    n->endpoints = xcalloc(config->url_count, sizeof(*n->endpoints));
    for (; n->endpoint_count < config->url_count; n->endpoint_count++) {
        if (endpoint_make(n, &n->endpoints[n->endpoint_count], config->urls[n->endpoint_count],
                          &err)) {
            n->open_rpcs = n->endpoint_count;
            if (n->open_rpcs)
                close_rpcs(n);
            else
                node_free(n);
            if (ret_err)
                *ret_err = err;
            return NULL;
        }
    }
    n->open_rpcs = n->endpoint_count;
    PRE(config->quorum <= n->endpoint_count);
    confirm_init(n, config->urls);
    return n;
}

void node_open(struct node *n)
{
    PRE(n->phase == NODE_CLOSED);
    n->phase = NODE_OFFLINE;
    rpc_open(node__rpc(n));
}

void node_close(struct node *n, void (*cb)(void *arg), void *arg)
{
    PRE(n->phase != NODE_CLOSING);
    n->close_cb = cb;
    n->close_arg = arg;
    loop_timer_stop(n->retry);
    loop_timer_stop(n->poll);
    confirm_stop(n);
    second_stop(n);
    lack_stop(n);
    loop_task_cancel(&n->expect);
    close_rpcs(n);
}

const struct node_info *node_info(const struct node *n)
{
    return n->phase == NODE_READY ? &n->info : NULL;
}

enum node_doing node_doing(const struct node *n)
{
    if (n->phase == NODE_READY)
        return NODE_IS_READY;
    if (n->phase != NODE_HANDSHAKE_WAIT)
        return NODE_CONNECTS;
    return n->step == HS_RUNTIME_WAIT ? NODE_READS_METADATA : NODE_ASKS_CHAIN;
}

void node_stats(const struct node *n, struct node_stats *ret)
{
    *ret = (struct node_stats){0};
    for (size_t i = 0; i < n->endpoint_count; i++) {
        const struct endpoint *e = &n->endpoints[i];
        ret->requests += e->rpc->sent;
        ret->failures += e->rpc->failures;
        ret->took_ms += e->rpc->took_ms;
        if (i == n->endpoint_at && n->phase == NODE_READY)
            ret->in_use++;
        else if (e->other_chain)
            ret->other_chain++;
        else if (e->failed_at)
            ret->failed++;
        else
            ret->unused++;
    }
}

const char *node_endpoint(const struct node *n)
{
    return n->endpoints[n->endpoint_at].rpc->config.url;
}

void node_other_ways(const struct node *n, struct buf *out)
{
    const struct {
        bool used;
        const char *text;
    } ways[] = {
        {n->no_block_hash, "System.BlockHash in place of chain_getBlockHash"},
        {n->no_final_head, "notifications in place of chain_getFinalizedHead"},
        {n->no_header, "chain_getBlock in place of chain_getHeader"},
        {n->no_version, "state_call in place of state_getRuntimeVersion"},
        {n->no_heads, "polls in place of chain_subscribeNewHeads"},
        {n->no_finalized, "polls in place of chain_subscribeFinalizedHeads"},
        {n->no_storage, "state_queryStorageAt in place of state_getStorage"},
        {n->no_query_storage, "state_getStorage in place of state_queryStorageAt"},
        {n->no_submit[SUBMIT_WATCHED] && !n->no_submit[SUBMIT_PLAIN],
         "submissions without a watch"},
        {n->no_submit[SUBMIT_PLAIN] && !n->no_submit[SUBMIT_TRANSACTION],
         "transactionWatch_v1_submitAndWatch in place of author_submitExtrinsic"},
        {n->no_submit[SUBMIT_PLAIN] && n->no_submit[SUBMIT_TRANSACTION],
         "transaction_v1_broadcast in place of author_submitExtrinsic"},
    };
    rpc_ways_text(n->endpoints[n->endpoint_at].rpc, out);
    for (size_t i = 0; i < ARRAY_LEN(ways); i++)
        if (ways[i].used)
            buf_printf(out, "%s%s", out->len ? ", " : "", ways[i].text);
}

/* ---- up and down ---- */

/* Calls on_down if READY was left, or if an endpoint failed for another reason than the last time,
 * or for the same one for a while. */
static void report_down(struct node *n, bool was_ready, const struct err *err)
{
    struct endpoint *e = &n->endpoints[n->endpoint_at];
    uint64_t now = loop_now_ms(n->loop);
    if (!was_ready)
        e->failed_at = now;
    if (!was_ready && strncmp(e->down, err->text, sizeof(e->down) - 1) == 0 &&
        now < e->told_at + TELL_AGAIN_MS)
        return;
    e->told_at = now;
    snprintf(e->down, sizeof(e->down), "%.*s", (int)sizeof(e->down) - 1, err->text);
    if (n->config.on_down)
        n->config.on_down(n->config.arg, err);
}

void node__ready(struct node *n)
{
    PRE(n->phase == NODE_HANDSHAKE_WAIT && n->runtime);
    n->phase = NODE_READY;
    if (!n->hasty)
        n->failures = 0;
    n->round++;
    n->endpoints[n->endpoint_at].down[0] = 0;
    n->endpoints[n->endpoint_at].failed_at = 0;
    n->endpoints[n->endpoint_at].waited = false;
    n->ready_at = loop_now_ms(n->loop);
    n->recheck_at = n->ready_at + n->config.silence_timeout_ms;
    n->finalized.heard_ms = n->ready_at;
    slow_ready(n);
    heads_poll_later(n);
    if (n->config.on_ready)
        n->config.on_ready(n->config.arg, &n->info);
    if (n->phase == NODE_READY)
        blocks_kick(n);
    if (n->phase == NODE_READY)
        slow_check(n);
}

void node__fault(struct node *n, const struct err *err)
{
    PRE(err->code);
    struct err fault = *err;
    struct err why;
    bool was_ready = n->phase == NODE_READY;
    if (n->phase != NODE_READY && n->phase != NODE_HANDSHAKE_WAIT && n->phase != NODE_OFFLINE)
        return;
    n->phase = NODE_ROTATE_WAIT;
    heads_reset(n);
    blocks_reset(n);
    broadcasts_reset(n);
    err_set(&why, ERR_NET, "%s", fault.text); /* for the calls in flight it is a lost connection */
    rpc_stop(node__rpc(n), &why);
    report_down(n, was_ready, &fault);
}

/* The endpoint ends the connection again and again, at a handshake or soon after it: each time as
 * it is asked the same question. */
static bool ends_each(struct node *n)
{
    struct endpoint *e = &n->endpoints[n->endpoint_at];
    bool soon = loop_now_ms(n->loop) < n->ready_at + SOON_MS;
    if (n->phase != NODE_READY)
        return true;
    e->soon_lost = soon ? e->soon_lost + 1 : 0;
    n->hasty = e->soon_lost >= SOON_MAX; /* READY resets no back-off then */
    return e->soon_lost >= SOON_MAX;
}

static void lost(struct node *n, const struct err *err)
{
    bool was_ready = n->phase == NODE_READY;
    if (n->endpoint_count > 1 && ends_each(n)) {
        n->endpoints[n->endpoint_at].soon_lost = 0;
        n->endpoints[n->endpoint_at].failed_at = loop_now_ms(n->loop);
        node__fault(n, err);
        return;
    }
    n->phase = NODE_OFFLINE; /* stay at this endpoint: its rpc reconnects */
    heads_reset(n);
    blocks_reset(n);
    broadcasts_reset(n);
    report_down(n, was_ready, err);
}

/* The next one in the list that may be connected to now; if none may, the one that may first. One
 * that was tried in this round is the last to be tried again, because all others may be away;
 * before it come those that were slow lately. */
static size_t endpoint_after(const struct node *n)
{
    uint64_t now = loop_now_ms(n->loop), soonest = UINT64_MAX;
    size_t found = n->endpoint_at;
    for (size_t i = 1; i <= n->endpoint_count; i++) {
        size_t at = (n->endpoint_at + i) % n->endpoint_count;
        const struct endpoint *e = &n->endpoints[at];
        uint64_t not_before = rpc_not_before_ms(e->rpc);
        if (not_before < now)
            not_before = now;
        not_before += 2U * (e->tried == n->round) + slow_lately(e, now);
        if (not_before < soonest) {
            soonest = not_before;
            found = at;
        }
    }
    return found;
}

static void stopped(struct node *n)
{
    PRE(n->phase == NODE_ROTATE_WAIT);
    uint64_t now = loop_now_ms(n->loop), at = now;
    n->phase = NODE_RETRY_WAIT;
    n->failures++;
    n->endpoints[n->endpoint_at].tried = n->round;
    if (n->failures % n->endpoint_count == 0) {
        at += backoff_next(&n->backoff, &n->rng);
        n->round++;
    }
    n->endpoint_at = endpoint_after(n);
    uint64_t not_before = rpc_not_before_ms(node__rpc(n));
    loop_timer_at(n->retry, at > not_before ? at : not_before);
}

static void retry_fired(void *arg)
{
    struct node *n = arg;
    if (n->phase != NODE_RETRY_WAIT)
        return;
    n->phase = NODE_OFFLINE;
    rpc_open(node__rpc(n));
}

static void rpc_moved(void *arg, enum rpc_state state, const struct err *err)
{
    struct endpoint *e = arg;
    struct node *n = e->node;
    if (n->phase == NODE_CLOSING)
        return;
    INVARIANT(e == &n->endpoints[n->endpoint_at]);
    switch (state) {
    case RPC_OPEN:
        if (n->phase == NODE_ROTATE_WAIT)
            return;
        n->phase = NODE_HANDSHAKE_WAIT;
        handshake_start(n);
        return;
    case RPC_BACKOFF:
        if (n->phase != NODE_ROTATE_WAIT)
            lost(n, err);
        return;
    case RPC_CLOSED:
        stopped(n);
        return;
    case RPC_CONNECTING:
        return;
    }
}
