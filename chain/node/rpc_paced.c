/* Calls that wait for their turn (pace.h), reads and submissions apart, and calls that the endpoint
 * refused as too many. */
#include <stdlib.h>

#include "base/check.h"
#include "base/log.h"
#include "rpc_internal.h"

enum {
    PACED_MAX_MS = 60000, /* a call waits no longer for its turn, and is repeated no longer */
};

void rpc__call_wait(struct rpc *r, struct rpc_call *call, bool first)
{
    PRE(!list_linked(&call->node) && (call->again[0] || call->params));
    struct list *queue = &r->paced[call->before_write != NULL];
    call->paced = true;
    list_append(first ? queue->next : queue, &call->node);
    if (!loop_timer_armed(r->pace_timer))
        loop_timer_at(r->pace_timer, pace_next(&r->pace, loop_now_ms(r->loop)));
}

/* Reads and submissions in turn. */
static struct rpc_call *paced_first(struct rpc *r)
{
    struct list *n = list_first(&r->paced[r->paced_turn % 2]);
    if (!n)
        n = list_first(&r->paced[(r->paced_turn + 1) % 2]);
    r->paced_turn++;
    return n ? CONTAINER_OF(n, struct rpc_call, node) : NULL;
}

void rpc__pace_due(void *arg)
{
    struct rpc *r = arg;
    uint64_t now = loop_now_ms(r->loop);
    while (r->phase == RPC_PHASE_OPEN && pace_next(&r->pace, now) == now) {
        struct rpc_call *call = paced_first(r);
        struct err why;
        if (!call)
            return;
        if (now > call->begun_ms + PACED_MAX_MS) {
            err_set(&why, ERR_TIMEOUT, "%s: %s takes too few calls (never sent)", call->method,
                    r->config.url);
            rpc__call_failed(r, call, &why);
            continue;
        }
        list_remove(&call->node);
        call->paced = false;
        rpc__call_send(r, call, call->params ? call->params : call->again);
        free(call->params);
        call->params = NULL;
    }
    if (!list_empty(&r->paced[0]) || !list_empty(&r->paced[1]))
        loop_timer_at(r->pace_timer, pace_next(&r->pace, now));
}

bool rpc__pace_told(struct rpc *r, struct rpc_call *call)
{
    uint64_t now = loop_now_ms(r->loop);
    if (call->refused != RPC_ERROR_PACE) {
        pace_answered(&r->pace, now);
        return false;
    }
    bool told = r->pace.per_ks != 0;
    uint64_t retry_ms = rpc_error_retry_ms(call->err.text, call->rpc_data);
    pace_refused(&r->pace, now, call->sent_ms, retry_ms);
    if (!told)
        log_warn("node.limit", "url=%s method=%s text=\"%s\" calls_per_second=%.1f", r->config.url,
                 call->method, call->err.text, (double)r->pace.per_ks / 1000);
    if (call->sub || !call->again[0] || now > call->begun_ms + PACED_MAX_MS)
        return false;
    list_remove(&call->node);
    err_clear(&call->err);
    call->refused = RPC_ERROR_NONE;
    call->written = false;
    rpc__call_wait(r, call, true);
    return true;
}
