/* Endpoints that are alive and of no use: too slow for their own blocks, or behind others.
 *
 * A limit of requests that makes catching up take long is left for an endpoint without.
 *
 * An endpoint that lets fewer questions be asked than its blocks need falls behind for ever: each
 * second there are more final blocks that were not read. It is measured: if the lag did not shrink
 * for a while, the endpoint is left for one that did not show the same lately. Where there is none
 * the node stays and says so (node_slow). */
#include "node_slow.h"

#include <stdio.h>

#include "base/check.h"
#include "base/log.h"
#include "node_internal.h"

enum {
    LAG_MIN = NODE_PIPELINE, /* as many blocks are read at once */
    CHECK_TICKS = 30,
    FASTER_MS = 600000, /* another endpoint is not tried for it again before */
    AGAIN_MS = 60000,   /* nor one that lagged, */
    AGAIN_TICKS = 60,   /* nor one that failed, */
    AWAY_TICKS = 5,     /* but where accounts wait, one that failed is: all may have been away */
    TELL_MS = 60000,
    CALLS_A_BLOCK = 3,
    CATCH_UP_MS = 5000, /* a limit that makes it longer is worth another handshake */
};

void slow_forget(struct node *n)
{
    n->slow.since = 0;
    n->slow.on = false;
}

static bool waits_for_others(const struct node *n)
{
    return n->confirm.on || n->second.on || n->away.on;
}

static uint64_t lag_of(const struct node *n)
{
    uint64_t final = n->info.finalized_number;
    return n->following && final >= n->follow_next ? final - n->follow_next + 1 : 0;
}

static bool is_recent(uint64_t at, uint64_t now, uint64_t ms)
{
    return at && now < at + ms;
}

bool slow_lately(const struct endpoint *e, uint64_t now)
{
    return is_recent(e->slow_at, now, FASTER_MS) || is_recent(e->lagged_at, now, AGAIN_MS);
}

/* ticks: an endpoint that failed is not tried before. */
static bool another_may_be_faster(const struct node *n, uint64_t now, unsigned ticks)
{
    uint64_t away_ms = ticks * node__tick_ms(n);
    for (size_t i = 0; i < n->endpoint_count; i++) {
        const struct endpoint *e = &n->endpoints[i];
        if (i != n->endpoint_at && !e->other_chain && !slow_lately(e, now) &&
            !is_recent(e->failed_at, now, away_ms))
            return true;
    }
    return false;
}

void node_behind(struct node *n)
{
    struct err err;
    uint64_t now = loop_now_ms(n->loop);
    if (n->phase != NODE_READY)
        return;
    n->endpoints[n->endpoint_at].lagged_at = now;
    if (!another_may_be_faster(n, now, AWAY_TICKS))
        return;
    err_set(&err, ERR_NET, "%s: at block %llu it is behind %llu, for which an account waits",
            node__url(n), (unsigned long long)n->info.best_number,
            (unsigned long long)n->info.best_known);
    node__fault(n, &err);
}

static void falls_behind(struct node *n, uint64_t lag, uint64_t now)
{
    struct slow *s = &n->slow;
    struct err err;
    uint64_t per_ks = node__rpc(n)->pace.per_ks;
    char pace[60] = "it answers slowly";
    if (per_ks)
        snprintf(pace, sizeof(pace), "it takes %.1f calls a second", (double)per_ks / 1000);
    err_set(&err, ERR_NET, "%s: %s: %llu final blocks are not read yet, %llu were %llu s ago",
            node__url(n), pace, (unsigned long long)lag, (unsigned long long)s->lag,
            (unsigned long long)(now - s->since) / 1000);
    n->endpoints[n->endpoint_at].slow_at = now;
    if (another_may_be_faster(n, now, AGAIN_TICKS)) {
        slow_forget(n);
        node__fault(n, &err);
        return;
    }
    s->on = true;
    snprintf(s->text, sizeof(s->text), "%.199s", err.text);
    if (now >= s->told_at)
        log_warn("node.slow", "text=\"%s\"", s->text);
    if (now >= s->told_at)
        s->told_at = now + TELL_MS;
}

/* After an outage a limit of requests would be most of what the outage lasts for an account. */
static bool leave_for_a_faster_one(struct node *n, uint64_t lag, uint64_t now)
{
    struct err err;
    uint64_t per_ks = node__rpc(n)->pace.per_ks;
    if (!per_ks || lag * CALLS_A_BLOCK * 1000000 / per_ks <= CATCH_UP_MS ||
        !another_may_be_faster(n, now, AWAY_TICKS) ||
        (n->slow.left &&
         is_recent(n->endpoints[n->endpoint_at].slow_at, now, AGAIN_TICKS * node__tick_ms(n))))
        return false;
    err_set(&err, ERR_NET,
            "%s: it takes %.1f calls a second: %llu final blocks are not read yet, and another "
            "endpoint may be faster",
            node__url(n), (double)per_ks / 1000, (unsigned long long)lag);
    n->endpoints[n->endpoint_at].slow_at = now;
    n->slow.left = n->endpoint_at + 1;
    slow_forget(n);
    node__fault(n, &err);
    return true;
}

/* Back at the endpoint that was left: the others are away, and leaving it again would cost it a
 * handshake each time. */
void slow_ready(struct node *n)
{
    if (n->slow.left != n->endpoint_at + 1)
        n->slow.left = 0;
}

void slow_check(struct node *n)
{
    struct slow *s = &n->slow;
    uint64_t now = loop_now_ms(n->loop), lag = lag_of(n);
    PRE(n->phase == NODE_READY);
    if (lag <= LAG_MIN || waits_for_others(n)) {
        slow_forget(n);
        return;
    }
    if (leave_for_a_faster_one(n, lag, now))
        return;
    if (s->since && now < s->since + CHECK_TICKS * node__tick_ms(n))
        return;
    if (s->since && lag >= s->lag)
        falls_behind(n, lag, now);
    else
        s->on = false;
    s->since = now;
    s->lag = lag;
}

const char *node_slow(const struct node *n)
{
    return n->phase == NODE_READY && n->slow.on ? n->slow.text : NULL;
}
