/* A balancer asks another node at each question, and these are not equally far: one names a block
 * as final, and another one has not heard of it. A node that has just begun to write a block may
 * say so too. What an endpoint lacks near the head that it has named is therefore asked again for a
 * while, before it counts as pruned.
 *
 * An endpoint that really has no block would make each of them wait: once one has waited in vain,
 * none does for a minute.
 *
 * An error of no known meaning to a question about one block, or a state that nobody can read,
 * waits as well: the endpoint answers, so its connection stays. It may be broken for some seconds,
 * and what is passed over may make an outcome unknown. Therefore the block is given up soon only if
 * another endpoint may have it, or if this one gives other blocks meanwhile. */
#include "node_later.h"

#include "node_internal.h"

enum {
    NEAR_HEIGHTS = 16, /* no node behind a balancer is further behind, and none prunes so near */
    WAIT_TICKS = 8,
    IN_VAIN_MS = 60000,
    BROKEN_LEAVE_TICKS = 3, /* another endpoint may have it */
    BROKEN_ONE_TICKS = 10,  /* only this block is refused */
    BROKEN_ALL_TICKS = 120, /* no other block was read meanwhile */
};

bool later_wait(struct slot *s)
{
    struct node *n = s->node;
    struct later *l = &n->later;
    uint64_t now = loop_now_ms(n->loop);
    bool near = s->number + NEAR_HEIGHTS > n->info.finalized_number;
    bool absent = s->call.refused == RPC_ERROR_NONE || s->call.refused == RPC_ERROR_BLOCK;
    if (s->given_up || !near || !absent || (l->in_vain_at && now < l->in_vain_at + IN_VAIN_MS))
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

static uint64_t broken_ticks(const struct slot *s, enum lack kind)
{
    const struct node *n = s->node;
    if (lack_elsewhere(n, kind, s->number))
        return BROKEN_LEAVE_TICKS;
    return n->later.read_at >= s->begun_at ? BROKEN_ONE_TICKS : BROKEN_ALL_TICKS;
}

void later_broken(struct slot *s, const struct err *why)
{
    struct node *n = s->node;
    bool body = s->state == SLOT_HASH_WAIT || s->state == SLOT_BLOCK_WAIT;
    uint64_t now = loop_now_ms(n->loop);
    if (!s->broken_since)
        s->broken_since = now;
    uint64_t ticks = broken_ticks(s, body ? LACK_BODY : LACK_STATE);
    s->given_up = now >= s->broken_since + ticks * node__tick_ms(n);
    s->attempts = NODE_ATTEMPTS - 1; /* it is asked once at a time */
    slot_clear(s);
    s->state = SLOT_LATER_WAIT;
    s->why = *why;
    loop_timer_at(n->later.timer, now + node__tick_ms(n));
}

bool later_goes_on(struct slot *s, const struct err *why)
{
    if (!s->broken_since || s->given_up || !why->code)
        return false;
    struct err kept = *why; /* of the slot's call, which is cleared */
    later_broken(s, &kept);
    return true;
}

const struct slot *later_is_broken(const struct node *n, uint64_t ms)
{
    const struct slot *s = &n->slots[n->follow_next % NODE_PIPELINE];
    bool waits = s->broken_since && loop_now_ms(n->loop) >= s->broken_since + ms;
    return waits && s->state != SLOT_DONE ? s : NULL;
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
    n->later.read_at = 0;
}
