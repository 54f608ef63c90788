/* Blocks: who makes them, on which parent, what is in them, and which are final. Every node has
 * a view of its own (sim_pool.c); a block is known to a node when it was told, and with it all
 * that is below. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static const uint64_t SPREAD = 0x9e3779b97f4a7c15u;

void hash_of_tx(uint32_t tx, uint8_t out[32])
{
    uint64_t spread = (tx + 1) * SPREAD;
    memset(out, 0x5a, 32);
    memcpy(out, &spread, 8);
    memcpy(out + 8, &tx, sizeof(tx));
}

uint32_t tx_of_hash(const struct world *w, const uint8_t hash[32])
{
    uint32_t tx;
    memcpy(&tx, hash + 8, sizeof(tx));
    return hash[31] == 0x5a && tx < w->chain.tx_count ? tx : 0;
}

void hash_of_block(uint32_t block, uint8_t out[32])
{
    uint64_t spread = (block + 1) * SPREAD;
    memset(out, 0xb1, 32);
    memcpy(out, &spread, 8);
    memcpy(out + 8, &block, sizeof(block));
}

uint32_t block_of_hash(const uint8_t hash[32])
{
    uint32_t block;
    memcpy(&block, hash + 8, sizeof(block));
    return block;
}

/* ---- transactions ---- */

/* A call that the runtime refuses for ever, or for eight blocks out of sixteen. Not with
 * immortal eras: there bytes that may be out can be included for ever, so that such a
 * transaction cannot be given up (a filler would have to be signed as one of its attempts). */
bool refuses_call(const struct world *w, int64_t id, uint64_t number)
{
    if (!w->plan.era || id <= 0)
        return false;
    return id % 23 == 0 || (id % 29 == 0 && number % 16 < 8);
}

bool never_admitted(int64_t id)
{
    return id > 0 && id % 41 == 0;
}

/* Some fail for ever, some at two nonces out of three, some in a part of them that was tried all
 * the same. */
enum fate fate_of(const struct world *w, const struct tx *t)
{
    if (t->id <= 0)
        return FATE_OK;
    if (t->id % 11 == 5)
        return FATE_FAILS;
    if (has(w, FEATURE_RETRIES) && t->id % 11 == 6)
        return ((uint64_t)t->id + t->nonce) % 3 ? FATE_FAILS : FATE_OK;
    return has(w, FEATURE_RETRIES) && t->id % 13 == 4 ? FATE_FAILS_INSIDE : FATE_OK;
}

/* As the runtime computes it: (tip + 1) x how many of them a block could hold; a filler's call is
 * the shortest there is. `flat`: a chain on which the weight decides, which is the same for all.
 */
uint64_t priority_of(const struct world *w, const struct tx *t)
{
    if (w->plan.flat)
        return t->tip + 1;
    uint64_t slots = t->id == 0 ? 1000 : t->id < 0 ? 500 : 100 + (uint64_t)(t->id % 7);
    return (t->tip + 1) * slots;
}

uint32_t version_of(const struct world *w, uint32_t spec)
{
    uint32_t version = 1;
    for (size_t i = 0; i < ARRAY_LEN(w->chain.version_from); i++)
        version += w->chain.version_from[i] && spec >= w->chain.version_from[i];
    return version;
}

/* Some keys sign the same content to the same bytes. */
static uint32_t signed_before(const struct world *w, const struct tx *t)
{
    for (uint32_t i = w->chain.last_of_nonce[t->account][t->nonce]; i;
         i = w->chain.txs[i].prev_nonce) {
        const struct tx *x = &w->chain.txs[i];
        if (x->id == t->id && x->anchor == t->anchor && x->spec == t->spec &&
            x->death == t->death && x->tip == t->tip)
            return i;
    }
    return 0;
}

uint32_t tx_sign(struct world *w, const struct tx_content *x)
{
    struct chain *c = &w->chain;
    HOLDS(w, c->tx_count < TXS && x->nonce < NONCES, "hot loop",
          "nonce %llu of account %d is signed for transaction %lld, and no seed needs as many",
          (unsigned long long)x->nonce, x->account, (long long)x->id);
    struct tx t = {.account = x->account,
                   .nonce = x->nonce,
                   .id = x->id,
                   .tip = x->tip,
                   .birth = -1,
                   .death = -1,
                   .anchor = x->anchor,
                   .spec = x->spec};
    if (x->period) {
        t.birth = (int64_t)c->blocks[x->anchor].number;
        t.death = t.birth + x->period;
    }
    uint32_t same = w->plan.deterministic ? signed_before(w, &t) : 0;
    if (same)
        return same;
    uint32_t tx = c->tx_count++;
    t.prev_nonce = c->last_of_nonce[t.account][t.nonce];
    c->last_of_nonce[t.account][t.nonce] = tx;
    if (t.id > 0) {
        t.prev_id = c->last_of_id[t.id];
        c->last_of_id[t.id] = tx;
    }
    c->txs[tx] = t;
    return tx;
}

/* ---- blocks ---- */

uint32_t ancestor_at(const struct world *w, uint32_t block, uint64_t number)
{
    while (w->chain.blocks[block].number > number)
        block = w->chain.blocks[block].parent;
    return block;
}

uint32_t block_new(struct world *w, uint32_t parent)
{
    struct chain *c = &w->chain;
    HOLDS(w, c->block_count < BLOCKS, "liveness", "%u blocks did not end what was begun",
          c->block_count);
    uint32_t i = c->block_count++;
    const struct block *p = &c->blocks[parent];
    struct block *b = &c->blocks[i];
    *b = (struct block){
        .parent = parent, .number = p->number + 1, .spec = p->spec, .made_at = w->now};
    memcpy(b->nonce, p->nonce, sizeof(b->nonce));
    memcpy(b->life, p->life, sizeof(b->life));
    return i;
}

/* A node that lags hears of it later. */
static bool lags(struct world *w, const struct event *e,
                 void (*hear)(struct world *w, struct event *e))
{
    const struct chain_node *n = &w->chain.nodes[e->a];
    if (w->now >= n->lag_until)
        return false;
    struct event *again = later(w, n->lag_until - w->now + 1, e->name, hear);
    again->a = e->a;
    again->b = e->b;
    return true;
}

static void hear_block(struct world *w, struct event *e)
{
    const struct chain_node *n = &w->chain.nodes[e->a];
    const struct block *b = &w->chain.blocks[e->b];
    if (w->now < n->down_until || w->now < n->warp_until || lags(w, e, hear_block))
        return;
    if (b->number <= w->chain.blocks[n->best].number)
        return;
    if (b->number < w->chain.blocks[n->final].number ||
        ancestor_at(w, e->b, w->chain.blocks[n->final].number) != n->final)
        return;
    pool_set_best(w, (int)e->a, e->b);
}

void tell_block(struct world *w, int node, uint32_t block, uint64_t extra)
{
    struct event *e = later(w, latency(w) + extra, "node hears block", hear_block);
    e->a = (uint32_t)node;
    e->b = block;
}

/* What the author's pool has, in nonce order for each account; sometimes less. `held`:
 * transactions that a fork leaves out. */
static uint32_t author(struct world *w, int node, uint32_t parent, unsigned fill_percent)
{
    uint32_t i = block_new(w, parent);
    struct block *b = &w->chain.blocks[i];
    bool skip[ACCOUNTS];
    for (int a = 0; a < ACCOUNTS; a++)
        skip[a] = !chance(w, fill_percent);
    while (b->count < w->plan.block_txs && pool_take(w, node, b, skip))
        if (w->plan.fault_mask && chance(w, 3))
            break;
    if (w->chain.spec != b->spec && chance(w, 50))
        b->spec = w->chain.spec; /* the upgrade is enacted: it rules from the next block on */
    note(w, "block %u number %llu on %u by n%d: %u transactions, spec %u", i,
         (unsigned long long)b->number, parent, node, b->count, b->spec);
    for (int k = 0; k < w->plan.nodes; k++)
        tell_block(w, k, i, k == node ? 0 : between(w, 0, w->plan.latency_us * 4));
    return i;
}

static int some_node_up(struct world *w)
{
    int k = (int)rng_below(&w->rng, (uint64_t)w->plan.nodes);
    for (int i = 0; i < w->plan.nodes; i++, k = (k + 1) % w->plan.nodes)
        if (w->now >= w->chain.nodes[k].down_until && w->now >= w->chain.nodes[k].lag_until &&
            w->chain.nodes[k].best)
            return k;
    return -1;
}

static void hear_final(struct world *w, struct event *e);

static void tell_final(struct world *w, int node, uint32_t block)
{
    struct event *e = later(w, latency(w), "node hears final", hear_final);
    e->a = (uint32_t)node;
    e->b = block;
}

/* Where no next block shows a node that it has missed one, its peers do. */
static void sync_nodes(struct world *w)
{
    const struct chain *c = &w->chain;
    uint32_t best = warp_best(w);
    for (int k = 0; k < w->plan.nodes; k++) {
        const struct chain_node *n = &c->nodes[k];
        if (c->blocks[n->best].number < c->blocks[best].number)
            tell_block(w, k, best, 0);
        else if (n->final != c->final)
            tell_final(w, k, c->final);
    }
}

uint64_t slowest_block(const struct world *w)
{
    uint64_t others = w->plan.others_us * 3 / 2;
    return others > w->plan.block_us ? others : w->plan.block_us;
}

/* An upgrade, or money that somebody sends, is an extrinsic as well. */
static bool is_demanded(struct world *w, int node)
{
    struct chain *c = &w->chain;
    bool asked = c->asked || c->spec != c->blocks[c->nodes[node].best].spec;
    bool others = w->plan.others_us && w->now >= c->others_at;
    if (others)
        c->others_at = w->now + between(w, w->plan.others_us / 2, w->plan.others_us * 3 / 2);
    asked |= others;
    c->asked = false;
    return asked || pool_has_next(w, node);
}

static void make_block(struct world *w, struct event *e)
{
    (void)e;
    int node = some_node_up(w);
    if (node < 0)
        warp_block(w);
    else if (!has(w, FEATURE_DEMAND))
        author(w, node, w->chain.nodes[node].best, w->healing ? 100 : 85);
    else if (is_demanded(w, node))
        author(w, node, w->chain.nodes[node].best, 100);
    else
        sync_nodes(w);
    uint64_t us = has(w, FEATURE_DEMAND) ? 100 * MS : w->plan.block_us;
    later(w, between(w, us / 2, us * 3 / 2), "make block", make_block);
}

/* depth + 1 blocks beside the last `depth` ones: whoever hears the last of them changes over. */
void chain_fork(struct world *w, uint32_t depth)
{
    int node = some_node_up(w);
    if (node < 0)
        return;
    const struct chain *c = &w->chain;
    const struct chain_node *n = &c->nodes[node];
    uint64_t best = c->blocks[n->best].number, final = c->blocks[c->final].number;
    if (best <= final || ancestor_at(w, n->best, final) != c->final)
        return;
    if (depth > best - final)
        depth = (uint32_t)(best - final);
    uint32_t at = ancestor_at(w, n->best, best - depth);
    w->stats.forks++;
    for (uint32_t i = 0; i <= depth; i++)
        at = author(w, node, at, 40);
}

static uint32_t sign_foreign(struct world *w, int account, uint64_t nonce, uint32_t spec,
                             uint64_t tip)
{
    return tx_sign(w, &(struct tx_content){
                          .account = account, .nonce = nonce, .id = -1, .spec = spec, .tip = tip});
}

/* A block with one extrinsic of somebody else who has the key; 0: none was made. */
static uint32_t foreign_block(struct world *w, int account)
{
    int node = some_node_up(w);
    if (node < 0)
        return 0;
    struct chain *c = &w->chain;
    const struct block *best = &c->blocks[c->nodes[node].best];
    if (best->nonce[account] + 2 >= NONCES)
        return 0;
    uint32_t i = block_new(w, c->nodes[node].best);
    struct block *b = &c->blocks[i];
    b->txs[b->count++] = sign_foreign(w, account, b->nonce[account], b->spec, 0);
    b->nonce[account]++;
    note(w, "foreign use of a%d nonce %llu in block %u", account,
         (unsigned long long)b->nonce[account] - 1, i);
    return i;
}

static void tell_all(struct world *w, uint32_t block)
{
    for (int k = 0; block && k < w->plan.nodes; k++)
        tell_block(w, k, block, 0);
}

void chain_pays(struct world *w, int account, bool unpaid)
{
    w->chain.asked |= w->chain.unpaid[account] != unpaid;
    w->chain.unpaid[account] = unpaid;
}

void chain_foreign(struct world *w, int account)
{
    tell_all(w, foreign_block(w, account));
}

/* Somebody else's bytes, at the next nonce or a few above it. They reach nodes only. */
void chain_foreign_in_pool(struct world *w, int account)
{
    int node = some_node_up(w);
    if (node < 0)
        return;
    const struct block *best = &w->chain.blocks[w->chain.nodes[node].best];
    uint64_t nonce = best->nonce[account] + (chance(w, 60) ? 0 : between(w, 0, 4));
    if (nonce + 2 >= NONCES)
        return;
    uint32_t tx =
        sign_foreign(w, account, nonce, best->spec, chance(w, 50) ? 0 : between(w, 0, 60));
    struct node_answer x;
    pool_submit(w, node, tx, &x);
    note(w, "foreign tx %u of a%d nonce %llu tip %llu at n%d: %lld", tx, account,
         (unsigned long long)nonce, (unsigned long long)w->chain.txs[tx].tip, node,
         (long long)x.rpc_code);
}

/* All that it owns is sent away: the account is gone, and with it its nonce. */
void chain_reap(struct world *w, int account)
{
    uint32_t i = foreign_block(w, account);
    if (!i)
        return;
    struct block *b = &w->chain.blocks[i];
    b->nonce[account] = 0;
    b->life[account]++;
    w->stats.reaped++;
    note(w, "a%d is reaped in block %u", account, i);
    tell_all(w, i);
}

/* ---- finality ---- */

static void hear_final(struct world *w, struct event *e)
{
    const struct chain *c = &w->chain;
    const struct chain_node *n = &c->nodes[e->a];
    if (lags(w, e, hear_final))
        return;
    if (w->now < n->down_until || w->now < n->warp_until ||
        c->blocks[e->b].number <= c->blocks[n->final].number)
        return;
    if (ancestor_at(w, n->best, c->blocks[e->b].number) != e->b)
        pool_set_best(w, (int)e->a, e->b); /* it was on another fork, or had not heard of it */
    pool_set_final(w, (int)e->a, e->b);
}

static void finalize_to(struct world *w, uint32_t block)
{
    struct chain *c = &w->chain;
    uint64_t from = c->blocks[c->final].number + 1;
    for (uint64_t h = from; h <= c->blocks[block].number; h++) {
        uint32_t i = ancestor_at(w, block, h);
        c->blocks[i].final = true;
        c->final_at[h] = i;
        c->final = i;
        check_final(w, i);
    }
    for (int k = 0; k < w->plan.nodes; k++)
        tell_final(w, k, block);
}

static void make_final(struct world *w, struct event *e)
{
    (void)e;
    struct chain *c = &w->chain;
    int node = some_node_up(w);
    later(w, between(w, w->plan.block_us / 2, w->plan.block_us * 3 / 2), "finalize", make_final);
    if ((node < 0 && !warps(w)) || w->now < c->stall_until)
        return;
    uint32_t best = node < 0 ? warp_best(w) : c->nodes[node].best;
    uint64_t number = c->blocks[best].number, final = c->blocks[c->final].number;
    if (number <= final + w->plan.finality_lag || ancestor_at(w, best, final) != c->final)
        return;
    finalize_to(w, ancestor_at(w, best, number - w->plan.finality_lag));
}

static void node_up(struct world *w, struct event *e)
{
    for (uint32_t i = w->chain.block_count;
         i-- > 1;) /* it catches up with the highest block it can take */
        if (w->chain.blocks[i].number > w->chain.blocks[w->chain.nodes[e->a].best].number) {
            tell_block(w, (int)e->a, i, 0);
            return;
        }
}

/* Its pool is empty and its subscriptions are gone; the chain it has kept. */
void node_restart(struct world *w, int node, uint64_t down)
{
    struct chain_node *n = &w->chain.nodes[node];
    for (uint32_t i = 0; i < n->pool_count; i++)
        w->chain.txs[n->pool[i]].in_pool &= (uint8_t) ~(1u << node);
    for (uint32_t i = 1; i < w->chain.tx_count; i++)
        w->chain.txs[i].ban_until[node] = 0;
    n->pool_count = 0;
    for (uint32_t i = 0; i < n->watch_count; i++)
        n->watches[i].used = false;
    n->starts++;
    n->down_until = w->now + down;
    for (int r = 0; r < w->plan.relays; r++)
        if (w->relays[r].node && w->relays[r].wire.node == node)
            wire_cut(w, &w->relays[r]);
    later(w, down + 1, "node is up", node_up)->a = (uint32_t)node;
}

void chain_start(struct world *w)
{
    struct chain *c = &w->chain;
    memset(c, 0, sizeof(*c));
    c->tx_count = 1; /* 0 is none */
    c->spec = 100;
    c->block_count = 1;
    c->blocks[0] = (struct block){.spec = 100, .final = true};
    for (int k = 0; k < NODES; k++)
        c->nodes[k].pool_limit = w->plan.pool_limit;
    for (int i = 0; i < 4; i++) { /* a few blocks from before the beginning */
        uint32_t b = block_new(w, c->block_count - 1);
        c->blocks[b].final = i < 2;
        if (i < 2)
            c->final = c->final_at[c->blocks[b].number] = b;
    }
    for (int k = 0; k < NODES; k++) {
        c->nodes[k].best = c->block_count - 1;
        c->nodes[k].final = c->final;
    }
    later(w, w->plan.block_us, "make block", make_block);
    later(w, w->plan.block_us, "finalize", make_final);
}
