/* May the present endpoint be used? Its chain must be the node's, and it must not lag behind what
 * is known of the chain while another endpoint may be better. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "node_internal.h"

enum { LAG_RETRY_MS = 60000 /* if all endpoints lag, wait before trying them again */ };

/* ---- the chain ---- */

/* One endpoint of another chain is left like any other that does not work. */
static bool all_are_of_another_chain(const struct node *n)
{
    for (size_t i = 0; i < n->endpoint_count; i++)
        if (!n->endpoints[i].other_chain)
            return false;
    return true;
}

static bool is_refused(const struct node *n, const uint8_t genesis[32])
{
    for (size_t i = 0; i < n->refused_count; i++)
        if (memcmp(n->refused[i], genesis, 32) == 0)
            return true;
    return false;
}

bool node_refuse_chain(struct node *n, const uint8_t genesis[32], const struct err *why)
{
    PRE(why->code);
    if (n->config.genesis)
        return false;
    if (n->phase != NODE_READY || memcmp(n->genesis, genesis, 32) != 0)
        return true; /* it has been left */
    n->endpoints[n->endpoint_at].other_chain = true;
    n->refused = xrealloc(n->refused, (n->refused_count + 1) * sizeof(*n->refused));
    memcpy(n->refused[n->refused_count++], genesis, 32);
    n->genesis_known = false;
    /* Nothing that was read there is true of another chain. */
    LIST_EACH (pos, &n->runtimes)
        CONTAINER_OF(pos, struct runtime, node)->replaced = true;
    n->heard = (struct heard){0};
    n->info.best_known = 0;
    node__fault(n, why);
    return true;
}

bool eligible_chain(struct node *n, const uint8_t genesis[32], struct err *ret_why)
{
    bool other = n->genesis_known ? memcmp(n->genesis, genesis, 32) != 0 : is_refused(n, genesis);
    n->endpoints[n->endpoint_at].other_chain = other;
    if (other) {
        char want[HASH_TEXT], have[HASH_TEXT];
        wire_hash_text(n->genesis, want);
        wire_hash_text(genesis, have);
        err_set(ret_why, all_are_of_another_chain(n) ? ERR_GENESIS : ERR_PROTOCOL,
                "another chain: the genesis is %s, wanted is %s; the node is %s", have,
                n->genesis_known ? want : "that of the registered accounts", node__url(n));
    }
    return !other;
}

/* ---- the lag ---- */

bool eligible_lags(struct node *n)
{
    bool behind = n->info.best_number + NODE_LAG_MAX < n->info.best_known;
    if (behind && n->lag_refusals + 1 < n->endpoint_count) {
        n->lag_refusals++;
        return true;
    }
    n->lag_refusals = 0;
    if (behind)
        n->lag_retry_at = loop_now_ms(n->loop) + LAG_RETRY_MS;
    return false;
}

void eligible_leave_lagging(struct node *n)
{
    struct err err;
    err_set(&err, ERR_NET, "%s: at block %llu it is behind %llu, the best known", node__url(n),
            (unsigned long long)n->info.best_number, (unsigned long long)n->info.best_known);
    n->step = HS_IDLE;
    node__fault(n, &err);
}

static void expected(struct loop_task *task)
{
    struct node *n = CONTAINER_OF(task, struct node, expect);
    if (n->phase == NODE_READY && loop_now_ms(n->loop) >= n->lag_retry_at && eligible_lags(n))
        eligible_leave_lagging(n);
}

void node_expect_height(struct node *n, uint64_t height)
{
    if (!heads_raise_best_known(n, height, true))
        return;
    loop_task_cancel(&n->expect);
    loop_post(n->loop, &n->expect, expected);
}
