/* A core of a feed, and what each step asked for as one line of text. */
#ifndef TEST_FEED_HARNESS_H
#define TEST_FEED_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "feed/core/feed.h"

extern struct feed_core *core;
extern uint64_t now_ms;
extern uint64_t all_moved; /* the moves that any core of this program made */

/* A new core in the place of the former. */
void core_new(const struct feed_config *config);
/* The same, served, with this cursor. */
void core_at(const struct feed_config *config, int64_t last);
void core_done(void);

/* Each gives the effects of the step, such as "1:skip 5, 2:ack 4". c4 is the fourth copy. */
const char *step(const struct feed_event *ev);
const char *serve(void);
const char *leave(enum feed_end end, bool graceful);
const char *loaded(uint64_t load, int64_t last); /* last -2: it failed */
const char *open_session(uint64_t session);
const char *header_by(uint64_t session, int64_t number, int publisher);
const char *header(uint64_t session, int64_t number); /* of the publisher session - 1 */
const char *items(uint64_t session, uint32_t count, uint64_t bytes);
const char *trailer(uint64_t session);
const char *client_closes(uint64_t session);
const char *not_understood(uint64_t session);
const char *gone(uint64_t session);
const char *verified(uint64_t copy, bool valid);
const char *stored(uint64_t copy, enum feed_stored outcome, int64_t last);
const char *tick(void);
const char *wait_ms(uint64_t ms); /* and tick */

/* Opens sessions 1 .. n. */
void open_sessions(unsigned n);
/* Header, one item and trailer. */
void send_batch(uint64_t session, int64_t number);

#endif
