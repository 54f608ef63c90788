/* Types that all layers share: the statuses that a node's pool reports, and the result of an
 * extrinsic in a finalized block. They are here so that the cores need only base/. */
#ifndef BASE_TX_H
#define BASE_TX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/u128.h"

/* Statuses of a watched extrinsic. The names are Substrate's (author_extrinsicUpdate). */
enum tx_status {
    TX_FUTURE,
    TX_READY,
    TX_BROADCAST,
    TX_IN_BLOCK,
    TX_RETRACTED,
    TX_FINALITY_TIMEOUT,
    TX_FINALIZED,
    TX_USURPED,
    TX_DROPPED,
    TX_INVALID,
};
const char *tx_status_name(enum tx_status s); /* as the database stores it: "in_block" */
bool tx_status_final(enum tx_status s);       /* the node reports nothing after it */

enum dispatch_outcome { DISPATCH_NONE, DISPATCH_OK, DISPATCH_FAILED };

struct dispatch_result {
    enum dispatch_outcome outcome; /* NONE: no ExtrinsicSuccess/Failed event was found */
    /* Failed: "Balances.InsufficientBalance" for a module error, else "BadOrigin",
     * "Token.FundsUnavailable", "Arithmetic.Overflow"... An inner failure that the outer call
     * survives (Utility.BatchInterrupted, ItemFailed, Proxy.ProxyExecuted(Err),
     * Multisig.MultisigExecuted(Err), Sudo.Sudid(Err)) is outcome FAILED too, with the text
     * "Utility.BatchInterrupted[2]: Balances.InsufficientBalance". */
    char error[160];
    bool inner; /* the failure is an inner one */
    bool has_fee;
    u128 fee; /* TransactionPayment.TransactionFeePaid.actual_fee */
};

/* A W3C traceparent, version 00 to fe: "00-" trace "-" parent "-" flags, and nothing behind. */
enum { TX_TRACE_SIZE = 56 }; /* with its end */
bool tx_trace_is_valid(const char *text);

/* When a transaction was enqueued, and under which trace. For metrics and the log alone: nothing
 * decides by it. */
struct tx_origin {
    bool known;
    int64_t enqueued_ms;       /* on the loop's clock; may be before its start */
    char trace[TX_TRACE_SIZE]; /* "": none */
};

/* One signed extrinsic of an account at a nonce: it was signed, is committed, and goes to nodes. */
struct tx_attempt {
    uint64_t nonce;
    int64_t id; /* of the transaction; 0: a filler takes the nonce */
    uint8_t hash[32];
    const uint8_t *bytes; /* copied by the receiver; the call is the last call_len bytes */
    size_t bytes_len, call_len;
    int64_t era_birth, era_death; /* -1: immortal */
    uint32_t spec_version;
    uint32_t guard; /* the only runtime spec version that it may be signed under; 0: any */
    u128 tip;
};

/* A transaction, or a filler, that has a nonce and has not ended, with its current attempt. */
struct tx_pending {
    uint64_t nonce;
    int64_t id;        /* 0: a filler */
    const char *state; /* tx_status_name, "signed" or "unknown" */
    uint8_t hash[32];
    int32_t attempt; /* how many there were, with this one */
    const uint8_t *bytes;
    size_t bytes_len;
    size_t call_len;   /* of its own call */
    size_t filler_len; /* of the filler's, where the current attempt is one in its place; else 0 */
    bool has_block;
    uint8_t block_hash[32];
    int64_t block_number;         /* -1: none */
    int64_t era_birth, era_death; /* -1: immortal */
    uint32_t spec_version;
    uint32_t guard; /* the only runtime spec version under which it may be signed; 0: any */
    u128 tip;       /* of the current attempt */
    bool has_max_tip;
    u128 max_tip;            /* else the account's cap alone */
    uint64_t deadline_block; /* the last block that may hold it; 0: none */
    uint32_t retries;        /* dispatch errors after which it may go back to the outbox */
    /* how it ends if a filler of its own gets in; NULL: none was signed */
    const char *stop_outcome;
    const char *stop_reason;
    uint64_t submitted_block; /* finalized height when it was signed */
    /* hashes of earlier attempts at this nonce: they may still be included */
    const uint8_t (*earlier)[32];
    size_t earlier_count;
    size_t earlier_own;    /* the first earlier_own of them were no fillers */
    int64_t earlier_death; /* where the last of their eras ends; -1: one is immortal; 0: none */
    bool presigned;        /* its own bytes are presigned: they are never signed again */
    int64_t age_ms;        /* since it was enqueued; -1: not known */
    const char *trace;     /* NULL: none */
};

/* What a node said of an attempt, as it goes on record. */
struct tx_report {
    uint64_t nonce;
    int64_t id;
    uint8_t hash[32];
    const char *state; /* tx_status_name; "refused": the state stays, and `error` goes into the
                          attempt's history; "tried": the same, but no refusal; "unknown":
                          what became of it is not known */
    bool has_block;
    uint8_t block_hash[32];
    int64_t block_number; /* -1: not known */
    char error[200];      /* "": none */
};

/* How a transaction, or a nonce, ended. */
struct tx_end {
    uint64_t nonce; /* not of one that ended without a nonce */
    int64_t id;
    uint8_t hash[32];    /* of the attempt that was included, or of the last one */
    const char *outcome; /* "ok", "failed", "expired", ...; lives as long as the program */
    char error[200];     /* "": none */
    bool has_block, has_fee;
    uint8_t block_hash[32];
    int64_t block_number;
    /* without a block: as of this one another program used the nonce; 0: none */
    int64_t used_block;
    uint32_t index; /* in the block */
    u128 fee;
    char trace[TX_TRACE_SIZE]; /* of one that ended without a nonce; "": none */
};

/* How far a node's answer about an account's nonce is believed: as it is, after one more answer, or
 * after several and that of another endpoint. */
enum tx_doubt { TX_CERTAIN, TX_TWICE, TX_DOUBTED };

/* Did the account that an extrinsic names as its signer really sign it? */
enum tx_signature {
    TX_SIGNATURE_UNKNOWN, /* it was not checked, or it cannot be */
    TX_SIGNATURE_GOOD,
    TX_SIGNATURE_BAD,
};

/* What checking a presigned transaction that waits in the outbox found. */
struct tx_note {
    uint64_t nonce; /* UINT64_MAX: it does not decode */
    int64_t id;
    uint8_t hash[32];
    int64_t era_death;   /* -1: immortal */
    uint64_t wait_block; /* not due before this block is final; 0: when its nonce's turn has come */
    char text[200];      /* what it waits for; "": nothing */
};

/* A pending transaction that is to be stopped: no new bytes are signed for it, and it ends with
 * this outcome if none of those that may be out there gets in. Or one whose tip is to rise. */
struct tx_stop {
    uint64_t nonce;
    int64_t id;
    const char *outcome; /* "expired", "cancelled"; NULL: a bump */
    const char *reason;
    u128 tip; /* bump: the least that the next attempt is to pay */
};

/* An extrinsic of an account that the chain or a pool holds, and the database does not know. */
struct tx_found {
    uint64_t nonce;
    uint8_t hash[32];
    uint8_t *bytes;
    size_t bytes_len, call_len;   /* the call is the last call_len bytes */
    int64_t era_birth, era_death; /* -1: immortal */
    u128 tip;
    int64_t time_ms; /* of its block, wall clock; -1: in a pool, or not known */
};

/* One extrinsic of a finalized block or of a pool. */
struct tx_included {
    uint8_t hash[32];
    uint32_t index;
    uint64_t nonce;
    bool own_signer; /* it names the account that receives this struct as its signer */
    enum tx_signature signature;
    struct dispatch_result result;
    const uint8_t *bytes; /* borrowed; NULL: not decoded. The call is the last call_len bytes */
    size_t bytes_len, call_len;   /* bytes_len also counts where `bytes` is NULL */
    int64_t era_birth, era_death; /* -1: immortal */
    u128 tip;
};

#endif
