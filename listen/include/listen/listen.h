/* The LISTEN stream of one process: one connection, all channels, events handed out in order.
 *
 *   CONNECT_WAIT -> ACCOUNTS_WAIT -> SCAN_WAIT -> LIVE (reads accounts and scans again to repair)
 *        ^   ^            | a query failed    |      |
 *        |   +-------- RETRY_WAIT <-----------+------+
 *        +---- session lost, from anywhere
 *
 * Promise: the view of a reader that has caught up equals the table (I8). No event is lost: LISTEN
 * is committed before the scan that catches up, and the scan is repeated after every reconnect and
 * every repair_ms. Events come at least once and in order per transaction; a status older than one
 * that was delivered is dropped. A lost notification costs time, never a status.
 *
 * The connection is direct and used for nothing else. It never stays in a transaction (a listener
 * that does blocks the cluster's notification queue), and a query every few seconds proves that it
 * is alive.
 *
 * signals_only: only leader_change and outbox_wake, without a scan, as a relay needs them. Both are
 * hints; on_state(live) reports when some may have been missed. */
#ifndef LISTEN_LISTEN_H
#define LISTEN_LISTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "listen/core/event.h"
#include "loop/loop.h"

struct buf;
struct listen;

struct listen_leader {
    int32_t account;
    const char *holder, *address; /* "" when the account is free */
    int64_t epoch;
};

struct listen_config {
    const char *dsn;
    const char *name; /* application_name */
    bool signals_only;
    const char *account; /* only this one: alias, 0x id or address; NULL: all */
    int64_t id;          /* only this transaction; 0: all */
    int64_t since_us;    /* also what finished since then (database clock), e.g. the position of the
                          * last event    that was handled; 0: from the connection on */
    uint32_t repair_ms;  /* default 60000 */
    /* default 10000; a probe unanswered for half of it replaces the connection */
    uint32_t probe_ms;
    uint32_t scan_rows; /* rows of one query; default 1000 */
    uint32_t stale_ms;  /* interval at which on_state repeats that the view is stale; 0: once */
    void (*on_event)(void *arg, const struct listen_event *event);
    /* The position is older than the retention horizon, so transactions that ended between the two
     * may have been removed before they were delivered. Repeated while that is so. Not for a
     * `since` on the first day of 1970, which asks for everything that is kept. */
    void (*on_gap)(void *arg, int64_t from_us, int64_t to_us);
    void (*on_leader_change)(void *arg, const struct listen_leader *change);
    void (*on_wake)(void *arg, int32_t account);
    /* live: caught up; further events come as the database notifies them. Not live: the view is as
     * of since_ms (loop clock), when it was last proved to be current, and err says why. A code of
     * class PERMANENT does not go away by itself (ERR_NOT_FOUND: the account of the filter). */
    void (*on_state)(void *arg, bool live, uint64_t since_ms, const struct err *err);
    void *arg;
};

struct listen *listen_new(struct loop *l,
                          const struct listen_config *config); /* texts are copied */
void listen_open(struct listen *s);
void listen_close(struct listen *s, void (*cb)(void *arg),
                  void *arg); /* frees s; no callback after it except cb */
struct listen_status {
    bool live;           /* as of the last on_state */
    uint64_t since_ms;   /* loop clock: when the view was last proved to be current */
    double queue_usage;  /* of the server's notification queue, 0..1, at the last probe */
    double clock_back_s; /* signals_only: by which the server's clock is behind the time in the
                            database, at the last probe */
    const char *why; /* not live: why; "" if it is not known yet; valid until the loop goes on */
};
struct listen_status listen_status(const struct listen *s);
int64_t listen_position(const struct listen *s); /* as in an event */

/* A position or a time: "2026-11-27T22:00:00.123456Z", or seconds since 1970. */
bool listen_since_parse(const char *text, int64_t *ret_us);

/* One line without the newline: a JSON object, or text for people. */
void listen_format_json(const struct listen_event *event, struct buf *out);
void listen_format_human(const struct listen_event *event, struct buf *out);
void listen_format_gap_json(int64_t from_us, int64_t to_us, struct buf *out);
/* {"event":"live"} or, with err, {"event":"stale"} and the age of the view. */
void listen_format_state_json(int64_t position_us, uint64_t age_ms, const struct err *err,
                              struct buf *out);

#endif
