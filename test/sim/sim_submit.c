/* What a relay sends over its connection to a node: submissions through the gate, what is heard of them, and
 * the two questions of a probe (relay/account/account_submit.c, chain/node_submit.c, chain/node_ask.c). */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum { CALL_TIMEOUT_US = 10000000 };

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
    struct manager_event ev = {
        .type = MANAGER_EV_SUBMIT_REPLY,
        .reply = {
            .nonce = (*at)->nonce, .hash = hash, .code = x->code, .rpc_code = x->rpc_code, .text = x->text}};
    hash_of_tx((*at)->tx, hash);
    note(w, "  r%d a%d reply for tx %u: %d %lld %s", r->index, account, (*at)->tx, x->code,
         (long long)x->rpc_code, x->text);
    (*at)->replied = true;
    if (x->code)
        forget(at);
    if (x->code == ERR_NOT_LEADER)
        r->accounts[account].beats++;
    if (PLANTED(RESEND_RENONCE) && (x->code == ERR_TIMEOUT || x->code == ERR_NET))
        store_give_back(w, r, account, ev.reply.nonce);
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
    struct relay *r = door_from(w, e);
    if (r)
        pool_unwatch(w, r->door.node, r->index, r->life, e->b);
}

static void send_unwatch(struct world *w, struct relay *r, uint32_t sub)
{
    if (r->door.open)
        door_to_node(w, r, "unwatch arrives", unwatch_arrives)->b = sub;
}

static void reply_arrives(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    struct answer *x = e->p;
    int account;
    struct submit **at = door_is_on(r, e) ? find_sub(w, r, e->b, &account) : NULL;
    if (at && !(*at)->replied)
        tell_reply(w, r, at, account, x);
    else if (!at && door_is_on(r, e) && !x->code)
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
    struct submit **at = door_is_on(r, e) ? find_sub(w, r, x->sub, &account) : NULL;
    if (at && (*at)->replied) {
        uint8_t hash[32];
        struct manager_event ev = {.type = MANAGER_EV_STATUS,
                                   .status = {.nonce = (*at)->nonce,
                                              .hash = hash,
                                              .status = x->status,
                                              .block_hash = x->has_hash ? x->hash : NULL}};
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
    struct event *e = door_to_relay(w, x->relay, x->life, 0, "status arrives", status_arrives);
    e->p = m;
    e->drop = drop_payload;
}

/* With one node and no forks nothing is sent again that a probe in the right order would have seen. */
static void check_resend(struct world *w, const struct relay *r, uint32_t tx, uint64_t probed_at)
{
    const struct tx *t = &w->chain.txs[tx];
    bool by_another =
        t->id > 0 && w->db.t.ids[t->id].self_sent; /* who signed it sent it before any relay did */
    if (w->plan.nodes > 1 || w->stats.forks || w->db.lossy || !t->included_at[0] || by_another)
        return;
    HOLDS(w, t->included_at[0] > probed_at, "probe",
          "r%d sends nonce %llu again, which was in a block when the probe was answered", r->index,
          (unsigned long long)t->nonce);
}

static void submission_arrives(struct world *w, struct event *e)
{
    struct relay *r = door_from(w, e);
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
    struct event *reply = door_to_relay(w, r->index, r->life, between(w, 0, w->plan.latency_us),
                                        "reply arrives", reply_arrives);
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
    struct event *e = door_to_node(w, r, "submission arrives", submission_arrives);
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
    struct submit **at = door_is_on(r, e) ? find_sub(w, r, e->b, &account) : NULL;
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
    struct submit **at = door_is_on(r, e) ? find_sub(w, r, e->b, &account) : NULL;
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
    uint32_t tx = tx_of_hash(w, fx->submit.hash), bytes_tx;
    memcpy(&bytes_tx, fx->submit.bytes, sizeof(bytes_tx));
    HOLDS(w,
          tx && fx->submit.bytes_len == BYTES_LEN && bytes_tx == tx &&
              w->chain.txs[tx].nonce == fx->submit.nonce,
          "I3", "r%d sends bytes of tx %u as tx %u at nonce %llu", r->index, bytes_tx, tx,
          (unsigned long long)fx->submit.nonce);
    check_effort(w, r, account, tx);
    door_unwatch(w, r, account, tx);
    struct submit *s = xcalloc(1, sizeof(*s));
    *s = (struct submit){.next = a->submits,
                         .sub = ++r->door.next_sub,
                         .tx = tx,
                         .nonce = fx->submit.nonce,
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

static void tell_ask(struct world *w, struct relay *r, struct ask *q, const struct manager_event *ev)
{
    struct ask copy = *q;
    q->number = 0;
    if (copy.generation == r->accounts[copy.account].generation)
        account_event(w, r, copy.account, ev);
}

static void tell_failed(struct world *w, struct relay *r, struct ask *q)
{
    struct manager_event ev;
    if (q->what == MANAGER_FX_ASK_POOL)
        ev = (struct manager_event){.type = MANAGER_EV_POOL, .pool = {.failed = true}};
    else if (q->what == MANAGER_FX_ASK_NONCE)
        ev = (struct manager_event){.type = MANAGER_EV_NONCE, .used = {.failed = true}};
    else
        ev = (struct manager_event){.type = MANAGER_EV_UNFINAL, .unfinal = {.failed = true}};
    tell_ask(w, r, q, &ev);
}

/* What the account signed comes with its bytes where that was asked for. */
static void tell_pool(struct world *w, struct relay *r, struct ask *q, const struct pool_list *list)
{
    struct manager_included *pooled = xcalloc(list->count + 1, sizeof(*pooled));
    uint8_t(*bytes)[BYTES_LEN] = xcalloc(list->count + 1, sizeof(*bytes));
    size_t count = 0;
    for (size_t i = 0; i < list->count && q->whole; i++) {
        uint32_t tx = tx_of_hash(w, list->hashes[i]);
        if (tx && w->chain.txs[tx].account == q->account) {
            pooled[count] = included_tx(w, tx, bytes[count]);
            count++;
        }
    }
    tell_ask(w, r, q,
             &(struct manager_event){.type = MANAGER_EV_POOL,
                                     .pool = {.hashes = (const uint8_t(*)[32])list->hashes,
                                              .count = list->count,
                                              .pooled = pooled,
                                              .pooled_count = count}});
    free(pooled);
    free(bytes);
}

static void ask_answered(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->relay];
    struct ask *q = door_is_on(r, e) ? find_ask(r, e->b) : NULL;
    struct pool_list *list = e->p;
    if (q) {
        if (q->what == MANAGER_FX_ASK_NONCE)
            r->door.probed_at[q->account] = list->at;
        if (q->what == MANAGER_FX_ASK_POOL)
            tell_pool(w, r, q, list);
        else if (q->what == MANAGER_FX_ASK_NONCE)
            tell_ask(w, r, q, &(struct manager_event){.type = MANAGER_EV_NONCE, .used = {.nonce = e->n}});
        else
            tell_ask(w, r, q,
                     &(struct manager_event){.type = MANAGER_EV_UNFINAL,
                                             .unfinal = {.hashes = (const uint8_t(*)[32])list->hashes,
                                                         .count = list->count,
                                                         .nonce = e->n}});
    }
    free(list);
}

static struct pool_list *list_new(const struct world *w, size_t most)
{
    struct pool_list *list = xcalloc(1, sizeof(*list) + 32 * most);
    list->at = w->now;
    return list;
}

static struct pool_list *pool_of(struct world *w, int node)
{
    const struct node *n = &w->chain.nodes[node];
    struct pool_list *list = list_new(w, n->pool_count);
    for (uint32_t i = 0; i < n->pool_count; i++)
        if (pool_ready(w, node, n->pool[i]))
            hash_of_tx(n->pool[i], list->hashes[list->count++]);
    return list;
}

/* Of the best chain, above a height. *ret_used: above the account's nonces there. */
static struct pool_list *above(struct world *w, const struct door *d, const struct ask *q, uint64_t *ret_used)
{
    const struct chain *c = &w->chain;
    uint32_t best = c->nodes[d->node].best;
    size_t most = 0;
    for (uint32_t b = best; c->blocks[b].number > q->above; b = c->blocks[b].parent)
        most += c->blocks[b].count;
    struct pool_list *list = list_new(w, most);
    for (uint32_t b = best; c->blocks[b].number > q->above; b = c->blocks[b].parent)
        for (uint32_t i = 0; i < c->blocks[b].count; i++) {
            const struct tx *t = &c->txs[c->blocks[b].txs[i]];
            hash_of_tx(c->blocks[b].txs[i], list->hashes[list->count++]);
            if (t->account == q->account && t->nonce >= *ret_used)
                *ret_used = t->nonce + 1;
        }
    return list;
}

static void ask_arrives(struct world *w, struct event *e)
{
    struct relay *r = door_from(w, e);
    struct ask *q = r ? find_ask(r, e->b) : NULL;
    if (!q)
        return;
    const struct node *n = &w->chain.nodes[r->door.node];
    uint64_t nonce = w->chain.blocks[n->best].nonce[q->account];
    if (PLANTED(PROBE_ORDER) && q->what == MANAGER_FX_ASK_POOL && !e->n) {
        r->door.early_nonce[q->account] = nonce; /* the pool is asked a while later */
        struct event *again = later(w, latency(w) + w->plan.block_us / 3, "question arrives", ask_arrives);
        again->account = r->index;
        again->a = r->door.number;
        again->b = e->b;
        again->n = 1;
        return;
    }
    if (PLANTED(PROBE_ORDER) && q->what == MANAGER_FX_ASK_NONCE)
        nonce = r->door.early_nonce[q->account];
    struct pool_list *list;
    if (q->what == MANAGER_FX_ASK_UNFINAL) {
        nonce = 0;
        list = above(w, &r->door, q, &nonce);
    } else {
        list = q->what == MANAGER_FX_ASK_POOL ? pool_of(w, r->door.node) : list_new(w, 0);
    }
    struct event *reply = door_to_relay(w, r->index, r->life, between(w, 0, w->plan.latency_us),
                                        "answer arrives", ask_answered);
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
        tell_failed(w, r, q);
}

void door_ask(struct world *w, struct relay *r, int account, const struct manager_effect *fx)
{
    struct ask *q = find_ask(r, 0);
    INVARIANT(q);
    *q = (struct ask){.number = ++r->door.next_sub,
                      .account = account,
                      .generation = r->accounts[account].generation,
                      .what = fx->type,
                      .whole = fx->type == MANAGER_FX_ASK_POOL && fx->whole,
                      .above = fx->type == MANAGER_FX_ASK_UNFINAL ? fx->number : 0};
    uint64_t timeout = r->door.open && r->door.ready ? CALL_TIMEOUT_US : 0;
    relay_later(w, r, timeout, "question fails", ask_failed)->b = q->number;
    if (timeout)
        door_to_node(w, r, "question arrives", ask_arrives)->b = q->number;
}

/* The connection is lost: what is out has no answer, what is watched says no more. */
void door_fail_calls(struct world *w, struct relay *r)
{
    uint32_t subs[256];
    size_t count = 0;
    int account;
    for (size_t i = 0; i < ARRAY_LEN(r->door.asks); i++)
        if (r->door.asks[i].number)
            tell_failed(w, r, &r->door.asks[i]);
    for (int a = 0; a < w->plan.accounts; a++)
        for (struct submit *s = r->accounts[a].submits; s && count < 256; s = s->next)
            subs[count++] = s->sub;
    for (int replied = 0; replied < 2; replied++) /* calls first, then subscriptions */
        for (size_t i = 0; i < count; i++) {
            struct submit **at = find_sub(w, r, subs[i], &account);
            uint8_t hash[32];
            if (!at || (*at)->replied != (bool)replied)
                continue;
            struct manager_event lost = {.type = MANAGER_EV_WATCH_LOST,
                                         .lost = {.nonce = (*at)->nonce, .hash = hash}};
            hash_of_tx((*at)->tx, hash);
            if (!replied) {
                tell_reply(w, r, at, account, &(struct answer){.code = ERR_NET, .text = "connection lost"});
                continue;
            }
            forget(at);
            account_event(w, r, account, &lost);
        }
}
