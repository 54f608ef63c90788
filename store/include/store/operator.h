/* What operators and applications ask for after enqueue. The leader of the account is notified, and
 * polls. store.h says what holds for every request. */
#ifndef STORE_OPERATOR_H
#define STORE_OPERATOR_H

#include "store/store.h"

#define STORE_ASK_NONE INT64_MAX
struct store_ask {
    struct store_req req;
    const char *who;     /* whom the record names; NULL: the login */
    int64_t id;          /* cancel, bump, retry */
    const char *tip;     /* bump: decimal; NULL: the next step of the account's policy */
    const char *account; /* resume: alias, 0x id or address */
    /* retry: 0: what the transaction had; STORE_ASK_NONE: none */
    int64_t deadline_ms, deadline_block;
    /* out. cancel: "cancelled" (it had no nonce), "requested", "finished"; bump: "queued" (it has
     * no nonce), "requested", "finished"; resume: ""; retry: the new id */
    const char *answer;
};
void store_cancel_start(struct store *s, struct store_ask *r, store_cb cb);
void store_bump_start(struct store *s, struct store_ask *r, store_cb cb);
void store_resume_start(struct store *s, struct store_ask *r, store_cb cb);
void store_retry_start(struct store *s, struct store_ask *r, store_cb cb);

/* An operator drains this relay: a record of it. */
struct store_drained {
    struct store_req req;
    const char *relay; /* its identity in the database */
    const char *who;   /* "": the login */
};
void store_drained_start(struct store *s, struct store_drained *r, store_cb cb);

/* X(request, struct) */
#define STORE_OPERATOR_REQUESTS(X)                                                                 \
    X(cancel, store_ask)                                                                           \
    X(bump, store_ask)                                                                             \
    X(resume, store_ask)                                                                           \
    X(retry, store_ask)                                                                            \
    X(drained, store_drained)

#endif
