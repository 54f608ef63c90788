/* The world of the simulator as plain data: chain, database, processes, followers, and what a
 * seed is like. */
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
#include "chain/node/node.h"
#include "listen/listen.h"
#include "relay/core/tx/manager.h"
#include "store/lead.h"
#include "store/mem_db.h"
#include "store/outbox.h"
#include "store/pending.h"

enum {
    RELAYS = 4,
    ACCOUNTS = 3,
    NODES = 3,
    FOLLOWERS = 2,
    IDS = 512,
    NONCES = 512,
    TXS = 6000,
    BLOCKS = 3000,
    BLOCK_TXS = 10,
    POOL = 128,
    WATCHES = 512,
    SESSIONS = 64,
    PROCESSES = RELAYS + FOLLOWERS,
    PIPELINE = 4, /* blocks that a door fetches ahead */
    CALL_LEN = 8,
    BYTES_LEN = 24,
    TRACE_LINES = 200000, /* kept; the last 60 are shown unless --lines asks for more */
    TRACE_LEN = 200,
};

/* What a seed may have beside the plain life of transactions: X(NAME, name). */
#define FEATURE_TABLE(X)                                                                           \
    X(TIPS, "tips") /* tips, caps, the ladder, blocks that take the best payers only */            \
    X(SIZE, "size") /* small blocks */                                                             \
    X(FOREIGN_POOL, "foreign-pool") /* somebody else's bytes at our nonces in the pool */          \
    X(REAP, "reap")                 /* accounts die and live again */                              \
    X(VERSION, "version")           /* transaction_version changes */                              \
    X(RETRIES, "retries")           /* dispatch errors that pass, and inner ones that do not */    \
    X(LAST_BLOCK, "last-block")     /* deadline_block */                                           \
    X(BUMPS, "bumps")               /* somebody asks for higher tips */                            \
    X(SKIP, "skip")                 /* the head of the line is given up after so many blocks */    \
    X(REQUEUE, "requeue")           /* what lost its nonce goes back to the outbox */              \
    X(PAUSES, "pauses")             /* operators pause, and resume what they like */               \
    X(DUTIES, "duties")             /* refusals must be recorded, payment is tried once a block */ \
    X(SIGNED, "signed") /* extrinsics that were signed elsewhere, accounts without a key */        \
    X(REAP_UNFINAL,                                                                                \
      "reap-unfinal")           /* accounts die while nothing becomes final; drawn last, see   \
                                       plan_features */   \
    X(PLACEMENT, "placement")   /* accounts are spread over the ring, or go round it */            \
    X(ANSWERS, "answers")       /* nodes answer what proves nothing, with or without taking it */  \
    X(LIES, "lies")             /* a node says what is not so */                                   \
    X(NONCES, "nonces")         /* an account nonce that is wrong once, and could be right */      \
    X(HOLDERS, "holders")       /* rows and locks that leaders need are held */                    \
    X(UNSIGNABLE, "unsignable") /* some runtimes take no signature that these relays can make */   \
    X(UNREADABLE, "unreadable") /* blocks of a former runtime do not decode by the present one */  \
    X(ABILITIES, "abilities") /* no node has some final blocks, and some do not tell their pool */ \
    X(DEMAND, "demand")       /* a block is made only when something waits for one */              \
    X(REPEATS, "repeats")     /* heads are told again, and earlier ones after later ones */        \
    X(WARP, "warp")           /* a node begins anew: it has block 0 alone, and jumps later */      \
    X(AWAY, "away")           /* no relay is there for a while; the database may come back */      \
    X(ADOPTER, "adopter")     /* who adopts something dies before it looks for the rest */         \
    X(PACED, "paced")         /* endpoints take few calls, and the others wait their turn */       \
    X(SLOW_WORK, "slow-work") /* the work session is slow, beside a quick control session */       \
    X(STUCK, "stuck")         /* one relay's endpoint is usable and serves nothing for a while */
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
struct memory;
struct session;
struct link;
struct part;

/* ---- events ---- */

struct event {
    uint64_t at, seq;
    const char *name;
    void (*run)(struct world *w, struct event *e);
    void (*drop)(struct event *e); /* instead of run, when the process it was for is gone */
    struct event *next;            /* in a list of held or of free ones */
    int process;                   /* whose process runs it; -1: nobody's */
    uint32_t life;
    int account;
    uint32_t a, b;
    uint64_t n;
    void *p;
};

/* A process of the product: a relay's or a follower's. What it allocates is its own, and goes
 * with it. */
struct process {
    int index;
    bool alive, paused;
    uint32_t life;
    struct event *held, **held_end;
    int64_t clock_offset_us, clock_ppm;
    uint64_t resumed_at;
    struct memory *memory;
    struct loop *loop;
    /* of struct message: answers of the database that it has not given back */
    struct list borrowed;
};

/* ---- the chain ---- */

/* Every extrinsic that was ever signed; its hash names its index. */
struct tx {
    int account;
    uint64_t nonce;
    int64_t id; /* whose call it carries; 0: a filler's; -1: somebody else used the key */
    uint64_t tip;
    int64_t birth, death; /* -1: immortal */
    uint32_t anchor;      /* block that the era is anchored on */
    uint32_t spec;
    uint32_t priority;
    /* other ones of the same nonce, of the same transaction; 0: none */
    uint32_t prev_nonce, prev_id;
    bool forged;        /* nobody signed it: a lying node made it up */
    bool committed;     /* is or was on record */
    bool accepted;      /* some pool has had it */
    bool reached;       /* was seen by a node */
    bool refused;       /* a node has refused its call as invalid */
    uint64_t sent_beat; /* of whom sent it last, and that one: no bytes twice in one beat */
    int sent_by;
    uint64_t poor_at; /* see poor_block */
    int poor_by; /* the relay that was last about to send it: one that was stopped may overwrite
                    these */
    uint64_t poor_block; /* counted from 1: when it was sent by a relay that knew that the account
                            cannot pay */
    uint32_t final_in; /* block that holds it, the last one: a life that begins anew takes it again;
                          0: not final */
    bool spent; /* one that holds it is final and left the account with a higher nonce: it was not
                   reaped there */
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
    uint64_t made_at;
};

struct watch {
    bool used;
    uint32_t tx;
    int relay;
    uint32_t life, link; /* of the relay's connection */
    uint32_t sub;
    uint32_t block; /* it was told to be in; 0: none */
};

struct chain_node { /* one of the chain's nodes */
    uint32_t best, final;
    uint32_t pool[POOL];
    uint32_t pool_count, pool_limit;
    struct watch watches[WATCHES];
    uint32_t watch_count; /* high-water mark */
    uint64_t down_until, trap_until, lag_until;
    uint64_t warp_until; /* it has block 0 alone */
    uint64_t lie_until;
    unsigned lies; /* of which kinds, by enum lie */
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
    /* transaction_version grows by one with each of these specs; 0: none */
    uint32_t version_from[4];
    uint64_t min_tip;     /* who pays less finds no room in a block */
    uint64_t stall_until; /* finality */
    bool asked;           /* an extrinsic that is none of ours wants a block */
    uint64_t others_at;   /* so does one that has nothing to do with us, then */
    bool unpaid[ACCOUNTS];
    struct chain_node nodes[NODES];
};

/* ---- the database: store/mem_db.h, and what is between it and its clients ---- */

/* A statement on its way: one transaction. Shared by the two ends of a connection. */
struct message {
    struct list sent, queue,
        borrowed; /* the client's, the server's, of answers that were not given back */
    int refs;
    struct link *link;
    uint32_t link_number;
    int process;
    uint32_t life;
    int account; /* -1: no single one's */
    bool locks;  /* while it runs, its account's row of leadership is locked */
    const char *name;
    uint64_t sent_at;
    int code; /* as its sender hears it: 0, or that nothing was heard */
    void *client;
    void (*run)(struct world *w, struct session *s, struct message *m); /* at the server */
    void (*done)(struct world *w, struct message *m);                   /* at the sender */
    void (*release)(struct message *m);
};

/* One of the requests of store.h, with copies of all that it points to. */
struct request {
    struct message message;
    enum mem_request what;
    int sql; /* enum sql_id */
    union {
        struct store_req req;
        struct store_enroll enroll;
        struct store_release release;
        struct store_renew renew;
        struct store_evict evict;
        struct store_scan scan;
        struct store_member member;
        struct store_snapshot snapshot;
        struct store_outbox outbox;
        struct store_poll_requests poll_requests;
        struct store_due due;
        struct store_obstacles obstacles;
        struct store_relay_obstacle relay_obstacle;
        struct store_attempts attempts;
        struct store_note note;
        struct store_states states;
        struct store_finish finish;
        struct store_nonce nonce;
        struct store_pause pause;
        struct store_adopt adopt;
        struct store_heard heard;
    } u;
    struct part *parts;
};

struct session {
    uint32_t serial; /* 0: free */
    bool busy;
    struct mem_session *mem;
    struct link *link;
    uint32_t link_number;
    int process;
    uint32_t life;
    struct list queue;
    uint64_t ends; /* when what it runs is done: the first of the queue, while it is busy */
    uint64_t last_in, last_out; /* bytes arrive in the order they were sent */
};

struct db {
    struct mem_db *mem;
    struct mem_session *desk; /* where applications and operators ask, each call a transaction */
    struct mem_copy *standby;
    bool standby_behind;
    bool up;
    bool lossy; /* a failover has lost commits: what they said is void */
    uint32_t starts, serial;
    int64_t offset_us;
    int64_t ahead_us;    /* of the chain's clock, and the relays', since a failover */
    uint64_t stepped_at; /* this one */
    struct session sessions[SESSIONS];
    struct session *running; /* whose statement is carried out; NULL: the desk's */
    uint64_t slow_until;
};

/* A client's end of a connection to the database. */
struct link {
    int process;
    uint32_t life;
    int kind;
    void *owner;
    bool up, closing;
    uint32_t number; /* goes up with every connection that is tried or lost */
    struct session *session;
    uint32_t serial;
    struct list sent;
    struct backoff backoff;
    uint64_t stall_until;
    void (*on_up)(struct world *w, struct link *l);
    void (*on_down)(struct world *w, struct link *l);
};

/* What an application asked for. It is the world's: a failover does not change it. */
struct call {
    bool asked; /* it was enqueued, in a transaction that may be open or rolled back */
    int account;
    int64_t deadline_us; /* of the database's clock; 0: none */
    uint32_t guard;
    int64_t max_tip, bump; /* -1: none */
    uint64_t bumped_at;
    uint64_t deadline_block;
    uint32_t forgiven;  /* dispatch errors after which it went back to the outbox */
    uint32_t presigned; /* signed elsewhere: these bytes; 0: a call */
    bool cancelled;     /* somebody asked for it */
    bool self_sent;     /* who signed it sent it to a node as well */
    bool gone;          /* its transaction was rolled back */
    uint64_t noted_at;
    unsigned noted_again;
    int64_t noted;
    uint64_t wait_block;
};

/* ---- a relay ---- */

enum { LINK_CONTROL, LINK_WORK, LINK_LISTEN, LINK_RETENTION, LINKS };

/* What a core owes, or must not do, from some moment on. */
struct duty {
    uint32_t refused[64]; /* bytes whose refusal is not recorded yet */
    size_t refused_count;
    bool no_funds; /* the last word of a node was that the account cannot pay */
    /* the block after which it was last tried since then, and when it was refused */
    uint64_t poor_try;
    uint64_t poor_at;
    uint64_t ordered_at;       /* by an operator, to go on */
    bool order_unheard;        /* until a poll finds the account not paused */
    uint64_t blocks, block_at; /* best ones heard of, and the last one when */
    uint64_t stop_told[IDS];   /* when the core heard that it is to be stopped; 0: it did not */
};

/* What the simulator keeps of an account of a relay, beside what the relay itself knows. */
struct sim_account {
    uint64_t beats;        /* what may justify another try: blocks, time, a new start */
    uint64_t renewed_sent; /* when the last claim or renewal that was granted was sent, as the world
                              saw it */
    uint64_t led_since;
    uint64_t probed_at;   /* when the node answered the later question of the last probe */
    uint64_t early_nonce; /* of a planted probe that asks in the wrong order */
    struct duty duty;
};

struct slot { /* a finalized block on its way */
    bool busy, done;
    uint64_t number;
    uint32_t block;
    bool wanted[ACCOUNTS]; /* accounts that were wanted when it was looked through */
    bool wanted_runtime;
    enum node_want wanted_tx[BLOCK_TXS];
    bool unreadable; /* its extrinsics do not decode */
    uint32_t forged; /* what a lying node adds; 0: nothing */
    enum node_want wanted_forged;
};

/* The wire to a node: what both ends of it share. */
struct wire {
    int node;
    bool open;
    uint32_t number; /* of the connection */
    uint32_t next_sub;
    uint64_t last_in, last_out, stall_until;
    uint64_t turn_at; /* of the next call */
};

struct relay {
    struct world *world;
    int index;
    struct process *process;
    int holder;
    char name[24];
    bool draining;
    struct service *service; /* NULL: it has ended, or was killed */
    struct node *node;
    struct link links[LINKS];
    struct wire wire;
    uint64_t stuck_until; /* its endpoint serves nothing */
    struct sim_account accounts[ACCOUNTS];
};

/* ---- followers, applications ---- */

struct view {
    bool known, finished;
    int64_t nonce;
    uint32_t tx;
    char state[24], outcome[24];
    int64_t updated_us;
};

struct follower {
    struct world *world;
    int index;
    struct process *process;
    struct link link;
    struct listen *listen;
    uint32_t in_flight; /* notifications on their way */
    struct view views[IDS];
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
    bool flat;                       /* priority is the tip alone */
    uint32_t block_txs;              /* of which a block has room */
    uint32_t pool_limit;             /* of a node, once all is mended */
    uint64_t last_min_tip, price_us; /* a block's room keeps this price for price_us after all is
                                        mended */
    int relays, accounts, nodes, followers;
    bool use_lock, fat, deterministic, foreign, lossy;
    uint32_t answer_percent; /* of submissions that are answered by the table (sim_answer.c) */
    bool lost_search;        /* no era is waited for after a failover */
    bool dies_between;       /* see fault_between */
    bool dies_adopting;      /* see fault_adopted */
    uint64_t pace_us;        /* between two calls of a connection */
    uint64_t others_us;     /* between two blocks of others, on a chain that makes them on demand */
    int64_t step_us;        /* the clock of the standby is ahead by so much; 0: it is right */
    uint64_t work_delay_us; /* FEATURE_SLOW_WORK: each way */
    uint64_t behind_us;     /* for how long commits are lost, at most */
    bool keyless[ACCOUNTS]; /* whose key no relay has */
    bool ring;              /* accounts are spread over the members */
    uint32_t rotate_blocks; /* each member leads for so many blocks; 0: for ever */
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

/* The first transaction of an account's outbox, and its lowest open nonce, and since when. */
struct silence {
    int64_t epoch, id, nonce;
    uint64_t since;
};

/* How long a leader whose endpoint is stuck has kept an account. */
struct kept {
    int64_t epoch;
    uint64_t since;
};

struct stats {
    uint64_t enqueued, ended, submits, resigns, fills, crashes, pauses, forks, unknown, claims,
        faults;
    uint64_t raises, races, requeues, holds, orders, bumps, refusals, reaped, adopted, doubled,
        presigned, noted;
    uint64_t sweeps, merged, drains, lies, refused_blocks, held, locked, between;
    uint64_t repeated, warped, away, stuck;
};

/* sim_holder.c: who holds a row, and who has the lock of an account. */
struct holder {
    struct rng rng;
    struct mem_session *session, *locker; /* NULL: none */
    int64_t id;                           /* whose row; 0: none */
    uint32_t starts;                      /* of the transactions that hold rows */
    int account;
    bool locked;
};

struct world {
    uint64_t seed;
    struct rng rng, stranger; /* the second one has no part in what else happens */
    struct plan plan;
    uint64_t now, seq, events, until;
    struct event **heap;
    size_t heap_count, heap_cap;
    struct event *spare;
    struct chain chain;
    struct db db;
    struct holder holder;
    struct process processes[PROCESSES];
    struct process *current; /* whose code runs; NULL: the world's own */
    struct relay relays[RELAYS];
    struct follower followers[FOLLOWERS];
    struct call calls[IDS];
    int64_t next_id;
    uint32_t effects[IDS];  /* how often it is in a finalized block and did something */
    uint32_t failures[IDS]; /* and how often it is in one and did nothing */
    bool inner[IDS];        /* its effect was an inner failure */
    bool must_end[IDS];
    bool was_failed_over[IDS];                   /* its record changed by a failover */
    uint64_t healed_at, account_moved[ACCOUNTS]; /* when it was last kept from going on */
    struct head heads[ACCOUNTS];
    struct silence silences[ACCOUNTS];
    struct kept kept[ACCOUNTS];
    uint64_t away_until; /* no relay starts before */
    bool healing, blocked_free;
    struct stats stats;
    struct manager_moves moved; /* by any manager, in any seed */
    bool tracing;
    char (*trace)[TRACE_LEN];
    uint64_t trace_count;
    sigjmp_buf broken;
    char violation[400];
};

#endif
