/* Shared by building and decoding of extrinsics: the two halves of the signed extensions. */
#ifndef CHAIN_CODEC_EXTRINSIC_INTERNAL_H
#define CHAIN_CODEC_EXTRINSIC_INTERNAL_H

#include "chain/codec/extrinsic.h"
#include "metadata_internal.h"

enum {
    EXTRINSIC_SIGNED = 0x80,
    EXTRINSIC_GENERAL = 0x40, /* v5: extensions without a signature */
    EXTRINSIC_FORM = 0xc0,
    EXTRINSIC_V4 = 4,
    EXTRINSIC_V5 = 5,
};

/* The explicit half is in the extrinsic and in the payload, the implicit half in the payload alone.
 * PRE: the format is supported. */
void extrinsic__put_explicit(const struct metadata *md, const struct extrinsic_params *params,
                             struct buf *out);
void extrinsic__put_implicit(const struct metadata *md, const struct extrinsic_params *params,
                             struct buf *out);

/* By its name; an extension without one that we know, by its types. */
enum extension_kind extrinsic__extension_kind(const struct metadata *md,
                                              const struct metadata_extension *e);
/* Do the bytes that we would write decode as the types of the extension with this index? */
bool extrinsic__extension_fits(const struct metadata *md, size_t i,
                               const struct extrinsic_params *params);

/* Read the explicit half of a decoded extrinsic. */
struct extrinsic_extra {
    struct era era;
    bool has_nonce; /* as far as it was read */
    u128 nonce;
    u128 tip;
    uint8_t metadata_hash_mode; /* of CheckMetadataHash; 0 without it */
};
int extrinsic__read_explicit(const struct metadata *md, struct scale_in *in,
                             struct extrinsic_extra *ret_extra, struct err *err);

#endif
