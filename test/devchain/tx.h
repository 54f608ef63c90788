/* A decoded extrinsic of devchain's own runtime (format v4). Immutable and shared by pool, blocks
 * and statistics through a reference count. */
#ifndef DEVCHAIN_TX_H
#define DEVCHAIN_TX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chain/codec/scale.h"
#include "chain/keys/keys.h"

/* Call indices; metadata_build.c publishes the same numbers. */
enum {
    PALLET_SYSTEM = 0,
    PALLET_TIMESTAMP = 3,
    PALLET_BALANCES = 10,
    PALLET_PAYMENT = 11,
    PALLET_UTILITY = 40,
    PALLET_SUDO = 50,
};
enum {
    CALL_REMARK = 0x0000,
    CALL_REMARK_WITH_EVENT = 0x0007,
    CALL_TIMESTAMP_SET = 0x0300,
    CALL_TRANSFER_ALLOW_DEATH = 0x0a00,
    CALL_TRANSFER_KEEP_ALIVE = 0x0a03,
    CALL_TRANSFER_ALL = 0x0a04,
    CALL_BATCH = 0x2800,
    CALL_BATCH_ALL = 0x2802,
    CALL_FORCE_BATCH = 0x2804,
    CALL_SUDO = 0x3200,
};

enum tx_signer { TX_BARE, TX_SIGNED, TX_UNKNOWN_ADDRESS };

struct tx {
    unsigned refs;
    uint8_t hash[32]; /* of the bytes including the length prefix */
    uint8_t *bytes;   /* owned: minimal length prefix, then the body */
    size_t len;
    enum tx_signer signer_kind;
    uint8_t signer[32];
    enum key_scheme scheme;
    const uint8_t *signature;
    uint16_t era_period; /* 0: immortal; 65536 is stored as 0 with era_mortal */
    bool era_mortal;
    uint32_t era_phase;
    const uint8_t *extra; /* the explicit extension bytes: era, nonce, tip */
    size_t extra_len;
    uint32_t nonce;
    u128 tip;
    const uint8_t *call; /* NULL: the runtime could not decode it */
    size_t call_len;
    uint64_t ref_time; /* total weight */
    uint64_t proof_size;
    /* What the signature was last found good under; see runtime_validate. */
    bool proven;
    uint32_t proven_spec, proven_tx_version;
    uint8_t proven_birth[32];
};

enum tx_decode { TX_DECODE_OK, TX_DECODE_BAD_FRAME, TX_DECODE_BAD_BODY };

/* Decode bytes; whatever follows the length-prefixed part is ignored. BAD_FRAME: the length prefix
 * does not fit, nothing is returned. BAD_BODY: the runtime could not decode it; *ret_tx then holds
 * bytes and hash only, so that the pool can ban it. */
enum tx_decode tx_decode(const uint8_t *bytes, size_t len, struct tx **ret_tx);
struct tx *tx_ref(struct tx *tx);
void tx_unref(struct tx *tx); /* NULL allowed */

/* The era's birth block for a transaction applied in block `current`. */
uint64_t tx_era_birth(const struct tx *tx, uint64_t current);
uint64_t tx_era_death(const struct tx *tx, uint64_t current); /* UINT64_MAX: immortal */

/* An inherent of our own: Timestamp.set. */
struct tx *tx_timestamp(uint64_t now_ms);

/* Move `in` over one call, nested ones included. false: it does not decode. *weight gets its weight
 * added. */
bool tx_skip_call(struct scale_in *in, unsigned depth, uint64_t *weight);

/* MultiAddress into a 32-byte id. false: bad bytes, or (with in->bad unset) a form that no lookup
 * knows. */
bool tx_get_address(struct scale_in *in, uint8_t ret_id[32]);

#endif
