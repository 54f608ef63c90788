/* The type registry of devchain's metadata (scale-info's PortableRegistry). The paths are those of
 * FRAME, because clients recognise well-known types by them. */
#include <stdarg.h>
#include <string.h>

#include "base/check.h"
#include "chain/codec/scale.h"
#include "metadata_internal.h"

struct registry {
    struct buf types;
    uint32_t count;
    struct buf variants; /* of the variant type under construction */
    uint32_t variant_count;
};

enum { DEF_COMPOSITE, DEF_VARIANT, DEF_SEQUENCE, DEF_ARRAY, DEF_TUPLE, DEF_PRIMITIVE, DEF_COMPACT };

static void put_path(struct buf *b, const char *path)
{
    uint32_t count = *path != '\0';
    for (const char *p = path; (p = strstr(p, "::")); p += 2)
        count++;
    scale_put_compact(b, count);
    while (*path) {
        const char *end = strstr(path, "::");
        size_t len = end ? (size_t)(end - path) : strlen(path);
        scale_put_bytes(b, path, len);
        path += len + (end ? 2 : 0);
    }
}

struct param {
    const char *name;
    enum type_id type;
};

static struct buf *begin_generic(struct registry *r, enum type_id id, const char *path,
                                 const struct param *params, size_t param_count, uint8_t def)
{
    struct buf *b = &r->types;
    INVARIANT(r->count == (uint32_t)id);
    scale_put_compact(b, r->count++);
    put_path(b, path);
    scale_put_compact(b, param_count);
    for (size_t i = 0; i < param_count; i++) {
        scale_put_str(b, params[i].name);
        buf_put_u8(b, 1);
        scale_put_compact(b, params[i].type);
    }
    buf_put_u8(b, def);
    return b;
}

static struct buf *begin(struct registry *r, enum type_id id, const char *path, uint8_t def)
{
    return begin_generic(r, id, path, NULL, 0, def);
}

static void end(struct registry *r)
{
    scale_put_compact(&r->types, 0); /* docs */
}

static void primitive(struct registry *r, enum type_id id, uint8_t kind)
{
    buf_put_u8(begin(r, id, "", DEF_PRIMITIVE), kind);
    end(r);
}

static void compact(struct registry *r, enum type_id id, enum type_id of)
{
    scale_put_compact(begin(r, id, "", DEF_COMPACT), of);
    end(r);
}

static void sequence(struct registry *r, enum type_id id, enum type_id of)
{
    scale_put_compact(begin(r, id, "", DEF_SEQUENCE), of);
    end(r);
}

static void byte_array(struct registry *r, enum type_id id, uint32_t len)
{
    struct buf *b = begin(r, id, "", DEF_ARRAY);
    scale_put_u32(b, len);
    scale_put_compact(b, T_U8);
    end(r);
}

/* Fields are pairs (name, type), ended by NULL; "" is a field without a name. */
static void put_fields(struct buf *b, va_list ap)
{
    struct buf fields = {0};
    uint32_t count = 0;
    for (const char *name; (name = va_arg(ap, const char *)); count++) {
        buf_put_u8(&fields, *name != '\0');
        if (*name)
            scale_put_str(&fields, name);
        scale_put_compact(&fields, (unsigned)va_arg(ap, int));
        buf_put_u8(&fields, 0);        /* type name */
        scale_put_compact(&fields, 0); /* docs */
    }
    scale_put_compact(b, count);
    buf_put(b, fields.data, fields.len);
    buf_done(&fields);
}

static void composite(struct registry *r, enum type_id id, const char *path, ...)
{
    va_list ap;
    va_start(ap, path);
    put_fields(begin(r, id, path, DEF_COMPOSITE), ap);
    va_end(ap);
    end(r);
}

/* The fields of a generic composite. */
static void fields(struct registry *r, ...)
{
    va_list ap;
    va_start(ap, r);
    put_fields(&r->types, ap);
    va_end(ap);
    end(r);
}

static void variant(struct registry *r, uint8_t index, const char *name, ...)
{
    va_list ap;
    scale_put_str(&r->variants, name);
    va_start(ap, name);
    put_fields(&r->variants, ap);
    va_end(ap);
    buf_put_u8(&r->variants, index);
    scale_put_compact(&r->variants, 0);
    r->variant_count++;
}

/* Closes the variants given since the last one. */
static void generic_variant_type(struct registry *r, enum type_id id, const char *path,
                                 const struct param *params, size_t param_count)
{
    struct buf *b = begin_generic(r, id, path, params, param_count, DEF_VARIANT);
    scale_put_compact(b, r->variant_count);
    buf_put(b, r->variants.data, r->variants.len);
    buf_clear(&r->variants);
    r->variant_count = 0;
    end(r);
}

static void variant_type(struct registry *r, enum type_id id, const char *path)
{
    generic_variant_type(r, id, path, NULL, 0);
}

/* Unit variants 0, 1, 2... */
static void enumeration(struct registry *r, enum type_id id, const char *path,
                        const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        variant(r, (uint8_t)i, names[i], NULL);
    variant_type(r, id, path);
}
#define ENUMERATION(r, id, path, ...)                                                              \
    enumeration(r, id, path, (const char *const[]){__VA_ARGS__},                                   \
                sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static void basics(struct registry *r)
{
    primitive(r, T_BOOL, 0);
    primitive(r, T_U8, 3);
    primitive(r, T_U16, 4);
    primitive(r, T_U32, 5);
    primitive(r, T_U64, 6);
    primitive(r, T_U128, 7);
    primitive(r, T_STR, 2);
    scale_put_compact(begin(r, T_UNIT, "", DEF_TUPLE), 0);
    end(r);
    sequence(r, T_BYTES, T_U8);
    byte_array(r, T_BYTES4, 4);
    byte_array(r, T_BYTES8, 8);
    byte_array(r, T_BYTES20, 20);
    byte_array(r, T_BYTES32, 32);
    byte_array(r, T_BYTES64, 64);
    byte_array(r, T_BYTES65, 65);
    compact(r, T_COMPACT_U32, T_U32);
    compact(r, T_COMPACT_U64, T_U64);
    compact(r, T_COMPACT_U128, T_U128);
    compact(r, T_COMPACT_UNIT, T_UNIT);
    composite(r, T_ACCOUNT_ID, "sp_core::crypto::AccountId32", "", T_BYTES32, NULL);
    composite(r, T_H256, "primitive_types::H256", "", T_BYTES32, NULL);
}

static void era_type(struct registry *r)
{
    variant(r, 0, "Immortal", NULL);
    for (unsigned i = 1; i < 256; i++) {
        struct buf name = {0};
        buf_printf(&name, "Mortal%u", i);
        variant(r, (uint8_t)i, buf_str(&name), "", T_U8, NULL);
        buf_done(&name);
    }
    variant_type(r, T_ERA, "sp_runtime::generic::era::Era");
}

static void crypto(struct registry *r)
{
    variant(r, 0, "Id", "", T_ACCOUNT_ID, NULL);
    variant(r, 1, "Index", "", T_COMPACT_UNIT, NULL);
    variant(r, 2, "Raw", "", T_BYTES, NULL);
    variant(r, 3, "Address32", "", T_BYTES32, NULL);
    variant(r, 4, "Address20", "", T_BYTES20, NULL);
    static const struct param ADDRESS[] = {{"AccountId", T_ACCOUNT_ID}, {"AccountIndex", T_UNIT}};
    generic_variant_type(r, T_MULTI_ADDRESS, "sp_runtime::multiaddress::MultiAddress", ADDRESS,
                         ARRAY_LEN(ADDRESS));
    composite(r, T_ED25519_SIGNATURE, "sp_core::ed25519::Signature", "", T_BYTES64, NULL);
    composite(r, T_SR25519_SIGNATURE, "sp_core::sr25519::Signature", "", T_BYTES64, NULL);
    composite(r, T_ECDSA_SIGNATURE, "sp_core::ecdsa::Signature", "", T_BYTES65, NULL);
    variant(r, 0, "Ed25519", "", T_ED25519_SIGNATURE, NULL);
    variant(r, 1, "Sr25519", "", T_SR25519_SIGNATURE, NULL);
    variant(r, 2, "Ecdsa", "", T_ECDSA_SIGNATURE, NULL);
    variant_type(r, T_MULTI_SIGNATURE, "sp_runtime::MultiSignature");
    era_type(r);
}

static void dispatch(struct registry *r)
{
    composite(r, T_WEIGHT, "sp_weights::weight_v2::Weight", "ref_time", T_COMPACT_U64, "proof_size",
              T_COMPACT_U64, NULL);
    ENUMERATION(r, T_DISPATCH_CLASS, "frame_support::dispatch::DispatchClass", "Normal",
                "Operational", "Mandatory");
    ENUMERATION(r, T_PAYS, "frame_support::dispatch::Pays", "Yes", "No");
    composite(r, T_DISPATCH_INFO, "frame_support::dispatch::DispatchInfo", "weight", T_WEIGHT,
              "class", T_DISPATCH_CLASS, "pays_fee", T_PAYS, NULL);
    composite(r, T_MODULE_ERROR, "sp_runtime::ModuleError", "index", T_U8, "error", T_BYTES4, NULL);
    ENUMERATION(r, T_TOKEN_ERROR, "sp_runtime::TokenError", "FundsUnavailable", "OnlyProvider",
                "BelowMinimum", "CannotCreate", "UnknownAsset", "Frozen", "Unsupported",
                "CannotCreateHold", "NotExpendable", "Blocked");
    ENUMERATION(r, T_ARITHMETIC_ERROR, "sp_arithmetic::ArithmeticError", "Underflow", "Overflow",
                "DivisionByZero");
    ENUMERATION(r, T_TRANSACTIONAL_ERROR, "sp_runtime::TransactionalError", "LimitReached",
                "NoLayer");
    variant(r, 0, "Other", NULL);
    variant(r, 1, "CannotLookup", NULL);
    variant(r, 2, "BadOrigin", NULL);
    variant(r, 3, "Module", "", T_MODULE_ERROR, NULL);
    variant(r, 4, "ConsumerRemaining", NULL);
    variant(r, 5, "NoProviders", NULL);
    variant(r, 6, "TooManyConsumers", NULL);
    variant(r, 7, "Token", "", T_TOKEN_ERROR, NULL);
    variant(r, 8, "Arithmetic", "", T_ARITHMETIC_ERROR, NULL);
    variant(r, 9, "Transactional", "", T_TRANSACTIONAL_ERROR, NULL);
    variant(r, 10, "Exhausted", NULL);
    variant(r, 11, "Corruption", NULL);
    variant(r, 12, "Unavailable", NULL);
    variant(r, 13, "RootNotAllowed", NULL);
    variant_type(r, T_DISPATCH_ERROR, "sp_runtime::DispatchError");
    variant(r, 0, "Ok", "", T_UNIT, NULL);
    variant(r, 1, "Err", "", T_DISPATCH_ERROR, NULL);
    static const struct param RESULT[] = {{"T", T_UNIT}, {"E", T_DISPATCH_ERROR}};
    generic_variant_type(r, T_RESULT, "Result", RESULT, ARRAY_LEN(RESULT));
}

static void calls(struct registry *r)
{
    variant(r, 0, "remark", "remark", T_BYTES, NULL);
    variant(r, 7, "remark_with_event", "remark", T_BYTES, NULL);
    variant_type(r, T_SYSTEM_CALL, "frame_system::pallet::Call");
    variant(r, 0, "set", "now", T_COMPACT_U64, NULL);
    variant_type(r, T_TIMESTAMP_CALL, "pallet_timestamp::pallet::Call");
    variant(r, 0, "transfer_allow_death", "dest", T_MULTI_ADDRESS, "value", T_COMPACT_U128, NULL);
    variant(r, 3, "transfer_keep_alive", "dest", T_MULTI_ADDRESS, "value", T_COMPACT_U128, NULL);
    variant(r, 4, "transfer_all", "dest", T_MULTI_ADDRESS, "keep_alive", T_BOOL, NULL);
    variant_type(r, T_BALANCES_CALL, "pallet_balances::pallet::Call");
    variant(r, 0, "batch", "calls", T_VEC_CALL, NULL);
    variant(r, 2, "batch_all", "calls", T_VEC_CALL, NULL);
    variant(r, 4, "force_batch", "calls", T_VEC_CALL, NULL);
    variant_type(r, T_UTILITY_CALL, "pallet_utility::pallet::Call");
    variant(r, 0, "sudo", "call", T_RUNTIME_CALL, NULL);
    variant_type(r, T_SUDO_CALL, "pallet_sudo::pallet::Call");
    variant(r, 0, "System", "", T_SYSTEM_CALL, NULL);
    variant(r, 3, "Timestamp", "", T_TIMESTAMP_CALL, NULL);
    variant(r, 10, "Balances", "", T_BALANCES_CALL, NULL);
    variant(r, 40, "Utility", "", T_UTILITY_CALL, NULL);
    variant(r, 50, "Sudo", "", T_SUDO_CALL, NULL);
    variant_type(r, T_RUNTIME_CALL, "devchain_runtime::RuntimeCall");
    sequence(r, T_VEC_CALL, T_RUNTIME_CALL);
}

static void system_event(struct registry *r)
{
    variant(r, 0, "ExtrinsicSuccess", "dispatch_info", T_DISPATCH_INFO, NULL);
    variant(r, 1, "ExtrinsicFailed", "dispatch_error", T_DISPATCH_ERROR, "dispatch_info",
            T_DISPATCH_INFO, NULL);
    variant(r, 2, "CodeUpdated", NULL);
    variant(r, 3, "NewAccount", "account", T_ACCOUNT_ID, NULL);
    variant(r, 4, "KilledAccount", "account", T_ACCOUNT_ID, NULL);
    variant(r, 5, "Remarked", "sender", T_ACCOUNT_ID, "hash", T_H256, NULL);
    variant_type(r, T_SYSTEM_EVENT, "frame_system::pallet::Event");
}

static void events(struct registry *r)
{
    system_event(r);
    variant(r, 0, "Endowed", "account", T_ACCOUNT_ID, "free_balance", T_U128, NULL);
    variant(r, 1, "DustLost", "account", T_ACCOUNT_ID, "amount", T_U128, NULL);
    variant(r, 2, "Transfer", "from", T_ACCOUNT_ID, "to", T_ACCOUNT_ID, "amount", T_U128, NULL);
    variant_type(r, T_BALANCES_EVENT, "pallet_balances::pallet::Event");
    variant(r, 0, "TransactionFeePaid", "who", T_ACCOUNT_ID, "actual_fee", T_U128, "tip", T_U128,
            NULL);
    variant_type(r, T_PAYMENT_EVENT, "pallet_transaction_payment::pallet::Event");
    variant(r, 0, "BatchInterrupted", "index", T_U32, "error", T_DISPATCH_ERROR, NULL);
    variant(r, 1, "BatchCompleted", NULL);
    variant(r, 2, "BatchCompletedWithErrors", NULL);
    variant(r, 3, "ItemCompleted", NULL);
    variant(r, 4, "ItemFailed", "error", T_DISPATCH_ERROR, NULL);
    variant_type(r, T_UTILITY_EVENT, "pallet_utility::pallet::Event");
    variant(r, 0, "Sudid", "sudo_result", T_RESULT, NULL);
    variant_type(r, T_SUDO_EVENT, "pallet_sudo::pallet::Event");
    variant(r, 0, "System", "", T_SYSTEM_EVENT, NULL);
    variant(r, 10, "Balances", "", T_BALANCES_EVENT, NULL);
    variant(r, 11, "TransactionPayment", "", T_PAYMENT_EVENT, NULL);
    variant(r, 40, "Utility", "", T_UTILITY_EVENT, NULL);
    variant(r, 50, "Sudo", "", T_SUDO_EVENT, NULL);
    variant_type(r, T_RUNTIME_EVENT, "devchain_runtime::RuntimeEvent");
    variant(r, 0, "ApplyExtrinsic", "", T_U32, NULL);
    variant(r, 1, "Finalization", NULL);
    variant(r, 2, "Initialization", NULL);
    variant_type(r, T_PHASE, "frame_system::Phase");
    sequence(r, T_VEC_H256, T_H256);
    static const struct param RECORD[] = {{"E", T_RUNTIME_EVENT}, {"T", T_H256}};
    begin_generic(r, T_EVENT_RECORD, "frame_system::EventRecord", RECORD, ARRAY_LEN(RECORD),
                  DEF_COMPOSITE);
    fields(r, "phase", T_PHASE, "event", T_RUNTIME_EVENT, "topics", T_VEC_H256, NULL);
    sequence(r, T_VEC_EVENT_RECORD, T_EVENT_RECORD);
}

static void errors(struct registry *r)
{
    ENUMERATION(r, T_SYSTEM_ERROR, "frame_system::pallet::Error", "InvalidSpecName",
                "SpecVersionNeedsToIncrease", "FailedToExtractRuntimeVersion",
                "NonDefaultComposite", "NonZeroRefCount", "CallFiltered");
    ENUMERATION(r, T_BALANCES_ERROR, "pallet_balances::pallet::Error", "VestingBalance",
                "LiquidityRestrictions", "InsufficientBalance", "ExistentialDeposit",
                "Expendability", "ExistingVestingSchedule", "DeadAccount", "TooManyReserves",
                "TooManyHolds", "TooManyFreezes");
    ENUMERATION(r, T_UTILITY_ERROR, "pallet_utility::pallet::Error", "TooManyCalls");
    ENUMERATION(r, T_SUDO_ERROR, "pallet_sudo::pallet::Error", "RequireSudo");
    variant(r, 0, "System", "", T_SYSTEM_ERROR, NULL);
    variant(r, 10, "Balances", "", T_BALANCES_ERROR, NULL);
    variant(r, 40, "Utility", "", T_UTILITY_ERROR, NULL);
    variant(r, 50, "Sudo", "", T_SUDO_ERROR, NULL);
    variant_type(r, T_RUNTIME_ERROR, "devchain_runtime::RuntimeError");
}

static void storage_types(struct registry *r)
{
    composite(r, T_EXTRA_FLAGS, "pallet_balances::types::ExtraFlags", "", T_U128, NULL);
    composite(r, T_ACCOUNT_DATA, "pallet_balances::types::AccountData", "free", T_U128, "reserved",
              T_U128, "frozen", T_U128, "flags", T_EXTRA_FLAGS, NULL);
    composite(r, T_ACCOUNT_INFO, "frame_system::AccountInfo", "nonce", T_U32, "consumers", T_U32,
              "providers", T_U32, "sufficients", T_U32, "data", T_ACCOUNT_DATA, NULL);
    composite(r, T_FIXED_U128, "sp_arithmetic::fixed_point::FixedU128", "", T_U128, NULL);
    struct buf *b = begin(r, T_API_VERSION, "", DEF_TUPLE);
    scale_put_compact(b, 2);
    scale_put_compact(b, T_BYTES8);
    scale_put_compact(b, T_U32);
    end(r);
    sequence(r, T_VEC_API_VERSION, T_API_VERSION);
    composite(r, T_RUNTIME_VERSION, "sp_version::RuntimeVersion", "spec_name", T_STR, "impl_name",
              T_STR, "authoring_version", T_U32, "spec_version", T_U32, "impl_version", T_U32,
              "apis", T_VEC_API_VERSION, "transaction_version", T_U32, "system_version", T_U8,
              NULL);
}

static void extrinsic(struct registry *r)
{
    composite(r, T_EXT_NON_ZERO_SENDER,
              "frame_system::extensions::check_non_zero_sender::CheckNonZeroSender", NULL);
    composite(r, T_EXT_SPEC_VERSION,
              "frame_system::extensions::check_spec_version::CheckSpecVersion", NULL);
    composite(r, T_EXT_TX_VERSION, "frame_system::extensions::check_tx_version::CheckTxVersion",
              NULL);
    composite(r, T_EXT_GENESIS, "frame_system::extensions::check_genesis::CheckGenesis", NULL);
    composite(r, T_EXT_MORTALITY, "frame_system::extensions::check_mortality::CheckMortality", "",
              T_ERA, NULL);
    composite(r, T_EXT_NONCE, "frame_system::extensions::check_nonce::CheckNonce", "",
              T_COMPACT_U32, NULL);
    composite(r, T_EXT_WEIGHT, "frame_system::extensions::check_weight::CheckWeight", NULL);
    composite(r, T_EXT_PAYMENT, "pallet_transaction_payment::ChargeTransactionPayment", "",
              T_COMPACT_U128, NULL);
    struct buf *b = begin(r, T_EXTRA, "", DEF_TUPLE);
    scale_put_compact(b, T_EXT_PAYMENT - T_EXT_NON_ZERO_SENDER + 1);
    for (unsigned t = T_EXT_NON_ZERO_SENDER; t <= T_EXT_PAYMENT; t++)
        scale_put_compact(b, t);
    end(r);
    static const struct param PARAMS[] = {{"Address", T_MULTI_ADDRESS},
                                          {"Call", T_RUNTIME_CALL},
                                          {"Signature", T_MULTI_SIGNATURE},
                                          {"Extra", T_EXTRA}};
    b = begin_generic(r, T_EXTRINSIC,
                      "sp_runtime::generic::unchecked_extrinsic::UncheckedExtrinsic", PARAMS,
                      ARRAY_LEN(PARAMS), DEF_COMPOSITE);
    scale_put_compact(b, 1);
    buf_put_u8(b, 0);
    scale_put_compact(b, T_BYTES);
    buf_put_u8(b, 0);
    scale_put_compact(b, 0);
    end(r);
    composite(r, T_RUNTIME, "devchain_runtime::Runtime", NULL);
}

void metadata__types(struct buf *out)
{
    struct registry r = {0};
    basics(&r);
    crypto(&r);
    dispatch(&r);
    calls(&r);
    events(&r);
    errors(&r);
    storage_types(&r);
    extrinsic(&r);
    INVARIANT(r.count == T_COUNT);
    scale_put_compact(out, r.count);
    buf_put(out, r.types.data, r.types.len);
    buf_done(&r.types);
    buf_done(&r.variants);
}
