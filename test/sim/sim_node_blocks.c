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

/* ---- one block ---- */

static int64_t time_of(const struct world *w, uint32_t block)
{
    return (int64_t)(w->chain.blocks[block].made_at / MS) + w->db.offset_us / 1000;
}

static void hand_out(struct node *n, const struct slot *s)
{
    struct world *w = n->w;
    const struct block *b = &w->chain.blocks[s->block];
    struct node_included rows[BLOCK_TXS];
    uint8_t bytes[BLOCK_TXS][BYTES_LEN];
    uint64_t nonces[ACCOUNTS];
    struct node_balance balances[ACCOUNTS];
    bool pruned = !w->healing && chance(w, w->plan.fault_mask ? 2 : 0);
    struct node_block out = {.head = {.number = b->number},
                             .time_ms = time_of(w, s->block),
                             .extrinsic_count = b->count,
                             .included = rows,
                             .nonces = nonces,
                             .balances = balances,
                             .nonce_count = n->watched_count};
    hash_of_block(s->block, out.head.hash);
    hash_of_block(b->parent, out.head.parent);
    for (size_t i = 0; i < n->watched_count; i++) {
        bool read = s->wanted[i] && !pruned;
        nonces[i] = read ? b->nonce[n->watched[i]] : UINT64_MAX;
        balances[i] =
            (struct node_balance){.known = read, .free = w->chain.unpaid[n->watched[i]] ? 0 : 1000};
    }
    for (uint32_t i = 0; i < b->count; i++) {
        if (!s->wanted_tx[i])
            continue;
        struct node_included *x = &rows[out.included_count++];
        enum fate fate = fate_of(w, &w->chain.txs[b->txs[i]]);
        included_tx(w, b->txs[i], bytes[i], x);
        x->tx.index = i;
        x->tx.result.outcome = fate == FATE_OK ? DISPATCH_OK : DISPATCH_FAILED;
        x->tx.result.inner = fate == FATE_FAILS_INSIDE;
    }
    n->config.on_finalized(n->config.arg, &out);
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
        hand_out(n, &out);
    }
    node_kick(n);
}

static void block_read(struct world *w, struct event *e)
{
    struct node *n = wire_is_on(w, e);
    if (!n || e->b != n->restart)
        return;
    struct slot *s = &n->slots[e->account];
    s->block = w->chain.final_at[s->number];
    const struct block *b = &w->chain.blocks[s->block];
    for (size_t i = 0; i < n->watched_count; i++)
        s->wanted[i] = n->config.wants_account(n->config.arg, i);
    for (uint32_t i = 0; i < b->count; i++) {
        uint8_t hash[32], signer[32];
        hash_of_tx(b->txs[i], hash);
        account_id(w->chain.txs[b->txs[i]].account, signer);
        s->wanted_tx[i] = n->config.wants(n->config.arg, hash, signer, 32);
    }
    struct event *done = wire_to_relay(w, n->r, w->plan.latency_us, "block is whole", block_done);
    done->account = e->account;
    done->b = e->b;
}

void node_kick(struct node *n)
{
    struct world *w = n->w;
    if (!n->following || !n->ready || !n->r->wire.open)
        return;
    while (PLANTED(SKIP_HEIGHT) && n->next % 4 == 3 && n->next <= n->info.finalized_number)
        n->next++;
    for (uint64_t h = n->next; h < n->next + PIPELINE && h <= n->info.finalized_number; h++) {
        struct slot *s = &n->slots[h % PIPELINE];
        if (s->busy)
            continue;
        *s = (struct slot){.busy = true, .number = h};
        struct event *e = wire_to_relay(w, n->r, 2 * w->plan.latency_us, "block read", block_read);
        e->account = (int)(h % PIPELINE);
        e->b = n->restart;
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
