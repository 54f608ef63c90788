/* The world of the simulator as plain data: chain, database, processes, followers, and what a seed is like.
 */
#ifndef TEST_SIM_SIM_TYPES_H
#define TEST_SIM_SIM_TYPES_H

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
#include "election/core/elector.h"
#include "listen/core/cursor.h"
#include "relay/core/poll/poll.h"
#include "relay/core/tx/manager.h"

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
    X(DUTIES, "duties")             /* refusals must be recorded, payment is tried once a block */           \
    X(SIGNED, "signed")             /* extrinsics that were signed elsewhere, accounts without a key */      \
    X(REAP_UNFINAL,                                                                                          \
      "reap-unfinal") /* accounts die while nothing becomes final; drawn last, see plan_features */
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
    int poor_by;      /* the relay that was last about to send it: one that was stopped may overwrite these */
    uint64_t
        poor_block;    /* counted from 1: when it was sent by a relay that knew that the account cannot pay */
    uint32_t final_in; /* block that holds it, the last one: a life that begins anew takes it again; 0: not
                          final */
    bool spent; /* one that holds it is final and left the account with a higher nonce: it was not reaped
                   there */
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
    uint32_t fixed;      /* signed elsewhere: these bytes; 0: a call */
    int64_t noted;       /* its nonce, once a relay has read it; -1 */
    uint64_t wait_block; /* noted with it; 0: none */
    uint64_t noted_at;
    unsigned noted_again;
    bool self_sent; /* who signed it sent it to a node as well */
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
    uint32_t tx;         /* 0: none */
    uint32_t block;      /* 0: none */
    uint64_t used_block; /* of a nonce that somebody else used: as of when */
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
    uint32_t timeline; /* at the claim; 0: never claimed */
    uint64_t seen_block;
    bool reconcile; /* commits may be lost: later blocks than this one may know more */
    uint64_t reconcile_from;
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
    uint32_t timeline;
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
    OP_NOTE,
    OP_ADOPT,
    OP_ACCOUNTS,
    OP_SCAN_PENDING,
    OP_SCAN_FINISHED,
    OP_LOOK_UP, /* a listener's */
};

/* A statement: one transaction. Shared by the two ends of a connection. */
/* A row of whichever effect the statement came from. */
struct stmt_row {
    uint64_t nonce;
    int64_t id;
    uint8_t hash[32];
    const uint8_t *call, *bytes; /* borrowed until the next step */
    size_t call_len;
    uint32_t guard, era_period;
    uint64_t deadline_block, wait_block, used_block, from_block, tip;
    bool filler, has_block;
    const char *outcome, *state;
    char error[200];
    uint8_t block_hash[32];
    int64_t block_number;
    uint32_t index;
};

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
    uint64_t question, serial;     /* of a poll_effect */
    enum manager_event_type event; /* what the manager hears when it is stored */
    int holder;
    bool have_lock, lower, reborn;
    enum manager_hold hold;
    struct stmt_row *rows; /* owned */
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
    bool reconcile; /* adopt: all was looked through */
    uint64_t seen_block, reconcile_from;
    bool renewed[ACCOUNTS];
    struct elector_seen seen[ACCOUNTS];
    int holders[ACCOUNTS];
    struct manager_snapshot_row *snapshot; /* owned, as are these */
    struct manager_outbox_row *outbox;
    struct manager_signed *fixed; /* of these */
    bool has_reserved, admits_fixed;
    uint64_t reserved;
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
    uint64_t ordered_at;       /* by an operator, to go on */
    bool order_unheard;        /* until a look finds the account not paused */
    uint64_t blocks, block_at; /* best ones heard of, and the last one when */
    uint64_t stop_told[IDS];   /* when the core heard that it is to be stopped; 0: it did not */
};

struct ask {
    uint32_t number; /* 0: free */
    int account;
    uint64_t generation;
    enum manager_effect_type what;
    bool whole;
    uint64_t above;
};

struct sim_account {
    bool leader;
    int64_t epoch;
    uint64_t generation;
    struct manager *manager;
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
    struct ask asks[32 * ACCOUNTS]; /* of leaderships that ended, too, until they time out */
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
    struct poll *poll;
    struct timer poll_timer;
    struct door door;
    bool service_following;
    uint64_t service_next;
    uint64_t saw, saw_best; /* the highest final block, the highest best block of any node */
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
    bool keyless[ACCOUNTS]; /* whose key no relay has */
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
    uint64_t raises, races, requeues, holds, orders, bumps, refusals, reaped, adopted, doubled, fixed, noted;
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
    struct manager_moves moved; /* by any manager, in any seed */
    bool tracing;
    char (*trace)[TRACE_LEN];
    uint64_t trace_count;
    sigjmp_buf broken;
    char violation[400];
};

#endif
