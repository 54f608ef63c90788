/* The tables of moves. docs/design.md (section 5) shows the diagrams that they print, and every
 * change of a state is checked against them. */
#include "base/sm.h"
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

static const struct sm_move outbox_moves[] = {
    {POLL_OFF, POLL_ARM_WAIT, "rows are wanted, and likely there are none"},
    {POLL_OFF, POLL_FETCH_WAIT,
     "rows are wanted, and the last polls found some or there are no doorbells"},
    {POLL_ARM_WAIT, POLL_RECHECK_WAIT, "has the doorbell"},
    {POLL_ARM_WAIT, POLL_FETCH_WAIT,
     "an open transaction has enqueued, and nothing was polled yet"},
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
};

static const struct sm_move requests_moves[] = {
    {POLL_REQUESTS_OFF, POLL_REQUESTS_WAIT, "the manager has loaded its rows"},
    {POLL_REQUESTS_WAIT, POLL_REQUESTS_IDLE, "answered, or failed"},
    {POLL_REQUESTS_IDLE, POLL_REQUESTS_WAIT, "there is a reason"},
    {POLL_REQUESTS_WAIT, POLL_REQUESTS_OFF, "not led any more"},
    {POLL_REQUESTS_IDLE, POLL_REQUESTS_OFF, "not led any more"},
};

static const struct sm outbox = {names, POLL_STATES, POLL_OFF, outbox_moves,
                                 ARRAY_LEN(outbox_moves)};
static const struct sm requests = {names, POLL_STATES, POLL_REQUESTS_OFF, requests_moves,
                                   ARRAY_LEN(requests_moves)};

enum {
    REQUESTS_BIT = ARRAY_LEN(outbox_moves)
}; /* in poll_moved: those of request polls come after */

/* Also when it is illegal: what follows presumes the new state. */
static void take(struct poll_account *a, const struct sm *sm, struct sm_trace *trace,
                 enum poll_state *state, enum poll_state to)
{
    if (*state == to)
        return;
    a->bug |= !sm_take(sm, trace, *state, to);
    *state = to;
}

void poll__move_outbox(struct poll *p, struct poll_account *a, enum poll_state to)
{
    take(a, &outbox, &p->outbox_moves, &a->outbox.state, to);
}

void poll__move_requests(struct poll *p, struct poll_account *a, enum poll_state to)
{
    take(a, &requests, &p->requests_moves, &a->requests.state, to);
}

/* The account's polls are dropped, and answers to them with them. Its owner loads it again, which
 * begins new ones. */
static void drop_polls(struct poll *p, struct poll_account *a)
{
    a->bug = false;
    a->outbox.state = POLL_OFF;
    poll__outbox_off(p, a);
    a->requests.state = POLL_REQUESTS_OFF;
    poll__requests_off(p, a);
    poll__heap_set(p, a);
    poll__emit(p, POLL_QUERY_SWEEP, a, POLL_WHY_OVER)->bug = p->bug;
}

void poll__recover(struct poll *p)
{
    if (!sm_bug(&outbox, &p->outbox_moves, p->bug) &&
        !sm_bug(&requests, &p->requests_moves, p->bug))
        return;
    p->outbox_moves.illegal = p->requests_moves.illegal = 0;
    for (size_t i = 0; i < p->config.accounts; i++)
        if (p->accounts[i].bug)
            drop_polls(p, &p->accounts[i]);
}

uint64_t poll_moved(const struct poll *p)
{
    return p->outbox_moves.made | p->requests_moves.made << REQUESTS_BIT;
}

void poll_moves_missing(uint64_t moved, struct buf *out)
{
    _Static_assert(ARRAY_LEN(outbox_moves) + ARRAY_LEN(requests_moves) <= SM_MOVES_MAX,
                   "a bit for each");
    sm_missing(&outbox, moved, out);
    sm_missing(&requests, moved >> REQUESTS_BIT, out);
}

void poll_outbox_dump(struct buf *out)
{
    sm_dump(&outbox, out);
}

void poll_requests_dump(struct buf *out)
{
    sm_dump(&requests, out);
}

/* ---- names ---- */

const char *poll_query_name(enum poll_query query)
{
    static const char *const queries[POLL_QUERIES] = {
        [POLL_QUERY_OUTBOX] = "outbox", [POLL_QUERY_REQUESTS] = "requests",
        [POLL_QUERY_ARM] = "arm",       [POLL_QUERY_DISARM] = "disarm",
        [POLL_QUERY_SWEEP] = "sweep",   [POLL_QUERY_MERGED] = "merged",
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
        [POLL_WHY_TIMED] = "timed",
        [POLL_WHY_EMPTY] = "empty",
        [POLL_WHY_ROWS] = "rows",
        [POLL_WHY_OVER] = "over",
        [POLL_WHY_DUE] = "due",
        [POLL_WHY_REQUEUED] = "requeued",
    };
    PRE((size_t)why < POLL_REASONS);
    return reasons[why];
}
