/* A follower's requests: when it bids, the lock and the claim, the eviction of a holder that hangs,
 * and how it returns to FOLLOWER. */
#include "base/check.h"
#include "elector_internal.h"

enum {
    HURRY_MS = 50, /* bid again this soon after a notification that came during a request */
    BIDS_MAX =
        100, /* most bids in flight: each is a commit, and a renewal waits behind all of them */
    BID_LATER_MS = 40,   /* the next bid beyond BIDS_MAX is delayed by at most this */
    EVICT_RETRY_MS = 20, /* an ended session releases its lock a moment later */
    EVICT_TRIES_MAX = 25,
};

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

void elector__claim(struct elector *e, struct elector_account *a, uint64_t now)
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
        elector__claim(e, a, now);
}

void elector__evict(struct elector *e, struct elector_account *a, uint64_t now)
{
    request(e, a, ELECTOR_EVICT_WAIT, now);
    elector__emit(e, a, ELECTOR_FX_EVICT);
}

void elector__retire(struct elector *e, struct elector_account *a, uint64_t now, uint64_t delay)
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
    elector__bid_at(e, a, delay == ELECTOR_BY_SCAN ? ELECTOR_NEVER : now + delay);
}

static void retire_after_error(struct elector *e, struct elector_account *a, uint64_t now)
{
    a->unled = true; /* or another one has it, which a scan will show */
    elector__retire(e, a, now, backoff_next(&a->backoff, &e->rng));
}

/* ---- answers ---- */

void elector__on_lock_reply(struct elector *e, uint64_t now, const struct elector_event *ev)
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
        elector__retire(e, a, now, ELECTOR_BY_SCAN);
    } else if (a->locked) {
        elector__claim(e, a, now);
    } else if (a->evict_tries &&
               a->evict_tries < EVICT_TRIES_MAX) { /* its session was terminated */
        a->evict_tries++;
        elector__move(e, a, ELECTOR_FOLLOWER);
        elector__bid_at(e, a, now + rng_between(&e->rng, EVICT_RETRY_MS / 2, EVICT_RETRY_MS));
    } else {
        elector__retire(e, a, now, ELECTOR_BY_SCAN);
    }
}

void elector__on_claim_reply(struct elector *e, uint64_t now, const struct elector_event *ev)
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
        elector__retire(e, a, now, ELECTOR_BY_SCAN);
        return;
    }
    a->orphan_claim = ev->claim.epoch;
    bool too_late = now >= a->asked + e->config.expiry_1_ms - e->config.margin_ms;
    bool lock_lost = e->config.use_lock && !a->locked;
    if (!elector__bids(e) || too_late || lock_lost) {
        elector__learn(a, "", "", ev->claim.epoch);
        elector__retire(e, a, now, ELECTOR_BY_SCAN);
    } else {
        elector__promote(e, a);
    }
}

/* The database decided: it ended the holder's session, or left it alone. */
void elector__on_evict_reply(struct elector *e, uint64_t now, const struct elector_event *ev)
{
    struct elector_account *a = &e->accounts[ev->account];
    PRE(a->state == ELECTOR_EVICT_WAIT);
    if (ev->failed) { /* perhaps a missing right: that must not slow down bids for a free lock */
        a->ask_at = now + e->config.heartbeat_ms;
        elector__retire(e, a, now, ELECTOR_BY_SCAN);
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
    elector__retire(e, a, now, ELECTOR_BY_SCAN);
}

void elector__on_release_reply(struct elector *e, uint64_t now, const struct elector_event *ev)
{
    struct elector_account *a = &e->accounts[ev->account];
    PRE(a->state == ELECTOR_RELEASE_WAIT);
    if (!ev->failed || e->up)
        a->orphan_claim = 0; /* after other failures the claim expires by itself */
    elector__retire(e, a, now, ELECTOR_BY_SCAN);
}
