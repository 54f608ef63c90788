/* Queries for many accounts at once.
 *
 * A sweep asks, for the accounts that are led, whether a poll that is due only because time has
 * passed would find anything. What it finds is only a reason to poll: the account reads it again
 * for itself, under its epoch. The accounts take turns, in slices, so that no urgent answer
 * waits behind a long one. An account whose turn came lately is covered: it sends no
 * such polls of its own.
 *
 * A merged poll asks the same for the accounts that would poll their outbox in the next moment,
 * where there are no doorbells. One is out at a time; accounts whose time comes meanwhile are the
 * next one. */
#include <stdlib.h>

#include "base/alloc.h"
#include "poll_internal.h"

void poll__batch_init(const struct poll *p, struct poll_batch *b)
{
    size_t most = p->config.accounts < POLL_SLICE ? p->config.accounts : POLL_SLICE;
    b->accounts = xcalloc(most, sizeof(*b->accounts));
    b->tenures = xcalloc(most, sizeof(*b->tenures));
    b->fingerprints = xcalloc(most, sizeof(*b->fingerprints));
}

void poll__batch_free(struct poll_batch *b)
{
    free(b->accounts);
    free(b->tenures);
    free(b->fingerprints);
}

bool poll__covered(const struct poll *p, const struct poll_account *a)
{
    return p->now < a->covered_until;
}

/* ---- the query ---- */

static void add(struct poll *p, struct poll_batch *b, const struct poll_account *a,
                int64_t fingerprint)
{
    PRE(b->count < POLL_SLICE);
    b->accounts[b->count] = poll__index(p, a);
    b->tenures[b->count] = a->tenure;
    b->fingerprints[b->count] = fingerprint;
    b->count++;
}

static struct poll_account *next_turn(struct poll *p, struct poll_batch *b)
{
    struct poll_account *a = &p->accounts[b->turn];
    b->turn = (b->turn + 1) % p->config.accounts;
    return a;
}

static void send(struct poll *p, struct poll_batch *b, enum poll_query query, uint32_t ahead_ms)
{
    b->begun = p->now;
    struct poll_effect *fx = poll__emit(p, query, NULL, POLL_WHY_DUE);
    fx->question = b->question = ++p->questions;
    fx->accounts = b->accounts;
    fx->fingerprints = b->fingerprints;
    fx->count = b->count;
    fx->ahead_ms = ahead_ms;
}

/* ---- sweeps ---- */

static uint64_t interval(const struct poll *p)
{
    return POLL_SWEEP_MS / p->slices;
}

static void sweep(struct poll *p)
{
    struct poll_batch *b = &p->sweep;
    size_t led = p->store_up ? p->led : 0;
    p->slices = led ? (uint32_t)((led + POLL_SLICE - 1) / POLL_SLICE) : 1;
    if (p->slices > POLL_SWEEP_MS)
        p->slices = POLL_SWEEP_MS;
    p->sweep_due = p->now + interval(p);
    size_t most = (led + p->slices - 1) / p->slices;
    b->count = 0;
    for (size_t seen = 0; seen < p->config.accounts && b->count < most && b->count < POLL_SLICE;
         seen++) {
        struct poll_account *a = next_turn(p, b);
        if (!a->led)
            continue;
        add(p, b, a, a->requests.fingerprint);
        /* While it is on its way the account's own query would only stand behind it. */
        a->covered_until = p->now + POLL_LOST_MS;
    }
    if (b->count)
        send(p, b, POLL_QUERY_SWEEP, POLL_AHEAD_MS);
}

static uint64_t cover(const struct poll *p, const struct poll_account *a)
{
    uint64_t ms = a->turn ? POLL_COVER_TURNS * (p->now - a->turn) : 0;
    ms = ms > POLL_COVER_MS ? ms : POLL_COVER_MS;
    return ms < POLL_LOST_MS ? ms : POLL_LOST_MS;
}

static void lost(struct poll *p, struct poll_account *a)
{
    poll__emit(p, POLL_QUERY_SWEEP, a, POLL_WHY_OVER)->lost = true;
}

static void swept(struct poll *p, struct poll_account *a, bool failed,
                  const struct poll_found *found)
{
    if (failed) {
        a->covered_until = 0;
        return;
    }
    if (found && found->lost) {
        lost(p, a);
        return;
    }
    a->covered_until = p->now + cover(p, a);
    a->turn = p->now;
    bool next = found && found->next_ms >= 0; /* counted from before the query: rather too early */
    poll__requests_swept(a, next ? p->sweep.begun + (uint64_t)found->next_ms : UINT64_MAX);
    if (found && found->has_requests)
        poll__requests_now(p, a, POLL_WHY_SWEEP);
    if (found && found->has_rows &&
        a->outbox.state == POLL_ASLEEP) /* else it is about to ask, or wants none */
        poll__outbox_rang(p, a, POLL_WHY_SWEEP);
    poll__heap_set(p, a);
}

static void sweep_over(struct poll *p, bool failed)
{
    uint64_t rest = interval(p) < POLL_PAUSE_MS ? interval(p) : POLL_PAUSE_MS;
    p->sweep.question = 0;
    p->sweep_failed_ms = failed ? poll__retry_ms(p->sweep_failed_ms, POLL_REFUSED_MS) : 0;
    if (p->sweep_due <= p->now)
        p->sweep_due = p->now + rest;
    if (p->sweep_due < p->now + p->sweep_failed_ms)
        p->sweep_due = p->now + p->sweep_failed_ms;
}

void poll__sweep_mended(struct poll *p)
{
    if (p->sweep_failed_ms)
        p->sweep_due = p->now;
    p->sweep_failed_ms = 0;
}

/* ---- merged polls ---- */

static void merge(struct poll *p)
{
    struct poll_batch *b = &p->merged;
    if (b->question || !p->merging)
        return;
    b->count = 0;
    for (size_t seen = 0; seen < p->config.accounts && b->count < POLL_SLICE; seen++) {
        struct poll_account *a = next_turn(p, b);
        if (!a->outbox.merges) {
            if (!poll__may_merge(p, a))
                continue;
            poll__merge(p, a); /* its time comes soon: from now on it keeps step with the others */
            poll__heap_set(p, a);
        }
        a->outbox.merges = false;
        p->merging--;
        add(p, b, a, -1);
    }
    send(p, b, POLL_QUERY_MERGED, 0);
}

static void merged(struct poll *p, struct poll_account *a, bool failed,
                   const struct poll_found *found)
{
    bool gone = found && found->lost;
    if (gone)
        lost(p, a);
    poll__merged(p, a, failed || gone, found && found->has_rows);
    poll__heap_set(p, a);
}

/* ---- answers ---- */

typedef void each_cb(struct poll *p, struct poll_account *a, bool failed,
                     const struct poll_found *found);

static void each(struct poll *p, struct poll_batch *b, bool failed, const struct poll_found *found,
                 size_t count, each_cb *cb)
{
    size_t k = 0;
    for (size_t i = 0; i < b->count; i++) {
        struct poll_account *a = &p->accounts[b->accounts[i]];
        const struct poll_found *of = k < count && found[k].index == i ? &found[k++] : NULL;
        if (a->tenure == b->tenures[i])
            cb(p, a, failed, of);
    }
    INVARIANT(k == count);
}

bool poll__swept(struct poll *p, const struct poll_event *ev)
{
    struct poll_batch *b = &p->sweep;
    if (!ev->question || ev->question != b->question)
        return false;
    each(p, b, ev->swept.failed, ev->swept.found, ev->swept.failed ? 0 : ev->swept.count, swept);
    sweep_over(p, ev->swept.failed);
    return true;
}

static void merge_over(struct poll *p)
{
    p->merged.question = 0;
    merge(p);
}

bool poll__merged_answer(struct poll *p, const struct poll_event *ev)
{
    struct poll_batch *b = &p->merged;
    if (!ev->question || ev->question != b->question)
        return false;
    each(p, b, ev->swept.failed, ev->swept.found, ev->swept.failed ? 0 : ev->swept.count, merged);
    merge_over(p);
    return true;
}

/* ---- time ---- */

static uint64_t lost_at(const struct poll_batch *b)
{
    return b->question ? b->begun + POLL_LOST_MS : UINT64_MAX;
}

uint64_t poll__batch_deadline(const struct poll *p)
{
    uint64_t at = p->sweep.question  ? lost_at(&p->sweep)
                  : p->config.sweeps ? p->sweep_due
                                     : UINT64_MAX;
    return lost_at(&p->merged) < at ? lost_at(&p->merged) : at;
}

/* After the accounts' own ticks, so that those whose time has come together are one query. */
void poll__batches_tick(struct poll *p)
{
    if (lost_at(&p->sweep) <= p->now) {
        each(p, &p->sweep, true, NULL, 0, swept);
        sweep_over(p, true);
    }
    if (p->config.sweeps && !p->sweep.question && p->sweep_due <= p->now)
        sweep(p);
    if (lost_at(&p->merged) <= p->now) {
        each(p, &p->merged, true, NULL, 0, merged);
        p->merged.question = 0;
    }
    merge(p);
}
