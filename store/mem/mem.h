/* Private to store/mem/: the memory database (store/mem_db.h), which keeps the rules of
 * schema/ over tables in memory, and the store that has one for itself.
 *
 *   mem_store.c      the store of a standalone relay: requests run in turn, from the loop
 *   mem_db.c         the database: clock, sessions, open transactions, timelines
 *   mem_text.c       texts and bytes that rows share, and the memory of answers
 *   mem_name.c       states, outcomes and amounts as texts; errors as Postgres raises them
 *   mem_tables.c     rows are put in, taken out and found
 *   mem_done.c       frees the tables
 *   mem_copy.c       copies of them, as a standby has
 *   mem_lock.c       advisory locks of sessions
 *   mem_notice.c     notifications
 *   mem_account.c    accounts: registration, names, the fence
 *   mem_lead.c       claims, releases, evictions
 *   mem_lease.c      renewals
 *   mem_member.c     the relays that live
 *   mem_enqueue.c    enqueue
 *   mem_presigned.c  presigned transactions
 *   mem_key.c        idempotency keys
 *   mem_read.c       the leader's reads
 *   mem_requests.c   the request poll: deadlines, cancellations, bumps
 *   mem_due.c        which accounts have something to do
 *   mem_admit.c      admission and new attempts
 *   mem_fill.c       fillers
 *   mem_adopt.c      what a failover lost
 *   mem_lost.c       the wait after it
 *   mem_state.c      what nodes reported
 *   mem_end.c        ends of nonces
 *   mem_requeue.c    the way back to the outbox
 *   mem_reject.c     ends without a nonce
 *   mem_ask.c        requests of applications: cancellations and bumps
 *   mem_retry.c      the third one: retries
 *   mem_operator.c   pauses, suspensions, policies, nonces
 *   mem_follow.c     what followers and the owner read
 *
 * A request is checked as a whole before it changes anything, so that one that fails has changed
 * nothing. Nothing survives the process: a standalone relay has no history but the chain's. */
#ifndef STORE_MEM_MEM_H
#define STORE_MEM_MEM_H

#include "base/alloc.h"
#include "base/plant.h"
#include "base/table.h"
#include "store/mem_db.h"
#include "store_internal.h"

enum { MEM_CALL_MAX = 1 << 20, MEM_KEY_MAX = 200, MEM_CREATOR_MAX = 200, MEM_SHA_LEN = 32 };

/* Where a transaction is. */
struct mem_id {
    UT_hash_handle hh;
    int64_t id;
    struct mem_row *row; /* NULL: it has ended */
    int64_t end;         /* serial of its row in finished_transactions; -1: it has not ended */
};

/* An idempotency key and what it stands for. */
struct mem_key {
    UT_hash_handle hh; /* in the order of insertion */
    int64_t id;
    uint8_t sha[MEM_SHA_LEN];
    /* whose transaction, not committed, has made it; NULL: committed */
    const struct mem_session *open;
    char name[]; /* "account number:key" */
};

struct mem_member {
    const char *holder, *address;
    int64_t serves, best;
    uint32_t pid; /* 0: NULL */
    int64_t heartbeat_us;
    char obstacle[40], obstacle_text[400]; /* "": none */
};

/* Its times and its block are also written to the accounts that it holds. */
struct mem_lease {
    const char *holder;
    int64_t seen_block, heartbeat_us, expiry_1_us, expiry_2_us;
};

struct mem_tables {
    struct mem_account **accounts; /* number - 1 is the index */
    size_t account_count;
    int64_t last_id;
    struct mem_id *ids;
    struct mem_finished *finished; /* in the order of their times */
    size_t finished_count, finished_cap;
    int64_t finished_first; /* serial of the first one that is kept */
    struct mem_key *keys;
    struct mem_member *members; /* by name */
    size_t member_count;
    struct mem_lease *leases;
    size_t lease_count;
};

struct mem_copy {
    struct mem_tables t;
};

enum mem_lock_kind { MEM_LOCK_ACCOUNT, MEM_LOCK_DOORBELL, MEM_LOCK_STRICT };
struct mem_lock_key {
    int64_t kind, key;
};
struct mem_lock {
    UT_hash_handle hh;
    struct mem_lock_key key;
    struct mem_session *owner; /* exclusive; NULL: none */
    uint32_t count;            /* how often it was taken */
    uint32_t shared;           /* open transactions that have it shared */
};

struct mem_db {
    struct mem_db_config config;
    struct mem_tables t;
    uint32_t timeline;
    int64_t stamp_us, wall_ahead_us;
    uint32_t last_pid;
    struct list sessions;
    struct mem_lock *locks;
};

/* What an open transaction has done. */
struct mem_staged {
    struct mem_row **rows;
    size_t row_count;
    struct mem_lock_key *locks; /* shared doorbells, and turns of strict order */
    size_t lock_count;
    int32_t *wakes; /* accounts whose leaders are to be notified */
    size_t wake_count;
    struct mem_key **keys;
    size_t key_count;
};

struct mem_session {
    struct list node;
    struct mem_db *db;
    void *owner;
    uint32_t pid;
    unsigned channels;
    bool use_lock, open, committed, foreign;
    int64_t changed_us; /* when its last statement began or ended */
    int64_t held_id;    /* whose row it holds; 0: none */
    struct mem_staged staged;
};

/* ---- texts, bytes, names ---- */

const char *mem__text(const char *s); /* a copy that rows may share; NULL stays */
const char *mem__share(const char *text);
void mem__drop(const char *text);
void mem__replace(const char **slot, const char *s);
struct store_bytes mem__bytes(struct store_bytes b);
struct store_bytes mem__share_bytes(struct store_bytes b);
void mem__drop_bytes(struct store_bytes b);
bool mem__same_bytes(struct store_bytes a, struct store_bytes b);

/* Memory of an answer, until store_req_done. */
struct mem_answer;
struct mem_answer *mem__answer(struct store_req *req);
void *mem__put(struct mem_answer *a, const void *data, size_t n); /* data NULL: zeroes */
const char *mem__put_text(struct mem_answer *a, const char *s);   /* NULL stays */
struct store_bytes mem__put_bytes(struct mem_answer *a, struct store_bytes b);
const char *mem__put_amount(struct mem_answer *a, u128 v);

/* false: there is no such name */
bool mem__state_of(const char *name, enum mem_state *ret);
bool mem__outcome_of(const char *name, enum mem_outcome *ret);
bool mem__names_block(enum mem_state state);
/* A block holds its current attempt, as far as the row says. */
bool mem__has_block(const struct mem_row *row);
/* This block does not hold it any more: goes into its history. */
void mem__retracted(struct mem_row *row, const uint8_t block[32]);

int mem__held(struct err *err, const struct mem_row *row); /* must_be_free fails */
/* Fill in what Postgres would have raised; returns the code. */
int mem__fail(struct err *err, const char *sqlstate, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- the database ---- */

int64_t mem__stamp(struct mem_db *db); /* the time now, later than any that was given before */
#define MEM_PUSH(array, count, cap, value)                                                         \
    do {                                                                                           \
        GROW(array, count, cap);                                                                   \
        (array)[(count)++] = (value);                                                              \
    } while (0)

/* ---- tables ---- */

void mem__tables_init(struct mem_tables *t);
void mem__tables_done(struct mem_tables *t);
struct mem_account *mem__account_new(struct mem_tables *t);
struct mem_row *mem__row_new(int32_t account, int64_t id);
void mem__row_free(struct mem_row *row);
void mem__attempt_done(struct mem_attempt *t);
void mem__nonce_free(struct mem_nonce *n);
void mem__finished_done(struct mem_finished *f);
/* The first of the account's pending rows, of its nonces, that is not below. */
size_t mem__pending_from(const struct mem_account *a, int64_t nonce);
size_t mem__nonces_from(const struct mem_account *a, int64_t nonce);
struct mem_row *mem__pending(const struct mem_account *a, int64_t nonce);    /* NULL: none */
struct mem_nonce *mem__nonce_at(const struct mem_account *a, int64_t nonce); /* NULL: never used */
struct mem_nonce *mem__nonce_make(struct mem_account *a, int64_t nonce);
int64_t mem__last_pending(const struct mem_account *a); /* -1: none */
/* The number of the attempt with this hash, the last one if there are several; 0: none. */
size_t mem__attempt_of(const struct mem_nonce *n, const uint8_t hash[32]);
/* The account may have used the nonce before, in a former life. A transaction has the attempts that
 * name it, a filler those of whatever had the nonce before it, and neither has one that a block on
 * record holds. */
bool mem__is_own(const struct mem_row *row, const struct mem_attempt *t);
size_t mem__own_attempt(const struct mem_row *row, const uint8_t hash[32]); /* as above */
struct mem_attempt *mem__current(const struct mem_row *row);
void mem__attempt_add(struct mem_nonce *n, const struct mem_attempt *t);
struct mem_id *mem__id(const struct mem_tables *t,
                       int64_t id); /* NULL: there is no such transaction */
struct mem_id *mem__id_make(struct mem_tables *t, int64_t id);
/* In the outbox of the account (NULL: of any), or what waits there that was signed elsewhere;
 * NULL: none. */
struct mem_row *mem__waiting(const struct mem_tables *t, enum mem_table table,
                             const struct mem_account *a, int64_t id);
/* A row enters or leaves a table; it belongs to the caller in between. */
void mem__outbox_put(struct mem_tables *t, struct mem_account *a, struct mem_row *row);
void mem__signed_put(struct mem_tables *t, struct mem_account *a, struct mem_row *row);
void mem__waiting_take(struct mem_account *a, struct mem_row *row); /* of either */
void mem__pending_put(struct mem_account *a, struct mem_row *row, int64_t nonce);
void mem__pending_take(struct mem_account *a, struct mem_row *row);
/* A copy of *f is kept; its texts and bytes are the table's from then on. */
void mem__finished_put(struct mem_db *db, const struct mem_finished *f);
struct mem_finished *mem__finished(const struct mem_tables *t,
                                   int64_t serial); /* NULL: not kept any more */
void mem__tables_copy(struct mem_tables *to, const struct mem_tables *from);

/* ---- locks ---- */

bool mem__lock_take(struct mem_session *s, enum mem_lock_kind kind, int64_t key);
bool mem__lock_drop(struct mem_session *s, enum mem_lock_kind kind, int64_t key);
struct mem_session *mem__lock_owner(const struct mem_db *db, enum mem_lock_kind kind, int64_t key);
bool mem__lock_held(const struct mem_session *s, enum mem_lock_kind kind, int64_t key);
bool mem__lock_free_for(const struct mem_session *s, enum mem_lock_kind kind, int64_t key);
/* For an open transaction: shared, or alone. Returns false where another session stands in the
 * way. */
bool mem__lock_share(struct mem_session *s, enum mem_lock_kind kind, int64_t key);
void mem__locks_release(struct mem_session *s); /* of an open transaction */
void mem__locks_end(struct mem_session *s);     /* all that the session has */

/* ---- notices ---- */

void mem__notify_leader(struct mem_db *db, const struct mem_account *a);
void mem__notify_wake(struct mem_db *db, const struct mem_account *a);
void mem__notify_row(struct mem_db *db, enum mem_channel channel, const struct mem_row *row);
void mem__notify_refused(struct mem_db *db, const struct mem_row *row, const char *error);
/* A row is gone: its record, and whether the transaction goes on. */
void mem__notify_removed(struct mem_db *db, const struct mem_finished *f);

/* ---- accounts ---- */

struct mem_account *mem__account(const struct mem_db *db, int32_t number); /* NULL: there is none */
int64_t mem__max(int64_t a, int64_t b);
/* Is its row of leadership locked by a statement of another session, for long? */
bool mem__lead_held(const struct mem_session *s, const struct mem_account *a);
/* Its new claim joins the lease of its holder, and extends it. */
void mem__lease_join(struct mem_db *db, struct mem_account *a, int64_t now);
int mem__check_expiry(uint32_t expiry_1_ms, uint32_t expiry_2_ms, struct err *err);
int mem__check_relay(const char *holder, const char *address, struct err *err);
struct mem_account *mem__fence(struct mem_db *db, int32_t number, int64_t epoch, struct err *err);
struct mem_account *mem__account_of(const struct mem_db *db, const char *name, struct err *err);
bool mem__mid_submission(const struct mem_account *a);
int64_t mem__next_nonce(const struct mem_account *a); /* -1: any will do */
void mem__facts(const struct mem_account *a, struct mem_answer *answer, struct store_account *ret);
int64_t mem__fingerprint(const struct mem_account *a); /* of these facts */

/* ---- rows ---- */

/* The texts, tips, nonces and outcomes of a batch, as Postgres casts them. */
bool mem__amount(const char *text, u128 *ret); /* false: not a whole number of 128 bits */
int mem__check_nonces(size_t count, int64_t (*nonce_of)(const void *rows, size_t i),
                      const void *rows, struct err *err);
int mem__check_rows(size_t count, int64_t (*nonce_of)(const void *rows, size_t i), const void *rows,
                    struct err *err);
int64_t mem__attempt_nonce(const void *rows, size_t i);
/* A new attempt at the row's nonce, which becomes the current one. */
struct mem_attempt mem__attempt_new(const struct store_attempts *r,
                                    const struct store_attempt_row *in,
                                    uint32_t transaction_version, int64_t id);
void mem__pend(struct mem_db *db, struct mem_account *a, struct mem_row *row, int64_t nonce,
               const struct mem_attempt *t);
void mem__signed_pend(struct mem_db *db, struct mem_account *a, struct mem_row *row,
                      const struct mem_attempt *t, int64_t nonce, size_t call_len);
void mem__attempt_again(struct mem_db *db, struct mem_account *a, struct mem_row *row,
                        const struct mem_attempt *t, const char *reason);
void mem__outbox_end(struct mem_db *db, struct mem_account *a, struct mem_row *row,
                     enum mem_outcome outcome, const char *error, int64_t epoch);
struct mem_ending {
    const uint8_t *hash, *block; /* NULL: none */
    int64_t number;
    int32_t index;
    enum mem_outcome outcome;
    const char *error;
    bool has_fee;
    u128 fee;
};
void mem__nonce_end(struct mem_db *db, struct mem_account *a, struct mem_row *row,
                    const struct mem_ending *end);
void mem__nonces_used(struct mem_account *a, int64_t nonce, int64_t block);
int64_t mem__finish_nonce(const void *rows, size_t i);
/* The columns of a row of finish and requeue. */
struct mem_ending mem__ending(const struct tx_end *in);

/* ---- lost commits ---- */

int mem__check_reconciled(const struct mem_account *a, struct err *err);
int mem__check_eras(const struct mem_account *a, const struct store_attempts *r, struct err *err);
int64_t mem__lost_until(const struct mem_account *a); /* -1: not known yet */

/* ---- applications ---- */

int64_t mem__new_id(struct mem_db *db);
int64_t mem__from_wall(struct mem_db *db, int64_t wall_ms); /* 0: none */
int64_t mem__wall_ms(struct mem_db *db, int64_t at_us);     /* -1: none */
/* The trace is shared. */
struct mem_options mem__options_of(const struct mem_row *row);
void mem__enqueued(struct mem_session *s, struct mem_account *a, struct mem_row *row);
/* The key's transaction: *id if it is new. TR012 where it stands for other bytes. */
int mem__key_use(struct mem_session *s, const struct mem_account *a, const char *key,
                 const uint8_t sha[MEM_SHA_LEN], int64_t *id, struct err *err);
void mem__keys_settle(struct mem_session *s, bool committed);
void mem__sha(struct store_bytes b, uint8_t out[MEM_SHA_LEN]);
bool mem__cancelled(const struct mem_account *a, int64_t id);
/* mem__outbox_end, of which the leader reads at its next poll for requests. */
void mem__end_told(struct mem_db *db, struct mem_account *a, struct mem_row *row,
                   enum mem_outcome outcome, const char *error, int64_t epoch);

#define X(name, type) void mem__##name(struct mem_session *s, struct type *r);
STORE_REQUESTS(X)
#undef X

#endif
