/* What does each step of a way ask, and what follows from the answer: the next step, or the end of
 * the owner's call? */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "rpc_ways.h"

/* ---- ends ---- */

void rpc__way_end_text(struct rpc_way *w)
{
    struct err err;
    const struct jv *result = jv_read(&w->answer, buf_str(&w->text), w->text.len, &err);
    INVARIANT(result);
    rpc__way_end(w, result);
}

void rpc__way_end_null(struct rpc_way *w)
{
    buf_clear(&w->text);
    buf_puts(&w->text, "null");
    rpc__way_end_text(w);
}

void rpc__way_fail(struct rpc_way *w, enum rpc_error refused, const char *text)
{
    struct rpc_call *outer = w->outer;
    err_set(&outer->err, ERR_RPC, "%s", text);
    outer->refused = refused;
    rpc__way_end(w, NULL);
}

void rpc__way_fail_protocol(struct rpc_way *w)
{
    err_set(&w->outer->err, ERR_PROTOCOL, "%s: %s gave something else", w->rpc->config.url,
            w->sub.call.method);
    rpc__way_end(w, NULL);
}

/* ---- steps ---- */

static void storage_item(struct rpc_sub *sub, const struct jv *item);
static void storage_ended(struct rpc_sub *sub, const struct err *err);

static void ask(struct rpc_way *w, const char *method, const char *params)
{
    rpc_call_start(w->rpc, &w->sub.call, method, params, 0, NULL, NULL, rpc__way_answered);
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
    rpc__way_put_raw(&params, rpc__way_given(w, 0));
    buf_puts(&params, ",\"type\":\"value\"}],null]");
    rpc_subscribe_start(w->rpc, &w->sub, "archive_v1_storage", buf_str(&params), NULL, NULL,
                        rpc__way_answered, storage_item, storage_ended);
    buf_done(&params);
}

static void ask_call(struct rpc_way *w)
{
    struct buf params = {0};
    buf_printf(&params, "[%s", w->block);
    rpc__way_put_function(w, &params);
    ask(w, "archive_v1_call", buf_str(&params));
    buf_done(&params);
}

void rpc__way_step(struct rpc_way *w)
{
    switch (rpc__way_now(w)) {
    case STEP_BEST:
        ask(w, "chain_getBlockHash", "[]");
        return;
    case STEP_GENESIS:
        ask(w, "chainSpec_v1_genesisHash", "[]");
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
    case STEP_KNOWN:
    case STEP_WATCH:
    case STEP_PINNED_HEADER:
    case STEP_PINNED_BODY:
    case STEP_PINNED_CALL:
    case STEP_PINNED_STORAGE:
        rpc__way_follow_step(w);
        return;
    case STEP_NONE:
        break;
    }
    UNREACHABLE();
}

/* ---- answers ---- */

bool rpc__way_set_block(struct rpc_way *w, const struct jv *v)
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
    rpc__way_step(w);
}

static void got_hash(struct rpc_way *w, const struct jv *hashes)
{
    const struct jv *first = jv_first(hashes);
    if (!jv_is(hashes, JV_ARRAY)) {
        rpc__way_fail_protocol(w);
    } else if (!first) {
        rpc__way_end_null(w);
    } else {
        rpc__way_put_raw(&w->text, first);
        rpc__way_end_text(w);
    }
}

void rpc__way_got_header(struct rpc_way *w, const struct jv *header)
{
    bool block = w->kind == WAY_BLOCK;
    if (jv_is(header, JV_NULL)) {
        rpc__way_end_null(w);
        return;
    }
    buf_puts(&w->text, block ? "{\"block\":{\"header\":" : "");
    if (!rpc__way_put_header(header, &w->text))
        rpc__way_fail_protocol(w);
    else if (block)
        next_step(w);
    else
        rpc__way_end_text(w);
}

void rpc__way_got_body(struct rpc_way *w, const struct jv *body)
{
    if (jv_is(body, JV_NULL)) {
        rpc__way_end_null(w);
        return;
    }
    buf_puts(&w->text, ",\"extrinsics\":");
    rpc__way_put_raw(&w->text, body);
    buf_puts(&w->text, "}}");
    rpc__way_end_text(w);
}

void rpc__way_got_value(struct rpc_way *w, const struct jv *value)
{
    bool metadata = w->kind == WAY_METADATA;
    if (!metadata && jv_is(value, JV_STRING))
        rpc__way_put_raw(&w->text, value);
    else if (!metadata || !rpc__way_put_metadata(value, &w->text)) {
        rpc__way_fail_protocol(w);
        return;
    }
    rpc__way_end_text(w);
}

static void got_call(struct rpc_way *w, const struct jv *result)
{
    if (jv_is(result, JV_NULL)) {
        rpc__way_fail(w, RPC_ERROR_BLOCK, "archive_v1_call: block not found");
    } else if (!jv_is(jv_get(result, "success"), JV_TRUE)) {
        char text[160];
        jv_copy(jv_get(result, "error"), text, sizeof(text));
        rpc__way_fail(w, rpc_error_of(0, text, ""), text);
    } else {
        rpc__way_got_value(w, jv_get(result, "value"));
    }
}

static void storage_item(struct rpc_sub *sub, const struct jv *item)
{
    struct rpc_way *w = CONTAINER_OF(sub, struct rpc_way, sub);
    const struct jv *event = jv_get(item, "event");
    char text[160];
    if (jv_equals(event, "storageDone")) {
        if (w->text.len)
            rpc__way_end_text(w);
        else
            rpc__way_end_null(w);
    } else if (jv_equals(event, "storageError")) {
        jv_copy(jv_get(item, "error"), text, sizeof(text));
        rpc__way_fail(w, rpc_error_of(0, text, ""), text);
    } else if (jv_equals(event, "storage") && jv_is(jv_get(item, "value"), JV_STRING)) {
        buf_clear(&w->text);
        rpc__way_put_raw(&w->text, jv_get(item, "value"));
    }
}

static void storage_ended(struct rpc_sub *sub, const struct err *err)
{
    struct rpc_way *w = CONTAINER_OF(sub, struct rpc_way, sub);
    w->outer->err = *err;
    rpc__way_end(w, NULL);
}

void rpc__way_answered(struct rpc_call *call)
{
    struct rpc_way *w = CONTAINER_OF(CONTAINER_OF(call, struct rpc_sub, call), struct rpc_way, sub);
    PRE(w->outer);
    if (rpc__way_now(w) >= STEP_KNOWN) {
        rpc__way_follow_answered(w, call);
        return;
    }
    if (call->err.code) {
        rpc__way_refused_newer(w, call);
        return;
    }
    switch (rpc__way_now(w)) {
    case STEP_BEST:
    case STEP_HEIGHT:
        if (rpc__way_set_block(w, call->result))
            next_step(w);
        else
            rpc__way_fail_protocol(w);
        return;
    case STEP_HASH:
        got_hash(w, call->result);
        return;
    case STEP_HEADER:
        rpc__way_got_header(w, call->result);
        return;
    case STEP_BODY:
        rpc__way_got_body(w, call->result);
        return;
    case STEP_CALL:
        got_call(w, call->result);
        return;
    case STEP_GENESIS:
        rpc__way_put_raw(&w->text, call->result);
        rpc__way_end_text(w);
        return;
    case STEP_STORAGE:
        return; /* the items follow */
    case STEP_KNOWN:
    case STEP_WATCH:
    case STEP_PINNED_HEADER:
    case STEP_PINNED_BODY:
    case STEP_PINNED_CALL:
    case STEP_PINNED_STORAGE:
    case STEP_NONE:
        break;
    }
    UNREACHABLE();
}
