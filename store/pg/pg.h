/* Private to store/pg/: the requests over Postgres, by the headers that they stand in.
 *
 *   pg_store.c        two sessions, their schema check, the state that the owner sees, the end
 *   pg_call.c         one request = one statement: parameters out, rows back
 *   pg_columns.c      arguments and answers that several requests share
 *   pg_lead_*.c       control session: claims, locks (and doorbells), renewals, what followers
 *                     scan
 *   pg_outbox.c       work session: enqueue, accounts with something to do, admission
 *   pg_pending_*.c    work session: the leader's reads and writes
 *   pg_operator.c     work session: cancel, bump, resume
 *   pg_retention.c    a connection of its own
 *   pg_session.c      a connection of its own, for each of the next
 *   pg_feeds.c        feeds, and their batches
 *   pg_sites.c        sites: what they write
 *   pg_sites_read.c   what they read
 *   pg_sample.c       a sample of all accounts for metrics */
#ifndef STORE_PG_PG_H
#define STORE_PG_PG_H

#include "base/backoff.h"
#include "base/rng.h"
#include "base/table.h"
#include "conn/pg_codec.h"
#include "sql.h"
#include "store/conn.h"
#include "store_internal.h"

struct store_pg;
struct lock_entry;

/* One of the two sessions. */
struct side {
    struct store_pg *s;
    struct conn *conn;
    struct conn_query check; /* schema check in flight */
    bool checking;
    bool fits; /* connected, and the schema fits */
    int64_t database, server;
};

/* Operations on advisory locks of one sort, one statement at a time. */
struct lock_batch {
    struct conn_query query;
    struct store_pg *s;
    struct loop_task task;    /* sends what waits */
    struct loop_timer *timer; /* the same, later */
    enum sql_id statement;
    struct list waiting, sent;
    bool busy, may_wait;
};

/* Claims of accounts, one statement at a time. */
struct claim_batch {
    struct conn_query query;
    struct store_pg *s;
    struct loop_task task;
    struct list waiting, sent; /* of struct claim_op */
    bool busy;
};

/* The last question about many accounts. Its answer stays the same while the fingerprint that came
 * with it does. */
struct fingerprint {
    int32_t *accounts;
    int64_t *epochs;
    size_t count;
    char fingerprint[64]; /* "": none */
};

struct store_pg {
    struct store base;
    struct store_pg_config config; /* strings are not kept */
    struct side control, work;
    struct buf scratch;         /* parameters of the statement that is being sent */
    struct loop_timer *recheck; /* the schema did not fit: look again */
    struct backoff recheck_backoff;
    struct rng rng;
    struct err told; /* what on_state(DOWN) said last */
    struct lock_entry *locks;
    struct lock_batch batches[2][2]; /* of accounts and doorbells; given back and taken */
    struct claim_batch claims;
    struct fingerprint scan, renewal;
    uint64_t scan_until; /* the scan's fingerprint is of no use from then on */
    uint64_t renewals;
    bool opened, closing;
    int closing_sides;
    void (*close_cb)(void *arg);
    void *close_arg;
};

static inline struct store_pg *pg_of(struct store *s)
{
    return (struct store_pg *)(void *)s;
}

/* ---- pg_store.c ---- */

/* A statement failed as if the schema were another one: look, and give the sessions up if it is. */
void store_pg__check_again(struct store_pg *s);

/* ---- pg_call.c ---- */

/* Begin the parameters of a statement; end with store_pg__send. */
void store_pg__args(struct store_pg *s, struct pg_args *a);

/* decode fills the request's results from the rows; it may set req->err. It may keep the rows. */
typedef void (*decode_fn)(struct store_req *req, const struct conn_result *r);
void store_pg__send(struct store_pg *s, struct side *side, enum sql_id id, struct pg_args *a,
                    struct store_req *req, decode_fn decode);
/* Is there no database to ask? Then the request ends with that, from the loop. */
bool store_pg__refused(struct store_pg *s, struct store_req *req);
/* The answer does not have the shape that this program was built for. */
void store_pg__misfit(struct store_req *req, enum sql_id id);
void decode_nothing(struct store_req *req, const struct conn_result *r);

/* ---- pg_lead_fingerprint.c ---- */

void fingerprint_forget(struct fingerprint *m);
const char *fingerprint_of(const struct fingerprint *m, size_t count, const int32_t *accounts,
                           const int64_t *epochs); /* "": it is another question */
void fingerprint_save(struct fingerprint *m, size_t count, const int32_t *accounts,
                      const int64_t *epochs, const char *fingerprint);

/* ---- pg_columns.c ---- */

void store_pg__free_rows(void *rows); /* of an answer that was kept; for store__arena */
struct store_bytes store_pg__bytes(struct pg_row *row, int col);
/* Begin the parameters of a fenced write or read. */
void store_pg__fenced(struct store_pg *s, struct pg_args *a, int32_t account, int64_t epoch);
void store_pg__put_ids(struct pg_args *a, const struct store_attempts *r);
void store_pg__put_nonces(struct pg_args *a, const struct store_attempts *r);
void store_pg__put_hashes(struct pg_args *a, const struct store_attempts *r);
void store_pg__put_tips(struct pg_args *a, const struct store_attempts *r);
void store_pg__put_eras(struct pg_args *a, const struct store_attempts *r);
void store_pg__put_signed(struct pg_args *a, const struct store_attempts *r);
void store_pg__put_outcomes(struct pg_args *a, const struct store_finish *r);
void store_pg__next_nonce(struct store_req *req, const struct conn_result *r);

/* ---- the requests ---- */

#define X(name, type) void store_pg__##name(struct store *s, struct type *r);
STORE_REQUESTS(X)
#undef X

/* ---- pg_lead_locks.c ---- */

void store_pg__locks_init(struct store_pg *s);
bool store_pg__lock_held(const struct store_pg *s,
                         int64_t lock_key);    /* an account's, by this session */
void store_pg__locks_lost(struct store_pg *s); /* the control session is gone, and they with it */
/* The store closes: requests that wait for their turn end with ERR_CANCELED. */
void store_pg__locks_cancel(struct store_pg *s);

/* ---- pg_lead_claim.c ---- */

void store_pg__claims_init(struct store_pg *s);
void store_pg__claims_cancel(struct store_pg *s); /* closing, as with the locks */

/* One array argument: `put` writes the element of row i of r->count. */
#define COLUMN(a, elem, r, put)                                                                    \
    do {                                                                                           \
        pg_array_begin(a, elem, (r)->count);                                                       \
        for (size_t i = 0; i < (r)->count; i++)                                                    \
            put;                                                                                   \
        pg_array_end(a);                                                                           \
    } while (0)

#endif
