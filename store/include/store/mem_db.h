/* The memory database: the rules of schema/ over tables in memory, for many sessions at once. The
 * standalone relay has one for itself (store_mem_new); the simulator runs several relays, followers
 * and applications on one. test/unit/store/diff_test compares it with Postgres, call by call and
 * row by row.
 *
 * It has no loop and no clock of its own: every call is one transaction that takes effect before
 * it returns, at the time that its owner's clock says. What is lost on the way, and when, is the
 * owner's to decide. */
#ifndef STORE_MEM_DB_H
#define STORE_MEM_DB_H

#include "store/lead.h"
#include "store/mem_rows.h"
#include "store/operator.h"
#include "store/outbox.h"
#include "store/pending.h"

struct mem_db;
struct mem_session;

/* What a session may listen to. */
enum mem_channel {
    MEM_LEADER_CHANGE = 1,
    MEM_OUTBOX_WAKE = 2,
    MEM_TX_NEW = 4,
    MEM_TX_UPDATE = 8,
    MEM_TX_REMOVED = 16,
    MEM_TX_REFUSED =
        32, /* not Postgres': a node refused the current attempt, with an error that is new */
    MEM_LISTEN_SIGNALS = MEM_LEADER_CHANGE | MEM_OUTBOX_WAKE,
    MEM_LISTEN_ROWS = MEM_TX_NEW | MEM_TX_UPDATE | MEM_TX_REMOVED,
};

/* Its texts and hashes are valid during the callback alone. */
struct mem_notice {
    enum mem_channel channel;
    int32_t account;
    struct store_bytes account_id;
    /* MEM_LEADER_CHANGE */
    const char *holder, *address; /* NULL: no relay leads */
    int64_t epoch;
    /* MEM_TX_* */
    int64_t nonce;                    /* -1: none */
    int64_t id;                       /* 0: filler */
    const uint8_t *hash, *block_hash; /* NULL: none */
    const char *state;                /* NULL: none */
    const char *creator;              /* NULL: none */
    int64_t updated_us;
    const char *outcome; /* MEM_TX_REMOVED: how it ended; NULL: it goes on elsewhere */
    /* What no payload of Postgres says: how the nonce was used up, also of a transaction that
     * goes on, and why. */
    const char *nonce_outcome, *error;
};

struct mem_db_config {
    /* Microseconds since 1970, as clock_timestamp() is. Times of one row never repeat, whatever
     * it says. */
    int64_t (*now_us)(void *arg);
    /* Where requests name times of another clock: its present time. NULL: it is the same one. */
    int64_t (*wall_us)(void *arg);
    /* At the commit, once for each session that listens to the channel. */
    void (*on_notice)(void *arg, struct mem_session *to, const struct mem_notice *n);
    /* leader_evict or a failover has ended the session, and its memory goes. */
    void (*on_session_end)(void *arg, struct mem_session *s);
    /* A statement of another session keeps the account's row of leadership locked, for longer than
     * lock_timeout. NULL: none ever does. */
    bool (*lead_held)(void *arg, const struct mem_session *s, int32_t account);
    void *arg;
    size_t finished_most; /* most rows of finished_transactions that are kept; 0: all */
    size_t keys_most;     /* most idempotency keys; 0: all */
    bool always_wake;     /* MEM_OUTBOX_WAKE for every enqueue, whatever the doorbell says */
};
struct mem_db *mem_db_new(const struct mem_db_config *config);
struct mem_db *
mem_db_free(struct mem_db *db); /* ends its sessions without a word; NULL allowed; returns NULL */
int64_t mem_db_now_us(const struct mem_db *db);

/* ---- sessions ---- */

struct mem_session *mem_session_new(struct mem_db *db, void *owner, bool use_lock);
/* its locks are free, its open transaction is rolled back */
void mem_session_end(struct mem_session *s);
void *mem_session_owner(const struct mem_session *s);
void mem_session_listen(struct mem_session *s, unsigned channels); /* bits of enum mem_channel */
/* A statement of it begins: leader_evict asks how long a session has done the same. */
void mem_session_active(struct mem_session *s);

/* The requests of the store's headers: MEM_REQUEST_claim is store_claim_start's. */
enum mem_request {
#define X(name, type) MEM_REQUEST_##name,
    STORE_LEAD_REQUESTS(X) STORE_OUTBOX_REQUESTS(X) STORE_PENDING_REQUESTS(X)
        STORE_OPERATOR_REQUESTS(X)
#undef X
            MEM_REQUEST_COUNT
};

/* Carry the request out now. Fills in its err, what it returns and its arena (store_req_done
 * frees that), as the answer of Postgres would; its callback is not called. lock and
 * doorbell_arm stack, as Postgres' locks do: who does not want that must not ask for a lock that
 * it has (as the stores of store.h do not). In an open transaction only enqueue may come. */
void mem_session_run(struct mem_session *s, enum mem_request what, struct store_req *req);

/* ---- applications and operators ---- */

/* An open transaction: what it enqueues is seen after its commit; until mem_release it holds the
 * doorbells of its accounts, if their leaders were awake when it came. */
void mem_begin(struct mem_session *s);
/* visible, told to who listens; the doorbells are still held */
void mem_commit(struct mem_session *s);
void mem_release(struct mem_session *s);  /* after mem_commit */
void mem_rollback(struct mem_session *s); /* in place of both */

/* As a transaction that has cancelled or bumped this one and stays open: its row waits in an
 * outbox and is locked. False: it does not wait, or is held already. A session holds one row at
 * most. To commit, let go and carry the request out in the same moment; the end of the session lets
 * go too. */
bool mem_lock_row(struct mem_session *s, int64_t id);
void mem_unlock_row(struct mem_session *s);
/* Its user is no relay: leader_evict ends it at once if it has a leadership lock. */
void mem_session_foreign(struct mem_session *s);

struct mem_signed_call {
    const char *account; /* alias, 0x id or address; NULL: the signer */
    struct store_bytes extrinsic;
    const char *key, *creator; /* NULL: none */
    bool unchecked;            /* its form and who signed it are not looked at: `account` did */
};
/* These return 0 or a code of base/error.h with the text in *err. */
int mem_enqueue_signed(struct mem_session *s, const struct mem_signed_call *call, int64_t *ret_id,
                       struct err *err);
int mem_account_pause(struct mem_session *s, const char *account, const char *reason,
                      struct err *err);
int mem_account_policy(struct mem_session *s, const char *account, const struct mem_policy *policy,
                       struct err *err);
int mem_account_rewind(struct mem_session *s, const char *account, struct err *err);
int mem_account_reconcile(struct mem_session *s, const char *account, int64_t block,
                          struct err *err);

/* ---- failover ---- */

/* What a standby has: a copy of the tables, no sessions. */
struct mem_copy;
struct mem_copy *mem_copy_new(const struct mem_db *db);
struct mem_copy *mem_copy_free(struct mem_copy *c); /* NULL allowed; returns NULL */
/* All sessions end (on_session_end). A standby takes over on the next timeline: with a copy, the
 * commits since then are lost; ids go on from the higher sequence. The copy is the caller's as
 * before. */
void mem_db_promote(struct mem_db *db, const struct mem_copy *copy);
void mem_db_restart(struct mem_db *db); /* all sessions end, nothing is lost */
uint32_t mem_db_timeline(const struct mem_db *db);

/* ---- what followers read: the rows of listen/sql ---- */

struct mem_follow_row {
    int32_t account;
    int64_t nonce;                                 /* -1: none */
    int64_t id;                                    /* 0: none */
    const uint8_t *hash, *block_hash;              /* NULL: none */
    int64_t block_number;                          /* -1: none */
    const char *state, *outcome, *error, *creator; /* NULL: none */
    const char *trace; /* NULL: none; a finished row of this database keeps none */
    int64_t at_us;
};
int64_t mem_follow_position(const struct mem_db *db); /* microseconds since 1970 */
/* account and id 0: of all. Return how many rows there are in *ret, at most `limit`. */
size_t mem_scan_pending(const struct mem_db *db, int32_t after_account, int64_t after_nonce,
                        int32_t account, int64_t id, size_t limit, struct mem_follow_row *ret);
size_t mem_scan_finished(const struct mem_db *db, int64_t after_us, int32_t after_account,
                         int64_t after_nonce, int64_t after_id, int32_t account, int64_t id,
                         size_t limit, struct mem_follow_row *ret);
/* The ends of these transactions, and of fillers at these nonces. */
size_t mem_find_finished(const struct mem_db *db, size_t count, const int64_t *ids, size_t fillers,
                         const int32_t *accounts, const int64_t *nonces, size_t limit,
                         struct mem_follow_row *ret);

/* ---- the tables, to be read ---- */

size_t mem_account_count(const struct mem_db *db);
const struct mem_account *mem_account_at(const struct mem_db *db,
                                         int32_t number);              /* from 1; NULL: none */
const struct mem_row *mem_row_of(const struct mem_db *db, int64_t id); /* not ended; NULL: none */
const struct mem_finished *mem_finished_of(const struct mem_db *db,
                                           int64_t id); /* its end; NULL: none */
const struct mem_row *mem_pending_at(const struct mem_db *db, int32_t account, int64_t nonce);
const struct mem_nonce *mem_nonce_at(const struct mem_db *db, int32_t account, int64_t nonce);
size_t mem_finished_count(const struct mem_db *db); /* in the order of their times */
const struct mem_finished *mem_finished_at(const struct mem_db *db, size_t i);
int64_t mem_last_id(const struct mem_db *db);
/* The session that has the lock of this key, NULL: none. */
struct mem_session *mem_lock_owner(const struct mem_db *db, int64_t lock_key);
struct mem_session *mem_doorbell_owner(const struct mem_db *db, int32_t account);

#endif
