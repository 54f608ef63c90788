/* Dynamic SCALE by the type registry: skip (measure), check, decode to JSON text, encode from JSON. Depth
 * and element counts are bounded: bytes come from outside. */
#ifndef CHAIN_CODEC_CODEC_H
#define CHAIN_CODEC_CODEC_H

#include "base/buf.h"
#include "base/error.h"
#include "chain/codec/metadata.h"
#include "chain/codec/scale.h"

enum { CODEC_DEPTH_MAX = 64 };

/* Move `in` over one value of the type; 0, or ERR_DECODE with the path where it failed. */
int codec_skip(const struct metadata *md, uint32_t type, struct scale_in *in, struct err *err);

/* Append the value as JSON text: structs as objects, tuples and sequences as arrays, byte sequences as
 * "0x..", u64 and up as decimal strings (u256: its bytes as "0x.."), smaller numbers as numbers, enums as
 * {"Variant": fields} with unit variants as "Variant", Option as null or value (an Option in an Option as
 * {"Some": value}), bit sequences as "0b1101", 32-byte AccountIds as "0x..". A struct of one unnamed field is
 * that field. On an error nothing is appended. */
int codec_to_json(const struct metadata *md, uint32_t type, struct scale_in *in, struct buf *out,
                  struct err *err);

/* A call must decode exactly, with nothing left over. ERR_DECODE's text says pallet, call and the byte
 * offset where it stops. */
int codec_check_call(const struct metadata *md, const uint8_t *call, size_t len, struct err *err);
/* As codec_to_json: {"Balances": {"transfer_keep_alive": {"dest": .., "value": ".."}}}. */
int codec_call_to_json(const struct metadata *md, const uint8_t *call, size_t len, struct buf *out,
                       struct err *err);

/* As codec_to_json, for people: accounts of 32 bytes as SS58 text of this chain, MultiAddress::Id as the
 * account alone, calls as {"pallet": .., "call": .., "args": {..}}, byte sequences that are plain text as
 * that text, mortal eras as {"period": .., "phase": ..}. codec_from_json makes the same bytes of it. */
int codec_to_readable(const struct metadata *md, uint32_t type, struct scale_in *in, struct buf *out,
                      struct err *err);
int codec_call_to_readable(const struct metadata *md, const uint8_t *call, size_t len, struct buf *out,
                           struct err *err);

/* JSON text to the bytes of a value. Takes what codec_to_json and codec_to_readable print, and: decimal text,
 * 0x text or integers for every number, SS58 text (of this chain's prefix) where an AccountId or MultiAddress
 * is wanted, fields by name or by position, any text for a byte sequence (0x in front: hexadecimal), an
 * object for a map, a call as {"pallet", "call", "args"} or as its bytes in 0x. ERR_ARGUMENT's text says
 * which value is wrong, what is wanted there, and what to give. On an error nothing is appended. */
int codec_from_json(const struct metadata *md, uint32_t type, const char *json, struct buf *out,
                    struct err *err);
/* "Balances.transfer_keep_alive" and a JSON object (by field name) or array (by position) to call bytes. */
int codec_call_from_json(const struct metadata *md, const char *pallet_dot_call, const char *json_args,
                         struct buf *out, struct err *err);

/* What can be called, as text. pallet NULL: the pallets and how many calls each has; call NULL: the pallet's
 * calls with the names and types of their arguments; else the call and every type under it. ERR_ARGUMENT:
 * there is no such pallet or call. */
int codec_list_calls(const struct metadata *md, const char *pallet, const char *call, struct buf *out,
                     struct err *err);

#endif
