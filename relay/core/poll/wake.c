/* The outbox wake-up core: see wake.h for the states and why no wake-up is lost. */
#include "relay/core/poll/wake.h"

#include "base/check.h"
#include "base/plant.h"

void wake_init(struct wake *w)
{
    *w = (struct wake){.state = WAKE_OFF, .poll_ms = WAKE_POLL_MIN_MS, .deadline_ms = UINT64_MAX};
}

static unsigned fetch(struct wake *w, enum wake_state state)
{
    w->state = state;
    w->deadline_ms = UINT64_MAX;
    w->rung = false;
    return WAKE_FX_FETCH;
}

static void wait_until(struct wake *w, enum wake_state state, uint64_t deadline)
{
    w->state = state;
    w->deadline_ms = deadline;
}

static unsigned arm(struct wake *w, bool unasked)
{
    w->unasked = unasked;
    wait_until(w, WAKE_ARM_WAIT, UINT64_MAX);
    return WAKE_FX_ARM;
}

static unsigned want(struct wake *w)
{
    return w->streak < WAKE_STREAK ? arm(w, true) : fetch(w, WAKE_FETCH_WAIT);
}

static unsigned rows(struct wake *w)
{
    unsigned fx = w->armed ? WAKE_FX_DISARM : WAKE_FX_NONE;
    w->armed = false;
    if (w->streak < WAKE_STREAK)
        w->streak++;
    w->poll_ms = WAKE_POLL_MIN_MS;
    wait_until(w, WAKE_OFF, UINT64_MAX);
    return fx;
}

static unsigned none(struct wake *w, uint64_t now)
{
    w->streak = 0;
    if (w->rung) /* rung after the question was asked: the answer may be older */
        return fetch(w, w->state);
    if (w->armed) {
        wait_until(w, WAKE_ASLEEP, now + WAKE_NET_MS);
        return WAKE_FX_NONE;
    }
    return arm(w, false);
}

static unsigned not_armed(struct wake *w, uint64_t now)
{
    if (w->unasked)
        return fetch(w, WAKE_FETCH_WAIT);
    wait_until(w, WAKE_POLL, now + w->poll_ms);
    w->poll_ms = w->poll_ms * 2 > WAKE_POLL_MAX_MS ? WAKE_POLL_MAX_MS : w->poll_ms * 2;
    return WAKE_FX_NONE;
}

static unsigned waiting(struct wake *w, uint64_t now, enum wake_event ev)
{
    switch (ev) {
    case WAKE_EV_ROWS:
        return rows(w);
    case WAKE_EV_NONE:
        return none(w, now);
    case WAKE_EV_ARMED:
        w->armed = true;
        if (PLANTED(WAKE_LOST)) {
            wait_until(w, WAKE_ASLEEP, now + WAKE_NET_MS);
            return WAKE_FX_NONE;
        }
        return fetch(w, WAKE_RECHECK_WAIT);
    case WAKE_EV_NOT_ARMED:
        return not_armed(w, now);
    case WAKE_EV_FAILED:
        wait_until(w, WAKE_POLL, now + WAKE_RETRY_MS);
        return WAKE_FX_NONE;
    case WAKE_EV_RING:
        w->rung = true;
        return WAKE_FX_NONE;
    case WAKE_EV_WANT:
    case WAKE_EV_TICK:
    case WAKE_EV_COVERED:
    case WAKE_EV_CONTROL_LOST:
    case WAKE_EV_RESET:
        return WAKE_FX_NONE;
    }
    UNREACHABLE();
}

unsigned wake_step(struct wake *w, uint64_t now, enum wake_event ev)
{
    if (ev == WAKE_EV_RESET) {
        unsigned fx = w->armed ? WAKE_FX_DISARM : WAKE_FX_NONE;
        wake_init(w);
        return fx;
    }
    if (ev == WAKE_EV_CONTROL_LOST) {
        w->armed = false;
        if (w->state == WAKE_ASLEEP || w->state == WAKE_RECHECK_WAIT || w->state == WAKE_ARM_WAIT)
            wait_until(w, WAKE_POLL, now + WAKE_RETRY_MS);
        return WAKE_FX_NONE;
    }
    switch (w->state) {
    case WAKE_OFF:
        return ev == WAKE_EV_WANT ? want(w) : WAKE_FX_NONE;
    case WAKE_FETCH_WAIT:
    case WAKE_ARM_WAIT:
    case WAKE_RECHECK_WAIT:
        return waiting(w, now, ev);
    case WAKE_POLL:
    case WAKE_ASLEEP:
        if (ev == WAKE_EV_RING || (ev == WAKE_EV_TICK && now >= w->deadline_ms))
            return fetch(w, WAKE_FETCH_WAIT);
        if (ev == WAKE_EV_COVERED && w->state == WAKE_ASLEEP)
            wait_until(w, WAKE_ASLEEP, now + WAKE_REST_MS);
        return WAKE_FX_NONE;
    }
    UNREACHABLE();
}
