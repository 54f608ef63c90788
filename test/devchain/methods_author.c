/* author_*: submissions and their refusals. */
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "methods_author.h"
#include "server.h"
#include "subs.h"

static const char *const INVALID_TEXT[] = {
    [INVALID_CALL] = "Transaction call is not expected",
    [INVALID_PAYMENT] = "Inability to pay some fees (e.g. account balance too low)",
    [INVALID_FUTURE] = "Transaction will be valid in the future",
    [INVALID_STALE] = "Transaction is outdated",
    [INVALID_BAD_PROOF] = "Transaction has a bad signature",
    [INVALID_ANCIENT_BIRTH_BLOCK] = "Transaction has an ancient birth block",
    [INVALID_EXHAUSTS_RESOURCES] = "Transaction would exhaust the block limits",
    [INVALID_CUSTOM] = "Custom error",
    [INVALID_BAD_MANDATORY] = "A call was labelled as mandatory, but resulted in an Error.",
    [INVALID_MANDATORY_VALIDATION] =
        "Transaction dispatch is mandatory; transactions must not be validated.",
    [INVALID_BAD_SIGNER] = "Invalid signing address",
};
static const char *const INVALID_NAME[] = {
    "call",
    "payment",
    "future",
    "stale",
    "badProof",
    "ancientBirthBlock",
    "exhaustsResources",
    "custom",
    "badMandatory",
    "mandatoryValidation",
    "badSigner",
};
static const char *const UNKNOWN_TEXT[] = {"CannotLookup", "NoUnsignedValidator"};
static const char *const UNKNOWN_NAME[] = {"cannotLookup", "noUnsignedValidator"};

static const char TRAP_MESSAGE[] =
    "Verification Error: Runtime error: Execution failed: Execution aborted due to trap: wasm "
    "trap: wasm `unreachable` instruction executed";

static void set(struct refusal *r, int code, const char *message, const char *data)
{
    r->code = code;
    snprintf(r->message, sizeof r->message, "%s", message);
    r->data = data;
}

static void not_valid(struct refusal *r, const struct validity *v, bool chopsticks)
{
    if (v->kind == VALIDITY_TRAP) {
        set(r, 1002, TRAP_MESSAGE, "RuntimeApi(\"Execution failed\")");
    } else if (chopsticks) {
        bool unknown = v->kind == VALIDITY_UNKNOWN;
        r->code = unknown ? 1011 : 1010;
        snprintf(r->message, sizeof r->message, "{\"%s\":{\"%s\":null}}",
                 unknown ? "unknown" : "invalid",
                 unknown ? UNKNOWN_NAME[v->code % 2] : INVALID_NAME[v->code]);
    } else if (v->kind == VALIDITY_UNKNOWN) {
        snprintf(r->data_buf, sizeof r->data_buf, "Custom(%u)", v->custom);
        set(r, 1011, "Unknown Transaction Validity",
            v->code == UNKNOWN_CUSTOM ? r->data_buf : UNKNOWN_TEXT[v->code]);
    } else {
        snprintf(r->data_buf, sizeof r->data_buf, "Custom error: %u", v->custom);
        set(r, 1010, "Invalid Transaction",
            v->code == INVALID_CUSTOM ? r->data_buf : INVALID_TEXT[v->code]);
    }
}

static void refusal_of(struct refusal *r, const struct pool_result *p, bool chopsticks)
{
    switch (p->kind) {
    case POOL_OK:
        break;
    case POOL_BANNED:
        set(r, 1012, "Transaction is temporarily banned", NULL);
        break;
    case POOL_ALREADY_IMPORTED:
        set(r, 1013, "Transaction Already Imported", "Any { .. }");
        break;
    case POOL_NOT_VALID:
        not_valid(r, &p->validity, chopsticks);
        break;
    case POOL_NO_TAGS:
        set(r, 1019, "No tags provided",
            "Transaction does not provide any tags, so the pool can't identify it");
        break;
    case POOL_UNACTIONABLE:
        set(r, 1018, "Unactionable",
            "The transaction is unactionable since it is not propagable and the local node does "
            "not author blocks");
        break;
    case POOL_TOO_LOW_PRIORITY:
        set(r, 1014, "",
            "The transaction has too low priority to replace another transaction already in the "
            "pool.");
        snprintf(r->message, sizeof r->message, "Priority is too low: (%llu vs %llu)",
                 (unsigned long long)p->old_priority, (unsigned long long)p->new_priority);
        break;
    case POOL_CYCLE:
        set(r, 1015, "Cycle Detected", NULL);
        break;
    case POOL_IMMEDIATELY_DROPPED:
        set(r, 1016, "Immediately Dropped",
            "The transaction couldn't enter the pool because of the limit");
        break;
    }
}

void author_try(struct call *c, const struct buf *bytes, struct sub *sub, struct refusal *ret,
                struct tx **ret_tx)
{
    struct app *a = c->app;
    struct tx *tx = NULL;
    struct pool_result result = {.kind = POOL_OK};
    uint64_t now = loop_now_ms(a->loop);
    *ret = (struct refusal){0};
    *ret_tx = NULL;
    if (core_submit(&a->core, now, bytes->data, bytes->len, sub ? &sub->watch : NULL, &tx,
                    &result) == CORE_DECODE_BAD)
        set(ret, sub ? 1001 : 1040,
            sub ? "Extrinsic has invalid format: Not enough data to fill buffer"
                : "Client error: Not enough data to fill buffer",
            NULL);
    else
        refusal_of(ret, &result, a->options.chopsticks_shapes);
    stats_submit(&a->stats, now, tx, ret->code);
    if (ret->code) {
        tx_unref(tx);
        return;
    }
    if (c->drop_after)
        pool_drop(&a->core.pool, tx->hash, true);
    app_submitted(a);
    *ret_tx = tx;
}

/* Submit parameter 0. true: accepted, *ret_tx is a reference. false: the error is answered. */
static bool submit(struct call *c, struct sub *sub, struct tx **ret_tx)
{
    struct buf bytes = {0};
    struct refusal r = {0};
    bool good = call_bytes(c, 0, &bytes);
    if (good) {
        author_try(c, &bytes, sub, &r, ret_tx);
        if (r.code)
            call_error(c, r.code, r.message, r.data);
    }
    buf_done(&bytes);
    return good && !r.code;
}

static void submit_extrinsic(struct call *c)
{
    struct tx *tx;
    if (!submit(c, NULL, &tx))
        return;
    put_json_hex(call_begin(c), tx->hash, 32);
    call_end(c);
    tx_unref(tx);
}

static void submit_and_watch(struct call *c)
{
    struct tx *tx;
    struct sub *s = sub_new(c, SUB_EXTRINSIC);
    if (!s)
        return;
    if (!submit(c, s, &tx)) {
        sub_free(s);
        return;
    }
    s->tx = tx;
    put_json_str(call_begin(c), s->id);
    call_end(c);
    c->started = s;
}

static void unwatch(struct call *c)
{
    subs_stop(c, SUB_EXTRINSIC);
}

static void pending(struct call *c)
{
    struct pool_iter it;
    struct buf *b = call_begin(c);
    size_t n = 0;
    c->app->stats.pool_asked++;
    buf_put_u8(b, '[');
    pool_iter_init(&it, &c->app->core.pool);
    for (const struct pool_tx *t; (t = pool_iter_next(&it)); pool_iter_taken(&it, t)) {
        if (n++)
            buf_put_u8(b, ',');
        put_json_hex(b, t->tx->bytes, t->tx->len);
    }
    pool_iter_done(&it);
    buf_put_u8(b, ']');
    call_end(c);
}

static bool named_hash(const json_t *item, uint8_t hash[32])
{
    const char *h = json_string_value(json_object_get(item, "hash"));
    const char *x = json_string_value(json_object_get(item, "extrinsic"));
    struct buf bytes = {0};
    struct tx *tx = NULL;
    if (h)
        return hex_decode_fixed(h, strlen(h), hash, 32);
    bool good = x && hex_decode(x, strlen(x), &bytes) &&
                tx_decode(bytes.data, bytes.len, &tx) != TX_DECODE_BAD_FRAME;
    if (good)
        memcpy(hash, tx->hash, 32);
    tx_unref(tx);
    buf_done(&bytes);
    return good;
}

static void remove_extrinsic(struct call *c)
{
    const json_t *list = call_param(c, 0);
    struct core *core = &c->app->core;
    if (c->app->options.deny_unsafe) {
        call_error(c, RPC_METHOD_NOT_FOUND, "RPC call is unsafe to be called externally", NULL);
        return;
    }
    size_t i, n = 0;
    json_t *item;
    struct buf *b = call_begin(c);
    buf_put_u8(b, '[');
    json_array_foreach(list, i, item)
    {
        uint8_t hash[32];
        if (!named_hash(item, hash))
            continue;
        struct buf removed = {0};
        pool_remove_invalid(&core->pool, loop_now_ms(c->app->loop), hash, &removed);
        for (size_t k = 0; k < removed.len; k += 32) {
            if (n++)
                buf_put_u8(b, ',');
            put_json_hex(b, removed.data + k, 32);
        }
        buf_done(&removed);
    }
    buf_put_u8(b, ']');
    call_end(c);
}

const struct method METHODS_AUTHOR[] = {
    {"author_submitExtrinsic", submit_extrinsic},
    {"author_submitAndWatchExtrinsic", submit_and_watch},
    {"author_unwatchExtrinsic", unwatch},
    {"author_pendingExtrinsics", pending},
    {"author_removeExtrinsic", remove_extrinsic},
    {NULL, NULL},
};
