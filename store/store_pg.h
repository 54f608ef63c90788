/* Private to store/store_pg*.c.
 *
 *   store_pg.c        two sessions, their schema check, the state that the owner sees, the end
 *   store_pg_call.c   one request = one statement: parameters out, rows back
 *   store_pg_locks.c  advisory locks and doorbells of the control session
 *   store_pg_lead.c   claims (control session)
 *   store_pg_renew.c  renewals (control session)
 *   store_pg_mark.c   questions that need not be asked in full
 *   store_pg_scan.c   what a relay's followers look at (control session)
 *   store_pg_read.c   the leader's reads (work session)
 *   store_pg_due.c    what is read for many accounts at once (work session)
 *   store_pg_write.c  the leader's writes (work session)
 *   store_pg_ask.c    the application's and operator's side (work session) */
#ifndef STORE_STORE_PG_H
#define STORE_STORE_PG_H

#include "base/backoff.h"
#include "base/rng.h"
#include "hash.h"
#include "pg_codec.h"
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
    int64_t database, cluster;
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

/* The last question about many accounts whose answer is the same while the mark is that came with it. */
struct marked {
    int32_t *accounts;
    int64_t *epochs;
    size_t count;
    char mark[64]; /* "": none */
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
    struct marked scan, renewal;
    uint64_t scan_until; /* the scan's mark is of no use from then on */
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

/* ---- store_pg_call.c ---- */

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

/* ---- store_pg_mark.c ---- */

void marked_forget(struct marked *m);
const char *marked_as(const struct marked *m, size_t count, const int32_t *accounts,
                      const int64_t *epochs); /* "": it is another question */
void marked_keep(struct marked *m, size_t count, const int32_t *accounts, const int64_t *epochs,
                 const char *mark);

/* ---- the requests ---- */
void store_pg__lock(struct store *s, struct store_lock *r);
void store_pg__unlock(struct store *s, struct store_lock *r);
void store_pg__doorbell_arm(struct store *s, struct store_doorbell *r);
void store_pg__doorbell_disarm(struct store *s, struct store_doorbell *r);
void store_pg__locks_init(struct store_pg *s);
bool store_pg__lock_held(const struct store_pg *s, int64_t lock_key); /* an account's, by this session */
void store_pg__locks_lost(struct store_pg *s);   /* the control session is gone, and they with it */
void store_pg__locks_cancel(struct store_pg *s); /* closing: what waits for its turn ends with ERR_CANCELED */

void store_pg__claims_init(struct store_pg *s);
void store_pg__claims_cancel(struct store_pg *s); /* closing, as with the locks */
void store_pg__claim(struct store *s, struct store_claim *r);
void store_pg__renew(struct store *s, struct store_renew *r);
void store_pg__release(struct store *s, struct store_release *r);
void store_pg__evict(struct store *s, struct store_evict *r);

void store_pg__scan(struct store *s, struct store_scan *r);
void store_pg__member(struct store *s, struct store_member *r);

void store_pg__snapshot(struct store *s, struct store_snapshot *r);
void store_pg__outbox(struct store *s, struct store_outbox *r);
void store_pg__look(struct store *s, struct store_look *r);
void store_pg__due(struct store *s, struct store_due *r);

void store_pg__enroll(struct store *s, struct store_register *r);
void store_pg__admit(struct store *s, struct store_attempts *r);
void store_pg__admit_signed(struct store *s, struct store_attempts *r);
void store_pg__note(struct store *s, struct store_note *r);
void store_pg__attempt(struct store *s, struct store_attempts *r);
void store_pg__fill(struct store *s, struct store_attempts *r);
void store_pg__state(struct store *s, struct store_states *r);
void store_pg__finish(struct store *s, struct store_finish *r);
void store_pg__reject(struct store *s, struct store_finish *r);
void store_pg__nonce(struct store *s, struct store_nonce *r);
void store_pg__pause(struct store *s, struct store_pause *r);
void store_pg__requeue(struct store *s, struct store_finish *r);
void store_pg__adopt(struct store *s, struct store_adopt *r);

void store_pg__enqueue(struct store *s, struct store_enqueue *r);
void store_pg__cancel(struct store *s, struct store_ask *r);
void store_pg__bump(struct store *s, struct store_ask *r);
void store_pg__resume(struct store *s, struct store_ask *r);

/* One array argument: `put` writes the element of row i of r->count. */
#define COLUMN(a, elem, r, put)                                                                              \
    do {                                                                                                     \
        pg_array_begin(a, elem, (r)->count);                                                                 \
        for (size_t i = 0; i < (r)->count; i++)                                                              \
            put;                                                                                             \
        pg_array_end(a);                                                                                     \
    } while (0)

#endif
