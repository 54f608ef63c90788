/* A whole extrinsic as JSON. */
#include <inttypes.h>

#include "base/hex.h"
#include "chain/codec/codec.h"
#include "chain/codec/hash.h"
#include "chain/codec/ss58.h"
#include "extrinsic_internal.h"

static void put_hex(struct buf *out, const char *key, const uint8_t *bytes, size_t len)
{
    buf_printf(out, "\"%s\":\"", key);
    hex_put_0x(out, bytes, len);
    buf_puts(out, "\",");
}

static void put_signer(const struct metadata *md, const struct extrinsic_view *x, bool plain,
                       struct buf *out)
{
    int prefix = metadata__ss58_prefix(md);
    char address[SS58_TEXT_MAX];
    if (x->signer_len == 0) {
        buf_puts(out, "\"signer\":null,");
    } else if (plain || x->signer_len != 32 || prefix < 0) {
        put_hex(out, "signer", x->signer, x->signer_len);
    } else {
        ss58_encode(x->signer, (uint16_t)prefix, address);
        buf_printf(out, "\"signer\":\"%s\",", address);
    }
}

static void put_era(struct era era, struct buf *out)
{
    if (era.period)
        buf_printf(out, "\"era\":{\"period\":%u,\"phase\":%u},", era.period, era.phase);
    else
        buf_puts(out, "\"era\":\"Immortal\",");
}

/* Every extension that carries bytes, by name, also those that have a field of their own. */
static int put_extensions(const struct metadata *md, const struct extrinsic_view *x, bool plain,
                          struct buf *out, struct err *err)
{
    struct scale_in in = scale_in_of(x->extra, x->extra_len);
    const char *between = "";
    int rc = 0;
    buf_puts(out, "\"extensions\":{");
    for (size_t i = 0; i < md->extension_count && rc == 0; i++) {
        const struct metadata_extension *e = &md->extensions[i];
        if (md->types[e->type].plain_size == 0)
            continue;
        buf_printf(out, "%s\"%s\":", between, e->name);
        rc = plain ? codec_to_json(md, e->type, &in, out, err)
                   : codec_to_readable(md, e->type, &in, out, err);
        between = ",";
    }
    buf_puts(out, "},");
    return rc;
}

/* Text above 2^53, where JSON readers lose digits. */
static void put_nonce(uint64_t nonce, struct buf *out)
{
    const char *quote = nonce >> 53 ? "\"" : "";
    buf_printf(out, "\"nonce\":%s%" PRIu64 "%s,", quote, nonce, quote);
}

static int put_signed(const struct metadata *md, const struct extrinsic_view *x, bool plain,
                      struct buf *out, struct err *err)
{
    char tip[40];
    put_signer(md, x, plain, out);
    buf_printf(out, "\"scheme\":\"%s\",", key_scheme_name(x->scheme));
    put_hex(out, "signature", x->signature, key_signature_len(x->scheme));
    put_era(x->era, out);
    put_nonce(x->nonce, out);
    buf_printf(out, "\"tip\":\"%s\",", u128_text(x->tip, tip));
    return put_extensions(md, x, plain, out, err);
}

int extrinsic_to_json(const struct metadata *md, const uint8_t *bytes, size_t len, bool plain,
                      struct buf *out, struct err *err)
{
    struct extrinsic_view x;
    uint8_t hash[HASH_LEN];
    size_t start = out->len;
    int rc = extrinsic_decode(md, bytes, len, &x, err);
    if (rc == 0)
        rc = codec_check_call(md, x.call, x.call_len, err);
    if (rc != 0)
        return rc;
    hash_blake2b_256(bytes, len, hash);
    buf_put_u8(out, '{');
    put_hex(out, "hash", hash, sizeof(hash));
    buf_printf(out, "\"signed\":%s,", x.is_signed ? "true" : "false");
    if (x.is_signed)
        rc = put_signed(md, &x, plain, out, err);
    buf_puts(out, "\"call\":");
    if (rc == 0)
        rc = plain ? codec_call_to_json(md, x.call, x.call_len, out, err)
                   : codec_call_to_readable(md, x.call, x.call_len, out, err);
    buf_put_u8(out, '}');
    if (rc != 0)
        out->len = start;
    return rc;
}
