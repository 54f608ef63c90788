/* What the relay asks of its database. Two implementations: store_pg speaks to Postgres (schema/),
 * store_mem keeps the same rules in memory for tests and for a standalone relay. The requests stand
 * in a header each by what they are about:
 *
 *   store/lead.h       who leads: locks, claims, renewals, members
 *   store/outbox.h     transactions without a nonce: enqueue, doorbells, admission
 *   store/pending.h    transactions with a nonce: the leader's reads and writes
 *   store/operator.h   cancel, bump, resume, retry, drained
 *   store/retention.h  what is removed from the database, on a connection of its own
 *
 * Every request is embedded by its caller, starts with struct store_req, and its callback fires
 * exactly once, from the loop, never inside the start. Arrays given in a request must stay until
 * then. What a request returns lives in its `arena` until store_req_done. One request object is in
 * flight at most once.
 *
 * Writes of one account are carried out in the order they were started. A write whose outcome is
 * unknown (connection lost after it was sent) ends with ERR_DB_UNKNOWN_OUTCOME; it is never sent
 * again by itself. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/list.h"
#include "loop/loop.h"

struct store;

enum store_state {
    STORE_DOWN, /* not connected: requests fail at once with ERR_DB_UNAVAILABLE */
    STORE_UP,   /* both sessions are up and verified (not a standby, not a pooler, schema fits) */
};

struct store_req {
    struct err err; /* out */
    /* private */
    struct list node;
    struct loop_task task;
    void (*cb)(struct store_req *req);
    void *arena;
    uint64_t started_ms;
    struct store *owner;
    void (*run)(struct store_req *req);
};
typedef void (*store_cb)(struct store_req *req);
void store_req_done(struct store_req *req); /* frees what it returned; req may be reused after it */

struct store_bytes {
    const uint8_t *data; /* NULL: SQL NULL */
    size_t len;
};

struct store_pg_config {
    const char *control_dsn;       /* direct connection: locks, claims, doorbells. libpq connection
                                      string; copied */
    const char *work_dsn;          /* reads and writes; NULL = control_dsn */
    const char *application_name;  /* e.g. "txrelay host/pid" */
    bool use_lock;                 /* false: claims and expiry alone */
    uint32_t connect_timeout_ms;   /* default 5000 */
    uint32_t statement_timeout_ms; /* default 30000 */
    uint32_t control_answer_ms; /* a control session that is silent for longer is given up; default:
                                   a little more than a statement may take */
    void (*on_state)(void *arg, enum store_state state, const struct err *err);
    /* The control session was lost: every lock and doorbell with it. Comes before
     * on_state(DOWN). */
    void (*on_control_lost)(void *arg);
    void *arg;
};
struct store *store_pg_new(struct loop *l, const struct store_pg_config *config);

/* What happened in a memory store, for its owner (the standalone relay prints it; tests check
 * it). */
struct store_mem_config {
    void (*on_state)(void *arg, enum store_state state, const struct err *err);
    /* kind: "new", "update", "finished"; the row as a follower would see it. */
    void (*on_event)(void *arg, const char *kind, int32_t account, int64_t nonce, int64_t id,
                     const char *state, const uint8_t hash[32], const char *outcome,
                     const char *error);
    void (*on_wake)(void *arg, int32_t account); /* something was enqueued */
    void *arg;
};
struct store *store_mem_new(struct loop *l, const struct store_mem_config *config);
bool store_mem_idle(const struct store *s); /* every transaction has ended */

void store_open(struct store *s);
/* Requests in flight end with ERR_CANCELED first; cb fires once all is closed; s is freed after
 * it. */
void store_close(struct store *s, void (*cb)(void *arg), void *arg);
enum store_state store_state(const struct store *s);

/* What it is doing, for the service's status. */
struct store_session {
    bool up;
    bool pooled; /* behind a pooler: nothing of the session lasts */
};
struct store_status {
    enum store_state state;
    struct store_session control, work; /* a memory store has none */
    uint64_t started, failed;           /* requests since store_open; failed: with whatever error */
    size_t in_flight;
    uint64_t took_ms; /* from start to answer, all of them together */
};
struct store_status store_status(const struct store *s);
#endif
