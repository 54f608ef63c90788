/* The subscription chainHead_v1_follow: made when a question needs it, made anew when the server
 * ends it or when it is silent.
 *
 *   OFF -> ASK_WAIT -> INIT_WAIT -> HEADER_WAIT -> ON      refused, or no first event: NONE (of
 *                                                          this connection)
 *             ^            |             |          |
 *             +------- AGAIN_WAIT <------+----------+       "stop", silence, a contradiction
 *
 * rpc_window.c has the pinned blocks. Ways wait here for their turn: a question names the
 * subscription and a pinned block, and a server takes a few operations at a time. When the
 * subscription ends, its questions are asked again in the next one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "base/log.h"
#include "rpc_ways.h"

enum {
    AGAIN_MS = 1000, /* between two subscriptions */
    ROOM_MS = 200,   /* the server has no room for another operation: it is tried again */
    SILENT_MS = 15000,
};

static void begin(struct rpc *r);
static void due(void *arg);

void rpc__follow_init(struct rpc *r)
{
    list_init(&r->follow.waiting);
    list_init(&r->follow.asking);
    r->follow.timer = loop_timer_new(r->loop, due, r);
    for (size_t i = 0; i < FOLLOW_WATCH_COUNT; i++)
        r->follow.watches[i].rpc = r;
}

void rpc__follow_done(struct rpc *r)
{
    struct rpc_follow *f = &r->follow;
    INVARIANT(list_empty(&f->waiting) && list_empty(&f->asking));
    f->timer = loop_timer_close(f->timer);
    window_done(&f->window);
}

/* ---- the ways that wait ---- */

static struct rpc_way *first_way(struct list *ways)
{
    struct list *n = list_first(ways);
    return n ? CONTAINER_OF(n, struct rpc_way, follow_node) : NULL;
}

/* What waits is tried again at this time, or before. */
static void kick_by(struct rpc *r, uint64_t at)
{
    struct rpc_follow *f = &r->follow;
    if (f->kick_at && f->kick_at <= at)
        return;
    f->kick_at = at;
    loop_timer_at(f->timer, at);
}

void rpc__follow_leave(struct rpc_way *w)
{
    struct rpc_follow *f = &w->rpc->follow;
    PRE(f->operations >= w->operation);
    list_remove(&w->follow_node);
    if (w->operation && f->state == FOLLOW_ON && !list_empty(&f->waiting))
        kick_by(w->rpc, loop_now_ms(w->rpc->loop)); /* there is room for another */
    f->operations -= w->operation;
    w->operation = false;
}

/* Empty `waiting`. */
static void take_waiting(struct rpc *r, struct list *ret_ways)
{
    list_init(ret_ways);
    for (struct list *n = list_first(&r->follow.waiting); n; n = list_first(&r->follow.waiting)) {
        list_remove(n);
        list_append(ret_ways, n);
    }
}

/* Each way that waited goes on, or waits again, behind those that came before. */
static void kick(struct rpc *r)
{
    struct list ways;
    take_waiting(r, &ways);
    for (struct rpc_way *w = first_way(&ways); w; w = first_way(&ways)) {
        list_remove(&w->follow_node);
        w->may_end = true;
        rpc__way_step(w);
    }
}

static void refuse_all(struct rpc *r)
{
    struct list ways;
    /* A copy: a new question may begin another subscription. */
    const struct rpc_call why = {.err = r->follow.refusal, .refused = r->follow.refused};
    take_waiting(r, &ways);
    for (struct rpc_way *w = first_way(&ways); w; w = first_way(&ways)) {
        list_remove(&w->follow_node);
        rpc__way_refused_newer(w, &why);
    }
}

void rpc__follow_wait(struct rpc_way *w)
{
    struct rpc *r = w->rpc;
    struct rpc_follow *f = &r->follow;
    rpc__follow_leave(w);
    list_append(&f->waiting, &w->follow_node);
    if (f->state == FOLLOW_OFF)
        begin(r);
    else if (f->state == FOLLOW_ON && w->may_end)
        kick_by(r, loop_now_ms(r->loop) + ROOM_MS);
    else if (f->state == FOLLOW_ON || f->state == FOLLOW_NONE)
        kick_by(r, loop_now_ms(r->loop));
}

bool rpc__follow_room(const struct rpc *r)
{
    return r->follow.operations < FOLLOW_OPERATIONS_MAX;
}

void rpc__follow_asking(struct rpc_way *w, bool operation)
{
    struct rpc_follow *f = &w->rpc->follow;
    PRE(f->state == FOLLOW_ON);
    rpc__follow_leave(w);
    list_append(&f->asking, &w->follow_node);
    w->operation = operation;
    f->operations += operation;
}

/* ---- the end ---- */

/* The subscription is over; `unfollow` if the server does not know. */
static void end(struct rpc *r, bool unfollow)
{
    struct rpc_follow *f = &r->follow;
    rpc_unsubscribe(r, &f->sub, unfollow ? "chainHead_v1_unfollow" : NULL);
    rpc__call_forget(r, &f->header);
    for (struct rpc_way *w = first_way(&f->asking); w; w = first_way(&f->asking)) {
        rpc_unsubscribe(r, &w->sub, NULL);
        rpc__follow_leave(w);
        list_append(&f->waiting, &w->follow_node);
    }
    INVARIANT(f->operations == 0);
    f->kick_at = 0;
    window_done(&f->window);
}

static void again(struct rpc *r, bool unfollow, const char *why)
{
    struct rpc_follow *f = &r->follow;
    uint64_t now = loop_now_ms(r->loop), at = f->begun_ms + AGAIN_MS;
    log_info("node.follow_again", "url=%s text=\"%s\"", r->config.url, why);
    end(r, unfollow);
    f->state = FOLLOW_AGAIN_WAIT;
    loop_timer_at(f->timer, at > now ? at : now);
}

void rpc__follow_reset(struct rpc *r)
{
    struct rpc_follow *f = &r->follow;
    end(r, false);
    INVARIANT(list_empty(&f->waiting)); /* their calls have ended */
    f->state = FOLLOW_OFF;
    loop_timer_stop(f->timer);
    rpc__watches_reset(r);
}

static void give_up(struct rpc *r, const struct err *why, enum rpc_error refused)
{
    struct rpc_follow *f = &r->follow;
    struct err err = *why;
    f->refusal = err;
    f->refused = refused;
    f->state = refused == RPC_ERROR_METHOD ? FOLLOW_NONE : FOLLOW_OFF;
    end(r, true);
    refuse_all(r);
    rpc__watches_end(r, &err);
}

/* The endpoint refuses the subscription, or the header without which it is of no use. */
static void refused(struct rpc *r, const struct rpc_call *call)
{
    struct err why;
    err_set(&why, ERR_RPC, "%s: %s: %s", r->config.url, call->method, call->err.text);
    give_up(r, &why, call->refused);
}

/* No answer, or no first event: as good as refused. What waits for it has a deadline of its own. */
static void never_began(struct rpc *r)
{
    struct err why;
    err_set(&why, ERR_RPC, "chainHead_v1_follow: no %s from %s in time",
            r->follow.state == FOLLOW_ASK_WAIT ? "answer" : "first event", r->config.url);
    log_info("node.follow_silent", "url=%s", r->config.url);
    give_up(r, &why, RPC_ERROR_METHOD);
}

static bool begins(const struct rpc_follow *f)
{
    return f->state == FOLLOW_INIT_WAIT || f->state == FOLLOW_ASK_WAIT;
}

static uint64_t silent_at(const struct rpc *r)
{
    return r->follow.heard_ms + (begins(&r->follow) ? r->config.call_timeout_ms / 2 : SILENT_MS);
}

static void due(void *arg)
{
    struct rpc *r = arg;
    struct rpc_follow *f = &r->follow;
    uint64_t now = loop_now_ms(r->loop);
    f->kick_at = 0;
    switch (f->state) {
    case FOLLOW_AGAIN_WAIT:
        begin(r);
        return;
    case FOLLOW_ASK_WAIT:
    case FOLLOW_INIT_WAIT:
    case FOLLOW_HEADER_WAIT:
    case FOLLOW_ON:
        if (f->state == FOLLOW_ASK_WAIT && !f->sub.call.written)
            f->heard_ms = now; /* the call waits for its turn */
        if (now >= silent_at(r) && begins(f)) {
            never_began(r);
            return;
        }
        if (now >= silent_at(r)) {
            again(r, true, "it is silent");
            return;
        }
        loop_timer_at(f->timer, silent_at(r));
        if (f->state == FOLLOW_ON)
            kick(r);
        return;
    case FOLLOW_NONE:
        refuse_all(r);
        return;
    case FOLLOW_OFF:
        return;
    }
}

/* ---- events ---- */

static void on(struct rpc *r)
{
    r->follow.state = FOLLOW_ON;
    rpc__watches_check(r);
    kick(r);
}

static void got_header(struct rpc_call *call)
{
    struct rpc *r = CONTAINER_OF(call, struct rpc, follow.header);
    struct rpc_follow *f = &r->follow;
    if (f->state != FOLLOW_HEADER_WAIT || call->err.code == ERR_NET ||
        call->err.code == ERR_CANCELED)
        return;
    if (call->refused == RPC_ERROR_METHOD) {
        refused(r, call);
        return;
    }
    if (call->err.code || !rpc__way_header_height(call->result, &f->base)) {
        again(r, true, call->err.code ? call->err.text : "a final block has no header");
        return;
    }
    on(r);
}

static void ask_header(struct rpc *r)
{
    struct buf params = {0};
    r->follow.state = FOLLOW_HEADER_WAIT;
    buf_printf(&params, "[\"%s\",\"", r->follow.sub.id);
    hex_put_0x(&params, r->follow.window.finalized, 32);
    buf_puts(&params, "\"]");
    rpc_call_start(r, &r->follow.header, "chainHead_v1_header", buf_str(&params), 0, NULL, NULL,
                   got_header);
    buf_done(&params);
}

static void unpin(struct rpc *r, const struct buf *hashes)
{
    struct buf params = {0};
    if (!hashes->len)
        return;
    buf_printf(&params, "[\"%s\",[", r->follow.sub.id);
    for (size_t i = 0; i < hashes->len; i += 32) {
        buf_puts(&params, i ? ",\"" : "\"");
        hex_put_0x(&params, hashes->data + i, 32);
        buf_puts(&params, "\"");
    }
    buf_puts(&params, "]]");
    rpc__notify(r, "chainHead_v1_unpin", buf_str(&params));
    buf_done(&params);
}

static void took_event(struct rpc *r, const struct jv *event)
{
    struct rpc_follow *f = &r->follow;
    struct buf pins = {0};
    bool good = window_take(&f->window, event, &pins);
    bool first = jv_equals(jv_get(event, "event"), "initialized");
    if (good)
        unpin(r, &pins);
    buf_done(&pins);
    if (!good || first != (f->state == FOLLOW_INIT_WAIT))
        again(r, true, "an event contradicts those before it");
    else if (first)
        ask_header(r);
    else if (f->state == FOLLOW_ON)
        rpc__watches_check(r);
}

static void item(struct rpc_sub *sub, const struct jv *event)
{
    struct rpc *r = CONTAINER_OF(sub, struct rpc, follow.sub);
    const struct jv *name = jv_get(event, "event"), *operation = jv_get(event, "operationId");
    char id[72];
    r->follow.heard_ms = loop_now_ms(r->loop);
    if (jv_equals(name, "stop")) {
        again(r, false, "the server ended it");
    } else if (operation) {
        if (rpc__operation_id(operation, id))
            rpc__notify_item(r, id, event);
    } else {
        took_event(r, event);
    }
}

static void ended(struct rpc_sub *sub, const struct err *err)
{
    struct rpc *r = CONTAINER_OF(sub, struct rpc, follow.sub);
    if (r->phase == RPC_PHASE_OPEN)
        again(r, false, err->text);
}

static void answered(struct rpc_call *call)
{
    struct rpc *r = CONTAINER_OF(CONTAINER_OF(call, struct rpc_sub, call), struct rpc, follow.sub);
    struct rpc_follow *f = &r->follow;
    PRE(f->state == FOLLOW_ASK_WAIT);
    if (r->phase != RPC_PHASE_OPEN)
        return; /* rpc__follow_reset follows */
    if (call->refused == RPC_ERROR_PACE || call->err.code == ERR_TIMEOUT) {
        again(r, true, call->err.text);
    } else if (call->err.code) {
        refused(r, call);
    } else {
        f->state = FOLLOW_INIT_WAIT;
        f->heard_ms = loop_now_ms(r->loop);
        loop_timer_at(f->timer, silent_at(r));
    }
}

static void begin(struct rpc *r)
{
    struct rpc_follow *f = &r->follow;
    PRE(r->phase == RPC_PHASE_OPEN);
    f->state = FOLLOW_ASK_WAIT;
    f->begun_ms = f->heard_ms = loop_now_ms(r->loop);
    f->times++;
    loop_timer_at(f->timer, silent_at(r));
    rpc_subscribe_start(r, &f->sub, "chainHead_v1_follow", "[true]", NULL, NULL, answered, item,
                        ended);
}
