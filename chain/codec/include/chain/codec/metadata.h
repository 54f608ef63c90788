/* Runtime metadata, V14 to V16: the type registry, the pallets, the extrinsic format. It is parsed
 * once per runtime version and never changes afterwards. Metadata of a chain that we cannot sign
 * for parses too; see extrinsic_supported. */
#ifndef CHAIN_CODEC_METADATA_H
#define CHAIN_CODEC_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/u128.h"

struct metadata;

/* Parse metadata that begins with the magic "meta", or is wrapped as Option<OpaqueMetadata> or
 * OpaqueMetadata (the runtime API Metadata_metadata_at_version). Copies the bytes. ERR_METADATA:
 * the bytes are malformed. */
int metadata_parse(const uint8_t *bytes, size_t len, struct metadata **ret_md, struct err *err);
struct metadata *metadata_free(struct metadata *md);

unsigned metadata_version(const struct metadata *md); /* 14, 15, 16 */
/* 4 if the chain lists it, otherwise the last version of the list. */
unsigned metadata_extrinsic_version(const struct metadata *md);

/* Names by index. NULL: no such pallet or variant. */
const char *metadata_pallet_name(const struct metadata *md, uint8_t pallet);
const char *metadata_call_name(const struct metadata *md, uint8_t pallet, uint8_t call);
const char *metadata_event_name(const struct metadata *md, uint8_t pallet, uint8_t event);
const char *metadata_error_name(const struct metadata *md, uint8_t pallet, uint8_t error);
/* Indices by name; false: none. */
bool metadata_find_call(const struct metadata *md, const char *pallet, const char *call,
                        uint8_t ret_index[2]);
/* SCALE bytes of a constant, such as System.SS58Prefix. NULL: no such constant. */
const uint8_t *metadata_constant(const struct metadata *md, const char *pallet, const char *name,
                                 size_t *ret_len);

/* Types by registry id. */
uint32_t metadata_type_call(const struct metadata *md);    /* RuntimeCall */
uint32_t metadata_type_address(const struct metadata *md); /* MultiAddress or AccountId20 */
uint32_t
metadata_type_event_record(const struct metadata *md); /* System.Events' element: EventRecord */

/* Does this chain keep an account's free balance in System.Account? */
bool metadata_account_has_free(const struct metadata *md);
/* The free balance in a value of System.Account. False: the chain does not keep it there, or the
 * value has the size of another runtime's. */
bool metadata_account_free(const struct metadata *md, const uint8_t *info, size_t len,
                           u128 *ret_free);

/* What CheckMetadataHash shows of the chain's token. */
struct metadata_token {
    const char *symbol;
    uint8_t decimals;
};
/* The digest that CheckMetadataHash signs (RFC 78). ERR_METADATA: it cannot be computed, for
 * example because this is not V15 metadata. */
int metadata_digest(const struct metadata *md, const struct metadata_token *token,
                    uint8_t ret_digest[32], struct err *err);

struct metadata_extension {
    const char *name;    /* "CheckNonce" */
    uint32_t type;       /* explicit part: in the extrinsic */
    uint32_t additional; /* implicit part: signed only */
};
/* The signed extensions in the order of extrinsic format v4 (V16: the transaction extensions of set
 * 0). */
size_t metadata_extension_count(const struct metadata *md);
const struct metadata_extension *metadata_extension_at(const struct metadata *md, size_t i);

#endif
