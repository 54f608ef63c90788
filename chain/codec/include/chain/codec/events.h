/* System.Events of one block: how the call of each extrinsic ended. */
#ifndef CHAIN_CODEC_EVENTS_H
#define CHAIN_CODEC_EVENTS_H

#include "base/error.h"
#include "base/tx.h"
#include "chain/codec/metadata.h"
#include "chain/codec/scale.h"

/* The storage key of System.Events, as text. */
extern const char events_key[];

/* Fill results[0..count), indexed by extrinsic, from the storage value of System.Events. The
 * results are zeroed first, so an extrinsic without an event stays DISPATCH_NONE. */
int events_decode(const struct metadata *md, const uint8_t *bytes, size_t len,
                  struct dispatch_result *results, size_t count, struct err *err);

#endif
