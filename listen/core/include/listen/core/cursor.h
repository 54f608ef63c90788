/* The listen cursor: the pure core of a reader. Notifications and rows of scans become events for
 * the reader: each change at least once, in order per transaction, never an older status after a
 * newer one. cursor_step(c, event) changes plain data and lists effects; it has no socket, clock or
 * SQL.
 *
 *            BEGIN              last chunk             last chunk
 *   DOWN -----------> PENDING ------------> FINISHED ------------> LIVE
 *     ^                  ^                                          | BEGIN (repair)
 *     |                  +------------------------------------------+
 *     +---- DOWN from anywhere; the known rows stay known
 *
 * - BEGIN comes after LISTEN is committed, so each change is either in the scans or will be
 *   notified. The owner buffers notifications while a query of the pending scan is in flight, and
 *   everything comes over one session. So a row of a scan is at least as new as all earlier
 *   notifications, and is taken as it is. A notification may be older than an earlier scan: it
 *   counts only if its updated_at is newer (updates of one row are ordered by its lock).
 * - A known row that is in no chunk of a scan has ended or returned to the outbox. The cursor looks
 *   it up among the finished ones. It also looks up a row whose end was notified, for the details.
 * - Any session may notify. What a relay's session notifies is taken as it is, unless its time is
 *   in the future. From any other session it is a hint: an end is looked up, everything else is
 *   left to a scan. So is what exceeds the bound on rows that no scan has confirmed.
 * - Finished rows are scanned from the last position less an overlap, because a transaction that
 *   commits later may have ended its rows earlier. The cursor remembers what it delivered in that
 *   time and does not deliver it twice.
 * - If a transaction moved to another nonce, its removal from the old one is delivered before the
 *   new row. */
#ifndef LISTEN_CURSOR_H
#define LISTEN_CURSOR_H

#include "listen/core/event.h"

struct cursor;

struct cursor_config {
    int64_t since_us;       /* 0: rows that finished before the first BEGIN are not delivered */
    int64_t overlap_us;     /* default 60 s: longer than any statement of a relay may take */
    uint32_t scan_rows;     /* default 1000 */
    size_t unconfirmed_max; /* most pending rows that only notifications showed; default 100000 */
    size_t remembered_max; /* most remembered deliveries of finished transactions; default 200000 */
};

enum cursor_state { CURSOR_DOWN, CURSOR_PENDING, CURSOR_FINISHED, CURSOR_LIVE };

/* What belongs to which is the union of struct cursor_event. */
enum cursor_event_type {
    CURSOR_EV_BEGIN,     /* a session is there. In LIVE: a repair */
    CURSOR_EV_DOWN,      /* the session is lost: it will send no more answers */
    CURSOR_EV_NOTIFY,    /* kind NEW, UPDATE, REMOVED (with an outcome: it ended) */
    CURSOR_EV_PENDING,   /* answer to SCAN_PENDING */
    CURSOR_EV_FINISHED,  /* answer to SCAN_FINISHED */
    CURSOR_EV_LOOKED_UP, /* answer to LOOK_UP: the finished ones of these */
};
/* Of rows, alias and account_id are ignored; texts are borrowed for the step. */
struct cursor_event {
    enum cursor_event_type type;
    union {
        int64_t begin_us; /* BEGIN, by the database's clock: all earlier ends are visible */
        struct {
            const struct listen_event *row;
            int64_t now_us; /* by the database's clock, as the owner estimates it */
            bool believed;  /* a relay's session sent it */
        } notify;
        struct {
            const struct listen_event *rows;
            size_t count;
            bool last; /* no row follows these */
        } answer;      /* PENDING, FINISHED, LOOKED_UP */
    };
};

enum cursor_effect_type {
    CURSOR_FX_EVENT, /* the owner knows alias and id of its account */
    CURSOR_FX_SCAN_PENDING,
    CURSOR_FX_SCAN_FINISHED,
    CURSOR_FX_LOOK_UP, /* cursor_lookups() lists them */
    CURSOR_FX_LIVE,    /* caught up */
    CURSOR_FX_DOUBT,   /* a notification contradicts the table: begin again soon */
};
struct cursor_effect {
    enum cursor_effect_type type;
    union {
        struct listen_event event;
        struct {
            int64_t since_us; /* SCAN_FINISHED */
            int32_t account;
            int64_t nonce;
            int64_t id; /* SCAN_FINISHED */
        } after;        /* SCAN_PENDING, SCAN_FINISHED: only rows after this one */
    };
};

struct cursor *cursor_new(const struct cursor_config *config); /* zeros = defaults */
struct cursor *cursor_free(struct cursor *c);
/* Only this account (0: all) and this transaction (0: all). Before the first BEGIN. */
void cursor_filter(struct cursor *c, int32_t account, int64_t id);

/* Effects are valid until the next step; their texts only as long as the event's rows. */
void cursor_step(struct cursor *c, const struct cursor_event *ev,
                 const struct cursor_effect **ret_effects, size_t *ret_count);

struct cursor_lookup {
    int32_t account;
    int64_t nonce; /* of a filler; -1 if id identifies it */
    int64_t id;    /* 0: a filler */
};
size_t cursor_lookups(const struct cursor *c,
                      const struct cursor_lookup **ret_lookups); /* of the look-up */

/* A reader that begins here receives every end that was not delivered yet. */
int64_t cursor_position(const struct cursor *c);

enum cursor_state cursor_state(const struct cursor *c);
size_t cursor_known(const struct cursor *c); /* pending rows */

#endif
