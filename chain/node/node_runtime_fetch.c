/* Fetch the runtime of a block: its version, and the metadata of that version, if it is not cached.
 *
 *   BEST_WAIT -> VERSION_WAIT -+-> done (the version is cached)
 *   (if no block               |
 *    was given)                +-> API_WAIT -+-> [TOKEN_WAIT] -> done
 *                              |             |
 *                              +-------------+-> METADATA_WAIT -> done
 *
 * API_WAIT asks the runtime for V15 metadata if it has the call (Metadata_metadata_at_version,
 * version 2 of the Metadata API). METADATA_WAIT is state_getMetadata, V14, which every node has.
 * TOKEN_WAIT asks for the chain's token, if extrinsics can sign a metadata hash and the owner did
 * not give it. An endpoint that gives a wrong one, or none, costs those signatures and nothing
 * else. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "chain/codec/hash.h"
#include "node_internal.h"

static void fetch_answered(struct rpc_call *call);

static void fetch_ask(struct runtime_fetch *f, enum fetch_step step, const char *method,
                      const char *params)
{
    f->step = step;
    rpc_call_start(node__rpc(f->node), &f->call, method, params, 0, NULL, NULL, fetch_answered);
}

static void fetch_end(struct runtime_fetch *f, const struct err *err)
{
    PRE(f->step != FETCH_IDLE);
    PRE(err ? err->code != 0 : f->runtime != NULL);
    f->step = FETCH_IDLE;
    if (err)
        f->err = *err;
    f->cb(f);
}

/* Where an endpoint refuses the method the runtime itself tells its version. */
static void fetch_ask_version(struct runtime_fetch *f)
{
    bool call = f->node->no_version;
    char params[HASH_TEXT + 64];
    snprintf(params, sizeof(params), call ? "[\"Core_version\",\"0x\",\"%s\"]" : "[\"%s\"]", f->at);
    fetch_ask(f, FETCH_VERSION_WAIT, call ? "state_call" : "state_getRuntimeVersion", params);
}

static void fetch_ask_metadata(struct runtime_fetch *f)
{
    char params[HASH_TEXT + 8];
    snprintf(params, sizeof(params), "[\"%s\"]", f->at);
    fetch_ask(f, FETCH_METADATA_WAIT, "state_getMetadata", params);
}

static void fetch_ask_api(struct runtime_fetch *f)
{
    char params[HASH_TEXT + 64];
    snprintf(params, sizeof(params), "[\"Metadata_metadata_at_version\",\"0x0f000000\",\"%s\"]",
             f->at);
    fetch_ask(f, FETCH_API_WAIT, "state_call", params);
}

void runtime_fetch_start(struct node *n, struct runtime_fetch *f, const uint8_t *at,
                         void (*cb)(struct runtime_fetch *f))
{
    PRE(f->step == FETCH_IDLE);
    *f = (struct runtime_fetch){.node = n, .cb = cb};
    if (at) {
        wire_hash_text(at, f->at);
        fetch_ask_version(f);
    } else if (n->no_block_hash) {
        wire_hash_text(n->info.best_hash, f->at);
        fetch_ask_version(f);
    } else {
        fetch_ask(f, FETCH_BEST_WAIT, "chain_getBlockHash", "[]");
    }
}

/* Done with the version in f: take it from the cache, or add it with its metadata. */
static void fetch_found(struct runtime_fetch *f, struct metadata *md)
{
    struct runtime *r = runtime_find(f->node, &f->version);
    bool same = r && md && memcmp(r->hash, f->version.hash, 32) == 0;
    if (r && f->again && same)
        r->confirmed = true;
    if (r && f->again && !same) {
        log_warn("node.metadata_differs", "url=%s spec=%s/%u", node__url(f->node), r->spec_name,
                 r->spec_version);
        r->replaced = true;
        r = NULL;
    }
    if (!r) {
        r = xcalloc(1, sizeof(*r));
        *r = f->version;
        r->node = (struct list){0};
        r->metadata = md;
        md = NULL;
    }
    metadata_free(md); /* another fetch of this version was faster */
    runtime_used(f->node, r);
    runtimes_trim(f->node);
    f->runtime = r;
    fetch_end(f, NULL);
}

static void fetch_version(struct runtime_fetch *f)
{
    struct err err;
    bool decoded = !strcmp(f->call.method, "state_call");
    bool api = !decoded && runtime_has_metadata_api(f->call.result);
    if (decoded ? !runtime_version_decode(f->call.result, &f->version, &api)
                : !runtime_version_read(f->call.result, &f->version)) {
        err_set(&err, ERR_PROTOCOL, "%s: the runtime version has no specName or specVersion",
                node__url(f->node));
        fetch_end(f, &err);
    } else if (!f->again && runtime_find(f->node, &f->version)) {
        fetch_found(f, NULL);
    } else if (api) {
        fetch_ask_api(f);
    } else {
        fetch_ask_metadata(f);
    }
}

static struct metadata *metadata_read(const struct node *n, const struct jv *value,
                                      uint8_t ret_hash[32], struct err *err)
{
    struct buf bytes = {0};
    struct metadata *md = NULL;
    if (!wire_bytes(value, &bytes))
        err_set(err, ERR_METADATA, "the metadata is not hexadecimal");
    else if (metadata_parse(bytes.data, bytes.len, &md, err))
        md = NULL;
    else
        hash_blake2b_256(bytes.data, bytes.len, ret_hash);
    if (md)
        extrinsic_configure(md, n->config.extensions, n->config.extension_count);
    if (md && n->config.token.symbol)
        extrinsic_set_token(md, &n->config.token);
    buf_done(&bytes);
    return md;
}

/* A chain with several tokens gives lists: the first one is its own. */
static const struct jv *first_of(const struct jv *v)
{
    return jv_is(v, JV_ARRAY) ? jv_first(v) : v;
}

static void fetch_token(struct runtime_fetch *f)
{
    const struct jv *all = f->call.err.code ? NULL : f->call.result;
    struct metadata *md = f->version.metadata;
    char symbol[64];
    int64_t decimals = -1;
    size_t len = jv_copy(first_of(jv_get(all, "tokenSymbol")), symbol, sizeof(symbol));
    jv_int(first_of(jv_get(all, "tokenDecimals")), &decimals);
    if (len > 0 && len < sizeof(symbol) && decimals >= 0 && decimals <= UINT8_MAX)
        extrinsic_set_token(md, &(struct metadata_token){symbol, (uint8_t)decimals});
    else
        log_warn(
            "node.no_token",
            "url=%s error=\"%s\" text=\"the endpoint does not say which token the chain has, so "
            "no metadata hash can be signed or verified: set chain.token_symbol and "
            "chain.token_decimals\"",
            node__url(f->node), f->call.err.code ? f->call.err.text : "");
    f->version.metadata = NULL;
    fetch_found(f, md);
}

static void fetch_metadata(struct runtime_fetch *f)
{
    struct err err = {0};
    struct metadata *md = metadata_read(f->node, f->call.result, f->version.hash, &err);
    f->version.by_api = f->step == FETCH_API_WAIT;
    bool token = md && f->step == FETCH_API_WAIT && extrinsic_has_metadata_hash(md) &&
                 !f->node->config.token.symbol;
    if (token) {
        f->version.metadata = md;
        fetch_ask(f, FETCH_TOKEN_WAIT, "system_properties", "[]");
    } else if (md) {
        fetch_found(f, md);
    } else if (f->step == FETCH_API_WAIT) {
        log_debug("node.metadata_v15", "url=%s error=\"%s\"", node__url(f->node), err.text);
        fetch_ask_metadata(f);
    } else {
        struct err named;
        err_set(&named, ERR_METADATA, "%s: %s %u: %s", node__url(f->node), f->version.spec_name,
                f->version.spec_version, err.text);
        fetch_end(f, &named);
    }
}

static void fetch_answered(struct rpc_call *call)
{
    struct runtime_fetch *f = CONTAINER_OF(call, struct runtime_fetch, call);
    struct err err;
    uint8_t hash[32];
    if (f->step == FETCH_TOKEN_WAIT) {
        fetch_token(f);
        return;
    }
    if (call->err.code == ERR_RPC && f->step == FETCH_API_WAIT) {
        fetch_ask_metadata(f);
        return;
    }
    if (f->step == FETCH_VERSION_WAIT && call->refused == RPC_ERROR_METHOD &&
        !strcmp(call->method, "state_getRuntimeVersion")) {
        f->node->no_version = true;
        fetch_ask_version(f);
        return;
    }
    if (f->step == FETCH_BEST_WAIT && call->refused == RPC_ERROR_METHOD) {
        f->node->no_block_hash = true;
        wire_hash_text(f->node->info.best_hash, f->at);
        fetch_ask_version(f);
        return;
    }
    if (call->err.code) {
        f->pruned = call->refused == RPC_ERROR_BLOCK;
        fetch_end(f, &call->err);
        return;
    }
    switch (f->step) {
    case FETCH_BEST_WAIT:
        if (wire_hash(call->result, hash)) {
            wire_hash_text(hash, f->at);
            fetch_ask_version(f);
            return;
        }
        err_set(&err, ERR_PROTOCOL, "%s: chain_getBlockHash gave no hash", node__url(f->node));
        fetch_end(f, &err);
        return;
    case FETCH_VERSION_WAIT:
        fetch_version(f);
        return;
    case FETCH_API_WAIT:
    case FETCH_METADATA_WAIT:
        fetch_metadata(f);
        return;
    case FETCH_TOKEN_WAIT:
    case FETCH_IDLE:
        break;
    }
    UNREACHABLE();
}
