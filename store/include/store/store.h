/* What the relay asks of its database: one interface, two implementations. store_pg speaks to Postgres
 * (schema/), store_mem keeps the same rules in memory for tests and for a standalone relay.
 *
 * Every request is embedded by its caller, starts with struct store_req, and its callback fires exactly
 * once, from the loop, never inside the start. Arrays given in a request must stay until then. What a
 * request returns lives in its `arena` until store_req_done. One request object is in flight at most once.
 *
 * Writes of one account are carried out in the order they were started. A write whose outcome is unknown
 * (connection lost after it was sent) ends with ERR_DB_UNKNOWN_OUTCOME; it is never sent again by itself. */
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
    struct store *owner;
    void (*run)(struct store_req *req);
};
typedef void (*store_cb)(struct store_req *req);
void store_req_done(struct store_req *req); /* frees what it returned; req may be reused after it */

struct store_bytes {
    const uint8_t *data; /* NULL: SQL NULL */
    size_t len;
};

/* ---- accounts and leadership ---- */

struct store_register {
    struct store_req req;
    const char *alias, *scheme, *address;
    struct store_bytes account_id, genesis;
    int64_t lock_key;
    int32_t account; /* out */
};
void store_register_start(struct store *s, struct store_register *r, store_cb cb);

/* The account's session advisory lock, on the control session. Never stacked: a second try while held
 * answers got = true without asking again. */
struct store_lock {
    struct store_req req;
    int64_t lock_key;
    bool got; /* out */
};
void store_lock_start(struct store *s, struct store_lock *r, store_cb cb);
void store_unlock_start(struct store *s, struct store_lock *r, store_cb cb);

struct store_claim {
    struct store_req req;
    int32_t account;
    const char *holder, *address;
    bool have_lock;
    uint32_t expiry_1_ms, expiry_2_ms;
    /* out */
    bool granted;
    int64_t epoch;
    const char *current_holder, *current_address; /* "" when free */
    bool lock_held, mid_submission;
    int64_t expiry_1_left_ms, expiry_2_left_ms;
};
void store_claim_start(struct store *s, struct store_claim *r, store_cb cb);

/* Renewal of every account of this relay in one statement, after verifying (pg_locks by backend pid) that
 * the control session still holds their locks. */
struct store_renew {
    struct store_req req;
    const char *holder;
    size_t count;
    const int32_t *accounts;
    const int64_t *epochs;
    const int64_t *lock_keys; /* NULL with use_lock off */
    uint32_t expiry_1_ms, expiry_2_ms;
    bool *renewed; /* out: caller's array; lock lost counts as not renewed */
};
void store_renew_start(struct store *s, struct store_renew *r, store_cb cb);

struct store_release {
    struct store_req req;
    int32_t account;
    int64_t epoch;
    const char *holder;
    bool released; /* out */
};
void store_release_start(struct store *s, struct store_release *r, store_cb cb);

/* End the session that holds the account's lock if its claim has expired by the rules (hung holder); the
 * store looks and decides in one statement. Also tells who claims it, and for how long. */
struct store_evict {
    struct store_req req;
    int64_t lock_key;
    /* out */
    bool terminated;
    const char *current_holder, *current_address; /* "" when free */
    int64_t epoch;
    int64_t expiry_1_left_ms;
};
void store_evict_start(struct store *s, struct store_evict *r, store_cb cb);

/* The doorbell: arm = try the exclusive session lock; armed = true means the leader may sleep. */
struct store_doorbell {
    struct store_req req;
    int32_t account;
    bool armed; /* out */
};
void store_doorbell_arm_start(struct store *s, struct store_doorbell *r, store_cb cb);
void store_doorbell_disarm_start(struct store *s, struct store_doorbell *r, store_cb cb);

/* ---- the leader's reads ---- */

struct store_pending_row {
    int64_t nonce;
    int64_t id; /* 0: filler */
    const char *state;
    uint8_t hash[32];
    int32_t attempt;
    struct store_bytes extrinsic, call, block_hash; /* block_hash.data NULL: none */
    int64_t block_number;                           /* -1: none */
    int64_t era_death;                              /* -1: immortal */
    int64_t era_birth;                              /* -1: immortal */
    uint32_t spec_version;
    uint32_t guard;          /* the only runtime spec version under which it may be signed; 0: any */
    const char *tip;         /* decimal */
    int64_t submitted_block; /* finalized height when it was signed */
    size_t earlier_count;    /* hashes of earlier attempts at this nonce: they may still be included */
    const uint8_t (*earlier)[32];
};
struct store_snapshot {
    struct store_req req;
    int32_t account;
    int64_t epoch;
    int64_t after_nonce; /* -1: from the start */
    uint32_t limit;
    /* out */
    size_t count;
    const struct store_pending_row *rows;
    int64_t next_nonce; /* of the account row; -1 when never set */
    bool paused;
};
void store_snapshot_start(struct store *s, struct store_snapshot *r, store_cb cb);

struct store_outbox_row {
    int64_t id;
    struct store_bytes call;
    int32_t priority;
    int64_t deadline_ms; /* wall clock, -1: none */
    const char *creator;
    uint32_t guard; /* the only runtime spec version under which it may be signed; 0: any */
};
struct store_outbox {
    struct store_req req;
    int32_t account;
    int64_t epoch;
    uint32_t limit;
    /* out */
    size_t count;
    const struct store_outbox_row *rows;
};
void store_outbox_start(struct store *s, struct store_outbox *r, store_cb cb);

/* What the database's clock and the applications say. Outbox rows past their deadline end as expired in it;
 * pending transactions that are to be stopped come back (their deadline has passed, or somebody cancelled
 * them) with the outcome to record if none of their bytes gets in. */
struct store_stop {
    int64_t nonce, id;
    const char *outcome, *reason;
};
struct store_look {
    struct store_req req;
    int32_t account;
    int64_t epoch;
    /* out */
    size_t count;
    const struct store_stop *stops;
    bool ripe;       /* a row that had waited for its time may be admitted now */
    int64_t next_ms; /* until the next deadline or not_before; -1: none */
};
void store_look_start(struct store *s, struct store_look *r, store_cb cb);

/* ---- the leader's writes; all fenced by epoch ---- */

struct store_attempt_row {
    int64_t id; /* admit: outbox id */
    int64_t nonce;
    uint8_t hash[32];
    struct store_bytes extrinsic;
    struct store_bytes call;      /* fill only */
    const char *tip;              /* decimal; NULL = "0" */
    int64_t era_birth, era_death; /* -1: immortal */
    const char *reason;  /* attempt: why the former one ended; fill: error text of the ended transaction */
    const char *outcome; /* fill: outcome of the ended transaction */
};
struct store_attempts {
    struct store_req req;
    int32_t account;
    int64_t epoch;
    uint32_t spec_version, transaction_version;
    int64_t block; /* finalized height now */
    size_t count;
    const struct store_attempt_row *rows;
    int64_t next_nonce; /* out (admit, fill) */
};
void store_admit_start(struct store *s, struct store_attempts *r, store_cb cb);
void store_attempt_start(struct store *s, struct store_attempts *r, store_cb cb);
void store_fill_start(struct store *s, struct store_attempts *r, store_cb cb);

struct store_state_row {
    int64_t nonce;
    uint8_t hash[32];
    const char *state;
    struct store_bytes block_hash; /* data NULL: none */
    int64_t block_number;          /* -1: unknown */
    const char *error;             /* NULL: none */
};
struct store_states {
    struct store_req req;
    int32_t account;
    int64_t epoch;
    size_t count;
    const struct store_state_row *rows;
};
void store_state_start(struct store *s, struct store_states *r, store_cb cb);

struct store_finish_row {
    int64_t nonce; /* finish */
    int64_t id;    /* reject */
    uint8_t hash[32];
    uint8_t block_hash[32];
    int64_t block_number; /* -1: in no block (usurped, expired...); block_hash does not count then */
    int32_t index;        /* -1: unknown */
    const char *outcome;
    const char *error; /* NULL: none */
    const char *fee;   /* decimal or NULL */
};
struct store_finish {
    struct store_req req;
    int32_t account;
    int64_t epoch;
    size_t count;
    const struct store_finish_row *rows;
};
void store_finish_start(struct store *s, struct store_finish *r, store_cb cb);
void store_reject_start(struct store *s, struct store_finish *r, store_cb cb);

struct store_nonce {
    struct store_req req;
    int32_t account;
    int64_t epoch;
    int64_t next_nonce;
    bool lower; /* may go down: nonces that were counted but never signed for are given back */
};
void store_nonce_start(struct store *s, struct store_nonce *r, store_cb cb);

struct store_pause {
    struct store_req req;
    int32_t account;
    int64_t epoch;
    const char *reason;
};
void store_pause_start(struct store *s, struct store_pause *r, store_cb cb);

/* ---- the application's side, for memory stores and the command line ---- */

struct store_enqueue {
    struct store_req req;
    const char *account; /* alias, 0x id or address */
    struct store_bytes call;
    const char *key; /* NULL: none */
    int32_t priority;
    const char *creator; /* NULL: none */
    int64_t id;          /* out */
};
void store_enqueue_start(struct store *s, struct store_enqueue *r, store_cb cb);

/* ---- the store itself ---- */

struct store_pg_config {
    const char
        *control_dsn;     /* direct connection: locks, claims, doorbells. libpq connection string; copied */
    const char *work_dsn; /* reads and writes; NULL = control_dsn */
    const char *application_name;  /* e.g. "txrelay host/pid" */
    bool use_lock;                 /* false: claims and expiry alone */
    uint32_t connect_timeout_ms;   /* default 5000 */
    uint32_t statement_timeout_ms; /* default 30000 */
    void (*on_state)(void *arg, enum store_state state, const struct err *err);
    /* The control session was lost: every lock and doorbell with it. Comes before on_state(DOWN). */
    void (*on_control_lost)(void *arg);
    void *arg;
};
struct store *store_pg_new(struct loop *l, const struct store_pg_config *config);

/* What happened in a memory store, for its owner (the standalone relay prints it; tests check it). */
struct store_mem_config {
    void (*on_state)(void *arg, enum store_state state, const struct err *err);
    /* kind: "new", "update", "finished"; the row as a follower would see it. */
    void (*on_event)(void *arg, const char *kind, int32_t account, int64_t nonce, int64_t id,
                     const char *state, const uint8_t hash[32], const char *outcome, const char *error);
    void (*on_wake)(void *arg, int32_t account); /* something was enqueued */
    void *arg;
};
struct store *store_mem_new(struct loop *l, const struct store_mem_config *config);

void store_open(struct store *s);
/* Requests in flight end with ERR_CANCELED first; cb fires once all is closed; s is freed after it. */
void store_close(struct store *s, void (*cb)(void *arg), void *arg);
enum store_state store_state(const struct store *s);

#endif
