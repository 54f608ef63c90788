/* How fast an endpoint may be asked: without a limit until it answers "too many", then as many a
 * second as it has shown to take. Pure.
 *
 * A refusal halves the pace, once for all calls that were out together. Each second in which calls
 * were answered adds a little to it. A second's worth of calls may go together after a rest,
 * because the limits that are known are token buckets. */
#ifndef CHAIN_NODE_PACE_H
#define CHAIN_NODE_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct pace {
    uint64_t per_ks; /* calls in 1000 s; 0: no limit is known */
    uint64_t at;     /* the next call may go then */
    uint64_t cut_at; /* of the last refusal that counted */
    uint64_t raised_at;
    /* calls in the present second and in the one before */
    uint64_t second;
    unsigned count, count_before;
};

uint64_t pace_next(const struct pace *p, uint64_t now); /* when a call may go: now, or later */
void pace_sent(struct pace *p, uint64_t now);
/* "Too many", for a call of sent_at. retry_ms: how long to wait, if the answer says so; else 0. */
void pace_refused(struct pace *p, uint64_t now, uint64_t sent_at, uint64_t retry_ms);
void pace_answered(struct pace *p, uint64_t now); /* anything else */

#endif
