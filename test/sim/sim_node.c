/* chain/node.h for simulated relays: a connection (a wire) to one of the world's nodes, what it
 * tells of heads and runtimes, and finalized blocks in order, read ahead and back-filled
 * (chain/node*.c). Calls are answered in any order, each subscription's items in their order. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "sim.h"
#include "sim_node.h"

enum { POLL_US = 15000000, LAG_MAX = 16 };

/* ---- the way there and back ---- */

struct event *wire_to_node(struct world *w, struct relay *r, const char *name,
                           void (*run)(struct world *w, struct event *e))
{
    struct wire *d = &r->wire;
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

/* For how long a call waits for its turn, as the real door lets it where an endpoint has refused
 * calls as too many. */
uint64_t wire_turn(struct world *w, struct relay *r)
{
    struct wire *d = &r->wire;
    uint64_t at = d->turn_at > w->now ? d->turn_at : w->now;
    d->turn_at = at + w->plan.pace_us;
    return at - w->now;
}

/* At the node: the connection on which it was sent is still there. */
struct relay *wire_from(struct world *w, const struct event *e)
{
    struct relay *r = &w->relays[e->account];
    return r->wire.number == e->a && w->now >= w->chain.nodes[r->wire.node].down_until ? r : NULL;
}

struct event *wire_to_relay(struct world *w, struct relay *r, uint64_t extra, const char *name,
                            void (*run)(struct world *w, struct event *e))
{
    struct wire *d = &r->wire;
    uint64_t at = w->now + latency(w) + extra;
    if (at <= d->last_out)
        at = d->last_out + 1;
    if (at < d->stall_until)
        at = d->stall_until;
    d->last_out = at;
    struct event *e = process_at(w, r->process->index, r->process->life, at, name, run);
    e->a = d->number;
    return e;
}

struct node *wire_is_on(const struct world *w, const struct event *e)
{
    const struct relay *r = &w->relays[e->process];
    return r->node && r->wire.open && r->wire.number == e->a ? r->node : NULL;
}

/* ---- heads, runtime ---- */

/* True: it became higher. */
static bool raise_best_known(struct node *n, uint64_t number, bool told)
{
    uint64_t now = loop_now_ms(n->loop), before = heard_best(&n->heard, now);
    uint64_t was = n->info.best_known;
    if (told)
        heard_told(&n->heard, number, now);
    else
        heard_add(&n->heard, number, now);
    n->info.best_known = heard_best(&n->heard, now);
    n->best_known_fell |= n->info.best_known < was;
    return n->info.best_known > before;
}

/* The height of a block as its node says it. */
static uint64_t height_of(const struct node *n, uint32_t block, enum lie lie)
{
    struct world *w = n->w;
    uint64_t number = w->chain.blocks[block].number;
    return lies(w, n->r->wire.node, lie) ? lie_height(w, number) : number;
}

static void best_is(struct node *n, uint32_t block)
{
    n->info.best_number = height_of(n, block, LIE_BEST);
    hash_of_block(block, n->info.best_hash);
    raise_best_known(n, n->info.best_number, false);
}

static void final_is(struct node *n, uint32_t block)
{
    n->info.finalized_number = height_of(n, block, LIE_FINAL);
    hash_of_block(block, n->info.finalized_hash);
}

static struct node_head head_of(const struct world *w, uint32_t block)
{
    struct node_head h = {.number = w->chain.blocks[block].number};
    hash_of_block(block, h.hash);
    hash_of_block(w->chain.blocks[block].parent, h.parent);
    return h;
}

static void tell_best_again(struct node *n)
{
    struct node_head head = {.number = n->info.best_number};
    memcpy(head.hash, n->info.best_hash, 32);
    n->config.on_best(n->config.arg, &head);
}

static void head_arrives(struct world *w, struct event *e)
{
    struct node *n = wire_is_on(w, e);
    if (!n || !n->ready || is_stuck(w, n->r))
        return;
    if (e->account) {
        uint64_t before = n->info.finalized_number;
        bool reads = n->following && w->chain.blocks[e->b].number >= n->next;
        final_is(n, e->b);
        if (n->info.finalized_number < n->heard.base)
            heard_base(&n->heard, n->info.finalized_number);
        node_kick(n);
        if (has(w, FEATURE_DEMAND) && (!reads || !heard_is_near(n->info.finalized_number, before)))
            tell_best_again(n);
        return;
    }
    struct node_head head = head_of(w, e->b);
    best_is(n, e->b);
    head.number = n->info.best_number;
    n->config.on_best(n->config.arg, &head);
}

/* One that the connection has told last is none: the real door passes it over. */
static bool is_known(const struct node *n, const struct event *e)
{
    uint8_t hash[32];
    hash_of_block(e->b, hash);
    return e->account ? n->info.finalized_number == height_of(n, e->b, LIE_FINAL)
                      : n->info.best_number == height_of(n, e->b, LIE_BEST) &&
                            memcmp(n->info.best_hash, hash, 32) == 0;
}

static void head_again(struct world *w, struct event *e)
{
    const struct node *n = wire_is_on(w, e);
    if (n && n->ready && !is_known(n, e))
        head_arrives(w, e);
}

/* A balancer's nodes are not equally far, and some tell a head more than once: an earlier one comes
 * after it, and then itself again. */
static void repeat(struct world *w, struct relay *r, uint32_t block, bool final)
{
    if (!has(w, FEATURE_REPEATS) || w->healing || !chance(w, 30))
        return;
    uint64_t number = w->chain.blocks[block].number, by = between(w, 0, final ? 2 : 3);
    uint32_t told[] = {ancestor_at(w, block, number > by ? number - by : 0), block};
    w->stats.repeated++;
    for (size_t i = 0; i < ARRAY_LEN(told); i++) {
        struct event *e =
            wire_to_relay(w, r, between(w, 0, w->plan.block_us / 2), "head again", head_again);
        e->b = told[i];
        e->account = final;
    }
}

void node_says_heads(struct world *w, int node, bool best, bool final)
{
    for (int i = 0; i < w->plan.relays; i++) {
        struct relay *r = &w->relays[i];
        if (!r->node || !r->wire.open || r->wire.node != node)
            continue;
        if (best) {
            wire_to_relay(w, r, 0, "best head", head_arrives)->b = w->chain.nodes[node].best;
            repeat(w, r, w->chain.nodes[node].best, false);
        }
        if (!final)
            continue;
        struct event *e = wire_to_relay(w, r, 0, "finalized head", head_arrives);
        e->b = w->chain.nodes[node].final;
        e->account = 1;
        repeat(w, r, e->b, true);
    }
}

static void set_runtime(struct node *n, uint32_t spec)
{
    n->info.spec_version = spec;
    n->info.transaction_version = version_of(n->w, spec);
}

static void version_answered(struct world *w, struct event *e)
{
    struct node *n = wire_is_on(w, e);
    if (!n || !n->ready || n->info.spec_version == e->b)
        return;
    set_runtime(n, e->b);
    n->config.on_runtime(n->config.arg, &n->info);
}

static void version_asked(struct world *w, struct event *e)
{
    struct relay *r = wire_from(w, e);
    if (r)
        wire_to_relay(w, r, 0, "runtime version", version_answered)->b =
            w->chain.blocks[w->chain.nodes[r->wire.node].best].spec;
}

void node_recheck_runtime(struct node *n)
{
    if (n->ready && n->r->wire.open)
        wire_to_node(n->w, n->r, "asks for the version", version_asked);
}

static void version_told(struct world *w, struct event *e)
{
    struct node *n = wire_is_on(w, e);
    if (n)
        node_recheck_runtime(n);
}

void node_says_runtime(struct world *w, int node)
{
    for (int i = 0; i < w->plan.relays; i++) {
        struct relay *r = &w->relays[i];
        if (r->node && r->wire.open && r->wire.node == node && chance(w, 60))
            wire_to_relay(w, r, 0, "runtime changed", version_told);
    }
}

static void heads_asked(struct world *w, struct event *e)
{
    struct relay *r = wire_from(w, e);
    if (!r)
        return;
    wire_to_relay(w, r, 0, "best head again", head_again)->b = w->chain.nodes[r->wire.node].best;
    struct event *final = wire_to_relay(w, r, 0, "finalized head again", head_again);
    final->b = w->chain.nodes[r->wire.node].final;
    final->account = 1;
}

/* Where blocks are made without end, the next one tells all this. */
static void poll_heads(struct world *w, struct node *n)
{
    uint64_t before = n->info.best_known;
    if (!has(w, FEATURE_DEMAND))
        return;
    heard_repeat(&n->heard, n->info.best_number, loop_now_ms(n->loop));
    n->info.best_known = heard_best(&n->heard, loop_now_ms(n->loop));
    if (n->best_known_fell || n->info.best_known < before)
        tell_best_again(n);
    n->best_known_fell = false;
    wire_to_node(w, n->r, "asks for the heads", heads_asked);
}

static void poll(struct world *w, struct event *e)
{
    struct node *n = wire_is_on(w, e);
    if (!n)
        return;
    node_recheck_runtime(n);
    if (n->ready && n->r->wire.open)
        poll_heads(w, n);
    process_later(w, n->r->process, POLL_US, "poll", poll)->a = n->r->wire.number;
}

/* ---- up and down ---- */

static void connected(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->process];
    struct wire *d = &r->wire;
    struct node *n = r->node;
    if (!n || n->closing || d->open || d->number != e->a)
        return;
    const struct chain_node *at = &w->chain.nodes[d->node];
    if (w->now < at->down_until || w->now < d->stall_until) {
        d->node = (int)rng_below(&w->rng, (uint64_t)w->plan.nodes);
        process_later(w, r->process, backoff_next(&n->backoff, &w->rng) * MS, "connects", connected)
            ->a = d->number;
        return;
    }
    n->backoff.attempt = 0;
    d->open = true;
    d->last_in = d->last_out = d->turn_at = w->now;
    uint32_t spec = w->chain.blocks[at->best].spec;
    bool changed = n->info.spec_version && n->info.spec_version != spec;
    set_runtime(n, spec);
    final_is(n, at->final);
    heard_base(&n->heard, n->info.finalized_number);
    best_is(n, at->best);
    n->ready = true;
    process_later(w, r->process, POLL_US, "poll", poll)->a = d->number;
    if (changed)
        n->config.on_runtime(n->config.arg, &n->info);
    n->config.on_ready(n->config.arg, &n->info);
    node_kick(n);
}

static void calls_fail(struct node *n, int code)
{
    uint32_t last = n->r->wire.next_sub;
    node_asks_fail(n, last, code);
    node_submissions_fail(n, last, code);
}

void node_lost(struct node *n)
{
    struct world *w = n->w;
    struct relay *r = n->r;
    struct err err;
    if (!r->wire.open)
        return;
    pool_drop_watches(w, r->wire.node, r->index, r->process->life, r->wire.number);
    r->wire.open = false;
    r->wire.number++;
    node_blocks_clear(n);
    bool was_ready = n->ready;
    n->ready = false;
    calls_fail(n, ERR_NET);
    err_set(&err, ERR_NET, "the connection to the node is lost");
    if (was_ready)
        n->config.on_down(n->config.arg, &err);
    if (chance(w, 40))
        r->wire.node = (int)rng_below(&w->rng, (uint64_t)w->plan.nodes);
    process_later(w, r->process, 100 * MS + 6 * latency(w), "connects", connected)->a =
        r->wire.number;
}

static void found_out(struct world *w, struct event *e)
{
    struct node *n = wire_is_on(w, e);
    if (n)
        node_lost(n);
}

static void silence(struct world *w, struct event *e)
{
    struct node *n = wire_is_on(w, e);
    if (n && w->now < n->r->wire.stall_until)
        node_lost(n);
}

void wire_cut(struct world *w, struct relay *r)
{
    if (!r->wire.open)
        return;
    pool_drop_watches(w, r->wire.node, r->index, r->process->life, r->wire.number);
    process_later(w, r->process, 0, "connection cut", found_out)->a = r->wire.number;
}

void wire_stall(struct world *w, struct relay *r, uint64_t us)
{
    r->wire.stall_until = w->now + us;
    if (us > 15 * SECOND)
        process_later(w, r->process, 15 * SECOND, "silence", silence)->a = r->wire.number;
}

/* The process is gone. */
void wire_close(struct world *w, struct relay *r)
{
    if (r->wire.open)
        pool_drop_watches(w, r->wire.node, r->index, r->process->life, r->wire.number);
    r->wire.open = false;
    r->wire.number++;
}

static void leave_lagging(struct world *w, struct event *e)
{
    struct node *n = wire_is_on(w, e);
    if (!n || w->plan.nodes < 2 || n->info.best_number + LAG_MAX >= e->n)
        return;
    node_lost(n);
    n->r->wire.node = (n->r->wire.node + 1) % w->plan.nodes;
}

void node_expect_height(struct node *n, uint64_t number)
{
    if (!raise_best_known(n, number, true))
        return;
    struct event *e =
        process_later(n->w, n->r->process, 0, "leaves a node that lags", leave_lagging);
    e->a = n->r->wire.number;
    e->n = number;
}

/* ---- life ---- */

struct node *node_new(struct loop *l, const struct node_config *config, struct err *ret_err)
{
    struct node *n = xcalloc(1, sizeof(*n));
    (void)ret_err;
    n->w = loop_world(l);
    n->loop = l;
    n->r = &n->w->relays[loop_process(l)->index];
    n->config = *config;
    n->info = (struct node_info){.ss58_prefix = 42,
                                 .block_hash_count = 2400,
                                 .metadata = (const struct metadata *)(const void *)n};
    memset(n->info.genesis, 0, 32);
    hash_of_block(0, n->info.genesis);
    memcpy(n->info.spec_name, "sim", 4);
    list_init(&n->submissions);
    list_init(&n->asks);
    n->r->node = n;
    return n;
}

void node_open(struct node *n)
{
    struct relay *r = n->r;
    r->wire.node = (int)rng_below(&n->w->rng, (uint64_t)n->w->plan.nodes);
    n->backoff = (struct backoff){.base_ms = 200, .cap_ms = 5000};
    r->wire.number++;
    process_later(n->w, r->process, 6 * latency(n->w), "connects", connected)->a = r->wire.number;
}

static void closed(struct loop_task *task)
{
    struct node *n = CONTAINER_OF(task, struct node, closed);
    void (*cb)(void *arg) = n->close_cb;
    void *arg = n->close_arg;
    n->r->node = NULL;
    free(n);
    cb(arg);
}

void node_close(struct node *n, void (*cb)(void *arg), void *arg)
{
    n->closing = true;
    n->ready = false;
    n->close_cb = cb;
    n->close_arg = arg;
    wire_close(n->w, n->r);
    node_blocks_clear(n);
    calls_fail(n, ERR_CANCELED);
    loop_post(n->loop, &n->closed, closed);
}

const struct node_info *node_info(const struct node *n)
{
    return n->ready ? &n->info : NULL;
}

bool node_metadata_confirmed(struct node *n)
{
    return n->ready;
}

bool node_version_confirmed(struct node *n)
{
    return n->ready;
}

/* All are of one chain. */
bool node_refuse_chain(struct node *n, const uint8_t genesis[32], const struct err *why)
{
    (void)n;
    (void)genesis;
    (void)why;
    return false;
}

/* Nodes are not compared in the simulation. */
const char *node_unconfirmed(struct node *n)
{
    (void)n;
    return NULL;
}

void node_behind(struct node *n)
{
    (void)n;
}

const char *node_slow(const struct node *n)
{
    (void)n;
    return NULL;
}

const char *node_contradicted(const struct node *n, size_t account)
{
    (void)n;
    (void)account;
    return NULL;
}

size_t node_watch_account(struct node *n, const uint8_t *id, size_t len)
{
    n->watched[n->watched_count] = account_of_id(id, len);
    return n->watched_count++;
}

void node_stats(const struct node *n, struct node_stats *ret)
{
    (void)n;
    *ret = (struct node_stats){0};
}

const char *node_endpoint(const struct node *n)
{
    return n->config.urls[0];
}
