/* Transactions that have a nonce, and what their leader writes about them. All writes are
 * fenced: under an old epoch they end with ERR_LOST_LEADERSHIP. store.h says what holds for
 * every request. */
#ifndef STORE_PENDING_H
#define STORE_PENDING_H

#include "base/tx.h"
#include "store/store.h"

/* ---- what is read ---- */

/* What the account's row says beside its claim. Amounts are decimal texts in the chain's
 * smallest unit. */
struct store_account {
    bool paused;            /* by whomever: nothing is admitted */
    const char *suspension; /* "": none, or the leader's own pause: "payment", "signing", "reaped",
                               "transaction_version" */
    /* an operator ordered a reaped account to go on, and what that takes is not done */
    bool reborn;
    /* the one that calls are signed under; 0: whatever the chain has */
    uint32_t transaction_version;
    /* the policy (docs/sql.md) */
    const char *tip_start, *tip_step; /* "0" where not set */
    const char *tip_cap;              /* NULL: none */
    uint32_t tip_step_percent;
    uint32_t tip_after_blocks;  /* 0: tips are not raised for lack of progress */
    uint32_t skip_after_blocks; /* 0: the head of the line is waited for */
    bool requeue_usurped;
    const char *low_balance; /* NULL: not told */
    /* "ExhaustsResources,Custom:6": refusals after which the same bytes are submitted again; NULL:
     * none */
    const char *retry_refusals;
};

struct store_snapshot {
    struct store_req req;
    int32_t account;
    int64_t epoch;
    int64_t after_nonce; /* -1: from the start */
    uint32_t limit;
    /* out */
    size_t count;
    const struct tx_pending *rows;
    int64_t next_nonce; /* of the account row; -1 when never set */
    struct store_account facts;
    int64_t used_nonce; /* by what is on record, finalized blocks used every nonce below this; -1:
                           unknown */
    int64_t used_block; /* and this was the highest of them; -1: unknown */
    /* finalized block at the last renewal that the database kept; -1: unknown */
    int64_t seen_block;
    /* commits may be lost: later blocks may know more (store_adopt); -1: no */
    int64_t reconcile_from;
    /* Then: when that was found, in ms since 1970; the block at which the wait ends (store_heard),
     * -1: not known yet; and whether lost commits may have sent what has no era. */
    int64_t lost_since_ms, lost_until;
    int64_t database_ms; /* what its clock shows */
    bool era_immortal;
    /* why a leader suspended the account; NULL: none did, or an operator's pause was there first */
    const char *suspension_text;
};
void store_snapshot_start(struct store *s, struct store_snapshot *r, store_cb cb);

/* The request poll. It ends outbox rows past their deadline as expired. It returns the pending
 * transactions that are to be stopped (their deadline has passed, or an application cancelled
 * them), with the outcome to record if none of their bytes gets in, and those whose tip is to
 * rise. ended: those that have ended without a nonce since the last poll, by this poll or by an
 * application, and not by a reject. */
struct store_ended {
    int64_t id;
    const char *outcome, *error, *trace; /* error, trace: "" if there is none */
};
struct store_poll_requests {
    struct store_req req;
    int32_t account;
    int64_t epoch;
    /* out */
    size_t count;
    const struct tx_stop *stops;
    size_t ended_count;
    const struct store_ended *ended;
    bool has_rows;       /* a row that had waited for its time may be admitted now */
    int64_t next_ms;     /* until the next deadline or not_before; -1: none */
    int64_t fingerprint; /* of the facts; it differs if they do; never -1 */
    struct store_account facts;
};
void store_poll_requests_start(struct store *s, struct store_poll_requests *r, store_cb cb);

/* ---- attempts ---- */

struct store_attempt_row {
    int64_t id; /* admit: outbox id */
    int64_t nonce;
    uint8_t hash[32];
    struct store_bytes extrinsic;
    struct store_bytes call;      /* fill; admit_signed: its length */
    const char *tip;              /* decimal; NULL = "0" */
    int64_t era_birth, era_death; /* -1: immortal */
    /* attempt: why the former one ended; fill: error text of the ended transaction */
    const char *reason;
    const char *outcome; /* fill: outcome of the ended transaction */
    /* attempt: length of the filler's call at its end; the transaction keeps the nonce and ends as
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
void store_attempt_start(struct store *s, struct store_attempts *r, store_cb cb);
void store_fill_start(struct store *s, struct store_attempts *r, store_cb cb);

/* ---- statuses and ends ---- */

struct store_states {
    struct store_req req;
    int32_t account;
    int64_t epoch;
    size_t count;
    const struct tx_report *rows;
};
void store_state_start(struct store *s, struct store_states *r, store_cb cb);

struct store_finish {
    struct store_req req;
    int32_t account;
    int64_t epoch;
    size_t count;
    const struct tx_end *rows;
};
void store_finish_start(struct store *s, struct store_finish *r, store_cb cb);
/* The nonce is used up and the transaction goes back to the outbox with its id. outcome
 * "usurped": another program used the nonce; "dispatch_error": its own attempt did, without
 * effect, and one retry less is left; "failed": the nonce belongs to a former life of the
 * account. The nonce keeps a record of its own. */
void store_requeue_start(struct store *s, struct store_finish *r, store_cb cb);

/* ---- the account ---- */

struct store_nonce {
    struct store_req req;
    int32_t account;
    int64_t epoch;
    int64_t next_nonce;
    bool lower;  /* may go down: nonces that were counted but never signed for are given back */
    bool reborn; /* may go down, and a new life begins: no record from before says anything about
                    nonces */
};
void store_nonce_start(struct store *s, struct store_nonce *r, store_cb cb);

struct store_pause {
    struct store_req req;
    int32_t account;
    int64_t epoch;
    const char *suspension; /* as in store_account; NULL: end the leader's own pause */
    const char *reason;     /* for people */
};
void store_pause_start(struct store *s, struct store_pause *r, store_cb cb);

/* Extrinsics of this account that the chain or a pool holds and the database does not know,
 * because a failover lost commits. Each takes the waiting transaction whose call it has, or
 * becomes the newest attempt of the pending one at its nonce; what fits neither is left alone. */
struct store_adopt {
    struct store_req req;
    int32_t account;
    int64_t epoch;
    uint32_t spec_version, transaction_version;
    int64_t block; /* no block up to this one holds any of them */
    bool done;     /* the account is reconciled: it may be admitted to */
    /* done: all finalized blocks up to this one were read; -1: the wait is cut short */
    int64_t read;
    size_t count;
    const struct tx_found *rows;
    int32_t adopted; /* out */
};
void store_adopt_start(struct store *s, struct store_adopt *r, store_cb cb);

/* Commits may be lost. `heard`: a block that is not lower than any that was known when they were.
 * The first such request of a wait decides. */
struct store_heard {
    struct store_req req;
    int32_t account;
    int64_t epoch;
    int64_t heard;
    int64_t until; /* out: the last block of the wait; it is to be read too */
};
void store_heard_start(struct store *s, struct store_heard *r, store_cb cb);

/* X(request, struct) */
#define STORE_PENDING_REQUESTS(X)                                                                  \
    X(snapshot, store_snapshot)                                                                    \
    X(poll_requests, store_poll_requests)                                                          \
    X(attempt, store_attempts)                                                                     \
    X(fill, store_attempts)                                                                        \
    X(state, store_states)                                                                         \
    X(finish, store_finish)                                                                        \
    X(requeue, store_finish)                                                                       \
    X(nonce, store_nonce)                                                                          \
    X(pause, store_pause)                                                                          \
    X(heard, store_heard)                                                                          \
    X(adopt, store_adopt)

#endif
