/* The simulator: several relays with their real cores, a database, a chain with several nodes, applications
 * and followers, all on one queue of events in virtual time and driven by one seed.
 *
 *   sim_queue.c   events, timers, the trace            sim_relay.c    a process: its life, its accounts
 *   sim_chain.c   blocks, forks, finality              sim_store.c    its connections to the database
 *   sim_pool.c    pools of the nodes                   sim_elect.c    its elections and locks
 *   sim_db.c      sessions, locks, notifications       sim_door.c     its connection to a node
 *   sim_claim.c   leadership in SQL                    sim_submit.c   what it sends there
 *   sim_rows.c    the leader's writes in SQL           sim_plan.c     what a seed is like
 *   sim_ends.c    those that end something             sim_operator.c who pauses and resumes
 *   sim_read.c    its reads, and a listener's          sim_duty.c     what a core must and must not ask for
 *   sim_app.c     who enqueues                         sim_follower.c who listens
 *   sim_check.c   the invariants                       sim_request.c  its requests to the database
 *   sim_fault.c   what goes wrong                      sim_world.c    one seed from begin to end
 *
 * The glue (sim_relay, sim_store, sim_request, sim_elect, sim_door, sim_submit) does what relay/account*.c,
 * relay/service*.c, election/election*.c, store/store_pg*.c and chain/node*.c do, step by step: a difference
 * is a bug of the simulator. The database does what schema/migrations say. Times are microseconds unless they
 * say ms. */
#ifndef TEST_SIM_SIM_H
#define TEST_SIM_SIM_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/backoff.h"
#include "base/check.h"
#include "base/error.h"
#include "base/list.h"
#include "base/plant.h"
#include "base/rng.h"
#include "election/elector.h"
#include "listen/cursor.h"
#include "relay/manager.h"
#include "relay/wake.h"

enum {
    RELAYS = 4,
    ACCOUNTS = 3,
    NODES = 3,
    FOLLOWERS = 2,
    IDS = 512,
    NONCES = 512,
    ATTEMPTS = 128,
    TXS = 6000,
    BLOCKS = 3000,
    BLOCK_TXS = 10,
    POOL = 128,
    WATCHES = 512,
    SESSIONS = 64,
    PIPELINE = 4, /* blocks that a door fetches ahead */
    CALL_LEN = 8,
    BYTES_LEN = 24,
    TRACE_LINES = 200000, /* kept; the last 60 are shown unless --lines asks for more */
    TRACE_LEN = 200,
};

/* What a seed may have beside the plain life of transactions: X(NAME, name). */
#define FEATURE_TABLE(X)                                                                                     \
    X(TIPS, "tips")                 /* tips, caps, the ladder, blocks that take the best payers only */      \
    X(SIZE, "size")                 /* small blocks */                                                       \
    X(FOREIGN_POOL, "foreign-pool") /* somebody else's bytes at our nonces in the pool */                    \
    X(REAP, "reap")                 /* accounts die and live again */                                        \
    X(VERSION, "version")           /* transaction_version changes */                                        \
    X(RETRIES, "retries")           /* dispatch errors that pass, and inner ones that do not */              \
    X(LAST_BLOCK, "last-block")     /* deadline_block */                                                     \
    X(BUMPS, "bumps")               /* somebody asks for higher tips */                                      \
    X(SKIP, "skip")                 /* the head of the line is given up after so many blocks */              \
    X(REQUEUE, "requeue")           /* what lost its nonce goes back to the outbox */                        \
    X(PAUSES, "pauses")             /* operators pause, and resume what they like */                         \
    X(DUTIES, "duties")             /* refusals must be recorded, payment is tried once a block */
enum feature {
#define X(NAME, name) FEATURE_##NAME,
    FEATURE_TABLE(X)
#undef X
        FEATURE_COUNT
};

#define MS     ((uint64_t)1000)
#define SECOND (1000 * MS)
#define NEVER  UINT64_MAX

struct world;

/* ---- events ---- */

struct event {
    uint64_t at, seq;
    const char *name;
    void (*run)(struct world *w, struct event *e);
    void (*drop)(struct event *e); /* instead of run, when the process it was for is gone */
    struct event *next;            /* in a list of held or of free ones */
    int relay;                     /* whose process runs it; -1: nobody's */
    uint32_t life;
    int account;
    uint32_t a, b;
    uint64_t n;
    void *p;
};

struct timer {
    uint64_t at; /* local ms; NEVER: not armed */
    uint32_t token;
};

/* ---- the chain ---- */

/* Every extrinsic that was ever signed; its hash names its index. */
struct tx {
    int account;
    uint64_t nonce;
    int64_t id;     /* whose call it carries; 0: a filler's; -1: somebody else used the key */
    int64_t for_id; /* the transaction that had the nonce when it was signed */
    uint64_t tip;
    int64_t birth, death; /* -1: immortal */
    uint32_t anchor;      /* block that the era is anchored on */
    uint32_t spec;
    uint32_t priority;
    uint32_t prev_nonce, prev_id; /* other ones of the same nonce, of the same transaction; 0: none */
    bool committed;               /* is or was on record */
    bool accepted;                /* some pool has had it */
    bool reached;                 /* was seen by a node */
    uint64_t sent_beat;           /* of whom sent it last, and that one: no bytes twice in one beat */
    int sent_by;
    uint64_t poor_at; /* see poor_block */
    uint64_t
        poor_block;    /* counted from 1: when it was sent by a relay that knew that the account cannot pay */
    uint32_t final_in; /* block that holds it; 0: not final */
    uint64_t ban_until[NODES];
    uint64_t included_at[NODES]; /* when the node saw it in its best chain; 0: it is not */
    uint8_t in_pool;             /* mask of nodes */
};

struct block {
    uint32_t parent;
    uint64_t number;
    uint32_t spec; /* of the runtime after it */
    uint32_t count;
    uint32_t txs[BLOCK_TXS];
    uint64_t nonce[ACCOUNTS]; /* after it */
    uint32_t life[ACCOUNTS];  /* so many times the account was reaped */
    bool final;
};

struct watch {
    bool used;
    uint32_t tx;
    int relay;
    uint32_t life, link; /* of the relay's connection */
    uint32_t sub;
    uint32_t block; /* it was told to be in; 0: none */
};

struct node {
    uint32_t best, final;
    uint32_t pool[POOL];
    uint32_t pool_count, pool_limit;
    struct watch watches[WATCHES];
    uint32_t watch_count; /* high-water mark */
    uint64_t down_until, trap_until, lag_until;
    uint32_t starts;
};

struct chain {
    struct tx txs[TXS];
    uint32_t tx_count;
    struct block blocks[BLOCKS];
    uint32_t block_count;
    uint32_t final;            /* newest finalized block */
    uint32_t final_at[BLOCKS]; /* block by height */
    uint32_t last_of_nonce[ACCOUNTS][NONCES], last_of_id[IDS];
    uint32_t spec;
    uint32_t version_from[4]; /* transaction_version grows by one with each of these specs; 0: none */
    uint64_t min_tip;         /* who pays less finds no room in a block */
    uint64_t stall_until;     /* finality */
    bool unpaid[ACCOUNTS];
    struct node nodes[NODES];
};

/* ---- the database ---- */

enum stage { STAGE_NONE, STAGE_OPEN, STAGE_OUTBOX, STAGE_PENDING, STAGE_FINISHED };

struct id_row {
    enum stage stage; /* OPEN: in a transaction that is not committed */
    int account;
    int32_t priority;
    int64_t nonce;                      /* pending, finished with one: else -1 */
    const char *outcome;                /* finished */
    bool silent;                        /* its enqueue found the leader awake: nobody was notified */
    bool cancelled;                     /* somebody asked for it */
    int64_t deadline_us, not_before_us; /* of the database's clock; 0: none */
    uint32_t guard;                     /* runtime that it is for; 0: any */
    int64_t tip, max_tip;               /* -1: the account's policy */
    uint64_t deadline_block;            /* 0: none */
    uint32_t retries, retried;          /* dispatch errors that may follow, and that were forgiven */
    int64_t bump;                       /* the tip that somebody asked for; -1: none */
    uint64_t bumped_at;
};

struct pending_row {
    bool used;
    int64_t id;  /* 0: filler */
    uint32_t tx; /* current attempt */
    const char *state;
    uint32_t block;     /* block hash; 0: none */
    uint64_t signed_at; /* finalized height when the row's current attempt was signed */
    int64_t updated_us;
    const char *stop_outcome; /* with a filler among the attempts */
    uint32_t own_from;        /* the first of the attempts that belongs to this row */
    uint32_t attempt_count;
    uint32_t attempts[ATTEMPTS]; /* of this nonce, in order; the last one is current */
};

struct finished_row {
    int account;
    int64_t nonce, id;
    uint32_t tx;    /* 0: none */
    uint32_t block; /* 0: none */
    const char *state, *outcome;
    int64_t finished_us;
    int64_t requeued; /* the transaction that went back to the outbox; 0: none */
};

struct account_row {
    int holder; /* 0: nobody */
    int64_t epoch;
    bool lock_held;
    uint32_t lock_pid; /* serial of the session */
    int64_t expiry_1_us, expiry_2_us;
    int64_t next_nonce; /* -1: never set */
    bool paused, by_leader, reborn;
    enum manager_hold hold;
    int64_t life_since_us;
    uint32_t version; /* transaction_version that calls are signed under; 0: any */
    int64_t paused_us;
};

/* Plain data: a standby is a copy of it. */
struct tables {
    struct account_row accounts[ACCOUNTS];
    struct id_row ids[IDS];
    int64_t next_id;
    struct pending_row pending[ACCOUNTS][NONCES];
    uint64_t pending_low[ACCOUNTS], pending_high[ACCOUNTS]; /* bounds of used nonces */
    struct finished_row finished[IDS + ACCOUNTS * NONCES];
    uint32_t finished_count;
};

struct session {
    uint32_t serial;         /* 0: free */
    bool busy, listens, all; /* all: rows too, not signals only */
    struct link *link;
    uint32_t link_number;
    int relay;
    uint32_t life;
    struct list queue;
    uint32_t lock[ACCOUNTS], bell[ACCOUNTS]; /* how often it has the lock */
    uint64_t last_in, last_out;              /* bytes arrive in the order they were sent */
    uint64_t idle_since;
};

struct db {
    struct tables t;
    struct tables standby;
    bool standby_behind;
    bool up;
    bool lossy; /* a failover has lost commits: what they said is void */
    uint32_t starts;
    uint32_t serial;
    int64_t offset_us, clock_us;
    struct session sessions[SESSIONS];
    uint32_t bell_shared[ACCOUNTS]; /* open transactions that enqueued */
    uint64_t slow_until;
};

enum op {
    OP_LOCK,
    OP_UNLOCK,
    OP_ARM,
    OP_DISARM,
    OP_CLAIM,
    OP_RENEW,
    OP_RELEASE,
    OP_EVICT,
    OP_SCAN, /* control */
    OP_LOAD,
    OP_OUTBOX,
    OP_ADMIT,
    OP_RESIGN,
    OP_FILL,
    OP_STATES,
    OP_FINISH,
    OP_REJECT,
    OP_LOOK,
    OP_NONCE,
    OP_REQUEUE,
    OP_PAUSE,
    OP_ACCOUNTS,
    OP_SCAN_PENDING,
    OP_SCAN_FINISHED,
    OP_LOOK_UP, /* a listener's */
};

/* A statement: one transaction. Shared by the two ends of a connection. */
struct stmt {
    struct list sent, queue;
    int refs;
    enum op op;
    struct link *link;
    uint32_t link_number;
    int relay;
    uint32_t life;
    int account;
    uint64_t generation;
    int64_t epoch;
    void (*done)(struct world *w, struct stmt *s);
    uint64_t sent_at;
    enum manager_write write;
    enum manager_event_type event; /* what the manager hears when it is stored */
    int holder;
    bool have_lock, lower, reborn;
    enum manager_hold hold;
    struct manager_row_effect *rows; /* owned */
    size_t count;
    uint32_t *txs; /* owned: what was signed for each row */
    int64_t after_nonce;
    uint64_t nonce;
    uint32_t limit;
    uint64_t signed_at;
    uint32_t version; /* transaction_version that was signed under */
    int accounts[ACCOUNTS];
    int64_t epochs[ACCOUNTS];
    struct cursor_lookup *lookups; /* owned */
    int64_t after_account, after_id, since_us;
    /* out */
    int code;
    bool ok, last, lock_held, mid_submission;
    int64_t next_nonce, expiry_1_left_ms, expiry_2_left_ms, now_us;
    struct manager_account facts;
    int64_t used_nonce, used_block;
    bool renewed[ACCOUNTS];
    struct elector_seen seen[ACCOUNTS];
    int holders[ACCOUNTS];
    struct manager_snapshot_row *snapshot; /* owned, as are these */
    struct manager_outbox_row *outbox;
    struct manager_stop *stops;
    uint64_t next_ms;
    uint8_t *bytes;
    uint8_t (*hashes)[32];
    struct listen_event *events;
    size_t out_count;
};

/* A client's end of a connection to the database. */
struct link {
    int relay; /* -1: a follower's */
    uint32_t life;
    int kind;
    void *owner;
    bool up, wanted;
    uint32_t number; /* goes up with every connection that is tried or lost */
    struct session *session;
    uint32_t serial;
    struct list sent;
    struct backoff backoff;
    uint64_t stall_until;
    void (*on_up)(struct world *w, struct link *l);
    void (*on_down)(struct world *w, struct link *l);
};

/* ---- a relay ---- */

enum { LINK_CONTROL, LINK_WORK, LINK_LISTEN, LINKS };
enum { KIND_ACCOUNT, KIND_BELL, KINDS };

struct lock_turn {
    struct lock_turn *next;
    struct stmt *stmt;
    bool take;
};
struct lock_entry {
    bool held;
    struct lock_turn *first, **end;
};

struct submit {
    struct submit *next;
    uint32_t sub; /* number of the subscription */
    uint32_t tx;
    uint64_t nonce;
    uint64_t generation;
    uint64_t probed_at; /* when the last probe that was answered looked at the node */
    uint32_t life;      /* of the process, for what is at the node */
    bool written, replied;
};

/* What a core owes, or must not do, from some moment on. */
struct duty {
    uint32_t refused[64]; /* bytes whose refusal is not recorded yet */
    size_t refused_count;
    bool poor;         /* the last word of a node was that the account cannot pay */
    uint64_t poor_try; /* the block after which it was last tried since then, and when it was refused */
    uint64_t poor_at;
    uint64_t blocks;
    uint64_t stop_told[IDS]; /* when the core heard that it is to be stopped; 0: it did not */
};

struct ask {
    uint32_t number; /* 0: free */
    int account;
    uint64_t generation;
    enum manager_effect_type what;
};

struct sim_account {
    bool leader;
    int64_t epoch;
    uint64_t generation;
    struct manager *manager;
    struct wake wake;
    uint32_t outbox_limit;
    struct timer timer;
    struct submit *submits;
    uint64_t beats;        /* what may justify another try: blocks, time, a new start */
    uint64_t renewed_sent; /* when the last claim or renewal that was granted was sent, as the world saw it */
    uint64_t led_since;
    struct duty duty;
};

struct slot { /* a finalized block on its way */
    bool busy, done;
    uint64_t number;
    uint32_t block;
    uint8_t wanted; /* accounts that were led when it was looked through */
};

struct door {
    int node;
    uint32_t starts; /* of the node when the connection was made */
    bool open, ready;
    uint32_t number;
    uint32_t spec;
    uint64_t best, finalized;
    uint32_t final_block;
    bool following;
    uint64_t next;
    uint32_t restart;
    struct slot slots[PIPELINE];
    uint64_t last_in, last_out, stall_until;
    uint32_t next_sub;
    struct backoff backoff;
    struct ask asks[4 * ACCOUNTS];
    uint64_t early_nonce[ACCOUNTS]; /* of a planted probe that asks in the wrong order */
    uint64_t probed_at[ACCOUNTS];   /* when the node answered the later question of the last probe */
};

struct told { /* an elector's event that waits for its turn */
    struct told *next;
    struct elector_event ev;
    char holder[24];
};

struct relay {
    int index;
    bool alive, paused;
    uint32_t life;
    struct event *held, **held_end;
    int64_t clock_offset_us, clock_ppm;
    uint64_t resumed_at;
    int holder;
    struct elector *elector;
    struct timer elector_timer;
    bool electing;
    struct told *told, **told_end;
    bool running, draining;
    bool store_up, store_seen_up;
    struct link links[LINKS];
    struct lock_entry locks[KINDS][ACCOUNTS];
    struct sim_account accounts[ACCOUNTS];
    struct door door;
    bool service_following;
    uint64_t service_next;
};

/* ---- followers, applications ---- */

struct view {
    bool known, finished;
    int64_t nonce;
    uint32_t tx;
    char state[24], outcome[24];
    int64_t updated_us;
};

struct held_notice {
    struct held_notice *next;
    struct listen_event ev;
};

struct follower {
    struct link link;
    struct cursor *cursor;
    bool scanning; /* notifications are held */
    bool accounts_asked, live, rescan, looking;
    struct held_notice *held, **held_end;
    struct view views[IDS];
    uint32_t in_flight; /* notifications on their way */
    uint64_t repair_at;
};

/* An account's, as account_policy stores it. */
struct policy {
    uint64_t tip_start, tip_step;
    int64_t tip_cap; /* -1: none */
    uint32_t tip_step_percent, tip_after_blocks, skip_after_blocks;
    bool requeue_usurped;
};

/* What a seed is like. */
struct plan {
    uint32_t features; /* bits by enum feature */
    struct policy policy[ACCOUNTS];
    bool flat;          /* priority is the tip alone */
    uint32_t block_txs; /* of which a block has room */
    uint64_t last_min_tip,
        price_us; /* the price of room in a block that stays for so long after all is mended */
    int relays, accounts, nodes, followers;
    bool use_lock, fat, deterministic, foreign, lossy;
    uint32_t era;
    uint64_t block_us, ban_us, latency_us, fault_us, exec_us;
    uint64_t faults_end, limit;
    uint32_t finality_lag, fault_mask, transactions;
    int feature_fault; /* the only one of a feature; -1: all */
    uint32_t expiry_1_ms, expiry_2_ms;
    int blocked; /* account that cannot pay until all others have ended; -1: none */
};

/* The transaction at an account's lowest open nonce, and since when. */
struct head {
    int64_t id;
    uint64_t since;
};

struct stats {
    uint64_t enqueued, ended, submits, resigns, fills, crashes, pauses, forks, unknown, claims, faults;
    uint64_t raises, races, requeues, holds, orders, bumps, refusals, reaped;
};

struct world {
    uint64_t seed;
    struct rng rng;
    struct plan plan;
    uint64_t now, seq, events, until;
    struct event **heap;
    size_t heap_count, heap_cap;
    struct event *spare;
    struct chain chain;
    struct db db;
    struct relay relays[RELAYS];
    struct follower followers[FOLLOWERS];
    uint32_t effects[IDS];  /* how often it is in a finalized block and did something */
    uint32_t failures[IDS]; /* and how often it is in one and did nothing */
    bool inner[IDS];        /* its effect was an inner failure */
    bool must_end[IDS];
    bool was_failed_over[IDS];                   /* its record changed by a failover */
    uint64_t healed_at, account_moved[ACCOUNTS]; /* when it was last kept from going on */
    struct head heads[ACCOUNTS];
    bool healing, blocked_free;
    int64_t open; /* committed and not ended */
    struct stats stats;
    bool tracing;
    char (*trace)[TRACE_LEN];
    uint64_t trace_count;
    sigjmp_buf broken;
    char violation[400];
};

/* sim_queue.c */
struct event *later(struct world *w, uint64_t delay, const char *name,
                    void (*run)(struct world *w, struct event *e));
struct event *relay_later(struct world *w, const struct relay *r, uint64_t delay, const char *name,
                          void (*run)(struct world *w, struct event *e));
struct event *relay_at(struct world *w, int relay, uint32_t life, uint64_t at, const char *name,
                       void (*run)(struct world *w, struct event *e));
void relay_resume(struct world *w, struct relay *r);
void relay_drop_held(struct world *w, struct relay *r);
bool world_step(struct world *w); /* false: nothing is left to happen */
void queue_clear(struct world *w);
struct event *relay_event_held(struct world *w, struct relay *r, const char *name,
                               void (*run)(struct world *w,
                                           struct event *e)); /* runs first when it goes on */
uint64_t local_ms(const struct world *w, const struct relay *r);
void timer_set(struct world *w, struct relay *r, struct timer *t, uint64_t local, int account,
               const char *name, void (*run)(struct world *w, struct event *e));
bool timer_fired(struct timer *t, const struct event *e);
bool chance(struct world *w, unsigned percent);
uint64_t between(struct world *w, uint64_t lo, uint64_t hi);
uint64_t latency(struct world *w);
void note_line(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define note(w, ...)                                                                                         \
    do {                                                                                                     \
        if ((w)->tracing)                                                                                    \
            note_line(w, __VA_ARGS__);                                                                       \
    } while (0)

/* sim_check.c */
void broken(struct world *w, const char *invariant, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), noreturn));
#define HOLDS(w, cond, invariant, ...)                                                                       \
    do {                                                                                                     \
        if (!(cond))                                                                                         \
            broken(w, invariant, __VA_ARGS__);                                                               \
    } while (0)
bool includable(const struct world *w, const struct tx *t);
void check_final(struct world *w, uint32_t block);
void check_sent(struct world *w, const struct relay *r, int account, uint32_t tx, bool stopped);
void check_effort(struct world *w, const struct relay *r, int account, uint32_t tx);
void check_end(struct world *w);
void check_view(struct world *w, const struct follower *f, bool all_ended);

/* sim_chain.c */
void chain_start(struct world *w);
void hash_of_tx(uint32_t tx, uint8_t out[32]);
uint32_t tx_of_hash(const struct world *w, const uint8_t hash[32]); /* 0: none of ours */
void hash_of_block(uint32_t block, uint8_t out[32]);
uint32_t block_of_hash(const uint8_t hash[32]);
struct tx_content {
    int account;
    uint64_t nonce;
    int64_t id, for_id;
    uint32_t spec, anchor, period; /* period: 0: immortal */
    uint64_t tip;
};
uint32_t tx_sign(struct world *w, const struct tx_content *content);
uint32_t ancestor_at(const struct world *w, uint32_t block, uint64_t number);
bool refuses_call(const struct world *w, int64_t id, uint64_t number);
bool never_admitted(int64_t id);
enum fate { FATE_OK, FATE_FAILS, FATE_FAILS_INSIDE };
enum fate fate_of(const struct world *w, const struct tx *t); /* what becomes of its call in a block */
uint64_t priority_of(const struct world *w, const struct tx *t);
uint32_t version_of(const struct world *w, uint32_t spec); /* transaction_version */
void chain_fork(struct world *w, uint32_t depth);
void chain_foreign(struct world *w, int account);
void chain_foreign_in_pool(struct world *w, int account);
void chain_reap(struct world *w, int account);
void node_restart(struct world *w, int node, uint64_t down);

/* sim_pool.c */
struct answer {
    int code;
    int64_t rpc_code;
    const char *text;
    enum tx_status status; /* of an accepted one */
};
void pool_submit(struct world *w, int node, uint32_t tx, struct answer *ret);
bool pool_ready(const struct world *w, int node, uint32_t tx);
bool pool_take(const struct world *w, int node, struct block *b, bool *skip);
void pool_set_best(struct world *w, int node, uint32_t block);
void pool_set_final(struct world *w, int node, uint32_t block);
void pool_evict(struct world *w, int node, bool say);
void pool_watch(struct world *w, int node, uint32_t tx, const struct relay *r, uint32_t sub);
void pool_unwatch(struct world *w, int node, int relay, uint32_t life, uint32_t sub);
void pool_drop_watches(struct world *w, int node, int relay, uint32_t life, uint32_t link);
void pool_false_in_block(struct world *w, int node);
void pool_lose_watch(struct world *w, int node);

/* sim_db.c */
int64_t db_now_us(const struct world *w);
int64_t db_stamp(struct world *w);
struct session *session_open(struct world *w, struct link *l);
void session_end(struct world *w, struct session *s, bool tell, uint64_t when);
void session_take(struct world *w, struct session *s, struct stmt *stmt);
void db_stop(struct world *w, uint64_t down);
void db_failover(struct world *w, bool lossy);
void stmt_unref(struct stmt *s);
void notify_signal(struct world *w, const char *channel, int account);
void notify_row(struct world *w, const struct listen_event *ev);
struct session *lock_owner(struct world *w, int kind, int account);
const char *holder_name(int holder, char out[24]);

/* sim_claim.c, sim_rows.c, sim_read.c: what a statement does */
void sql_lock(struct world *w, struct session *s, struct stmt *q);
void sql_claim(struct world *w, struct session *s, struct stmt *q);
void sql_renew(struct world *w, struct session *s, struct stmt *q);
void sql_release(struct world *w, struct session *s, struct stmt *q);
void sql_evict(struct world *w, struct session *s, struct stmt *q);
void sql_scan(struct world *w, struct session *s, struct stmt *q);
bool sql_fence(struct world *w, struct stmt *q);
bool mid_submission(const struct world *w, int account);
void sql_write(struct world *w, struct stmt *q);

/* sim_ends.c */
void rows_cancel(struct world *w, int64_t id);
void rows_end(struct world *w, struct stmt *q);
void rows_reject(struct world *w, struct stmt *q);
void rows_requeue(struct world *w, struct stmt *q);
void rows_look(struct world *w, struct stmt *q);
void row_leaves(struct world *w, const struct stmt *q, uint64_t nonce, const char *outcome);
const char *outcome_name(const char *outcome); /* the same, with a life of its own */

/* sim_rows.c */
void order_error(struct world *w, struct stmt *q, const char *what, uint64_t nonce);
bool is_attempt(const struct pending_row *p, uint32_t tx);
void row_told(struct world *w, const struct stmt *q, uint64_t nonce, enum listen_kind kind);
void rows_audible(struct world *w, int account);
struct manager_account account_facts(const struct world *w, int account);

void sql_read(struct world *w, struct stmt *q);
struct listen_event row_event(const struct world *w, int account, uint64_t nonce, enum listen_kind kind);

/* sim_relay.c */
void relay_start(struct world *w, struct relay *r);
void relay_start_later(struct world *w, struct relay *r, uint64_t us);
void relay_kill(struct world *w, struct relay *r, bool host);
void relay_stop(struct world *w, struct relay *r, uint64_t us); /* SIGSTOP for so long */
void relay_drain(struct world *w, struct relay *r);
void relay_drained(struct world *w, struct relay *r);
void relay_free(struct world *w, struct relay *r);
void relay_store_moved(struct world *w, struct relay *r);
void relay_chain_ready(struct world *w, struct relay *r);
void account_event(struct world *w, struct relay *r, int account, const struct manager_event *ev);
void account_wake(struct world *w, struct relay *r, int account, enum wake_event ev);
void account_rung(struct world *w, struct relay *r, int account);
void account_promote(struct world *w, struct relay *r, int account, int64_t epoch);
void account_demote(struct world *w, struct relay *r, int account);
bool account_gate(const struct world *w, const struct relay *r, int account);

/* sim_store.c */
void link_open(struct world *w, struct link *l);
void link_lost(struct world *w, struct link *l);                   /* the client finds out */
void link_cut(struct world *w, struct link *l, bool client_first); /* a fault */
void link_stall(struct world *w, struct link *l, uint64_t us);
void link_close(struct world *w, struct link *l, bool host);
void stmt_send(struct world *w, struct link *l, struct stmt *s);
struct stmt *stmt_new(struct world *w, struct relay *r, int account, enum op op,
                      void (*done)(struct world *w, struct stmt *s));
void stmt_fail_later(struct world *w, struct stmt *s, int code);
void store_links(struct world *w, struct relay *r);

/* sim_request.c */
void store_effect(struct world *w, struct relay *r, int account, const struct manager_effect *fx);
void store_give_back(struct world *w, struct relay *r, int account, uint64_t nonce);
void store_fetch(struct world *w, struct relay *r, int account);
void store_look(struct world *w, struct relay *r, int account);
void store_arm(struct world *w, struct relay *r, int account, bool arm);

/* sim_elect.c */
void elect_feed(struct world *w, struct relay *r, const struct elector_event *ev);
void elect_start(struct world *w, struct relay *r);
void lock_request(struct world *w, struct relay *r, int kind, struct stmt *s, bool take);
void locks_lost(struct world *w, struct relay *r);
void locks_free(struct relay *r);

/* sim_submit.c */
void door_submit(struct world *w, struct relay *r, int account, const struct manager_effect *fx);
void door_unwatch(struct world *w, struct relay *r, int account, uint32_t tx);
void door_unwatch_all(struct world *w, struct relay *r, int account);
void door_ask(struct world *w, struct relay *r, int account, enum manager_effect_type what);
void door_fail_calls(struct world *w, struct relay *r);
void node_says_status(struct world *w, int node, const struct watch *x, enum tx_status status, uint32_t block,
                      uint32_t tx);

/* sim_door.c */
struct event *door_to_node(struct world *w, struct relay *r, const char *name,
                           void (*run)(struct world *w, struct event *e));
struct relay *door_from(struct world *w, const struct event *e);
struct event *door_to_relay(struct world *w, int relay, uint32_t life, uint64_t extra, const char *name,
                            void (*run)(struct world *w, struct event *e));
bool door_is_on(const struct relay *r, const struct event *e);
void door_open(struct world *w, struct relay *r);
void door_close(struct world *w, struct relay *r);
void door_lost(struct world *w, struct relay *r); /* the process finds out */
void door_cut(struct world *w, struct relay *r);  /* a fault */
void door_stall(struct world *w, struct relay *r, uint64_t us);
void door_follow(struct world *w, struct relay *r, uint64_t number);
void door_expect_height(struct world *w, struct relay *r, uint64_t number);
void door_recheck_runtime(struct world *w, struct relay *r);
void node_says_heads(struct world *w, int node, bool best, bool final);
void node_says_runtime(struct world *w, int node);

/* sim_follower.c */
void follower_start(struct world *w, struct follower *f);
void follower_free(struct follower *f);
void follower_hear(struct world *w, struct follower *f, const struct listen_event *ev);
bool follower_quiet(const struct follower *f);

/* sim_app.c, sim_fault.c */
void app_start(struct world *w);
void app_database_lost(struct world *w);
enum { PLAIN_FAULTS = 23 };         /* those after them belong to features */
int fault_number(const char *name); /* -1: none */
const char *fault_name(int number); /* NULL: no more */
void fault_start(struct world *w);
void fault_heal(struct world *w);

/* sim_operator.c */
void operator_start(struct world *w);
void operator_pauses(struct world *w);
void operator_bumps(struct world *w);

/* sim_duty.c */
void duty_forget(struct duty *d);
void duty_event(struct world *w, struct relay *r, int account, const struct manager_event *ev);
void duty_effect(struct world *w, struct relay *r, int account, const struct manager_effect *fx);
void duty_waits(struct world *w);

/* sim_plan.c */
int feature_number(const char *name); /* -1: none */
const char *feature_name(int number); /* NULL: no more */
bool has(const struct world *w, enum feature f);
void plan_features(struct world *w, uint32_t allowed);
uint64_t tip_limit(const struct world *w, int64_t id, int account); /* UINT64_MAX: none */

/* sim_world.c */
struct world *world_new(void);
void world_free(struct world *w);
struct options {
    uint64_t until;    /* 0: to the end */
    int fault;         /* the only one, -1: all */
    uint32_t features; /* that a seed may have */
    bool tracing;
};
/* true: all invariants held; else w->violation says what did not. */
bool world_run(struct world *w, uint64_t seed, const struct options *options);

#endif
