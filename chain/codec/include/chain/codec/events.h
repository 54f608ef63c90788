/* System.Events of one block: what became of each extrinsic. */
#ifndef CHAIN_CODEC_EVENTS_H
#define CHAIN_CODEC_EVENTS_H

#include "base/error.h"
#include "base/tx.h"
#include "chain/codec/metadata.h"
#include "chain/codec/scale.h"

/* results[0..count): by extrinsic index; zeroed first. Bytes: the storage value of System.Events. */
int events_decode(const struct metadata *md, const uint8_t *bytes, size_t len,
                  struct dispatch_result *results, size_t count, struct err *err);

/* A SCALE DispatchError (system_dryRun, ExtrinsicFailed's field) to text, moving `in` over it. */
int dispatch_error_text(const struct metadata *md, struct scale_in *in, char out[160], struct err *err);

#endif
