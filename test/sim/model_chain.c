/* The node: blocks, forks, finality and a single-state pool. */
#include <string.h>

#include "model.h"

void hash_of_tx(uint32_t tx, uint8_t out[32])
{
    uint64_t spread = tx * 0x9e3779b97f4a7c15u;
    memset(out, 0x5a, 32);
    memcpy(out, &spread, 8);
    memcpy(out + 8, &tx, sizeof(tx));
}

uint32_t tx_of_hash(const uint8_t hash[32])
{
    uint32_t tx;
    memcpy(&tx, hash + 8, sizeof(tx));
    return tx;
}

void hash_of_block(const struct world *w, uint64_t number, uint8_t out[32])
{
    memset(out, 0xb1, 32);
    memcpy(out, &number, 8);
    memcpy(out + 8, &w->blocks[number].fork, 4);
}

uint32_t tx_new(struct world *w, uint64_t nonce, int64_t id, uint32_t spec, int64_t death)
{
    INVARIANT(w->tx_count < TX_MAX);
    w->txs[w->tx_count] = (struct tx){.nonce = nonce, .id = id, .spec = spec, .death = death};
    return w->tx_count++;
}

uint64_t chain_nonce(const struct world *w, uint64_t height)
{
    return w->blocks[height].nonce_after;
}

static bool refused_now(const struct world *w, int64_t id)
{
    return moody(id) && w->best / 16 % 4;
}

static bool alive(const struct world *w, const struct tx *t)
{
    return t->spec == w->spec && (t->death < 0 || (int64_t)w->best + 1 < t->death);
}

static bool valid(const struct world *w, const struct tx *t)
{
    return alive(w, t) && !refused_now(w, t->id);
}

/* Our node has lost it; the network may not have. */
static void to_limbo(struct world *w, uint32_t tx)
{
    if (w->limbo_count < POOL_MAX && alive(w, &w->txs[tx]))
        w->limbo[w->limbo_count++] = tx;
}

static void ban(struct world *w, uint32_t tx)
{
    w->txs[tx].ban_until = w->best + BAN_BLOCKS;
}

static void pool_remove(struct world *w, uint32_t tx)
{
    for (uint32_t i = 0; i < w->pool_count; i++)
        if (w->pool[i] == tx) {
            w->pool[i] = w->pool[--w->pool_count];
            w->txs[tx].in_pool = false;
            return;
        }
}

static bool pool_has_nonce(const struct world *w, uint64_t nonce)
{
    for (uint32_t i = 0; i < w->pool_count; i++)
        if (w->txs[w->pool[i]].nonce == nonce)
            return true;
    return false;
}

bool chain_ready(const struct world *w, uint32_t tx)
{
    for (uint64_t n = chain_nonce(w, w->best); n < w->txs[tx].nonce; n++)
        if (!pool_has_nonce(w, n))
            return false;
    return true;
}

/* A status goes to whoever watches; the watch ends with a final one. */
static void status(struct world *w, uint32_t tx, enum tx_status st, uint64_t block)
{
    if (!w->txs[tx].watched || chance(w, w->faults ? 4 : 0))
        return;
    struct node_event ev = {.type = MANAGER_EV_STATUS, .tx = tx, .status = st};
    if (st == TX_IN_BLOCK || st == TX_RETRACTED || st == TX_FINALIZED) {
        ev.has_hash = true;
        hash_of_block(w, block, ev.hash);
    }
    if (st == TX_FINALIZED || st >= TX_USURPED)
        w->txs[tx].watched = false;
    say(w, ev);
}

/* pool.md 2.3.1: banned, imported, valid, tags, limits. */
void chain_submit(struct world *w, uint32_t tx, struct node_event *reply)
{
    struct tx *t = &w->txs[tx];
    *reply = (struct node_event){.type = MANAGER_EV_SUBMIT_REPLY, .tx = tx, .code = ERR_RPC, .text = ""};
    if (t->ban_until > w->best) {
        reply->rpc_code = 1012;
        return;
    }
    if (t->in_pool) {
        reply->rpc_code = 1013;
        w->duplicates++;
        ban(w, tx);
        return;
    }
    reply->rpc_code = 1010;
    if (t->spec != w->spec || (t->death >= 0 && (int64_t)w->best + 1 >= t->death))
        reply->text = "Invalid Transaction: Transaction has a bad signature";
    else if (t->nonce < chain_nonce(w, w->best))
        reply->text =
            chance(w, 50) ? "Invalid Transaction: Transaction is outdated" : "{\"invalid\":{\"stale\":null}}";
    else if (refused_now(w, t->id))
        reply->text = "Invalid Transaction: Custom error: 7";
    else if (w->unpaid)
        reply->text = "Invalid Transaction: Inability to pay some fees (e.g. account balance too low)";
    if (reply->text[0]) {
        ban(w, tx);
        return;
    }
    if (pool_has_nonce(w, t->nonce)) {
        reply->rpc_code = 1014;
        return;
    }
    if (w->pool_count >= w->pool_limit) {
        reply->rpc_code = 1016;
        ban(w, tx);
        return;
    }
    reply->code = 0;
    reply->rpc_code = 0;
    t->in_pool = true;
    t->watched = true;
    w->pool[w->pool_count++] = tx;
}

/* ---- blocks ---- */

static bool take_next(struct world *w, struct block *b)
{
    for (uint32_t i = 0; i < w->pool_count; i++) {
        uint32_t tx = w->pool[i];
        if (w->txs[tx].nonce != b->nonce_after || !valid(w, &w->txs[tx]))
            continue;
        pool_remove(w, tx);
        ban(w, tx);
        b->txs[b->count++] = tx;
        b->nonce_after++;
        return true;
    }
    return false;
}

/* Another author may include what our node has lost. */
static bool take_from_limbo(struct world *w, struct block *b)
{
    for (uint32_t i = w->limbo_count; i-- > 0;) {
        uint32_t tx = w->limbo[i];
        bool now = w->txs[tx].nonce == b->nonce_after && valid(w, &w->txs[tx]) && !w->txs[tx].in_pool;
        if (!now && alive(w, &w->txs[tx]))
            continue;
        w->limbo[i] = w->limbo[--w->limbo_count];
        if (!now)
            continue;
        b->txs[b->count++] = tx;
        b->nonce_after++;
        return true;
    }
    return false;
}

/* What the new block made useless leaves the pool; a transaction whose nonce somebody else used is told a
 * false in_block (pool.md 1.6.16). */
static void clean_pool(struct world *w)
{
    for (uint32_t i = w->pool_count; i-- > 0;) {
        uint32_t tx = w->pool[i];
        struct tx *t = &w->txs[tx];
        bool used = t->nonce < chain_nonce(w, w->best);
        if (!used && valid(w, t))
            continue;
        pool_remove(w, tx);
        ban(w, tx);
        status(w, tx, used && chance(w, 50) ? TX_IN_BLOCK : TX_INVALID, w->best);
    }
}

static void append_block(struct world *w, uint32_t max, bool foreign)
{
    struct block *b = &w->blocks[w->best + 1];
    INVARIANT(w->best + 2 < BLOCK_MAX);
    *b = (struct block){.fork = ++w->forks, .spec = w->spec, .nonce_after = chain_nonce(w, w->best)};
    if (foreign) {
        b->txs[b->count++] = tx_new(w, b->nonce_after, -1, w->spec, -1);
        b->nonce_after++;
    }
    while (b->count < max && ((chance(w, 15) && take_from_limbo(w, b)) || take_next(w, b)))
        ;
    w->best++;
    for (uint32_t i = 0; i < b->count; i++)
        status(w, b->txs[i], TX_IN_BLOCK, w->best);
    clean_pool(w);
    say(w, (struct node_event){.type = MANAGER_EV_BEST, .number = w->best});
}

void chain_block(struct world *w)
{
    uint32_t max = w->faults && chance(w, 20) ? 0 : (uint32_t)rng_between(&w->rng, 1, BLOCK_TXS);
    append_block(w, max, w->faults && max && rng_below(&w->rng, 80) == 0);
}

void chain_finalize(struct world *w)
{
    if (w->finalized >= w->best)
        return;
    const struct block *b = &w->blocks[++w->finalized];
    for (uint32_t i = 0; i < b->count; i++) {
        int64_t id = w->txs[b->txs[i]].id;
        if (id > 0)
            INVARIANT(++w->effects[id] == 1); /* at most once */
        status(w, b->txs[i], TX_FINALIZED, w->finalized);
    }
}

/* The last blocks are replaced. Their extrinsics come back to the pool, most of the time. */
void chain_reorg(struct world *w, uint64_t depth)
{
    uint32_t back[64 * BLOCK_TXS];
    uint32_t count = 0;
    if (depth > w->best - w->finalized)
        depth = w->best - w->finalized;
    if (!depth)
        return;
    w->reorgs++;
    uint64_t old_best = w->best;
    for (uint64_t h = old_best; h > old_best - depth; h--)
        for (uint32_t i = 0; i < w->blocks[h].count; i++) {
            uint32_t tx = w->blocks[h].txs[i];
            if (chance(w, 70)) /* a fork-aware pool says nothing */
                status(w, tx, TX_RETRACTED, h);
            back[count++] = tx;
        }
    w->best -= depth;
    w->spec = w->blocks[w->best].spec;
    while (count--) {
        uint32_t tx = back[count];
        if (w->txs[tx].id < 0 || chance(w, 15) || !valid(w, &w->txs[tx]) || w->pool_count >= POOL_MAX ||
            w->txs[tx].in_pool || pool_has_nonce(w, w->txs[tx].nonce)) {
            if (w->txs[tx].id >= 0 && !w->txs[tx].in_pool)
                to_limbo(w, tx);
            continue;
        }
        w->txs[tx].in_pool = true;
        w->pool[w->pool_count++] = tx;
        status(w, tx, chain_ready(w, tx) ? TX_READY : TX_FUTURE, 0);
    }
    for (uint64_t i = 0; i <= depth; i++)
        append_block(w, chance(w, 50) ? 0 : 4, false);
}

void chain_evict(struct world *w, bool said)
{
    if (!w->pool_count)
        return;
    uint32_t tx = w->pool[rng_below(&w->rng, w->pool_count)];
    pool_remove(w, tx);
    if (chance(w, 70))
        to_limbo(w, tx);
    if (chance(w, 50))
        ban(w, tx);
    if (said)
        status(w, tx, TX_DROPPED, 0);
    else
        w->txs[tx].watched = false;
}
