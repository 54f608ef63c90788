/* Private to store/: the seam between the requests and their two implementations. A header of
 * requests ends with the list of its requests; the tables of operations, the starts (store.c) and
 * each store's entries are made from these lists, so that a new request is added to its header and
 * written in both stores. */
#ifndef STORE_STORE_INTERNAL_H
#define STORE_STORE_INTERNAL_H

#include "store/lead.h"
#include "store/operator.h"
#include "store/outbox.h"
#include "store/pending.h"
#include "store/store.h"

#define STORE_OP(name, type) void (*name)(struct store * s, struct type * r);
struct store_lead_ops {
    STORE_LEAD_REQUESTS(STORE_OP)
};
struct store_outbox_ops {
    STORE_OUTBOX_REQUESTS(STORE_OP)
};
struct store_pending_ops {
    STORE_PENDING_REQUESTS(STORE_OP)
};
struct store_operator_ops {
    STORE_OPERATOR_REQUESTS(STORE_OP)
};
#undef STORE_OP

struct store_ops {
    void (*open)(struct store *s);
    void (*close)(struct store *s, void (*cb)(void *arg), void *arg);
    void (*sessions)(const struct store *s, struct store_status *ret); /* fills control and work */
    struct store_lead_ops lead;
    struct store_outbox_ops outbox;
    struct store_pending_ops pending;
    struct store_operator_ops operators;
};

/* The entries of all tables; X(name, type) gives the one of a request. */
#define STORE_ENTRIES(X)                                                                           \
    .lead = {STORE_LEAD_REQUESTS(X)}, .outbox = {STORE_OUTBOX_REQUESTS(X)},                        \
    .pending = {STORE_PENDING_REQUESTS(X)}, .operators = {STORE_OPERATOR_REQUESTS(X)}

/* All requests. */
#define STORE_REQUESTS(X)                                                                          \
    STORE_LEAD_REQUESTS(X)                                                                         \
    STORE_OUTBOX_REQUESTS(X) STORE_PENDING_REQUESTS(X) STORE_OPERATOR_REQUESTS(X)

struct store {
    const struct store_ops *ops;
    struct loop *loop;
    enum store_state state;
    uint64_t started, ended, failed; /* requests */
    uint64_t took_ms;                /* from start to answer, all of them together */
};

/* The block of an end: the one that includes it, or the first one as of which another program has
 * used its nonce. -1: none. */
int64_t store__end_number(const struct tx_end *end);
/* The place in that block; -1: it is in none. */
int32_t store__end_index(const struct tx_end *end);
/* Rows have "" where the tables have NULL. */
const char *store__text(const char *text);

/* Memory that lives until store_req_done; `extra` is handed to free_extra then. */
void *store__arena(struct store_req *req, size_t n, void *extra, void (*free_extra)(void *extra));

/* The request ends, with what req->err says: now, or from the next round of the loop. */
void store__answer(struct store *s, struct store_req *req);
void store__answer_later(struct store *s, struct store_req *req);

#endif
