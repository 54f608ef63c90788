/* A relay's connection to a node: what chain/rpc*.c, chain/node*.c, relay/account_submit.c and
 * relay/service_chain.c do. Calls are answered in any order, each subscription's items in their order. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum { CALL_TIMEOUT_US = 10000000, POLL_US = 15000000 };

static void kick(struct world *w, struct relay *r);

static void to_leaders(struct world *w, struct relay *r, const struct manager_event *ev)
{
    for (int a = 0; a < w->plan.accounts; a++)
        if (r->accounts[a].leader)
            account_event(w, r, a, ev);
}

/* ---- the way there and back ---- */

static struct event *to_node(struct world *w, struct relay *r, const char *name,
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
static struct relay *from_relay(struct world *w, const struct event *e)
{
    struct relay *r = &w->relays[e->account];
    return r->door.number == e->a && w->now >= w->chain.nodes[r->door.node].down_until ? r : NULL;
}

static struct event *to_relay(struct world *w, int relay, uint32_t life, uint64_t extra, const char *name,
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

static bool on_this(const struct relay *r, const struct event *e)
{
    return r->door.open && r->door.number == e->a;
}

/* ---- submissions ---- */

static struct submit **find_sub(struct world *w, struct relay *r, uint32_t sub, int *ret_account)
{
    for (int a = 0; a < w->plan.accounts; a++)
        for (struct submit **at = &r->accounts[a].submits; *at; at = &(*at)->next)
            if ((*at)->sub == sub) {
                *ret_account = a;
                return at;
            }
    return NULL;
}

static void forget(struct submit **at)
{
    struct submit *s = *at;
    *at = s->next;
    free(s);
}

static void tell_reply(struct world *w, struct relay *r, struct submit **at, int account,
                       const struct answer *x)
{
    uint8_t hash[32];
    struct manager_event ev = {.type = MANAGER_EV_SUBMIT_REPLY,
                               .nonce = (*at)->nonce,
                               .hash = hash,
                               .code = x->code,
                               .rpc_code = x->rpc_code,
                               .text = x->text};
    hash_of_tx((*at)->tx, hash);
    note(w, "  r%d a%d reply for tx %u: %d %lld %s", r->index, account, (*at)->tx, x->code,
         (long long)x->rpc_code, x->text);
    (*at)->replied = true;
    if (x->code)
        forget(at);
    if (x->code == ERR_NOT_LEADER)
        r->accounts[account].beats++;
    if (PLANTED(RESEND_RENONCE) && (x->code == ERR_TIMEOUT || x->code == ERR_NET))
        store_requeue(w, r, account, ev.nonce);
    account_event(w, r, account, &ev);
}

static void submit_failed(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    int account;
    struct submit **at = find_sub(w, r, e->b, &account);
    if (at)
        tell_reply(w, r, at, account, &(struct answer){.code = ERR_NET, .text = "no node is ready"});
}

static void unwatch_arrives(struct world *w, struct event *e)
{
    struct relay *r = from_relay(w, e);
    if (r)
        pool_unwatch(w, r->door.node, r->index, r->life, e->b);
}

static void send_unwatch(struct world *w, struct relay *r, uint32_t sub)
{
    if (r->door.open)
        to_node(w, r, "unwatch arrives", unwatch_arrives)->b = sub;
}

static void reply_arrives(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    struct answer *x = e->p;
    int account;
    struct submit **at = on_this(r, e) ? find_sub(w, r, e->b, &account) : NULL;
    if (at && !(*at)->replied)
        tell_reply(w, r, at, account, x);
    else if (!at && on_this(r, e) && !x->code)
        send_unwatch(w, r, e->b); /* nobody waits for it any more */
    free(x);
}

static void drop_payload(struct event *e)
{
    free(e->p);
}

struct status_message {
    uint32_t sub;
    enum tx_status status;
    uint8_t hash[32];
    bool has_hash;
};

static void status_arrives(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    struct status_message *x = e->p;
    int account;
    struct submit **at = on_this(r, e) ? find_sub(w, r, x->sub, &account) : NULL;
    if (at && (*at)->replied) {
        uint8_t hash[32];
        struct manager_event ev = {.type = MANAGER_EV_STATUS,
                                   .nonce = (*at)->nonce,
                                   .hash = hash,
                                   .status = x->status,
                                   .block_hash = x->has_hash ? x->hash : NULL};
        hash_of_tx((*at)->tx, hash);
        note(w, "  r%d a%d tx %u status %d", r->index, account, (*at)->tx, (int)x->status);
        if (x->status == TX_FINALIZED || x->status == TX_FINALITY_TIMEOUT || x->status >= TX_USURPED)
            forget(at);
        account_event(w, r, account, &ev);
    }
    free(x);
}

void node_says_status(struct world *w, int node, const struct watch *x, enum tx_status status, uint32_t block,
                      uint32_t tx)
{
    struct relay *r = &w->relays[x->relay];
    if (!r->alive || r->life != x->life || r->door.number != x->link || r->door.node != node)
        return;
    struct status_message *m = xcalloc(1, sizeof(*m));
    m->sub = x->sub;
    m->status = status;
    m->has_hash = block || tx;
    if (tx)
        hash_of_tx(tx, m->hash);
    else if (block)
        hash_of_block(block, m->hash);
    struct event *e = to_relay(w, x->relay, x->life, 0, "status arrives", status_arrives);
    e->p = m;
    e->drop = drop_payload;
}

/* With one node and no forks nothing is sent again that a probe in the right order would have seen. */
static void check_resend(struct world *w, const struct relay *r, uint32_t tx, uint64_t probed_at)
{
    const struct tx *t = &w->chain.txs[tx];
    if (w->plan.nodes > 1 || w->stats.forks || !t->included_at[0])
        return;
    HOLDS(w, t->included_at[0] > probed_at, "probe",
          "r%d sends nonce %llu again, which was in a block when the probe was answered", r->index,
          (unsigned long long)t->nonce);
}

static void submission_arrives(struct world *w, struct event *e)
{
    struct relay *r = from_relay(w, e);
    uint32_t tx = (uint32_t)(uintptr_t)e->p, sub = e->b;
    struct answer *x;
    e->p = NULL;
    if (!r || (!w->healing && chance(w, w->plan.fault_mask ? 1 : 0)))
        return; /* lost on the way, with its connection or without */
    check_resend(w, r, tx, e->n);
    x = xcalloc(1, sizeof(*x));
    pool_submit(w, r->door.node, tx, x);
    note(w, "  n%d takes tx %u (a%d nonce %llu id %lld): %d %lld", r->door.node, tx, w->chain.txs[tx].account,
         (unsigned long long)w->chain.txs[tx].nonce, (long long)w->chain.txs[tx].id, x->code,
         (long long)x->rpc_code);
    if (!x->code)
        pool_watch(w, r->door.node, tx, r, sub);
    if (!w->healing && chance(w, w->plan.fault_mask ? 1 : 0)) {
        free(x);
        return; /* it forgets to answer */
    }
    bool good = !x->code;
    enum tx_status first = x->status;
    struct event *reply =
        to_relay(w, r->index, r->life, between(w, 0, w->plan.latency_us), "reply arrives", reply_arrives);
    reply->p = x;
    reply->drop = drop_payload;
    reply->b = sub;
    if (good) {
        struct watch watch = {.relay = r->index, .life = r->life, .link = r->door.number, .sub = sub};
        node_says_status(w, r->door.node, &watch, first, 0, 0);
    }
}

static void write_bytes(struct world *w, struct relay *r, uint32_t sub, uint32_t tx, uint64_t probed_at)
{
    struct event *e = to_node(w, r, "submission arrives", submission_arrives);
    e->p = (void *)(uintptr_t)tx;
    e->b = sub;
    e->n = probed_at;
    w->stats.submits++;
}

static bool may_stop(struct world *w)
{
    return !w->healing && w->plan.fault_mask >> fault_number("pause") & 1 && rng_below(&w->rng, 300) == 0;
}

/* The process was stopped after it had asked the gate: the bytes leave all the same. */
static void write_after_stop(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    check_sent(w, r, e->account, (uint32_t)(uintptr_t)e->p, true);
    write_bytes(w, r, e->b, (uint32_t)(uintptr_t)e->p, e->n);
}

/* The socket takes the frame: the gate is asked, and the bytes leave. */
static void socket_ready(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    int account;
    struct submit **at = on_this(r, e) ? find_sub(w, r, e->b, &account) : NULL;
    if (!at || (*at)->written)
        return; /* forgotten, or failed with its connection */
    struct submit *s = *at;
    bool open = s->generation == r->accounts[account].generation && account_gate(w, r, account);
    if (!open && !PLANTED(GATE_SKIPPED)) {
        tell_reply(w, r, at, account, &(struct answer){.code = ERR_NOT_LEADER, .text = "the gate is shut"});
        return;
    }
    s->written = true;
    bool stops =
        !w->healing && w->plan.fault_mask >> fault_number("pause") & 1 && rng_below(&w->rng, 300) == 0;
    if (!stops) {
        check_sent(w, r, account, s->tx, false);
        write_bytes(w, r, s->sub, s->tx, s->probed_at);
        return;
    }
    relay_stop(w, r, between(w, 100 * MS, 25 * SECOND));
    struct event *rest = relay_event_held(w, r, "writes after stop", write_after_stop);
    rest->account = account;
    rest->b = s->sub;
    rest->n = s->probed_at;
    rest->p = (void *)(uintptr_t)s->tx;
}

static void submit_overdue(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    int account;
    struct submit **at = on_this(r, e) ? find_sub(w, r, e->b, &account) : NULL;
    if (!at || (*at)->replied)
        return;
    bool dead = w->now < r->door.stall_until;
    tell_reply(w, r, at, account, &(struct answer){.code = ERR_TIMEOUT, .text = "no answer in time"});
    if (dead)
        door_lost(w, r);
}

void door_submit(struct world *w, struct relay *r, int account, const struct manager_effect *fx)
{
    struct sim_account *a = &r->accounts[account];
    uint32_t tx = tx_of_hash(w, fx->hash), bytes_tx;
    memcpy(&bytes_tx, fx->bytes, sizeof(bytes_tx));
    HOLDS(w, tx && fx->bytes_len == BYTES_LEN && bytes_tx == tx && w->chain.txs[tx].nonce == fx->nonce, "I3",
          "r%d sends bytes of tx %u as tx %u at nonce %llu", r->index, bytes_tx, tx,
          (unsigned long long)fx->nonce);
    check_effort(w, r, account, tx);
    door_unwatch(w, r, account, tx);
    struct submit *s = xcalloc(1, sizeof(*s));
    *s = (struct submit){.next = a->submits,
                         .sub = ++r->door.next_sub,
                         .tx = tx,
                         .nonce = fx->nonce,
                         .generation = a->generation,
                         .probed_at = r->door.probed_at[account]};
    a->submits = s;
    struct event *e;
    if (!r->door.open || !r->door.ready) {
        e = relay_later(w, r, 0, "submission fails", submit_failed);
        e->b = s->sub;
        return;
    }
    e = relay_later(w, r, between(w, 0, 300), "socket ready", socket_ready);
    e->a = r->door.number;
    e->b = s->sub;
    e = relay_later(w, r, CALL_TIMEOUT_US, "submission overdue", submit_overdue);
    e->a = r->door.number;
    e->b = s->sub;
    if (may_stop(w))
        relay_stop(w, r, between(w, 100 * MS, 25 * SECOND)); /* before it has asked the gate */
}

static void unwatch_at(struct world *w, struct relay *r, struct submit **at)
{
    if ((*at)->written && (*at)->replied)
        send_unwatch(w, r, (*at)->sub);
    forget(at);
}

void door_unwatch(struct world *w, struct relay *r, int account, uint32_t tx)
{
    for (struct submit **at = &r->accounts[account].submits; *at; at = &(*at)->next)
        if ((*at)->tx == tx) {
            unwatch_at(w, r, at);
            return;
        }
}

void door_unwatch_all(struct world *w, struct relay *r, int account)
{
    while (r->accounts[account].submits)
        unwatch_at(w, r, &r->accounts[account].submits);
}

/* ---- the questions of a probe ---- */

struct pool_list {
    size_t count;
    uint64_t at;
    uint8_t hashes[][32];
};

static struct ask *find_ask(struct relay *r, uint32_t number)
{
    for (size_t i = 0; i < ARRAY_LEN(r->door.asks); i++)
        if (r->door.asks[i].number == number)
            return &r->door.asks[i];
    return NULL;
}

static void tell_ask(struct world *w, struct relay *r, struct ask *q, struct manager_event *ev)
{
    struct ask copy = *q;
    q->number = 0;
    ev->type = copy.what == MANAGER_FX_ASK_POOL ? MANAGER_EV_POOL : MANAGER_EV_NONCE;
    if (copy.generation == r->accounts[copy.account].generation)
        account_event(w, r, copy.account, ev);
}

static void ask_answered(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    struct ask *q = on_this(r, e) ? find_ask(r, e->b) : NULL;
    struct pool_list *list = e->p;
    if (q) {
        r->door.probed_at[q->account] = list->at;
        struct manager_event ev = {
            .hashes = (const uint8_t(*)[32])list->hashes, .count = list->count, .nonce = e->n};
        tell_ask(w, r, q, &ev);
    }
    free(list);
}

static void ask_arrives(struct world *w, struct event *e)
{
    struct relay *r = from_relay(w, e);
    struct ask *q = r ? find_ask(r, e->b) : NULL;
    if (!q)
        return;
    const struct node *n = &w->chain.nodes[r->door.node];
    uint64_t nonce = w->chain.blocks[n->best].nonce[q->account];
    if (PLANTED(PROBE_ORDER) && q->what == MANAGER_FX_ASK_POOL && !e->n) {
        r->door.early_nonce[q->account] = nonce; /* the pool is asked one round trip later */
        struct event *again = to_node(w, r, "question arrives", ask_arrives);
        again->b = e->b;
        again->n = 1;
        return;
    }
    if (PLANTED(PROBE_ORDER) && q->what == MANAGER_FX_ASK_NONCE)
        nonce = r->door.early_nonce[q->account];
    struct pool_list *list = xcalloc(1, sizeof(*list) + 32 * (size_t)n->pool_count);
    list->at = w->now;
    for (uint32_t i = 0; q->what == MANAGER_FX_ASK_POOL && i < n->pool_count; i++)
        if (pool_ready(w, r->door.node, n->pool[i]))
            hash_of_tx(n->pool[i], list->hashes[list->count++]);
    struct event *reply =
        to_relay(w, r->index, r->life, between(w, 0, w->plan.latency_us), "answer arrives", ask_answered);
    reply->p = list;
    reply->drop = drop_payload;
    reply->b = e->b;
    reply->n = nonce;
}

static void ask_failed(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    struct ask *q = find_ask(r, e->b);
    if (q)
        tell_ask(w, r, q, &(struct manager_event){.failed = true});
}

void door_ask(struct world *w, struct relay *r, int account, enum manager_effect_type what)
{
    struct ask *q = find_ask(r, 0);
    INVARIANT(q);
    *q = (struct ask){.number = ++r->door.next_sub,
                      .account = account,
                      .generation = r->accounts[account].generation,
                      .what = what};
    uint64_t timeout = r->door.open && r->door.ready ? CALL_TIMEOUT_US : 0;
    relay_later(w, r, timeout, "question fails", ask_failed)->b = q->number;
    if (timeout)
        to_node(w, r, "question arrives", ask_arrives)->b = q->number;
}

/* ---- heads, runtime ---- */

static void head_arrives(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    if (!on_this(r, e) || !r->door.ready)
        return;
    if (e->account) {
        r->door.final_block = e->b;
        r->door.finalized = w->chain.blocks[e->b].number;
        kick(w, r);
        return;
    }
    r->door.best = w->chain.blocks[e->b].number;
    to_leaders(
        w, r, &(struct manager_event){.type = MANAGER_EV_BEST, .number = r->door.best, .best = r->door.best});
}

void node_says_heads(struct world *w, int node, bool best, bool final)
{
    for (int i = 0; i < w->plan.relays; i++) {
        struct relay *r = &w->relays[i];
        if (!r->alive || !r->door.open || r->door.node != node)
            continue;
        if (best)
            to_relay(w, i, r->life, 0, "best head", head_arrives)->b = w->chain.nodes[node].best;
        if (!final)
            continue;
        struct event *e = to_relay(w, i, r->life, 0, "finalized head", head_arrives);
        e->b = w->chain.nodes[node].final;
        e->account = 1;
    }
}

static void version_answered(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    if (!on_this(r, e) || !r->door.ready || r->door.spec == e->b)
        return;
    r->door.spec = e->b;
    to_leaders(
        w, r,
        &(struct manager_event){.type = MANAGER_EV_RUNTIME, .spec_version = e->b, .transaction_version = 1});
}

static void version_asked(struct world *w, struct event *e)
{
    struct relay *r = from_relay(w, e);
    if (r)
        to_relay(w, r->index, r->life, 0, "runtime version", version_answered)->b =
            w->chain.blocks[w->chain.nodes[r->door.node].best].spec;
}

void door_recheck_runtime(struct world *w, struct relay *r)
{
    if (r->door.ready && r->door.open)
        to_node(w, r, "asks for the version", version_asked);
}

static void version_told(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    if (on_this(r, e))
        door_recheck_runtime(w, r);
}

void node_says_runtime(struct world *w, int node)
{
    for (int i = 0; i < w->plan.relays; i++) {
        struct relay *r = &w->relays[i];
        if (r->alive && r->door.open && r->door.node == node && chance(w, 60))
            to_relay(w, i, r->life, 0, "runtime changed", version_told);
    }
}

static void poll(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    if (!on_this(r, e))
        return;
    door_recheck_runtime(w, r);
    relay_later(w, r, POLL_US, "poll", poll)->a = r->door.number;
}

/* ---- finalized blocks (chain/node_blocks.c, relay/service_chain.c) ---- */

static void hand_out(struct world *w, struct relay *r, const struct slot *s)
{
    const struct block *b = &w->chain.blocks[s->block];
    struct manager_included rows[BLOCK_TXS];
    r->service_next = b->number + 1;
    bool pruned = !w->healing && chance(w, w->plan.fault_mask ? 2 : 0);
    for (int a = 0; a < w->plan.accounts; a++) {
        if (!r->accounts[a].leader)
            continue;
        struct manager_block mb = {
            .number = b->number, .account_nonce = pruned ? UINT64_MAX : b->nonce[a], .included = rows};
        hash_of_block(s->block, mb.hash);
        for (uint32_t i = 0; i < b->count; i++) {
            const struct tx *t = &w->chain.txs[b->txs[i]];
            if (t->account != a || !(s->wanted >> a & 1))
                continue;
            struct manager_included *x = &rows[mb.included_count++];
            *x = (struct manager_included){.index = i, .nonce = t->nonce, .own_signer = true};
            x->result.outcome = fails_dispatch(t->id) ? DISPATCH_FAILED : DISPATCH_OK;
            hash_of_tx(b->txs[i], x->hash);
        }
        account_event(w, r, a, &(struct manager_event){.type = MANAGER_EV_FINALIZED, .block = &mb});
    }
}

static void block_done(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    struct door *d = &r->door;
    struct slot *s = &d->slots[e->account];
    if (!on_this(r, e) || e->b != d->restart)
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
    if (!on_this(r, e) || e->b != d->restart)
        return;
    s->block = w->chain.final_at[s->number];
    s->wanted = 0;
    for (int a = 0; a < w->plan.accounts; a++)
        s->wanted |= (uint8_t)(r->accounts[a].leader << a);
    struct event *done = to_relay(w, r->index, r->life, w->plan.latency_us, "block is whole", block_done);
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
        struct event *e = to_relay(w, r->index, r->life, 2 * w->plan.latency_us, "block read", block_read);
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
                       .type = MANAGER_EV_RUNTIME, .spec_version = spec, .transaction_version = 1});
    d->best = c->blocks[n->best].number;
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

static void fail_calls(struct world *w, struct relay *r)
{
    uint32_t subs[256];
    size_t count = 0;
    int account;
    for (int a = 0; a < w->plan.accounts; a++)
        for (struct submit *s = r->accounts[a].submits; s && count < 256; s = s->next)
            subs[count++] = s->sub;
    for (int replied = 0; replied < 2; replied++) /* calls first, then subscriptions */
        for (size_t i = 0; i < count; i++) {
            struct submit **at = find_sub(w, r, subs[i], &account);
            uint8_t hash[32];
            if (!at || (*at)->replied != (bool)replied)
                continue;
            struct manager_event lost = {.type = MANAGER_EV_WATCH_LOST, .nonce = (*at)->nonce, .hash = hash};
            hash_of_tx((*at)->tx, hash);
            if (!replied) {
                tell_reply(w, r, at, account, &(struct answer){.code = ERR_NET, .text = "connection lost"});
                continue;
            }
            forget(at);
            account_event(w, r, account, &lost);
        }
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
    for (size_t i = 0; i < ARRAY_LEN(d->asks); i++)
        if (d->asks[i].number)
            tell_ask(w, r, &d->asks[i], &(struct manager_event){.failed = true});
    fail_calls(w, r);
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
    if (on_this(r, e))
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
    if (!on_this(r, e) || w->plan.nodes < 2 || r->door.best + LAG_MAX >= e->n)
        return;
    door_lost(w, r);
    r->door.node = (r->door.node + 1) % w->plan.nodes;
}

void door_expect_height(struct world *w, struct relay *r, uint64_t number)
{
    struct event *e = relay_later(w, r, 0, "leaves a node that lags", leave_lagging);
    e->a = r->door.number;
    e->n = number;
}

static void silence(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    if (on_this(r, e) && w->now < r->door.stall_until)
        door_lost(w, r);
}

void door_stall(struct world *w, struct relay *r, uint64_t us)
{
    r->door.stall_until = w->now + us;
    if (us > 15 * SECOND)
        relay_later(w, r, 15 * SECOND, "silence", silence)->a = r->door.number;
}
