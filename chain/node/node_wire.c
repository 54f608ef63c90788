/* The JSON that a Substrate node sends (sp-runtime's header, storage values), and the storage keys
 * that we read. */
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "chain/codec/hash.h"
#include "chain/codec/scale.h"
#include "node_internal.h"

/* twox_128("System") ++ twox_128("Events") */

bool wire_hash(const struct jv *value, uint8_t ret_hash[32])
{
    return jv_hex_fixed(value, ret_hash, 32);
}

bool wire_number(const struct jv *value, uint64_t *ret_number)
{
    int64_t number;
    char text[2 + 16 + 1];
    if (jv_int(value, &number)) {
        *ret_number = (uint64_t)number;
        return number >= 0;
    }
    size_t len = jv_copy(value, text, sizeof(text));
    if (len > 0 && len < sizeof(text) && strspn(text, "0123456789") == len) {
        *ret_number = strtoull(text, NULL, 10); /* as gateways write them that count in decimals */
        return true;
    }
    if (len < 3 || len > 2 + 16 || memcmp(text, "0x", 2) != 0)
        return false;
    char padded[17] = "0000000000000000"; /* nodes send odd numbers of digits */
    uint8_t big_endian[8];
    memcpy(padded + 16 - (len - 2), text + 2, len - 2);
    if (!hex_decode_fixed(padded, 16, big_endian, sizeof(big_endian)))
        return false;
    *ret_number = 0;
    for (size_t i = 0; i < sizeof(big_endian); i++)
        *ret_number = *ret_number << 8 | big_endian[i];
    return true;
}

bool wire_bytes(const struct jv *value, struct buf *out)
{
    return jv_hex(value, out);
}

static bool digest(const struct jv *logs, struct buf *out)
{
    if (!jv_is(logs, JV_ARRAY))
        return false;
    scale_put_compact(out, logs->count);
    for (const struct jv *log = jv_first(logs); log; log = jv_next(logs, log))
        if (!wire_bytes(log, out))
            return false;
    return true;
}

enum { NUMBER_BITS = 62 }; /* no chain has more blocks, and sums of two numbers fit */
#define NUMBER_MAX ((UINT64_C(1) << NUMBER_BITS) - 1)

/* A header does not contain the block's hash, which is blake2b-256 over the SCALE header. */
bool wire_header(const struct jv *value, struct wire_header *ret_header)
{
    struct wire_header h = {0};
    uint8_t state_root[32];
    struct buf scale = {0};
    if (!wire_number(jv_get(value, "number"), &h.head.number) || h.head.number > NUMBER_MAX ||
        !wire_hash(jv_get(value, "parentHash"), h.head.parent))
        return false;
    h.complete = wire_hash(jv_get(value, "stateRoot"), state_root) &&
                 wire_hash(jv_get(value, "extrinsicsRoot"), h.extrinsics_root);
    if (h.complete) {
        buf_put(&scale, h.head.parent, 32);
        scale_put_compact(&scale, h.head.number);
        buf_put(&scale, state_root, 32);
        buf_put(&scale, h.extrinsics_root, 32);
        h.complete = digest(jv_get(jv_get(value, "digest"), "logs"), &scale);
    }
    if (h.complete)
        hash_blake2b_256(scale.data, scale.len, h.head.hash);
    buf_done(&scale);
    *ret_header = h;
    return true;
}

void wire_hash_text(const uint8_t hash[32], char out[HASH_TEXT])
{
    struct buf b = {0};
    hex_put_0x(&b, hash, 32);
    memcpy(out, buf_str(&b), HASH_TEXT);
    buf_done(&b);
}

/* twox_128("System") ++ twox_128("Account") ++ blake2_128_concat(id) */
void wire_account_key(const uint8_t *account_id, size_t len, struct buf *out)
{
    uint8_t hash[16];
    hash_twox_128("System", 6, hash);
    buf_put(out, hash, sizeof(hash));
    hash_twox_128("Account", 7, hash);
    buf_put(out, hash, sizeof(hash));
    hash_blake2b_128(account_id, len, hash);
    buf_put(out, hash, sizeof(hash));
    buf_put(out, account_id, len);
}

/* AccountInfo starts with the nonce. An account that does not exist has nonce 0. */
bool wire_account(const struct jv *storage_value, const struct metadata *md, uint64_t *ret_nonce,
                  struct node_balance *ret_balance)
{
    struct buf b = {0};
    struct node_balance balance = {.known = md && metadata_account_has_free(md)};
    *ret_nonce = 0;
    bool absent = !storage_value || jv_is(storage_value, JV_NULL);
    bool good = absent || (wire_bytes(storage_value, &b) && b.len >= 4);
    if (good && !absent) {
        struct scale_in in = scale_in_of(b.data, b.len);
        *ret_nonce = scale_get_u32(&in);
        balance.known = md && metadata_account_free(md, b.data, b.len, &balance.free);
    }
    if (ret_balance)
        *ret_balance = balance;
    buf_done(&b);
    return good;
}
