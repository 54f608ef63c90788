/* Subscriptions of the older JSON-RPC that chainHead_v1_follow serves: best heads, final heads, the
 * runtime's version. Their items have the older shape. Where several heads follow one another
 * faster than their headers can be asked for, the newest one is notified. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "rpc_ways.h"

static void check_watch(struct follow_watch *v);

static bool is_runtime(const struct follow_watch *v)
{
    return v == &v->rpc->follow.watches[FOLLOW_WATCH_RUNTIME];
}

static const uint8_t *head(const struct follow_watch *v)
{
    const struct rpc_follow *f = &v->rpc->follow;
    return v == &f->watches[FOLLOW_WATCH_BEST] ? f->window.best : f->window.finalized;
}

static void got_header(struct rpc_call *call)
{
    struct follow_watch *v = CONTAINER_OF(call, struct follow_watch, call);
    struct rpc_sub *sub = v->sub;
    if (!sub || v->rpc->phase != RPC_PHASE_OPEN)
        return;
    if (!call->err.code && jv_is(call->result, JV_OBJECT))
        sub->on_item(sub, call->result);
    check_watch(v); /* there may be another one meanwhile */
}

static void ask_header(struct follow_watch *v)
{
    struct buf params = {0};
    memcpy(v->told, head(v), 32);
    buf_puts(&params, "[\"");
    hex_put_0x(&params, v->told, 32);
    buf_puts(&params, "\"]");
    rpc_call_start(v->rpc, &v->call, "chain_getHeader", buf_str(&params), 0, NULL, NULL,
                   got_header);
    buf_done(&params);
}

static void report_runtime(struct follow_watch *v)
{
    struct jv_doc doc = {0};
    const char *text = window_runtime(&v->rpc->follow.window);
    if (!text || (v->runtime && strcmp(text, v->runtime) == 0))
        return;
    free(v->runtime);
    v->runtime = xstrdup(text);
    const struct jv *version = jv_read(&doc, v->runtime, strlen(v->runtime), NULL);
    INVARIANT(version); /* it is a part of a text that parsed */
    v->sub->on_item(v->sub, version);
    jv_done(&doc);
}

static void check_watch(struct follow_watch *v)
{
    if (!v->sub || v->rpc->follow.state != FOLLOW_ON)
        return;
    if (is_runtime(v))
        report_runtime(v);
    else if (!list_linked(&v->call.bucket) && memcmp(v->told, head(v), 32) != 0)
        ask_header(v);
}

void rpc__watches_check(struct rpc *r)
{
    for (size_t i = 0; i < FOLLOW_WATCH_COUNT; i++)
        check_watch(&r->follow.watches[i]);
}

static void first_item(struct loop_task *task)
{
    check_watch(CONTAINER_OF(task, struct follow_watch, task));
}

bool rpc__watch_start(struct rpc *r, enum follow_watch_kind kind, struct rpc_sub *sub)
{
    struct follow_watch *v = &r->follow.watches[kind];
    if (v->sub)
        return false;
    v->sub = sub;
    memset(v->told, 0, sizeof(v->told));
    loop_post(r->loop, &v->task, first_item);
    return true;
}

static void stop(struct follow_watch *v)
{
    v->sub = NULL;
    rpc__call_forget(v->rpc, &v->call);
    loop_task_cancel(&v->task);
    free(v->runtime);
    v->runtime = NULL;
}

bool rpc__watch_stop(struct rpc *r, const struct rpc_sub *sub)
{
    for (size_t i = 0; i < FOLLOW_WATCH_COUNT; i++)
        if (r->follow.watches[i].sub == sub) {
            stop(&r->follow.watches[i]);
            return true;
        }
    return false;
}

void rpc__watches_reset(struct rpc *r)
{
    for (size_t i = 0; i < FOLLOW_WATCH_COUNT; i++)
        stop(&r->follow.watches[i]);
}

void rpc__watches_end(struct rpc *r, const struct err *why)
{
    for (size_t i = 0; i < FOLLOW_WATCH_COUNT; i++)
        if (r->follow.watches[i].sub)
            rpc__sub_end(r, r->follow.watches[i].sub, why);
}
