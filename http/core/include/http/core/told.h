/* The rows that a reader got from the tables, pure: the ring has older states of the same rows,
 * because a notification comes after the commit that the table already shows. Such a state would
 * lead the reader back.
 *
 *   table:  id 7 in_block, updated 12:00:02
 *   ring:   id 7 ready, updated 12:00:01      <- is not sent to this reader
 *           id 7 finalized, updated 12:00:09  <- is sent
 *
 * At most TOLD_MAX rows are kept, the ones that changed last: the ring's events are of the last
 * seconds. */
#ifndef HTTP_CORE_TOLD_H
#define HTTP_CORE_TOLD_H

#include "http/core/events.h"

enum { TOLD_MAX = 4096 };

struct told_row {
    int64_t id; /* 0: a filler, which its account and nonce name */
    int64_t nonce;
    int64_t updated_us;
    int32_t account;
    bool ended;
};

struct told;

struct told *told_new(void);
struct told *told_free(struct told *t);
void told_put(struct told *t, const struct told_row *row);

/* Is this event of the ring no older than what the reader got? Never true after its end.
 * t NULL: it got nothing from the tables. */
bool told_passes(struct told *t, const struct recent_event *ev);
/* Does this event of the ring show that all of them were before it that are older than a row? */
bool told_is_over(const struct told *t, const struct recent_event *ev);

#endif
