/* A relay's connection to a node: what chain/rpc*.c, chain/node*.c and relay/service/service_chain.c do. Calls are
 * answered in any order, each subscription's items in their order. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum { POLL_US = 15000000 };

static void kick(struct world *w, struct relay *r);

static void to_leaders(struct world *w, struct relay *r, const struct manager_event *ev)
{
    for (int a = 0; a < w->plan.accounts; a++)
        if (r->accounts[a].leader)
            account_event(w, r, a, ev);
}

/* ---- the way there and back ---- */

struct event *door_to_node(struct world *w, struct relay *r, const char *name,
                           void (*run)(struct world *w, struct event *e))
{
    struct door *d = &r->door;
    uint64_t at = w->now + latency(w);
    if (at <= d->last_in)
        at = d->last_in + 1;
    if (at < d->stall_until)
        at = d->stall_until;
    d->last_in = at;
    struct event *e = later(w, at - w->now, name, run);
    e->account = r->index;
    e->a = d->number;
    return e;
}

/* At the node: the connection on which it was sent is still there. */
struct relay *door_from(struct world *w, const struct event *e)
{
    struct relay *r = &w->relays[e->account];
    return r->door.number == e->a && w->now >= w->chain.nodes[r->door.node].down_until ? r : NULL;
}

struct event *door_to_relay(struct world *w, int relay, uint32_t life, uint64_t extra, const char *name,
                            void (*run)(struct world *w, struct event *e))
{
    struct door *d = &w->relays[relay].door;
    uint64_t at = w->now + latency(w) + extra;
    if (at <= d->last_out)
        at = d->last_out + 1;
    if (at < d->stall_until)
        at = d->stall_until;
    d->last_out = at;
    struct event *e = relay_at(w, relay, life, at, name, run);
    e->a = d->number;
    return e;
}

bool door_is_on(const struct relay *r, const struct event *e)
{
    return r->door.open && r->door.number == e->a;
}

/* ---- heads, runtime ---- */

static void heard_best(struct relay *r, uint64_t number)
{
    r->door.best = number;
    if (number > r->saw_best)
        r->saw_best = number;
}

static void head_arrives(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    if (!door_is_on(r, e) || !r->door.ready)
        return;
    if (e->account) {
        r->door.final_block = e->b;
        r->door.finalized = w->chain.blocks[e->b].number;
        kick(w, r);
        return;
    }
    heard_best(r, w->chain.blocks[e->b].number);
    to_leaders(w, r,
               &(struct manager_event){.type = MANAGER_EV_BEST,
                                       .best = {.number = r->door.best, .best_known = r->saw_best}});
}

void node_says_heads(struct world *w, int node, bool best, bool final)
{
    for (int i = 0; i < w->plan.relays; i++) {
        struct relay *r = &w->relays[i];
        if (!r->alive || !r->door.open || r->door.node != node)
            continue;
        if (best)
            door_to_relay(w, i, r->life, 0, "best head", head_arrives)->b = w->chain.nodes[node].best;
        if (!final)
            continue;
        struct event *e = door_to_relay(w, i, r->life, 0, "finalized head", head_arrives);
        e->b = w->chain.nodes[node].final;
        e->account = 1;
    }
}

static void version_answered(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    if (!door_is_on(r, e) || !r->door.ready || r->door.spec == e->b)
        return;
    r->door.spec = e->b;
    to_leaders(
        w, r,
        &(struct manager_event){.type = MANAGER_EV_RUNTIME,
                                .chain = {.spec_version = e->b, .transaction_version = version_of(w, e->b)}});
}

static void version_asked(struct world *w, struct event *e)
{
    struct relay *r = door_from(w, e);
    if (r)
        door_to_relay(w, r->index, r->life, 0, "runtime version", version_answered)->b =
            w->chain.blocks[w->chain.nodes[r->door.node].best].spec;
}

void door_recheck_runtime(struct world *w, struct relay *r)
{
    if (r->door.ready && r->door.open)
        door_to_node(w, r, "asks for the version", version_asked);
}

static void version_told(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    if (door_is_on(r, e))
        door_recheck_runtime(w, r);
}

void node_says_runtime(struct world *w, int node)
{
    for (int i = 0; i < w->plan.relays; i++) {
        struct relay *r = &w->relays[i];
        if (r->alive && r->door.open && r->door.node == node && chance(w, 60))
            door_to_relay(w, i, r->life, 0, "runtime changed", version_told);
    }
}

static void poll(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    if (!door_is_on(r, e))
        return;
    door_recheck_runtime(w, r);
    relay_later(w, r, POLL_US, "poll", poll)->a = r->door.number;
}

/* ---- finalized blocks (chain/node_blocks.c, relay/service/service_chain.c) ---- */

struct manager_included included_tx(const struct world *w, uint32_t tx, uint8_t bytes[BYTES_LEN])
{
    const struct tx *t = &w->chain.txs[tx];
    struct manager_included x = {.nonce = t->nonce,
                                 .own_signer = true,
                                 .bytes = bytes,
                                 .bytes_len = BYTES_LEN,
                                 .call_len = CALL_LEN,
                                 .era_birth = t->birth,
                                 .era_death = t->death,
                                 .tip = t->tip};
    bytes_of_tx(w, tx, bytes);
    hash_of_tx(tx, x.hash);
    return x;
}

static void hand_out(struct world *w, struct relay *r, const struct slot *s)
{
    const struct block *b = &w->chain.blocks[s->block];
    struct manager_included rows[BLOCK_TXS];
    uint8_t bytes[BLOCK_TXS][BYTES_LEN];
    r->service_next = b->number + 1;
    if (b->number > r->saw)
        r->saw = b->number;
    bool pruned = !w->healing && chance(w, w->plan.fault_mask ? 2 : 0);
    for (int a = 0; a < w->plan.accounts; a++) {
        if (!r->accounts[a].leader)
            continue;
        bool unread = pruned || !(s->wanted >> a & 1); /* it was led by another one when the block was read */
        struct manager_block mb = {.number = b->number,
                                   .account_nonce = unread ? UINT64_MAX : b->nonce[a],
                                   .included = rows,
                                   .has_balance = !unread,
                                   .balance = w->chain.unpaid[a] ? 0 : 1000};
        hash_of_block(s->block, mb.hash);
        for (uint32_t i = 0; i < b->count; i++) {
            const struct tx *t = &w->chain.txs[b->txs[i]];
            if (t->account != a || !(s->wanted >> a & 1))
                continue;
            struct manager_included *x = &rows[mb.included_count++];
            *x = included_tx(w, b->txs[i], bytes[i]);
            x->index = i;
            x->result.outcome = fate_of(w, t) == FATE_OK ? DISPATCH_OK : DISPATCH_FAILED;
            x->result.inner = fate_of(w, t) == FATE_FAILS_INSIDE;
        }
        account_event(w, r, a, &(struct manager_event){.type = MANAGER_EV_FINALIZED, .block = &mb});
    }
}

static void block_done(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    struct door *d = &r->door;
    struct slot *s = &d->slots[e->account];
    if (!door_is_on(r, e) || e->b != d->restart)
        return; /* abandoned */
    s->done = true;
    while (d->ready && (s = &d->slots[d->next % PIPELINE])->done && s->number == d->next) {
        struct slot out = *s;
        *s = (struct slot){0};
        d->next++;
        hand_out(w, r, &out);
    }
    kick(w, r);
}

static void block_read(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    struct door *d = &r->door;
    struct slot *s = &d->slots[e->account];
    if (!door_is_on(r, e) || e->b != d->restart)
        return;
    s->block = w->chain.final_at[s->number];
    s->wanted = 0;
    for (int a = 0; a < w->plan.accounts; a++)
        s->wanted |= (uint8_t)(r->accounts[a].leader << a);
    struct event *done =
        door_to_relay(w, r->index, r->life, w->plan.latency_us, "block is whole", block_done);
    done->account = e->account;
    done->b = e->b;
}

static void kick(struct world *w, struct relay *r)
{
    struct door *d = &r->door;
    if (!d->following || !d->ready || !d->open)
        return;
    while (PLANTED(SKIP_HEIGHT) && d->next % 4 == 3 && d->next <= d->finalized)
        d->next++;
    for (uint64_t h = d->next; h < d->next + PIPELINE && h <= d->finalized; h++) {
        struct slot *s = &d->slots[h % PIPELINE];
        if (s->busy)
            continue;
        *s = (struct slot){.busy = true, .number = h};
        struct event *e =
            door_to_relay(w, r->index, r->life, 2 * w->plan.latency_us, "block read", block_read);
        e->account = (int)(h % PIPELINE);
        e->b = d->restart;
    }
}

static void clear_slots(struct door *d)
{
    d->restart++;
    memset(d->slots, 0, sizeof(d->slots));
}

static void kick_later(struct world *w, struct event *e)
{
    kick(w, &w->relays[e->relay]);
}

void door_follow(struct world *w, struct relay *r, uint64_t number)
{
    struct door *d = &r->door;
    if (r->service_following && number >= r->service_next)
        return;
    r->service_following = true;
    r->service_next = number;
    d->following = true;
    d->next = number;
    clear_slots(d);
    relay_later(w, r, 0, "follow", kick_later);
}

/* ---- up and down ---- */

static void connected(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    struct door *d = &r->door;
    const struct chain *c = &w->chain;
    if (d->open || d->number != e->a)
        return;
    const struct node *n = &c->nodes[d->node];
    if (w->now < n->down_until || w->now < d->stall_until) {
        d->node = (int)rng_below(&w->rng, (uint64_t)w->plan.nodes);
        relay_later(w, r, backoff_next(&d->backoff, &w->rng) * MS, "connects", connected)->a = d->number;
        return;
    }
    d->backoff.attempt = 0;
    d->open = true;
    d->last_in = d->last_out = w->now;
    uint32_t spec = c->blocks[n->best].spec;
    bool changed = d->spec && d->spec != spec;
    d->spec = spec;
    if (changed)
        to_leaders(w, r,
                   &(struct manager_event){
                       .type = MANAGER_EV_RUNTIME,
                       .chain = {.spec_version = spec, .transaction_version = version_of(w, spec)}});
    heard_best(r, c->blocks[n->best].number);
    d->finalized = c->blocks[n->final].number;
    d->final_block = n->final;
    d->ready = true;
    relay_later(w, r, POLL_US, "poll", poll)->a = d->number;
    relay_chain_ready(w, r);
    kick(w, r);
}

void door_open(struct world *w, struct relay *r)
{
    struct door *d = &r->door;
    d->node = (int)rng_below(&w->rng, (uint64_t)w->plan.nodes);
    d->backoff = (struct backoff){.base_ms = 200, .cap_ms = 5000};
    d->number++;
    relay_later(w, r, 6 * latency(w), "connects", connected)->a = d->number;
}

void door_lost(struct world *w, struct relay *r)
{
    struct door *d = &r->door;
    if (!d->open)
        return;
    pool_drop_watches(w, d->node, r->index, r->life, d->number);
    d->open = false;
    d->number++;
    clear_slots(d);
    bool was_ready = d->ready;
    door_fail_calls(w, r);
    d->ready = false;
    if (was_ready)
        to_leaders(w, r, &(struct manager_event){.type = MANAGER_EV_CHAIN_DOWN});
    if (chance(w, 40))
        d->node = (int)rng_below(&w->rng, (uint64_t)w->plan.nodes);
    relay_later(w, r, 100 * MS + 6 * latency(w), "connects", connected)->a = d->number;
}

static void found_out(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    if (door_is_on(r, e))
        door_lost(w, r);
}

void door_cut(struct world *w, struct relay *r)
{
    if (!r->door.open)
        return;
    pool_drop_watches(w, r->door.node, r->index, r->life, r->door.number);
    relay_later(w, r, 0, "connection cut", found_out)->a = r->door.number;
}

void door_close(struct world *w, struct relay *r)
{
    struct door *d = &r->door;
    if (d->open)
        pool_drop_watches(w, d->node, r->index, r->life, d->number);
    d->open = d->ready = false;
    d->number++;
}

enum { LAG_MAX = 16 };

static void leave_lagging(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    if (!door_is_on(r, e) || w->plan.nodes < 2 || r->door.best + LAG_MAX >= e->n)
        return;
    door_lost(w, r);
    r->door.node = (r->door.node + 1) % w->plan.nodes;
}

void door_expect_height(struct world *w, struct relay *r, uint64_t number)
{
    if (number <= r->saw_best)
        return;
    r->saw_best = number;
    struct event *e = relay_later(w, r, 0, "leaves a node that lags", leave_lagging);
    e->a = r->door.number;
    e->n = number;
}

static void silence(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    if (door_is_on(r, e) && w->now < r->door.stall_until)
        door_lost(w, r);
}

void door_stall(struct world *w, struct relay *r, uint64_t us)
{
    r->door.stall_until = w->now + us;
    if (us > 15 * SECOND)
        relay_later(w, r, 15 * SECOND, "silence", silence)->a = r->door.number;
}
