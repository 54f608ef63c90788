/* Calls in flight: ids, frames, deadlines, answers.
 *
 *   begun (queued) -> written -> answered                   cb fires once, from the loop
 *        \              \-----> deadline, lost, canceled
 *         \-> gate shut, deadline, lost, canceled */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "rpc_internal.h"

enum { WAY_MAX_MS = 60000 }; /* a call that is asked in another way lasts no longer */

static void deadline_passed(void *arg);

void rpc__calls_init(struct rpc *r)
{
    r->next_id = 1;
    rpc__table_init(&r->calls);
    list_init(&r->by_deadline);
    list_init(&r->orphans);
    r->deadline = loop_timer_new(r->loop, deadline_passed, r);
    list_init(&r->paced[0]);
    list_init(&r->paced[1]);
    r->pace_timer = loop_timer_new(r->loop, rpc__pace_due, r);
}

static struct rpc_call *first_by_deadline(struct rpc *r)
{
    struct list *n = list_first(&r->by_deadline);
    return n ? CONTAINER_OF(n, struct rpc_call, node) : NULL;
}

/* Remove the call from every list. */
static void call_leave(struct rpc *r, struct rpc_call *call)
{
    rpc__table_remove(&r->calls, &call->bucket);
    list_remove(&call->node);
    if (call->frame)
        ws_frame_cancel(call->frame);
    call->frame = NULL;
    free(call->params);
    call->params = NULL;
    call->paced = false;
    if (call->sub)
        rpc__sub_unanswered_end(r, call->sub);
    if (call->way)
        rpc__way_drop(call->way);
    call->way = NULL;
}

void rpc__call_failed(struct rpc *r, struct rpc_call *call, const struct err *why)
{
    PRE(why->code);
    r->failures += call->written;
    call_leave(r, call);
    call->err = *why;
    call->result = NULL;
    call->cb(call);
}

/* ---- starting ---- */

static void failed_task(struct loop_task *task)
{
    struct rpc_call *call = CONTAINER_OF(task, struct rpc_call, task);
    PRE(call->err.code);
    call->cb(call);
}

void rpc__call_fail_later(struct loop *l, struct rpc_call *call, int code, const char *text,
                          void (*cb)(struct rpc_call *call))
{
    *call = (struct rpc_call){.cb = cb};
    err_set(&call->err, code, "%s", text);
    loop_post(l, &call->task, failed_task);
}

static struct ws_frame *frame_new(uint64_t id, const char *method, const char *params)
{
    size_t params_len = strlen(params);
    char head[160];
    int head_len = snprintf(head, sizeof(head),
                            "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"%s\",\"params\":",
                            (unsigned long long)id, method);
    PRE(head_len > 0 && (size_t)head_len < sizeof(head));
    size_t len = (size_t)head_len + params_len + 1;
    struct ws_frame *frame = ws_frame_new(len);
    char *p = ws_frame_text(frame);
    memcpy(p, head, (size_t)head_len);
    memcpy(p + head_len, params, params_len);
    p[len - 1] = '}';
    return frame;
}

/* How the call's frame ended. */
static void frame_ended(void *arg, enum ws_frame_end end)
{
    struct rpc_call *call = arg;
    struct err why;
    PRE(call->frame);
    call->frame = NULL;
    switch (end) {
    case WS_FRAME_WRITTEN:
        call->written = true;
        call->answers_before = call->rpc->answers;
        return;
    case WS_FRAME_REFUSED:
        err_set(&why, ERR_NOT_LEADER, "%s was not sent: the gate is shut", call->method);
        rpc__call_failed(call->rpc, call, &why);
        return;
    case WS_FRAME_UNSENT: /* the end of the connection fails the call */
        return;
    }
    UNREACHABLE();
}

static uint64_t call_hash(struct list *n)
{
    return CONTAINER_OF(n, struct rpc_call, bucket)->id;
}

/* Searches from the end: nearly all calls have the same time-out. */
static void insert_by_deadline(struct rpc *r, struct rpc_call *call)
{
    struct list *after = r->by_deadline.prev;
    while (after != &r->by_deadline &&
           CONTAINER_OF(after, struct rpc_call, node)->deadline_ms > call->deadline_ms)
        after = after->prev;
    call->node.prev = after;
    call->node.next = after->next;
    after->next->prev = &call->node;
    after->next = &call->node;
    if (first_by_deadline(r) == call || !loop_timer_armed(r->deadline))
        loop_timer_at(r->deadline, call->deadline_ms);
}

void rpc__call_send(struct rpc *r, struct rpc_call *call, const char *params)
{
    uint64_t now = loop_now_ms(r->loop);
    call->sent_ms = now;
    r->sent++;
    call->deadline_ms = now + call->timeout_ms;
    call->frame = frame_new(call->id, call->method, params);
    insert_by_deadline(r, call);
    pace_sent(&r->pace, now);
    ws_client_send(r->ws, call->frame, call->before_write, call->before_arg, frame_ended, call);
}

/* The call is not written: its way has calls of its own, and each of them may wait for its turn. */
static void asked_otherwise(struct rpc *r, struct rpc_call *call)
{
    call->written = true;
    call->answers_before = r->answers;
    call->deadline_ms = loop_now_ms(r->loop) + WAY_MAX_MS;
    insert_by_deadline(r, call);
}

void rpc__call_end(struct rpc *r, struct rpc_call *call, const struct jv *result)
{
    PRE(!call->way && (result || call->err.code));
    char sub_id[sizeof(call->sub->id)] = ""; /* a copy: cb may free the subscription */
    struct rpc_sub *sub = call->sub;
    call_leave(r, call);
    if (sub && result) {
        bool good = rpc__sub_accept(r, sub, result);
        INVARIANT(good);
        memcpy(sub_id, sub->id, sizeof(sub_id));
    }
    call->result = result;
    call->cb(call);
    if (sub)
        rpc__sub_settled(r, sub_id);
}

static void call_clear(struct rpc *r, struct rpc_call *call, void (*cb)(struct rpc_call *call))
{
    PRE(cb);
    PRE(!list_linked(&call->bucket) && !list_linked(&call->task.node)); /* one call at a time */
    *call = (struct rpc_call){.cb = cb, .rpc = r, .connection = r->connection};
}

void rpc__call_begin(struct rpc *r, struct rpc_call *call, const char *method, const char *params,
                     uint32_t timeout_ms, bool (*before_write)(void *arg), void *before_arg,
                     void (*cb)(struct rpc_call *call))
{
    call_clear(r, call, cb);
    call->method = method;
    if (r->phase != RPC_PHASE_OPEN) {
        bool closing = r->phase == RPC_PHASE_CLOSING;
        err_set(&call->err, closing ? ERR_CANCELED : ERR_NET, "%s to %s: %s", method, r->config.url,
                closing ? "the connection is being closed" : "not connected");
        loop_post(r->loop, &call->task, failed_task);
        return;
    }
    call->id = r->next_id++;
    call->before_write = before_write;
    call->before_arg = before_arg;
    call->timeout_ms = timeout_ms ? timeout_ms : r->config.call_timeout_ms;
    call->begun_ms = loop_now_ms(r->loop);
    size_t size = strlen(params) + 1;
    if (!before_write && size <= sizeof(call->again))
        memcpy(call->again, params, size);
    rpc__table_add(&r->calls, &call->bucket, call->id, call_hash);
    if (!before_write && rpc__way_begin(r, call, params)) {
        asked_otherwise(r, call);
        return;
    }
    bool waits = !list_empty(&r->paced[0]) || !list_empty(&r->paced[1]);
    if (!waits && pace_next(&r->pace, call->begun_ms) == call->begun_ms) {
        rpc__call_send(r, call, params);
        return;
    }
    if (!call->again[0])
        call->params = xstrdup(params);
    rpc__call_wait(r, call, false);
}

void rpc_call_start(struct rpc *r, struct rpc_call *call, const char *method, const char *params,
                    uint32_t timeout_ms, bool (*before_write)(void *arg), void *before_arg,
                    void (*cb)(struct rpc_call *call))
{
    rpc__call_begin(r, call, method, params, timeout_ms, before_write, before_arg, cb);
}

void rpc__notify(struct rpc *r, const char *method, const char *params)
{
    if (r->phase == RPC_PHASE_OPEN)
        ws_client_send(r->ws, frame_new(r->next_id++, method, params), NULL, NULL, NULL, NULL);
}

void rpc__call_adopt(struct rpc *r, struct rpc_call *call, uint64_t id,
                     void (*cb)(struct rpc_call *call))
{
    PRE(id > 0 && id < r->next_id);
    call_clear(r, call, cb);
    call->id = id;
    call->written = true;
    rpc__table_add(&r->calls, &call->bucket, call->id, call_hash);
    list_append(&r->orphans, &call->node);
}

void rpc__call_forget(struct rpc *r, struct rpc_call *call)
{
    loop_task_cancel(&call->task);
    if (list_linked(&call->bucket))
        call_leave(r, call);
}

/* ---- ending ---- */

static void deadline_passed(void *arg)
{
    struct rpc *r = arg;
    uint64_t now = loop_now_ms(r->loop);
    bool dead = false;
    struct err why;
    for (struct rpc_call *call = first_by_deadline(r); call; call = first_by_deadline(r)) {
        if (call->deadline_ms > now)
            break;
        dead |= call->written && call->answers_before == r->answers;
        err_set(&why, ERR_TIMEOUT, "%s: no answer from %s in time%s", call->method, r->config.url,
                call->written ? "" : " (never sent)");
        rpc__call_failed(r, call, &why);
    }
    if (first_by_deadline(r))
        loop_timer_at(r->deadline, first_by_deadline(r)->deadline_ms);
    if (!dead || r->phase != RPC_PHASE_OPEN)
        return;
    err_set(&why, ERR_NET, "%s answers no calls any more", r->config.url);
    rpc__lose(r, &why);
}

void rpc__calls_fail(struct rpc *r, const struct err *why)
{
    for (struct rpc_call *call = first_by_deadline(r); call; call = first_by_deadline(r))
        rpc__call_failed(r, call, why);
    for (struct list *n = list_first(&r->orphans); n; n = list_first(&r->orphans))
        rpc__call_failed(r, CONTAINER_OF(n, struct rpc_call, node), why);
    for (size_t i = 0; i < ARRAY_LEN(r->paced); i++)
        for (struct list *n = list_first(&r->paced[i]); n; n = list_first(&r->paced[i]))
            rpc__call_failed(r, CONTAINER_OF(n, struct rpc_call, node), why);
    loop_timer_stop(r->pace_timer);
}

void rpc__calls_done(struct rpc *r)
{
    PRE(list_empty(&r->by_deadline) && list_empty(&r->orphans));
    PRE(list_empty(&r->paced[0]) && list_empty(&r->paced[1]));
    r->deadline = loop_timer_close(r->deadline);
    r->pace_timer = loop_timer_close(r->pace_timer);
    rpc__table_done(&r->calls);
}

/* ---- answers ---- */

static struct rpc_call *call_find(struct rpc *r, uint64_t id)
{
    struct list *bucket = rpc__table_bucket(&r->calls, id);
    LIST_EACH (n, bucket) {
        struct rpc_call *call = CONTAINER_OF(n, struct rpc_call, bucket);
        if (call->id == id)
            return call->written ? call : NULL;
    }
    return NULL;
}

/* A node answers with id null if it could not read a request or the request was too large. If only
 * one call is in flight the answer belongs to it; otherwise the call fails by its deadline. */
static struct rpc_call *call_of(struct rpc *r, const struct jv *message)
{
    const struct jv *id = jv_get(message, "id");
    int64_t number;
    char text[24];
    size_t len = jv_copy(id, text, sizeof(text));
    if (len > 0 && len < sizeof(text)) { /* a gateway has made a text of it */
        char *end;
        unsigned long long value = strtoull(text, &end, 10);
        return *end ? NULL : call_find(r, value);
    }
    if (jv_int(id, &number))
        return number > 0 ? call_find(r, (uint64_t)number) : NULL;
    if (jv_is(id, JV_NULL) && r->calls.count == 1 && first_by_deadline(r) &&
        first_by_deadline(r)->written)
        return first_by_deadline(r);
    return NULL;
}

static void take_error(struct rpc_call *call, const struct jv *error)
{
    char text[sizeof(call->err.text)];
    const struct jv *message = jv_get(error, "message"), *data = jv_get(error, "data");
    jv_copy(message, text, sizeof(text));
    if (jv_is(error, JV_STRING)) /* of a gateway */
        jv_copy(error, text, sizeof(text));
    err_set(&call->err, ERR_RPC, "%s",
            jv_is(message, JV_STRING) || jv_is(error, JV_STRING) ? text : "(no message)");
    jv_int(jv_get(error, "code"), &call->rpc_code);
    if (jv_is(data, JV_STRING))
        jv_copy(data, call->rpc_data, sizeof(call->rpc_data));
    else if (!jv_is(data, JV_NULL))
        jv_text(data, call->rpc_data, sizeof(call->rpc_data));
    call->refused = rpc_error_of(call->rpc_code, call->err.text, call->rpc_data);
}

/* chainHead_v1: too many operations at a time. */
static void limit_reached(struct rpc_call *call)
{
    err_set(&call->err, ERR_RPC, "%s: limitReached", call->method);
    call->refused = RPC_ERROR_PACE;
    call->result = NULL;
}

void rpc__answer(struct rpc *r, const struct jv *message)
{
    PRE(r->phase == RPC_PHASE_OPEN);
    struct rpc_call *call = call_of(r, message);
    r->answers++;
    if (!call)
        return; /* its call has ended */
    const struct jv *error = jv_get(message, "error"), *result = jv_get(message, "result");
    char sub_id[sizeof(call->sub->id)] = ""; /* a copy: cb may free the subscription */
    struct rpc_sub *sub = call->sub;
    if (jv_is(error, JV_OBJECT) || jv_is(error, JV_STRING))
        take_error(call, error);
    if (rpc__pace_told(r, call))
        return;
    rpc__closed_check(r, call);
    if (call->refused == RPC_ERROR_METHOD && rpc__way_refused(r, call)) {
        list_remove(&call->node);
        asked_otherwise(r, call);
        return;
    }
    call_leave(r, call);
    r->took_ms += loop_now_ms(r->loop) - call->sent_ms;
    if (call->method && !call->err.code && !strcmp(call->method, "state_queryStorageAt"))
        r->queries = true;
    r->failures += call->err.code != 0;
    if (call->err.code)
        call->result = NULL;
    else if (!result)
        err_set(&call->err, ERR_PROTOCOL, "%s: %s answered with neither result nor error",
                call->method, r->config.url);
    else if (sub && jv_equals(jv_get(result, "result"), "limitReached"))
        limit_reached(call);
    else if (sub && !rpc__sub_accept(r, sub, result))
        err_set(&call->err, ERR_PROTOCOL, "%s: %s named no subscription", call->method,
                r->config.url);
    else
        call->result = result;
    if (sub && sub->active)
        memcpy(sub_id, sub->id, sizeof(sub_id));
    call->cb(call);
    if (sub)
        rpc__sub_settled(r, sub_id);
}
