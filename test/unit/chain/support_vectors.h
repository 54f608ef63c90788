/* The reference vectors and the metadata of real runtimes, for tests of chain/. */
#ifndef TEST_CHAIN_SUPPORT_VECTORS_H
#define TEST_CHAIN_SUPPORT_VECTORS_H

#include <jansson.h>

#include "base/buf.h"
#include "chain/codec/metadata.h"
#include "chain/keys/extrinsic_sign.h"
#include "chain/keys/keys.h"

/* Each stops the program with a message when a file is missing or malformed. */
json_t *vectors_load(const char *name); /* "vectors.json"; the caller's reference */
void vectors_metadata_bytes(const char *name, struct buf *out); /* "v14-polkadot" */
struct metadata *vectors_metadata(const char *name);            /* parsed */
void vectors_hex(const json_t *object, const char *key,
                 struct buf *out); /* replaces what is in out */
void vectors_params(const json_t *vectors, const json_t *runtime, struct extrinsic_params *out);
struct keypair *vectors_key(const char *scheme); /* //Alice, or the development key Alith */

#endif
