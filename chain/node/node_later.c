/* A balancer asks another node at each question, and these are not equally far: one names a block
 * as final, and another one has not heard of it. A node that has just begun to write a block may
 * say so too. What an endpoint lacks near the head that it has named is therefore asked again for a
 * while, before it counts as pruned.
 *
 * An endpoint that really has no block would make each of them wait: once one has waited in vain,
 * none does for a minute. */
#include "node_later.h"

#include "node_internal.h"

enum {
    NEAR_HEIGHTS = 16, /* no node behind a balancer is further behind, and none prunes so near */
    WAIT_TICKS = 8,
    IN_VAIN_MS = 60000,
};

bool later_wait(struct slot *s)
{
    struct node *n = s->node;
    struct later *l = &n->later;
    uint64_t now = loop_now_ms(n->loop);
    bool near = s->number + NEAR_HEIGHTS > n->info.finalized_number;
    bool absent = s->call.refused == RPC_ERROR_NONE || s->call.refused == RPC_ERROR_BLOCK;
    if (!near || !absent || (l->in_vain_at && now < l->in_vain_at + IN_VAIN_MS))
        return false;
    if (!s->lacked_since)
        s->lacked_since = now;
    if (now >= s->lacked_since + WAIT_TICKS * node__tick_ms(n)) {
        l->in_vain_at = now;
        return false;
    }
    s->attempts = 0;
    slot_clear(s);
    s->state = SLOT_LATER_WAIT;
    loop_timer_at(l->timer, now + node__tick_ms(n));
    return true;
}

void later_tick(void *arg)
{
    struct node *n = arg;
    for (size_t i = 0; i < NODE_PIPELINE; i++)
        if (n->slots[i].state == SLOT_LATER_WAIT)
            slot_clear(&n->slots[i]);
    blocks_kick(n);
}

void later_stop(struct node *n)
{
    loop_timer_stop(n->later.timer);
    n->later.in_vain_at = 0;
}
