/* What operators and applications ask for after enqueue. The leader of the account is notified, and
 * polls. store.h says what holds for every request. */
#ifndef STORE_OPERATOR_H
#define STORE_OPERATOR_H

#include "store/store.h"

struct store_ask {
    struct store_req req;
    int64_t id;          /* cancel, bump */
    const char *tip;     /* bump: decimal; NULL: the next step of the account's policy */
    const char *account; /* resume: alias, 0x id or address */
    /* out. cancel: "cancelled" (it had no nonce), "requested", "finished"; bump: "queued" (it has
     * no nonce), "requested", "finished"; resume: "" */
    const char *answer;
};
void store_cancel_start(struct store *s, struct store_ask *r, store_cb cb);
void store_bump_start(struct store *s, struct store_ask *r, store_cb cb);
void store_resume_start(struct store *s, struct store_ask *r, store_cb cb);

/* X(request, struct) */
#define STORE_OPERATOR_REQUESTS(X)                                                                 \
    X(cancel, store_ask)                                                                           \
    X(bump, store_ask)                                                                             \
    X(resume, store_ask)

#endif
