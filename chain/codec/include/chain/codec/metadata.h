/* Runtime metadata, V14 to V16: the type registry, pallets, extrinsic format. Parsed once per runtime
 * version, then read only. Anything malformed is ERR_METADATA; a chain whose extrinsics we cannot sign
 * still parses (see extrinsic_supported). */
#ifndef CHAIN_CODEC_METADATA_H
#define CHAIN_CODEC_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/u128.h"

struct metadata;

/* bytes: "meta" magic first, or the Option<OpaqueMetadata> / OpaqueMetadata wrapping of the runtime API
 * (Metadata_metadata_at_version), which is recognised and peeled off. The bytes are copied as needed. */
int metadata_parse(const uint8_t *bytes, size_t len, struct metadata **ret_md, struct err *err);
struct metadata *metadata_free(struct metadata *md);

unsigned metadata_version(const struct metadata *md); /* 14, 15, 16 */
/* 4; of a V16 list that has no 4, the last one. */
unsigned metadata_extrinsic_version(const struct metadata *md);

/* Names by index. NULL: no such pallet / variant. */
const char *metadata_pallet_name(const struct metadata *md, uint8_t pallet);
const char *metadata_call_name(const struct metadata *md, uint8_t pallet, uint8_t call);
const char *metadata_event_name(const struct metadata *md, uint8_t pallet, uint8_t event);
const char *metadata_error_name(const struct metadata *md, uint8_t pallet, uint8_t error);
/* Indices by name; false: none. */
bool metadata_find_call(const struct metadata *md, const char *pallet, const char *call,
                        uint8_t ret_index[2]);
/* SCALE bytes of a constant (System.SS58Prefix, System.BlockHashCount...). NULL: none. */
const uint8_t *metadata_constant(const struct metadata *md, const char *pallet, const char *name,
                                 size_t *ret_len);

/* Types by registry id, as other files of chain/ and devchain's tests need them. */
uint32_t metadata_type_call(const struct metadata *md);         /* RuntimeCall */
uint32_t metadata_type_address(const struct metadata *md);      /* MultiAddress or AccountId20 */
uint32_t metadata_type_event_record(const struct metadata *md); /* System.Events' element: EventRecord */

/* Does this chain keep an account's free balance in System.Account? */
bool metadata_account_has_free(const struct metadata *md);
/* The free balance in a value of System.Account. False: the chain does not keep it there, or the value has
 * the size of another runtime's. */
bool metadata_account_free(const struct metadata *md, const uint8_t *info, size_t len, u128 *ret_free);

struct metadata_extension {
    const char *name;    /* "CheckNonce" */
    uint32_t type;       /* explicit part: in the extrinsic */
    uint32_t additional; /* implicit part: signed only */
};
/* In the order of extrinsic format v4 (V16: transaction extensions of set 0). */
size_t metadata_extension_count(const struct metadata *md);
const struct metadata_extension *metadata_extension_at(const struct metadata *md, size_t i);

#endif
