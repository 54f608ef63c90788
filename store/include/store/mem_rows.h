/* The rows of the memory database (store/mem_db.h), column by column as schema/ has them. A caller
 * that gets one reads it and changes nothing; it is valid until the next call that may write. -1
 * and NULL stand for SQL's NULL where a comment does not say otherwise; times are in microseconds
 * of the database's clock, 0: none. */
#ifndef STORE_MEM_ROWS_H
#define STORE_MEM_ROWS_H

#include "base/list.h"
#include "base/u128.h"
#include "store/store.h"

struct mem_session;

/* The states and outcomes of 0001_init.sql; mem_state_name and mem_outcome_name give their
 * texts. */
enum mem_state {
    MEM_STATE_NONE = -1, /* NULL */
    MEM_SIGNED,
    MEM_FUTURE,
    MEM_READY,
    MEM_BROADCAST,
    MEM_IN_BLOCK,
    MEM_RETRACTED,
    MEM_FINALITY_TIMEOUT,
    MEM_FINALIZED,
    MEM_USURPED,
    MEM_DROPPED,
    MEM_INVALID,
};
enum mem_outcome {
    MEM_OUTCOME_NONE = -1, /* NULL */
    MEM_OK,
    MEM_DISPATCH_ERROR,
    MEM_EXPIRED,
    MEM_CANCELLED,
    MEM_FAILED,
    MEM_ENDED_USURPED,
    MEM_ENDED_UNKNOWN,
};
enum mem_attempt_outcome {
    MEM_ATTEMPT_LIVE,
    MEM_ATTEMPT_UNKNOWN,
    MEM_ATTEMPT_INCLUDED,
    MEM_ATTEMPT_REPLACED,
    MEM_ATTEMPT_DROPPED,
    MEM_ATTEMPT_INVALID,
    MEM_ATTEMPT_USURPED,
    MEM_ATTEMPT_SUPERSEDED,
};
const char *mem_state_name(enum mem_state state);       /* NULL for NONE */
const char *mem_outcome_name(enum mem_outcome outcome); /* NULL for NONE */
const char *mem_attempt_outcome_name(enum mem_attempt_outcome outcome);

/* What account_policy sets. */
struct mem_policy {
    u128 tip_start, tip_step, tip_cap, low_balance;
    bool has_tip_cap, has_low_balance;
    uint32_t tip_step_percent, tip_after_blocks, skip_after_blocks;
    bool requeue_usurped;     /* "usurped": "requeue" */
    bool strict;              /* "order": "strict" */
    char retry_refusals[121]; /* "": none */
};

struct mem_block {
    bool known;
    uint8_t hash[32];
};

struct mem_refusal {
    const char *error;
    uint32_t count;
};

struct mem_attempt {
    int64_t id; /* 0: of a row that was a filler */
    uint8_t hash[32];
    struct store_bytes extrinsic;
    u128 tip;
    int64_t era_birth, era_death;
    uint32_t spec_version, transaction_version;
    int64_t block;
    uint32_t filler_len; /* 0: NULL */
    int64_t epoch;
    enum mem_attempt_outcome outcome;
    enum mem_state state;
    struct mem_block in;
    int64_t block_number;
    const char *reason, *error;
    struct mem_refusal *refusals;
    size_t refusal_count;
};

/* A nonce that was ever used, with all attempts at it: number 1 comes first. */
struct mem_nonce {
    int64_t nonce;
    struct mem_row *row; /* NULL: nothing is pending at it */
    struct mem_attempt *attempts;
    size_t count, cap;
    int64_t last_end; /* serial of the newest row of finished_transactions; -1: none */
};

/* A row of outbox, outbox_presigned or pending_transactions: a transaction moves from one to the
 * other. */
enum mem_table { MEM_OUTBOX, MEM_OUTBOX_SIGNED, MEM_PENDING };
struct mem_row {
    enum mem_table table;
    int32_t account;
    int64_t id;                        /* 0: filler */
    struct store_bytes call;           /* outbox_presigned: the extrinsic */
    const char *key, *creator, *trace; /* trace NULL: none */
    int32_t priority;
    int64_t not_before_us, deadline_us, created_us;
    uint32_t guard, retries; /* guard 0: NULL */
    bool has_tip, has_max_tip;
    u128 tip, max_tip;
    int64_t deadline_block;
    uint32_t attempts; /* made for this transaction, at whatever nonce */
    bool silent;       /* its enqueue found the leader awake, and sent no notification */

    int64_t nonce; /* outbox_presigned: as a leader read it */
    uint8_t hash[32];
    bool has_hash;
    int64_t era_death, wait_block; /* outbox_presigned */
    const char *waits;

    /* pending_transactions */
    enum mem_state state;
    bool unknown, presigned /* signed */, blocked;
    struct mem_block in;
    int64_t block_number;
    const char *error;
    int64_t epoch;
    enum mem_outcome stop_outcome;
    const char *stop_reason;
    int64_t admitted_us, in_block_us, updated_us;
    struct mem_nonce *at; /* its last attempt is the row's current one */

    /* The session whose open transaction has cancelled or bumped it: leaders pass over it. NULL:
     * none. */
    const struct mem_session *held;

    /* private */
    struct list node;
    bool marked;
};

/* What it was enqueued with, as far as that is left, for a retry. */
struct mem_options {
    int32_t priority;
    int64_t not_before_us, deadline_us;
    uint32_t guard, retries;
    bool has_tip, has_max_tip, presigned;
    u128 tip, max_tip;
    int64_t deadline_block;
    const char *trace; /* NULL: none */
};

struct mem_finished {
    int64_t id, requeued; /* 0: NULL */
    int32_t account;
    int64_t nonce;
    bool has_hash;
    uint8_t hash[32];
    struct mem_block in;
    int64_t block_number;
    int32_t index; /* INT32_MIN: NULL */
    enum mem_state state;
    enum mem_outcome outcome;
    const char *error;
    bool has_fee;
    u128 fee;
    uint32_t attempts;
    int64_t epoch;
    const char *key, *creator;
    struct store_bytes call;
    struct mem_options options;
    int64_t retried; /* the id of its retry; 0: none */
    int64_t created_us, admitted_us, in_block_us, finished_us;
    int64_t used_block; /* no column: the finalized block that usurped was said of; -1: none */
    int64_t before;     /* private: serial of the one before it at this nonce; -1: none */
};

/* ended: nobody asks for it any more; its end is in the leader's next poll. */
struct mem_cancellation {
    int64_t id;
    bool ended;
    enum mem_outcome outcome;
    const char *error; /* lives as long as the program */
    const char *trace;
};
struct mem_bump {
    int64_t id;
    u128 tip;
};

/* A row of leadership. The memory database has no subjects but accounts: each has its row in
 * itself. */
struct mem_leadership {
    int64_t lock_key;
    const char *holder, *holder_address;
    bool lock_held;
    uint32_t lock_pid; /* 0: NULL */
    int64_t epoch;
    int64_t claimed_us;               /* column heartbeat */
    int64_t expiry_1_us, expiry_2_us; /* of the claim or of its lease; 0: NULL */
    bool leased;
    uint32_t timeline; /* 0: NULL */
};

struct mem_account {
    int32_t number; /* its subject's */
    struct mem_leadership lead;
    const char *alias, *scheme, *address;
    struct store_bytes account_id, genesis;
    bool watch_only;
    int64_t next_nonce, used_nonce, used_block;
    int64_t seen_block; /* the highest of the account's, its leadership's and its lease's */
    int64_t reconcile_from;
    uint32_t era_longest; /* blocks */
    bool era_immortal;
    int64_t lost_since_us, lost_heard; /* the wait after lost commits; 0, -1: NULL */
    int64_t life_since_us;
    bool reborn;
    uint32_t transaction_version; /* 0: NULL */
    bool paused, paused_by_operator;
    const char *paused_reason;
    int64_t paused_us;
    const char *suspension; /* static; "": NULL */
    struct mem_policy policy;
    /* What keeps it from going on, as the leader of this epoch sees it; "": no row. */
    int64_t obstacle_epoch;
    char obstacle[40], obstacle_text[400];

    struct list outbox;       /* struct mem_row, by priority and id */
    struct list signed_rows;  /* struct mem_row, by id */
    struct mem_row **pending; /* by nonce */
    size_t pending_count, pending_cap;
    struct mem_nonce **nonces; /* by nonce */
    size_t nonce_count, nonce_cap;
    struct mem_cancellation *cancellations;
    size_t cancellation_count, cancellation_cap;
    struct mem_bump *bumps;
    size_t bump_count, bump_cap;
    size_t timed; /* rows of outbox and pending_transactions that have a not_before or a deadline */
};

#endif
