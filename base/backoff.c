#include "base/backoff.h"

#include "base/check.h"

uint64_t backoff_next(struct backoff *b, struct rng *rng)
{
    PRE(b->base_ms > 0 && b->cap_ms >= b->base_ms);
    uint64_t delay = b->base_ms;
    for (uint32_t i = 0; i < b->attempt && delay < b->cap_ms; i++)
        delay *= 2;
    if (delay > b->cap_ms)
        delay = b->cap_ms;
    b->attempt++;
    return rng_between(rng, delay / 2 + delay % 2, delay);
}

void backoff_reset(struct backoff *b)
{
    b->attempt = 0;
}
