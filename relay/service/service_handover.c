/* Giving accounts up without leaving work half done: to the member that the ring prefers, to the next one
 * after so many blocks, or to anybody when this relay drains.
 *
 *   LEADING --on_leave--> LEAVING --settled, or handover_ms later--> handed over (the election demotes)
 *
 * LEAVING admits nothing: the outbox is not read any more. It sends and follows what it has. Settled is when
 * nothing is unsent and nothing is on the wire without an answer; what a pool holds or a block has is the
 * successor's, which finds it in the table. Safety does not hang on it: the successor asks the pool and the
 * chain in any case. */
#include "base/check.h"
#include "base/log.h"
#include "service/service_internal.h"

enum { SETTLE_LOOK_MS = 20, HANDOVER_MS = 2000 };

static bool settled(struct account *a)
{
    struct manager_view v = manager_look(a->manager);
    bool built = manager_phase(a->manager) == MANAGER_LEADING;
    return !built || (v.unsent == 0 && a->unsettled == 0 && account_unanswered(a) == 0);
}

static void look_at(struct service *s)
{
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
        log_info("leader.hands_over",
                 "account=%s epoch=%lld settled=%s unsent=%zu unstored=%zu unanswered=%zu", a->alias,
                 (long long)a->epoch, done ? "yes" : "no", manager_look(a->manager).unsent, a->unsettled,
                 account_unanswered(a));
        election_hand_over(s->election, a->index); /* demotes it, which ends the leaving */
        a->leaving = false;
    }
    if (waits)
        loop_timer_at(s->settle, now + SETTLE_LOOK_MS);
    else
        service_settled(s);
}

static void on_settle(void *arg)
{
    look_at(arg);
}

void service_handover_new(struct service *s)
{
    s->settle = loop_timer_new(s->loop, on_settle, s);
}

void service_handover_free(struct service *s)
{
    s->settle = loop_timer_close(s->settle);
}

/* From inside the election's step: the look comes from the loop. */
void service_leave(struct service *s, struct account *a, const char *reason)
{
    uint32_t ms = s->config.handover_ms ? s->config.handover_ms : HANDOVER_MS;
    log_info("leader.leaves", "account=%s epoch=%lld reason=\"%s\"", a->alias, (long long)a->epoch, reason);
    a->leaving = true;
    a->leave_until = loop_now_ms(s->loop) + ms;
    loop_timer_at(s->settle, loop_now_ms(s->loop));
}

/* A finalized block was followed: the turn of this account is over after so many. */
void service_block(struct service *s, struct account *a)
{
    if (s->standalone || !s->config.rotate_blocks || ++a->blocks < s->config.rotate_blocks)
        return;
    a->blocks = 0;
    election_rotate(s->election, a->index);
}
