/* The listen cursor: the pure core of a follower. What it was told (notifications, rows of scans) becomes
 * events for the reader: each change once or more, in order per transaction, never an older status after a
 * newer one. cursor_step(c, event) changes plain data and lists effects; no socket, clock or SQL inside.
 *
 *            BEGIN              last chunk             last chunk
 *   DOWN -----------> PENDING ------------> FINISHED ------------> LIVE
 *     ^                  ^       sweep                              | BEGIN (repair)
 *     |                  +------------------------------------------+
 *     +---- DOWN from anywhere; what is known stays known
 *
 * - BEGIN comes when LISTEN is committed, so a change is either in the scans or will be notified. The owner
 *   holds notifications back while a question of the pending scan is in flight, and everything comes over one
 *   session: so a row of a scan is at least as new as all that was heard before it, and is taken as it is. A
 *   notification may be older than a scan that came before it: it counts only when updated_at says so (one
 *   row's updates follow each other under its lock).
 * - A row that was known and is in no chunk of a scan has ended, or went back to the outbox: it is looked up
 *   among the finished ones. So is a row whose end was notified, for the details.
 * - Finished rows are scanned from the last position less an overlap, because a transaction that commits
 * later may have ended its rows earlier. What was handed out in that time is remembered and not told twice.
 * - A transaction that moved to another nonce is told as removed there before it is told as new here. */
#ifndef LISTEN_CURSOR_H
#define LISTEN_CURSOR_H

#include "listen/core/event.h"

struct cursor;

struct cursor_config {
    int64_t since_us;      /* 0: what finished before the first BEGIN is not told */
    int64_t overlap_us;    /* default 60 s: longer than any statement of a relay may take */
    uint32_t scan_rows;    /* default 1000 */
    size_t remembered_max; /* finished transactions that are known as told; default 200000 */
};

enum cursor_state { CURSOR_DOWN, CURSOR_PENDING, CURSOR_FINISHED, CURSOR_LIVE };

enum cursor_event_type {
    CURSOR_EV_BEGIN,     /* now_us: database clock; what ended before will be seen. In LIVE: a repair */
    CURSOR_EV_DOWN,      /* the session is gone: no answer of it will come */
    CURSOR_EV_NOTIFY,    /* rows[0]: kind NEW, UPDATE, REMOVED (with an outcome: it ended) */
    CURSOR_EV_PENDING,   /* rows, count, last: answer to SCAN_PENDING */
    CURSOR_EV_FINISHED,  /* rows, count, last: answer to SCAN_FINISHED */
    CURSOR_EV_LOOKED_UP, /* rows, count: those of LOOK_UP that have finished */
};
struct cursor_event {
    enum cursor_event_type type;
    int64_t now_us;
    const struct listen_event *rows; /* alias and account_id are ignored; texts are borrowed for the step */
    size_t count;
    bool last;
};

enum cursor_effect_type {
    CURSOR_FX_EVENT,         /* event; the owner knows alias and id of its account */
    CURSOR_FX_SCAN_PENDING,  /* after account, nonce */
    CURSOR_FX_SCAN_FINISHED, /* after since_us, account, nonce, id */
    CURSOR_FX_LOOK_UP,       /* cursor_lookups() lists them */
    CURSOR_FX_LIVE,          /* caught up */
    CURSOR_FX_DOUBT,         /* what was notified is not what the table says: begin again soon */
};
struct cursor_effect {
    enum cursor_effect_type type;
    struct listen_event event;
    int32_t account;
    int64_t nonce, id, since_us;
};

struct cursor *cursor_new(const struct cursor_config *config); /* zeros = defaults */
struct cursor *cursor_free(struct cursor *c);
/* Only this account (0: all) and this transaction (0: all). Before the first BEGIN. */
void cursor_filter(struct cursor *c, int32_t account, int64_t id);

/* Effects are valid until the next step, their texts also only as long as the event's rows. */
void cursor_step(struct cursor *c, const struct cursor_event *ev, const struct cursor_effect **ret_effects,
                 size_t *ret_count);

struct cursor_lookup {
    int32_t account;
    int64_t nonce; /* of a filler; -1 where id tells */
    int64_t id;    /* 0: a filler */
};
size_t cursor_lookups(const struct cursor *c,
                      const struct cursor_lookup **ret_lookups); /* of the one asked */

/* A reader who begins here is told every end that was not told yet. */
int64_t cursor_position(const struct cursor *c);

enum cursor_state cursor_state(const struct cursor *c);
size_t cursor_known(const struct cursor *c); /* pending rows */

#endif
