/* What endpoints lack: bodies and states of blocks that they have pruned, the question after their
 * pool, methods that they refuse. What one endpoint lacks is asked of the next one; what none has
 * is reported as not known, and nothing else waits for it.
 *
 * An endpoint that failed lately is not tried for it: a block waits for a while for those to come
 * back, on connections of their own (node_peer.c), before it is reported without.
 *
 * An endpoint that lacks a height is asked where its blocks begin, by halves, so that it is known
 * for all heights before the next endpoint takes its place, and the way back costs nothing. A
 * question that it answers by another error ends the search with what is known by then. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "node_internal.h"

enum {
    LACK_MS = 60000, /* an endpoint is not tried again before, for what it lacked or at all */
    AWAY_TICKS = 30, /* a block waits this long for endpoints that are away and may have it */
};

static const char *const names[] = {[LACK_BODY] = "block",
                                    [LACK_STATE] = "state",
                                    [LACK_POOL] = "pool",
                                    [LACK_SUBMIT] = "submission"};

static bool recent(const struct node *n, uint64_t at)
{
    return at && loop_now_ms(n->loop) < at + LACK_MS;
}

static struct endpoint *present(struct node *n)
{
    return &n->endpoints[n->endpoint_at];
}

static bool lacks(const struct node *n, const struct endpoint *e, enum lack kind, uint64_t number)
{
    return recent(n, e->lacks_at[kind]) && number <= e->lacks_to[kind];
}

bool lack_elsewhere(const struct node *n, enum lack kind, uint64_t number)
{
    for (size_t i = 0; i < n->endpoint_count; i++)
        if (i != n->endpoint_at && !recent(n, n->endpoints[i].failed_at) &&
            !lacks(n, &n->endpoints[i], kind, number))
            return true;
    return false;
}

static void set_lack(struct node *n, enum lack kind, uint64_t to)
{
    struct endpoint *e = present(n);
    e->lacks_to[kind] = to;
    e->lacks_at[kind] = loop_now_ms(n->loop);
}

bool lack_leave(struct node *n, enum lack kind, uint64_t number, const struct err *why)
{
    PRE(why->code);
    set_lack(n, kind, lacks(n, present(n), kind, number) ? present(n)->lacks_to[kind] : number);
    if (n->phase != NODE_READY || !lack_elsewhere(n, kind, number))
        return false;
    node__fault(n, why);
    return true;
}

/* ---- endpoints that are away ---- */

bool lack_may_return(const struct node *n, size_t endpoint)
{
    const struct endpoint *e = &n->endpoints[endpoint];
    return endpoint != n->endpoint_at && recent(n, e->failed_at) && !e->waited && !e->other_chain &&
           !recent(n, e->back_at);
}

void lack_stop(struct node *n)
{
    n->away.on = false;
    loop_timer_stop(n->away.timer);
    peers_rest(n);
}

void lack_tick(void *arg)
{
    struct node *n = arg;
    uint64_t now = loop_now_ms(n->loop);
    if (!n->away.on || n->phase != NODE_READY)
        return;
    bool over = now >= n->away.since + AWAY_TICKS * node__tick_ms(n);
    for (size_t i = 0; i < n->endpoint_count; i++) {
        if (!lack_may_return(n, i))
            continue;
        n->endpoints[i].waited = over;
        peer_connect(&n->peers[i]);
    }
    if (over) {
        lack_stop(n);
        blocks_reached(n);
    } else {
        loop_timer_at(n->away.timer, now + node__tick_ms(n));
    }
}

void lack_back(struct node *n, size_t endpoint)
{
    struct endpoint *e = &n->endpoints[endpoint];
    if (!n->away.on || !lack_may_return(n, endpoint))
        return;
    e->failed_at = 0;
    e->back_at = loop_now_ms(n->loop);
    lack_stop(n);
    blocks_reached(n);
}

bool lack_wait(struct node *n, enum lack kind, uint64_t number)
{
    PRE(n->phase == NODE_READY);
    bool found = false;
    for (size_t i = 0; i < n->endpoint_count; i++)
        found = found || (lack_may_return(n, i) && !lacks(n, &n->endpoints[i], kind, number));
    if (!found || n->away.on)
        return found;
    n->away.on = true;
    n->away.number = number;
    n->away.since = loop_now_ms(n->loop);
    log_warn("node.lacks_and_waits",
             "url=%s what=%s number=%llu text=\"another endpoint that is away may have it\"",
             node__url(n), names[kind], (unsigned long long)number);
    lack_tick(n);
    return true;
}

void lack_refusal(const struct rpc_call *call, const char *url, const char *of, struct err *ret)
{
    err_set(ret, call->err.code ? call->err.code : ERR_PROTOCOL, "%s: %s%s: %s (%s)", url,
            call->method, of, call->err.code ? call->err.text : "null",
            call->err.code == ERR_RPC ? rpc_error_name(call->refused) : "not this block");
}

/* ---- where its blocks begin ---- */

static void reach_hash(struct node *n);

static void reach_end(struct node *n)
{
    struct reach *r = &n->reach;
    r->on = false;
    set_lack(n, r->kind, r->lacks);
    log_warn("node.lacks", "url=%s what=%s up_to=%llu text=\"%s\"", node__url(n), names[r->kind],
             (unsigned long long)r->lacks, r->why.text);
    blocks_reached(n);
}

static void reach_step(struct node *n, bool has)
{
    struct reach *r = &n->reach;
    if (has)
        r->has = r->middle;
    else
        r->lacks = r->middle;
    if (r->has > r->lacks + 1)
        reach_hash(n);
    else
        reach_end(n);
}

static void reach_answered(struct rpc_call *call);

static void reach_ask(struct node *n, const uint8_t hash[32])
{
    bool body = n->reach.kind == LACK_BODY, call = !body && n->no_version;
    char text[HASH_TEXT], params[HASH_TEXT + 64];
    wire_hash_text(hash, text);
    snprintf(params, sizeof(params), call ? "[\"Core_version\",\"0x\",\"%s\"]" : "[\"%s\"]", text);
    rpc_call_start(node__rpc(n), &n->reach.call,
                   body   ? "chain_getBlock"
                   : call ? "state_call"
                          : "state_getRuntimeVersion",
                   params, 0, NULL, NULL, reach_answered);
}

/* Does the answer say that there is no such block? An endpoint that is broken, denies, asks for a
 * slower pace or does not answer in time says nothing about it. */
static bool says_none(const struct rpc_call *call)
{
    return call->refused == RPC_ERROR_BLOCK || call->refused == RPC_ERROR_METHOD ||
           call->refused == RPC_ERROR_SIZE || (!call->err.code && jv_is(call->result, JV_NULL));
}

static void reach_answered(struct rpc_call *call)
{
    struct node *n = CONTAINER_OF(call, struct node, reach.call);
    struct reach *r = &n->reach;
    uint8_t hash[32];
    PRE(r->on);
    if (n->phase != NODE_READY || node__gone(&call->err)) {
        r->on = false;
        return;
    }
    if (says_none(call)) {
        reach_step(n, false);
        return;
    }
    if (call->err.code || (r->of_hash && !wire_hash(call->result, hash))) {
        reach_end(n); /* what was found out so far counts */
        return;
    }
    if (!r->of_hash) {
        reach_step(n, true);
        return;
    }
    r->of_hash = false;
    reach_ask(n, hash);
}

static void reach_hash(struct node *n)
{
    struct reach *r = &n->reach;
    r->middle = r->lacks + (r->has - r->lacks) / 2;
    r->of_hash = true;
    hash_start(node__rpc(n), &r->call, r->middle, n->no_block_hash, reach_answered);
}

bool lack_search(struct node *n, enum lack kind, uint64_t number, const struct err *why)
{
    PRE(n->phase == NODE_READY);
    struct reach *r = &n->reach;
    if (n->endpoint_count == 1 || lacks(n, present(n), kind, number))
        return false;
    if (r->on)
        return true;
    r->on = true;
    r->kind = kind;
    r->lacks = number;
    r->has = n->info.finalized_number + 1;
    r->why = *why;
    if (r->has <= r->lacks + 1)
        reach_end(n);
    else
        reach_hash(n);
    return r->on;
}
