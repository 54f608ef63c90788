/* transactionWatch_v1_* and transaction_v1_*: submissions of the newer JSON-RPC. Only with
 * --newer-rpc. The first always answers an id: a refusal is its first event. The second answers an
 * id, tells nothing, and submits again at each best block what left the pool. */
#include <string.h>

#include "base/check.h"
#include "methods_author.h"
#include "server.h"
#include "subs.h"

enum { BROADCASTS_MAX = 16 }; /* of a connection */

/* ---- transactionWatch_v1 ---- */

/* As polkadot-sdk, client/rpc-spec-v2/src/transaction/error.rs. */
static void put_refusal(struct buf *b, const struct refusal *r)
{
    static const struct {
        int code;
        const char *text;
    } texts[] = {
        {1001, "Extrinsic bytes cannot be decoded"},
        {1012, "Transaction is temporarily banned"},
        {1013, "Transaction is already imported"},
        {1015, "The transaction contains a cyclic dependency"},
        {1016, "The transaction could not enter the pool because of the limit"},
        {1018, "Transaction cannot be propagated and the local node does not author blocks"},
        {1019, "Transaction does not provide any tags, so the pool cannot identify it"},
    };
    unsigned long long old, fresh;
    struct buf text = {0};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (texts[i].code == r->code)
            buf_puts(&text, texts[i].text);
    if (r->code == 1010 && !strncmp(r->data, "Custom error: ", 14))
        buf_printf(&text, "Invalid transaction with custom error: %s", r->data + 14);
    else if (r->code == 1010)
        buf_printf(&text, "Invalid transaction: %s", r->data);
    else if (r->code == 1011)
        buf_printf(&text, "Unknown transaction validity: %s", r->data);
    else if (r->code == 1014 &&
             sscanf(r->message, "Priority is too low: (%llu vs %llu)", &old, &fresh) == 2)
        buf_printf(&text, "The priority of the transaction is too low (pool %llu > current %llu)",
                   old, fresh);
    else if (!text.len)
        buf_printf(&text, "Verification error: %s", r->message);
    buf_puts(b, "{\"event\":\"invalid\",\"error\":");
    put_json_str(b, buf_str(&text));
    buf_put_u8(b, '}');
    buf_done(&text);
}

static void put_block(struct buf *b, const struct app *a, const struct sub *s, const char *name,
                      const uint8_t *hash)
{
    const struct block *block = chain_block(&a->core.chain, hash);
    size_t index = 0;
    while (block && index < block->tx_count &&
           memcmp(block->txs[index]->hash, s->watch.hash, 32) != 0)
        index++;
    buf_printf(b, "{\"event\":\"%s\",\"block\":{\"hash\":", name);
    put_json_hex(b, hash, 32);
    buf_printf(b, ",\"index\":%zu}}", index);
}

void put_watch_event(struct buf *b, const struct app *a, const struct sub *s,
                     enum pool_status status, const uint8_t *hash)
{
    static const char *const texts[] = {
        [STATUS_FUTURE] = "{\"event\":\"validated\"}",
        [STATUS_READY] = "{\"event\":\"validated\"}",
        [STATUS_RETRACTED] = "{\"event\":\"bestChainBlockIncluded\",\"block\":null}",
        [STATUS_FINALITY_TIMEOUT] = "{\"event\":\"dropped\",\"error\":\"Maximum number of finality "
                                    "watchers has been reached\"}",
        [STATUS_USURPED] = "{\"event\":\"invalid\",\"error\":\"Extrinsic was rendered invalid by "
                           "another extrinsic\"}",
        [STATUS_DROPPED] =
            "{\"event\":\"dropped\",\"error\":\"Extrinsic dropped from the pool due to "
            "exceeding limits\"}",
        [STATUS_INVALID] = "{\"event\":\"invalid\",\"error\":\"Extrinsic marked as invalid\"}",
    };
    if (status == STATUS_IN_BLOCK || status == STATUS_FINALIZED)
        put_block(b, a, s, status == STATUS_FINALIZED ? "finalized" : "bestChainBlockIncluded",
                  hash);
    else if (status < ARRAY_LEN(texts) && texts[status])
        buf_puts(b, texts[status]);
}

static void submit_and_watch(struct call *c)
{
    struct buf bytes = {0}, event = {0};
    struct refusal r;
    struct tx *tx;
    struct sub *s = sub_new(c, SUB_TRANSACTION);
    if (!s)
        return;
    if (!call_bytes(c, 0, &bytes)) {
        sub_free(s);
    } else {
        author_try(c, &bytes, s, &r, &tx);
        s->tx = tx;
        sub_answer(c, s);
        if (r.code) {
            put_refusal(&event, &r);
            sub_notify(s, event.data, event.len);
            s->ended = true;
        }
    }
    buf_done(&bytes);
    buf_done(&event);
}

static void unwatch(struct call *c)
{
    subs_stop(c, SUB_TRANSACTION);
}

/* ---- transaction_v1 ---- */

void broadcast_on_status(struct sub *s, enum pool_status status)
{
    if (status == STATUS_FINALIZED || status == STATUS_FINALITY_TIMEOUT || status == STATUS_USURPED)
        s->muted = true; /* it is over; the connection's end frees it */
}

void broadcast_again(struct app *a)
{
    LIST_EACH (n, &a->subs[SUB_BROADCAST]) {
        struct sub *s = CONTAINER_OF(n, struct sub, kind_node);
        struct pool_result result = {.kind = POOL_OK};
        struct tx *tx = NULL;
        if (s->muted || !s->tx || list_linked(&s->watch.node))
            continue;
        core_submit(&a->core, loop_now_ms(a->loop), s->tx->bytes, s->tx->len, &s->watch, &tx,
                    &result);
        tx_unref(tx);
    }
}

static void broadcast(struct call *c)
{
    struct buf bytes = {0};
    struct refusal r;
    size_t mine = 0;
    LIST_EACH (n, &c->app->subs[SUB_BROADCAST]) {
        const struct sub *other = CONTAINER_OF(n, struct sub, kind_node);
        mine += other->conn == c->conn && !other->muted;
    }
    if (mine >= BROADCASTS_MAX) {
        call_result(c, "null");
        return;
    }
    struct sub *s = sub_new(c, SUB_BROADCAST);
    if (!s)
        return;
    if (!call_bytes(c, 0, &bytes)) {
        sub_free(s);
    } else {
        struct tx *tx = NULL;
        author_try(c, &bytes, s, &r, &tx);
        if (r.code)
            tx_decode(bytes.data, bytes.len, &tx);
        s->tx = tx;
        sub_answer(c, s);
    }
    buf_done(&bytes);
}

/* The bytes leave the pool. */
static void stop(struct call *c)
{
    const char *id = json_string_value(call_param(c, 0));
    struct sub *s = id && c->conn ? sub_find(c->app, c->conn, id, SUB_BROADCAST) : NULL;
    struct buf removed = {0};
    if (!s) {
        call_error(c, RPC_INVALID_PARAMS, "Invalid operation id", NULL);
        return;
    }
    if (s->tx)
        pool_remove_invalid(&c->app->core.pool, loop_now_ms(c->app->loop), s->tx->hash, &removed);
    sub_free(s);
    call_result(c, "null");
    buf_done(&removed);
}

const struct method METHODS_TRANSACTION[] = {
    {"transactionWatch_v1_submitAndWatch", submit_and_watch},
    {"transactionWatch_v1_unwatch", unwatch},
    {"transaction_v1_broadcast", broadcast},
    {"transaction_v1_stop", stop},
    {NULL, NULL},
};
