/* What a relay submits over its wire to a node: through the gate, and what is heard of it
 * (chain/node/node_submit.c). */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "sim.h"
#include "sim_memory.h"
#include "sim_node.h"

struct submission {
    struct list node;
    struct node_submit *s;
    uint32_t sub, tx;
    int account;
    uint64_t probed_at; /* when the last probe that was answered looked at the node */
    bool written, replied;
};

static struct submission *submission_of(const struct node *n, uint32_t sub)
{
    LIST_EACH (i, &n->submissions) {
        struct submission *x = CONTAINER_OF(i, struct submission, node);
        if (x->sub == sub)
            return x;
    }
    return NULL;
}

static struct submission *submission_by(const struct node *n, const struct node_submit *s)
{
    LIST_EACH (i, &n->submissions) {
        struct submission *x = CONTAINER_OF(i, struct submission, node);
        if (x->s == s)
            return x;
    }
    return NULL;
}

static void forget(struct submission *x)
{
    list_remove(&x->node);
    free(x);
}

static void tell_reply(struct node *n, struct submission *x, const struct node_answer *a)
{
    struct node_submit *s = x->s;
    struct rpc_call *call = &s->sub.call;
    err_clear(&call->err);
    call->rpc_code = a->rpc_code;
    call->rpc_data[0] = 0;
    if (a->code)
        err_set(&call->err, a->code, "%s", a->text);
    note(n->w, "  r%d a%d reply for tx %u: %d %lld %s", n->r->index, x->account, x->tx, a->code,
         (long long)a->rpc_code, a->text);
    x->replied = true;
    if (a->code == ERR_NOT_LEADER)
        n->r->accounts[x->account].beats++;
    if (a->code)
        forget(x);
    s->on_reply(s);
}

static void submit_failed(struct world *w, struct event *e)
{
    struct node *n = w->relays[e->process].node;
    struct submission *x = n ? submission_of(n, e->b) : NULL;
    if (x && !x->replied)
        tell_reply(n, x, &(struct node_answer){.code = ERR_NET, .text = "no node is ready"});
}

static void unwatch_arrives(struct world *w, struct event *e)
{
    struct relay *r = wire_from(w, e);
    if (r)
        pool_unwatch(w, r->wire.node, r->index, r->process->life, e->b);
}

static void send_unwatch(struct node *n, uint32_t sub)
{
    if (n->r->wire.open)
        wire_to_node(n->w, n->r, "unwatch arrives", unwatch_arrives)->b = sub;
}

static void reply_arrives(struct world *w, struct event *e)
{
    struct node *n = wire_is_on(w, e);
    struct node_answer *a = e->p;
    struct submission *x = n ? submission_of(n, e->b) : NULL;
    if (x && !x->replied)
        tell_reply(n, x, a);
    else if (n && !x && !a->code)
        send_unwatch(n, e->b); /* nobody waits for it any more */
    free(a);
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
    struct node *n = wire_is_on(w, e);
    struct status_message *m = e->p;
    struct submission *x = n ? submission_of(n, m->sub) : NULL;
    if (x && x->replied) {
        struct node_submit *s = x->s;
        note(w, "  r%d a%d tx %u status %d", n->r->index, x->account, x->tx, (int)m->status);
        if (tx_status_final(m->status))
            forget(x);
        s->on_status(s, m->status, m->has_hash ? m->hash : NULL);
    }
    free(m);
}

void node_says_status(struct world *w, int node, const struct watch *x, enum tx_status status,
                      uint32_t block, uint32_t tx)
{
    struct relay *r = &w->relays[x->relay];
    if (!r->node || r->process->life != x->life || r->wire.number != x->link ||
        r->wire.node != node)
        return;
    struct status_message *m = world_alloc(sizeof(*m));
    m->sub = x->sub;
    m->status = status;
    m->has_hash = block || tx;
    if (tx)
        hash_of_tx(tx, m->hash);
    else if (block)
        hash_of_block(block, m->hash);
    struct event *e = wire_to_relay(w, r, 0, "status arrives", status_arrives);
    e->p = m;
    e->drop = drop_payload;
}

static void submission_arrives(struct world *w, struct event *e)
{
    struct relay *r = wire_from(w, e);
    uint32_t tx = (uint32_t)(uintptr_t)e->p, sub = e->b;
    e->p = NULL;
    if (!r || (!w->healing && chance(w, w->plan.fault_mask ? 1 : 0)))
        return; /* lost on the way, with its connection or without */
    check_resend(w, r, tx, e->n);
    struct node_answer *a = world_alloc(sizeof(*a));
    if (is_stuck(w, r))
        *a = (struct node_answer){.code = ERR_RPC, .rpc_code = -32601, .text = "Method not found"};
    else
        answer_submit(w, r->wire.node, tx, a);
    note(w, "  n%d takes tx %u (a%d nonce %llu id %lld): %d %lld", r->wire.node, tx,
         w->chain.txs[tx].account, (unsigned long long)w->chain.txs[tx].nonce,
         (long long)w->chain.txs[tx].id, a->code, (long long)a->rpc_code);
    if (!a->code)
        pool_watch(w, r->wire.node, tx, r, sub);
    if (!w->healing && chance(w, w->plan.fault_mask ? 1 : 0)) {
        free(a);
        return; /* it forgets to answer */
    }
    bool good = !a->code;
    enum tx_status first = a->status;
    struct event *reply =
        wire_to_relay(w, r, between(w, 0, w->plan.latency_us), "reply arrives", reply_arrives);
    reply->p = a;
    reply->drop = drop_payload;
    reply->b = sub;
    if (good) {
        struct watch watch = {
            .relay = r->index, .life = r->process->life, .link = r->wire.number, .sub = sub};
        node_says_status(w, r->wire.node, &watch, first, 0, 0);
    }
}

static void write_bytes(struct world *w, struct relay *r, uint32_t sub, uint32_t tx,
                        uint64_t probed_at)
{
    struct event *e = wire_to_node(w, r, "submission arrives", submission_arrives);
    e->p = (void *)(uintptr_t)tx;
    e->b = sub;
    e->n = probed_at;
    w->stats.submits++;
}

static bool may_stop(struct world *w)
{
    return !w->healing && w->plan.fault_mask >> fault_number("pause") & 1 &&
           rng_below(&w->rng, 300) == 0;
}

/* The process was stopped after it had asked the gate: the bytes leave all the same. */
static void write_after_stop(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->process];
    check_sent(w, r, e->account, (uint32_t)(uintptr_t)e->p, true);
    write_bytes(w, r, e->b, (uint32_t)(uintptr_t)e->p, e->n);
}

/* The socket takes the frame: the gate is asked, and the bytes leave. */
static void socket_ready(struct world *w, struct event *e)
{
    struct node *n = wire_is_on(w, e);
    struct submission *x = n ? submission_of(n, e->b) : NULL;
    if (!x || x->written)
        return; /* forgotten, or failed with its connection */
    struct relay *r = n->r;
    if (!x->s->gate(x->s->gate_arg)) {
        tell_reply(n, x, &(struct node_answer){.code = ERR_NOT_LEADER, .text = "the gate is shut"});
        return;
    }
    x->written = true;
    if (!may_stop(w)) {
        check_sent(w, r, x->account, x->tx, false);
        write_bytes(w, r, x->sub, x->tx, x->probed_at);
        return;
    }
    relay_stop(w, r, between(w, 100 * MS, 25 * SECOND));
    struct event *rest = process_event_held(w, r->process, "writes after stop", write_after_stop);
    rest->account = x->account;
    rest->b = x->sub;
    rest->n = x->probed_at;
    rest->p = (void *)(uintptr_t)x->tx;
}

static void submit_overdue(struct world *w, struct event *e)
{
    struct node *n = wire_is_on(w, e);
    struct submission *x = n ? submission_of(n, e->b) : NULL;
    if (!x || x->replied)
        return;
    bool dead = w->now < n->r->wire.stall_until;
    tell_reply(n, x, &(struct node_answer){.code = ERR_TIMEOUT, .text = "no answer in time"});
    if (dead)
        node_lost(n);
}

void node_submit_start(struct node *n, struct node_submit *s, const uint8_t *bytes, size_t len,
                       bool (*gate)(void *arg), void *gate_arg,
                       void (*on_reply)(struct node_submit *s),
                       void (*on_status)(struct node_submit *s, enum tx_status status,
                                         const uint8_t *block_hash),
                       void (*on_lost)(struct node_submit *s))
{
    struct world *w = n->w;
    struct relay *r = n->r;
    uint32_t tx = tx_of_bytes(w, bytes, len);
    struct submission *x = xcalloc(1, sizeof(*x));
    HOLDS(w, tx, "I3", "r%d sends bytes that nobody signed", r->index);
    x->s = s;
    x->sub = ++r->wire.next_sub;
    x->tx = tx;
    x->account = w->chain.txs[tx].account;
    x->probed_at = r->accounts[x->account].probed_at;
    s->node = n;
    s->gate = gate;
    s->gate_arg = gate_arg;
    s->on_reply = on_reply;
    s->on_status = on_status;
    s->on_lost = on_lost;
    list_append(&n->submissions, &x->node);
    check_effort(w, r, x->account, tx);
    struct event *e;
    if (!r->wire.open || !n->ready) {
        process_later(w, r->process, 0, "submission fails", submit_failed)->b = x->sub;
        return;
    }
    uint64_t turn = wire_turn(w, r);
    e = process_later(w, r->process, turn + between(w, 0, 300), "socket ready", socket_ready);
    e->a = r->wire.number;
    e->b = x->sub;
    e = process_later(w, r->process, turn + CALL_TIMEOUT_US, "submission overdue", submit_overdue);
    e->a = r->wire.number;
    e->b = x->sub;
    if (may_stop(w))
        relay_stop(w, r, between(w, 100 * MS, 25 * SECOND)); /* before it has asked the gate */
}

void node_submit_until(struct node_submit *s, const struct node_last *last)
{
    s->last = *last;
}

void node_submit_forget(struct node_submit *s)
{
    struct node *n = s->node;
    struct submission *x = n ? submission_by(n, s) : NULL;
    if (!x)
        return;
    if (x->written && x->replied)
        send_unwatch(n, x->sub);
    forget(x);
}

/* The connection is lost, or closed: calls first, then subscriptions. A callback may start or
 * forget others. */
void node_submissions_fail(struct node *n, uint32_t last, int code)
{
    for (int replied = 0; replied < 2; replied++)
        for (struct list *i = n->submissions.next; i != &n->submissions;) {
            struct submission *x = CONTAINER_OF(i, struct submission, node);
            i = i->next;
            if (x->sub > last || x->replied != (bool)replied)
                continue;
            struct node_submit *s = x->s;
            if (!replied) {
                tell_reply(n, x, &(struct node_answer){.code = code, .text = "connection lost"});
            } else {
                forget(x);
                s->on_lost(s);
            }
            i = n->submissions.next; /* it may be another list now */
        }
}
