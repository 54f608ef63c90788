/* When a relay runs retention: only the decision, without clock, loop or database.
 *
 *        may and due            DONE: an interval later
 *   REST ------------> RUNNING ---------------------------> REST
 *                              MORE: soon; FAILED: a while
 *
 * A relay that leads an account may run it while its database is up. Several may at once; the
 * SQL functions take turns. A tenth of the interval is random, so that relays that were started
 * together are not busy together. */
#ifndef RELAY_RETENTION_PLAN_H
#define RELAY_RETENTION_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"

enum retention_end { RETENTION_DONE, RETENTION_MORE, RETENTION_FAILED };

struct retention_plan {
    uint64_t interval_ms, due_ms;
    bool running;
    struct rng rng;
};

void retention_plan_init(struct retention_plan *p, uint64_t interval_ms, uint64_t now_ms,
                         uint64_t seed);
/* true: begin; retention_plan_ended is to follow. */
bool retention_plan_begin(struct retention_plan *p, uint64_t now_ms, bool may);
void retention_plan_ended(struct retention_plan *p, uint64_t now_ms, enum retention_end end);
/* When to call retention_plan_begin again; UINT64_MAX: after the end. */
uint64_t retention_plan_next(const struct retention_plan *p);

#endif
