/* Pallets, constants and extrinsic of devchain's metadata, V14 and V15. */
#include "metadata_build.h"

#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "chain/codec/scale.h"
#include "metadata_internal.h"

const struct runtime_api RUNTIME_APIS[] = {
    {"df6acb689907609b", 4}, /* Core */
    {"37e397fc7c91f5e4", 2}, /* Metadata */
    {"40fe3ad401f8959a", 6}, /* BlockBuilder */
    {"d2bc9897eed08f15", 3}, /* TaggedTransactionQueue */
    {"bc9d89904f5b923f", 1}, /* AccountNonceApi */
    {"37c8bb1350a9a2a8", 4}, /* TransactionPaymentApi */
};
const size_t RUNTIME_API_COUNT = ARRAY_LEN(RUNTIME_APIS);

enum { HASHER_BLAKE2_128_CONCAT = 2, HASHER_TWOX_64_CONCAT = 5 };

struct entry {
    const char *name;
    bool optional;
    int hasher; /* -1: plain */
    unsigned key, value;
    size_t default_len; /* zero bytes */
};

static void put_entry(struct buf *b, const struct entry *e)
{
    static const uint8_t zeros[96];
    scale_put_str(b, e->name);
    buf_put_u8(b, !e->optional);
    buf_put_u8(b, e->hasher >= 0);
    if (e->hasher >= 0) {
        scale_put_compact(b, 1);
        buf_put_u8(b, (uint8_t)e->hasher);
        scale_put_compact(b, e->key);
    }
    scale_put_compact(b, e->value);
    scale_put_bytes(b, zeros, e->default_len);
    scale_put_compact(b, 0);
}

static void put_storage(struct buf *b, const char *prefix, const struct entry *entries,
                        size_t count)
{
    buf_put_u8(b, 1);
    scale_put_str(b, prefix);
    scale_put_compact(b, count);
    for (size_t i = 0; i < count; i++)
        put_entry(b, &entries[i]);
}

static void put_option_type(struct buf *b, int type)
{
    buf_put_u8(b, type >= 0);
    if (type >= 0)
        scale_put_compact(b, (unsigned)type);
}

static void put_constant(struct buf *b, const char *name, unsigned type, const struct buf *value)
{
    scale_put_str(b, name);
    scale_put_compact(b, type);
    scale_put_bytes(b, value->data, value->len);
    scale_put_compact(b, 0);
}

struct pallet {
    const char *name;
    uint8_t index;
    const struct entry *entries;
    size_t entry_count;
    int call, event, error; /* types, -1: none */
    void (*constants)(const struct runtime *rt, struct buf *b);
};

static void put_pallet(struct buf *b, const struct runtime *rt, const struct pallet *p,
                       unsigned version)
{
    scale_put_str(b, p->name);
    if (p->entry_count)
        put_storage(b, p->name, p->entries, p->entry_count);
    else
        buf_put_u8(b, 0);
    put_option_type(b, p->call);
    put_option_type(b, p->event);
    if (p->constants)
        p->constants(rt, b);
    else
        scale_put_compact(b, 0);
    put_option_type(b, p->error);
    buf_put_u8(b, p->index);
    if (version >= 15)
        scale_put_compact(b, 0); /* docs */
}

static void system_constants(const struct runtime *rt, struct buf *b)
{
    struct buf v = {0};
    scale_put_compact(b, 3);
    scale_put_u32(&v, rt->block_hash_count);
    put_constant(b, "BlockHashCount", T_U32, &v);
    buf_clear(&v);
    runtime_version_scale(rt, &v);
    put_constant(b, "Version", T_RUNTIME_VERSION, &v);
    buf_clear(&v);
    scale_put_u16(&v, rt->ss58_prefix);
    put_constant(b, "SS58Prefix", T_U16, &v);
    buf_done(&v);
}

static void balances_constants(const struct runtime *rt, struct buf *b)
{
    struct buf v = {0};
    scale_put_compact(b, 1);
    scale_put_u128(&v, rt->existential_deposit);
    put_constant(b, "ExistentialDeposit", T_U128, &v);
    buf_done(&v);
}

static void payment_constants(const struct runtime *rt, struct buf *b)
{
    struct buf v = {0};
    (void)rt;
    scale_put_compact(b, 1);
    buf_put_u8(&v, 5);
    put_constant(b, "OperationalFeeMultiplier", T_U8, &v);
    buf_done(&v);
}

static void utility_constants(const struct runtime *rt, struct buf *b)
{
    struct buf v = {0};
    (void)rt;
    scale_put_compact(b, 1);
    scale_put_u32(&v, 10922);
    put_constant(b, "batched_calls_limit", T_U32, &v);
    buf_done(&v);
}

static const struct entry SYSTEM_STORAGE[] = {
    {"Account", false, HASHER_BLAKE2_128_CONCAT, T_ACCOUNT_ID, T_ACCOUNT_INFO, 80},
    {"ExtrinsicCount", true, -1, 0, T_U32, 1},
    {"BlockHash", false, HASHER_TWOX_64_CONCAT, T_U32, T_H256, 32},
    {"Number", false, -1, 0, T_U32, 4},
    {"ParentHash", false, -1, 0, T_H256, 32},
    {"Events", false, -1, 0, T_VEC_EVENT_RECORD, 1},
    {"EventCount", false, -1, 0, T_U32, 4},
};
static const struct entry TIMESTAMP_STORAGE[] = {{"Now", false, -1, 0, T_U64, 8}};
static const struct entry BALANCES_STORAGE[] = {{"TotalIssuance", false, -1, 0, T_U128, 16}};
static const struct entry PAYMENT_STORAGE[] = {
    {"NextFeeMultiplier", false, -1, 0, T_FIXED_U128, 16}};
static const struct entry SUDO_STORAGE[] = {{"Key", true, -1, 0, T_ACCOUNT_ID, 1}};

static const struct pallet PALLETS[] = {
    {"System", PALLET_SYSTEM, SYSTEM_STORAGE, ARRAY_LEN(SYSTEM_STORAGE), T_SYSTEM_CALL,
     T_SYSTEM_EVENT, T_SYSTEM_ERROR, system_constants},
    {"Timestamp", PALLET_TIMESTAMP, TIMESTAMP_STORAGE, 1, T_TIMESTAMP_CALL, -1, -1, NULL},
    {"Balances", PALLET_BALANCES, BALANCES_STORAGE, 1, T_BALANCES_CALL, T_BALANCES_EVENT,
     T_BALANCES_ERROR, balances_constants},
    {"TransactionPayment", PALLET_PAYMENT, PAYMENT_STORAGE, 1, -1, T_PAYMENT_EVENT, -1,
     payment_constants},
    {"Utility", PALLET_UTILITY, NULL, 0, T_UTILITY_CALL, T_UTILITY_EVENT, T_UTILITY_ERROR,
     utility_constants},
    {"Sudo", PALLET_SUDO, SUDO_STORAGE, 1, T_SUDO_CALL, T_SUDO_EVENT, T_SUDO_ERROR, NULL},
};

static void put_extensions(struct buf *b)
{
    static const struct {
        const char *name;
        unsigned additional;
    } EXTENSIONS[] = {{"CheckNonZeroSender", T_UNIT}, {"CheckSpecVersion", T_U32},
                      {"CheckTxVersion", T_U32},      {"CheckGenesis", T_H256},
                      {"CheckMortality", T_H256},     {"CheckNonce", T_UNIT},
                      {"CheckWeight", T_UNIT},        {"ChargeTransactionPayment", T_UNIT}};
    scale_put_compact(b, ARRAY_LEN(EXTENSIONS));
    for (unsigned i = 0; i < ARRAY_LEN(EXTENSIONS); i++) {
        scale_put_str(b, EXTENSIONS[i].name);
        scale_put_compact(b, T_EXT_NON_ZERO_SENDER + i);
        scale_put_compact(b, EXTENSIONS[i].additional);
    }
}

static void put_extrinsic(struct buf *b, unsigned version)
{
    if (version == 14) {
        scale_put_compact(b, T_EXTRINSIC);
        buf_put_u8(b, 4);
    } else {
        buf_put_u8(b, 4);
        scale_put_compact(b, T_MULTI_ADDRESS);
        scale_put_compact(b, T_RUNTIME_CALL);
        scale_put_compact(b, T_MULTI_SIGNATURE);
        scale_put_compact(b, T_EXTRA);
    }
    put_extensions(b);
}

void metadata_build(const struct runtime *rt, unsigned version, struct buf *out)
{
    PRE(version == 14 || version == 15);
    buf_put(out, "meta", 4);
    buf_put_u8(out, (uint8_t)version);
    metadata__types(out);
    scale_put_compact(out, ARRAY_LEN(PALLETS));
    for (size_t i = 0; i < ARRAY_LEN(PALLETS); i++)
        put_pallet(out, rt, &PALLETS[i], version);
    put_extrinsic(out, version);
    scale_put_compact(out, T_RUNTIME);
    if (version == 14)
        return;
    scale_put_compact(out, 0); /* runtime APIs */
    scale_put_compact(out, T_RUNTIME_CALL);
    scale_put_compact(out, T_RUNTIME_EVENT);
    scale_put_compact(out, T_RUNTIME_ERROR);
    scale_put_compact(out, 0); /* custom values */
}

void runtime_version_scale(const struct runtime *rt, struct buf *out)
{
    scale_put_str(out, "devchain");
    scale_put_str(out, "txrelay-devchain");
    scale_put_u32(out, 1);
    scale_put_u32(out, rt->version.spec);
    scale_put_u32(out, 1);
    scale_put_compact(out, RUNTIME_API_COUNT);
    for (size_t i = 0; i < RUNTIME_API_COUNT; i++) {
        hex_decode(RUNTIME_APIS[i].id, strlen(RUNTIME_APIS[i].id), out);
        scale_put_u32(out, RUNTIME_APIS[i].version);
    }
    scale_put_u32(out, rt->version.tx);
    buf_put_u8(out, 1);
}
