/* A scheduler on virtual time, driven by words: each line of a script is an event, and what is to
 * be queued because of it, as text. */
#ifndef TEST_POLL_HARNESS_H
#define TEST_POLL_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "relay/core/poll/poll.h"

enum { POLL_START = 1000000, POLL_SCRIPT_ACCOUNTS = 3 };

struct poll_line {
    uint64_t ms; /* since the beginning of the script */
    /* "[ACCOUNT] WORD [key=number]...", account 0 if not named; "late" before an answer: to the
     * query before the last one of its kind */
    const char *event;
    const char *effects; /* "outbox:rang arm:empty", "" for none; "1." before those of account 1 */
};

/* Runs it from a new scheduler on; each line is checked, and the state after it. `moved` collects
 * the edges of the table. */
void poll_script(const struct poll_config *config, const struct poll_line *lines, size_t count);
extern uint64_t poll_script_moved;

#define POLL_SCRIPT(config, ...)                                                                   \
    do {                                                                                           \
        static const struct poll_line lines_[] = {__VA_ARGS__};                                    \
        poll_script((config), lines_, sizeof(lines_) / sizeof(*lines_));                           \
    } while (0)

#endif
