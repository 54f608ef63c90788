/* SCALE values by the type registry of a chain's metadata: skip, check, decode to JSON text, encode
 * from JSON. The bytes come from outside, so depth and element counts are bounded. */
#ifndef CHAIN_CODEC_CODEC_H
#define CHAIN_CODEC_CODEC_H

#include "base/buf.h"
#include "base/error.h"
#include "chain/codec/metadata.h"
#include "chain/codec/scale.h"

enum { CODEC_DEPTH_MAX = 64 };

/* Move `in` past one value of the type. ERR_DECODE: err names the path at which the value is
 * wrong. */
int codec_skip(const struct metadata *md, uint32_t type, struct scale_in *in, struct err *err);

/* Append the value as JSON text:
 *   struct                         object; array if the fields have no names; a struct of one
 *                                  unnamed field is that field
 *   tuple, sequence, array         array
 *   byte sequence, AccountId       "0x.."
 *   number below 64 bits           number
 *   number of 64 or 128 bits       decimal text, because JSON readers lose digits
 *   number of 256 bits             its bytes as "0x.."
 *   enum                           {"Variant": fields}, or "Variant" if it has no fields
 *   Option                         null or the value; an Option in an Option as {"Some": value}
 *   bit sequence                   "0b1101"
 * On an error nothing is appended. */
int codec_to_json(const struct metadata *md, uint32_t type, struct scale_in *in, struct buf *out,
                  struct err *err);

/* Check that the bytes are exactly one call. ERR_DECODE: err names pallet, call and the byte offset
 * at which decoding stopped. */
int codec_check_call(const struct metadata *md, const uint8_t *call, size_t len, struct err *err);
/* As codec_to_json: {"Balances": {"transfer_keep_alive": {"dest": .., "value": ".."}}}. */
int codec_call_to_json(const struct metadata *md, const uint8_t *call, size_t len, struct buf *out,
                       struct err *err);

/* As codec_to_json, for people: 32-byte accounts as SS58 text of this chain, MultiAddress::Id as
 * the account alone, calls as {"pallet": .., "call": .., "args": {..}}, byte sequences that are
 * printable text as that text, mortal eras as {"period": .., "phase": ..}. codec_from_json turns
 * the text into the same bytes. */
int codec_to_readable(const struct metadata *md, uint32_t type, struct scale_in *in,
                      struct buf *out, struct err *err);
int codec_call_to_readable(const struct metadata *md, const uint8_t *call, size_t len,
                           struct buf *out, struct err *err);

/* Append the bytes of the value that the JSON text describes. Accepts what codec_to_json and
 * codec_to_readable print, and also:
 *   number                         decimal text, 0x text, or an integer
 *   AccountId, MultiAddress        SS58 text with this chain's prefix
 *   fields                         by name or by position
 *   byte sequence                  any text; text that starts with 0x is hexadecimal
 *   map                            an object
 *   call                           {"pallet", "call", "args"}, or its bytes as 0x text
 * ERR_ARGUMENT: err says which value is wrong, what is expected there, and what to write. On an
 * error nothing is appended. */
int codec_from_json(const struct metadata *md, uint32_t type, const char *json, struct buf *out,
                    struct err *err);
/* Append the bytes of a call, from its name ("Balances.transfer_keep_alive") and its arguments as a
 * JSON object (by name) or array (by position). Errors as codec_from_json. */
int codec_call_from_json(const struct metadata *md, const char *pallet_dot_call,
                         const char *json_args, struct buf *out, struct err *err);

/* List what can be called, as text. pallet NULL: every pallet with the number of its calls; call
 * NULL: the pallet's calls with the names and types of their arguments; otherwise the call and
 * every type that it contains. ERR_ARGUMENT: no such pallet or call. */
int codec_list_calls(const struct metadata *md, const char *pallet, const char *call,
                     struct buf *out, struct err *err);
/* The same as JSON, for a form: [{"name", "calls"}] of the pallets, or [{"name", "args": [{"name",
 * "type"}]}] of the pallet's calls. */
int codec_list_calls_json(const struct metadata *md, const char *pallet, struct buf *out,
                          struct err *err);

#endif
