/* One node: its view of the chain, its pool, its watches. A single-state pool,
 * or a fork-aware one as far as clients see the difference: 1013 until finality without a ban,
 * no `retracted`. Queues are not kept apart: what follows on from the best nonce is ready, the
 * rest is future. */
#include <string.h>

#include "sim.h"

static struct chain_node *node_of(struct world *w, int node)
{
    return &w->chain.nodes[node];
}

static const struct block *best_of(const struct world *w, int node)
{
    return &w->chain.blocks[w->chain.nodes[node].best];
}

/* ---- the pool ---- */

static uint32_t at_nonce(const struct world *w, int node, int account, uint64_t nonce)
{
    const struct chain_node *n = &w->chain.nodes[node];
    for (uint32_t i = 0; i < n->pool_count; i++) {
        const struct tx *t = &w->chain.txs[n->pool[i]];
        if (t->account == account && t->nonce == nonce)
            return n->pool[i];
    }
    return 0;
}

bool pool_ready(const struct world *w, int node, uint32_t tx)
{
    const struct tx *t = &w->chain.txs[tx];
    for (uint64_t n = best_of(w, node)->nonce[t->account]; n < t->nonce; n++)
        if (!at_nonce(w, node, t->account, n))
            return false;
    return true;
}

static void put(struct world *w, int node, uint32_t tx)
{
    struct chain_node *n = node_of(w, node);
    INVARIANT(n->pool_count < POOL);
    n->pool[n->pool_count++] = tx;
    w->chain.txs[tx].accepted = true;
    w->chain.txs[tx].in_pool |= (uint8_t)(1u << node);
}

static void remove_tx(struct world *w, int node, uint32_t tx)
{
    struct chain_node *n = node_of(w, node);
    w->chain.txs[tx].in_pool &= (uint8_t) ~(1u << node);
    for (uint32_t i = 0; i < n->pool_count; i++)
        if (n->pool[i] == tx) {
            memmove(n->pool + i, n->pool + i + 1, (n->pool_count - i - 1) * sizeof(*n->pool));
            n->pool_count--;
            return;
        }
}

static void ban(struct world *w, int node, uint32_t tx)
{
    w->chain.txs[tx].ban_until[node] =
        w->plan.ban_us ? w->now + w->plan.ban_us : NEVER; /* next import */
}

static bool banned(const struct world *w, int node, uint32_t tx)
{
    return w->chain.txs[tx].ban_until[node] > w->now;
}

/* ---- watches ---- */

static void say(struct world *w, int node, uint32_t tx, enum tx_status status, uint32_t block,
                uint32_t other)
{
    struct chain_node *n = node_of(w, node);
    for (uint32_t i = 0; i < n->watch_count; i++) {
        struct watch *x = &n->watches[i];
        if (!x->used || x->tx != tx)
            continue;
        if (status == TX_IN_BLOCK)
            x->block = block;
        if (!w->healing && w->plan.fault_mask && chance(w, 2))
            continue; /* an event that gets lost */
        node_says_status(w, node, x, status, block, other);
        if (status == TX_FINALIZED || status >= TX_USURPED || status == TX_FINALITY_TIMEOUT)
            x->used = false;
    }
}

void pool_watch(struct world *w, int node, uint32_t tx, const struct relay *r, uint32_t sub)
{
    struct chain_node *n = node_of(w, node);
    uint32_t i = 0;
    while (i < n->watch_count && n->watches[i].used)
        i++;
    if (i == WATCHES)
        return; /* the node gives no more of them */
    if (i == n->watch_count)
        n->watch_count++;
    n->watches[i] = (struct watch){.used = true,
                                   .tx = tx,
                                   .relay = r->index,
                                   .life = r->process->life,
                                   .link = r->wire.number,
                                   .sub = sub};
}

void pool_unwatch(struct world *w, int node, int relay, uint32_t life, uint32_t sub)
{
    struct chain_node *n = node_of(w, node);
    for (uint32_t i = 0; i < n->watch_count; i++)
        if (n->watches[i].relay == relay && n->watches[i].life == life && n->watches[i].sub == sub)
            n->watches[i].used = false;
}

void pool_drop_watches(struct world *w, int node, int relay, uint32_t life, uint32_t link)
{
    struct chain_node *n = node_of(w, node);
    for (uint32_t i = 0; i < n->watch_count; i++)
        if (n->watches[i].relay == relay && n->watches[i].life == life &&
            n->watches[i].link == link)
            n->watches[i].used = false;
}

/* ---- submissions ---- */

/* Bytes of the account's former life whose row is no longer open. Who has kept them could have
 * them included again; nodes forget them here, because no relay can do anything about them. */
static bool forgotten(const struct world *w, const struct block *on, const struct tx *t)
{
    const struct mem_row *p = mem_pending_at(w->db.mem, t->account + 1, (int64_t)t->nonce);
    if (t->id < 0 || w->chain.blocks[t->anchor].life[t->account] == on->life[t->account])
        return false;
    for (size_t i = 0; p && i < p->at->count; i++)
        if (&w->chain.txs[tx_of_hash(w, p->at->attempts[i].hash)] == t)
            return false;
    return true;
}

/* NULL: it can go into the next block on this one. */
static const char *invalid(const struct world *w, const struct block *on, uint32_t on_index,
                           const struct tx *t)
{
    int64_t next = (int64_t)on->number + 1;
    /* The account does not exist. */
    if (w->chain.unpaid[t->account] && on->life[t->account] && !on->nonce[t->account])
        return "Invalid Transaction: Inability to pay some fees "
               "(e.g. account balance too low)";
    if (t->spec != on->spec || (t->birth > (int64_t)on->number && t->id >= 0))
        return "Invalid Transaction: Transaction has a bad signature";
    if (t->death >= 0 && next >= t->death)
        return "Invalid Transaction: Transaction has an ancient birth block";
    if (t->birth >= 0 && ancestor_at(w, on_index, (uint64_t)t->birth) != t->anchor)
        return "Invalid Transaction: Transaction has a bad signature";
    if (t->nonce < on->nonce[t->account] || forgotten(w, on, t))
        return "Invalid Transaction: Transaction is outdated";
    if (w->chain.unpaid[t->account])
        return "Invalid Transaction: Inability to pay some fees (e.g. account balance too low)";
    if (refuses_call(w, t->id, on->number))
        return "Invalid Transaction: Custom error: 7";
    return NULL;
}

static void hear_gossip(struct world *w, struct event *e)
{
    struct node_answer a;
    if (w->now >= node_of(w, (int)e->a)->down_until)
        pool_submit(w, (int)e->a, e->b, &a);
}

static void gossip(struct world *w, int node, uint32_t tx)
{
    for (int k = 0; k < w->plan.nodes; k++)
        if (k != node && chance(w, 90)) {
            struct event *e = later(w, latency(w), "gossip", hear_gossip);
            e->a = (uint32_t)k;
            e->b = tx;
        }
}

static bool known_in_fork_aware(const struct world *w, int node, const struct tx *t)
{
    return w->plan.fat && t->included_at[node] && !t->final_in;
}

static void refuse(struct node_answer *ret, int64_t code, const char *text)
{
    *ret = (struct node_answer){.code = ERR_RPC, .rpc_code = code, .text = text};
}

/* ---- the limit (test/devchain/behaviour.md, 23 and 24) ---- */

/* The lowest priority, and of equals the oldest; 0: none is below `below`. */
static uint32_t worst(const struct world *w, int node, bool ready, uint64_t below)
{
    const struct chain_node *n = &w->chain.nodes[node];
    uint32_t found = 0;
    for (uint32_t i = 0; i < n->pool_count; i++) {
        uint64_t priority = priority_of(w, &w->chain.txs[n->pool[i]]);
        if (priority < below && (!found || priority < priority_of(w, &w->chain.txs[found])) &&
            pool_ready(w, node, n->pool[i]) == ready)
            found = n->pool[i];
    }
    return found;
}

static uint32_t count_ready(const struct world *w, int node, bool ready)
{
    const struct chain_node *n = &w->chain.nodes[node];
    uint32_t count = 0;
    for (uint32_t i = 0; i < n->pool_count; i++)
        count += pool_ready(w, node, n->pool[i]) == ready;
    return count;
}

static void push_out(struct world *w, int node, uint32_t tx)
{
    remove_tx(w, node, tx);
    ban(w, node, tx);
    say(w, node, tx, TX_DROPPED, 0, 0);
}

/* A single-state pool takes the newcomer in and then throws out the worst of each queue, a ready
 * one with all that depend on it. */
static void throw_out(struct world *w, int node)
{
    struct chain_node *n = node_of(w, node);
    for (int ready = 1; ready >= 0; ready--)
        while (n->pool_count > n->pool_limit && count_ready(w, node, ready) > n->pool_limit) {
            uint32_t tx = worst(w, node, ready, UINT64_MAX);
            while (tx) {
                const struct tx *t = &w->chain.txs[tx];
                push_out(w, node, tx);
                tx = ready ? at_nonce(w, node, t->account, t->nonce + 1) : 0;
            }
        }
}

/* A fork-aware pool refuses the newcomer unless something pays less. */
static bool make_room(struct world *w, int node, const struct tx *t)
{
    struct chain_node *n = node_of(w, node);
    while (n->pool_count >= n->pool_limit) {
        uint64_t priority = priority_of(w, t);
        uint32_t ready = worst(w, node, true, priority), future = worst(w, node, false, priority);
        if (!ready && !future)
            return false;
        push_out(w, node, future ? future : ready);
    }
    return true;
}

/* In place of `other`, where that is not 0. false: the limit keeps it out. */
static bool enter(struct world *w, int node, uint32_t tx, uint32_t other)
{
    if (!other && w->plan.fat && !make_room(w, node, &w->chain.txs[tx]))
        return false;
    if (other) {
        remove_tx(w, node, other);
        say(w, node, other, TX_USURPED, 0, tx);
    }
    put(w, node, tx);
    if (!w->plan.fat)
        throw_out(w, node);
    return w->chain.txs[tx].in_pool >> node & 1;
}

void pool_submit(struct world *w, int node, uint32_t tx, struct node_answer *ret)
{
    struct chain_node *n = node_of(w, node);
    struct tx *t = &w->chain.txs[tx];
    const char *why;
    *ret = (struct node_answer){.text = ""};
    t->reached = true;
    if (t->id > 0 && never_admitted(t->id)) { /* the chain has no such call */
        refuse(ret, 1001, "Extrinsic has invalid format: Codec error");
    } else if (known_in_fork_aware(w, node, t)) {
        refuse(ret, 1013, "Transaction Already Imported: Any { .. }");
    } else if (!w->plan.fat && banned(w, node, tx)) {
        refuse(ret, 1012, "Transaction is temporarily banned");
    } else if (t->in_pool >> node & 1) {
        refuse(ret, 1013, "Transaction Already Imported: Any { .. }");
        if (!w->plan.fat)
            ban(w, node, tx);
    } else if (banned(w, node, tx)) {
        refuse(ret, 1012, "Transaction is temporarily banned");
    } else if (w->now < n->trap_until && w->plan.era && chance(w, 50)) {
        refuse(ret, 1002,
               "Verification Error: Runtime error: Execution failed: wasm trap: wasm `unreachable` "
               "instruction");
        ban(w, node, tx);
    } else if ((why = invalid(w, best_of(w, node), n->best, t))) {
        refuse(ret, 1010, why);
        ban(w, node, tx);
        t->refused |= refuses_call(w, t->id, best_of(w, node)->number);
    }
    if (ret->code)
        return;
    uint32_t other = at_nonce(w, node, t->account, t->nonce);
    if (other && priority_of(w, &w->chain.txs[other]) >= priority_of(w, t)) {
        refuse(ret, 1014,
               "Priority is too low: (100 vs 100): The transaction has too low priority to replace "
               "another transaction already in the pool.");
        return;
    }
    if (!enter(w, node, tx, other)) {
        refuse(ret, 1016,
               "Immediately Dropped: The transaction couldn't enter the pool because of the limit");
        if (has(w, FEATURE_ANSWERS) && chance(w, 50))
            gossip(w, node, tx); /* it was announced before it was dropped */
        ban(w, node, tx);
        return;
    }
    ret->status = pool_ready(w, node, tx) ? TX_READY : TX_FUTURE;
    if (ret->status == TX_READY)
        gossip(w, node, tx);
}

/* ---- what an author takes ---- */

/* The best payer among those that come next; those that pay less than a block costs find no
 * room. */
static uint32_t best_next(const struct world *w, int node, const struct block *b, const bool *skip)
{
    uint32_t best = 0;
    for (int a = 0; a < w->plan.accounts; a++) {
        uint32_t tx = skip[a] ? 0 : at_nonce(w, node, a, b->nonce[a]);
        const struct tx *t = &w->chain.txs[tx];
        if (!tx || (w->chain.min_tip && t->tip < w->chain.min_tip))
            continue;
        if (!best ||
            (has(w, FEATURE_TIPS) && priority_of(w, t) > priority_of(w, &w->chain.txs[best])))
            best = tx;
    }
    return best;
}

bool pool_take(const struct world *w, int node, struct block *b, bool *skip)
{
    uint32_t tx;
    while ((tx = best_next(w, node, b, skip))) {
        int a = w->chain.txs[tx].account;
        struct block on = w->chain.blocks[b->parent];
        on.nonce[a] = b->nonce[a];
        if (invalid(w, &on, b->parent, &w->chain.txs[tx])) {
            skip[a] = true;
            continue;
        }
        b->txs[b->count++] = tx;
        b->nonce[a]++;
        return true;
    }
    return false;
}

/* A block that this node makes now is not empty. */
bool pool_has_next(const struct world *w, int node)
{
    struct block next = *best_of(w, node);
    bool skip[ACCOUNTS] = {false};
    next.parent = w->chain.nodes[node].best;
    next.count = 0;
    return pool_take(w, node, &next, skip);
}

/* ---- a new best block ---- */

static void retract(struct world *w, int node, uint32_t block)
{
    struct chain_node *n = node_of(w, node);
    struct block *b = &w->chain.blocks[block];
    for (uint32_t i = 0; i < b->count; i++)
        w->chain.txs[b->txs[i]].included_at[node] = 0;
    for (uint32_t i = 0; i < n->watch_count; i++) {
        struct watch *x = &n->watches[i];
        if (!x->used || x->block != block)
            continue;
        x->block = 0;
        if (!w->plan.fat && (w->healing || !chance(w, 10)))
            node_says_status(w, node, x, TX_RETRACTED, block, 0);
    }
}

static void enact(struct world *w, int node, uint32_t block, bool silent)
{
    struct block *b = &w->chain.blocks[block];
    for (uint32_t i = 0; i < b->count; i++) {
        struct tx *t = &w->chain.txs[b->txs[i]];
        bool known = t->in_pool >> node & 1;
        t->included_at[node] = w->now;
        remove_tx(w, node, b->txs[i]);
        if (known || t->reached)
            ban(w, node, b->txs[i]);
        if (!silent)
            say(w, node, b->txs[i], TX_IN_BLOCK, block, 0);
    }
}

/* What the new best block made useless. One whose nonce another one used may be told a false
 * in_block. */
static void clean(struct world *w, int node)
{
    struct chain_node *n = node_of(w, node);
    const struct block *best = best_of(w, node);
    for (uint32_t i = n->pool_count; i-- > 0;) {
        uint32_t tx = n->pool[i];
        struct tx *t = &w->chain.txs[tx];
        bool used = t->nonce < best->nonce[t->account];
        bool stays = w->chain.unpaid[t->account] && !used && chance(w, 70);
        if (stays || !invalid(w, best, n->best, t))
            continue;
        remove_tx(w, node, tx);
        ban(w, node, tx);
        if (used && chance(w, 50))
            say(w, node, tx, TX_IN_BLOCK, n->best, 0);
        else
            say(w, node, tx, TX_INVALID, 0, 0);
    }
}

static void take_back(struct world *w, int node, uint32_t block)
{
    struct chain_node *n = node_of(w, node);
    const struct block *b = &w->chain.blocks[block];
    for (uint32_t i = 0; i < b->count; i++) {
        uint32_t tx = b->txs[i];
        struct tx *t = &w->chain.txs[tx];
        if (t->included_at[node] || t->in_pool >> node & 1 || t->id < 0 ||
            n->pool_count + 1 >= POOL)
            continue;
        if (at_nonce(w, node, t->account, t->nonce) || invalid(w, best_of(w, node), n->best, t) ||
            (!w->healing && chance(w, 15)))
            continue; /* swallowed in silence */
        put(w, node, tx);
        say(w, node, tx, pool_ready(w, node, tx) ? TX_READY : TX_FUTURE, 0, 0);
    }
}

static void lift_bans(struct world *w, int node)
{
    for (uint32_t i = 1; !w->plan.ban_us && i < w->chain.tx_count; i++)
        w->chain.txs[i].ban_until[node] = 0;
}

void pool_set_best(struct world *w, int node, uint32_t block)
{
    struct chain_node *n = node_of(w, node);
    const struct chain *c = &w->chain;
    uint32_t old = n->best, back[64], back_count = 0, path[64], path_count = 0;
    uint32_t x = old, y = block;
    while (x != y) {
        if (c->blocks[x].number >= c->blocks[y].number) {
            if (back_count < 64)
                back[back_count++] = x;
            x = c->blocks[x].parent;
        } else {
            if (path_count < 64)
                path[path_count++] = y;
            y = c->blocks[y].parent;
        }
    }
    lift_bans(w, node);
    for (uint32_t i = 0; i < back_count; i++)
        retract(w, node, back[i]);
    n->best = block;
    for (uint32_t i = path_count; i-- > 0;)
        enact(w, node, path[i], path_count > 20);
    clean(w, node);
    for (uint32_t i = back_count; i-- > 0;)
        take_back(w, node, back[i]);
    node_says_heads(w, node, true, false);
    if (c->blocks[old].spec != c->blocks[block].spec)
        node_says_runtime(w, node);
}

void pool_set_final(struct world *w, int node, uint32_t block)
{
    struct chain_node *n = node_of(w, node);
    const struct chain *c = &w->chain;
    uint64_t from = c->blocks[n->final].number + 1;
    n->final = block;
    for (uint64_t h = from; h <= c->blocks[block].number; h++) {
        const struct block *b = &c->blocks[c->final_at[h]];
        for (uint32_t i = 0; i < b->count; i++)
            say(w, node, b->txs[i], TX_FINALIZED, c->final_at[h], 0);
    }
    node_says_heads(w, node, false, true);
}

/* ---- faults ---- */

void pool_evict(struct world *w, int node, bool tell)
{
    struct chain_node *n = node_of(w, node);
    if (!n->pool_count)
        return;
    uint32_t tx = n->pool[rng_below(&w->rng, n->pool_count)];
    remove_tx(w, node, tx);
    note(w, "n%d evicts tx %u%s", node, tx, tell ? "" : " in silence");
    if (chance(w, 50))
        ban(w, node, tx);
    if (tell) {
        say(w, node, tx, TX_DROPPED, 0, 0);
        return;
    }
    for (uint32_t i = 0; i < n->watch_count; i++)
        if (n->watches[i].tx == tx)
            n->watches[i].used = false;
}

static struct watch *some_watch(struct world *w, int node)
{
    struct chain_node *n = node_of(w, node);
    uint32_t at = n->watch_count ? (uint32_t)rng_below(&w->rng, n->watch_count) : 0;
    for (uint32_t i = 0; i < n->watch_count; i++, at = (at + 1) % n->watch_count)
        if (n->watches[at].used)
            return &n->watches[at];
    return NULL;
}

/* It says that a block holds it, or even that it is final, and that is not so. */
void pool_false_in_block(struct world *w, int node)
{
    struct watch *x = some_watch(w, node);
    if (!x)
        return;
    bool final = chance(w, 40);
    node_says_status(w, node, x, TX_IN_BLOCK, w->chain.nodes[node].best, 0);
    if (final) {
        node_says_status(w, node, x, TX_FINALIZED, w->chain.nodes[node].best, 0);
        x->used = false;
    }
}

void pool_lose_watch(struct world *w, int node)
{
    struct watch *x = some_watch(w, node);
    if (x)
        x->used = false;
}
