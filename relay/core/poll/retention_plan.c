/* The decisions of relay/core/poll/retention_plan.h. */
#include "relay/core/poll/retention_plan.h"

#include "base/check.h"

enum {
    FIRST_MS = 60000, /* a relay that starts has better things to do */
    MAY_MS = 10000,   /* it leads nothing now, or has no database */
    MORE_MS = 1000,   /* a calm rate: one batch a second */
    FAILED_MS = 300000,
};

static void due_in(struct retention_plan *p, uint64_t now, uint64_t ms)
{
    uint64_t wait = ms < p->interval_ms ? ms : p->interval_ms;
    p->due_ms = now + wait - rng_below(&p->rng, wait / 10 + 1);
}

void retention_plan_init(struct retention_plan *p, uint64_t interval_ms, uint64_t now_ms,
                         uint64_t seed)
{
    PRE(interval_ms > 0);
    *p = (struct retention_plan){.interval_ms = interval_ms, .rng = {.state = seed}};
    due_in(p, now_ms, FIRST_MS);
}

bool retention_plan_begin(struct retention_plan *p, uint64_t now_ms, bool may)
{
    if (p->running || now_ms < p->due_ms)
        return false;
    p->running = may;
    if (!may)
        due_in(p, now_ms, MAY_MS);
    return may;
}

void retention_plan_ended(struct retention_plan *p, uint64_t now_ms, enum retention_end end)
{
    static const uint64_t waits[] = {
        [RETENTION_DONE] = UINT64_MAX, [RETENTION_MORE] = MORE_MS, [RETENTION_FAILED] = FAILED_MS};
    PRE(p->running && (unsigned)end < ARRAY_LEN(waits));
    p->running = false;
    due_in(p, now_ms, waits[end]);
}

uint64_t retention_plan_next(const struct retention_plan *p)
{
    return p->running ? UINT64_MAX : p->due_ms;
}
