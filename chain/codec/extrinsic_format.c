/* The form of a chain's signed extrinsics, resolved once per metadata so that signing only writes
 * bytes.
 *
 * We know extensions by name. The bytes that we would write for each must decode as the types that
 * the metadata gives it, so a chain that uses a known name for something else is refused instead of
 * signed for wrongly. */
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "chain/codec/codec.h"
#include "extrinsic_internal.h"

static const struct {
    const char *name;
    enum extension_kind kind;
} known[] = {
    {"CheckSpecVersion", EXT_SPEC_VERSION},
    {"CheckTxVersion", EXT_TX_VERSION},
    {"CheckGenesis", EXT_GENESIS},
    {"CheckMortality", EXT_MORTALITY},
    {"CheckEra", EXT_MORTALITY}, /* its name before 2020 */
    {"CheckNonce", EXT_NONCE},
    {"ChargeTransactionPayment", EXT_TIP},
    {"ChargeAssetTxPayment", EXT_TIP_ASSET},
    {"CheckMetadataHash", EXT_METADATA_HASH},
};

static enum extension_kind kind_of(const struct metadata *md, const struct metadata_extension *e)
{
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(e->name, known[i].name) == 0)
            return known[i].kind;
    bool empty = md->types[e->type].plain_size == 0 && md->types[e->additional].plain_size == 0;
    return empty ? EXT_EMPTY : EXT_UNKNOWN;
}

static void put_explicit(enum extension_kind kind, const struct extrinsic_params *params,
                         struct buf *out)
{
    uint8_t era[2];
    switch (kind) {
    case EXT_MORTALITY:
        buf_put(out, era, era_encode(params->era, era));
        break;
    case EXT_NONCE:
        scale_put_compact(out, params->nonce);
        break;
    case EXT_TIP:
        scale_put_compact(out, params->tip);
        break;
    case EXT_TIP_ASSET: /* the fee is paid in the native token */
        scale_put_compact(out, params->tip);
        buf_put_u8(out, 0);
        break;
    case EXT_METADATA_HASH: /* mode: disabled */
        buf_put_u8(out, 0);
        break;
    case EXT_EMPTY:
    case EXT_SPEC_VERSION:
    case EXT_TX_VERSION:
    case EXT_GENESIS:
        break;
    case EXT_UNKNOWN:
        UNREACHABLE();
    }
}

static void put_implicit(enum extension_kind kind, const struct extrinsic_params *params,
                         struct buf *out)
{
    switch (kind) {
    case EXT_SPEC_VERSION:
        scale_put_u32(out, params->spec_version);
        break;
    case EXT_TX_VERSION:
        scale_put_u32(out, params->transaction_version);
        break;
    case EXT_GENESIS:
        buf_put(out, params->genesis, 32);
        break;
    case EXT_MORTALITY: /* an immortal era begins with the chain */
        buf_put(out, params->era.period ? params->era_block_hash : params->genesis, 32);
        break;
    case EXT_METADATA_HASH:
        buf_put_u8(out, 0);
        break;
    case EXT_EMPTY:
    case EXT_NONCE:
    case EXT_TIP:
    case EXT_TIP_ASSET:
        break;
    case EXT_UNKNOWN:
        UNREACHABLE();
    }
}

void extrinsic__put_explicit(const struct metadata *md, const struct extrinsic_params *params,
                             struct buf *out)
{
    PRE(!md->format.refused.code);
    for (size_t i = 0; i < md->extension_count; i++)
        put_explicit(md->extension_kinds[i], params, out);
}

void extrinsic__put_implicit(const struct metadata *md, const struct extrinsic_params *params,
                             struct buf *out)
{
    PRE(!md->format.refused.code);
    for (size_t i = 0; i < md->extension_count; i++)
        put_implicit(md->extension_kinds[i], params, out);
}

static bool fits(const struct metadata *md, uint32_t type, const struct buf *bytes)
{
    struct scale_in in = scale_in_of(bytes->data, bytes->len);
    struct err ignored;
    return codec_skip(md, type, &in, &ignored) == 0 && scale_left(&in) == 0;
}

/* Do the bytes that we would write decode as the extension's types? */
static bool extension_fits(const struct metadata *md, size_t i,
                           const struct extrinsic_params *params)
{
    struct buf bytes = {0};
    put_explicit(md->extension_kinds[i], params, &bytes);
    bool good = fits(md, md->extensions[i].type, &bytes);
    buf_clear(&bytes);
    put_implicit(md->extension_kinds[i], params, &bytes);
    good = good && fits(md, md->extensions[i].additional, &bytes);
    buf_done(&bytes);
    return good;
}

static void resolve_extensions(struct metadata *md)
{
    struct extrinsic_params sample = {.nonce = UINT32_MAX, .tip = UINT32_MAX, .era = {64, 21}};
    struct extrinsic_params large = {.nonce = UINT64_MAX, .tip = UINT64_MAX, .era = {64, 21}};
    struct extrinsic_params largest = {.tip = ~(u128)0, .era = {64, 21}};
    struct extrinsic_format *format = &md->format;
    format->tip_max = ~(u128)0; /* without a tip nothing is written */
    md->extension_kinds = xcalloc(md->extension_count + 1, sizeof(*md->extension_kinds));
    for (size_t i = 0; i < md->extension_count; i++) {
        const char *name = md->extensions[i].name;
        enum extension_kind kind = md->extension_kinds[i] = kind_of(md, &md->extensions[i]);
        if (kind == EXT_UNKNOWN) {
            err_set(&format->refused, ERR_EXTENSION,
                    "the chain's signed extension %.80s is not known and carries "
                    "bytes: this version of txrelay cannot sign for it",
                    name);
            return;
        }
        if (!extension_fits(md, i, &sample)) {
            err_set(&format->refused, ERR_EXTENSION,
                    "the chain's signed extension %.80s has not the form that is "
                    "known by this name: this version of txrelay cannot sign for it",
                    name);
            return;
        }
        bool is_large = extension_fits(md, i, &large);
        if (kind == EXT_NONCE)
            format->nonce_64 = is_large;
        if (kind != EXT_TIP && kind != EXT_TIP_ASSET)
            continue;
        format->tip_max = is_large ? UINT64_MAX : UINT32_MAX;
        if (extension_fits(md, i, &largest))
            format->tip_max = ~(u128)0;
    }
}

static void resolve_address(struct metadata *md)
{
    struct extrinsic_format *format = &md->format;
    const struct type *t = &md->types[md->type_address];
    uint32_t account = md->type_address;
    format->address = ADDRESS_PLAIN;
    if (t->role == ROLE_MULTI_ADDRESS) {
        const struct type_variant *id = metadata__variant_named(md, t, "Id");
        if (!id || id->count != 1) {
            format->address = ADDRESS_UNKNOWN;
            return;
        }
        format->address = ADDRESS_MULTI;
        format->address_id = id->index;
        account = md->fields[id->first].type;
    }
    uint32_t len = md->types[account].plain_size;
    format->account_len = (uint8_t)(len == 32 || len == 20 ? len : 0);
    if (!format->account_len)
        format->address = ADDRESS_UNKNOWN;
}

static void resolve_signature(struct metadata *md)
{
    static const struct {
        const char *name;
        uint32_t len;
    } schemes[3] = {[KEY_ED25519] = {"Ed25519", 64},
                    [KEY_SR25519] = {"Sr25519", 64},
                    [KEY_ECDSA] = {"Ecdsa", 65}};
    struct extrinsic_format *format = &md->format;
    const struct type *t = &md->types[md->type_signature];
    if (t->plain_size == 65)
        format->signature = SIGNATURE_ETHEREUM;
    if (t->kind != TYPE_VARIANT)
        return;
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        const struct type_variant *v = metadata__variant_named(md, t, schemes[i].name);
        if (!v || v->count != 1 ||
            md->types[md->fields[v->first].type].plain_size != schemes[i].len)
            return;
        format->signature_index[i] = v->index;
    }
    format->signature = SIGNATURE_MULTI;
}

void extrinsic__resolve_format(struct metadata *md)
{
    struct extrinsic_format *format = &md->format;
    resolve_extensions(md);
    resolve_address(md);
    resolve_signature(md);
    if (format->refused.code)
        return;
    if (md->extrinsic_version != EXTRINSIC_V4)
        err_set(&format->refused, ERR_METADATA,
                "the chain takes extrinsics of format v%u: v4 is supported", md->extrinsic_version);
    else if (md->lacks_set_0)
        err_set(&format->refused, ERR_METADATA,
                "the chain has no set 0 of transaction extensions, which extrinsics of format v4 "
                "need");
    else if (format->address == ADDRESS_UNKNOWN)
        err_set(&format->refused, ERR_METADATA,
                "the chain's address type %.60s is not supported: MultiAddress and "
                "account ids of 32 or 20 bytes are",
                md->types[md->type_address].name);
    else if (format->signature == SIGNATURE_UNKNOWN)
        err_set(&format->refused, ERR_METADATA,
                "the chain's signature type %.60s is not supported: MultiSignature "
                "and Ethereum-style signatures of 65 bytes are",
                md->types[md->type_signature].name);
}

u128 extrinsic_tip_max(const struct metadata *md)
{
    return md->format.tip_max;
}

int extrinsic_supported(const struct metadata *md, struct err *err)
{
    const struct err *refused = &md->format.refused;
    return refused->code ? err_set(err, refused->code, "%s", refused->text) : 0;
}
