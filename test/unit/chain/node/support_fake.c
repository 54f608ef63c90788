#include "support_fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "chain/codec/events.h"
#include "chain/codec/hash.h"
#include "chain/codec/scale.h"
#include "chain/codec/trie.h"
#include "node_internal.h"
#include "support_vectors.h"

/* ---- runtimes ---- */

static char *hex_text(const struct buf *bytes)
{
    struct buf text = {0};
    hex_put_0x(&text, bytes->data, bytes->len);
    char *out = xstrdup(buf_str(&text));
    buf_done(&text);
    return out;
}

void fake_runtime_load(struct fake_runtime *r, const char *spec_name, uint32_t spec,
                       uint32_t transaction, const char *metadata)
{
    struct buf bytes = {0};
    vectors_metadata_bytes(metadata, &bytes);
    *r = (struct fake_runtime){.spec_name = spec_name,
                               .spec_version = spec,
                               .transaction_version = transaction,
                               .md = vectors_metadata(metadata),
                               .hex = hex_text(&bytes)};
    buf_done(&bytes);
}

void fake_runtime_done(struct fake_runtime *r)
{
    metadata_free(r->md);
    free(r->hex);
    free(r->v15_hex);
}

/* ---- blocks ---- */

static void seal(struct fake *f, struct fake_block *b)
{
    struct wire_header h;
    struct jv_doc doc = {0};
    char *text = json_dumps(b->header, JSON_COMPACT);
    INVARIANT(wire_header(jv_read(&doc, text, strlen(text), NULL), &h) && h.complete);
    jv_done(&doc);
    free(text);
    if (f->other_hasher)
        h.head.hash[0] ^= 0xff;
    wire_hash_text(h.head.hash, b->hash);
}

/* The root of these extrinsics, as text. */
static void root_text(enum trie_layout layout, const json_t *extrinsics, char out[HASH_TEXT])
{
    size_t count = json_array_size(extrinsics), i;
    struct buf *bytes = xcalloc(count + 1, sizeof(*bytes));
    struct trie_item *items = xcalloc(count + 1, sizeof(*items));
    const json_t *x;
    json_array_foreach(extrinsics, i, x)
    {
        const char *text = json_string_value(x);
        INVARIANT(hex_decode(text, strlen(text), &bytes[i]));
        items[i] = (struct trie_item){bytes[i].data, bytes[i].len};
    }
    uint8_t root[32];
    trie_ordered_root(layout, items, count, root);
    wire_hash_text(root, out);
    for (i = 0; i < count; i++)
        buf_done(&bytes[i]);
    free(items);
    free(bytes);
}

static char *events_text(const struct buf *events)
{
    return events ? hex_text(events) : NULL;
}

uint64_t fake_add(struct fake *f, json_t *extrinsics, const struct buf *events)
{
    static unsigned salt;
    static const char zeros[] =
        "0x0000000000000000000000000000000000000000000000000000000000000000";
    INVARIANT(f->count < FAKE_BLOCKS);
    uint64_t height = f->count++;
    struct fake_block *b = &f->blocks[height];
    char number[24], state[67], root[HASH_TEXT];
    snprintf(number, sizeof(number), "0x%llx", (unsigned long long)height);
    unsigned own = f->twin ? 0x1000000 + (unsigned)height : ++salt;
    snprintf(state, sizeof(state), "0x%064x", height ? own : 0);
    root_text(f->roots_v1 ? TRIE_V1 : TRIE_V0, extrinsics, root);
    const struct fake_block *before = height ? &f->blocks[height - 1] : NULL;
    *b = (struct fake_block){.runtime = f->runtime,
                             .nonce = before ? before->nonce : 0,
                             .free = before ? before->free : 0,
                             .account_len = before ? before->account_len : FAKE_ACCOUNT_LEN};
    b->header = json_pack("{s:s, s:s, s:s, s:s, s:{s:[s,s]}}", "parentHash",
                          height ? f->blocks[height - 1].hash : zeros, "number", number,
                          "stateRoot", state, "extrinsicsRoot", root, "digest", "logs",
                          "0x0642414245010203", "0x05424142450101");
    b->extrinsics = extrinsics ? extrinsics : json_array();
    b->events = events_text(events);
    seal(f, b);
    return height;
}

static void block_drop(struct fake_block *b)
{
    json_decref(b->header);
    json_decref(b->extrinsics);
    free(b->events);
}

void fake_copy(struct fake *to, const struct fake *from)
{
    fake_fork(to, 0);
    for (; to->count < from->count; to->count++) {
        const struct fake_block *b = &from->blocks[to->count];
        struct fake_block *c = &to->blocks[to->count];
        *c = *b;
        c->events = b->events ? xstrdup(b->events) : NULL;
        c->header = json_incref(b->header);
        c->extrinsics = json_incref(b->extrinsics);
    }
}

void fake_fork(struct fake *f, uint64_t height)
{
    while (f->count > height)
        block_drop(&f->blocks[--f->count]);
}

void fake_hash(const struct fake *f, uint64_t height, uint8_t out[32])
{
    INVARIANT(height < f->count);
    INVARIANT(hex_decode_fixed(f->blocks[height].hash, 66, out, 32));
}

/* ---- events ---- */

void fake_events_begin(struct buf *out, unsigned count)
{
    buf_clear(out);
    scale_put_compact(out, count);
}

void fake_event(struct buf *out, uint32_t extrinsic, bool good)
{
    buf_put_u8(out, 0); /* Phase::ApplyExtrinsic */
    scale_put_u32(out, extrinsic);
    buf_put_u8(out, 0);            /* System */
    buf_put_u8(out, good ? 0 : 1); /* ExtrinsicSuccess, ExtrinsicFailed */
    if (!good)
        buf_put_u8(out, 2); /* DispatchError::BadOrigin */
    scale_put_compact(out, 1000);
    scale_put_compact(out, 0);
    buf_put_u8(out, 0);        /* DispatchClass::Normal */
    buf_put_u8(out, 0);        /* Pays::Yes */
    scale_put_compact(out, 0); /* topics */
}

/* ---- answers ---- */

enum { BLOCK_HASH_KEY = 2 + 2 * (16 + 16 + 8 + 4) }; /* as text */

void fake_answer(struct ws_peer *p, const json_t *id, json_t *result)
{
    json_t *m =
        json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", (json_t *)id, "result", result);
    char *text = json_dumps(m, JSON_COMPACT);
    ws_peer_send(p, text);
    free(text);
    json_decref(m);
}

void fake_error(struct ws_peer *p, const json_t *id, int code, const char *message,
                const char *data)
{
    json_t *error = json_pack("{s:i, s:s, s:s*}", "code", code, "message", message, "data", data);
    json_t *m = json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", (json_t *)id, "error", error);
    char *text = json_dumps(m, JSON_COMPACT);
    ws_peer_send(p, text);
    free(text);
    json_decref(m);
}

void fake_notify(struct ws_peer *p, const char *method, const char *sub, json_t *item)
{
    json_t *m = json_pack("{s:s, s:s, s:{s:s, s:o}}", "jsonrpc", "2.0", "method", method, "params",
                          "subscription", sub, "result", item);
    char *text = json_dumps(m, JSON_COMPACT);
    ws_peer_send(p, text);
    free(text);
    json_decref(m);
}

void fake_set_best(struct fake *f, uint64_t height)
{
    f->best = height;
    if (f->peer && f->best_sub[0])
        fake_notify(f->peer, "chain_newHead", f->best_sub, json_incref(f->blocks[height].header));
}

void fake_set_finalized(struct fake *f, uint64_t height)
{
    f->finalized = height;
    if (f->peer && f->finalized_sub[0])
        fake_notify(f->peer, "chain_finalizedHead", f->finalized_sub,
                    json_incref(f->blocks[height].header));
}

static const struct fake_block *block_of(const struct fake *f, const json_t *hash)
{
    const char *text = json_string_value(hash);
    if (!text)
        return &f->blocks[f->best];
    for (uint64_t i = 0; i < f->count; i++)
        if (strcmp(f->blocks[i].hash, text) == 0)
            return &f->blocks[i];
    return NULL;
}

static bool state_gone(const struct fake *f, const struct fake_block *b)
{
    return (uint64_t)(b - f->blocks) < f->pruned_below;
}

static json_t *version_json(const struct fake_runtime *r)
{
    json_t *apis = json_pack("[[s,i]]", "0xdf6acb689907609b", 4);
    if (r->has_api)
        json_array_append_new(apis, json_pack("[s,i]", "0x37e397fc7c91f5e4", 2));
    return json_pack("{s:s, s:i, s:i, s:o}", "specName", r->spec_name, "specVersion",
                     (int)r->spec_version, "transactionVersion", (int)r->transaction_version,
                     "apis", apis);
}

static json_t *account_value(const struct fake_block *b)
{
    struct buf info = {0};
    if (b->account_len == 0)
        return json_null();
    scale_put_u32(&info, b->nonce);
    scale_put_u32(&info, 1); /* consumers, providers, sufficients */
    scale_put_u32(&info, 2);
    scale_put_u32(&info, 3);
    scale_put_u128(&info, b->free);
    while (info.len < b->account_len) /* reserved, frozen, flags */
        buf_put_u8(&info, 0x77);
    char *text = hex_text(&info);
    json_t *value = json_string(text);
    free(text);
    buf_done(&info);
    return value;
}

/* System.BlockHash of a height, whose four bytes end the key. */
static json_t *block_hash(const struct fake *f, const struct fake_block *b, const char *key)
{
    uint8_t height[4];
    INVARIANT(hex_decode_fixed(key + BLOCK_HASH_KEY - 8, 8, height, sizeof(height)));
    uint64_t number = (uint64_t)height[0] | (uint64_t)height[1] << 8;
    return number < (uint64_t)(b - f->blocks) ? json_string(f->blocks[number].hash) : json_null();
}

static json_t *storage(struct fake *f, const struct fake_block *b, const char *key)
{
    if (strlen(key) == BLOCK_HASH_KEY)
        return block_hash(f, b, key);
    if (strcmp(key, events_key) != 0)
        return account_value(b);
    f->asked_events++;
    return b->events ? json_string(b->events) : json_null();
}

static void serve_chain(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                        const json_t *params)
{
    const json_t *first = json_array_get(params, 0);
    const struct fake_block *b = block_of(f, first);
    if (!strcmp(method, "chain_getBlockHash") && first) {
        uint64_t n = (uint64_t)json_integer_value(first);
        fake_answer(p, id, n < f->count ? json_string(f->blocks[n].hash) : json_null());
    } else if (!strcmp(method, "chain_getBlockHash")) {
        fake_answer(p, id, json_string(f->blocks[f->best].hash));
    } else if (!strcmp(method, "chain_getFinalizedHead")) {
        fake_answer(p, id, json_string(f->blocks[f->finalized].hash));
    } else if (!b) {
        fake_answer(p, id, json_null());
    } else if (!strcmp(method, "chain_getHeader")) {
        fake_answer(p, id, json_incref(b->header));
    } else {
        fake_answer(p, id,
                    json_pack("{s:{s:O, s:O}, s:n}", "block", "header", b->header, "extrinsics",
                              b->extrinsics, "justifications"));
    }
}

static void serve_metadata_call(struct ws_peer *p, const struct fake_runtime *r, const json_t *id,
                                const json_t *params)
{
    if (!r->has_api ||
        strcmp(json_string_value(json_array_get(params, 0)), "Metadata_metadata_at_version") != 0)
        fake_error(p, id, 4003, "Client error: Execution failed: Exported method is not found",
                   NULL);
    else if (strcmp(json_string_value(json_array_get(params, 1)), "0x0f000000") != 0 || !r->v15_hex)
        fake_answer(p, id, json_string("0x00"));
    else
        fake_answer(p, id, json_string(r->v15_hex));
}

static void serve_query(struct fake *f, struct ws_peer *p, const struct fake_block *b,
                        const json_t *id, const json_t *params)
{
    json_t *changes = json_array(), *key;
    size_t i;
    json_array_foreach(json_array_get(params, 0), i, key)
    {
        /* Not in the order of the question. */
        json_array_insert_new(changes, 0,
                              json_pack("[O,o]", key, storage(f, b, json_string_value(key))));
    }
    fake_answer(p, id, json_pack("[{s:s, s:o}]", "block", b->hash, "changes", changes));
}

static json_t *events_hash(const char *events)
{
    struct buf bytes = {0};
    uint8_t hash[32];
    char text[HASH_TEXT];
    INVARIANT(hex_decode(events, strlen(events), &bytes));
    hash_blake2b_256(bytes.data, bytes.len, hash);
    buf_done(&bytes);
    wire_hash_text(hash, text);
    return json_string(text);
}

static void serve_state(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                        const json_t *params)
{
    size_t at = !strcmp(method, "state_call") ? 2 : !strcmp(method, "state_getStorage") ? 1 : 0;
    if (!strcmp(method, "state_queryStorageAt") || !strcmp(method, "state_getStorageHash"))
        at = 1;
    const struct fake_block *b = block_of(f, json_array_get(params, at));
    if (!b || state_gone(f, b)) {
        fake_error(p, id, 4003, "Client error: UnknownBlock: State already discarded for 0x00",
                   NULL);
    } else if (!strcmp(method, "state_getRuntimeVersion")) {
        f->asked_versions++;
        fake_answer(p, id, version_json(b->runtime));
    } else if (!strcmp(method, "state_getMetadata")) {
        f->asked_metadata++;
        fake_answer(p, id, json_string(b->runtime->hex));
    } else if (!strcmp(method, "state_call")) {
        serve_metadata_call(p, b->runtime, id, params);
    } else if (!strcmp(method, "state_getStorage")) {
        fake_answer(p, id, storage(f, b, json_string_value(json_array_get(params, 0))));
    } else if (!strcmp(method, "state_getStorageHash") && !f->no_storage_hash) {
        f->asked_hashes++;
        fake_answer(p, id, b->events ? events_hash(b->events) : json_null());
    } else if (!strcmp(method, "state_queryStorageAt") && !f->no_query_storage) {
        serve_query(f, p, b, id, params);
    } else {
        fake_error(p, id, -32601, "Method not found", NULL);
    }
}

static void subscribe(struct fake *f, struct ws_peer *p, const char *method, const json_t *id)
{
    char sub[24];
    snprintf(sub, sizeof(sub), "AbCdEfGh%08u", ++f->subs);
    bool best = strstr(method, "NewHeads") != NULL, finalized = strstr(method, "Finalized") != NULL;
    char *kept = best ? f->best_sub : finalized ? f->finalized_sub : f->version_sub;
    memcpy(kept, sub, sizeof(sub));
    if (best || finalized) {
        fake_answer(p, id, json_string(sub));
        fake_notify(p, best ? "chain_newHead" : "chain_finalizedHead", sub,
                    json_incref(f->blocks[best ? f->best : f->finalized].header));
    } else { /* as chopsticks does: the notification first */
        fake_notify(p, "state_runtimeVersion", sub, version_json(f->blocks[f->best].runtime));
        fake_answer(p, id, json_string(sub));
    }
}

static void server_text(void *arg, struct ws_peer *p, const char *text, size_t len)
{
    struct fake *f = arg;
    json_t *m = json_loadb(text, len, 0, NULL);
    INVARIANT(m);
    const char *method = json_string_value(json_object_get(m, "method"));
    const json_t *id = json_object_get(m, "id");
    const json_t *params = json_object_get(m, "params");
    if (f->hook && f->hook(f, p, method, id, params)) {
        json_decref(m);
        return;
    }
    if (strstr(method, "_subscribe"))
        subscribe(f, p, method, id);
    else if (!strncmp(method, "chain_get", 9))
        serve_chain(f, p, method, id, params);
    else if (!strncmp(method, "state_", 6))
        serve_state(f, p, method, id, params);
    else if (!strcmp(method, "system_version") && f->version)
        fake_answer(p, id, json_string(f->version));
    else
        fake_error(p, id, -32601, "Method not found", NULL);
    json_decref(m);
}

static void server_open(void *arg, struct ws_peer *p)
{
    struct fake *f = arg;
    f->peer = p;
    f->best_sub[0] = f->finalized_sub[0] = f->version_sub[0] = 0;
}

static void server_close(void *arg, struct ws_peer *p)
{
    struct fake *f = arg;
    if (f->peer == p)
        f->peer = NULL;
}

/* ---- life ---- */

void fake_start(struct fake *f, struct loop *l, const struct fake_runtime *runtime, int port)
{
    struct ws_script script = {
        .on_open = server_open, .on_text = server_text, .on_close = server_close, .arg = f};
    f->runtime = runtime;
    if (f->count == 0)
        fake_add(f, NULL, NULL);
    f->gone = false;
    f->server = ws_server_new(l, &script, port);
}

static void set_true(void *arg)
{
    *(bool *)arg = true;
}

static bool is_true(void *arg)
{
    return *(bool *)arg;
}

void fake_stop(struct fake *f, struct loop *l)
{
    if (f->server)
        ws_server_close(f->server, set_true, &f->gone);
    INVARIANT(!f->server || run_until(l, is_true, &f->gone, 20000));
    f->server = NULL;
    fake_fork(f, 0);
}

void fake_url(const struct fake *f, char out[64])
{
    snprintf(out, 64, "ws://127.0.0.1:%d", ws_server_port(f->server));
}
