/* What the manager wants done: the effects that manager_step lists. */
#ifndef RELAY_MANAGER_EFFECT_H
#define RELAY_MANAGER_EFFECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "relay/core/tx/manager_account.h"

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
            int64_t era_death; /* -1: they have no era */
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
            uint64_t block;   /* no block up to it holds any */
            bool done;        /* all was looked through */
            int64_t read;     /* done: up to this block; -1: the wait is cut short */
            int64_t ahead_ms; /* by which the database's clock is ahead of the chain's */
        } adopt;
        bool whole;      /* ASK_POOL: what this account signed is wanted with its bytes */
        uint64_t number; /* ASK_UNFINAL, FOLLOW, NODE_BEHIND, POLL_REQUESTS, STORE_HEARD */
        char text[200];  /* ALERT */
    };
};

#endif
