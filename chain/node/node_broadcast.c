/* What transaction_v1_broadcast has begun, until it is stopped.
 *
 * A node takes 16 broadcasts of a connection (polkadot-sdk), and ends one when its bytes are final.
 * Bytes that were replaced at their nonce, or whose era is over, would keep their place for as long
 * as the connection lasts. So their broadcast is stopped when a final block shows that no later one
 * can hold them. Not before: a node that has to stop throws the bytes out of its pool, and bans
 * them. */
#include "node_broadcast.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "node_internal.h"

struct broadcast {
    struct list node;
    struct node *of;
    struct rpc_call late; /* the answer that names it is still to come */
    struct node_last last;
    char id[72]; /* "": not known yet */
};

static struct broadcast *add(struct node_submit *s)
{
    struct broadcast *b = xcalloc(1, sizeof(*b));
    b->of = s->node;
    b->last = s->last;
    list_append(&s->node->broadcasts, &b->node);
    return b;
}

static void drop(struct broadcast *b)
{
    list_remove(&b->node);
    free(b);
}

static bool named(struct broadcast *b, const struct jv *id)
{
    size_t n = jv_copy(id, b->id, sizeof(b->id));
    bool good = jv_is(id, JV_STRING) && n > 0 && n < sizeof(b->id);
    if (!good)
        b->id[0] = 0;
    return good;
}

void broadcast_add(struct node_submit *s)
{
    struct broadcast *b = add(s);
    if (!named(b, s->sub.call.result))
        drop(b);
}

static void came_late(struct rpc_call *call)
{
    struct broadcast *b = CONTAINER_OF(call, struct broadcast, late);
    if (call->err.code || !named(b, call->result))
        drop(b);
}

void broadcast_add_late(struct node_submit *s)
{
    struct rpc_call *call = &s->sub.call;
    struct rpc *r = call->rpc;
    if (!call->written || !call->id || r->phase != RPC_PHASE_OPEN ||
        call->connection != r->connection)
        return;
    uint64_t id = call->id;
    rpc_unsubscribe(r, &s->sub, NULL);
    rpc__call_adopt(r, &add(s)->late, id, came_late);
}

static bool over(const struct node_last *last, const struct node_block *block)
{
    uint64_t nonce = last->account < block->nonce_count ? block->nonces[last->account] : UINT64_MAX;
    return block->head.number >= last->block || (nonce != UINT64_MAX && nonce > last->nonce);
}

void broadcasts_stop_dead(struct node *n, const struct node_block *block)
{
    for (struct list *i = n->broadcasts.next, *next; i != &n->broadcasts; i = next) {
        struct broadcast *b = CONTAINER_OF(i, struct broadcast, node);
        next = i->next;
        if (!b->id[0] || !over(&b->last, block))
            continue;
        rpc__end_by_id(node__rpc(n), "transaction_v1_stop", b->id, false);
        drop(b);
    }
}

void broadcasts_reset(struct node *n)
{
    for (struct list *i = n->broadcasts.next, *next; i != &n->broadcasts; i = next) {
        struct broadcast *b = CONTAINER_OF(i, struct broadcast, node);
        next = i->next;
        if (b->id[0])
            drop(b); /* calls that are out end by themselves */
    }
}
