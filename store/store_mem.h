/* Private to store/store_mem*.c: the database's rules (schema/migrations) over plain memory.
 *
 *   store_mem.c        requests run one after the other from the loop, as a database would answer them
 *   store_mem_lead.c   accounts, locks, claims, pauses
 *   store_mem_outbox.c enqueue, admission, rejection
 *   store_mem_rows.c   pending rows: attempts, states, fillers
 *   store_mem_ends.c   pending rows: ends, and the way back to the outbox
 *   store_mem_read.c   the leader's reads
 *   store_mem_due.c    what is read for many accounts at once
 *   store_mem_ask.c    cancellations, bumps
 *
 * Nothing survives the process: a standalone relay has no history but the chain's. */
#ifndef STORE_STORE_MEM_H
#define STORE_STORE_MEM_H

#include "base/buf.h"
#include "base/table.h"
#include "store_internal.h"

struct mem_attempt {
    uint8_t hash[32];
    struct store_bytes extrinsic; /* owned */
    char *tip;                    /* owned */
    int64_t era_birth, era_death;
    uint32_t spec_version;
    uint32_t filler_len; /* it ends with a filler's call of so many bytes; 0: the transaction's own */
    int64_t block;
};

struct mem_row {      /* of the outbox, then pending */
    struct list node; /* outbox: order of admission */
    UT_hash_handle hh;
    int64_t id;              /* 0: filler */
    struct store_bytes call; /* owned */
    char *creator;
    char *key; /* NULL: none */
    int32_t priority;
    uint64_t not_before, deadline; /* of the loop's clock; 0: none */
    uint32_t guard, retries;
    char *tip, *max_tip;    /* NULL: the account's policy */
    int64_t deadline_block; /* -1: none */
    bool cancelled;         /* somebody asked for its end */
    char *bump;             /* somebody asked for this tip; NULL: nobody */
    /* pending */
    int64_t nonce;
    char state[20];
    bool unknown;
    bool leaving; /* goes at the end of the request */
    bool has_block;
    uint8_t block_hash[32];
    int64_t block_number;
    struct mem_attempt *attempts; /* owned; the last one is current */
    size_t attempt_count;
    char *stop_outcome, *stop_reason; /* how it ends if a filler of its own gets in; NULL: none signed */
    char *refusal; /* why the node did not take it, the last time; NULL: it never refused */
};

/* An idempotency key and the call that it stands for. The oldest goes when there are too many. */
struct mem_key {
    UT_hash_handle hh; /* in the order of insertion */
    int64_t id;
    struct store_bytes call; /* owned */
    char name[];             /* "account number:key" */
};

struct mem_member {
    char *holder; /* owned */
    int64_t serves, best;
    uint64_t heartbeat; /* of the loop's clock */
};

struct mem_account {
    int32_t number;
    char *alias, *scheme, *address;
    struct buf account_id, genesis;
    int64_t lock_key;
    bool locked; /* by this process */
    char *claimant, *claimant_address;
    bool lock_held;
    int64_t epoch;
    uint64_t expiry_1, expiry_2; /* of the loop's clock */
    int64_t next_nonce;          /* -1: not known */
    int64_t first_nonce;         /* that ever had a row; -1: none. A lower one was never ours */
    bool paused;
    const char *hold; /* "": none */
    bool reborn;
    uint32_t transaction_version;   /* 0: any */
    int64_t used_nonce, used_block; /* -1: unknown */
    bool timed; /* there may be rows with a time, a cancellation or a bump: a look has something to do */
    struct list outbox;
    struct mem_row *by_id;    /* hash over the outbox */
    struct mem_row **pending; /* by nonce */
    size_t pending_count, pending_cap;
};

struct store_mem {
    struct store base;
    struct store_mem_config config;
    struct mem_account **accounts; /* number - 1 is the index */
    size_t account_count;
    int64_t last_id;
    struct mem_key *keys;
    struct mem_member *members; /* by name */
    size_t member_count;
    bool closing;
    struct loop_task open_task, close_task;
    void (*close_cb)(void *arg);
    void *close_arg;
};

static inline struct store_mem *mem_of(struct store *s)
{
    return (struct store_mem *)(void *)s;
}

char *mem__copy(const char *s); /* NULL stays */
struct store_bytes mem__copy_bytes(const void *data, size_t len);

/* The account, or NULL with the error of an unknown one. */
struct mem_account *mem__account(struct store_mem *s, int32_t number, struct err *err);
/* The account if the epoch is the current one of a claim, else NULL with ERR_LOST_LEADERSHIP. */
struct mem_account *mem__fence(struct store_mem *s, int32_t number, int64_t epoch, struct err *err);
struct mem_account *mem__find(struct store_mem *s, const char *name); /* alias, 0x id or address */
bool mem__mid_submission(const struct mem_account *a);
void mem__account_free(struct mem_account *a);
void mem__rows_free(struct mem_account *a);

void mem__facts(const struct mem_account *a, struct store_account *ret);
int64_t mem__mark(const struct mem_account *a); /* of these facts */
/* A nonce is used up for good, in this block (-1: not known in which). */
void mem__used(struct mem_account *a, int64_t nonce, int64_t block);

/* Amounts: decimal text of up to 128 bits. */
__extension__ typedef unsigned __int128 mem_amount;
bool mem__amount(const char *text, mem_amount *ret); /* false: it is none */
char *mem__amount_text(mem_amount v);                /* owned by the caller */

/* Rows. The index in a->pending of the first nonce that is not below. */
size_t mem__lower_bound(const struct mem_account *a, int64_t nonce);
struct mem_row *mem__pending(const struct mem_account *a, int64_t nonce); /* NULL: none */
void mem__pending_insert(struct mem_account *a, struct mem_row *row);
void mem__row_free(struct mem_row *row);
void mem__row_attempts_free(struct mem_row *row);
void mem__set_state(struct mem_row *row, const char *state);
/* The number of the attempt with this hash, 0: none. */
size_t mem__attempt_of(const struct mem_row *row, const uint8_t hash[32]);
/* No nonce twice; a nonce without a row is for the caller to judge. */
int mem__check_nonces(const struct mem_account *a, size_t count,
                      int64_t (*nonce_of)(const void *rows, size_t i), const void *rows, struct err *err);
struct mem_row *mem__queued(struct mem_account *a, int64_t id); /* in the outbox; NULL: not there */
void mem__outbox_insert(struct mem_account *a, struct mem_row *row);
void mem__outbox_end(struct store_mem *s, struct mem_account *a, struct mem_row *row, const char *outcome,
                     const char *error);
void mem__row_attempt(struct mem_row *row, const struct store_attempts *r,
                      const struct store_attempt_row *in);
int64_t mem__next_nonce(const struct mem_account *a); /* -1: any will do */
bool mem__ends(const char *outcome); /* an outcome that a transaction without inclusion may have */
void mem__tell(struct store_mem *s, const char *kind, const struct mem_account *a, const struct mem_row *row,
               const char *outcome, const char *error);

#define X(name, type) void mem__##name(struct store_mem *s, struct type *r);
STORE_REQUESTS(X)
#undef X

#endif
