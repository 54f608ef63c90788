/* The pure core of leadership: one handler per event, then everything that is due. elector.h has
 * the rules and the diagram, elector_table.c the table of transitions. */
#include "election/core/elector.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "elector_internal.h"

enum { NAME_LEN_MAX = 500 };

static int index_of(const struct elector *e, const struct elector_account *a)
{
    return (int)(a - e->accounts);
}

struct elector_effect *elector__emit(struct elector *e, const struct elector_account *a,
                                     enum elector_effect_type type)
{
    GROW(e->effects, e->effect_count, e->effect_cap);
    struct elector_effect *fx = &e->effects[e->effect_count++];
    *fx = (struct elector_effect){.type = type, .account = a ? index_of(e, a) : -1};
    return fx;
}

void elector__learn(struct elector_account *a, const char *holder, const char *address,
                    int64_t epoch)
{
    a->known_epoch = epoch;
    if (a->holder[0]) {
        free(a->former);
        a->former = xstrdup(a->holder);
    }
    free(a->holder);
    free(a->address);
    a->holder = xstrndup(holder ? holder : "", NAME_LEN_MAX);
    a->address = xstrndup(address ? address : "", NAME_LEN_MAX);
}

/* ---- events ---- */

static void on_store_up(struct elector *e, uint64_t now, const struct elector_event *ev)
{
    (void)ev;
    if (e->up)
        return;
    e->up = true;
    backoff_reset(&e->renew_backoff);
    backoff_reset(&e->scan_backoff);
    if (!e->scanning)
        e->scan_at = now + rng_below(&e->rng, e->config.bid_min_ms);
    if (!e->renewing && e->leaders)
        e->renew_at = now;
    for (size_t i = 0; i < e->count; i++) {
        struct elector_account *a = &e->accounts[i];
        backoff_reset(&a->backoff);
        if (a->state == ELECTOR_FOLLOWER)
            elector__retire(e, a, now, ELECTOR_BY_SCAN);
    }
}

static void on_store_down(struct elector *e, uint64_t now, const struct elector_event *ev)
{
    (void)now;
    (void)ev;
    e->up = false;
    for (size_t i = 0; i < e->count; i++) {
        struct elector_account *a = &e->accounts[i];
        if (a->state == ELECTOR_FOLLOWER)
            elector__set_due(e, a, ELECTOR_NEVER);
        if (a->state != ELECTOR_LEADER)
            continue;
        a->suspect = true;
        elector__report_gate(e, a, false, "the database is unreachable");
    }
}

static void on_control_lost(struct elector *e, uint64_t now, const struct elector_event *ev)
{
    on_store_down(e, now, ev);
    e->control++;
    for (size_t i = 0; i < e->count; i++) {
        struct elector_account *a = &e->accounts[i];
        a->locked = false;
        if (a->state == ELECTOR_LEADER && e->config.use_lock)
            /* Nothing is owed: the claim counts only together with the lock, which is free now. */
            elector__demote(e, a, now, false,
                            "the control session was lost, and with it the locks");
    }
}

static void on_leader_change(struct elector *e, uint64_t now, const struct elector_event *ev)
{
    struct elector_account *a = &e->accounts[ev->account];
    if (ev->change.epoch < a->known_epoch)
        return;
    bool free_account = !ev->change.holder || !ev->change.holder[0];
    if (a->state == ELECTOR_LEADER) {
        /* Any session may NOTIFY: a newer epoch is a reason to scan the table now, and nothing
         * more. */
        if (ev->change.epoch > a->epoch && !e->renewing && e->up)
            e->renew_at = now;
        return;
    }
    elector__learn(a, ev->change.holder, ev->change.address, ev->change.epoch);
    bool follower = a->state == ELECTOR_FOLLOWER;
    if (!free_account && follower && !a->evict_tries)
        elector__bid_at(e, a, ELECTOR_NEVER); /* another relay was faster */
    else if (free_account && follower && now >= a->away_until)
        elector__bid_at(e, a, now + elector__heard_delay(e, a));
    else if (free_account && !follower && now >= a->away_until)
        a->hurry = true;
}

static void on_drain(struct elector *e, uint64_t now, const struct elector_event *ev)
{
    (void)ev;
    if (!e->retiring && e->up)
        elector__emit(e, NULL, ELECTOR_FX_HEARTBEAT)->leaving = true;
    e->retiring = e->draining = true;
    for (size_t i = 0; i < e->count; i++) {
        struct elector_account *a = &e->accounts[i];
        if (a->state == ELECTOR_LEADER)
            elector__demote(e, a, now, true, "draining");
        else if (a->state == ELECTOR_FOLLOWER)
            elector__retire(e, a, now, 0);
    }
}

static void on_tick(struct elector *e, uint64_t now, const struct elector_event *ev)
{
    (void)e;
    (void)now;
    (void)ev;
}

static const struct {
    void (*handle)(struct elector *e, uint64_t now, const struct elector_event *ev);
    bool per_account;
    enum elector_state answers; /* the state that waits for it; FOLLOWER: it is no such answer */
} events[] = {
    [ELECTOR_EV_STORE_UP] = {.handle = on_store_up},
    [ELECTOR_EV_STORE_DOWN] = {.handle = on_store_down},
    [ELECTOR_EV_CONTROL_LOST] = {.handle = on_control_lost},
    [ELECTOR_EV_LOCK_REPLY] = {.handle = elector__on_lock_reply,
                               .per_account = true,
                               .answers = ELECTOR_LOCK_WAIT},
    [ELECTOR_EV_CLAIM_REPLY] = {.handle = elector__on_claim_reply,
                                .per_account = true,
                                .answers = ELECTOR_CLAIM_WAIT},
    [ELECTOR_EV_EVICT_REPLY] = {.handle = elector__on_evict_reply,
                                .per_account = true,
                                .answers = ELECTOR_EVICT_WAIT},
    [ELECTOR_EV_RENEW_REPLY] = {.handle = elector__on_renew_reply},
    [ELECTOR_EV_SCAN_REPLY] = {.handle = elector__on_scan_reply},
    [ELECTOR_EV_RELEASE_REPLY] = {.handle = elector__on_release_reply,
                                  .per_account = true,
                                  .answers = ELECTOR_RELEASE_WAIT},
    [ELECTOR_EV_MEMBERS] = {.handle = elector__on_members},
    [ELECTOR_EV_ROTATE] = {.handle = elector__on_rotate, .per_account = true},
    [ELECTOR_EV_HAND_OVER] = {.handle = elector__on_hand_over, .per_account = true},
    [ELECTOR_EV_RETIRE] = {.handle = elector__on_retire},
    [ELECTOR_EV_LEADER_CHANGE] = {.handle = on_leader_change, .per_account = true},
    [ELECTOR_EV_STALE] = {.handle = elector__on_stale, .per_account = true},
    [ELECTOR_EV_DOUBT] = {.handle = elector__on_doubt, .per_account = true},
    [ELECTOR_EV_DRAIN] = {.handle = on_drain},
    [ELECTOR_EV_TICK] = {.handle = on_tick},
};

/* ---- the step ---- */

static void run_due(struct elector *e, uint64_t now)
{
    while (e->count && e->accounts[e->heap[0]].due <= now) {
        struct elector_account *a = &e->accounts[e->heap[0]];
        if (a->state == ELECTOR_LEADER)
            elector__demote(e, a, now, true, "no renewal succeeded in time");
        else if (a->evicts)
            elector__evict(e, a, now);
        else
            elector__bid(e, a, now);
    }
    if (e->up && !e->draining && !e->renewing && e->leaders && now >= e->renew_at)
        elector__renew(e, now);
    if (!e->renewing && !e->leaders)
        e->renew_at = ELECTOR_NEVER;
    elector__scan_due(e, now);
    elector__heartbeat_due(e, now);
    if (e->draining && !e->drained && (!e->up || !e->busy)) {
        e->drained = true;
        elector__emit(e, NULL, ELECTOR_FX_DRAINED);
    }
}

/* After a transition that no table has, two requests of an account may be out, and it waits for the
 * answer of one. A lock that the other took is given back; a claim is found by the next scan. */
static bool is_stray(struct elector *e, const struct elector_event *ev)
{
    enum elector_state waits = events[ev->type].answers;
    if (!e->trace.illegal_ever || waits == ELECTOR_FOLLOWER ||
        e->accounts[ev->account].state == waits)
        return false;
    if (ev->type == ELECTOR_EV_LOCK_REPLY && !ev->failed && ev->lock.got && e->up)
        elector__emit(e, &e->accounts[ev->account], ELECTOR_FX_UNLOCK);
    return true;
}

void elector_step(struct elector *e, uint64_t now, const struct elector_event *ev,
                  const struct elector_effect **ret_effects, size_t *ret_count)
{
    PRE((size_t)ev->type < ARRAY_LEN(events));
    PRE(!events[ev->type].per_account || (ev->account >= 0 && (size_t)ev->account < e->count));
    e->effect_count = 0;
    if (!is_stray(e, ev))
        events[ev->type].handle(e, now, ev);
    run_due(e, now);
    elector__recover(e, now);
    *ret_effects = e->effects;
    *ret_count = e->effect_count;
}
