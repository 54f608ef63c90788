/* When a relay keeps house (retention): the decision alone, without clock, loop or database.
 *
 *        may and due            DONE: an interval later
 *   REST ------------> RUNNING ---------------------------> REST
 *                              MORE: soon; FAILED: a while
 *
 * Who may: a relay that leads an account while its database is up. Several may at once; the functions of the
 * schema take turns. A tenth of the interval is random, so that relays that were started together are not
 * busy together. */
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

void retention_plan_init(struct retention_plan *p, uint64_t interval_ms, uint64_t now_ms, uint64_t seed);
/* true: begin; retention_plan_ended is to follow. */
bool retention_plan_begin(struct retention_plan *p, uint64_t now_ms, bool may);
void retention_plan_ended(struct retention_plan *p, uint64_t now_ms, enum retention_end end);
/* When to ask retention_plan_begin again; UINT64_MAX: after the end. */
uint64_t retention_plan_next(const struct retention_plan *p);

#endif
