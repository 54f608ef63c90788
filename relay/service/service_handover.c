/* Giving accounts up without leaving work half done: to the member that the ring prefers, to the
 * next one after N blocks, or to any member when this relay drains.
 *
 *   LEADING --on_leave--> LEAVING --settled, or handover_ms later--> handed over (election demotes)
 *
 * LEAVING admits nothing: the outbox is not read any more. It sends and follows what it has.
 * Settled is when nothing is unsent and nothing is on the wire without an answer; what a pool
 * holds or a block has is the successor's, which finds it in the table. Safety does not hang on
 * it: the successor asks the pool and the chain in any case. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "service/service_internal.h"

enum { SETTLE_CHECK_MS = 20, HANDOVER_MS = 2000 };

static bool settled(const struct account *a)
{
    return manager_settled(a->manager, a->unsettled, account_unanswered(a));
}

struct handover {
    struct room room;
    struct loop_timer *settle; /* accounts that are leaving are looked at */
    bool draining, released;   /* the election was asked to release everything */
};

static void released(void *arg)
{
    struct handover *h = arg;
    room_ended(&h->room);
}

/* Draining goes on when no account is leaving any more, whether it settled or was lost. */
static void all_settled(struct handover *h)
{
    if (!h->draining || h->released)
        return;
    h->released = true;
    election_drain(h->room.service->election, released, h);
}

static void on_settle(void *arg)
{
    struct handover *h = arg;
    struct service *s = h->room.service;
    uint64_t now = loop_now_ms(s->loop);
    bool waits = false;
    for (size_t i = 0; i < s->account_count; i++) {
        struct account *a = &s->accounts[i];
        if (!a->leaving)
            continue;
        bool done = settled(a);
        if (!done && now < a->leave_until) {
            waits = true;
            continue;
        }
        log_info("leader.handing_over",
                 "account=%s scope=%lld holder=%s epoch=%lld settled=%s unsent=%zu unstored=%zu "
                 "unanswered=%zu",
                 a->alias, (long long)a->lock_key, s->holder, (long long)a->epoch,
                 done ? "yes" : "no", manager_view_of(a->manager).unsent, a->unsettled,
                 account_unanswered(a));
        election_hand_over(s->election, a->index); /* demotes it, which ends the leaving */
        a->leaving = false;
    }
    if (waits)
        loop_timer_at(h->settle, now + SETTLE_CHECK_MS);
    else
        all_settled(h);
}

/* From inside the election's step: the account is asked from the loop. */
void service_leave(struct service *s, struct account *a, const char *reason)
{
    uint32_t ms = s->config.handover_ms ? s->config.handover_ms : HANDOVER_MS;
    log_info("leader.leaving", "account=%s scope=%lld holder=%s epoch=%lld reason=\"%s\"", a->alias,
             (long long)a->lock_key, s->holder, (long long)a->epoch, reason);
    a->leaving = true;
    account_poll(a, (struct poll_event){.type = POLL_EV_LEAVING});
    a->leave_until = loop_now_ms(s->loop) + ms;
    loop_timer_at(s->handover->settle, loop_now_ms(s->loop));
}

/* A finalized block was followed: count the blocks of its turn. */
void service_block(struct service *s, struct account *a, uint64_t number)
{
    const struct node_info *info = node_info(s->node);
    if (s->standalone || !s->config.rotate_blocks || !info)
        return;
    bool over = turn_block(&a->turn, number, info->finalized_number, s->config.rotate_blocks);
    if (over && !manager_view_of(a->manager).stays)
        election_rotate(s->election, a->index);
}

/* ---- the room ---- */

static struct handover *handover_of(struct room *r)
{
    return CONTAINER_OF(r, struct handover, room);
}

/* A relay that is not running yet leads nothing. */
static void handover_drain(struct room *r)
{
    struct service *s = r->service;
    if (!s->registered) {
        room_ended(r);
        return;
    }
    handover_of(r)->draining = true;
    election_retire(s->election);
    loop_timer_at(handover_of(r)->settle, loop_now_ms(s->loop)); /* also when nothing is led */
}

static void handover_free(struct room *r)
{
    loop_timer_close(handover_of(r)->settle);
    r->service->handover = NULL;
    free(handover_of(r));
}

static const struct room_ops ops = {
    .name = "handover", .drain = handover_drain, .free = handover_free};

struct room *service_handover(struct service *s, struct err *err)
{
    (void)err;
    if (s->standalone)
        return NULL;
    struct handover *h = s->handover = xcalloc(1, sizeof(*h));
    h->room = (struct room){.ops = &ops, .service = s};
    h->settle = loop_timer_new(s->loop, on_settle, h);
    return &h->room;
}
