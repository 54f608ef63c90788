#include "base/backoff.h"

#include "base/check.h"

static uint64_t longer(const struct backoff *b, uint64_t delay)
{
    enum { GROWTH = 32 };
    if (b->knee_ms && delay >= b->knee_ms)
        return delay + delay / GROWTH;
    return b->knee_ms && delay * 2 > b->knee_ms ? b->knee_ms : delay * 2;
}

uint64_t backoff_next(struct backoff *b, struct rng *rng)
{
    PRE(b->base_ms > 0 && b->cap_ms >= b->base_ms);
    uint64_t delay = b->base_ms;
    for (uint32_t i = 0; i < b->attempt && delay < b->cap_ms; i++)
        delay = longer(b, delay);
    if (delay > b->cap_ms)
        delay = b->cap_ms;
    b->attempt++;
    return rng_between(rng, delay / 2 + delay % 2, delay);
}

void backoff_reset(struct backoff *b)
{
    b->attempt = 0;
}
