/* Signing and verifying: the format of extrinsics from chain/codec/, the key from here. */
#include "chain/keys/extrinsic_sign.h"

int extrinsic_sign(const struct metadata *md, const struct extrinsic_params *params,
                   const struct keypair *key, const uint8_t *call, size_t call_len,
                   struct buf *ret_bytes, uint8_t ret_hash[32], struct err *err)
{
    uint8_t signature[KEY_SIG_MAX];
    size_t id_len;
    struct extrinsic_signer signer = {keypair_scheme(key), keypair_account_id(key, &id_len)};
    struct buf payload = {0};
    int rc = extrinsic_payload(md, params, call, call_len, &payload, err);
    if (rc == 0)
        rc = extrinsic_check_signer(md, &signer, err);
    if (rc == 0) {
        extrinsic_payload_shorten(&payload);
        keypair_sign(key, payload.data, payload.len, signature);
        extrinsic_assemble(md, params, &signer, signature, call, call_len, ret_bytes, ret_hash);
    }
    buf_done(&payload);
    return rc;
}

int extrinsic_verify(const struct metadata *md, const struct extrinsic_view *view,
                     const struct extrinsic_params *params, bool *ret_good, struct err *err)
{
    struct buf payload = {0};
    int rc = extrinsic_view_payload(md, view, params, &payload, err);
    if (rc == 0) {
        extrinsic_payload_shorten(&payload);
        *ret_good = key_verify_account(view->scheme, view->signer, view->signer_len, payload.data,
                                       payload.len, view->signature);
    }
    buf_done(&payload);
    return rc;
}
