/* What does each signed extension write into an extrinsic, and into the payload that is signed?
 *
 * We know extensions by name. The bytes that we would write for each must decode as the types that
 * the metadata gives it, so a chain that uses a known name for something else is refused instead of
 * signed for wrongly. */
#include <string.h>

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

bool extrinsic_knows(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(name, known[i].name) == 0)
            return true;
    return false;
}

enum extension_kind extrinsic__extension_kind(const struct metadata *md,
                                              const struct metadata_extension *e)
{
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(e->name, known[i].name) == 0)
            return known[i].kind;
    if (md->types[e->additional].plain_size != 0)
        return EXT_UNKNOWN;
    if (md->types[e->type].plain_size == 0)
        return EXT_EMPTY;
    return md->types[e->type].role == ROLE_OPTION ? EXT_NONE : EXT_UNKNOWN;
}

static void put_explicit(const struct metadata *md, size_t i, const struct extrinsic_params *params,
                         struct buf *out)
{
    const struct buf *configured = &md->extension_bytes[i].explicit_part;
    uint8_t era[2];
    switch (md->extension_kinds[i]) {
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
    case EXT_METADATA_HASH: /* mode: disabled or enabled */
        buf_put_u8(out, params->metadata_hash);
        break;
    case EXT_NONE:
        buf_put_u8(out, 0);
        break;
    case EXT_CONFIGURED:
        buf_put(out, configured->data, configured->len);
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

static void put_implicit(const struct metadata *md, size_t i, const struct extrinsic_params *params,
                         struct buf *out)
{
    const struct buf *configured = &md->extension_bytes[i].implicit_part;
    switch (md->extension_kinds[i]) {
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
        buf_put_u8(out, params->metadata_hash);
        if (params->metadata_hash)
            buf_put(out, md->hash.digest, sizeof(md->hash.digest));
        break;
    case EXT_CONFIGURED:
        buf_put(out, configured->data, configured->len);
        break;
    case EXT_UNKNOWN: /* what others put into an extrinsic; see extrinsic_format.c */
    case EXT_EMPTY:
    case EXT_NONCE:
    case EXT_TIP:
    case EXT_TIP_ASSET:
    case EXT_NONE:
        break;
    }
}

void extrinsic__put_explicit(const struct metadata *md, const struct extrinsic_params *params,
                             struct buf *out)
{
    PRE(!md->format.refused.code);
    for (size_t i = 0; i < md->extension_count; i++)
        put_explicit(md, i, params, out);
}

void extrinsic__put_implicit(const struct metadata *md, const struct extrinsic_params *params,
                             struct buf *out)
{
    PRE(!md->format.unverifiable.code && !(params->metadata_hash && md->hash.why.code));
    for (size_t i = 0; i < md->extension_count; i++)
        put_implicit(md, i, params, out);
}

static bool fits(const struct metadata *md, uint32_t type, const struct buf *bytes)
{
    struct scale_in in = scale_in_of(bytes->data, bytes->len);
    struct err ignored;
    return codec_skip(md, type, &in, &ignored) == 0 && scale_left(&in) == 0;
}

bool extrinsic__extension_fits(const struct metadata *md, size_t i,
                               const struct extrinsic_params *params)
{
    struct buf bytes = {0};
    put_explicit(md, i, params, &bytes);
    bool good = fits(md, md->extensions[i].type, &bytes);
    buf_clear(&bytes);
    put_implicit(md, i, params, &bytes);
    good = good && fits(md, md->extensions[i].additional, &bytes);
    buf_done(&bytes);
    return good;
}
