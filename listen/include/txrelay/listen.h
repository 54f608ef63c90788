/* libtxrelay-listen: follow the statuses of the transactions in a txrelay database.
 *
 * For a program in C or C++ that enqueued transactions with txrelay.enqueue and wants to know what becomes of
 * them. One connection a subscription, direct to Postgres (no pooler, no standby), whose login has the role
 * txrelay_follower or txrelay_app. Nothing blocks and no thread calls back: the library lives inside the
 * program's own event loop.
 *
 *     struct txrelay *t = txrelay_open("dbname=shop", "orders");
 *     struct txrelay_options o = {.account = "alice", .since = saved, .callback = on_event, .arg = me};
 *     txrelay_subscribe(t, &o);
 *     for (;;) {
 *         struct pollfd fd = {.fd = txrelay_fd(t), .events = POLLIN};
 *         poll(&fd, 1, txrelay_timeout_ms(t));     // or epoll, libuv, glib...: beside whatever else there is
 *         txrelay_process(t);                      // on_event is called from here
 *     }
 *
 * What is promised. At least once: every end of a transaction that the filter lets through, and the latest
 * status of each that has not ended; a status between two others may be left out. In order per transaction:
 * never an older status after a newer one, nothing after the end. A lost notification, connection or server
 * costs time, never a status. After TXRELAY_LIVE the program knows what the tables know.
 *
 * Going on after a restart. Each event has a position. Store that of the last event that was handled and give
 * it as `since`: every end that comes after it is told, some that came shortly before it (two minutes or so)
 * are told again, and so is every transaction that has not ended. One that the program thinks is under way
 * and that is not told before TXRELAY_LIVE waits in the outbox again. Ends are kept for the retention time of
 * the relays only: after a longer absence TXRELAY_GAP says what may be missing.
 *
 * Units and rules. Times are microseconds since 1970-01-01 UTC by the database's clock; ages and timeouts are
 * milliseconds. Texts and bytes in an event belong to the library and are valid inside the callback only.
 * Texts are never NULL: "" where there is nothing to say; bytes are NULL where there are none. What is given
 * to a function is copied. A struct txrelay and its subscriptions belong to one thread at a time; two of them
 * are independent. Out of memory, and use against these rules, abort the process. */
#ifndef TXRELAY_LISTEN_H
#define TXRELAY_LISTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct txrelay;              /* connections, timers: what is driven by one event loop */
struct txrelay_subscription; /* one filter, one callback, one connection */

enum txrelay_kind {
    TXRELAY_NEW = 1,  /* it has a nonce: it left the outbox */
    TXRELAY_UPDATE,   /* its state, its bytes (hash) or its block changed */
    TXRELAY_REMOVED,  /* it lost its nonce and waits in the outbox again */
    TXRELAY_FINISHED, /* it ended: outcome is set. Nothing follows */
    TXRELAY_LIVE,     /* all that there is was told; from now on changes come as they are committed */
    TXRELAY_STALE,    /* the database is out of reach: what was told is age_ms old. Comes again every
                       * stale_ms until TXRELAY_LIVE; the library connects again by itself */
    TXRELAY_GAP,      /* the position is older than what retention keeps: what ended between it and
                       * updated_at may have been missed. Look at what was thought to be under way */
};

struct txrelay_event {
    enum txrelay_kind kind;
    int64_t position; /* for txrelay_options.since */

    /* NEW, UPDATE, REMOVED, FINISHED */
    const char *account; /* alias */
    const uint8_t *account_id;
    size_t account_id_len;
    int64_t id;                       /* as enqueue returned it; 0: a filler, which nobody enqueued */
    int64_t nonce;                    /* -1: it ended without one */
    const uint8_t *hash, *block_hash; /* 32 bytes */
    int64_t block_number;             /* -1: not known; a notification does not tell */
    const char *state; /* signed, future, ready, broadcast, in_block, retracted, finality_timeout, finalized,
                        * usurped, dropped, invalid */
    const char *outcome; /* FINISHED: ok, dispatch_error, expired, cancelled, failed, usurped */
    const char *error;   /* why */
    const char *creator;
    int64_t updated_at; /* GAP: records from then on are there */

    /* STALE */
    uint64_t age_ms;  /* since the view was last proved to be current */
    const char *code; /* "DB_UNAVAILABLE", "DB_DENIED"...: a word for programs; `error` is for people */
    bool permanent;   /* it will not mend itself: login, right, schema, pooler, or no such account */
};

struct txrelay_options {
    const char *account; /* only this one: alias, 0x and account id, or address; NULL: all */
    int64_t id;          /* only this transaction; 0: all */
    int64_t since;       /* a position, or a time: also what ended since then. 0: from the connect on; 1: all
                          * that is kept, and no TXRELAY_GAP */
    uint32_t stale_ms;   /* default 10000 */
    uint32_t probe_ms;   /* default 10000: so often the connection is proved to be alive; one that does not
                          * answer for half of it is replaced */
    void (*callback)(void *arg, const struct txrelay_event *event);
    void *arg;
};

/* database: libpq connection string or URI. name: application_name, shown in pg_stat_activity; NULL:
 * "txrelay listen". Never fails: what is wrong with the string comes as TXRELAY_STALE. */
struct txrelay *txrelay_open(const char *database, const char *name);

/* Begins to connect; the callback is called from txrelay_process and txrelay_run only. NULL with errno
 * EINVAL: no callback is given, or id or since are negative. To follow many ids take one subscription for all
 * and pick by event->id. May be called from a callback. */
struct txrelay_subscription *txrelay_subscribe(struct txrelay *t, const struct txrelay_options *options);

/* No callback after it. May be called from a callback, its own too. */
void txrelay_unsubscribe(struct txrelay_subscription *s);

/* The event loop's side: call txrelay_process when fd is readable, and when timeout_ms are over (-1: fd alone
 * tells). The fd stays the same until txrelay_close, and is not to be read or closed; the timeout is to be
 * asked for before each wait. */
int txrelay_fd(const struct txrelay *t);
int txrelay_timeout_ms(struct txrelay *t);
void txrelay_process(struct txrelay *t); /* does not wait; not from a callback */

/* For programs without an event loop: waits for at most max_ms (-1: until something is due), then processes.
 * 0, or -1 with errno (EINTR: a signal came; nothing is lost). Not from a callback. */
int txrelay_run(struct txrelay *t, int max_ms);

/* Ends all subscriptions and frees everything. Not from a callback. It does not wait for the network, but for
 * a name lookup that is under way. NULL is allowed. */
void txrelay_close(struct txrelay *t);

#ifdef __cplusplus
}
#endif
#endif
