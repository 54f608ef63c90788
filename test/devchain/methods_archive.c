/* archive_v1_* and chainSpec_v1_genesisHash: blocks and states by hash, in the newer JSON-RPC
 * (paritytech/json-rpc-interface-spec). Only with --newer-rpc. */
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "chain/codec/hash.h"
#include "subs.h"

static void genesis_hash(struct call *c)
{
    put_json_hex(call_begin(c), chain_canonical(&c->app->core.chain, 0)->hash, 32);
    call_end(c);
}

static void finalized_height(struct call *c)
{
    buf_printf(call_begin(c), "%llu", (unsigned long long)c->app->core.chain.finalized->number);
    call_end(c);
}

/* Above the finalized height every fork has a block. */
static void hash_by_height(struct call *c)
{
    const json_t *v = call_param(c, 0);
    const struct chain *chain = &c->app->core.chain;
    if (!json_is_integer(v) || json_integer_value(v) < 0) {
        call_error(c, RPC_INVALID_PARAMS, "Invalid params", "invalid height");
        return;
    }
    uint64_t height = (uint64_t)json_integer_value(v);
    const struct block *best = chain_canonical(chain, height);
    struct buf *b = call_begin(c);
    buf_put_u8(b, '[');
    if (best)
        put_json_hex(b, best->hash, 32);
    for (size_t i = 0; i < chain->side_len && height > chain->finalized->number; i++)
        if (chain->side[i]->number == height) {
            buf_puts(b, best ? "," : "");
            put_json_hex(b, chain->side[i]->hash, 32);
            best = chain->side[i];
        }
    buf_put_u8(b, ']');
    call_end(c);
}

/* NULL: answered. */
static struct block *wanted(struct call *c)
{
    struct block *block = NULL;
    uint8_t hash[32];
    if (!call_hash(c, 0, hash))
        return NULL;
    block = chain_block(&c->app->core.chain, hash);
    if (!block)
        call_result(c, "null");
    return block;
}

static void header(struct call *c)
{
    struct block *block = wanted(c);
    if (!block)
        return;
    struct buf scale = {0};
    chain_header_scale(block, &scale);
    put_json_hex(call_begin(c), scale.data, scale.len);
    call_end(c);
    buf_done(&scale);
}

void put_body_json(struct buf *b, const struct block *block)
{
    buf_put_u8(b, '[');
    for (size_t i = 0; i < block->tx_count; i++) {
        if (i)
            buf_put_u8(b, ',');
        put_json_hex(b, block->txs[i]->bytes, block->txs[i]->len);
    }
    buf_put_u8(b, ']');
}

static void body(struct call *c)
{
    struct block *block = wanted(c);
    if (!block)
        return;
    if (block->pruned) {
        call_result(c, "null");
        return;
    }
    put_body_json(call_begin(c), block);
    call_end(c);
}

static void call(struct call *c)
{
    struct block *block = wanted(c);
    struct buf args = {0}, value = {0}, *b;
    if (!block || !call_bytes(c, 2, &args)) {
        buf_done(&args);
        return;
    }
    const char *name = json_string_value(call_param(c, 1));
    bool good = runtime_api_call(c->app, block, name ? name : "", &args, &value);
    b = call_begin(c);
    buf_printf(b, "{\"success\":%s,\"%s\":", good ? "true" : "false", good ? "value" : "error");
    if (good)
        put_json_hex(b, value.data, value.len);
    else
        put_json_str(b, "Execution failed");
    buf_put_u8(b, '}');
    call_end(c);
    buf_done(&args);
    buf_done(&value);
}

static void storage_item(struct sub *s, const struct block *block, const json_t *item)
{
    const char *type = json_string_value(json_object_get(item, "type"));
    const json_t *key = json_object_get(item, "key");
    struct buf bytes = {0}, value = {0}, event = {0};
    uint8_t hash[32];
    if (key && type && hex_decode(json_string_value(key), json_string_length(key), &bytes) &&
        storage_get(&s->app->core, block, bytes.data, bytes.len, &value)) {
        bool whole = strcmp(type, "hash") != 0;
        hash_blake2b_256(value.data, value.len, hash);
        buf_puts(&event, "{\"event\":\"storage\",\"key\":");
        put_json_hex(&event, bytes.data, bytes.len);
        buf_puts(&event, whole ? ",\"value\":" : ",\"hash\":");
        put_json_hex(&event, whole ? value.data : hash, whole ? value.len : sizeof hash);
        buf_puts(&event, ",\"childTrieKey\":null}");
        sub_notify(s, event.data, event.len);
    }
    buf_done(&bytes);
    buf_done(&value);
    buf_done(&event);
}

/* The items follow as notifications; a key without a value has none. */
static void storage(struct call *c)
{
    static const char done[] = "{\"event\":\"storageDone\"}";
    static const char unknown[] = "{\"event\":\"storageError\",\"error\":\"Block not found\"}";
    const json_t *items = call_param(c, 1), *item;
    uint8_t hash[32];
    size_t i;
    if (!call_hash(c, 0, hash))
        return;
    const struct block *block = chain_block(&c->app->core.chain, hash);
    struct sub *s = sub_new(c, SUB_ARCHIVE_STORAGE);
    if (!s)
        return;
    sub_answer(c, s);
    json_array_foreach(items, i, item)
    {
        if (block)
            storage_item(s, block, item);
    }
    sub_notify(s, block ? done : unknown, block ? sizeof done - 1 : sizeof unknown - 1);
    s->ended = true;
}

static void stop_storage(struct call *c)
{
    subs_stop(c, SUB_ARCHIVE_STORAGE);
}

const struct method METHODS_ARCHIVE[] = {
    {"archive_v1_body", body},
    {"archive_v1_call", call},
    {"archive_v1_finalizedHeight", finalized_height},
    {"archive_v1_genesisHash", genesis_hash},
    {"archive_v1_hashByHeight", hash_by_height},
    {"archive_v1_header", header},
    {"archive_v1_stopStorage", stop_storage},
    {"archive_v1_storage", storage},
    {"chainSpec_v1_genesisHash", genesis_hash},
    {NULL, NULL},
};
