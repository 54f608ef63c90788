/* A node that begins anew, like one whose disk was replaced. It answers from block 0 alone, and
 * jumps to the height of the other nodes later. The other nodes make blocks meanwhile. */
#include "sim.h"

static struct chain_node *node_at(struct world *w, int node)
{
    return &w->chain.nodes[node];
}

/* Blocks that a node of the network has which no relay can ask. */
uint32_t warp_best(const struct world *w)
{
    const struct chain *c = &w->chain;
    uint32_t best = c->final;
    for (uint32_t i = c->block_count; i-- > c->final;)
        if (c->blocks[i].number > c->blocks[best].number &&
            ancestor_at(w, i, c->blocks[c->final].number) == c->final)
            best = i;
    return best;
}

bool warps(const struct world *w)
{
    for (int k = 0; k < w->plan.nodes; k++)
        if (w->now < w->chain.nodes[k].warp_until)
            return true;
    return false;
}

void warp_block(struct world *w)
{
    if (!warps(w) || has(w, FEATURE_DEMAND))
        return;
    uint32_t block = block_new(w, warp_best(w));
    for (int k = 0; k < w->plan.nodes; k++)
        tell_block(w, k, block, 0);
}

static void jump(struct world *w, struct event *e)
{
    struct chain_node *n = node_at(w, (int)e->a);
    if (n->best || w->now < n->warp_until)
        return;
    n->warp_until = 0;
    note(w, "n%u jumps", e->a);
    pool_set_best(w, (int)e->a, warp_best(w));
    pool_set_final(w, (int)e->a, w->chain.final);
}

static void begin(struct world *w, struct event *e)
{
    (void)e;
    if (w->now >= w->plan.faults_end)
        return;
    int node = (int)rng_below(&w->rng, (uint64_t)w->plan.nodes);
    struct chain_node *n = node_at(w, node);
    later(w, between(w, 1, 20 * w->plan.fault_us), "a node begins anew", begin);
    if (w->now < n->warp_until || w->now < n->down_until)
        return;
    uint64_t us = chance(w, 50) ? between(w, 1, 10) * w->plan.block_us
                                : between(w, 10, 80) * w->plan.block_us;
    note(w, "n%d begins anew", node);
    w->stats.warped++;
    node_restart(w, node, between(w, 100 * MS, SECOND));
    for (uint32_t i = 1; i < w->chain.tx_count; i++)
        w->chain.txs[i].included_at[node] = 0;
    n->best = n->final = 0;
    n->warp_until = w->now + us;
    struct event *then = later(w, us, "jumps", jump);
    then->a = (uint32_t)node;
}

void warp_end(struct world *w)
{
    for (int k = 0; k < w->plan.nodes; k++) {
        struct chain_node *n = node_at(w, k);
        if (n->best)
            continue;
        struct event now = {.a = (uint32_t)k};
        n->warp_until = 0;
        jump(w, &now);
    }
}

void warp_start(struct world *w)
{
    if (has(w, FEATURE_WARP))
        later(w, between(w, 0, 10 * w->plan.fault_us), "a node begins anew", begin);
}
