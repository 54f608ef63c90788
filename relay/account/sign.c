/* One signed extrinsic for a row: parameters from what the node said last, the era anchored on the
 * finalized head: a head that can be reorganised away would make a bad proof. */
#include "account/account.h"
#include "base/check.h"
#include "base/heard.h"
#include "base/plant.h"
#include "chain/keys/extrinsic_sign.h"
#include "service/service_internal.h"

/* The highest final block that was read: by this relay, or by the leader that signed what is
 * pending. Where blocks come on demand, a new leader may have no other to read before it signs. */
static uint64_t block_read(const struct account *a)
{
    uint64_t before = manager_block_read(a->manager);
    return before > a->service->final_read ? before : a->service->final_read;
}

int sign_row(struct account *a, const struct manager_sign_row *row, const uint8_t *call,
             size_t call_len, struct tx_attempt *ret, struct err *err)
{
    const struct node_info *info = node_info(a->service->node);
    if (!info)
        return err_set(err, ERR_NET, "no node is connected: nothing can be signed now");
    uint32_t period = row->era_period;
    struct extrinsic_params params = {
        .nonce = row->nonce,
        .tip = row->tip,
        .spec_version = info->spec_version,
        .transaction_version = info->transaction_version,
        .metadata_hash = a->service->config.metadata_hash,
    };
    memcpy(params.genesis, info->genesis, 32);
    memcpy(params.era_block_hash, info->genesis, 32);
    *ret = (struct tx_attempt){.nonce = row->nonce,
                               .id = row->id,
                               .call_len = call_len,
                               .era_birth = -1,
                               .era_death = -1,
                               .spec_version = info->spec_version,
                               .guard = row->guard,
                               .tip = row->tip};
    if (!heard_is_near(block_read(a), info->finalized_number) &&
        !PLANTED(HEIGHT_TRUSTED)) /* the bytes' era would not end */
        return err_set(err, ERR_NET, "block %llu is said to be final, and %llu was read last",
                       (unsigned long long)info->finalized_number,
                       (unsigned long long)block_read(a));
    if (row->deadline_block && !PLANTED(DEADLINE_LONG))
        period = manager_era_fit(period, info->finalized_number, row->deadline_block);
    if (row->deadline_block && !period)
        return err_set(err, ERR_NET, "block %llu is final: no era ends by the deadline, block %llu",
                       (unsigned long long)info->finalized_number,
                       (unsigned long long)row->deadline_block);
    if (period) {
        uint64_t anchor = PLANTED(ANCHOR_BEST) ? info->best_number : info->finalized_number;
        params.era = era_mortal(period, anchor);
        ret->era_birth = (int64_t)era_birth(params.era, anchor);
        ret->era_death = (int64_t)era_death(params.era, anchor);
        memcpy(params.era_block_hash, PLANTED(ANCHOR_BEST) ? info->best_hash : info->finalized_hash,
               32);
    }
    struct buf bytes = {0};
    int rc =
        extrinsic_sign(info->metadata, &params, a->key, call, call_len, &bytes, ret->hash, err);
    ret->bytes = bytes.data;
    ret->bytes_len = bytes.len;
    return rc;
}

int sign_supported(const struct account *a, const struct metadata *md, struct err *err)
{
    struct extrinsic_signer signer = {a->scheme, a->id};
    int rc = a->key ? extrinsic_supported(md, err) : extrinsic_verifiable(md, err);
    if (rc == 0 && a->key && a->service->config.metadata_hash)
        rc = extrinsic_metadata_hash(md, err);
    return rc != 0 ? rc : extrinsic_check_signer(md, &signer, err);
}

int sign_filler_call(struct account *a, struct buf *ret_call, struct err *err)
{
    const struct node_info *info = node_info(a->service->node);
    uint8_t index[2];
    if (!info)
        return err_set(err, ERR_NET, "no node is connected: nothing can be signed now");
    if (!metadata_find_call(info->metadata, "System", "remark", index))
        return err_set(err, ERR_METADATA, "the chain has no System.remark to fill a nonce with");
    buf_put(ret_call, index, 2);
    buf_put_u8(ret_call, 0);
    return 0;
}

enum tx_signature account_verify(const struct tx_included *x, const struct metadata *md,
                                 const struct extrinsic_params *facts)
{
    struct extrinsic_view view;
    struct err err;
    bool good;
    PRE(x->bytes && md);
    if (PLANTED(FOREIGN_BELIEVED))
        return TX_SIGNATURE_GOOD;
    if (extrinsic_decode(md, x->bytes, x->bytes_len, &view, &err) ||
        extrinsic_verify(md, &view, facts, &good, &err))
        return TX_SIGNATURE_UNKNOWN;
    /* Who is wrong about the chain's token has another metadata hash. */
    return good ? TX_SIGNATURE_GOOD : view.metadata_hash ? TX_SIGNATURE_UNKNOWN : TX_SIGNATURE_BAD;
}
