/* The decisions of relay/core/poll/retention_plan.h. */
#include "relay/core/poll/retention_plan.h"

#include "base/check.h"

enum {
    FIRST_MS = 60000, /* a relay that starts has better things to do */
    MAY_MS = 10000,   /* it leads nothing now, or has no database */
    MORE_MS = 1000,   /* a calm rate: one batch a second */
    FAILED_MS = 300000,
};

static void due_in(struct keep_plan *p, uint64_t now, uint64_t ms)
{
    uint64_t wait = ms < p->interval_ms ? ms : p->interval_ms;
    p->due_ms = now + wait - rng_below(&p->rng, wait / 10 + 1);
}

void keep_plan_init(struct keep_plan *p, uint64_t interval_ms, uint64_t now_ms, uint64_t seed)
{
    PRE(interval_ms > 0);
    *p = (struct keep_plan){.interval_ms = interval_ms, .rng = {.state = seed}};
    due_in(p, now_ms, FIRST_MS);
}

bool keep_plan_begin(struct keep_plan *p, uint64_t now_ms, bool may)
{
    if (p->running || now_ms < p->due_ms)
        return false;
    p->running = may;
    if (!may)
        due_in(p, now_ms, MAY_MS);
    return may;
}

void keep_plan_ended(struct keep_plan *p, uint64_t now_ms, enum keep_end end)
{
    static const uint64_t waits[] = {
        [KEEP_DONE] = UINT64_MAX, [KEEP_MORE] = MORE_MS, [KEEP_FAILED] = FAILED_MS};
    PRE(p->running && (unsigned)end < ARRAY_LEN(waits));
    p->running = false;
    due_in(p, now_ms, waits[end]);
}

uint64_t keep_plan_next(const struct keep_plan *p)
{
    return p->running ? UINT64_MAX : p->due_ms;
}
