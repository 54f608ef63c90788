/* The runtime of a block: its version, and the metadata of that version. A few versions are cached.
 *
 *   BEST_WAIT -> VERSION_WAIT -+-> done (the version is cached)
 *   (if no block               |
 *    was given)                +-> API_WAIT -+-> done
 *                              |             |
 *                              +-------------+-> METADATA_WAIT -> done
 *
 * API_WAIT asks the runtime for V15 metadata if it has the call (Metadata_metadata_at_version,
 * version 2 of the Metadata API). METADATA_WAIT is state_getMetadata, V14, which every node has. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "chain/codec/hash.h"
#include "node_internal.h"

enum { CACHED = 4 };

static const char metadata_api[] = "0x37e397fc7c91f5e4"; /* blake2b-64 of "Metadata" */
static const uint8_t metadata_api_id[8] = {0x37, 0xe3, 0x97, 0xfc, 0x7c, 0x91, 0xf5, 0xe4};

/* ---- the cache ---- */

static struct runtime *runtime_find(struct node *n, const struct runtime *version)
{
    LIST_EACH (pos, &n->runtimes) {
        struct runtime *r = CONTAINER_OF(pos, struct runtime, node);
        if (!r->replaced && r->spec_version == version->spec_version &&
            r->transaction_version == version->transaction_version &&
            strcmp(r->spec_name, version->spec_name) == 0)
            return r;
    }
    return NULL;
}

static void runtime_free(struct runtime *r)
{
    PRE(r->refs == 0);
    list_remove(&r->node);
    metadata_free(r->metadata);
    free(r);
}

static void runtime_used(struct node *n, struct runtime *r)
{
    PRE(r->metadata);
    list_remove(&r->node);
    list_append(&n->runtimes, &r->node);
    r->refs++;
}

static void runtimes_trim(struct node *n)
{
    size_t count = 0;
    LIST_EACH (pos, &n->runtimes)
        count++;
    for (struct list *pos = n->runtimes.next, *next; pos != &n->runtimes && count > CACHED;
         pos = next) {
        struct runtime *r = CONTAINER_OF(pos, struct runtime, node);
        next = pos->next;
        if (r->refs == 0) {
            runtime_free(r);
            count--;
        }
    }
}

void runtime_unref(struct runtime *r)
{
    if (r) {
        INVARIANT(r->refs > 0);
        r->refs--;
    }
}

void runtimes_done(struct node *n)
{
    runtime_unref(n->runtime);
    for (struct list *pos = list_first(&n->runtimes); pos; pos = list_first(&n->runtimes)) {
        INVARIANT(CONTAINER_OF(pos, struct runtime, node)->refs == 0);
        runtime_free(CONTAINER_OF(pos, struct runtime, node));
    }
}

/* ---- fetching ---- */

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

bool runtime_version_read(const struct jv *value, struct runtime *ret_version)
{
    const struct jv *name = jv_get(value, "specName");
    uint64_t spec, transaction = 0;
    if (!jv_is(name, JV_STRING) || !wire_number(jv_get(value, "specVersion"), &spec) ||
        spec > UINT32_MAX)
        return false;
    /* Missing in runtimes from before 2020, which do not sign it either. */
    wire_number(jv_get(value, "transactionVersion"), &transaction);
    *ret_version = (struct runtime){.spec_version = (uint32_t)spec,
                                    .transaction_version = (uint32_t)transaction};
    jv_copy(name, ret_version->spec_name, sizeof(ret_version->spec_name));
    return true;
}

/* A RuntimeVersion in SCALE: spec_name, impl_name, authoring_version, spec_version, impl_version,
 * apis of 8 bytes and a version, transaction_version, .. */
bool runtime_version_decode(const struct jv *value, struct runtime *ret_version, bool *ret_api)
{
    struct buf bytes = {0};
    *ret_version = (struct runtime){0};
    *ret_api = false;
    bool good = wire_bytes(value, &bytes);
    struct scale_in in = scale_in_of(bytes.data, bytes.len);
    for (unsigned i = 0; i < 2; i++) {
        u128 len = scale_get_compact(&in);
        const uint8_t *name = len < bytes.len ? scale_get_bytes(&in, (size_t)len) : NULL;
        good = good && name && len > 0;
        if (good && i == 0)
            snprintf(ret_version->spec_name, sizeof(ret_version->spec_name), "%.*s", (int)len,
                     name);
    }
    scale_get_u32(&in);
    ret_version->spec_version = scale_get_u32(&in);
    scale_get_u32(&in);
    for (u128 apis = scale_get_compact(&in); good && !in.bad && apis > 0; apis--) {
        const uint8_t *id = scale_get_bytes(&in, 8);
        uint32_t version = scale_get_u32(&in);
        *ret_api |= id && memcmp(id, metadata_api_id, 8) == 0 && version >= 2;
    }
    ret_version->transaction_version = scale_get_u32(&in);
    buf_done(&bytes);
    return good && !in.bad;
}

static bool has_metadata_api(const struct jv *version)
{
    const struct jv *apis = jv_get(version, "apis");
    for (const struct jv *api = jv_first(apis); api; api = jv_next(apis, api)) {
        int64_t number;
        if (jv_equals(jv_at(api, 0), metadata_api))
            return jv_int(jv_at(api, 1), &number) && number >= 2;
    }
    return false;
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
    bool api = !decoded && has_metadata_api(f->call.result);
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
    buf_done(&bytes);
    return md;
}

static void fetch_metadata(struct runtime_fetch *f)
{
    struct err err = {0};
    struct metadata *md = metadata_read(f->node, f->call.result, f->version.hash, &err);
    f->version.by_api = f->step == FETCH_API_WAIT;
    if (md) {
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
    case FETCH_IDLE:
        break;
    }
    UNREACHABLE();
}

/* ---- the current runtime ---- */

/* An integer constant of 1 to 8 bytes. */
static uint64_t constant(const struct metadata *md, const char *pallet, const char *name,
                         uint64_t fallback)
{
    size_t len;
    const uint8_t *p = metadata_constant(md, pallet, name, &len);
    uint64_t value = 0;
    if (!p || len == 0 || len > 8)
        return fallback;
    for (size_t i = len; i-- > 0;)
        value = value << 8 | p[i];
    return value;
}

/* A prefix that SS58 cannot express is as good as none: the generic one takes its place. */
static uint16_t ss58_prefix(const struct metadata *md)
{
    enum { GENERIC = 42 };
    uint64_t prefix = constant(md, "System", "SS58Prefix", GENERIC);
    return prefix <= SS58_PREFIX_MAX ? (uint16_t)prefix : GENERIC;
}

void runtime_adopt(struct node *n, struct runtime *r)
{
    PRE(r->refs > 0 && r->metadata);
    struct node_info *info = &n->info;
    runtime_unref(n->runtime);
    n->runtime = r;
    info->spec_version = r->spec_version;
    info->transaction_version = r->transaction_version;
    memcpy(info->spec_name, r->spec_name, sizeof(info->spec_name));
    info->metadata = r->metadata;
    info->ss58_prefix = ss58_prefix(r->metadata);
    info->block_hash_count = (uint32_t)constant(r->metadata, "System", "BlockHashCount", 2400);
}

static void refetched(struct runtime_fetch *f)
{
    struct node *n = f->node;
    if (!f->runtime) {
        /* A new runtime that we cannot use is a fault: nothing may be signed for the old one. After
         * any other failure the next poll asks again. */
        if (f->err.code == ERR_METADATA && n->phase == NODE_READY)
            node__fault(n, &f->err);
        else
            log_debug("node.runtime", "url=%s error=\"%s\"", node__url(n), f->err.text);
        return;
    }
    if (n->phase != NODE_READY) {
        runtime_unref(f->runtime);
        return;
    }
    bool again = n->refetch_again;
    n->refetch_again = false;
    bool changed = f->runtime != n->runtime, told = f->again;
    if (changed)
        runtime_adopt(n, f->runtime);
    else
        runtime_unref(f->runtime);
    if (again)
        runtime_fetch_start(n, f, NULL, refetched);
    if ((changed || told) && n->config.on_runtime)
        n->config.on_runtime(n->config.arg, &n->info);
}

bool node_metadata_confirmed(struct node *n)
{
    if (n->phase != NODE_READY)
        return false;
    bool agreed = second_agrees(n, n->runtime, NULL);
    if (n->runtime->confirmed)
        return agreed;
    if (n->refetch.step == FETCH_IDLE) {
        runtime_fetch_start(n, &n->refetch, NULL, refetched);
        n->refetch.again = true;
    }
    return false;
}

bool node_version_confirmed(struct node *n)
{
    return n->phase == NODE_READY && second_agrees(n, n->runtime, NULL);
}

void node_recheck_runtime(struct node *n)
{
    if (n->phase != NODE_READY)
        return;
    if (n->refetch.step == FETCH_IDLE)
        runtime_fetch_start(n, &n->refetch, NULL, refetched);
    else
        n->refetch_again = true;
}

void runtime_changed(struct node *n, const struct jv *version)
{
    struct runtime v;
    if (!runtime_version_read(version, &v) ||
        (n->runtime && v.spec_version == n->runtime->spec_version &&
         v.transaction_version == n->runtime->transaction_version))
        return;
    node_recheck_runtime(n);
}
