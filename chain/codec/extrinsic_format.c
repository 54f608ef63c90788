/* Which form do a chain's signed extrinsics have, and can we read, verify and sign them? Resolved
 * once per metadata so that signing only writes bytes. What each signed extension writes is in
 * extrinsic_extensions.c. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "extrinsic_internal.h"

/* How large values of the nonce and the tip may be. */
static void resolve_sizes(struct metadata *md, size_t i)
{
    struct extrinsic_params large = {.nonce = UINT64_MAX, .tip = UINT64_MAX, .era = {64, 21}};
    struct extrinsic_params largest = {.tip = ~(u128)0, .era = {64, 21}};
    struct extrinsic_format *format = &md->format;
    enum extension_kind kind = md->extension_kinds[i];
    bool is_large = extrinsic__extension_fits(md, i, &large);
    if (kind == EXT_NONCE)
        format->nonce_64 = is_large;
    if (kind != EXT_TIP && kind != EXT_TIP_ASSET)
        return;
    format->tip_max = is_large ? UINT64_MAX : UINT32_MAX;
    if (extrinsic__extension_fits(md, i, &largest))
        format->tip_max = ~(u128)0;
}

/* "A, B and C" of the extensions of this kind; returns their number. */
static size_t name_all(const struct metadata *md, enum extension_kind kind, struct buf *out)
{
    size_t count = 0, named = 0;
    for (size_t i = 0; i < md->extension_count; i++)
        count += md->extension_kinds[i] == kind;
    for (size_t i = 0; i < md->extension_count; i++) {
        if (md->extension_kinds[i] != kind)
            continue;
        const char *comma = named + 1 == count ? " and " : ", ";
        buf_printf(out, "%s%.80s", named++ ? comma : "", md->extensions[i].name);
    }
    return count;
}

static void refuse_unknown(struct metadata *md)
{
    struct buf names = {0};
    size_t count = name_all(md, EXT_UNKNOWN, &names);
    if (count)
        err_set(&md->format.refused, ERR_EXTENSION,
                "unknown signed extension%s %.200s: give %s bytes in chain.extensions of the "
                "configuration",
                count == 1 ? "" : "s", buf_str(&names), count == 1 ? "its" : "their");
    buf_done(&names);
}

static bool unknown_implicit(const struct metadata *md, size_t i)
{
    return md->extension_kinds[i] == EXT_UNKNOWN &&
           md->types[md->extensions[i].additional].plain_size != 0;
}

static void resolve_extensions(struct metadata *md)
{
    struct extrinsic_params sample = {.nonce = UINT32_MAX, .tip = UINT32_MAX, .era = {64, 21}};
    struct extrinsic_format *format = &md->format;
    format->tip_max = ~(u128)0; /* without a tip nothing is written */
    for (size_t i = 0; i < md->extension_count; i++) {
        const char *name = md->extensions[i].name;
        bool configured = md->extension_kinds[i] == EXT_CONFIGURED;
        if (!configured)
            md->extension_kinds[i] = extrinsic__extension_kind(md, &md->extensions[i]);
        if (unknown_implicit(md, i))
            err_set(&format->unverifiable, ERR_EXTENSION,
                    "the chain's signed extension %.80s signs bytes that are not known", name);
        if (md->extension_kinds[i] == EXT_UNKNOWN)
            continue;
        if (extrinsic__extension_fits(md, i, &sample)) {
            resolve_sizes(md, i);
            continue;
        }
        err_set(&format->refused, ERR_EXTENSION,
                configured ? "the bytes of chain.extensions do not fit the chain's signed "
                             "extension %.80s"
                           : "the chain's signed extension %.80s has not the form that is "
                             "known by this name: this version of txrelay cannot sign for it",
                name);
        format->unverifiable = format->refused;
    }
    if (!format->refused.code)
        refuse_unknown(md);
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

static void resolve_readable(struct metadata *md)
{
    struct extrinsic_format *format = &md->format;
    if (md->extrinsic_version != EXTRINSIC_V4)
        err_set(&format->unreadable, ERR_METADATA,
                "the chain takes extrinsics of format v%u: v4 is supported", md->extrinsic_version);
    else if (md->lacks_set_0)
        err_set(&format->unreadable, ERR_METADATA,
                "the chain has no set 0 of transaction extensions, which extrinsics of format v4 "
                "need");
    else if (format->address == ADDRESS_UNKNOWN)
        err_set(&format->unreadable, ERR_METADATA,
                "the chain's address type %.60s is not supported: MultiAddress and "
                "account ids of 32 or 20 bytes are",
                md->types[md->type_address].name);
    else if (format->signature == SIGNATURE_UNKNOWN)
        err_set(&format->unreadable, ERR_METADATA,
                "the chain's signature type %.60s is not supported: MultiSignature "
                "and Ethereum-style signatures of 65 bytes are",
                md->types[md->type_signature].name);
}

static void resolve(struct metadata *md)
{
    struct extrinsic_format *format = &md->format;
    *format = (struct extrinsic_format){0};
    resolve_address(md);
    resolve_signature(md);
    resolve_readable(md);
    resolve_extensions(md);
    if (!format->unreadable.code)
        return;
    format->refused = format->unreadable;
    format->unverifiable = format->unreadable;
}

static size_t metadata_hash_at(const struct metadata *md)
{
    size_t i = 0;
    while (i < md->extension_count && md->extension_kinds[i] != EXT_METADATA_HASH)
        i++;
    return i;
}

bool extrinsic_has_metadata_hash(const struct metadata *md)
{
    return metadata_hash_at(md) < md->extension_count;
}

int extrinsic_metadata_hash(const struct metadata *md, struct err *err)
{
    const struct err *why = &md->hash.why;
    return why->code ? err_set(err, why->code, "%s", why->text) : 0;
}

void extrinsic_set_token(struct metadata *md, const struct metadata_token *token)
{
    struct extrinsic_params signs = {.era = {64, 21}, .metadata_hash = true};
    struct metadata_hash hash = {.why = {0}};
    size_t at = metadata_hash_at(md);
    if (at == md->extension_count)
        err_set(&hash.why, ERR_EXTENSION,
                "metadata hash: the chain has no signed extension CheckMetadataHash");
    else if (!token)
        err_set(&hash.why, ERR_EXTENSION,
                "metadata hash: the chain's token is not known: set chain.token_symbol and "
                "chain.token_decimals");
    else if (metadata_digest(md, token, hash.digest, &hash.why) == 0 &&
             !extrinsic__extension_fits(md, at, &signs))
        err_set(&hash.why, ERR_EXTENSION,
                "metadata hash: the chain's signed extension CheckMetadataHash does not take one");
    md->hash = hash;
}

void extrinsic__resolve_format(struct metadata *md)
{
    md->extension_kinds = xcalloc(md->extension_count + 1, sizeof(*md->extension_kinds));
    md->extension_bytes = xcalloc(md->extension_count + 1, sizeof(*md->extension_bytes));
    resolve(md);
    extrinsic_set_token(md, NULL);
}

void extrinsic__format_done(struct metadata *md)
{
    for (size_t i = 0; md->extension_bytes && i < md->extension_count; i++) {
        buf_done(&md->extension_bytes[i].explicit_part);
        buf_done(&md->extension_bytes[i].implicit_part);
    }
    free(md->extension_bytes);
    free(md->extension_kinds);
}

void extrinsic_configure(struct metadata *md, const struct extrinsic_extension *list, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        PRE(!extrinsic_knows(list[k].name));
        for (size_t i = 0; i < md->extension_count; i++) {
            struct extension_bytes *bytes = &md->extension_bytes[i];
            if (strcmp(md->extensions[i].name, list[k].name) != 0)
                continue;
            md->extension_kinds[i] = EXT_CONFIGURED;
            buf_clear(&bytes->explicit_part);
            buf_clear(&bytes->implicit_part);
            buf_put(&bytes->explicit_part, list[k].explicit_part.data, list[k].explicit_part.len);
            buf_put(&bytes->implicit_part, list[k].implicit_part.data, list[k].implicit_part.len);
        }
    }
    resolve(md);
}

void extrinsic_extensions_text(const struct metadata *md, struct buf *out)
{
    size_t start = out->len, none = name_all(md, EXT_NONE, out);
    if (none)
        buf_printf(out, " %s None", none == 1 ? "is" : "are");
    for (size_t i = 0; i < md->extension_count; i++) {
        if (md->extension_kinds[i] != EXT_CONFIGURED)
            continue;
        const struct extension_bytes *b = &md->extension_bytes[i];
        buf_printf(out, "%s%.80s is ", out->len > start ? "; " : "", md->extensions[i].name);
        hex_put_0x(out, b->explicit_part.data, b->explicit_part.len);
        if (b->implicit_part.len) {
            buf_printf(out, " and signs ");
            hex_put_0x(out, b->implicit_part.data, b->implicit_part.len);
        }
    }
}

int extrinsic_verifiable(const struct metadata *md, struct err *err)
{
    const struct err *refused = &md->format.unverifiable;
    return refused->code ? err_set(err, refused->code, "%s", refused->text) : 0;
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
