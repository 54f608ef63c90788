/* libtxrelay-listen: follow the statuses of the transactions in a txrelay database.
 *
 * For a program in C or C++ that enqueued transactions with txrelay.enqueue and needs their
 * statuses. Each subscription uses one direct connection to Postgres (no pooler, no standby). Its
 * login needs the role txrelay_follower or txrelay_app. Nothing blocks and there are no threads:
 * the library runs inside the program's own event loop.
 *
 *     struct txrelay *t = txrelay_open("dbname=shop", "orders");
 *     struct txrelay_options o = {
 *         .account = "alice", .since = saved, .callback = on_event, .arg = me};
 *     txrelay_subscribe(t, &o);
 *     for (;;) {
 *         struct pollfd fd = {.fd = txrelay_fd(t), .events = POLLIN};
 *         poll(&fd, 1, txrelay_timeout_ms(t));     // or epoll, libuv, glib...
 *         txrelay_process(t);                      // on_event is called from here
 *     }
 *
 * Promises. The library delivers every final outcome of a transaction that matches the filter, and
 * the latest status of each that has not ended, at least once. It may leave out a status between
 * two others. Events are in order per transaction: never an older status after a newer one, nothing
 * after the end. A lost notification, connection or server costs time, never a status. After
 * TXRELAY_LIVE the program's view equals the tables.
 *
 * Restart. Each event has a position. Store the position of the last handled event and pass it as
 * `since`. The library then delivers every end after it, repeats some that came shortly before it
 * (about two minutes), and repeats every transaction that has not ended. A transaction that the
 * program believes to be pending and that is not delivered before TXRELAY_LIVE is in the outbox
 * again. Ends are kept only for the retention time of the relays; after a longer absence
 * TXRELAY_GAP reports what may be missing.
 *
 * Units and rules. Times are microseconds since 1970-01-01 UTC by the database's clock; ages and
 * timeouts are milliseconds. Texts and bytes in an event belong to the library and are valid only
 * inside the callback. A missing text is "", never NULL; missing bytes are NULL. Arguments are
 * copied. A struct txrelay and its subscriptions belong to one thread at a time; two of them are
 * independent. The process aborts if memory is exhausted or these rules are broken. */
#ifndef TXRELAY_LISTEN_H
#define TXRELAY_LISTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct txrelay;              /* connections and timers of one event loop */
struct txrelay_subscription; /* one filter, one callback, one connection */

enum txrelay_kind {
    TXRELAY_NEW = 1,  /* it has a nonce: it left the outbox */
    TXRELAY_UPDATE,   /* its state, its bytes (hash) or its block changed */
    TXRELAY_REMOVED,  /* it lost its nonce and waits in the outbox again */
    TXRELAY_FINISHED, /* it ended: outcome is set. Nothing follows */
    TXRELAY_LIVE,     /* everything was delivered; further changes come as they are committed */
    TXRELAY_STALE,    /* the database is unreachable: the view is age_ms old. Repeated every
                       * stale_ms until TXRELAY_LIVE; the library reconnects by itself */
    TXRELAY_GAP,      /* the position is older than the retention horizon: ends between it and
                       * updated_at may be missing. Check the transactions believed to be pending */
};

struct txrelay_event {
    enum txrelay_kind kind;
    int64_t position; /* for txrelay_options.since */

    /* NEW, UPDATE, REMOVED, FINISHED */
    const char *account; /* alias */
    const uint8_t *account_id;
    size_t account_id_len;
    int64_t id;    /* as enqueue returned it; 0: a filler, which no application enqueued */
    int64_t nonce; /* -1: it ended without one */
    const uint8_t *hash, *block_hash; /* 32 bytes */
    int64_t block_number;             /* -1: unknown; a notification does not contain it */
    const char *state;   /* signed, future, ready, broadcast, in_block, retracted, finality_timeout,
                          * finalized,   usurped, dropped, invalid */
    const char *outcome; /* FINISHED: ok, dispatch_error, expired, cancelled, failed, usurped,
                          * unknown */
    const char *error;   /* why */
    const char *creator;
    int64_t updated_at; /* GAP: records from then on are complete */

    /* STALE */
    uint64_t age_ms;  /* since the view was last proved to be current */
    const char *code; /* "DB_UNAVAILABLE", "DB_DENIED"...: for programs; `error` is for people */
    bool permanent;   /* it does not go away by itself: login, right, schema, pooler, or no such
                         account */

    /* NEW, UPDATE, REMOVED, FINISHED: the W3C trace context that was given with the transaction */
    const char *traceparent;
};

struct txrelay_options {
    const char *account; /* only this one: alias, 0x and account id, or address; NULL: all */
    int64_t id;          /* only this transaction; 0: all */
    int64_t since; /* a position, or a time: also what ended since then. 0: from the connection on;
                      1: everything that is kept, without TXRELAY_GAP */
    uint32_t stale_ms; /* default 10000 */
    uint32_t probe_ms; /* default 10000: interval of the probe of the connection, which is replaced
                          if it does not answer for half of it */
    void (*callback)(void *arg, const struct txrelay_event *event);
    void *arg;
};

/* database: libpq connection string or URI. name: application_name, shown in pg_stat_activity;
 * NULL: "txrelay listen". Never fails: an error in the string comes as TXRELAY_STALE. */
struct txrelay *txrelay_open(const char *database, const char *name);

/* Begins to connect; only txrelay_process and txrelay_run call the callback. NULL with errno
 * EINVAL: there is no callback, or id or since is negative. To follow many ids, use one
 * subscription for all transactions and filter by event->id. May be called from a callback. */
struct txrelay_subscription *txrelay_subscribe(struct txrelay *t,
                                               const struct txrelay_options *options);

/* No callback follows. May be called from a callback, also from its own. */
void txrelay_unsubscribe(struct txrelay_subscription *s);

/* For the event loop: call txrelay_process when fd is readable and when timeout_ms have passed (-1:
 * only fd matters). The fd stays the same until txrelay_close; do not read or close it. Ask for the
 * timeout before each wait. */
int txrelay_fd(const struct txrelay *t);
int txrelay_timeout_ms(struct txrelay *t);
void txrelay_process(struct txrelay *t); /* does not wait; not from a callback */

/* For programs without an event loop: waits for at most max_ms (-1: until something is due), then
 * processes. 0, or -1 with errno (EINTR: a signal came; call again). Not from a callback. */
int txrelay_run(struct txrelay *t, int max_ms);

/* Ends all subscriptions and frees everything. Not from a callback. It does not wait for the
 * network, only for a name lookup that is under way. NULL is allowed. */
void txrelay_close(struct txrelay *t);

#ifdef __cplusplus
}
#endif
#endif
