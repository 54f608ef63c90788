/* Sign and verify extrinsics: the format of chain/codec/extrinsic.h with the keys of
 * chain/keys/keys.h. */
#ifndef CHAIN_KEYS_EXTRINSIC_SIGN_H
#define CHAIN_KEYS_EXTRINSIC_SIGN_H

#include "chain/codec/extrinsic.h"
#include "chain/keys/keys.h"

/* Append the signed extrinsic with its length prefix; ret_hash gets its blake2b-256. ERR_ARGUMENT:
 * a value in params that this chain's types cannot hold; ERR_KEY: a key that this chain does not
 * take. On an error nothing is appended. */
int extrinsic_sign(const struct metadata *md, const struct extrinsic_params *params,
                   const struct keypair *key, const uint8_t *call, size_t call_len,
                   struct buf *ret_bytes, uint8_t ret_hash[32], struct err *err);

/* Verify the signature of a decoded extrinsic under these chain facts (nonce, tip and era come from
 * the view). *ret_good says whether it is right. ERR_EXTENSION: it was signed over a metadata hash,
 * which is not known here. */
int extrinsic_verify(const struct metadata *md, const struct extrinsic_view *view,
                     const struct extrinsic_params *params, bool *ret_good, struct err *err);

#endif
