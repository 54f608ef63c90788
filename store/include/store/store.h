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
    bool watch_only; /* the relay has no key of it: only what was signed elsewhere may be enqueued */
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

/* Renewal of every account of this relay in one statement, after verifying that the control session still
 * holds their locks (by what it was given, and by pg_locks and its backend pid; store_pg_lead.c says how
 * often). */
struct store_renew {
    struct store_req req;
    const char *holder;
    size_t count;
    const int32_t *accounts;
    const int64_t *epochs;
    const int64_t *lock_keys; /* NULL with use_lock off */
    uint32_t expiry_1_ms, expiry_2_ms;
    int64_t block; /* highest finalized block that this relay knows; -1: none */
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

/* What all accounts stand at, in one statement that writes nothing. Those whose claim is in force under the
 * epoch that the caller knows, with the lock that it goes with, are left out. */
struct store_seen {
    size_t index; /* in the request's arrays */
    bool taken;   /* some session has the account's lock */
    bool lock_held;
    const char *holder, *address; /* "" when free */
    int64_t epoch;
    int64_t expiry_1_left_ms, expiry_2_left_ms;
};
struct store_scan {
    struct store_req req;
    size_t count;
    const int32_t *accounts;
    const int64_t *epochs; /* the newest that the caller knows; -1: none */
    /* out */
    size_t seen_count;
    const struct store_seen *seen; /* in the order of the request */
};
void store_scan_start(struct store *s, struct store_scan *r, store_cb cb);

/* This relay lives, or leaves: who else does. One statement a heartbeat. */
struct store_member {
    struct store_req req;
    const char *holder, *address;
    int64_t serves;  /* digest of its accounts: only relays that serve the same are members to each other */
    uint32_t ttl_ms; /* a member that was not heard of for so long is none */
    bool leave;
    int64_t best; /* the highest block that this relay heard of; -1: none */
    /* out: in byte order, with this relay among them unless it leaves */
    size_t count;
    const char *const *holders;
    int64_t best_known; /* the highest that one of them heard of; -1: none */
};
void store_member_start(struct store *s, struct store_member *r, store_cb cb);

/* The doorbell: arm = try the exclusive session lock; armed = true means the leader may sleep. */
struct store_doorbell {
    struct store_req req;
    int32_t account;
    bool armed; /* out */
};
void store_doorbell_arm_start(struct store *s, struct store_doorbell *r, store_cb cb);
void store_doorbell_disarm_start(struct store *s, struct store_doorbell *r, store_cb cb);

/* ---- the leader's reads ---- */

/* What the account's row says beside its claim. Amounts are decimal texts in the chain's smallest unit. */
struct store_account {
    bool paused;      /* by whomever: nothing is admitted */
    const char *hold; /* "": none, or the leader's own pause: "payment", "reaped", "transaction_version" */
    bool reborn;      /* an operator ordered a reaped account to go on, and what that takes is not done */
    uint32_t transaction_version; /* the one that calls are signed under; 0: whatever the chain has */
    /* the policy (schema/README.md) */
    const char *tip_start, *tip_step; /* "0" where not set */
    const char *tip_cap;              /* NULL: none */
    uint32_t tip_step_percent;
    uint32_t tip_after_blocks;  /* 0: tips are not raised for lack of progress */
    uint32_t skip_after_blocks; /* 0: the head of the line is waited for */
    bool requeue_usurped;
    const char *low_balance; /* NULL: not told */
};

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
    uint32_t guard;         /* the only runtime spec version under which it may be signed; 0: any */
    const char *tip;        /* decimal, of the current attempt */
    const char *max_tip;    /* decimal; NULL: the account's cap alone */
    int64_t deadline_block; /* the last block that may hold it; -1: none */
    uint32_t retries;       /* dispatch errors after which it may go back to the outbox */
    uint32_t filler_len;    /* the current attempt ends with a filler's call of so many bytes; 0: its own */
    const char *stop_outcome,
        *stop_reason;        /* how it ends if a filler of its own gets in; NULL: none signed */
    int64_t submitted_block; /* finalized height when it was signed */
    size_t earlier_count;    /* hashes of earlier attempts at this nonce: they may still be included */
    const uint8_t (*earlier)[32];
    bool fixed;            /* its own bytes were signed elsewhere */
    size_t earlier_own;    /* so many of them, the first ones, were no fillers */
    int64_t earlier_death; /* where the last of their eras ends; -1: one is immortal; 0: there are none */
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
    struct store_account facts;
    int64_t used_nonce; /* by what is on record, finalized blocks used every nonce below this; -1: unknown */
    int64_t used_block; /* and this was the highest of them; -1: unknown */
    int64_t seen_block; /* finalized block at the last renewal that the database kept; -1: unknown */
    int64_t reconcile_from; /* commits may be lost: later blocks may know more (store_adopt); -1: no */
};
void store_snapshot_start(struct store *s, struct store_snapshot *r, store_cb cb);

struct store_outbox_row {
    int64_t id;
    struct store_bytes call; /* fixed: the whole extrinsic */
    bool fixed, waited;      /* it was signed elsewhere; and has waited for a block */
    int32_t priority;
    int64_t deadline_ms; /* wall clock, -1: none */
    const char *creator;
    uint32_t guard;            /* the only runtime spec version under which it may be signed; 0: any */
    const char *tip, *max_tip; /* decimal; NULL: the account's policy */
    int64_t deadline_block;    /* -1: none */
    uint32_t retries;
};
struct store_outbox {
    struct store_req req;
    int32_t account;
    int64_t epoch;
    uint32_t limit; /* of calls, and of what was signed elsewhere */
    int64_t next_nonce,
        block; /* the account's, and the final block that was seen last: which of the latter are due */
    /* out */
    size_t count;
    const struct store_outbox_row *rows;
    int64_t
        reserved; /* with rows: the lowest nonce from the next one on that one of the latter waits for; -1 */
};
void store_outbox_start(struct store *s, struct store_outbox *r, store_cb cb);

/* What was read of rows that were signed elsewhere and wait. */
struct store_note_row {
    int64_t id, nonce; /* -1: it does not decode */
    uint8_t hash[32];
    int64_t era_death;  /* -1: immortal */
    int64_t wait_block; /* not due before this block is final; -1: when its nonce's turn has come */
    const char *text;   /* what it waits for */
};
struct store_note {
    struct store_req req;
    int32_t account;
    int64_t epoch;
    size_t count;
    const struct store_note_row *rows;
};
void store_note_start(struct store *s, struct store_note *r, store_cb cb);

/* What the database's clock, the applications and the operators say. Outbox rows past their deadline end as
 * expired in it; pending transactions come back that are to be stopped (their deadline has passed, or
 * somebody cancelled them), with the outcome to record if none of their bytes gets in, and those whose tip is
 * to rise. */
struct store_stop {
    int64_t nonce, id;
    const char *outcome, *reason; /* NULL: no stop, a bump */
    const char *tip;              /* bump: the least that the next attempt is to pay; NULL: a stop */
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
    int64_t mark;    /* of the facts: another one says that they are others; never -1 */
    struct store_account facts;
};
void store_look_start(struct store *s, struct store_look *r, store_cb cb);

/* Which accounts want something, in one statement that writes nothing: those with nothing are left out. */
struct store_want {
    size_t index;    /* in the request's arrays */
    bool lost;       /* not led under this epoch any more; nothing else is said of it */
    bool look;       /* a look has something to say */
    bool ripe;       /* a row of the outbox may be admitted */
    int64_t next_ms; /* until its next deadline or not_before, where that is near; -1: none is */
};
struct store_due {
    struct store_req req;
    size_t count;
    const int32_t *accounts;
    const int64_t *epochs;
    const int64_t *marks; /* of the facts that the caller knows; -1: none */
    uint32_t ahead_ms;    /* what is near */
    /* out */
    size_t want_count;
    const struct store_want *wants; /* in the order of the request */
};
void store_due_start(struct store *s, struct store_due *r, store_cb cb);

/* ---- the leader's writes; all fenced by epoch ---- */

struct store_attempt_row {
    int64_t id; /* admit: outbox id */
    int64_t nonce;
    uint8_t hash[32];
    struct store_bytes extrinsic;
    struct store_bytes call;      /* fill; admit_signed: its length */
    const char *tip;              /* decimal; NULL = "0" */
    int64_t era_birth, era_death; /* -1: immortal */
    const char *reason;  /* attempt: why the former one ended; fill: error text of the ended transaction */
    const char *outcome; /* fill: outcome of the ended transaction */
    /* attempt: it ends with a filler's call of so many bytes; the transaction keeps the nonce and ends as
     * `outcome` with `stop_reason` if these bytes get in. 0: the transaction's own call. */
    uint32_t filler_len;
    const char *stop_reason;
    int64_t block; /* admit_signed: no block up to this one holds it */
};
struct store_attempts {
    struct store_req req;
    int32_t account;
    int64_t epoch;
    uint32_t spec_version, transaction_version;
    int64_t block; /* finalized height now */
    size_t count;
    const struct store_attempt_row *rows;
    int64_t next_nonce; /* out (admit, admit_signed, fill); admit_signed: in, the one before it */
};
void store_admit_start(struct store *s, struct store_attempts *r, store_cb cb);
/* Rows that were signed elsewhere, at nonces of their own. */
void store_admit_signed_start(struct store *s, struct store_attempts *r, store_cb cb);
void store_attempt_start(struct store *s, struct store_attempts *r, store_cb cb);
void store_fill_start(struct store *s, struct store_attempts *r, store_cb cb);

struct store_state_row {
    int64_t nonce;
    uint8_t hash[32];
    const char *state;             /* "refused": the state stays, `error` goes into the attempt's history */
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
    int64_t used_block;   /* usurped: as of this finalized block the nonce is used; 0: unknown */
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
/* The nonce is used up and the transaction goes back to the outbox with its id. outcome "usurped": somebody
 * else used the nonce; "dispatch_error": its own attempt did, without effect, and one retry less is left;
 * "failed": the nonce belongs to a former life of the account. The nonce keeps a record of its own. */
void store_requeue_start(struct store *s, struct store_finish *r, store_cb cb);

struct store_nonce {
    struct store_req req;
    int32_t account;
    int64_t epoch;
    int64_t next_nonce;
    bool lower;  /* may go down: nonces that were counted but never signed for are given back */
    bool reborn; /* may go down, and a new life begins: no record from before says anything about nonces */
};
void store_nonce_start(struct store *s, struct store_nonce *r, store_cb cb);

struct store_pause {
    struct store_req req;
    int32_t account;
    int64_t epoch;
    const char *hold;   /* as in store_account; NULL: end the leader's own pause */
    const char *reason; /* for people */
};
void store_pause_start(struct store *s, struct store_pause *r, store_cb cb);

/* Extrinsics of this account that the chain or a pool holds and the database does not know, because a
 * failover lost commits. Each takes the waiting transaction whose call it has, or becomes the newest attempt
 * of the pending one at its nonce; what fits neither is left alone. */
struct store_adopt_row {
    int64_t nonce;
    uint8_t hash[32];
    struct store_bytes extrinsic;
    size_t call_len;              /* the call is the end of the extrinsic */
    const char *tip;              /* decimal */
    int64_t era_birth, era_death; /* -1: immortal */
    int64_t time_ms;              /* of the block, wall clock; -1: in a pool, or not known */
};
struct store_adopt {
    struct store_req req;
    int32_t account;
    int64_t epoch;
    uint32_t spec_version, transaction_version;
    int64_t block; /* no block up to this one holds any of them */
    bool done;     /* the account is reconciled: it may be admitted to */
    size_t count;
    const struct store_adopt_row *rows;
    int32_t adopted; /* out */
};
void store_adopt_start(struct store *s, struct store_adopt *r, store_cb cb);

/* ---- the application's side, for memory stores and the command line ---- */

struct store_enqueue {
    struct store_req req;
    const char *account; /* alias, 0x id or address */
    struct store_bytes call;
    const char *key; /* NULL: none */
    int32_t priority;
    const char *creator;                /* NULL: none */
    int64_t not_before_ms, deadline_ms; /* wall clock; 0: none */
    uint32_t guard;                     /* runtime spec version; 0: any */
    const char *tip, *max_tip;          /* decimal; NULL: the account's policy */
    int64_t deadline_block;             /* 0: none */
    uint32_t retries;
    int64_t id; /* out */
};
void store_enqueue_start(struct store *s, struct store_enqueue *r, store_cb cb);

/* What is asked for later: an end, a higher tip, the end of a pause. The leader hears of it. */
struct store_ask {
    struct store_req req;
    int64_t id;          /* cancel, bump */
    const char *tip;     /* bump: decimal; NULL: the next step of the account's policy */
    const char *account; /* resume: alias, 0x id or address */
    /* out. cancel: "cancelled" (it had no nonce), "requested", "finished"; bump: "queued" (it has no nonce),
     * "requested", "finished"; resume: "" */
    const char *answer;
};
void store_cancel_start(struct store *s, struct store_ask *r, store_cb cb);
void store_bump_start(struct store *s, struct store_ask *r, store_cb cb);
void store_resume_start(struct store *s, struct store_ask *r, store_cb cb);

/* ---- the store itself ---- */

struct store_pg_config {
    const char
        *control_dsn;     /* direct connection: locks, claims, doorbells. libpq connection string; copied */
    const char *work_dsn; /* reads and writes; NULL = control_dsn */
    const char *application_name;  /* e.g. "txrelay host/pid" */
    bool use_lock;                 /* false: claims and expiry alone */
    uint32_t connect_timeout_ms;   /* default 5000 */
    uint32_t statement_timeout_ms; /* default 30000 */
    uint32_t control_answer_ms; /* a control session that is silent for longer is given up; default: a little
                                   more than a statement may take */
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
