/* The steps of a way that chainHead_v1 answers: from what its subscription has announced, or about
 * a block that is pinned. Operations end with an event, which rpc_follow.c hands to their sub.
 *
 * A server answers the questions of a subscription that it has just ended, and operations above its
 * limit, with null or "limitReached": they are asked again. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "rpc_ways.h"

/* ---- what it has announced ---- */

static void end_hash(struct rpc_way *w, const uint8_t *hash)
{
    buf_puts(&w->text, "\"");
    hex_put_0x(&w->text, hash, 32);
    buf_puts(&w->text, "\"");
    rpc__way_end_text(w);
}

/* A height that it has no pinned block of may be known otherwise (node_hash.c). */
static void end_height(struct rpc_way *w)
{
    const struct rpc_follow *f = &w->rpc->follow;
    const struct window_block *b = NULL;
    int64_t number;
    if (jv_int(rpc__way_given(w, 0), &number))
        b = window_at(&f->window, number - (int64_t)f->base);
    if (b)
        end_hash(w, b->hash);
    else
        rpc__way_fail(w, RPC_ERROR_METHOD, "chainHead_v1: no block of this height is pinned");
}

static void watch(struct rpc_way *w)
{
    static const char *const ids[] = {"\"best heads\"", "\"final heads\"", "\"versions\""};
    enum follow_watch_kind kind = (enum follow_watch_kind)(w->kind - WAY_HEADS);
    PRE(w->kind >= WAY_HEADS && kind < FOLLOW_WATCH_COUNT);
    if (!w->outer->sub || !rpc__watch_start(w->rpc, kind, w->outer->sub)) {
        rpc__way_fail(w, RPC_ERROR_WATCHES, "chainHead_v1: it is subscribed already");
        return;
    }
    buf_puts(&w->text, ids[kind]);
    rpc__way_end_text(w);
}

static void known(struct rpc_way *w)
{
    const struct window *window = &w->rpc->follow.window;
    if (w->kind == WAY_HASH)
        end_height(w);
    else
        end_hash(w, w->kind == WAY_BEST ? window->best : window->finalized);
}

/* ---- about a pinned block ---- */

static bool is_pinned(const struct rpc_way *w)
{
    uint8_t hash[32];
    size_t len = strlen(w->block);
    return len == 68 && hex_decode_fixed(w->block + 3, 64, hash, 32) &&
           window_find(&w->rpc->follow.window, hash);
}

/* Storage of other blocks may be had by state_queryStorageAt, which the node then asks. */
static void not_pinned(struct rpc_way *w)
{
    bool other = w->kind == WAY_STORAGE && w->rpc->queries;
    rpc__way_fail(w, other ? RPC_ERROR_METHOD : RPC_ERROR_BLOCK,
                  "chainHead_v1: the block is not pinned");
}

static void done(struct rpc_way *w, const struct jv *event)
{
    if (jv_equals(jv_get(event, "event"), "operationBodyDone"))
        rpc__way_got_body(w, jv_get(event, "value"));
    else if (jv_equals(jv_get(event, "event"), "operationCallDone"))
        rpc__way_got_value(w, jv_get(event, "output"));
    else if (w->text.len)
        rpc__way_end_text(w);
    else
        rpc__way_end_null(w);
}

static void take_storage(struct rpc_way *w, const struct jv *items)
{
    for (const struct jv *i = jv_first(items); i; i = jv_next(items, i))
        if (jv_is(jv_get(i, "value"), JV_STRING)) {
            buf_clear(&w->text);
            rpc__way_put_raw(&w->text, jv_get(i, "value"));
        }
}

static void notify(const struct rpc_way *w, const char *method)
{
    char params[160];
    PRE(w->sub.active);
    snprintf(params, sizeof(params), "[\"%s\",\"%s\"]", w->rpc->follow.sub.id,
             strchr(w->sub.id, ' ') + 1);
    rpc__notify(w->rpc, method, params);
}

void rpc__way_stop_operation(struct rpc_way *w)
{
    if (w->operation && w->sub.active)
        notify(w, "chainHead_v1_stopOperation");
}

static bool ends(const struct rpc_way *w, const struct jv *name)
{
    switch ((int)rpc__way_now(w)) {
    case STEP_PINNED_BODY:
        return jv_equals(name, "operationBodyDone");
    case STEP_PINNED_CALL:
        return jv_equals(name, "operationCallDone");
    case STEP_PINNED_STORAGE:
        return jv_equals(name, "operationStorageDone");
    default:
        UNREACHABLE();
    }
}

static void operation_event(struct rpc_sub *sub, const struct jv *event)
{
    struct rpc_way *w = CONTAINER_OF(sub, struct rpc_way, sub);
    const struct jv *name = jv_get(event, "event");
    char text[160];
    if (jv_equals(name, "operationStorageItems")) {
        if (rpc__way_now(w) == STEP_PINNED_STORAGE)
            take_storage(w, jv_get(event, "items"));
    } else if (jv_equals(name, "operationWaitingForContinue")) {
        notify(w, "chainHead_v1_continue");
    } else if (jv_equals(name, "operationError")) {
        jv_copy(jv_get(event, "error"), text, sizeof(text));
        rpc__way_fail(w, rpc_error_of(0, text, ""), text);
    } else if (jv_equals(name, "operationInaccessible")) {
        rpc__way_fail(w, RPC_ERROR_OTHER, "operationInaccessible");
    } else if (ends(w, name)) {
        done(w, event);
    }
}

static void operation_ended(struct rpc_sub *sub, const struct err *err)
{
    struct rpc_way *w = CONTAINER_OF(sub, struct rpc_way, sub);
    w->outer->err = *err;
    rpc__way_end(w, NULL);
}

static void put_key(const struct rpc_way *w, struct buf *out)
{
    buf_puts(out, ",[{\"key\":");
    rpc__way_put_raw(out, rpc__way_given(w, 0));
    buf_puts(out, ",\"type\":\"value\"}],null]");
}

static void ask(struct rpc_way *w, const char *method,
                void (*put)(const struct rpc_way *, struct buf *))
{
    struct buf params = {0};
    bool operation = rpc__way_now(w) != STEP_PINNED_HEADER;
    buf_printf(&params, "[\"%s\",%s", w->rpc->follow.sub.id, w->block);
    if (put)
        put(w, &params);
    else
        buf_puts(&params, "]");
    if (put == put_key)
        buf_clear(&w->text); /* of a subscription that ended */
    rpc__follow_asking(w, operation);
    if (operation)
        rpc_subscribe_start(w->rpc, &w->sub, method, buf_str(&params), NULL, NULL,
                            rpc__way_answered, operation_event, operation_ended);
    else
        rpc_call_start(w->rpc, &w->sub.call, method, buf_str(&params), 0, NULL, NULL,
                       rpc__way_answered);
    buf_done(&params);
}

/* A way must not end before the call that began it returns, so it waits once in any case. */
void rpc__way_follow_step(struct rpc_way *w)
{
    enum way_step step = rpc__way_now(w);
    bool pinned = step >= STEP_PINNED_HEADER, operation = step > STEP_PINNED_HEADER;
    if (w->rpc->follow.state != FOLLOW_ON || !w->may_end ||
        (operation && !rpc__follow_room(w->rpc))) {
        rpc__follow_wait(w);
        return;
    }
    if (pinned && !is_pinned(w)) {
        not_pinned(w);
        return;
    }
    switch ((int)step) {
    case STEP_KNOWN:
        known(w);
        return;
    case STEP_WATCH:
        watch(w);
        return;
    case STEP_PINNED_HEADER:
        ask(w, "chainHead_v1_header", NULL);
        return;
    case STEP_PINNED_BODY:
        ask(w, "chainHead_v1_body", NULL);
        return;
    case STEP_PINNED_CALL:
        ask(w, "chainHead_v1_call", rpc__way_put_function);
        return;
    case STEP_PINNED_STORAGE:
        ask(w, "chainHead_v1_storage", put_key);
        return;
    default:
        UNREACHABLE();
    }
}

/* ---- answers ---- */

static bool asked_too_much(const struct rpc_way *w, const struct rpc_call *call)
{
    if (rpc__way_now(w) == STEP_PINNED_HEADER)
        return jv_is(call->result, JV_NULL);
    return call->refused == RPC_ERROR_PACE;
}

void rpc__way_follow_answered(struct rpc_way *w, const struct rpc_call *call)
{
    if (asked_too_much(w, call)) {
        rpc_unsubscribe(w->rpc, &w->sub, NULL);
        rpc__follow_wait(w);
        return;
    }
    if (call->err.code) {
        rpc__way_refused_newer(w, call);
        return;
    }
    if (rpc__way_now(w) == STEP_PINNED_HEADER)
        rpc__way_got_header(w, call->result);
    /* Of an operation the events follow. */
}
