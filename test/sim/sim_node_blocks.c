/* Finalized blocks on their way to a relay: every height once and in order, a few read ahead. Of
 * each extrinsic and each account it is asked whether the relay wants it when the block is read,
 * which is before it is handed out. */
#include <string.h>

#include "sim.h"
#include "sim_node.h"

void included_tx(const struct world *w, uint32_t tx, uint8_t bytes[BYTES_LEN],
                 struct node_included *ret)
{
    const struct tx *t = &w->chain.txs[tx];
    bytes_of_tx(w, tx, bytes);
    *ret = (struct node_included){.is_signed = true,
                                  .signer_len = 32,
                                  .tx = {.own_signer = true,
                                         .nonce = t->nonce,
                                         .tip = t->tip,
                                         .era_birth = t->birth,
                                         .era_death = t->death,
                                         .bytes = bytes,
                                         .bytes_len = BYTES_LEN,
                                         .call_len = call_len_of_tx(w, tx)}};
    ret->call = bytes + BYTES_LEN - ret->tx.call_len;
    account_id(t->account, ret->signer);
    hash_of_tx(tx, ret->tx.hash);
}

/* One of a finalized block. Of an extrinsic that the node's metadata does not decode only the hash
 * is known. */
static void included_in(const struct world *w, const struct slot *s, uint32_t tx,
                        uint8_t bytes[BYTES_LEN], struct node_included *ret)
{
    included_tx(w, tx, bytes, ret);
    if (!s->unreadable)
        return;
    *ret = (struct node_included){
        .tx = {.own_signer = true, .bytes_len = BYTES_LEN, .era_birth = -1, .era_death = -1}};
    hash_of_tx(tx, ret->tx.hash);
}

/* ---- one block ---- */

static int64_t time_of(const struct world *w, uint32_t block)
{
    return (int64_t)(w->chain.blocks[block].made_at / MS) + w->db.offset_us / 1000;
}

/* Are these bytes of the account that they name, as the node's door asks its owner? */
static enum tx_signature verified(struct node *n, uint32_t block, const struct node_included *x,
                                  uint32_t tx)
{
    const struct world *w = n->w;
    const struct block *b = &w->chain.blocks[block];
    struct extrinsic_params facts = {.spec_version = w->chain.blocks[b->parent].spec};
    if (w->chain.txs[tx].death >= 0)
        hash_of_block(ancestor_at(w, block, (uint64_t)x->tx.era_birth), facts.era_block_hash);
    return n->config.verify(n->config.arg, &x->tx, n->info.metadata, &facts);
}

/* What is wanted of a block. */
struct content {
    struct node_included rows[BLOCK_TXS + 1];
    uint8_t bytes[BLOCK_TXS + 1][BYTES_LEN];
    size_t count;
};

/* False: its signature is wrong. */
static bool add(struct node *n, const struct slot *s, struct content *c, uint32_t tx,
                enum node_want want)
{
    if (want == NODE_WANT_NOT)
        return true;
    struct node_included *x = &c->rows[c->count];
    if (tx == s->forged)
        included_tx(n->w, tx, c->bytes[c->count++], x);
    else
        included_in(n->w, s, tx, c->bytes[c->count++], x);
    if (want == NODE_WANT_VERIFIED)
        x->tx.signature = verified(n, s->block, x, tx);
    return x->tx.signature != TX_SIGNATURE_BAD;
}

static bool collect(struct node *n, const struct slot *s, struct content *c)
{
    const struct world *w = n->w;
    const struct block *b = &w->chain.blocks[s->block];
    bool good = true;
    for (uint32_t i = 0; i < b->count && good; i++) {
        size_t before = c->count;
        good = add(n, s, c, b->txs[i], s->wanted_tx[i]);
        if (c->count == before)
            continue;
        enum fate fate = fate_of(w, &w->chain.txs[b->txs[i]]);
        struct tx_included *x = &c->rows[before].tx;
        x->index = i;
        x->result.outcome = fate == FATE_OK ? DISPATCH_OK : DISPATCH_FAILED;
        x->result.inner = fate == FATE_FAILS_INSIDE;
    }
    return good && (!s->forged || add(n, s, c, s->forged, s->wanted_forged));
}

/* A node reads it from the state of the block's parent, for an owner who asks. Block 0 has no
 * parent. */
static uint32_t runtime_of_block(const struct node *n, const struct slot *s, bool pruned)
{
    const struct world *w = n->w;
    if (!s->wanted_runtime || !s->number || pruned)
        return 0;
    return w->chain.blocks[w->chain.blocks[s->block].parent].spec;
}

/* False: the block is refused. */
static bool hand_out(struct node *n, const struct slot *s)
{
    struct world *w = n->w;
    const struct block *b = &w->chain.blocks[s->block];
    struct content content = {0};
    uint64_t nonces[ACCOUNTS];
    struct node_balance balances[ACCOUNTS];
    bool lost = unread(w, b->number);
    if (!lost && !collect(n, s, &content))
        return false;
    bool pruned = (!w->healing && chance(w, w->plan.fault_mask ? 2 : 0)) || s->unreadable || lost;
    struct node_block out = {.head = {.number = b->number},
                             .unread = lost,
                             .time_ms = lost ? -1 : time_of(w, s->block),
                             .spec_version = runtime_of_block(n, s, pruned),
                             .extrinsic_count = lost ? 0 : b->count,
                             .included = content.rows,
                             .included_count = content.count,
                             .nonces = nonces,
                             .balances = balances,
                             .nonce_count = n->watched_count};
    hash_of_block(s->block, out.head.hash);
    hash_of_block(b->parent, out.head.parent);
    for (size_t i = 0; i < n->watched_count; i++) {
        int a = n->watched[i];
        bool read = s->wanted[i] && !pruned;
        nonces[i] = read ? b->nonce[a] : UINT64_MAX;
        if (read && lies(w, n->r->wire.node, LIE_NONCE))
            nonces[i] = lie_nonce(w);
        if (read)
            nonces[i] = lie_once(w, nonces[i]);
        balances[i] = (struct node_balance){.known = read, .free = w->chain.unpaid[a] ? 0 : 1000};
    }
    for (size_t i = 0; i < n->watched_count; i++)
        if (nonces[i] != UINT64_MAX && !lies(w, n->r->wire.node, LIE_NONCE) &&
            n->config.doubts(n->config.arg, &out, i))
            nonces[i] = b->nonce[n->watched[i]]; /* asked again */
    n->config.on_finalized(n->config.arg, &out);
    return true;
}

/* The endpoint is left: the next one tells what is so. */
static void refuse(struct node *n)
{
    struct world *w = n->w;
    struct relay *r = n->r;
    int node = r->wire.node;
    w->stats.refused_blocks++;
    note(w, "r%d refuses a block of n%d", r->index, node);
    node_lost(n);
    r->wire.node = (node + 1) % w->plan.nodes;
}

static void block_done(struct world *w, struct event *e)
{
    struct node *n = wire_is_on(w, e);
    if (!n || e->b != n->restart)
        return; /* abandoned */
    struct slot *s = &n->slots[e->account];
    s->done = true;
    while (n->ready && (s = &n->slots[n->next % PIPELINE])->done && s->number == n->next) {
        struct slot out = *s;
        *s = (struct slot){0};
        n->next++;
        if (out.number > n->heard.base)
            heard_base(&n->heard, out.number);
        if (hand_out(n, &out))
            continue;
        n->next = out.number;
        refuse(n);
        return;
    }
    node_kick(n);
}

static void tell_forged(struct node *n, struct slot *s)
{
    struct node_included x;
    uint8_t bytes[BYTES_LEN];
    int account = (int)rng_below(&n->w->rng, (uint64_t)n->w->plan.accounts);
    s->forged = lie_forged(n->w, s->block, account);
    if (!s->forged)
        return;
    included_tx(n->w, s->forged, bytes, &x);
    s->wanted_forged = n->config.wants(n->config.arg, &x);
}

static void block_read(struct world *w, struct event *e)
{
    struct node *n = wire_is_on(w, e);
    if (!n || e->b != n->restart)
        return;
    struct slot *s = &n->slots[e->account];
    const struct chain_node *at = &w->chain.nodes[n->r->wire.node];
    if (s->number > w->chain.blocks[at->final].number) {
        refuse(n); /* it is final, and the node does not have it */
        return;
    }
    s->block = w->chain.final_at[s->number];
    const struct block *b = &w->chain.blocks[s->block];
    s->unreadable =
        has(w, FEATURE_UNREADABLE) && w->chain.blocks[b->parent].spec != n->info.spec_version;
    s->wanted_runtime = n->config.wants_runtime(n->config.arg);
    for (size_t i = 0; i < n->watched_count; i++)
        s->wanted[i] = n->config.wants_account(n->config.arg, i);
    for (uint32_t i = 0; i < b->count; i++) {
        struct node_included x;
        uint8_t bytes[BYTES_LEN];
        included_in(w, s, b->txs[i], bytes, &x);
        s->wanted_tx[i] = n->config.wants(n->config.arg, &x);
    }
    if (lies(w, n->r->wire.node, LIE_FORGED) && chance(w, 50))
        tell_forged(n, s);
    struct event *done = wire_to_relay(w, n->r, w->plan.latency_us, "block is whole", block_done);
    done->account = e->account;
    done->b = e->b;
}

static void block_turn(struct world *w, struct event *e)
{
    struct node *n = wire_is_on(w, e);
    if (!n || e->b != n->restart)
        return;
    struct event *read = wire_to_relay(w, n->r, 2 * w->plan.latency_us, "block read", block_read);
    read->account = e->account;
    read->b = e->b;
}

/* Its body and what it left the accounts with are two calls. */
static void read_slot(struct node *n, int slot)
{
    struct world *w = n->w;
    struct event now = {
        .process = n->r->process->index, .a = n->r->wire.number, .b = n->restart, .account = slot};
    if (!w->plan.pace_us) {
        block_turn(w, &now);
        return;
    }
    wire_turn(w, n->r);
    uint64_t turn = wire_turn(w, n->r);
    struct event *e = process_later(w, n->r->process, turn, "turn of a block", block_turn);
    e->account = slot;
    e->a = now.a;
    e->b = now.b;
}

void node_kick(struct node *n)
{
    if (!n->following || !n->ready || !n->r->wire.open)
        return;
    while (PLANTED(SKIP_HEIGHT) && n->next % 4 == 3 && n->next <= n->info.finalized_number)
        n->next++;
    for (uint64_t h = n->next; h < n->next + PIPELINE && h <= n->info.finalized_number; h++) {
        struct slot *s = &n->slots[h % PIPELINE];
        if (s->busy)
            continue;
        *s = (struct slot){.busy = true, .number = h};
        read_slot(n, (int)(h % PIPELINE));
    }
}

void node_blocks_clear(struct node *n)
{
    n->restart++;
    memset(n->slots, 0, sizeof(n->slots));
}

static void kick_later(struct world *w, struct event *e)
{
    struct node *n = w->relays[e->process].node;
    if (n)
        node_kick(n);
}

void node_follow(struct node *n, uint64_t number)
{
    n->following = true;
    n->next = number;
    node_blocks_clear(n);
    process_later(n->w, n->r->process, 0, "follow", kick_later);
}
