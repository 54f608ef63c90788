/* The rules of devchain's runtime: validity of a transaction, dispatch with its events, fees. Pure
 * over the chain's state. */
#ifndef DEVCHAIN_RUNTIME_H
#define DEVCHAIN_RUNTIME_H

#include "chain.h"

struct tx;
struct dispatch_error;

struct runtime {
    struct chain *chain;
    uint8_t genesis[32];
    struct chain_version version; /* of the next block */
    uint32_t block_hash_count;
    uint16_t ss58_prefix;
    u128 existential_deposit;
    u128 fee_base, fee_byte;
    uint64_t block_ref_time_max, block_proof_size_max;
    uint32_t block_len_max;
    uint8_t sudo_key[32];
    bool trust_signatures; /* for measuring: any signature is good under any version */
    /* Scripted: does this dispatch fail whatever the call is? NULL: never. */
    bool (*fails)(void *arg, const struct tx *tx, struct dispatch_error *ret_error);
    void *fails_arg;
};

enum validity_kind { VALIDITY_OK, VALIDITY_INVALID, VALIDITY_UNKNOWN, VALIDITY_TRAP };

/* Variant indices of InvalidTransaction and UnknownTransaction. */
enum invalid_kind {
    INVALID_CALL,
    INVALID_PAYMENT,
    INVALID_FUTURE,
    INVALID_STALE,
    INVALID_BAD_PROOF,
    INVALID_ANCIENT_BIRTH_BLOCK,
    INVALID_EXHAUSTS_RESOURCES,
    INVALID_CUSTOM,
    INVALID_BAD_MANDATORY,
    INVALID_MANDATORY_VALIDATION,
    INVALID_BAD_SIGNER,
};
enum unknown_kind { UNKNOWN_CANNOT_LOOKUP, UNKNOWN_NO_UNSIGNED_VALIDATOR, UNKNOWN_CUSTOM };

struct validity {
    enum validity_kind kind;
    uint8_t code;   /* enum invalid_kind or unknown_kind */
    uint8_t custom; /* the number of a Custom one */
    /* OK: */
    bool requires;    /* the tag (signer, nonce - 1) */
    bool no_provides; /* scripted only: a transaction without tags */
    bool no_propagate;
    uint64_t priority;
    uint64_t longevity;
};

/* As TaggedTransactionQueue_validate_transaction on the state of the best block. */
struct validity runtime_validate(const struct runtime *rt, struct tx *tx);

u128 runtime_fee(const struct runtime *rt, const struct tx *tx); /* with the tip, saturating */
u128 runtime_fee_of(const struct runtime *rt, size_t len);       /* without */

/* Variant indices of DispatchError. */
enum dispatch_kind {
    DISPATCH_KIND_OK = -1,
    DISPATCH_KIND_BAD_ORIGIN = 2,
    DISPATCH_KIND_MODULE = 3,
    DISPATCH_KIND_TOKEN = 7,
};
struct dispatch_error {
    int kind;
    uint8_t module, code; /* Module: pallet and error; Token: code */
};
void dispatch_error_scale(struct dispatch_error e, struct buf *out);

/* A block under construction on top of the best block. */
struct exec {
    struct runtime *rt;
    struct buf events;
    uint32_t event_count;
    uint32_t index; /* of the extrinsic at work */
    uint64_t ref_time, len;
    uint64_t timestamp_ms;
    bool dry_run;    /* nothing scripted happens */
    struct tx **txs; /* owned references of what was applied */
    size_t tx_count, tx_cap;
};
void exec_init(struct exec *x, struct runtime *rt, uint64_t timestamp_ms);
void exec_done(struct exec *x);

/* Apply one transaction. Not VALIDITY_OK: nothing happened (INVALID_EXHAUSTS_RESOURCES: the block
 * is full). OK: it is in the block, *ret_error tells the dispatch outcome. */
struct validity exec_apply(struct exec *x, struct tx *tx, struct dispatch_error *ret_error);
/* The same, taken back at once (system_dryRun). */
struct validity exec_dry_run(struct runtime *rt, struct tx *tx, struct dispatch_error *ret_error);

/* Internal to the runtime's files. */
void exec__event(struct exec *x, uint8_t pallet, uint8_t variant, const struct buf *fields);
struct dispatch_error exec__dispatch(struct exec *x, const uint8_t *origin, struct scale_in *call);

#endif
