/* The table of a lane's states. Every change is looked up here. */
#include "base/buf.h"
#include "base/check.h"
#include "hook_internal.h"

static const char *const names[] = {
    [HOOK_READY] = "READY",
    [HOOK_SENDING] = "SENDING",
    [HOOK_REPORT_WAIT] = "REPORT_WAIT",
    [HOOK_REPORT_LATER] = "REPORT_LATER",
};

static const struct sm_move moves[] = {
    {SM_OUTSIDE, HOOK_READY, "the database has deliveries that are due"},
    {HOOK_READY, HOOK_SENDING, "there is room for a request"},
    {HOOK_READY, SM_OUTSIDE, "the relay stops"},
    {HOOK_SENDING, HOOK_SENDING, "taken, and the lane has more"},
    {HOOK_SENDING, HOOK_REPORT_WAIT, "the last one was taken, or one failed"},
    {HOOK_REPORT_WAIT, HOOK_REPORT_LATER, "the database did not answer"},
    {HOOK_REPORT_LATER, HOOK_REPORT_WAIT, "the time is over"},
    {HOOK_REPORT_WAIT, SM_OUTSIDE, "the report is stored"},
};

static const struct sm table = {names, ARRAY_LEN(names), SM_OUTSIDE, moves, ARRAY_LEN(moves)};

void hook__move(struct hook_core *h, unsigned from, unsigned to)
{
    sm_take(&table, &h->trace, from, to);
    h->sending += (size_t)(to == HOOK_SENDING);
    h->sending -= (size_t)(from == HOOK_SENDING);
}

/* The lane goes on in the state that the step gave it. What is sent twice has the same number, and
 * a report counts once. */
void hook__recover(struct hook_core *h)
{
    h->bug[0] = 0;
    sm_bug(&table, &h->trace, h->bug);
}

const char *hook_bug(const struct hook_core *h)
{
    return h->bug[0] ? h->bug : NULL;
}

void hook_dump(struct buf *out)
{
    sm_dump(&table, out);
}

void hook_missing(const struct hook_core *h, struct buf *out)
{
    sm_missing(&table, h->trace.made, out);
}
