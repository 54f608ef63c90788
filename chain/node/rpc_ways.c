/* Questions that an endpoint refuses in the older JSON-RPC are asked in the newer one
 * (paritytech/json-rpc-interface-spec), and answered in the older one's shape, so that nobody above
 * this file knows of it. The table `ways` says which question has which steps.
 *
 *   the older method --refused--> way_start -> steps, one call each -> way_end: the owner's call
 *   (or known to be refused) ------^            \--refused--> the owner's call is refused, too
 *
 * The owner's call stays among the calls in flight, with a deadline of its own. What an endpoint
 * refuses is learnt anew with each connection. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "base/log.h"
#include "chain/codec/scale.h"
#include "rpc_internal.h"

enum way_step {
    STEP_NONE,
    STEP_BEST,   /* which block is the best one */
    STEP_HEIGHT, /* which one is the last final one */
    STEP_HASH,
    STEP_HEADER,
    STEP_BODY,
    STEP_CALL,
    STEP_STORAGE, /* its items come as notifications */
};

enum { STEPS = 2 };

/* Where the parameters of the older method have the block. */
static const struct way_row {
    const char *older;
    enum way_step steps[STEPS];
    int block; /* -1: it has none */
} ways[WAY_COUNT] = {
    [WAY_HASH] = {"chain_getBlockHash", {STEP_HASH}, -1},
    [WAY_FINAL] = {"chain_getFinalizedHead", {STEP_HEIGHT, STEP_HASH}, -1},
    [WAY_HEADER] = {"chain_getHeader", {STEP_HEADER}, 0},
    [WAY_BLOCK] = {"chain_getBlock", {STEP_HEADER, STEP_BODY}, 0},
    [WAY_STORAGE] = {"state_getStorage", {STEP_STORAGE}, 1},
    [WAY_CALL] = {"state_call", {STEP_CALL}, 2},
    [WAY_METADATA] = {"state_getMetadata", {STEP_CALL}, 0},
};

struct rpc_way {
    struct rpc *rpc;
    struct rpc_call *outer; /* the owner's */
    enum rpc_way_kind kind;
    size_t step; /* of its row */
    bool finding_best;
    char older[256];      /* the parameters of the owner's call */
    struct jv_doc given;  /* the same, read */
    char block[80];       /* its hash in quotes, once it is known */
    struct rpc_sub sub;   /* the call of the step */
    struct buf text;      /* the answer in the older shape */
    struct jv_doc answer; /* the same, read */
};

static const struct way_row *row_of(const struct rpc_way *w)
{
    return &ways[w->kind];
}

/* ---- ends ---- */

static void way_free(struct rpc_way *w)
{
    jv_done(&w->given);
    jv_done(&w->answer);
    buf_done(&w->text);
    free(w);
}

void rpc__way_drop(struct rpc_way *w)
{
    w->outer = NULL;
    rpc_unsubscribe(w->rpc, &w->sub, NULL);
    way_free(w);
}

static void found(struct rpc *r, enum rpc_way_kind kind)
{
    if (r->ways[kind] == WAY_TRIED)
        log_info("node.newer_methods", "url=%s instead_of=%s", r->config.url, ways[kind].older);
    r->ways[kind] = WAY_NEWER;
}

static void end(struct rpc_way *w, const struct jv *result)
{
    struct rpc_call *outer = w->outer;
    PRE((result != NULL) != (outer->err.code != 0));
    if (result)
        found(w->rpc, w->kind);
    outer->way = NULL;
    rpc_unsubscribe(w->rpc, &w->sub, NULL);
    rpc__call_end(w->rpc, outer, result);
    way_free(w); /* the result was in it */
}

static void end_text(struct rpc_way *w)
{
    struct err err;
    const struct jv *result = jv_read(&w->answer, buf_str(&w->text), w->text.len, &err);
    INVARIANT(result);
    end(w, result);
}

static void end_null(struct rpc_way *w)
{
    buf_clear(&w->text);
    buf_puts(&w->text, "null");
    end_text(w);
}

static void fail(struct rpc_way *w, enum rpc_error refused, const char *text)
{
    struct rpc_call *outer = w->outer;
    err_set(&outer->err, ERR_RPC, "%s", text);
    outer->refused = refused;
    end(w, NULL);
}

static void fail_protocol(struct rpc_way *w)
{
    err_set(&w->outer->err, ERR_PROTOCOL, "%s: %s gave something else", w->rpc->config.url,
            w->sub.call.method);
    end(w, NULL);
}

/* ---- shapes ---- */

/* A SCALE header as the older JSON. One with fields of its own is given without its digest, so the
 * block's hash cannot be computed from it. */
static bool put_header(const struct jv *hex, struct buf *out)
{
    struct buf bytes = {0}, logs = {0};
    bool good = jv_hex(hex, &bytes);
    struct scale_in in = scale_in_of(bytes.data, bytes.len);
    const uint8_t *parent = scale_get_bytes(&in, 32);
    uint64_t number = (uint64_t)scale_get_compact(&in);
    const uint8_t *state = scale_get_bytes(&in, 32), *extrinsics = scale_get_bytes(&in, 32);
    good = good && !in.bad;
    size_t count = scale_get_len(&in);
    for (size_t i = 0; i < count && !in.bad; i++) {
        const uint8_t *from = in.p;
        uint8_t kind = scale_get_u8(&in);
        enum { OTHER = 0, CONSENSUS = 4, SEAL = 5, PRE_RUNTIME = 6, UPDATED = 8 };
        if (kind == CONSENSUS || kind == SEAL || kind == PRE_RUNTIME)
            scale_get_bytes(&in, 4);
        else if (kind != OTHER && kind != UPDATED)
            in.bad = true;
        if (kind != UPDATED)
            scale_get_bytes(&in, scale_get_len(&in));
        buf_puts(&logs, i ? ",\"" : "\"");
        hex_put_0x(&logs, from, (size_t)(in.p - from));
        buf_puts(&logs, "\"");
    }
    bool whole = !in.bad && scale_left(&in) == 0;
    if (good) {
        buf_puts(out, "{\"parentHash\":\"");
        hex_put_0x(out, parent, 32);
        buf_printf(out, "\",\"number\":\"0x%" PRIx64 "\",\"stateRoot\":\"", number);
        hex_put_0x(out, state, 32);
        buf_puts(out, "\",\"extrinsicsRoot\":\"");
        hex_put_0x(out, extrinsics, 32);
        buf_printf(out, "\"%s%s%s}", whole ? ",\"digest\":{\"logs\":[" : "",
                   whole ? buf_str(&logs) : "", whole ? "]}" : "");
    }
    buf_done(&bytes);
    buf_done(&logs);
    return good;
}

static void put_raw(struct buf *out, const struct jv *v)
{
    size_t len;
    const char *text = jv_raw(v, &len);
    buf_put(out, text, len);
}

/* state_getMetadata answers what is in the bytes that the runtime's call returns. */
static bool put_metadata(const struct jv *hex, struct buf *out)
{
    struct buf bytes = {0};
    bool good = jv_hex(hex, &bytes);
    struct scale_in in = scale_in_of(bytes.data, bytes.len);
    size_t len = scale_get_len(&in);
    const uint8_t *inner = scale_get_bytes(&in, len);
    good = good && !in.bad;
    if (good) {
        buf_puts(out, "\"");
        hex_put_0x(out, inner, len);
        buf_puts(out, "\"");
    }
    buf_done(&bytes);
    return good;
}

/* ---- steps ---- */

static void way_step(struct rpc_way *w);
static void way_answered(struct rpc_call *call);
static void storage_item(struct rpc_sub *sub, const struct jv *item);
static void storage_ended(struct rpc_sub *sub, const struct err *err);

static const struct jv *given(const struct rpc_way *w, size_t i)
{
    return jv_at(w->given.values, i);
}

static void ask(struct rpc_way *w, const char *method, const char *params)
{
    rpc_call_start(w->rpc, &w->sub.call, method, params, 0, NULL, NULL, way_answered);
}

static void ask_of_block(struct rpc_way *w, const char *method)
{
    char params[96];
    snprintf(params, sizeof(params), "[%s]", w->block);
    ask(w, method, params);
}

static void ask_storage(struct rpc_way *w)
{
    struct buf params = {0};
    buf_printf(&params, "[%s,[{\"key\":", w->block);
    put_raw(&params, given(w, 0));
    buf_puts(&params, ",\"type\":\"value\"}],null]");
    rpc_subscribe_start(w->rpc, &w->sub, "archive_v1_storage", buf_str(&params), NULL, NULL,
                        way_answered, storage_item, storage_ended);
    buf_done(&params);
}

static void ask_call(struct rpc_way *w)
{
    struct buf params = {0};
    buf_printf(&params, "[%s,", w->block);
    if (w->kind == WAY_METADATA) {
        buf_puts(&params, "\"Metadata_metadata\",\"0x\"]");
    } else {
        put_raw(&params, given(w, 0));
        buf_puts(&params, ",");
        put_raw(&params, given(w, 1));
        buf_puts(&params, "]");
    }
    ask(w, "archive_v1_call", buf_str(&params));
    buf_done(&params);
}

static void way_step(struct rpc_way *w)
{
    switch (w->finding_best ? STEP_BEST : row_of(w)->steps[w->step]) {
    case STEP_BEST:
        ask(w, "chain_getBlockHash", "[]");
        return;
    case STEP_HEIGHT:
        ask(w, "archive_v1_finalizedHeight", "[]");
        return;
    case STEP_HASH:
        ask_of_block(w, "archive_v1_hashByHeight");
        return;
    case STEP_HEADER:
        ask_of_block(w, "archive_v1_header");
        return;
    case STEP_BODY:
        ask_of_block(w, "archive_v1_body");
        return;
    case STEP_CALL:
        ask_call(w);
        return;
    case STEP_STORAGE:
        ask_storage(w);
        return;
    case STEP_NONE:
        break;
    }
    UNREACHABLE();
}

/* ---- answers ---- */

/* The block's hash, or the height, for the steps that follow. */
static bool keep_block(struct rpc_way *w, const struct jv *v)
{
    size_t len;
    const char *text = jv_raw(v, &len);
    if (len >= sizeof(w->block))
        return false;
    memcpy(w->block, text, len);
    w->block[len] = 0;
    return true;
}

static void next_step(struct rpc_way *w)
{
    if (w->finding_best)
        w->finding_best = false;
    else
        w->step++;
    way_step(w);
}

static void got_hash(struct rpc_way *w, const struct jv *hashes)
{
    const struct jv *first = jv_first(hashes);
    if (!jv_is(hashes, JV_ARRAY)) {
        fail_protocol(w);
    } else if (!first) {
        end_null(w);
    } else {
        put_raw(&w->text, first);
        end_text(w);
    }
}

static void got_header(struct rpc_way *w, const struct jv *header)
{
    bool block = w->kind == WAY_BLOCK;
    if (jv_is(header, JV_NULL)) {
        end_null(w);
        return;
    }
    buf_puts(&w->text, block ? "{\"block\":{\"header\":" : "");
    if (!put_header(header, &w->text))
        fail_protocol(w);
    else if (block)
        next_step(w);
    else
        end_text(w);
}

static void got_body(struct rpc_way *w, const struct jv *body)
{
    if (jv_is(body, JV_NULL)) {
        end_null(w);
        return;
    }
    buf_puts(&w->text, ",\"extrinsics\":");
    put_raw(&w->text, body);
    buf_puts(&w->text, "}}");
    end_text(w);
}

static void got_call(struct rpc_way *w, const struct jv *result)
{
    const struct jv *value = jv_get(result, "value");
    if (jv_is(result, JV_NULL)) {
        fail(w, RPC_ERROR_BLOCK, "archive_v1_call: block not found");
        return;
    }
    if (!jv_is(jv_get(result, "success"), JV_TRUE)) {
        char text[160];
        jv_copy(jv_get(result, "error"), text, sizeof(text));
        fail(w, rpc_error_of(0, text, ""), text);
        return;
    }
    if (w->kind != WAY_METADATA && jv_is(value, JV_STRING))
        put_raw(&w->text, value);
    else if (w->kind != WAY_METADATA || !put_metadata(value, &w->text)) {
        fail_protocol(w);
        return;
    }
    end_text(w);
}

static void storage_item(struct rpc_sub *sub, const struct jv *item)
{
    struct rpc_way *w = CONTAINER_OF(sub, struct rpc_way, sub);
    const struct jv *event = jv_get(item, "event");
    char text[160];
    if (jv_equals(event, "storageDone")) {
        if (w->text.len)
            end_text(w);
        else
            end_null(w);
    } else if (jv_equals(event, "storageError")) {
        jv_copy(jv_get(item, "error"), text, sizeof(text));
        fail(w, rpc_error_of(0, text, ""), text);
    } else if (jv_equals(event, "storage") && jv_is(jv_get(item, "value"), JV_STRING)) {
        buf_clear(&w->text);
        put_raw(&w->text, jv_get(item, "value"));
    }
}

static void storage_ended(struct rpc_sub *sub, const struct err *err)
{
    struct rpc_way *w = CONTAINER_OF(sub, struct rpc_way, sub);
    w->outer->err = *err;
    end(w, NULL);
}

/* The endpoint does not have the newer method either: the older one's refusal stands. */
static void refused(struct rpc_way *w)
{
    const struct rpc_call *call = &w->sub.call;
    struct rpc_call *outer = w->outer;
    outer->err = call->err;
    outer->rpc_code = call->rpc_code;
    memcpy(outer->rpc_data, call->rpc_data, sizeof(outer->rpc_data));
    outer->refused = call->refused;
    if (call->refused == RPC_ERROR_METHOD)
        w->rpc->ways[w->kind] = WAY_NONE;
    end(w, NULL);
}

static void way_answered(struct rpc_call *call)
{
    struct rpc_way *w = CONTAINER_OF(CONTAINER_OF(call, struct rpc_sub, call), struct rpc_way, sub);
    PRE(w->outer);
    if (call->err.code) {
        refused(w);
        return;
    }
    switch (w->finding_best ? STEP_BEST : row_of(w)->steps[w->step]) {
    case STEP_BEST:
    case STEP_HEIGHT:
        if (keep_block(w, call->result))
            next_step(w);
        else
            fail_protocol(w);
        return;
    case STEP_HASH:
        got_hash(w, call->result);
        return;
    case STEP_HEADER:
        got_header(w, call->result);
        return;
    case STEP_BODY:
        got_body(w, call->result);
        return;
    case STEP_CALL:
        got_call(w, call->result);
        return;
    case STEP_STORAGE:
        return; /* the items follow */
    case STEP_NONE:
        break;
    }
    UNREACHABLE();
}

/* ---- the older question ---- */

static enum rpc_way_kind kind_of(const char *method)
{
    size_t i = 0;
    while (i < WAY_COUNT && strcmp(ways[i].older, method) != 0)
        i++;
    return (enum rpc_way_kind)i;
}

/* The newer method has no word for the best block. */
static bool of_no_block(const struct rpc_way *w)
{
    int at = row_of(w)->block;
    return at >= 0 && !given(w, (size_t)at);
}

static bool start(struct rpc *r, struct rpc_call *call, enum rpc_way_kind kind, const char *params)
{
    struct rpc_way *w = xcalloc(1, sizeof(*w));
    struct err err;
    *w = (struct rpc_way){.rpc = r, .outer = call, .kind = kind};
    snprintf(w->older, sizeof(w->older), "%s", params);
    bool good =
        strlen(params) < sizeof(w->older) && jv_read(&w->given, w->older, strlen(w->older), &err);
    const struct jv *block =
        good ? given(w, ways[kind].block > 0 ? (size_t)ways[kind].block : 0) : NULL;
    if (!good || (block && !keep_block(w, block)) || (kind == WAY_HASH && !block)) {
        way_free(w);
        return false;
    }
    w->finding_best = of_no_block(w);
    call->way = w;
    way_step(w);
    return true;
}

static bool is_newer(enum rpc_way_choice choice)
{
    return choice == WAY_TRIED || choice == WAY_NEWER;
}

bool rpc__way_begin(struct rpc *r, struct rpc_call *call, const char *params)
{
    enum rpc_way_kind kind = kind_of(call->method);
    return kind < WAY_COUNT && is_newer(r->ways[kind]) && start(r, call, kind, params);
}

bool rpc__way_refused(struct rpc *r, struct rpc_call *call)
{
    enum rpc_way_kind kind = kind_of(call->method);
    if (call->refused != RPC_ERROR_METHOD || call->sub || kind == WAY_COUNT ||
        r->ways[kind] == WAY_NONE || !start(r, call, kind, call->again))
        return false;
    if (r->ways[kind] == WAY_OLDER)
        r->ways[kind] = WAY_TRIED;
    err_clear(&call->err);
    call->refused = RPC_ERROR_NONE;
    return true;
}

void rpc_ways_text(const struct rpc *r, struct buf *out)
{
    static const char *const newer[] = {
        [STEP_HASH] = "archive_v1_hashByHeight", [STEP_HEADER] = "archive_v1_header",
        [STEP_BODY] = "archive_v1_body",         [STEP_CALL] = "archive_v1_call",
        [STEP_STORAGE] = "archive_v1_storage",
    };
    for (size_t i = 0; i < WAY_COUNT; i++)
        if (r->ways[i] == WAY_NEWER)
            buf_printf(out, "%s%s in place of %s", out->len ? ", " : "",
                       newer[ways[i].steps[1] ? ways[i].steps[1] : ways[i].steps[0]],
                       ways[i].older);
}
