/* When a relay keeps house (retention): the decision alone, without clock, loop or database.
 *
 *        may and due            DONE: an interval later
 *   REST ------------> RUNNING ---------------------------> REST
 *                              MORE: soon; FAILED: a while
 *
 * Who may: a relay that leads an account while its database is up. Several may at once; the functions of the
 * schema take turns. A tenth of the interval is random, so that relays that were started together are not
 * busy together. */
#ifndef RELAY_KEEP_H
#define RELAY_KEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"

enum keep_end { KEEP_DONE, KEEP_MORE, KEEP_FAILED };

struct keep_plan {
    uint64_t interval_ms, due_ms;
    bool running;
    struct rng rng;
};

void keep_plan_init(struct keep_plan *p, uint64_t interval_ms, uint64_t now_ms, uint64_t seed);
/* true: begin; keep_plan_ended is to follow. */
bool keep_plan_begin(struct keep_plan *p, uint64_t now_ms, bool may);
void keep_plan_ended(struct keep_plan *p, uint64_t now_ms, enum keep_end end);
/* When to ask keep_plan_begin again; UINT64_MAX: after the end. */
uint64_t keep_plan_next(const struct keep_plan *p);

#endif
