/* What a relay asks a node (chain/node/node_ask.c). */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "sim.h"
#include "sim_memory.h"
#include "sim_node.h"

static void drop_payload(struct event *e)
{
    free(e->p);
}

enum ask_kind { ASK_NONCE, ASK_HASH, ASK_PENDING, ASK_ABOVE };

struct ask {
    struct list node;
    struct node_ask *a;
    uint32_t number;
    enum ask_kind kind;
    int account;
    uint64_t height;
};

struct ask_answer {
    uint64_t at, number;
    uint8_t hash[32];
    bool found, untold;
    size_t count;
    uint32_t txs[];
};

static struct ask *ask_of(const struct node *n, uint32_t number)
{
    LIST_EACH (i, &n->asks) {
        struct ask *q = CONTAINER_OF(i, struct ask, node);
        if (q->number == number)
            return q;
    }
    return NULL;
}

static void tell_each(struct node *n, struct node_ask *a, const struct ask_answer *x)
{
    for (size_t i = 0; i < x->count; i++) {
        struct node_included in;
        uint8_t bytes[BYTES_LEN];
        included_tx(n->w, x->txs[i], bytes, &in);
        buf_put(a->hashes, in.tx.hash, 32);
        if (a->each)
            a->each(a, &in);
    }
}

static void ask_answered(struct world *w, struct event *e)
{
    struct node *n = wire_is_on(w, e);
    struct ask *q = n ? ask_of(n, e->b) : NULL;
    struct ask_answer *x = e->p;
    if (q) {
        struct node_ask *a = q->a;
        if (q->kind == ASK_NONCE)
            n->r->accounts[q->account].probed_at = x->at;
        list_remove(&q->node);
        free(q);
        a->number = x->number;
        a->found = x->found;
        a->untold = x->untold;
        if (x->untold)
            err_set(&a->err, ERR_RPC, "no node tells its pool");
        memcpy(a->hash, x->hash, 32);
        tell_each(n, a, x);
        a->cb(a);
    }
    free(x);
}

static struct ask_answer *answer_new(const struct world *w, size_t most)
{
    struct ask_answer *x = world_alloc(sizeof(*x) + most * sizeof(x->txs[0]));
    x->at = w->now;
    return x;
}

static struct ask_answer *pool_answer(struct world *w, int node)
{
    const struct chain_node *n = &w->chain.nodes[node];
    struct ask_answer *x = answer_new(w, n->pool_count + 1);
    x->untold = has(w, FEATURE_ABILITIES) && node % 2 == 0;
    for (uint32_t i = 0; i < n->pool_count && !x->untold; i++)
        if (pool_ready(w, node, n->pool[i]))
            x->txs[x->count++] = n->pool[i];
    if (!x->untold && lies(w, node, LIE_POOLED)) {
        int account = (int)rng_below(&w->rng, (uint64_t)w->plan.accounts);
        x->txs[x->count] = lie_forged(w, n->best, account);
        x->count += x->txs[x->count] != 0;
    }
    return x;
}

static struct ask_answer *above_answer(struct world *w, int node, uint64_t height)
{
    const struct chain *c = &w->chain;
    uint32_t best = c->nodes[node].best;
    size_t most = 0;
    for (uint32_t b = best; c->blocks[b].number > height; b = c->blocks[b].parent)
        most += c->blocks[b].count;
    struct ask_answer *x = answer_new(w, most);
    for (uint32_t b = best; c->blocks[b].number > height; b = c->blocks[b].parent)
        for (uint32_t i = 0; i < c->blocks[b].count; i++)
            x->txs[x->count++] = c->blocks[b].txs[i];
    return x;
}

static struct ask_answer *hash_answer(struct world *w, int node, uint64_t height)
{
    const struct chain *c = &w->chain;
    struct ask_answer *x = answer_new(w, 0);
    x->found = c->blocks[c->nodes[node].best].number >= height;
    if (x->found)
        hash_of_block(ancestor_at(w, c->nodes[node].best, height), x->hash);
    return x;
}

/* The question may be gone at the asker's end; the node answers all the same. It carries what it
 * asks: number in e->n, what and of which account in e->account's place of the event below. */
struct asking {
    enum ask_kind kind;
    int account;
    uint64_t height;
    bool again;
};

static void ask_arrives(struct world *w, struct event *e)
{
    struct relay *r = wire_from(w, e);
    struct asking *q = e->p;
    struct ask_answer *x;
    uint64_t true_nonce;
    if (!r) {
        free(q);
        return;
    }
    struct sim_account *a = &r->accounts[q->account < 0 ? 0 : q->account];
    const struct block *best = &w->chain.blocks[w->chain.nodes[r->wire.node].best];
    if (PLANTED(PROBE_ORDER) && q->kind == ASK_PENDING && !q->again) {
        for (int i = 0; i < w->plan.accounts; i++)
            r->accounts[i].early_nonce = best->nonce[i]; /* the pool is asked a while later */
        q->again = true;
        struct event *again =
            later(w, latency(w) + w->plan.block_us / 3, "question arrives", ask_arrives);
        again->account = r->index;
        again->a = r->wire.number;
        again->b = e->b;
        again->p = q;
        again->drop = drop_payload;
        return;
    }
    switch (q->kind) {
    case ASK_NONCE:
        x = answer_new(w, 0);
        x->number = PLANTED(PROBE_ORDER) ? a->early_nonce : best->nonce[q->account];
        true_nonce = x->number;
        if (lies(w, r->wire.node, LIE_NONCE))
            x->number = lie_nonce(w);
        else
            x->number = lie_once(w, x->number);
        if (x->number < true_nonce)
            x->at = 0; /* a used nonce is told as free, so the bytes may be sent once more */
        break;
    case ASK_HASH:
        x = hash_answer(w, r->wire.node, q->height);
        break;
    case ASK_PENDING:
        x = pool_answer(w, r->wire.node);
        break;
    case ASK_ABOVE:
        x = above_answer(w, r->wire.node, q->height);
        break;
    default:
        UNREACHABLE();
    }
    free(q);
    struct event *reply =
        wire_to_relay(w, r, between(w, 0, w->plan.latency_us), "answer arrives", ask_answered);
    reply->p = x;
    reply->drop = drop_payload;
    reply->b = e->b;
}

static void ask_failed(struct world *w, struct event *e)
{
    struct node *n = w->relays[e->process].node;
    struct ask *q = n ? ask_of(n, e->b) : NULL;
    if (!q)
        return;
    struct node_ask *a = q->a;
    list_remove(&q->node);
    free(q);
    err_set(&a->err, (int)e->n, "the node did not answer");
    a->cb(a);
}

static void ask(struct node *n, struct node_ask *a, const struct ask *like,
                void (*cb)(struct node_ask *a))
{
    struct world *w = n->w;
    struct relay *r = n->r;
    struct ask *q = xcalloc(1, sizeof(*q));
    *q = *like;
    q->node = (struct list){0};
    q->a = a;
    q->number = ++r->wire.next_sub;
    err_clear(&a->err);
    a->node = n;
    a->cb = cb;
    list_append(&n->asks, &q->node);
    bool open = r->wire.open && n->ready;
    uint64_t turn = open ? wire_turn(w, r) : 0, timeout = open ? turn + CALL_TIMEOUT_US : 0;
    struct event *e = process_later(w, r->process, timeout, "question fails", ask_failed);
    e->b = q->number;
    e->n = (uint64_t)(timeout ? ERR_TIMEOUT : ERR_NET);
    if (!timeout)
        return;
    struct asking *sent = world_alloc(sizeof(*sent));
    *sent = (struct asking){.kind = q->kind, .account = q->account, .height = q->height};
    if (r->wire.last_in < w->now + turn)
        r->wire.last_in = w->now + turn;
    e = wire_to_node(w, r, "question arrives", ask_arrives);
    e->b = q->number;
    e->p = sent;
    e->drop = drop_payload;
}

void node_ask_nonce(struct node *n, struct node_ask *a, const uint8_t *id, size_t len,
                    void (*cb)(struct node_ask *a))
{
    ask(n, a, &(struct ask){.kind = ASK_NONCE, .account = account_of_id(id, len)}, cb);
}

void node_ask_hash(struct node *n, struct node_ask *a, uint64_t number,
                   void (*cb)(struct node_ask *a))
{
    ask(n, a, &(struct ask){.kind = ASK_HASH, .account = -1, .height = number}, cb);
}

void node_ask_pending(struct node *n, struct node_ask *a, struct buf *ret_hashes,
                      void (*each)(struct node_ask *a, const struct node_included *x),
                      void (*cb)(struct node_ask *a))
{
    a->hashes = ret_hashes;
    a->each = each;
    ask(n, a, &(struct ask){.kind = ASK_PENDING, .account = -1}, cb);
}

void node_ask_above(struct node *n, struct node_ask *a, uint64_t number, struct buf *ret_hashes,
                    void (*each)(struct node_ask *a, const struct node_included *x),
                    void (*cb)(struct node_ask *a))
{
    a->hashes = ret_hashes;
    a->each = each;
    ask(n, a, &(struct ask){.kind = ASK_ABOVE, .account = -1, .height = number}, cb);
}

/* The connection is lost, or closed. */
void node_asks_fail(struct node *n, uint32_t last, int code)
{
    for (struct list *i = list_first(&n->asks); i; i = list_first(&n->asks)) {
        struct ask *q = CONTAINER_OF(i, struct ask, node);
        if (q->number > last)
            break;
        struct event fail = {.process = n->r->process->index, .b = q->number, .n = (uint64_t)code};
        ask_failed(n->w, &fail);
    }
}
