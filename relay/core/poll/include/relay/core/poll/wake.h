/* When does a leader look into the outbox? A pure core, one per account (design section 4, the doorbell).
 *
 *   OFF --rows came twice in a row--> FETCH_WAIT --rows--> OFF (delivered; the doorbell is given back)
 *    | else, likely there is nothing      | none
 *    v                                    |
 *   ARM_WAIT <----------------------------'
 *    | | not armed (someone's transaction is open): POLL (back-off 1..20 ms) -> FETCH_WAIT;
 *    | | FETCH_WAIT at once where it has not asked yet
 *    | armed
 *    v
 *   RECHECK_WAIT --rows--> OFF
 *    | none
 *    v
 *   ASLEEP --doorbell rings, or the slow net--> FETCH_WAIT (still armed)
 *
 * An account that gets a row now and then asks twice for it: when the bell rings, and when it has the bell
 * again.
 *
 * The doorbell is an exclusive session lock that a sleeping leader holds; enqueue tries it shared and rings
 * only when it fails. It can only be taken when no open transaction enqueued while the leader was awake, and
 * the leader looks once more after taking it: no wake-up is lost. */
#ifndef RELAY_WAKE_H
#define RELAY_WAKE_H

#include <stdbool.h>
#include <stdint.h>

enum wake_state { WAKE_OFF, WAKE_FETCH_WAIT, WAKE_POLL, WAKE_ARM_WAIT, WAKE_RECHECK_WAIT, WAKE_ASLEEP };

enum wake_event {
    WAKE_EV_WANT,   /* the manager wants rows */
    WAKE_EV_ROWS,   /* the fetch brought rows: they go to the manager */
    WAKE_EV_NONE,   /* the fetch brought nothing */
    WAKE_EV_FAILED, /* the question failed: tried again after a while */
    WAKE_EV_ARMED,
    WAKE_EV_NOT_ARMED,
    WAKE_EV_RING,         /* outbox_wake was heard */
    WAKE_EV_CONTROL_LOST, /* the session that held the doorbell is gone */
    WAKE_EV_RESET,        /* no longer leader */
    WAKE_EV_TICK,
    WAKE_EV_COVERED, /* instead of a tick: the rounds look for what nobody rings for */
};

enum wake_effect { WAKE_FX_NONE = 0, WAKE_FX_FETCH = 1, WAKE_FX_ARM = 2, WAKE_FX_DISARM = 4 };

struct wake {
    enum wake_state state;
    bool armed;
    bool rung;      /* rung while a question was open: ask again */
    bool unasked;   /* ARM_WAIT: without having asked */
    uint8_t streak; /* questions in a row that brought rows, up to WAKE_STREAK */
    uint32_t poll_ms;
    uint64_t deadline_ms; /* UINT64_MAX: none */
};

enum {
    WAKE_STREAK = 2,
    WAKE_POLL_MIN_MS = 1,
    WAKE_POLL_MAX_MS = 20,
    WAKE_NET_MS = 1000,
    WAKE_REST_MS = 10000,
    WAKE_RETRY_MS = 200
};

void wake_init(struct wake *w);
/* One event; returns a set of wake_effect. */
unsigned wake_step(struct wake *w, uint64_t now, enum wake_event ev);

#endif
