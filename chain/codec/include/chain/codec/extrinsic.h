/* Extrinsic format v4: build and decode. Signing and verifying need keys too:
 * chain/keys/extrinsic_sign.h.
 *
 *   compact length | 0x84 | address | signature | explicit extensions | call
 *   payload (signed):                       call | explicit extensions | implicit extensions
 *
 * The metadata lists the chain's signed extensions. We know them by name. Of the others, those
 * without bytes need nothing, those whose explicit part is an Option are None, and for the rest
 * extrinsic_configure gives the bytes; else the chain is refused (ERR_EXTENSION names all of
 * them). */
#ifndef CHAIN_CODEC_EXTRINSIC_H
#define CHAIN_CODEC_EXTRINSIC_H

#include "base/buf.h"
#include "base/error.h"
#include "base/key_scheme.h"
#include "chain/codec/metadata.h"
#include "chain/codec/scale.h"
#include "chain/codec/ss58.h"

/* The range of blocks in which an extrinsic is valid (sp-runtime generic/era.rs). period 0:
 * immortal; otherwise a power of two in 4..65536. */
struct era {
    uint32_t period;
    uint32_t phase;
};
/* The era of this period that contains `current`, a finalized block. Rounds the period up to a
 * power of two. Periods above 4096 round the phase down: the era then begins up to 15 blocks before
 * `current`, and the signed block hash must be that of era_birth(). */
struct era era_mortal(uint32_t period, uint64_t current);
uint64_t era_birth(struct era era, uint64_t current); /* its first block; 0 if immortal */
/* The first block in which the era is not valid any more; UINT64_MAX if immortal. */
uint64_t era_death(struct era era, uint64_t current);
size_t era_encode(struct era era, uint8_t out[2]); /* 1 or 2 bytes */
bool era_decode(struct scale_in *in, struct era *ret_era);

struct extrinsic_params {
    uint64_t nonce;
    u128 tip;
    struct era era;
    uint8_t genesis[32];
    uint8_t era_block_hash[32]; /* of block era_birth; not read if immortal */
    uint32_t spec_version;
    uint32_t transaction_version;
    bool metadata_hash; /* sign the metadata hash too (mode 1 of CheckMetadataHash) */
};

/* What we write for a signed extension that is not known here. */
struct extrinsic_extension {
    const char *name;
    struct buf explicit_part; /* in the extrinsic and signed */
    struct buf implicit_part; /* signed only */
};
/* Use these bytes (copied) for the extensions of these names. What does not fit the chain's types
 * is an error of extrinsic_supported. Names that the chain does not have are ignored. */
void extrinsic_configure(struct metadata *md, const struct extrinsic_extension *list, size_t count);
bool extrinsic_knows(const char *name); /* this extension needs no bytes of the configuration */

/* 0 if we can sign for this chain. ERR_EXTENSION, ERR_METADATA: err says what is not supported. */
int extrinsic_supported(const struct metadata *md, struct err *err);
/* 0 if we can verify what others signed for this chain. The same errors. */
int extrinsic_verifiable(const struct metadata *md, struct err *err);
/* Append which extensions are None or configured: "AsPerson and AsMember are None; RestrictOrigins
 * is 0x00". Nothing if there are none. */
void extrinsic_extensions_text(const struct metadata *md, struct buf *out);

/* The chain's token is known (NULL: not any more), and with it the hash that CheckMetadataHash
 * signs. Nothing happens on a chain without this extension. */
void extrinsic_set_token(struct metadata *md, const struct metadata_token *token);
/* Does this chain have CheckMetadataHash? */
bool extrinsic_has_metadata_hash(const struct metadata *md);
/* 0 if params.metadata_hash can be set. ERR_EXTENSION, ERR_METADATA: err says why it cannot. */
int extrinsic_metadata_hash(const struct metadata *md, struct err *err);

/* The highest tip that this chain's type holds. */
u128 extrinsic_tip_max(const struct metadata *md);

/* ---- building ---- */

/* Append the payload: call | explicit | implicit extensions. ERR_ARGUMENT: a value in params that
 * this chain's types cannot hold. On an error nothing is appended. */
int extrinsic_payload(const struct metadata *md, const struct extrinsic_params *params,
                      const uint8_t *call, size_t call_len, struct buf *ret_payload,
                      struct err *err);
/* The signature is over the payload itself, or over its blake2b-256 if it is longer than 256 bytes:
 * turn the payload into what is signed. */
void extrinsic_payload_shorten(struct buf *payload);

struct extrinsic_signer {
    enum key_scheme scheme;
    const uint8_t *account_id; /* of key_account_id_len(scheme) bytes; borrowed */
};
/* 0 if this chain's extrinsics can carry a signature of this scheme. ERR_KEY: they cannot.
 * ERR_METADATA: we cannot tell. */
int extrinsic_check_signer(const struct metadata *md, const struct extrinsic_signer *signer,
                           struct err *err);

/* Append the signed extrinsic with its length prefix; ret_hash gets its blake2b-256. PRE:
 * extrinsic_payload accepted params, extrinsic_check_signer the signer. */
void extrinsic_assemble(const struct metadata *md, const struct extrinsic_params *params,
                        const struct extrinsic_signer *signer, const uint8_t *signature,
                        const uint8_t *call, size_t call_len, struct buf *ret_bytes,
                        uint8_t ret_hash[32]);

/* ---- decoding ---- */

/* A view into an encoded extrinsic; its pointers point into the input. Bare extrinsics of v4 and v5
 * and general ones of v5 decode too, with is_signed false. signer_len is 0 if the address is not an
 * account id. */
struct extrinsic_view {
    bool is_signed;
    uint8_t signer[ACCOUNT_ID_MAX];
    size_t signer_len;
    enum key_scheme scheme;
    const uint8_t *signature;
    struct era era;
    bool has_nonce;
    uint64_t nonce;
    u128 tip;
    bool metadata_hash; /* it signs one: see struct extrinsic_params */
    const uint8_t *call;
    size_t call_len;
    const uint8_t *extra; /* the explicit extension bytes */
    size_t extra_len;
};
int extrinsic_decode(const struct metadata *md, const uint8_t *bytes, size_t len,
                     struct extrinsic_view *ret_view, struct err *err);

/* The nonce of a signed extrinsic, also of one that does not decode behind it: another runtime may
 * have other extensions there. False: it does not decode that far. */
bool extrinsic_nonce(const struct metadata *md, const uint8_t *bytes, size_t len,
                     uint64_t *ret_nonce);

/* The time that a block's inherent Timestamp.set carries, in milliseconds since 1970. `set` is what
 * metadata_find_call gives for it. -1: this is another call. */
int64_t extrinsic_time(const uint8_t *call, size_t call_len, const uint8_t set[2]);

/* Append an extrinsic as JSON: {"hash", "signed", "signer", "scheme", "signature", "era", "nonce",
 * "tip", "extensions", "call"}; of an unsigned one only "hash", "signed" and "call". The call is
 * printed as by codec_call_to_readable (plain: codec_call_to_json) and must decode exactly. On an
 * error nothing is appended. */
int extrinsic_to_json(const struct metadata *md, const uint8_t *bytes, size_t len, bool plain,
                      struct buf *out, struct err *err);

/* Append the payload that a decoded extrinsic was signed over, under these chain facts (nonce, tip,
 * era and the mode of the metadata hash come from the view, not from params). On an error, for
 * example because a metadata hash was signed that is not known here, nothing is appended. */
int extrinsic_view_payload(const struct metadata *md, const struct extrinsic_view *view,
                           const struct extrinsic_params *params, struct buf *ret_payload,
                           struct err *err);

#endif
