/* Build and sign extrinsics of format v4:
 *
 *   compact length | 0x84 | address | signature | explicit extensions | call
 *
 * where the signature is over  call | explicit | implicit,  hashed when longer than 256 bytes. */
#include "chain/extrinsic.h"

#include <string.h>

#include "chain/hash.h"
#include "extrinsic_internal.h"

/* Facts that this chain's types cannot hold are refused before anything is signed. */
static int check_params(const struct metadata *md, const struct extrinsic_params *params, struct err *err)
{
    const struct extrinsic_format *format = &md->format;
    if (format->refused.code)
        return extrinsic_supported(md, err);
    if (params->nonce > UINT32_MAX && !format->nonce_64)
        return err_set(err, ERR_ARGUMENT, "nonce %llu is larger than this chain's nonces can be",
                       (unsigned long long)params->nonce);
    if (params->tip > UINT32_MAX && !format->tip_128)
        return err_set(err, ERR_ARGUMENT, "the tip is larger than this chain's tips can be");
    return 0;
}

int extrinsic_payload(const struct metadata *md, const struct extrinsic_params *params, const uint8_t *call,
                      size_t call_len, struct buf *ret_payload, struct err *err)
{
    int rc = check_params(md, params, err);
    if (rc != 0)
        return rc;
    buf_put(ret_payload, call, call_len);
    extrinsic__put_explicit(md, params, ret_payload);
    extrinsic__put_implicit(md, params, ret_payload);
    return 0;
}

static int check_key(const struct metadata *md, const struct keypair *key, struct err *err)
{
    const struct extrinsic_format *format = &md->format;
    enum key_scheme scheme = keypair_scheme(key);
    size_t id_len;
    keypair_account_id(key, &id_len);
    bool fits = (scheme == KEY_ETHEREUM) == (format->signature == SIGNATURE_ETHEREUM);
    if (fits && id_len == format->account_len)
        return 0;
    return err_set(err, ERR_KEY,
                   "a %s key cannot sign for this chain: its accounts have %u bytes, its signatures are "
                   "%s",
                   key_scheme_name(scheme), format->account_len,
                   format->signature == SIGNATURE_ETHEREUM
                       ? "Ethereum-style (use scheme ethereum)"
                       : "MultiSignature (use sr25519, ed25519 or ecdsa)");
}

static size_t sign_payload(const struct keypair *key, const uint8_t *payload, size_t len,
                           uint8_t sig[KEY_SIG_MAX])
{
    uint8_t hash[HASH_LEN];
    if (len <= PAYLOAD_HASH_ABOVE)
        return keypair_sign(key, payload, len, sig);
    hash_blake2b_256(payload, len, hash);
    return keypair_sign(key, hash, sizeof(hash), sig);
}

/* The body is written behind room for the longest length prefix, which is then put in front of it. */
static void put_length(struct buf *out, size_t start, size_t room)
{
    uint8_t bytes[8];
    struct buf prefix = {.data = bytes, .cap = sizeof(bytes)}; /* a length is 5 bytes at most: never grows */
    size_t body = out->len - start - room;
    scale_put_compact(&prefix, body);
    memmove(out->data + start + prefix.len, out->data + start + room, body);
    memcpy(out->data + start, prefix.data, prefix.len);
    out->len = start + prefix.len + body;
}

static void put_signed(const struct metadata *md, const struct keypair *key, const uint8_t *sig,
                       size_t sig_len, struct buf *out)
{
    const struct extrinsic_format *format = &md->format;
    size_t id_len;
    const uint8_t *id = keypair_account_id(key, &id_len);
    buf_put_u8(out, EXTRINSIC_SIGNED | EXTRINSIC_V4);
    if (format->address == ADDRESS_MULTI)
        buf_put_u8(out, format->address_id);
    buf_put(out, id, id_len);
    if (format->signature == SIGNATURE_MULTI)
        buf_put_u8(out, format->signature_index[keypair_scheme(key)]);
    buf_put(out, sig, sig_len);
}

int extrinsic_sign(const struct metadata *md, const struct extrinsic_params *params,
                   const struct keypair *key, const uint8_t *call, size_t call_len, struct buf *ret_bytes,
                   uint8_t ret_hash[32], struct err *err)
{
    enum { LENGTH_ROOM = 5, AROUND_CALL = 256 };
    uint8_t sig[KEY_SIG_MAX];
    struct buf payload = {0};
    int rc = check_params(md, params, err);
    if (rc == 0)
        rc = check_key(md, key, err);
    if (rc != 0)
        return rc;
    buf_grow(&payload, call_len + AROUND_CALL); /* one allocation, and one for the result at most */
    buf_put(&payload, call, call_len);
    extrinsic__put_explicit(md, params, &payload);
    size_t extra_end = payload.len;
    extrinsic__put_implicit(md, params, &payload);
    size_t sig_len = sign_payload(key, payload.data, payload.len, sig);

    size_t start = ret_bytes->len;
    buf_grow(ret_bytes, call_len + AROUND_CALL);
    ret_bytes->len += LENGTH_ROOM;
    put_signed(md, key, sig, sig_len, ret_bytes);
    buf_put(ret_bytes, payload.data + call_len, extra_end - call_len);
    buf_put(ret_bytes, call, call_len);
    put_length(ret_bytes, start, LENGTH_ROOM);
    hash_blake2b_256(ret_bytes->data + start, ret_bytes->len - start, ret_hash);
    buf_done(&payload);
    return 0;
}
