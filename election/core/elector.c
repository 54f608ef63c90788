/* The pure core of leadership: one handler per event, then everything that is due. elector.h has
 * the rules and the diagram, elector_table.c the table of transitions. */
#include "election/core/elector.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "elector_internal.h"

enum {
    HURRY_MS = 50, /* bid again this soon after a notification that came during a request */
    BIDS_MAX =
        100, /* most bids in flight: each is a commit, and a renewal waits behind all of them */
    BID_LATER_MS = 40,   /* the next bid beyond BIDS_MAX is delayed by at most this */
    EVICT_RETRY_MS = 20, /* an ended session releases its lock a moment later */
    EVICT_TRIES_MAX = 25,
    NAME_LEN_MAX = 500,
};
#define BY_SCAN UINT64_MAX

static int index_of(const struct elector *e, const struct elector_account *a)
{
    return (int)(a - e->accounts);
}

struct elector_effect *elector__emit(struct elector *e, const struct elector_account *a,
                                     enum elector_effect_type type)
{
    if (e->effect_count == e->effect_cap) {
        e->effect_cap = e->effect_cap ? e->effect_cap * 2 : 16;
        e->effects = xrealloc(e->effects, e->effect_cap * sizeof(*e->effects));
    }
    struct elector_effect *fx = &e->effects[e->effect_count++];
    *fx = (struct elector_effect){.type = type, .account = a ? index_of(e, a) : -1};
    return fx;
}

/* ---- the gate ---- */

static void tell_gate(struct elector *e, struct elector_account *a, bool open, const char *reason)
{
    if (open == a->gate_open)
        return;
    a->gate_open = open;
    struct elector_effect *fx = elector__emit(e, a, ELECTOR_FX_GATE);
    fx->gate.open = open;
    fx->gate.reason = reason;
}

/* ---- bids ---- */

uint64_t elector__bid_delay(struct elector *e)
{
    return rng_between(&e->rng, e->config.bid_min_ms, e->config.bid_max_ms);
}

void elector__bid_at(struct elector *e, struct elector_account *a, uint64_t due)
{
    a->evicts = false;
    elector__set_due(e, a, elector__bids(e) ? due : ELECTOR_NEVER);
}

void elector__evict_at(struct elector *e, struct elector_account *a, uint64_t due)
{
    elector__bid_at(e, a, due);
    a->evicts = true;
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

static void request(struct elector *e, struct elector_account *a, enum elector_state wait,
                    uint64_t now)
{
    elector__move(e, a, wait);
    elector__set_due(e, a, ELECTOR_NEVER);
    a->asked = now;
    a->scanned = a->orphan = false;
}

static void lock(struct elector *e, struct elector_account *a, uint64_t now)
{
    PRE(!a->locked); /* session locks stack: one unlock removes one level */
    request(e, a, ELECTOR_LOCK_WAIT, now);
    a->control = e->control;
    elector__emit(e, a, ELECTOR_FX_LOCK);
}

static void claim(struct elector *e, struct elector_account *a, uint64_t now)
{
    request(e, a, ELECTOR_CLAIM_WAIT, now);
    elector__emit(e, a, ELECTOR_FX_CLAIM)->have_lock = a->locked;
}

void elector__bid(struct elector *e, struct elector_account *a, uint64_t now)
{
    if (e->bids >= BIDS_MAX) {
        elector__bid_at(e, a, now + rng_between(&e->rng, BID_LATER_MS / 4, BID_LATER_MS));
        return;
    }
    if (e->config.use_lock)
        lock(e, a, now);
    else
        claim(e, a, now);
}

void elector__evict(struct elector *e, struct elector_account *a, uint64_t now)
{
    request(e, a, ELECTOR_EVICT_WAIT, now);
    elector__emit(e, a, ELECTOR_FX_EVICT);
}

/* Return to FOLLOWER from any state. The account bids after `delay`, or when a scan finds a reason
 * (BY_SCAN). Lock and claim are released, the lock first, so that a relay that is notified of the
 * release finds it free. While the store is down both stay recorded as owed. */
static void retire(struct elector *e, struct elector_account *a, uint64_t now, uint64_t delay)
{
    a->evict_tries = 0;
    if (a->hurry)
        delay = rng_below(&e->rng, HURRY_MS + 1);
    a->hurry = false;
    if (a->locked && e->up) {
        elector__emit(e, a, ELECTOR_FX_UNLOCK);
        a->locked = false;
    }
    if (a->orphan_claim && e->up) {
        request(e, a, ELECTOR_RELEASE_WAIT, now);
        elector__emit(e, a, ELECTOR_FX_RELEASE)->epoch = a->orphan_claim;
        return;
    }
    elector__move(e, a, ELECTOR_FOLLOWER);
    elector__bid_at(e, a, delay == BY_SCAN ? ELECTOR_NEVER : now + delay);
}

static void retire_after_error(struct elector *e, struct elector_account *a, uint64_t now)
{
    retire(e, a, now, backoff_next(&a->backoff, &e->rng));
}

/* ---- the tenure ---- */

uint64_t elector__heartbeat(struct elector *e)
{
    uint32_t h = e->config.heartbeat_ms;
    return rng_between(&e->rng, h - h / 5, h + h / 5);
}

static void promote(struct elector *e, struct elector_account *a, uint64_t now)
{
    a->epoch = a->orphan_claim;
    a->orphan_claim = 0;
    a->sent = a->asked;
    a->suspect = a->hurry = a->leaving = false;
    a->preferred_for = 0;
    a->evict_tries = 0;
    a->ask_at = 0;
    elector__move(e, a, ELECTOR_LEADER);
    elector__set_due(e, a, elector__tenure_end(e, a));
    elector__emit(e, a, ELECTOR_FX_PROMOTE)->epoch = a->epoch;
    tell_gate(e, a, true, "the claim was granted");
    if (!e->renewing && e->renew_at == ELECTOR_NEVER)
        e->renew_at = now + elector__heartbeat(e);
}

/* The gate shuts before any effect is listed. `orphan_claim`: the claim in the table may still be
 * ours. */
static void end_tenure(struct elector *e, struct elector_account *a, bool orphan_claim,
                       const char *reason)
{
    int64_t epoch = a->epoch;
    a->leaving = false;
    a->orphan_claim = orphan_claim ? epoch : 0;
    a->epoch = 0;
    tell_gate(e, a, false, reason);
    struct elector_effect *fx = elector__emit(e, a, ELECTOR_FX_DEMOTE);
    fx->demoted.epoch = epoch;
    fx->demoted.reason = reason;
    elector__learn(a, "", "", epoch);
}

void elector__demote(struct elector *e, struct elector_account *a, uint64_t now, bool orphan_claim,
                     const char *reason)
{
    end_tenure(e, a, orphan_claim, reason);
    retire(e, a, now, BY_SCAN);
}

static void renew(struct elector *e, uint64_t now)
{
    e->renewing = true;
    e->renew_sent = now;
    e->renew_at = ELECTOR_NEVER;
    e->renew_count = 0;
    for (size_t i = 0; i < e->count; i++) {
        struct elector_account *a = &e->accounts[i];
        if (a->state != ELECTOR_LEADER)
            continue;
        a->renew_epoch = a->epoch;
        e->renew_accounts[e->renew_count] = (int)i;
        e->renew_epochs[e->renew_count++] = a->epoch;
    }
    elector__emit(e, NULL, ELECTOR_FX_RENEW);
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
            retire(e, a, now, BY_SCAN);
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
        tell_gate(e, a, false, "the database is unreachable");
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

static void on_lock_reply(struct elector *e, uint64_t now, const struct elector_event *ev)
{
    struct elector_account *a = &e->accounts[ev->account];
    PRE(a->state == ELECTOR_LOCK_WAIT);
    if (ev->failed) {
        retire_after_error(e, a, now);
        return;
    }
    a->locked = ev->lock.got && a->control == e->control; /* a lost session has lost its lock */
    if (!a->locked) /* otherwise the claim decides: the database may refuse it for good */
        backoff_reset(&a->backoff);
    if (!elector__bids(e) || (ev->lock.got && !a->locked)) {
        retire(e, a, now, BY_SCAN);
    } else if (a->locked) {
        claim(e, a, now);
    } else if (a->evict_tries &&
               a->evict_tries < EVICT_TRIES_MAX) { /* its session was terminated */
        a->evict_tries++;
        elector__move(e, a, ELECTOR_FOLLOWER);
        elector__bid_at(e, a, now + rng_between(&e->rng, EVICT_RETRY_MS / 2, EVICT_RETRY_MS));
    } else {
        retire(e, a, now, BY_SCAN);
    }
}

static void on_claim_reply(struct elector *e, uint64_t now, const struct elector_event *ev)
{
    struct elector_account *a = &e->accounts[ev->account];
    PRE(a->state == ELECTOR_CLAIM_WAIT);
    if (ev->failed) {
        retire_after_error(e, a, now);
        return;
    }
    backoff_reset(&a->backoff);
    elector__learn(a, ev->claim.holder, ev->claim.address, ev->claim.epoch);
    if (!ev->claim.granted) {
        a->ask_at = now + e->config.heartbeat_ms / 2;
        retire(e, a, now, BY_SCAN);
        return;
    }
    a->orphan_claim = ev->claim.epoch;
    bool too_late = now >= a->asked + e->config.expiry_1_ms - e->config.margin_ms;
    bool lock_lost = e->config.use_lock && !a->locked;
    if (!elector__bids(e) || too_late || lock_lost) {
        elector__learn(a, "", "", ev->claim.epoch);
        retire(e, a, now, BY_SCAN);
    } else {
        promote(e, a, now);
    }
}

/* The database decided: it ended the holder's session, or left it alone. */
static void on_evict_reply(struct elector *e, uint64_t now, const struct elector_event *ev)
{
    struct elector_account *a = &e->accounts[ev->account];
    PRE(a->state == ELECTOR_EVICT_WAIT);
    if (ev->failed) { /* perhaps a missing right: that must not slow down bids for a free lock */
        a->ask_at = now + e->config.heartbeat_ms;
        retire(e, a, now, BY_SCAN);
        return;
    }
    if (elector__bids(e) && ev->evict.terminated) {
        a->evict_tries = 1;
        lock(e, a, now);
        return;
    }
    if (ev->evict.holder)
        elector__learn(a, ev->evict.holder, ev->evict.address, ev->evict.epoch);
    a->ask_at = now + e->config.heartbeat_ms /
                          2; /* the holder is mid-submission, or the database decided later */
    retire(e, a, now, BY_SCAN);
}

static void on_renew_reply(struct elector *e, uint64_t now, const struct elector_event *ev)
{
    PRE(e->renewing);
    e->renewing = false;
    if (ev->failed) {
        e->renew_at = now + backoff_next(&e->renew_backoff, &e->rng);
        return;
    }
    backoff_reset(&e->renew_backoff);
    e->renew_at = e->renew_sent + elector__heartbeat(e);
    for (size_t i = 0; i < ev->renew.count; i++) {
        struct elector_account *a = &e->accounts[ev->renew.accounts[i]];
        if (a->state != ELECTOR_LEADER || a->epoch != a->renew_epoch)
            continue; /* renewal of an earlier tenure */
        if (!ev->renew.renewed[i]) {
            elector__demote(e, a, now, true,
                            "the renewal was refused: another relay leads, or the lock is lost");
            continue;
        }
        a->sent = e->renew_sent;
        a->suspect = !e->up;
        elector__set_due(e, a, elector__tenure_end(e, a));
        bool open = elector__gate_open(e, a, now);
        tell_gate(e, a, open, open ? "the claim was renewed" : "the renewal came too late");
    }
}

static void on_release_reply(struct elector *e, uint64_t now, const struct elector_event *ev)
{
    struct elector_account *a = &e->accounts[ev->account];
    PRE(a->state == ELECTOR_RELEASE_WAIT);
    if (!ev->failed || e->up)
        a->orphan_claim = 0; /* after other failures the claim expires by itself */
    retire(e, a, now, BY_SCAN);
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

static void on_stale(struct elector *e, uint64_t now, const struct elector_event *ev)
{
    struct elector_account *a = &e->accounts[ev->account];
    if (a->state == ELECTOR_LEADER && (ev->stale_epoch == 0 || ev->stale_epoch == a->epoch))
        elector__demote(e, a, now, false, "a write was refused: another relay leads");
}

/* The server may still execute the statement after the table has been read again. A claim raises
 * the epoch: it waits for a statement that is under way, and a later one is refused. */
static void on_doubt(struct elector *e, uint64_t now, const struct elector_event *ev)
{
    static const char reason[] = "the outcome of a write is unknown: a new epoch excludes it";
    struct elector_account *a = &e->accounts[ev->account];
    if (a->state != ELECTOR_LEADER)
        return;
    if (!elector__bids(e)) {
        elector__demote(e, a, now, true, reason);
        return;
    }
    end_tenure(e, a, true, reason);
    claim(e, a, now);
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
            retire(e, a, now, 0);
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
} events[] = {
    [ELECTOR_EV_STORE_UP] = {on_store_up, false},
    [ELECTOR_EV_STORE_DOWN] = {on_store_down, false},
    [ELECTOR_EV_CONTROL_LOST] = {on_control_lost, false},
    [ELECTOR_EV_LOCK_REPLY] = {on_lock_reply, true},
    [ELECTOR_EV_CLAIM_REPLY] = {on_claim_reply, true},
    [ELECTOR_EV_EVICT_REPLY] = {on_evict_reply, true},
    [ELECTOR_EV_RENEW_REPLY] = {on_renew_reply, false},
    [ELECTOR_EV_SCAN_REPLY] = {elector__on_scan_reply, false},
    [ELECTOR_EV_RELEASE_REPLY] = {on_release_reply, true},
    [ELECTOR_EV_MEMBERS] = {elector__on_members, false},
    [ELECTOR_EV_ROTATE] = {elector__on_rotate, true},
    [ELECTOR_EV_HAND_OVER] = {elector__on_hand_over, true},
    [ELECTOR_EV_RETIRE] = {elector__on_retire, false},
    [ELECTOR_EV_LEADER_CHANGE] = {on_leader_change, true},
    [ELECTOR_EV_STALE] = {on_stale, true},
    [ELECTOR_EV_DOUBT] = {on_doubt, true},
    [ELECTOR_EV_DRAIN] = {on_drain, false},
    [ELECTOR_EV_TICK] = {on_tick, false},
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
        renew(e, now);
    if (!e->renewing && !e->leaders)
        e->renew_at = ELECTOR_NEVER;
    elector__scan_due(e, now);
    elector__heartbeat_due(e, now);
    if (e->draining && !e->drained && (!e->up || !e->busy)) {
        e->drained = true;
        elector__emit(e, NULL, ELECTOR_FX_DRAINED);
    }
}

void elector_step(struct elector *e, uint64_t now, const struct elector_event *ev,
                  const struct elector_effect **ret_effects, size_t *ret_count)
{
    PRE((size_t)ev->type < ARRAY_LEN(events));
    PRE(!events[ev->type].per_account || (ev->account >= 0 && (size_t)ev->account < e->count));
    e->effect_count = 0;
    events[ev->type].handle(e, now, ev);
    run_due(e, now);
    *ret_effects = e->effects;
    *ret_count = e->effect_count;
}
