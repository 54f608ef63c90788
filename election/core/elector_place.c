/* Placement: which members are alive, which one should lead an account, and when to hand one over.
 * No promise depends on it. With a wrong or empty list of members, accounts are led by other
 * members than the ring prefers, or a moment later. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "elector_internal.h"

enum {
    JITTER_MS = 50,       /* without members all followers have the same rank */
    PREFERRED_LEAST = 3,  /* heartbeats for which the ring must prefer the same other member */
    PREFERRED_MOST = 768, /* limit for a member that never takes what is handed over to it */
};

/* ---- rank ---- */

/* The number of members that may bid before this relay. The holder does not count: it is dead, it
 * hangs, or it released the account (then it is the former holder). With rotation each tenure
 * begins one member further in the ring; the epoch counts the tenures, and all members know it. */
static size_t rank_of(const struct elector *e, const struct elector_account *a)
{
    size_t count = ring_count(e->ring), rank = 0;
    if (e->self < 0 || count < 2)
        return 0;
    size_t *order = xcalloc(count, sizeof(*order));
    ring_order(e->ring, a->place, order);
    size_t first = e->config.rotate ? (size_t)((uint64_t)a->known_epoch % count) : 0;
    for (size_t i = 0; i < count; i++) {
        size_t member = order[(first + i) % count];
        if (member == (size_t)e->self)
            break;
        const char *name = ring_name(e->ring, member);
        rank += strcmp(name, a->former) != 0 && strcmp(name, a->holder) != 0;
    }
    free(order);
    return rank;
}

/* Followers scan within bid_max of each other, so wait that long for the preferred one. Worst-case
 * takeover: 2 * bid_max. */
uint64_t elector__free_delay(struct elector *e, const struct elector_account *a)
{
    uint64_t most = e->config.bid_max_ms, rank = rank_of(e, a);
    if (rank == 0)
        return 0;
    uint64_t delay = most * 7 / 8 + (rank - 1) * most / 32;
    return delay < most ? delay : most;
}

/* A notification reaches all members at the same time. */
uint64_t elector__heard_delay(struct elector *e, const struct elector_account *a)
{
    uint64_t rank = rank_of(e, a), most = e->config.bid_max_ms / 2;
    bool alone = e->self < 0 || ring_count(e->ring) < 2;
    uint64_t delay = rank * e->config.bid_max_ms / 8;
    if (rank || alone)
        delay += rng_below(&e->rng, JITTER_MS + 1);
    return delay < most ? delay : most;
}

/* ---- members ---- */

static void beat(struct elector *e, bool leaving)
{
    elector__emit(e, NULL, ELECTOR_FX_HEARTBEAT)->leaving = leaving;
}

void elector__heartbeat_due(struct elector *e, uint64_t now)
{
    if (e->heartbeat_in_flight)
        return;
    if (!elector__bids(e)) {
        e->heartbeat_at = ELECTOR_NEVER;
    } else if (e->heartbeat_at == ELECTOR_NEVER || now >= e->heartbeat_at) {
        e->heartbeat_in_flight = true;
        e->heartbeat_at = now + elector__heartbeat(e);
        beat(e, false);
    }
}

static bool same_members(const struct elector *e, const struct elector_event *ev)
{
    bool same = e->self == ev->members.self && ring_count(e->ring) == ev->members.count;
    for (size_t i = 0; same && i < ev->members.count; i++)
        same = !strcmp(ring_name(e->ring, i), ev->members.names[i]);
    return same;
}

static void set_members(struct elector *e, const struct elector_event *ev)
{
    ring_clear(e->ring);
    for (size_t i = 0; i < ev->members.count; i++)
        ring_add(e->ring, ev->members.names[i], RING_POINTS);
    e->self = ev->members.self;
    e->ring_version++;
}

static size_t preferred(struct elector *e, struct elector_account *a)
{
    if (a->preferred_at != e->ring_version) {
        size_t *order = xcalloc(ring_count(e->ring), sizeof(*order));
        ring_order(e->ring, a->place, order);
        a->preferred = order[0];
        a->preferred_at = e->ring_version;
        free(order);
    }
    return a->preferred;
}

/* ---- leaving ---- */

static void leave(struct elector *e, struct elector_account *a, const char *reason)
{
    a->leaving = true;
    elector__emit(e, a, ELECTOR_FX_LEAVE)->reason = reason;
}

/* Has the ring preferred another member for long enough? A member that let the account return gets
 * more time at each attempt: it is alive but does not lead. */
static bool try_prefer(struct elector *e, struct elector_account *a)
{
    size_t to = preferred(e, a);
    if (to == (size_t)e->self) {
        a->preferred_for = 0;
        return false;
    }
    const char *name = ring_name(e->ring, to);
    uint64_t hash = e->config.hash(name, strlen(name));
    if (hash != a->preferred_member) {
        a->preferred_member = hash;
        a->preferred_for = a->patience = 0;
    }
    a->preferred_for++;
    return a->preferred_for >= (a->patience ? a->patience : PREFERRED_LEAST);
}

void elector__on_members(struct elector *e, uint64_t now, const struct elector_event *ev)
{
    (void)now;
    PRE(e->heartbeat_in_flight);
    e->heartbeat_in_flight = false;
    if (ev->failed || e->retiring)
        return;
    if (!same_members(e, ev))
        set_members(e, ev);
    if (!e->config.ring || e->config.rotate || e->self < 0)
        return;
    uint32_t left = e->config.leaves_max;
    for (size_t i = 0; i < e->count; i++) {
        struct elector_account *a = &e->accounts[i];
        if (a->state != ELECTOR_LEADER || a->leaving || !try_prefer(e, a) || !left)
            continue;
        left--;
        a->patience = a->patience ? a->patience * 2 : PREFERRED_LEAST * 2;
        if (a->patience > PREFERRED_MOST)
            a->patience = PREFERRED_MOST;
        leave(e, a, "the ring prefers another member");
    }
}

void elector__on_rotate(struct elector *e, uint64_t now, const struct elector_event *ev)
{
    struct elector_account *a = &e->accounts[ev->account];
    (void)now;
    bool others = ring_count(e->ring) > (e->self < 0 ? 0 : 1);
    if (a->state == ELECTOR_LEADER && !a->leaving && others && !e->retiring)
        leave(e, a, "its turn is over");
}

void elector__on_hand_over(struct elector *e, uint64_t now, const struct elector_event *ev)
{
    struct elector_account *a = &e->accounts[ev->account];
    if (a->state != ELECTOR_LEADER || !a->leaving)
        return;
    a->away_until = now + 2 * (uint64_t)e->config.bid_max_ms + e->config.heartbeat_ms;
    elector__demote(e, a, now, true, "handed over");
}

void elector__on_retire(struct elector *e, uint64_t now, const struct elector_event *ev)
{
    (void)now;
    (void)ev;
    if (e->retiring)
        return;
    e->retiring = true;
    if (e->up)
        beat(e, true);
    for (size_t i = 0; i < e->count; i++) {
        struct elector_account *a = &e->accounts[i];
        if (a->state == ELECTOR_FOLLOWER)
            elector__set_due(e, a, ELECTOR_NEVER);
        else if (a->state == ELECTOR_LEADER && !a->leaving)
            leave(e, a, "draining");
    }
}

/* ---- questions ---- */

void elector_place(struct elector *e, int account, uint64_t place)
{
    PRE(account >= 0 && (size_t)account < e->count);
    e->accounts[account].place = place;
}

size_t elector_members(const struct elector *e)
{
    return ring_count(e->ring);
}

bool elector_leaving(const struct elector *e, int account)
{
    PRE(account >= 0 && (size_t)account < e->count);
    return e->accounts[account].leaving;
}
