/* How far a relay is between its start and its first lead, and how far an account is between its
 * promotion and its first send. A step that is over within a second is not reported. One that takes
 * longer goes into the log, every ten seconds again, into the status and to the supervisor.
 *
 * docs/operation.md lists the steps; the test relay_progress_test compares the two. */
#ifndef RELAY_PROGRESS_H
#define RELAY_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(step, name, what is done): the name is in the log and in the status. */
#define START_STEPS(X)                                                                             \
    X(START_KEYS, "keys", "reads the keys of its accounts")                                        \
    X(START_DATABASE, "database", "connects to the database and checks its schema")                \
    X(START_ENDPOINT, "endpoint", "connects to an endpoint")                                       \
    X(START_CHAIN, "chain", "asks the endpoint for its chain and its head")                        \
    X(START_METADATA, "metadata", "reads the runtime's metadata")                                  \
    X(START_REGISTER, "register", "registers its accounts")                                        \
    X(START_ROWS, "rows", "reads its pending transactions from the database")                      \
    X(START_BLOCKS, "blocks", "reads the finalized blocks that nobody has read")                   \
    X(START_LOST_COMMITS, "lost_commits", "searches blocks for what lost commits may have sent")   \
    X(START_POOL, "pool", "asks the node what its pool holds")                                     \
    X(START_NONCE, "nonce", "asks the node for the account's nonce")

enum start_step {
    START_NONE,
#define X(step, name, text) step,
    START_STEPS(X)
#undef X
        START_STEP_COUNT,
};
const char *start_step_name(enum start_step step); /* "" of none */

enum { PROGRESS_AFTER_MS = 1000, PROGRESS_AGAIN_MS = 10000 };

/* Zeroed: nothing is being done. */
struct progress {
    enum start_step step;
    uint64_t since;    /* ms; when it was seen first */
    uint64_t told_at;  /* 0: not told */
    uint64_t first;    /* `at` when it was seen first */
    uint64_t done, of; /* of: 0: not known */
};

/* What is seen now. */
struct progress_seen {
    enum start_step step;
    uint64_t from, at, to; /* all 0: not known, or nothing to count */
    bool relative;         /* count from where `at` was when the step was seen first */
};

/* True: the caller logs it. now: monotonic ms. */
bool progress_look(struct progress *p, uint64_t now, const struct progress_seen *seen);
bool progress_lasts(const struct progress *p); /* operators see it */

/* "reads the runtime's metadata, for 3 s", or "..., 1200 of 5000, for 3 s"; returns ret. */
enum { PROGRESS_TEXT = 160 };
const char *progress_text(const struct progress *p, uint64_t now, char ret[PROGRESS_TEXT]);

/* One line about the first step that lasts, and how many more do; "": none does. Zeroed but for
 * text and size; progress_list_end when all were added. whose: an alias, or "" of the relay. */
struct progress_list {
    char *text;
    size_t size, more;
};
void progress_list_add(struct progress_list *l, const char *whose, const struct progress *p,
                       uint64_t now);
void progress_list_end(struct progress_list *l);

#endif
