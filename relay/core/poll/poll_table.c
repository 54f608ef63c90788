/* The table of moves. poll_dump prints it as a mermaid diagram (docs/design.md, section 5), and
 * every change of a state is checked against it. */
#include "base/buf.h"
#include "poll_internal.h"

static const char *const names[POLL_STATES] = {
    [POLL_OFF] = "OFF",
    [POLL_FETCH_WAIT] = "FETCH_WAIT",
    [POLL_BACKOFF] = "BACKOFF",
    [POLL_MERGE_WAIT] = "MERGE_WAIT",
    [POLL_ARM_WAIT] = "ARM_WAIT",
    [POLL_RECHECK_WAIT] = "RECHECK_WAIT",
    [POLL_ASLEEP] = "ASLEEP",
    [POLL_REQUESTS_OFF] = "REQUESTS_OFF",
    [POLL_REQUESTS_WAIT] = "REQUESTS_WAIT",
    [POLL_REQUESTS_IDLE] = "REQUESTS_IDLE",
};

static const struct move {
    enum poll_state from, to;
    const char *why; /* one line for the operator */
} moves[] = {
    {POLL_OFF, POLL_ARM_WAIT, "rows are wanted, and likely there are none"},
    {POLL_OFF, POLL_FETCH_WAIT, "rows are wanted, and the last polls found some or there are no doorbells"},
    {POLL_ARM_WAIT, POLL_RECHECK_WAIT, "has the doorbell"},
    {POLL_ARM_WAIT, POLL_FETCH_WAIT, "an open transaction has enqueued, and nothing was polled yet"},
    {POLL_ARM_WAIT, POLL_BACKOFF, "an open transaction has enqueued, or failed"},
    {POLL_ARM_WAIT, POLL_OFF, "not led any more"},
    {POLL_FETCH_WAIT, POLL_OFF, "rows, or not led any more"},
    {POLL_FETCH_WAIT, POLL_ARM_WAIT, "no rows"},
    {POLL_FETCH_WAIT, POLL_ASLEEP, "no rows, and it still has the doorbell"},
    {POLL_FETCH_WAIT, POLL_BACKOFF, "failed, or no rows and no doorbells"},
    {POLL_RECHECK_WAIT, POLL_OFF, "rows, or not led any more"},
    {POLL_RECHECK_WAIT, POLL_ASLEEP, "no rows"},
    {POLL_RECHECK_WAIT, POLL_BACKOFF, "failed"},
    {POLL_RECHECK_WAIT, POLL_FETCH_WAIT, "the doorbell is gone with its session"},
    {POLL_ASLEEP, POLL_FETCH_WAIT, "wakeup, or found by a sweep, a request poll or the slow poll"},
    {POLL_ASLEEP, POLL_BACKOFF, "the doorbell is gone with its session"},
    {POLL_ASLEEP, POLL_OFF, "not led any more"},
    {POLL_BACKOFF, POLL_FETCH_WAIT, "its time has come, or wakeup"},
    {POLL_BACKOFF, POLL_MERGE_WAIT, "its time has come, and others poll with it"},
    {POLL_BACKOFF, POLL_OFF, "not led any more"},
    {POLL_MERGE_WAIT, POLL_FETCH_WAIT, "the merged poll found rows"},
    {POLL_MERGE_WAIT, POLL_BACKOFF, "the merged poll found none, or failed"},
    {POLL_MERGE_WAIT, POLL_OFF, "not led any more"},
    {POLL_REQUESTS_OFF, POLL_REQUESTS_WAIT, "the manager has loaded its rows"},
    {POLL_REQUESTS_WAIT, POLL_REQUESTS_IDLE, "answered, or failed"},
    {POLL_REQUESTS_IDLE, POLL_REQUESTS_WAIT, "there is a reason"},
    {POLL_REQUESTS_WAIT, POLL_REQUESTS_OFF, "not led any more"},
    {POLL_REQUESTS_IDLE, POLL_REQUESTS_OFF, "not led any more"},
};

void poll__move(struct poll *p, enum poll_state *state, enum poll_state to)
{
    if (*state == to)
        return;
    size_t i = 0;
    while (i < ARRAY_LEN(moves) && (moves[i].from != *state || moves[i].to != to))
        i++;
    INVARIANT(i < ARRAY_LEN(moves));
    p->moved |= UINT64_C(1) << i;
    *state = to;
}

uint64_t poll_moved(const struct poll *p)
{
    return p->moved;
}

void poll_moves_missing(uint64_t moved, struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(moves); i++)
        if (!(moved & UINT64_C(1) << i))
            buf_printf(out, "%s --> %s: %s\n", names[moves[i].from], names[moves[i].to], moves[i].why);
}

const char *poll_state_name(enum poll_state state)
{
    PRE((size_t)state < POLL_STATES);
    return names[state];
}

void poll_dump(struct buf *out)
{
    _Static_assert(ARRAY_LEN(moves) <= 64, "one bit each in poll_moved");
    buf_puts(out, "stateDiagram-v2\n    [*] --> OFF\n    [*] --> REQUESTS_OFF\n");
    for (size_t i = 0; i < ARRAY_LEN(moves); i++)
        buf_printf(out, "    %s --> %s: %s\n", names[moves[i].from], names[moves[i].to], moves[i].why);
}

/* ---- names ---- */

const char *poll_query_name(enum poll_query query)
{
    static const char *const queries[POLL_QUERIES] = {
        [POLL_QUERY_OUTBOX] = "outbox", [POLL_QUERY_REQUESTS] = "requests", [POLL_QUERY_ARM] = "arm",
        [POLL_QUERY_DISARM] = "disarm", [POLL_QUERY_SWEEP] = "sweep",       [POLL_QUERY_MERGED] = "merged",
    };
    PRE((size_t)query < POLL_QUERIES);
    return queries[query];
}

const char *poll_reason_name(enum poll_reason why)
{
    static const char *const reasons[POLL_REASONS] = {
        [POLL_WHY_WANTED] = "wanted",
        [POLL_WHY_RANG] = "rang",
        [POLL_WHY_ARMED] = "armed",
        [POLL_WHY_NOT_ARMED] = "not_armed",
        [POLL_WHY_BACKOFF] = "backoff",
        [POLL_WHY_RETRY] = "retry",
        [POLL_WHY_NO_ANSWER] = "no_answer",
        [POLL_WHY_FELL_ASLEEP] = "fell_asleep",
        [POLL_WHY_SLOW] = "slow",
        [POLL_WHY_DEADLINE] = "deadline",
        [POLL_WHY_SWEEP] = "sweep",
        [POLL_WHY_MERGED] = "merged",
        [POLL_WHY_RIPE] = "ripe",
        [POLL_WHY_EMPTY] = "empty",
        [POLL_WHY_ROWS] = "rows",
        [POLL_WHY_OVER] = "over",
        [POLL_WHY_DUE] = "due",
    };
    PRE((size_t)why < POLL_REASONS);
    return reasons[why];
}
