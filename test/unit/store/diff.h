/* The memory database beside Postgres: the same random calls to both, every answer and every table
 * compared.
 *
 *   diff_test.c    seeds, and the proof that a difference is found
 *   diff_run.c     one call to both; diff_open.c the two sides
 *   diff_calls.c   random requests: reads, what applications want; diff_lead.c who leads
 *   diff_rows.c    random requests: the leader's writes; diff_ends.c states and ends
 *   diff_app.c     what has no request: SQL of applications and operators, time, timelines
 *   diff_text.c    answers as texts
 *   diff_tables.c  tables as texts
 *   diff_notices.c notifications
 *
 * Time. Both clocks run at the same rate; they go ahead by moving every time in Postgres' tables
 * back, and the memory database's clock on. All times are half a STEP off the moments at which
 * clocks move, and a seed takes far less than that, so that how long a call takes decides
 * nothing. */
#ifndef STORE_DIFF_H
#define STORE_DIFF_H

#include "base/buf.h"
#include "base/rng.h"
#include "mem/mem.h"
#include "store_fixture.h"

enum { RELAYS = 3, ACCOUNTS = 4, STEP_S = 100, NEW_ROWS = 6, TEXTS = 64 };
#define STEP_US ((int64_t)STEP_S * 1000000)

union any_request {
    struct store_req req;
#define X(name, type) struct type name;
    STORE_REQUESTS(X)
#undef X
};

/* A relay: its store on Postgres, its session on the memory database, and what it knows. */
struct side {
    struct fx_store pg;
    struct mem_session *mem;
    char holder[16];
    bool use_lock;
    int64_t epochs[ACCOUNTS];
};

struct notices {
    char **lines;
    size_t count;
};

/* The superuser's connections: the second one for a transaction that stays open. */
enum diff_conn { DIFF_ADMIN, DIFF_APP, DIFF_LISTENER, DIFF_HOLDER, DIFF_CONNS };

struct diff {
    struct rng rng;
    uint64_t seed;
    size_t call;
    struct fx_pg server;
    struct loop *l;
    struct side relays[RELAYS];
    struct conn *conns[DIFF_CONNS];
    struct notices pg_notices, mem_notices;
    struct mem_db *db;
    struct mem_session *mem_app, *mem_admin, *mem_holder;
    int64_t began_us; /* the seed, by the real clock */
    int64_t shift_us; /* the memory database's clock is so far ahead */
    int64_t pg_fingerprints[ACCOUNTS], mem_fingerprints[ACCOUNTS];
    int64_t last_hash, last_id; /* so many are in use */
    bool open;                  /* an application's transaction */
    char texts[TEXTS][256];     /* of the call that is built */
    size_t text_count;
    struct buf said; /* what the call is, for people */
    size_t spoil_at; /* the memory database is changed behind its back here; 0: not */
    bool differs;
    struct buf why;
};

/* ---- diff_run.c ---- */
void diff_open(struct diff *d); /* the server and both sides, once */
void diff_close(struct diff *d);
void diff_reset(struct diff *d); /* empty tables, on both sides */
int64_t diff_now_us(const struct diff *d);
int64_t diff_real_us(void);
/* One request to both sides; compares answers. */
void diff_request(struct diff *d, size_t relay, enum mem_request what, const union any_request *u);
void diff_found(struct diff *d, const char *what, const char *pg, const char *mem);
/* A statement of the superuser, or of the open transaction: its first cell, which the caller frees.
 * *ret_state gets the SQLSTATE, "" for success. */
char *diff_sql(struct diff *d, enum diff_conn conn, char ret_state[6], const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
char *diff_admin(struct diff *d, const char *sql); /* must succeed */

/* ---- random choices ---- */
uint64_t diff_below(struct diff *d, uint64_t n);
bool diff_chance(struct diff *d, unsigned percent);
const char *diff_text(struct diff *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const struct mem_account *diff_account(const struct diff *d, size_t i); /* of ACCOUNTS, from 0 */
/* The relay that leads the account, by what the memory database knows; else any one. */
size_t diff_leader(struct diff *d, size_t account);
int64_t diff_epoch(struct diff *d, size_t relay,
                   size_t account); /* that it knows, seldom a wrong one */

size_t diff_any_account(struct diff *d);
int32_t diff_number(struct diff *d, size_t account); /* seldom one that there is not */

/* Whose rows are written, and by whom. */
struct diff_target {
    size_t relay, account;
    const struct mem_account *a;
    int32_t number;
    int64_t epoch;
};
int64_t diff_nonce(struct diff *d, const struct mem_account *a);
void diff_hash(struct diff *d, const struct mem_account *a, int64_t nonce, uint8_t out[32]);
size_t diff_nonces(struct diff *d, const struct mem_account *a, int64_t nonces[NEW_ROWS]);
const char *diff_outcome(struct diff *d);
int64_t diff_waiting(struct diff *d, const struct list *rows); /* the id of one of them, mostly */

/* ---- what is called ---- */
void diff_state(struct diff *d, const struct diff_target *t);
void diff_finish(struct diff *d, const struct diff_target *t);
void diff_requeue(struct diff *d, const struct diff_target *t);
void diff_reject(struct diff *d, const struct diff_target *t);
void diff_any_call(struct diff *d);
void diff_read(struct diff *d, size_t relay, size_t account);
void diff_write(struct diff *d);
void diff_lead(struct diff *d);
void diff_take(struct diff *d, size_t account);
void diff_enqueue_signed(struct diff *d);
void diff_close_transaction(struct diff *d);
void diff_policy(struct diff *d, const struct mem_account *a, const struct mem_policy *p);
void diff_application(struct diff *d);
void diff_beside_held_row(struct diff *d);

/* ---- notifications ---- */
void diff_listen(struct diff *d);
void diff_hear(void *arg, const char *channel, const char *payload, int from_pid);
void diff_notice(void *arg, struct mem_session *to, const struct mem_notice *n);
void diff_notices_clear(struct diff *d);
void diff_notices_compare(struct diff *d); /* those since the last time */

/* ---- texts ---- */
void diff_answer(struct buf *b, enum mem_request what, const union any_request *u, int64_t now_ms);
const char *diff_request_name(enum mem_request what);
const char *diff_tables_sql(void); /* one statement that gives all tables */
void diff_tables_mem(const struct diff *d, struct buf *b);

#endif
