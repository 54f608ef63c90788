/* Exponential back-off with full jitter in its upper half: delay = cap-limited base * 2^attempt,
 * then a value between half of it and all of it. Times are milliseconds.
 *
 * With a knee, a delay above it is only a 32nd longer than the one before. The delay then stays
 * below the knee and a 16th of the time for which all attempts have failed, so that the next
 * attempt comes soon after the end of an outage. */
#ifndef BASE_BACKOFF_H
#define BASE_BACKOFF_H

#include <stdint.h>

#include "base/rng.h"

struct backoff {
    uint32_t base_ms;
    uint32_t cap_ms;
    uint32_t knee_ms; /* 0: none */
    uint32_t attempt;
};

uint64_t backoff_next(struct backoff *b, struct rng *rng); /* delay of this attempt; counts it */
void backoff_reset(struct backoff *b);

#endif
