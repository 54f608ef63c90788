/* The transaction manager of one account: a pure core. manager_step(m, now, event) changes plain
 * data and lists effects; it has no clock, socket, SQL or key. The service and the simulator run
 * the same code.
 *
 * Rules (docs/design.md, sections 1 and 3):
 * - send only after the admission commit was confirmed (I3), lowest nonce first;
 * - a nonce, once given, is never given again while any of its bytes could still be included (I5);
 * - only a finalized block that contains one of the nonce's hashes decides; watch statuses only
 *   save time;
 * - a write whose outcome is unknown is never guessed: everything is loaded again under the epoch;
 * - repair asks the pool first, then the nonce at the best block, and only then sends the same
 *   bytes.
 *
 *   IDLE -> LOAD_WAIT -> CHAIN_WAIT -> PROBE_POOL_WAIT -> PROBE_NONCE_WAIT -> LEADING
 *             ^  (chunks)   (node up)    (which of ours     (which are        |  | probe again when
 *             |                           does it hold?)     in blocks?)      |  | rows are unsure
 *             +------------------- unknown outcome of a write ---------------+  |
 *   any -> IDLE on demotion                                                      |
 *
 * Where the database may have lost commits, CHAIN_WAIT and the first probe also collect what the
 * blocks and the pool hold at nonces that it does not know, and ADOPT comes before LEADING
 * (reconcile.c). Before the probe, ERA_WAIT reads all final blocks in which anything that was sent
 * by a lost commit could be (era_wait.c). */
#ifndef RELAY_MANAGER_H
#define RELAY_MANAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/tx.h"

struct buf;
struct manager;

struct manager_config {
    uint32_t window_max;     /* nonces in use that are not in a block yet; default 256 */
    uint32_t batch_max;      /* rows of one admission; default 128 */
    uint32_t unanswered_max; /* submissions on the wire without an answer; default 64 */
    uint32_t era_period;     /* blocks; power of two; 0 = immortal; default 64 */
    uint32_t
        reprobe_blocks;  /* probe an open row after this many best blocks without news; default 5 */
    uint32_t gap_blocks; /* alert after a nonce gap below pooled transactions has lasted this many
                            blocks; default 10 */
    uint32_t state_batch_max; /* statuses of one store write; default 512 */
    bool lost_search;         /* lost commits are searched for, and no era is waited for after it */
    bool keyless; /* nothing can be signed for the account: it sends only presigned transactions */
};

enum manager_phase {
    MANAGER_IDLE,
    MANAGER_LOAD_WAIT,
    MANAGER_CHAIN_WAIT,
    MANAGER_ERA_WAIT, /* commits may be lost: what they have sent may still be included */
    MANAGER_PROBE_POOL_WAIT,
    MANAGER_PROBE_NONCE_WAIT,
    MANAGER_LEADING,
};
const char *manager_phase_name(enum manager_phase phase); /* "CHAIN_WAIT" */

/* Why the account is suspended, beyond single transactions. */
enum manager_suspension {
    MANAGER_SUSPENSION_NONE,
    MANAGER_SUSPENSION_PAYMENT, /* it cannot pay: nothing is admitted; ends by itself */
    MANAGER_SUSPENSION_REAPED, /* its nonce went back: nothing is sent before an operator's order */
    MANAGER_SUSPENSION_TRANSACTION_VERSION, /* calls may mean something else now: the same */
    /* the chain does not take what this relay would sign: nothing is admitted or signed; ends by
     * itself when the chain takes it, or another relay's key */
    MANAGER_SUSPENSION_SIGNING,
};
/* As the table has it: "payment"; "" of none. */
const char *manager_suspension_name(enum manager_suspension suspension);
enum manager_suspension manager_suspension_of(const char *name); /* NULL or unknown: none */

/* The account's settings in the table, with every snapshot and request poll. Amounts are planck.
 */
struct manager_account {
    bool paused;                        /* by whomever */
    enum manager_suspension suspension; /* a leader's pause that stands */
    bool reborn; /* an operator resumed a reaped account, and its new life has not begun yet */
    uint32_t transaction_version; /* the one that was accepted; 0: any */
    u128 tip_start, tip_step;     /* of a first attempt; the least raise (0: 1) */
    u128 tip_cap;                 /* MANAGER_NO_CAP: none */
    uint32_t tip_step_percent;
    uint32_t tip_after_blocks; /* the first transaction gets a higher tip after this many blocks; 0:
                                  never */
    uint32_t skip_after_blocks; /* and is given up after this many; 0: never */
    /* "ExhaustsResources,Custom:6": what a chain refuses so is submitted again; "": nothing */
    char retry_refusals[121];
    bool requeue_usurped; /* else a transaction that lost its nonce ends as usurped */
    bool has_low_balance;
    u128 low_balance; /* alert when the free balance is below it */
};
#define MANAGER_NO_CAP (~(u128)0)

/* ---- types of effects ---- */

/* The writes of the store that effects ask for: X(effect, its name for operators). One of a kind is
 * in flight at a time, and MANAGER_EV_STORED or MANAGER_EV_WRITE_FAILED answers it. */
#define MANAGER_WRITES(X)                                                                          \
    /* Sign rows at their nonces, one fenced commit. presigned: their bytes are there already. */  \
    X(MANAGER_FX_ADMIT, "admit")                                                                   \
    /* Sign the same call at the same nonce anew, commit. Bytes that turn out to be the current */ \
    /* ones (hash) are no new attempt: nothing is committed, STORED names them. */                 \
    X(MANAGER_FX_RESIGN, "resign")                                                                 \
    /* Sign a filler (System.remark) at the nonce; the transaction there ends. */                  \
    X(MANAGER_FX_FILL, "fill")                                                                     \
    X(MANAGER_FX_STORE_STATES, "states")                                                           \
    X(MANAGER_FX_STORE_FINISH, "finish")                                                           \
    X(MANAGER_FX_STORE_REJECT, "reject")                                                           \
    X(MANAGER_FX_STORE_NONCE, "nonce")                                                             \
    /* Rows go back to the outbox; their nonces are used up. */                                    \
    X(MANAGER_FX_STORE_REQUEUE, "requeue")                                                         \
    X(MANAGER_FX_STORE_PAUSE, "pause")                                                             \
    X(MANAGER_FX_STORE_ADOPT, "adopt")                                                             \
    /* number: a block not lower than any that lost commits could know */                          \
    X(MANAGER_FX_STORE_HEARD, "heard")                                                             \
    /* Results of checking presigned rows that wait in the outbox. */                              \
    X(MANAGER_FX_STORE_NOTE, "note")

/* What belongs to which is the union of struct manager_effect. */
enum manager_effect_type {
#define X(effect, name) effect,
    MANAGER_WRITES(X)
#undef X
    /* read the next chunk of pending rows; after_nonce -1: from the start */
    MANAGER_FX_LOAD,
    /* bring at most `limit` outbox rows when there are any (stays wanted) */
    MANAGER_FX_WANT_OUTBOX,
    MANAGER_FX_SUBMIT,  /* to the node, through the gate, watched */
    MANAGER_FX_UNWATCH, /* forget the watch */
    MANAGER_FX_UNWATCH_ALL,
    MANAGER_FX_ASK_POOL,
    MANAGER_FX_ASK_NONCE,
    MANAGER_FX_ASK_UNFINAL, /* number: what the blocks of the best chain above it hold */
    MANAGER_FX_FOLLOW,      /* number: finalized blocks from this height on */
    MANAGER_FX_RECHECK_RUNTIME,
    MANAGER_FX_NODE_BEHIND,   /* number: a height that exists */
    MANAGER_FX_READY,         /* rebuilt: the account is led for good now (log, readiness) */
    MANAGER_FX_ALERT,         /* text: something a person must know */
    MANAGER_FX_POLL_REQUESTS, /* number, rising: a request poll that begins from now on is wanted */
};
#define MANAGER_WRITE_COUNT MANAGER_FX_LOAD /* the writes come first */
/* "admit"; also of MANAGER_FX_LOAD, which fails like a write */
const char *manager_write_name(enum manager_effect_type write);

/* ---- events ---- */

/* What belongs to which is the union of struct manager_event. */
enum manager_event_type {
    MANAGER_EV_PROMOTED,
    MANAGER_EV_DEMOTED,    /* drops all state; no effect is carried out from now on */
    MANAGER_EV_GATE_OPEN,  /* sending is allowed again: what was refused at the gate is sent */
    MANAGER_EV_STORE_BACK, /* the database was away, and may be a standby that lacks commits: read
                            * all again
                            */
    MANAGER_EV_SNAPSHOT,   /* answer to LOAD */
    MANAGER_EV_CHAIN_UP,
    MANAGER_EV_CHAIN_DOWN,
    MANAGER_EV_RUNTIME, /* another version */
    MANAGER_EV_BEST,
    MANAGER_EV_FINALIZED,
    MANAGER_EV_POOL,         /* answer to ASK_POOL */
    MANAGER_EV_NONCE,        /* answer to ASK_NONCE */
    MANAGER_EV_UNFINAL,      /* answer to ASK_UNFINAL */
    MANAGER_EV_OUTBOX,       /* answer to WANT_OUTBOX */
    MANAGER_EV_REQUESTS,     /* what a request poll brought */
    MANAGER_EV_STORED,       /* a write of the store is committed */
    MANAGER_EV_WRITE_FAILED, /* or LOAD */
    MANAGER_EV_SUBMIT_REPLY, /* code 0: accepted, else rpc_code and text, or a transport error */
    MANAGER_EV_STATUS,       /* of a watch; block_hash may be the usurper */
    MANAGER_EV_WATCH_LOST,
    MANAGER_EV_TICK, /* time passed: deadlines of waits (a retry of a failed question or write) */
};

/* A presigned extrinsic, as the adapter decoded and verified it. */
struct manager_presigned {
    uint64_t nonce; /* UINT64_MAX, with `bad`: it does not decode */
    uint8_t hash[32];
    size_t call_len;              /* the call is the last call_len bytes of it */
    int64_t era_birth, era_death; /* -1: immortal */
    uint32_t spec_version;        /* that it was verified under */
    const char *waits;            /* NULL, or why it cannot be judged before wait_block is final */
    uint64_t wait_block;
    bool waited; /* it has waited for a block: the best block of its first check is final */
};

struct manager_outbox_row {
    int64_t id;
    const uint8_t *call; /* copied; with `presigned` the whole extrinsic */
    size_t call_len;
    const struct manager_presigned *presigned; /* NULL: a call that is to be signed */
    uint32_t guard; /* the only runtime spec version under which it may be signed; 0: any */
    bool has_tip;   /* else the account's policy says */
    u128 tip;
    bool has_max_tip;
    u128 max_tip;
    uint64_t deadline_block; /* the last block that may hold it; 0 or UINT64_MAX: none */
    uint32_t retries;        /* dispatch errors after which it is tried again */
    /* NULL, or the adapter's reason why it can never be sent: it is rejected with this */
    const char *bad;
    struct tx_origin origin;
    bool waits; /* the adapter cannot tell yet: it stays in the outbox until the next tick */
};

struct manager_block {
    uint64_t number;
    int64_t time_ms; /* wall clock of the chain; -1: not known */
    uint8_t hash[32];
    bool unread;            /* no endpoint has its body: what it included is not known */
    uint64_t account_nonce; /* at this block; UINT64_MAX: not known */
    bool has_balance;       /* the free one, at this block */
    u128 balance;
    const struct tx_included *included;
    size_t included_count;
};

struct manager_event {
    enum manager_event_type type;
    union {
        int64_t epoch; /* PROMOTED */
        struct {
            const struct tx_pending *rows;
            size_t count;
            bool last;
            int64_t next_nonce; /* -1: never set */
            int64_t used_nonce; /* by the table's records finalized blocks used all nonces below;
                                   -1: unknown */
            int64_t used_block; /* and the highest of them; -1: unknown */
            /* finalized block at the last renewal that is on record; 0: unknown */
            uint64_t seen_block;
            bool reconcile; /* commits may be lost: blocks after reconcile_from may know more */
            uint64_t reconcile_from;
            int64_t lost_since_ms; /* then: when that was found, by the database's clock */
            int64_t lost_until;    /* and the block at which the wait ends; -1: not known yet */
            bool immortal;         /* lost commits may have sent bytes without an era */
            const struct manager_account *account; /* NULL: nothing is set */
        } snapshot;
        struct {
            uint64_t finalized, best;
            /* the highest block that this or another node reported; 0: none did */
            uint64_t best_known;
            uint32_t spec_version, transaction_version;
            u128 tip_max;            /* the highest tip that the runtime's type holds; 0: unknown */
            const char *unsupported; /* NULL, or why nothing can be signed for the account */
        } chain;                     /* CHAIN_UP, RUNTIME */
        struct {
            uint64_t number, best_known, finalized;
        } best;
        const struct manager_block *block; /* FINALIZED */
        struct {
            bool failed; /* it could not be asked; so in the others */
            bool untold; /* no endpoint tells its pool: nothing is known of it */
            const uint8_t (*hashes)[32];
            size_t count;
            /* what this account signed, where ASK_POOL wants it */
            const struct tx_included *pooled;
            size_t pooled_count;
        } pool;
        struct {
            bool failed;
            uint64_t nonce; /* at the best block */
        } used;             /* NONCE */
        struct {
            bool failed;
            const uint8_t (*hashes)[32];
            size_t count;
            uint64_t nonce; /* above what the account used there; 0: nothing */
        } unfinal;
        struct {
            const struct manager_outbox_row *rows; /* one at least */
            size_t count;
            bool has_reserved; /* a row that was signed elsewhere waits for this nonce, the lowest
                                  such */
            uint64_t reserved;
        } outbox;
        struct {
            uint64_t number; /* of the last LOOK before it began */
            const struct tx_stop *stops;
            size_t count;
            const struct manager_account *account; /* NULL: nothing changed */
        } looked;
        struct {
            enum manager_effect_type write;
            union {
                struct {
                    const struct tx_attempt *rows;
                    size_t count;
                } attempts;     /* ADMIT, RESIGN, FILL */
                size_t adopted; /* STORE_ADOPT: rows that were */
                uint64_t until; /* STORE_HEARD: the block at which the wait ends */
            };
        } stored;
        struct {
            enum manager_effect_type write; /* or LOAD */
            int code;
            const char *not_signed; /* NULL, or why the adapter could not sign: nothing was written
                                     */
        } write_failed;
        struct {
            uint64_t nonce;
            const uint8_t *hash;
            int code;
            int64_t rpc_code;
            const char *text; /* error message and data, for classification and for the record */
        } reply;              /* SUBMIT_REPLY */
        struct {
            uint64_t nonce;
            const uint8_t *hash;
            enum tx_status status;
            const uint8_t *block_hash; /* 32 bytes or NULL */
        } status;
        struct {
            uint64_t nonce;
            const uint8_t *hash;
        } lost; /* WATCH_LOST */
    };
};

/* ---- effects ---- */

struct manager_sign_row {
    uint64_t nonce;
    int64_t id;
    uint8_t hash[32]; /* resign: of the current attempt; presigned: of the bytes */
    u128 tip;
    size_t call_len;
    /* admit, resign, fill: to be signed */
    const uint8_t *call; /* admit, resign */
    uint32_t guard;      /* sign under this runtime spec version or not at all; 0: any */
    uint32_t era_period; /* blocks; 0: immortal */
    /* The last block that may hold it; 0: any. The adapter may know of a newer finalized block
     * than the core did when it chose the period: then it takes a shorter one that ends in time,
     * or signs nothing. */
    uint64_t deadline_block;
    bool banned; /* resign: a pool refuses the current attempt's bytes for a while, so it takes
                    other ones */
    bool filler; /* resign: sign a filler in place of the call; if it gets in, the transaction ends
                  */
    const char *outcome; /* with this, and `error`; fill: it ends with this in any case */
    const char *reason;  /* resign, fill */
    char error[200];
    /* admit, presigned: the whole extrinsic; no block up to from_block holds it */
    const uint8_t *bytes;
    size_t bytes_len;
    int64_t era_birth, era_death;
    uint32_t spec_version;
    uint64_t from_block;
    struct tx_origin origin; /* admit */
};

/* Rows, bytes and found extrinsics are valid until the next step. */
struct manager_effect {
    enum manager_effect_type type;
    union {
        int64_t after_nonce; /* LOAD */
        uint32_t limit;      /* WANT_OUTBOX */
        struct {
            struct manager_sign_row *rows;
            size_t count;
            /* goes on record: final blocks up to it hold no attempt at these nonces */
            uint64_t block;
            bool presigned;      /* ADMIT: the rows were signed elsewhere; */
            uint64_t next_nonce; /* then: the account's before it */
        } sign;                  /* ADMIT, RESIGN, FILL */
        struct {
            uint64_t nonce;
            uint8_t hash[32];
            const uint8_t *bytes;
            size_t bytes_len;
        } submit;
        struct {
            uint64_t nonce;
            uint8_t hash[32];
        } unwatch;
        struct {
            struct tx_report *rows;
            size_t count;
        } states;
        struct {
            struct tx_end *rows;
            size_t count;
        } ends; /* FINISH, REQUEUE, REJECT */
        struct {
            struct tx_note *rows;
            size_t count;
        } notes;
        struct {
            uint64_t nonce;
            bool lower;  /* the stored next nonce goes down */
            bool reborn; /* and a new life of the account begins */
        } next;          /* STORE_NONCE */
        struct {
            enum manager_suspension suspension; /* NONE ends the leader's pause */
            char text[200];
        } pause;
        struct {
            const struct tx_found *found;
            size_t count;
            uint64_t block; /* no block up to it holds any */
            bool done;      /* all was looked through */
            int64_t read;   /* done: up to this block; -1: the wait is cut short */
        } adopt;
        bool whole;      /* ASK_POOL: what this account signed is wanted with its bytes */
        uint64_t number; /* ASK_UNFINAL, FOLLOW, NODE_BEHIND, LOOK, STORE_HEARD */
        char text[200];  /* ALERT */
    };
};

struct manager *manager_new(const struct manager_config *config); /* zeros = defaults */
struct manager *manager_free(struct manager *m);

/* One event, then the effects in order. The list is valid until the next step. now: monotonic
 * ms. */
void manager_step(struct manager *m, uint64_t now, const struct manager_event *ev,
                  const struct manager_effect **ret_effects, size_t *ret_count);
uint64_t manager_deadline(const struct manager *m); /* when a TICK is wanted; UINT64_MAX: none */

/* For status, metrics and tests. */
enum manager_phase manager_phase(const struct manager *m);
struct manager_view {
    uint64_t next_nonce;
    uint64_t processed; /* every finalized block up to this one was worked through */
    size_t open;        /* nonces in use */
    size_t unsent;      /* committed and not on the wire */
    size_t unsure;      /* waiting for a probe */
    size_t in_block;
    uint32_t window;
    uint32_t gap_blocks;  /* the number of blocks that the present nonce gap has lasted; 0: there is
                             none */
    uint32_t gap_longest; /* of this leadership */
    bool reconciles;      /* what lost commits may have sent is not adopted yet: no stop is heard */
    uint64_t gaps;        /* that began since the manager is there */
    uint64_t wait_blocks; /* that are left of the wait after lost commits; 0: none, or not known */
    enum manager_suspension suspension;
    /* Something takes a while under one leader: a new life was ordered and has not begun, or
     * another transaction_version is waited for to be final. */
    bool stays;
};
struct manager_view manager_view_of(const struct manager *m);
/* The tables of its phases and of the states of its rows. A move that they do not have is a bug:
 * the manager drops what the step decided, alerts, and loads its rows again; manager_check fails
 * from then on. */
struct manager_moves {
    uint64_t phases, rows; /* a bit for each move of a table that was made */
};
struct manager_moves manager_moved(const struct manager *m);
void manager_phases_missing(uint64_t made,
                            struct buf *out); /* the moves without a bit, a line each */
void manager_rows_missing(uint64_t made, struct buf *out);
void manager_phases_dump(struct buf *out); /* the table as a mermaid state diagram */
void manager_rows_dump(struct buf *out);

/* ---- rules for the adapters (rules.c) ---- */

/* The longest era of at most `period` blocks (0: immortal) that begins at block `from` and ends
 * with block `last`; 0: none does. The core chooses a period by the final block that it has
 * worked through; when its door signs, a newer one may be final. */
uint32_t manager_era_fit(uint32_t period, uint64_t from, uint64_t last);

/* The longest era, in blocks, that is ever signed where eras are of `period` blocks (0: none). */
uint32_t manager_era_longest(uint32_t period);

/* What bytes are that were signed for an open nonce. An ed25519 or ecdsa key signs the same
 * content to the same bytes: while finality stalls they are the CURRENT attempt, which is on
 * record and is not written again. A FORMER attempt's bytes come back from a node that is behind
 * the one that they were signed by. */
enum manager_attempt { MANAGER_ATTEMPT_NEW, MANAGER_ATTEMPT_CURRENT, MANAGER_ATTEMPT_FORMER };
enum manager_attempt manager_attempt_of(const struct manager *m, const uint8_t current[32],
                                        const uint8_t hash[32]);
/* The era to sign with once bytes with an era of `period` turned out to be such an attempt. A node
 * that was behind an upgrade had a row signed for the old runtime; back under the new one, immortal
 * bytes are a FORMER attempt's for ever, and only another era makes new ones. So it is with CURRENT
 * immortal bytes that a pool has banned. */
uint32_t manager_era_anew(enum manager_attempt attempt, bool banned, uint32_t period);

/* A write failed. May the database still carry it out? Then the account goes on under a new
 * epoch. */
bool manager_write_doubtful(enum manager_effect_type write, int code);

/* May an account that admits nothing any more be handed over? Nothing is unsent, no store
 * request is in flight that new bytes may come of (unstored), every submission is answered. One
 * that is not rebuilt has nothing of its own on the way. */
bool manager_settled(const struct manager *m, size_t unstored, size_t unanswered);

/* Does the manager know this hash (current or earlier attempt of an open nonce)? */
bool manager_knows(const struct manager *m, const uint8_t hash[32]);
/* Could a block hold anything that this account has in flight, or has lost? */
bool manager_needs_blocks(const struct manager *m);
/* Does an extrinsic that names the account as its signer count only if its signature is right? Not
 * where the hash is on record, nor where its nonce is below all that is open. */
bool manager_must_verify(const struct manager *m, const uint8_t hash[32], uint64_t nonce);
/* Were calls of the account accepted under some transaction_version? */
bool manager_has_version(const struct manager *m);
/* Would something that only an operator can undo follow from this account nonce at a final block?
 * Then the adapter asks again before it reports the block. shown: above the nonces that the
 * account's extrinsics in the block use, where their signatures are right; 0: none is there. */
enum tx_doubt manager_doubts_nonce(const struct manager *m, uint64_t number, uint64_t nonce,
                                   uint64_t shown);
/* Above the nonce that this extrinsic of a block uses for certain; 0: its bytes are unknown and its
 * signature is not verified. */
uint64_t manager_shown_nonce(const struct manager *m, const struct tx_included *x);
void manager_check(
    const struct manager *m); /* INVARIANTs over the whole state, for tests and the simulator */

#endif
