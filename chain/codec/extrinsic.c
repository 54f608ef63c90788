/* Build extrinsics of format v4:
 *
 *   compact length | 0x84 | address | signature | explicit extensions | call
 *
 * where the signature is over  call | explicit | implicit extensions,  hashed if longer than 256
 * bytes. */
#include "chain/codec/extrinsic.h"

#include <string.h>

#include "base/check.h"
#include "chain/codec/hash.h"
#include "extrinsic_internal.h"

enum {
    PAYLOAD_HASH_ABOVE = 256, /* bytes; a longer payload is signed by its hash */
    LENGTH_ROOM = 5,          /* the longest length prefix */
    AROUND_CALL = 256,        /* roughly what surrounds a call, so that one allocation is enough */
};

/* Refuse values that this chain's types cannot hold. */
static int check_params(const struct metadata *md, const struct extrinsic_params *params,
                        struct err *err)
{
    const struct extrinsic_format *format = &md->format;
    if (format->refused.code)
        return extrinsic_supported(md, err);
    if (params->metadata_hash && md->hash.why.code)
        return extrinsic_metadata_hash(md, err);
    if (params->nonce > UINT32_MAX && !format->nonce_64)
        return err_set(err, ERR_ARGUMENT, "nonce %llu is larger than this chain's nonces can be",
                       (unsigned long long)params->nonce);
    if (params->tip > format->tip_max)
        return err_set(err, ERR_ARGUMENT, "the tip is larger than this chain's tips can be");
    return 0;
}

int extrinsic_payload(const struct metadata *md, const struct extrinsic_params *params,
                      const uint8_t *call, size_t call_len, struct buf *ret_payload,
                      struct err *err)
{
    int rc = check_params(md, params, err);
    if (rc != 0)
        return rc;
    buf_grow(ret_payload, call_len + AROUND_CALL);
    buf_put(ret_payload, call, call_len);
    extrinsic__put_explicit(md, params, ret_payload);
    extrinsic__put_implicit(md, params, ret_payload);
    return 0;
}

void extrinsic_payload_shorten(struct buf *payload)
{
    uint8_t hash[HASH_LEN];
    if (payload->len <= PAYLOAD_HASH_ABOVE)
        return;
    hash_blake2b_256(payload->data, payload->len, hash);
    buf_clear(payload);
    buf_put(payload, hash, sizeof(hash));
}

static bool signer_fits(const struct extrinsic_format *format,
                        const struct extrinsic_signer *signer)
{
    return (signer->scheme == KEY_ETHEREUM) == (format->signature == SIGNATURE_ETHEREUM) &&
           key_account_id_len(signer->scheme) == format->account_len;
}

int extrinsic_check_signer(const struct metadata *md, const struct extrinsic_signer *signer,
                           struct err *err)
{
    const struct extrinsic_format *format = &md->format;
    if (format->unreadable.code)
        return err_set(err, format->unreadable.code, "%s", format->unreadable.text);
    if (signer_fits(format, signer))
        return 0;
    return err_set(
        err, ERR_KEY,
        "a key of scheme %s cannot sign for this chain: its accounts have %u bytes, its signatures "
        "are %s",
        key_scheme_name(signer->scheme), format->account_len,
        format->signature == SIGNATURE_ETHEREUM ? "Ethereum-style (use scheme ethereum)"
                                                : "MultiSignature (use sr25519, ed25519 or ecdsa)");
}

/* Moves the body, which begins `room` bytes after start, to behind its length prefix. */
static void put_length(struct buf *out, size_t start, size_t room)
{
    uint8_t bytes[8]; /* a length takes at most 5, so the buffer never grows */
    struct buf prefix = {.data = bytes, .cap = sizeof(bytes)};
    PRE(out->len >= start + room);
    size_t body = out->len - start - room;
    scale_put_compact(&prefix, body);
    memmove(out->data + start + prefix.len, out->data + start + room, body);
    memcpy(out->data + start, prefix.data, prefix.len);
    out->len = start + prefix.len + body;
}

static void put_signed(const struct extrinsic_format *format, const struct extrinsic_signer *signer,
                       const uint8_t *signature, struct buf *out)
{
    buf_put_u8(out, EXTRINSIC_SIGNED | EXTRINSIC_V4);
    if (format->address == ADDRESS_MULTI)
        buf_put_u8(out, format->address_id);
    buf_put(out, signer->account_id, key_account_id_len(signer->scheme));
    if (format->signature == SIGNATURE_MULTI)
        buf_put_u8(out, format->signature_index[signer->scheme]);
    buf_put(out, signature, key_signature_len(signer->scheme));
}

void extrinsic_assemble(const struct metadata *md, const struct extrinsic_params *params,
                        const struct extrinsic_signer *signer, const uint8_t *signature,
                        const uint8_t *call, size_t call_len, struct buf *ret_bytes,
                        uint8_t ret_hash[32])
{
    size_t start = ret_bytes->len;
    PRE(!md->format.refused.code && signer_fits(&md->format, signer));
    buf_grow(ret_bytes, call_len + AROUND_CALL);
    ret_bytes->len += LENGTH_ROOM;
    put_signed(&md->format, signer, signature, ret_bytes);
    extrinsic__put_explicit(md, params, ret_bytes);
    buf_put(ret_bytes, call, call_len);
    put_length(ret_bytes, start, LENGTH_ROOM);
    hash_blake2b_256(ret_bytes->data + start, ret_bytes->len - start, ret_hash);
}
