/* Other endpoints, and the questions to them: about the block that waits to be reported
 * (node_confirm.c), and about the runtime in use (node_second.c).
 *
 *   of a block:      final head -> its header -> hash of the height -> nonces -> [events]
 *   of the runtime:  version -> metadata
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

enum { AGAIN_TICKS = 10 }; /* between two questions for the runtime: metadata is large */

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

static void ask(struct peer *p, enum peer_step step, const char *method, const char *params)
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

static void ask_height(struct peer *p, enum peer_step step)
{
    begin(p, step);
    hash_start(rpc_of(p), &p->call, height_asked(p, step), *no_block_hash(p), answered);
}

static void ask_hash(struct peer *p)
{
    p->nonce_next = 0;
    ask_height(p, PEER_HASH_WAIT);
}

static void says(struct peer *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void says(struct peer *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p->text, sizeof(p->text), fmt, ap);
    va_end(ap);
}

/* The hash of the events is enough, where the endpoint tells it and it is blake2b-256 of them. */
static void ask_events(struct peer *p)
{
    const struct node *n = p->node;
    bool hash = n->hash_computable && !p->no_storage_hash;
    char text[HASH_TEXT], params[256];
    wire_hash_text(n->confirm.hash, text);
    snprintf(params, sizeof(params), "[\"%s\",\"%s\"]", wire_events_key, text);
    ask(p, PEER_EVENTS_WAIT, hash ? "state_getStorageHash" : "state_getStorage", params);
}

static void ask_next(struct peer *p)
{
    const struct confirm *c = &p->node->confirm;
    char hash[HASH_TEXT];
    if (p->nonce_next == c->nonce_count && c->has_events && !peer_in_use(p)) {
        ask_events(p);
        return;
    }
    if (p->nonce_next == c->nonce_count) {
        says(p, "says the same");
        confirm_opinion(p, OPINION_SAME);
        return;
    }
    wire_hash_text(c->hash, hash);
    char *params =
        xasprintf("[\"%s\",\"%s\"]", p->node->accounts[c->nonces[p->nonce_next].account].key, hash);
    ask(p, PEER_NONCE_WAIT, "state_getStorage", params);
    free(params);
}

static void ask_version(struct peer *p)
{
    char text[HASH_TEXT], params[HASH_TEXT + 64];
    wire_hash_text(p->node->second.at, text);
    snprintf(params, sizeof(params),
             p->no_version ? "[\"Core_version\",\"0x\",\"%s\"]" : "[\"%s\"]", text);
    ask(p, PEER_VERSION_WAIT, p->no_version ? "state_call" : "state_getRuntimeVersion", params);
}

/* In the form in which it was read at the endpoint in use. */
static void ask_metadata(struct peer *p)
{
    const struct second *s = &p->node->second;
    char text[HASH_TEXT], params[HASH_TEXT + 64];
    wire_hash_text(s->at, text);
    snprintf(params, sizeof(params),
             s->runtime->by_api ? "[\"Metadata_metadata_at_version\",\"0x0f000000\",\"%s\"]"
                                : "[\"%s\"]",
             text);
    ask(p, PEER_METADATA_WAIT, s->runtime->by_api ? "state_call" : "state_getMetadata", params);
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
        says(p, "%s", err.text);
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
            ask_hash(p);
        return;
    }
    peer_connect(p);
    if (!p->rpc || p->stopping)
        return;
    if (rpc_state(p->rpc) == RPC_OPEN && !p->same_chain)
        ask_height(p, PEER_GENESIS_WAIT);
    else if (rpc_state(p->rpc) == RPC_OPEN && runtime)
        ask_version(p);
    else if (rpc_state(p->rpc) == RPC_OPEN)
        ask(p, PEER_FINAL_WAIT, "chain_getFinalizedHead", "[]");
}

static void moved(void *arg, enum rpc_state state, const struct err *err)
{
    struct peer *p = arg;
    struct node *n = p->node;
    if (n->phase == NODE_CLOSING)
        return;
    if (state == RPC_BACKOFF)
        says(p, "%s", err->text);
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
        says(p, "is of another chain");
}

static void got_final(struct peer *p, const struct rpc_call *call)
{
    uint8_t hash[32];
    char text[HASH_TEXT], params[HASH_TEXT + 8];
    if (!wire_hash(call->result, hash)) {
        says(p, "chain_getFinalizedHead gave no hash");
        return;
    }
    wire_hash_text(hash, text);
    snprintf(params, sizeof(params), "[\"%s\"]", text);
    ask(p, PEER_HEADER_WAIT, "chain_getHeader", params);
}

static void got_header(struct peer *p, const struct rpc_call *call)
{
    struct wire_header h;
    if (!wire_header(call->result, &h))
        says(p, "chain_getHeader gave no header");
    else if (h.head.number < p->node->confirm.number)
        says(p, "has only %llu final blocks", (unsigned long long)h.head.number);
    else
        ask_hash(p);
}

static void got_hash(struct peer *p, const struct rpc_call *call)
{
    uint8_t hash[32];
    char text[HASH_TEXT];
    if (!wire_hash(call->result, hash)) {
        says(p, "does not know the height");
    } else if (memcmp(hash, p->node->confirm.hash, 32) != 0) {
        wire_hash_text(hash, text);
        says(p, "says that the block is %s", text);
        confirm_opinion(p, OPINION_OTHER);
    } else {
        ask_next(p);
    }
}

static void got_nonce(struct peer *p, const struct rpc_call *call)
{
    const struct confirm *c = &p->node->confirm;
    PRE(p->nonce_next < c->nonce_count);
    const struct confirm_nonce *x = &c->nonces[p->nonce_next];
    uint64_t nonce;
    if (!wire_account(call->result, NULL, &nonce, NULL)) {
        says(p, "gave an account that is not readable");
    } else if (nonce != x->nonce) {
        says(p, "says that the nonce is %llu, not %llu", (unsigned long long)nonce,
             (unsigned long long)x->nonce);
        confirm_opinion(p, OPINION_OTHER);
    } else {
        p->nonce_next++;
        ask_next(p);
    }
}

static void got_events(struct peer *p, const struct rpc_call *call)
{
    uint8_t hash[32];
    struct buf bytes = {0};
    bool null = jv_is(call->result, JV_NULL), whole = !strcmp(call->method, "state_getStorage");
    bool good = null || (whole ? wire_bytes(call->result, &bytes) : wire_hash(call->result, hash));
    if (good && (null || whole))
        hash_blake2b_256(bytes.data, bytes.len, hash);
    buf_done(&bytes);
    if (!good) {
        says(p, "gave events that are not readable");
    } else if (memcmp(hash, p->node->confirm.events, 32) != 0) {
        says(p, "says that the events of the block are others");
        confirm_opinion(p, OPINION_OTHER);
    } else {
        says(p, "says the same");
        confirm_opinion(p, OPINION_SAME);
    }
}

static void got_version(struct peer *p, const struct rpc_call *call)
{
    const struct runtime *r = p->node->second.runtime;
    struct runtime v;
    bool api;
    if (p->no_version ? !runtime_version_decode(call->result, &v, &api)
                      : !runtime_version_read(call->result, &v)) {
        says(p, "gave a runtime version that is not readable");
    } else if (v.spec_version != r->spec_version ||
               v.transaction_version != r->transaction_version ||
               strcmp(v.spec_name, r->spec_name) != 0) {
        says(p, "says that the runtime is %s/%u with transaction_version %u", v.spec_name,
             v.spec_version, v.transaction_version);
        p->runtime_at = loop_now_ms(p->node->loop) + AGAIN_TICKS * node__tick_ms(p->node);
        second_opinion(p, OPINION_OTHER);
    } else {
        ask_metadata(p);
    }
}

static void got_metadata(struct peer *p, const struct rpc_call *call)
{
    struct buf bytes = {0};
    uint8_t hash[32];
    bool good = wire_bytes(call->result, &bytes);
    hash_blake2b_256(bytes.data, bytes.len, hash);
    buf_done(&bytes);
    if (!good) {
        says(p, "gave metadata that is not hexadecimal");
    } else if (memcmp(hash, p->node->second.runtime->hash, 32) != 0) {
        says(p, "gives other metadata");
        second_opinion(p, OPINION_OTHER);
    } else {
        says(p, "says the same");
        second_opinion(p, OPINION_SAME);
    }
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
        got_final(p, call);
        return;
    case PEER_HEADER_WAIT:
        got_header(p, call);
        return;
    case PEER_HASH_WAIT:
        got_hash(p, call);
        return;
    case PEER_NONCE_WAIT:
        got_nonce(p, call);
        return;
    case PEER_EVENTS_WAIT:
        got_events(p, call);
        return;
    case PEER_VERSION_WAIT:
        got_version(p, call);
        return;
    case PEER_METADATA_WAIT:
        got_metadata(p, call);
        return;
    }
    UNREACHABLE();
}

/* A refused method is asked in another way where there is one. */
static bool other_way(struct peer *p, enum peer_step step)
{
    if (step == PEER_EVENTS_WAIT && !p->no_storage_hash) {
        p->no_storage_hash = true;
        ask_events(p);
    } else if (step == PEER_VERSION_WAIT && !p->no_version) {
        p->no_version = true;
        ask_version(p);
    } else if ((step == PEER_GENESIS_WAIT || step == PEER_HASH_WAIT) && !*no_block_hash(p)) {
        *no_block_hash(p) = true;
        ask_height(p, step);
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
        p->runtime_at = loop_now_ms(n->loop) + AGAIN_TICKS * node__tick_ms(n);
    if (call->refused == RPC_ERROR_METHOD && other_way(p, step))
        return;
    if (call->err.code) {
        says(p, "%s: %s", call->method, call->err.text);
        return;
    }
    got_answer(p, step, call);
}
