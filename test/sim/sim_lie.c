/* Nodes that lie for a while. Their events belong to a feature of their own, so a seed without it
 * takes the course that it took before there were any. */
#include "sim.h"

enum { TXS_SPARE = 500 };

bool lies(const struct world *w, int node, enum lie lie)
{
    const struct chain_node *n = &w->chain.nodes[node];
    return w->now < n->lie_until && n->lies >> lie & 1;
}

/* At the next nonce after the block: where a transaction of ours is likely to wait. */
uint32_t lie_forged(struct world *w, uint32_t block, int account)
{
    struct chain *c = &w->chain;
    const struct block *b = &c->blocks[block];
    if (c->tx_count + TXS_SPARE > TXS || b->nonce[account] + 2 >= NONCES)
        return 0;
    uint32_t tx = c->tx_count++;
    c->txs[tx] = (struct tx){.account = account,
                             .nonce = b->nonce[account],
                             .id = -1,
                             .birth = -1,
                             .death = -1,
                             .spec = c->blocks[b->parent].spec,
                             .forged = true};
    w->stats.lies++;
    return tx;
}

uint64_t lie_nonce(struct world *w)
{
    w->stats.lies++;
    return UINT32_MAX - rng_below(&w->rng, 3);
}

/* One answer of many: a little below or above the truth. Asked again, the node says what is so. */
uint64_t lie_once(struct world *w, uint64_t nonce)
{
    if (!has(w, FEATURE_NONCES) || w->healing || !chance(w, 4))
        return nonce;
    uint64_t by = between(w, 1, 4);
    w->stats.lies++;
    return nonce >= by && chance(w, 60) ? nonce - by : nonce + by;
}

uint64_t lie_height(struct world *w, uint64_t number)
{
    static const uint64_t far[] = {300, 5000, 1000000, UINT64_C(1) << 61};
    w->stats.lies++;
    return number + far[rng_below(&w->rng, 4)];
}

static void begin(struct world *w, struct event *e)
{
    (void)e;
    if (w->now >= w->plan.faults_end)
        return;
    int node = (int)rng_below(&w->rng, (uint64_t)w->plan.nodes);
    struct chain_node *n = &w->chain.nodes[node];
    n->lies = (unsigned)between(w, 1, (1u << LIES) - 1);
    n->lie_until = w->now + between(w, w->plan.block_us / 2, 6 * w->plan.block_us);
    note(w, "n%d lies (%x)", node, n->lies);
    later(w, between(w, 1, 2 * w->plan.fault_us), "lie", begin);
}

void lie_start(struct world *w)
{
    if (has(w, FEATURE_LIES))
        later(w, between(w, 0, 2 * w->plan.fault_us), "lie", begin);
}
