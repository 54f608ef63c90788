/* The events of manager_step: what happened at the chain, the node, the store. */
#ifndef RELAY_MANAGER_EVENT_H
#define RELAY_MANAGER_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "relay/core/tx/manager_effect.h"

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
    uint32_t spec_version;  /* of the runtime that executed it; 0: not known */
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
            int64_t lost_since_ms;        /* then: when that was found, by the database's clock */
            int64_t database_ms, here_ms; /* what the database's and this relay's clock show */
            int64_t lost_until; /* and the block at which the wait ends; -1: not known yet */
            bool immortal;      /* lost commits may have sent bytes without an era */
            const struct manager_account *account; /* NULL: nothing is set */
            const char *suspension_text; /* why an earlier leader suspended it; NULL: not told */
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
            uint64_t number; /* of the last request poll before it began */
            const struct tx_stop *stops;
            size_t count;
            const struct manager_account *account; /* NULL: nothing changed */
        } requests;
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

#endif
