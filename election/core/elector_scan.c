/* The scan of all followers, and what each account does with its result. */
#include "base/check.h"
#include "elector_internal.h"

/* The cost of a scan grows with accounts and locks, so a scan takes at most a fifth of the interval
 * between two of them. A heartbeat is never skipped. */
enum { SCAN_RESTS = 4 };

/* A follower that waits for the scans and has no bid due. */
static bool waits(const struct elector_account *a)
{
    return a->state == ELECTOR_FOLLOWER && a->due == ELECTOR_NEVER;
}

static void scan(struct elector *e, uint64_t now)
{
    e->scan_count = 0;
    for (size_t i = 0; i < e->count; i++) {
        struct elector_account *a = &e->accounts[i];
        a->scanned = waits(a);
        if (!a->scanned)
            continue;
        a->scan_epoch = a->known_epoch;
        e->scan_accounts[e->scan_count] = (int)i;
        e->scan_epochs[e->scan_count++] =
            a->holder[0] ? a->known_epoch : -1; /* -1: report the holder */
    }
    e->scan_sent = now;
    if (!e->scan_count) {
        e->scan_at = now + elector__bid_delay(e);
        return;
    }
    e->scanning = true;
    e->scan_at = ELECTOR_NEVER;
    elector__emit(e, NULL, ELECTOR_FX_SCAN);
}

void elector__scan_due(struct elector *e, uint64_t now)
{
    if (e->scanning)
        return;
    if (!elector__bids(e) || e->busy == e->count)
        e->scan_at = ELECTOR_NEVER;
    else if (e->scan_at == ELECTOR_NEVER)
        e->scan_at = now + elector__bid_delay(e);
    else if (now >= e->scan_at)
        scan(e, now);
}

static void bid_by_rank(struct elector *e, struct elector_account *a, uint64_t now)
{
    uint64_t delay = elector__free_delay(e, a);
    if (delay)
        elector__bid_at(e, a,
                        now + delay); /* a member that learns of another claim stops bidding */
    else
        elector__bid(e, a, now);
}

/* All followers detect a hung holder within one scan of each other, and one of them is enough to
 * end its session. The statement checks again, so a late one does not harm the successor. */
static void evict_by_rank(struct elector *e, struct elector_account *a, uint64_t now)
{
    uint64_t delay = elector__free_delay(e, a);
    if (delay)
        elector__evict_at(e, a, now + delay);
    else
        elector__evict(e, a, now);
}

/* With locks: bid for a free lock, unless the claim counts without it; request eviction for a
 * lock that is taken behind an expired claim. A holder without a claim may be about to claim, so
 * that takes two scans. Without locks: the claim's expiry decides. A lock in the way may be of
 * any session, and only that of a relay makes the database refuse the claim. */
static void act(struct elector *e, struct elector_account *a, uint64_t now,
                const struct elector_view *seen)
{
    bool free_account = !seen->holder || !seen->holder[0];
    bool lapsed = free_account || seen->expiry_1_left_ms <= 0;
    bool was_orphan = a->orphan;
    a->orphan = seen->taken && free_account;
    if (now < a->away_until && !seen->mine)
        return; /* handed over: the other members first */
    if (!e->config.use_lock) {
        bool sure =
            free_account || seen->expiry_2_left_ms <= 0; /* else a submission may be under way */
        if (seen->mine)
            elector__bid(e, a, now);
        else if (lapsed && (sure || now >= a->ask_at))
            bid_by_rank(e, a, now);
    } else if (!seen->taken) {
        if (seen->mine)
            elector__bid(e, a, now);
        else if (lapsed || seen->lock_held)
            bid_by_rank(e, a, now);
    } else if (lapsed && now >= a->ask_at && (!free_account || was_orphan)) {
        evict_by_rank(e, a, now);
    }
}

/* Of those that were asked about, who is not in the answer is led as before. A claim counts until
 * its second expiry. */
static void note_unled(struct elector *e, const struct elector_event *ev)
{
    for (size_t i = 0; i < e->scan_count; i++) {
        struct elector_account *a = &e->accounts[e->scan_accounts[i]];
        if (waits(a))
            a->unled = a->in_way = false;
    }
    for (size_t i = 0; i < ev->scan.count; i++) {
        const struct elector_view *seen = &ev->scan.seen[i];
        struct elector_account *a = &e->accounts[ev->scan.accounts[i]];
        bool free_account = !seen->holder || !seen->holder[0];
        a->unled = waits(a) && (free_account || seen->expiry_2_left_ms <= 0);
        a->in_way = a->unled && seen->taken;
    }
}

bool elector_unled(const struct elector *e, int account, bool *ret_in_way)
{
    PRE(account >= 0 && (size_t)account < e->count);
    const struct elector_account *a = &e->accounts[account];
    *ret_in_way = a->in_way;
    return a->unled && a->state != ELECTOR_LEADER;
}

void elector__on_scan_reply(struct elector *e, uint64_t now, const struct elector_event *ev)
{
    PRE(e->scanning);
    e->scanning = false;
    if (ev->failed) {
        e->scan_at = now + backoff_next(&e->scan_backoff, &e->rng);
        return;
    }
    backoff_reset(&e->scan_backoff);
    uint64_t pause = elector__bid_delay(e), rest = SCAN_RESTS * (now - e->scan_sent);
    if (rest > e->config.heartbeat_ms)
        rest = e->config.heartbeat_ms;
    e->scan_at = e->scan_sent + pause > now + rest ? e->scan_sent + pause : now + rest;
    if (!elector__bids(e))
        return;
    note_unled(e, ev);
    for (size_t i = 0; i < ev->scan.count; i++) {
        const struct elector_view *seen = &ev->scan.seen[i];
        struct elector_account *a = &e->accounts[ev->scan.accounts[i]];
        /* It acted since the scan was sent, or knows a newer epoch. An epoch below the one known
         * before is not outdated: the database failed over and lost commits. */
        bool heard = a->known_epoch != a->scan_epoch && seen->epoch < a->known_epoch;
        if (!a->scanned || !waits(a) || heard)
            continue;
        elector__learn(a, seen->holder, seen->address, seen->epoch);
        act(e, a, now, seen);
    }
}
