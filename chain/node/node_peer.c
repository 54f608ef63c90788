/* Other endpoints: their connections, and when which of them is asked what. node_peer_block.c asks
 * about the block that waits to be reported, node_peer_runtime.c about the runtime in use.
 *
 * Before the first question of a connection stands the one for its genesis. The endpoint in use is
 * asked about a block on its connection, and never about the runtime. An endpoint that does not
 * answer says nothing: it is asked again with the next tick. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "chain/codec/hash.h"
#include "node_internal.h"

static void answered(struct rpc_call *call);

/* ---- life ---- */

void peers_init(struct node *n, const char *const *urls)
{
    PRE(n->endpoint_count > 0 && !n->peers);
    n->peers = xcalloc(n->endpoint_count, sizeof(*n->peers));
    for (size_t i = 0; i < n->endpoint_count; i++)
        n->peers[i] = (struct peer){.node = n, .endpoint = i, .url = xstrdup(urls[i])};
}

size_t peers_close(struct node *n, void (*closed)(void *arg))
{
    size_t open = 0;
    for (size_t i = 0; n->peers && i < n->endpoint_count; i++)
        open += n->peers[i].rpc != NULL;
    for (size_t i = 0; n->peers && i < n->endpoint_count; i++)
        if (n->peers[i].rpc)
            rpc_close(n->peers[i].rpc, closed, n);
    return open;
}

void peers_done(struct node *n)
{
    for (size_t i = 0; n->peers && i < n->endpoint_count; i++)
        free(n->peers[i].url);
    free(n->peers);
}

/* Connections that are not needed all the time are given back. */
void peers_rest(struct node *n)
{
    struct err why;
    if (n->confirm.on || n->second.on || n->away.on || n->config.quorum > 1)
        return;
    err_set(&why, ERR_NET, "nothing is to be confirmed");
    for (size_t i = 0; i < n->endpoint_count; i++) {
        struct peer *p = &n->peers[i];
        if (!p->rpc || p->stopping || rpc_state(p->rpc) == RPC_CLOSED)
            continue;
        p->stopping = true;
        rpc_stop(p->rpc, &why);
    }
}

/* ---- the questions ---- */

bool peer_in_use(const struct peer *p)
{
    return p->endpoint == p->node->endpoint_at;
}

static bool of_runtime(enum peer_step step)
{
    return step == PEER_VERSION_WAIT || step == PEER_METADATA_WAIT;
}

static void begin(struct peer *p, enum peer_step step)
{
    PRE(p->step == PEER_IDLE);
    p->step = step;
    p->round = of_runtime(step) ? p->node->second.round : p->node->confirm.round;
}

static struct rpc *rpc_of(struct peer *p)
{
    return peer_in_use(p) ? node__rpc(p->node) : p->rpc;
}

void peer_call(struct peer *p, enum peer_step step, const char *method, const char *params)
{
    begin(p, step);
    rpc_call_start(rpc_of(p), &p->call, method, params, 0, NULL, NULL, answered);
}

static bool *no_block_hash(struct peer *p)
{
    return peer_in_use(p) ? &p->node->no_block_hash : &p->no_block_hash;
}

static uint64_t height_asked(const struct peer *p, enum peer_step step)
{
    return step == PEER_GENESIS_WAIT ? 0 : p->node->confirm.number;
}

void peer_ask_height(struct peer *p, enum peer_step step)
{
    begin(p, step);
    hash_start(rpc_of(p), &p->call, height_asked(p, step), *no_block_hash(p), answered);
}

void peer_says(struct peer *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p->text, sizeof(p->text), fmt, ap);
    va_end(ap);
}

static void moved(void *arg, enum rpc_state state, const struct err *err);

static bool make_rpc(struct peer *p)
{
    const struct node *n = p->node;
    struct rpc_config config = {
        .url = p->url,
        .ca_file = n->config.ca_file,
        .insecure = n->config.insecure,
        .call_timeout_ms = n->config.call_timeout_ms,
        .silence_timeout_ms = n->config.silence_timeout_ms,
        .on_state = moved,
        .arg = p,
    };
    struct err err = {0};
    if (!p->rpc)
        p->rpc = rpc_new(n->loop, &config, &err);
    if (!p->rpc)
        peer_says(p, "%s", err.text);
    return p->rpc != NULL;
}

/* Of an endpoint that contradicts: it may take it back. */
static bool wanted_of_block(const struct peer *p)
{
    const struct node *n = p->node;
    return n->confirm.on && p->opinion != OPINION_SAME &&
           (peer_in_use(p) || n->confirm.doubted || n->config.quorum > 1);
}

static bool wanted_of_runtime(const struct peer *p)
{
    const struct node *n = p->node;
    return n->second.on && !peer_in_use(p) && p->of_runtime != OPINION_SAME &&
           loop_now_ms(n->loop) >= p->runtime_at;
}

void peer_connect(struct peer *p)
{
    if (make_rpc(p) && !p->stopping && rpc_state(p->rpc) == RPC_CLOSED)
        rpc_open(p->rpc);
}

void peer_ask(struct peer *p)
{
    struct node *n = p->node;
    bool block = wanted_of_block(p), runtime = wanted_of_runtime(p);
    if (p->step != PEER_IDLE || (!block && !runtime))
        return;
    if (peer_in_use(p)) {
        if (n->phase == NODE_READY && loop_now_ms(n->loop) >= n->confirm.again_at)
            peer_ask_hash(p);
        return;
    }
    peer_connect(p);
    if (!p->rpc || p->stopping)
        return;
    if (rpc_state(p->rpc) == RPC_OPEN && !p->same_chain)
        peer_ask_height(p, PEER_GENESIS_WAIT);
    else if (rpc_state(p->rpc) == RPC_OPEN && runtime)
        peer_ask_version(p);
    else if (rpc_state(p->rpc) == RPC_OPEN)
        peer_call(p, PEER_FINAL_WAIT, "chain_getFinalizedHead", "[]");
}

static void moved(void *arg, enum rpc_state state, const struct err *err)
{
    struct peer *p = arg;
    struct node *n = p->node;
    if (n->phase == NODE_CLOSING)
        return;
    if (state == RPC_BACKOFF)
        peer_says(p, "%s", err->text);
    if (state == RPC_CLOSED)
        p->stopping = false;
    if (state != RPC_OPEN)
        p->same_chain = false;
    if (state == RPC_OPEN)
        lack_back(n, p->endpoint);
    if (state == RPC_OPEN || state == RPC_CLOSED)
        peer_ask(p);
}

/* ---- the answers ---- */

static void got_genesis(struct peer *p, const struct rpc_call *call)
{
    uint8_t hash[32];
    p->same_chain = wire_hash(call->result, hash) && memcmp(hash, p->node->genesis, 32) == 0;
    if (p->same_chain)
        peer_ask(p);
    else
        peer_says(p, "is of another chain");
}

static void got_answer(struct peer *p, enum peer_step step, const struct rpc_call *call)
{
    switch (step) {
    case PEER_IDLE:
        break;
    case PEER_GENESIS_WAIT:
        got_genesis(p, call);
        return;
    case PEER_FINAL_WAIT:
        peer_got_final(p, call);
        return;
    case PEER_HEADER_WAIT:
        peer_got_header(p, call);
        return;
    case PEER_HASH_WAIT:
        peer_got_hash(p, call);
        return;
    case PEER_NONCE_WAIT:
        peer_got_nonce(p, call);
        return;
    case PEER_EVENTS_WAIT:
        peer_got_events(p, call);
        return;
    case PEER_VERSION_WAIT:
        peer_got_version(p, call);
        return;
    case PEER_METADATA_WAIT:
        peer_got_metadata(p, call);
        return;
    }
    UNREACHABLE();
}

/* A refused method is asked in another way where there is one. */
static bool try_other_way(struct peer *p, enum peer_step step)
{
    if (step == PEER_EVENTS_WAIT && !p->no_storage_hash) {
        p->no_storage_hash = true;
        peer_ask_events(p);
    } else if (step == PEER_VERSION_WAIT && !p->no_version) {
        p->no_version = true;
        peer_ask_version(p);
    } else if ((step == PEER_GENESIS_WAIT || step == PEER_HASH_WAIT) && !*no_block_hash(p)) {
        *no_block_hash(p) = true;
        peer_ask_height(p, step);
    } else {
        return false;
    }
    return true;
}

/* An error proves nothing: the next tick asks again. */
static void answered(struct rpc_call *call)
{
    struct peer *p = CONTAINER_OF(call, struct peer, call);
    struct node *n = p->node;
    enum peer_step step = p->step;
    bool runtime = of_runtime(step);
    PRE(step != PEER_IDLE);
    p->step = PEER_IDLE;
    if (n->phase == NODE_CLOSING)
        return;
    if (step != PEER_GENESIS_WAIT && (!(runtime ? n->second.on : n->confirm.on) ||
                                      p->round != (runtime ? n->second.round : n->confirm.round))) {
        peer_ask(p);
        return;
    }
    if (step == PEER_METADATA_WAIT)
        p->runtime_at = loop_now_ms(n->loop) + PEER_AGAIN_TICKS * node__tick_ms(n);
    if (call->refused == RPC_ERROR_METHOD && try_other_way(p, step))
        return;
    if (call->err.code) {
        peer_says(p, "%s: %s", call->method, call->err.text);
        return;
    }
    got_answer(p, step, call);
}
