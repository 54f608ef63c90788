/* Transactions that have no nonce yet: the application's enqueue, the doorbell that wakes a
 * leader, which accounts have something to do, and the leader's admissions, which are fenced by
 * its epoch. store.h says what holds for every request. */
#ifndef STORE_OUTBOX_H
#define STORE_OUTBOX_H

#include "store/pending.h"
#include "store/store.h"

/* The application's side, for memory stores and the command line. */
struct store_enqueue {
    struct store_req req;
    const char *account; /* alias, 0x id or address */
    struct store_bytes call;
    const char *key; /* NULL: none */
    int32_t priority;
    const char *creator;                /* NULL: none */
    int64_t not_before_ms, deadline_ms; /* wall clock; 0: none */
    int64_t delay_ms, expires_in_ms; /* in their place: from now, by the store's clock; 0: none */
    uint32_t guard;                  /* runtime spec version; 0: any */
    const char *tip, *max_tip;       /* decimal; NULL: the account's policy */
    int64_t deadline_block;          /* 0: none */
    uint32_t retries;
    const char *traceparent; /* NULL: none */
    const char *who;         /* recorded beside the creator, who is another; NULL: it is not */
    int64_t id;              /* out */
};
void store_enqueue_start(struct store *s, struct store_enqueue *r, store_cb cb);

/* The doorbell: arm = try the exclusive session lock; armed = true means the leader may sleep. */
struct store_doorbell {
    struct store_req req;
    int32_t account;
    bool armed; /* out */
};
void store_doorbell_arm_start(struct store *s, struct store_doorbell *r, store_cb cb);
void store_doorbell_disarm_start(struct store *s, struct store_doorbell *r, store_cb cb);

/* Which accounts want something, in one statement that writes nothing: those with nothing are
 * left out. */
struct store_want {
    size_t index;      /* in the request's arrays */
    bool lost;         /* not led under this epoch any more; nothing else is said of it */
    bool has_requests; /* a poll has something to say */
    bool has_rows;     /* a row of the outbox may be admitted */
    int64_t next_ms;   /* until its next deadline or not_before, where that is near; -1: none is */
};
struct store_due {
    struct store_req req;
    size_t count;
    const int32_t *accounts;
    const int64_t *epochs;
    const int64_t *fingerprints; /* of the facts that the caller knows; -1: none */
    uint32_t ahead_ms;           /* what is near */
    /* out */
    size_t want_count;
    const struct store_want *wants; /* in the order of the request */
};
void store_due_start(struct store *s, struct store_due *r, store_cb cb);

/* ---- admission ---- */

struct store_outbox_row {
    int64_t id;
    struct store_bytes call; /* presigned: the whole extrinsic */
    bool presigned, waited;  /* it is presigned; and has waited for a block */
    int32_t priority;
    int64_t deadline_ms; /* wall clock, -1: none */
    const char *creator;
    uint32_t guard; /* the only runtime spec version under which it may be signed; 0: any */
    const char *tip, *max_tip; /* decimal; NULL: the account's policy */
    int64_t deadline_block;    /* -1: none */
    uint32_t retries;
    int64_t age_ms;    /* since it was enqueued */
    const char *trace; /* NULL: none */
};
struct store_outbox {
    struct store_req req;
    int32_t account;
    int64_t epoch;
    uint32_t limit;     /* of calls, and of presigned rows */
    int64_t next_nonce; /* of the account */
    int64_t block;      /* the last processed final block: presigned rows may wait for one */
    /* out */
    size_t count;
    const struct store_outbox_row *rows;
    int64_t reserved; /* lowest nonce >= next_nonce reserved by a waiting presigned row; -1: none */
    /* The first call that was passed over because an application's open transaction holds its row,
     * or else the first presigned one, and who that is. */
    int64_t held_id;     /* 0: none */
    const char *held_by; /* "": none */
    /* The first presigned row whose nonce is above the next one, and what it waits for, if a leader
     * has noted that. */
    int64_t waits_id;  /* 0: none */
    const char *waits; /* "": none */
};
void store_outbox_start(struct store *s, struct store_outbox *r, store_cb cb);

/* Results of checking waiting presigned rows. */
struct store_note {
    struct store_req req;
    int32_t account;
    int64_t epoch;
    size_t count;
    const struct tx_note *rows;
};
void store_note_start(struct store *s, struct store_note *r, store_cb cb);

/* The rows of the batch get nonces from the account's next one on, and are pending. */
void store_admit_start(struct store *s, struct store_attempts *r, store_cb cb);
/* Presigned rows, at their own nonces. */
void store_admit_signed_start(struct store *s, struct store_attempts *r, store_cb cb);
/* Rows of the batch end in the outbox. */
void store_reject_start(struct store *s, struct store_finish *r, store_cb cb);

/* X(request, struct) */
#define STORE_OUTBOX_REQUESTS(X)                                                                   \
    X(enqueue, store_enqueue)                                                                      \
    X(doorbell_arm, store_doorbell)                                                                \
    X(doorbell_disarm, store_doorbell)                                                             \
    X(due, store_due)                                                                              \
    X(outbox, store_outbox)                                                                        \
    X(note, store_note)                                                                            \
    X(admit, store_attempts)                                                                       \
    X(admit_signed, store_attempts)                                                                \
    X(reject, store_finish)

#endif
