/* chain_*: blocks, headers, head subscriptions. */
#include <stdlib.h>

#include "subs.h"

static void null_result(struct call *c)
{
    call_result(c, "null");
}

/* A number, or its hex text. */
static bool block_number(const json_t *v, uint64_t *ret)
{
    if (json_is_integer(v) && json_integer_value(v) >= 0) {
        *ret = (uint64_t)json_integer_value(v);
        return true;
    }
    const char *s = json_string_value(v);
    char *end;
    if (!s || s[0] != '0' || s[1] != 'x' || !s[2])
        return false;
    *ret = strtoull(s + 2, &end, 16);
    return *end == '\0';
}

static void put_hash_at(struct buf *b, const struct app *a, uint64_t number)
{
    const struct block *block = chain_canonical(&a->core.chain, number);
    if (block)
        put_json_hex(b, block->hash, 32);
    else
        buf_puts(b, "null");
}

static void get_block_hash(struct call *c)
{
    const json_t *v = call_param(c, 0);
    uint64_t n = c->app->core.chain.best->number;
    if (json_is_array(v)) {
        size_t i;
        json_t *item;
        struct buf *b = call_begin(c);
        buf_put_u8(b, '[');
        json_array_foreach(v, i, item)
        {
            if (i)
                buf_put_u8(b, ',');
            put_hash_at(b, c->app, block_number(item, &n) ? n : UINT64_MAX);
        }
        buf_put_u8(b, ']');
        call_end(c);
        return;
    }
    if (v && !block_number(v, &n)) {
        call_error(c, RPC_INVALID_PARAMS, "Invalid params", "invalid block number");
        return;
    }
    put_hash_at(call_begin(c), c->app, n);
    call_end(c);
}

static void get_header(struct call *c)
{
    struct block *block;
    if (!call_block(c, 0, &block))
        return;
    if (!block) {
        null_result(c);
        return;
    }
    put_header_json(call_begin(c), block);
    call_end(c);
}

static void get_block(struct call *c)
{
    struct block *block;
    if (!call_block(c, 0, &block))
        return;
    if (!block || block->pruned) {
        null_result(c);
        return;
    }
    struct buf *b = call_begin(c);
    buf_puts(b, "{\"block\":{\"header\":");
    put_header_json(b, block);
    buf_puts(b, ",\"extrinsics\":[");
    for (size_t i = 0; i < block->tx_count; i++) {
        if (i)
            buf_put_u8(b, ',');
        put_json_hex(b, block->txs[i]->bytes, block->txs[i]->len);
    }
    buf_puts(b, "]},\"justifications\":null}");
    call_end(c);
}

static void get_finalized_head(struct call *c)
{
    put_json_hex(call_begin(c), c->app->core.chain.finalized->hash, 32);
    call_end(c);
}

static void subscribe_new(struct call *c)
{
    subs_start_heads(c, SUB_NEW_HEADS);
}

static void subscribe_all(struct call *c)
{
    subs_start_heads(c, SUB_ALL_HEADS);
}

static void subscribe_finalized(struct call *c)
{
    subs_start_heads(c, SUB_FINALIZED_HEADS);
}

static void unsubscribe_new(struct call *c)
{
    subs_stop(c, SUB_NEW_HEADS);
}

static void unsubscribe_all(struct call *c)
{
    subs_stop(c, SUB_ALL_HEADS);
}

static void unsubscribe_finalized(struct call *c)
{
    subs_stop(c, SUB_FINALIZED_HEADS);
}

const struct method METHODS_CHAIN[] = {
    {"chain_getBlockHash", get_block_hash},
    {"chain_getHead", get_block_hash},
    {"chain_getHeader", get_header},
    {"chain_getBlock", get_block},
    {"chain_getFinalizedHead", get_finalized_head},
    {"chain_getFinalisedHead", get_finalized_head},
    {"chain_subscribeNewHeads", subscribe_new},
    {"chain_subscribeNewHead", subscribe_new},
    {"subscribe_newHead", subscribe_new},
    {"chain_unsubscribeNewHeads", unsubscribe_new},
    {"chain_unsubscribeNewHead", unsubscribe_new},
    {"unsubscribe_newHead", unsubscribe_new},
    {"chain_subscribeAllHeads", subscribe_all},
    {"chain_unsubscribeAllHeads", unsubscribe_all},
    {"chain_subscribeFinalizedHeads", subscribe_finalized},
    {"chain_subscribeFinalisedHeads", subscribe_finalized},
    {"chain_unsubscribeFinalizedHeads", unsubscribe_finalized},
    {"chain_unsubscribeFinalisedHeads", unsubscribe_finalized},
    {NULL, NULL},
};
