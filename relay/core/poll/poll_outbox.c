/* Outbox polls of one account, and its doorbell.
 *
 * An account that has just had rows likely has no more: it takes the doorbell first and then polls
 * once. Only after rows twice in a row it polls first, because the doorbell would be taken only to
 * be given back. */
#include "base/plant.h"
#include "poll_internal.h"

void poll__outbox_init(struct poll_outbox *o)
{
    *o = (struct poll_outbox){
        .state = o->state, .backoff_ms = POLL_BACKOFF_MIN_MS, .limit = o->limit, .at = UINT64_MAX};
}

/* ---- queries ---- */

static void ask(struct poll *p, struct poll_account *a, enum poll_query query, enum poll_reason why)
{
    struct poll_outbox *o = &a->outbox;
    o->at = p->now + POLL_LOST_MS;
    struct poll_effect *fx = poll__emit(p, query, a, why);
    fx->question = o->question = ++p->questions;
    fx->limit = o->limit;
}

static void fetch(struct poll *p, struct poll_account *a, enum poll_state to, enum poll_reason why)
{
    poll__move_outbox(p, a, to);
    a->outbox.rung = false;
    ask(p, a, POLL_QUERY_OUTBOX, why);
}

static void arm(struct poll *p, struct poll_account *a, bool unasked, enum poll_reason why)
{
    poll__move_outbox(p, a, POLL_ARM_WAIT);
    a->outbox.unasked = unasked;
    ask(p, a, POLL_QUERY_ARM, why);
}

static void disarm(struct poll *p, struct poll_account *a, enum poll_reason why)
{
    if (a->outbox.armed)
        poll__emit(p, POLL_QUERY_DISARM, a, why);
    a->outbox.armed = false;
}

/* ---- waits ---- */

static void wait_until(struct poll *p, struct poll_account *a, enum poll_state to, uint64_t at,
                       enum poll_reason why)
{
    poll__move_outbox(p, a, to);
    a->outbox.at = at;
    a->outbox.question = 0;
    a->outbox.why = why;
}

/* If the database refused the query, it will refuse the next one, whatever the reason to ask. */
static void failed(struct poll *p, struct poll_account *a, bool refused)
{
    struct poll_outbox *o = &a->outbox;
    o->refused = refused;
    o->failed_ms = poll__retry_ms(o->failed_ms, refused ? POLL_REFUSED_MS : POLL_FAILED_MS);
    wait_until(p, a, POLL_BACKOFF, p->now + o->failed_ms, POLL_WHY_RETRY);
}

static void unarmed(struct poll *p, struct poll_account *a)
{
    struct poll_outbox *o = &a->outbox;
    o->unarmed_ms = poll__retry_ms(o->unarmed_ms, POLL_UNARMED_MS);
    wait_until(p, a, POLL_BACKOFF, p->now + o->unarmed_ms, POLL_WHY_RETRY);
}

static void back_off(struct poll *p, struct poll_account *a)
{
    struct poll_outbox *o = &a->outbox;
    wait_until(p, a, POLL_BACKOFF, p->now + o->backoff_ms, POLL_WHY_BACKOFF);
    o->backoff_ms =
        o->backoff_ms * 2 > POLL_BACKOFF_MAX_MS ? POLL_BACKOFF_MAX_MS : o->backoff_ms * 2;
}

void poll__outbox_off(struct poll *p, struct poll_account *a)
{
    disarm(p, a, POLL_WHY_OVER);
    p->merging -= a->outbox.merges;
    poll__move_outbox(p, a, POLL_OFF);
    poll__outbox_init(&a->outbox);
}

/* ---- answers ---- */

static void rows(struct poll *p, struct poll_account *a)
{
    struct poll_outbox *o = &a->outbox;
    disarm(p, a, POLL_WHY_ROWS);
    if (o->streak < POLL_STREAK)
        o->streak++;
    o->backoff_ms = POLL_BACKOFF_MIN_MS;
    wait_until(p, a, POLL_OFF, UINT64_MAX, POLL_WHY_WANTED);
}

/* From RECHECK_WAIT, nothing that was committed before can have been missed, times included: one
 * more request poll says when the next of them comes. */
static void sleep_on(struct poll *p, struct poll_account *a)
{
    bool fell = a->outbox.state == POLL_RECHECK_WAIT;
    wait_until(p, a, POLL_ASLEEP, p->now + POLL_SLOW_MS, POLL_WHY_SLOW);
    if (fell)
        poll__requests_now(p, a, POLL_WHY_FELL_ASLEEP);
}

static void no_rows(struct poll *p, struct poll_account *a)
{
    struct poll_outbox *o = &a->outbox;
    o->streak = 0;
    if (o->rung)
        fetch(p, a, o->state, POLL_WHY_RANG);
    else if (o->armed)
        sleep_on(p, a);
    else if (p->config.doorbells)
        arm(p, a, false, POLL_WHY_EMPTY);
    else
        back_off(p, a);
}

static void armed(struct poll *p, struct poll_account *a)
{
    a->outbox.armed = true;
    if (!PLANTED(WAKE_LOST)) {
        fetch(p, a, POLL_RECHECK_WAIT, POLL_WHY_ARMED);
        return;
    }
    poll__move_outbox(p, a, POLL_RECHECK_WAIT);
    wait_until(p, a, POLL_ASLEEP, p->now + POLL_SLOW_MS, POLL_WHY_SLOW);
}

static void not_armed(struct poll *p, struct poll_account *a)
{
    if (a->outbox.unasked)
        fetch(p, a, POLL_FETCH_WAIT, POLL_WHY_NOT_ARMED);
    else
        back_off(p, a);
}

/* The session has one lock for each doorbell, however often it was asked for. */
static bool disarm_stale(struct poll *p, struct poll_account *a, enum poll_event_type type)
{
    struct poll_outbox *o = &a->outbox;
    if (type == POLL_EV_ARMED && !o->armed && o->state != POLL_ARM_WAIT)
        poll__emit(p, POLL_QUERY_DISARM, a, POLL_WHY_OVER);
    return false;
}

bool poll__outbox_answered(struct poll *p, struct poll_account *a, const struct poll_event *ev)
{
    struct poll_outbox *o = &a->outbox;
    if (!ev->question || ev->question != o->question)
        return disarm_stale(p, a, ev->type);
    bool arming = ev->type == POLL_EV_ARMED || ev->type == POLL_EV_NOT_ARMED ||
                  ev->type == POLL_EV_ARM_FAILED;
    PRE(arming == (o->state == POLL_ARM_WAIT));
    if (ev->type == POLL_EV_OUTBOX_FAILED) {
        failed(p, a, ev->refused);
        return true;
    }
    if (!arming)
        o->failed_ms = o->refused = 0;
    else if (ev->type != POLL_EV_ARM_FAILED)
        o->unarmed_ms = 0;
    switch ((int)ev->type) {
    case POLL_EV_ROWS:
        rows(p, a);
        return true;
    case POLL_EV_NO_ROWS:
        no_rows(p, a);
        return true;
    case POLL_EV_ARMED:
        armed(p, a);
        return true;
    case POLL_EV_NOT_ARMED:
        not_armed(p, a);
        return true;
    default:
        unarmed(p, a);
        return true;
    }
}

/* ---- reasons to poll ---- */

void poll__outbox_want(struct poll *p, struct poll_account *a, uint32_t limit)
{
    struct poll_outbox *o = &a->outbox;
    o->limit = limit;
    if (o->state != POLL_OFF || !a->led || a->leaving)
        return;
    if (p->config.doorbells && o->streak < POLL_STREAK)
        arm(p, a, true, POLL_WHY_WANTED);
    else
        fetch(p, a, POLL_FETCH_WAIT, POLL_WHY_WANTED);
}

void poll__outbox_rang(struct poll *p, struct poll_account *a, enum poll_reason why)
{
    struct poll_outbox *o = &a->outbox;
    if (o->state == POLL_BACKOFF && o->refused)
        return; /* the poll that comes then sees what it rang for */
    if (o->state == POLL_ASLEEP || o->state == POLL_BACKOFF)
        fetch(p, a, POLL_FETCH_WAIT, why);
    else if (o->state != POLL_OFF)
        o->rung = true;
}

void poll__outbox_mended(struct poll *p, struct poll_account *a, bool store)
{
    struct poll_outbox *o = &a->outbox;
    if (o->state == POLL_BACKOFF && o->failed_ms && (store || !o->refused))
        fetch(p, a, POLL_FETCH_WAIT, POLL_WHY_RETRY);
}

static void given_up(struct poll *p, struct poll_account *a)
{
    if (a->outbox.state == POLL_ARM_WAIT)
        unarmed(p, a);
    else
        fetch(p, a, a->outbox.state, POLL_WHY_NO_ANSWER);
}

void poll__outbox_tick(struct poll *p, struct poll_account *a)
{
    struct poll_outbox *o = &a->outbox;
    if (p->now < o->at)
        return;
    if (o->question)
        given_up(p, a);
    else if (o->state == POLL_ASLEEP && poll__covered(p, a))
        o->at = p->now + POLL_REST_MS;
    else if (poll__may_merge(p, a))
        poll__merge(p, a);
    else
        fetch(p, a, POLL_FETCH_WAIT, o->why);
}

void poll__control_lost(struct poll *p, struct poll_account *a)
{
    struct poll_outbox *o = &a->outbox;
    o->armed = false;
    if (o->state == POLL_ASLEEP || o->state == POLL_ARM_WAIT)
        unarmed(p, a);
    else if (o->state == POLL_RECHECK_WAIT)
        poll__move_outbox(p, a, POLL_FETCH_WAIT);
}

/* ---- merged polls ---- */

/* An account that has had no rows for a while. One that just had some polls for itself. */
bool poll__may_merge(const struct poll *p, const struct poll_account *a)
{
    const struct poll_outbox *o = &a->outbox;
    return !p->config.doorbells && p->config.accounts > 1 && o->state == POLL_BACKOFF &&
           o->why == POLL_WHY_BACKOFF && o->backoff_ms == POLL_BACKOFF_MAX_MS &&
           o->at <= p->now + POLL_BACKOFF_MAX_MS;
}

void poll__merge(struct poll *p, struct poll_account *a)
{
    wait_until(p, a, POLL_MERGE_WAIT, UINT64_MAX, POLL_WHY_BACKOFF);
    a->outbox.rung = false;
    a->outbox.merges = true;
    p->merging++;
}

void poll__merged(struct poll *p, struct poll_account *a, bool gone, bool found)
{
    struct poll_outbox *o = &a->outbox;
    if (o->state != POLL_MERGE_WAIT || o->merges)
        return;
    if (gone) /* it polls for itself, and merges again when that works */
        failed(p, a, false);
    else if (found || o->rung)
        fetch(p, a, POLL_FETCH_WAIT, found ? POLL_WHY_MERGED : POLL_WHY_RANG);
    else
        back_off(p, a);
}
