/* What does each step of a way ask, and what follows from the answer: the next step, or the end of
 * the owner's call? */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "rpc_ways.h"

/* ---- ends ---- */

static void end_text(struct rpc_way *w)
{
    struct err err;
    const struct jv *result = jv_read(&w->answer, buf_str(&w->text), w->text.len, &err);
    INVARIANT(result);
    rpc__way_end(w, result);
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
    rpc__way_end(w, NULL);
}

static void fail_protocol(struct rpc_way *w)
{
    err_set(&w->outer->err, ERR_PROTOCOL, "%s: %s gave something else", w->rpc->config.url,
            w->sub.call.method);
    rpc__way_end(w, NULL);
}

/* ---- steps ---- */

static void way_answered(struct rpc_call *call);
static void storage_item(struct rpc_sub *sub, const struct jv *item);
static void storage_ended(struct rpc_sub *sub, const struct err *err);

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
    rpc__way_put_raw(&params, rpc__way_given(w, 0));
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
        rpc__way_put_raw(&params, rpc__way_given(w, 0));
        buf_puts(&params, ",");
        rpc__way_put_raw(&params, rpc__way_given(w, 1));
        buf_puts(&params, "]");
    }
    ask(w, "archive_v1_call", buf_str(&params));
    buf_done(&params);
}

void rpc__way_step(struct rpc_way *w)
{
    switch (rpc__way_now(w)) {
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

bool rpc__way_keep_block(struct rpc_way *w, const struct jv *v)
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
        fail_protocol(w);
    } else if (!first) {
        end_null(w);
    } else {
        rpc__way_put_raw(&w->text, first);
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
    if (!rpc__way_put_header(header, &w->text))
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
    rpc__way_put_raw(&w->text, body);
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
        rpc__way_put_raw(&w->text, value);
    else if (w->kind != WAY_METADATA || !rpc__way_put_metadata(value, &w->text)) {
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
        rpc__way_put_raw(&w->text, jv_get(item, "value"));
    }
}

static void storage_ended(struct rpc_sub *sub, const struct err *err)
{
    struct rpc_way *w = CONTAINER_OF(sub, struct rpc_way, sub);
    w->outer->err = *err;
    rpc__way_end(w, NULL);
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
    rpc__way_end(w, NULL);
}

static void way_answered(struct rpc_call *call)
{
    struct rpc_way *w = CONTAINER_OF(CONTAINER_OF(call, struct rpc_sub, call), struct rpc_way, sub);
    PRE(w->outer);
    if (call->err.code) {
        refused(w);
        return;
    }
    switch (rpc__way_now(w)) {
    case STEP_BEST:
    case STEP_HEIGHT:
        if (rpc__way_keep_block(w, call->result))
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
