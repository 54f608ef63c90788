/* Validity and application of transactions; the calls themselves are in runtime_calls.c. */
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "chain/codec/hash.h"

enum { NORMAL_PERCENT = 75 };

static struct validity invalid(uint8_t code)
{
    return (struct validity){.kind = VALIDITY_INVALID, .code = code};
}

static u128 add_saturating(u128 a, u128 b)
{
    u128 sum = a + b;
    return sum < a ? ~(u128)0 : sum;
}

u128 runtime_fee_of(const struct runtime *rt, size_t len)
{
    return add_saturating(rt->fee_base, rt->fee_byte * len);
}

u128 runtime_fee(const struct runtime *rt, const struct tx *tx)
{
    return add_saturating(runtime_fee_of(rt, tx->len), tx->tip);
}

/* CheckMortality's implicit part: the birth block's hash as the block under construction would see
 * it. */
static const uint8_t *birth_hash(const struct runtime *rt, const struct tx *tx)
{
    if (!tx->era_mortal)
        return rt->genesis;
    uint64_t best = rt->chain->best->number;
    uint64_t birth = tx_era_birth(tx, best + 1);
    if (birth > best || birth + rt->block_hash_count < best + 1)
        return NULL;
    return chain_canonical(rt->chain, birth)->hash;
}

/* The signature over call, extra and implicit parts. A proof once made holds as long as the
 * implicit parts are the same ones, so that blocks and revalidation need not pay for it again. */
static bool signature_good(const struct runtime *rt, struct tx *tx, const uint8_t *birth)
{
    if (tx->proven && tx->proven_spec == rt->version.spec &&
        tx->proven_tx_version == rt->version.tx && memcmp(tx->proven_birth, birth, 32) == 0)
        return true;
    if (rt->trust_signatures)
        return true;
    struct buf payload = {0};
    buf_put(&payload, tx->call, tx->call_len);
    buf_put(&payload, tx->extra, tx->extra_len);
    scale_put_u32(&payload, rt->version.spec);
    scale_put_u32(&payload, rt->version.tx);
    buf_put(&payload, rt->genesis, 32);
    buf_put(&payload, birth, 32);
    uint8_t digest[32];
    const uint8_t *msg = payload.data;
    size_t msg_len = payload.len;
    if (payload.len > 256) {
        hash_blake2b_256(payload.data, payload.len, digest);
        msg = digest;
        msg_len = sizeof digest;
    }
    bool good = key_verify_account(tx->scheme, tx->signer, 32, msg, msg_len, tx->signature);
    buf_done(&payload);
    if (good) {
        tx->proven = true;
        tx->proven_spec = rt->version.spec;
        tx->proven_tx_version = rt->version.tx;
        memcpy(tx->proven_birth, birth, 32);
    }
    return good;
}

static bool is_mandatory(const struct tx *tx)
{
    return tx->call[0] == PALLET_TIMESTAMP;
}

/* behaviour.md, line 22; class Normal. */
static uint64_t priority_of(const struct runtime *rt, const struct tx *tx)
{
    uint64_t time_slots = rt->block_ref_time_max / (tx->ref_time ? tx->ref_time : 1);
    uint64_t proof_slots = rt->block_proof_size_max / (tx->proof_size ? tx->proof_size : 1);
    uint64_t len_slots = (uint64_t)rt->block_len_max * NORMAL_PERCENT / 100 / tx->len;
    uint64_t slots = time_slots < proof_slots ? time_slots : proof_slots;
    if (len_slots < slots)
        slots = len_slots;
    if (!slots)
        slots = 1;
    if (tx->tip >= UINT64_MAX)
        return UINT64_MAX;
    u128 p = (tx->tip + 1) * slots;
    return p > UINT64_MAX ? UINT64_MAX : (uint64_t)p;
}

/* Everything up to and including the fee check, in the order of behaviour.md, line 38. The nonce
 * may be ahead. */
static struct validity check(const struct runtime *rt, struct tx *tx,
                             const struct account **ret_account)
{
    if (!tx->call)
        return (struct validity){.kind = VALIDITY_TRAP};
    if (tx->signer_kind == TX_UNKNOWN_ADDRESS)
        return (struct validity){.kind = VALIDITY_UNKNOWN, .code = UNKNOWN_CANNOT_LOOKUP};
    if (tx->signer_kind == TX_BARE) {
        if (is_mandatory(tx))
            return invalid(INVALID_MANDATORY_VALIDATION);
        return (struct validity){.kind = VALIDITY_UNKNOWN, .code = UNKNOWN_NO_UNSIGNED_VALIDATOR};
    }
    const uint8_t *birth = birth_hash(rt, tx);
    if (!birth)
        return invalid(INVALID_ANCIENT_BIRTH_BLOCK);
    if (!signature_good(rt, tx, birth))
        return invalid(INVALID_BAD_PROOF);
    if (is_mandatory(tx))
        return invalid(INVALID_MANDATORY_VALIDATION);
    static const uint8_t zero[32];
    if (memcmp(tx->signer, zero, 32) == 0)
        return invalid(INVALID_BAD_SIGNER);
    const struct account *a = state_find(&rt->chain->state, tx->signer);
    if (!a || !a->rec.providers)
        return invalid(INVALID_PAYMENT);
    if (tx->nonce < a->rec.nonce)
        return invalid(INVALID_STALE);
    if (tx->len > (uint64_t)rt->block_len_max * NORMAL_PERCENT / 100 ||
        tx->ref_time > rt->block_ref_time_max / 100 * NORMAL_PERCENT)
        return invalid(INVALID_EXHAUSTS_RESOURCES);
    if (a->rec.free < add_saturating(runtime_fee(rt, tx), rt->existential_deposit))
        return invalid(INVALID_PAYMENT);
    *ret_account = a;
    return (struct validity){.kind = VALIDITY_OK};
}

struct validity runtime_validate(const struct runtime *rt, struct tx *tx)
{
    const struct account *a = NULL;
    struct validity v = check(rt, tx, &a);
    if (v.kind != VALIDITY_OK)
        return v;
    uint64_t current = rt->chain->best->number + 1;
    uint64_t death = tx_era_death(tx, current);
    v.longevity = death == UINT64_MAX ? UINT64_MAX : death - current;
    v.requires = tx->nonce > a->rec.nonce;
    v.priority = priority_of(rt, tx);
    return v;
}

void dispatch_error_scale(struct dispatch_error e, struct buf *out)
{
    buf_put_u8(out, (uint8_t)e.kind);
    switch (e.kind) {
    case DISPATCH_KIND_MODULE:
        buf_put_u8(out, e.module);
        buf_put(out, (uint8_t[4]){e.code}, 4);
        break;
    case DISPATCH_KIND_TOKEN:
        buf_put_u8(out, e.code);
        break;
    default:
        break;
    }
}

void exec__event(struct exec *x, uint8_t pallet, uint8_t variant, const struct buf *fields)
{
    buf_put_u8(&x->events, 0); /* Phase::ApplyExtrinsic */
    scale_put_u32(&x->events, x->index);
    buf_put_u8(&x->events, pallet);
    buf_put_u8(&x->events, variant);
    if (fields)
        buf_put(&x->events, fields->data, fields->len);
    scale_put_compact(&x->events, 0); /* topics */
    x->event_count++;
}

static void put_dispatch_info(struct buf *b, uint64_t ref_time, uint64_t proof_size, bool mandatory)
{
    scale_put_compact(b, ref_time);
    scale_put_compact(b, proof_size);
    buf_put_u8(b, mandatory ? 2 : 0);
    buf_put_u8(b, 0); /* Pays::Yes */
}

static void append_tx(struct exec *x, struct tx *tx)
{
    if (x->tx_count == x->tx_cap) {
        x->tx_cap = x->tx_cap ? x->tx_cap * 2 : 64;
        x->txs = xrealloc(x->txs, x->tx_cap * sizeof(struct tx *));
    }
    x->txs[x->tx_count++] = tx_ref(tx);
    x->ref_time += tx->ref_time;
    x->len += tx->len;
}

/* The block opens with its inherent, Timestamp.set. */
void exec_init(struct exec *x, struct runtime *rt, uint64_t timestamp_ms)
{
    *x = (struct exec){.rt = rt, .timestamp_ms = timestamp_ms};
    struct tx *set = tx_timestamp(timestamp_ms);
    struct buf info = {0};
    put_dispatch_info(&info, set->ref_time, 0, true);
    exec__event(x, PALLET_SYSTEM, 0, &info);
    buf_done(&info);
    append_tx(x, set);
    tx_unref(set);
}

void exec_done(struct exec *x)
{
    for (size_t i = 0; i < x->tx_count; i++)
        tx_unref(x->txs[i]);
    free(x->txs);
    buf_done(&x->events);
    *x = (struct exec){0};
}

static void fee_event(struct exec *x, const struct tx *tx, u128 fee)
{
    struct buf b = {0};
    buf_put(&b, tx->signer, 32);
    scale_put_u128(&b, fee);
    scale_put_u128(&b, tx->tip);
    exec__event(x, PALLET_PAYMENT, 0, &b);
    buf_done(&b);
}

static void result_event(struct exec *x, const struct tx *tx, struct dispatch_error e)
{
    struct buf b = {0};
    bool failed = e.kind != DISPATCH_KIND_OK;
    if (failed)
        dispatch_error_scale(e, &b);
    put_dispatch_info(&b, tx->ref_time, tx->proof_size, false);
    exec__event(x, PALLET_SYSTEM, failed ? 1 : 0, &b);
    buf_done(&b);
}

struct validity exec_apply(struct exec *x, struct tx *tx, struct dispatch_error *ret_error)
{
    struct runtime *rt = x->rt;
    struct state *st = &rt->chain->state;
    const struct account *seen = NULL;
    struct validity v = check(rt, tx, &seen);
    if (v.kind != VALIDITY_OK)
        return v;
    if (tx->nonce > seen->rec.nonce)
        return invalid(INVALID_FUTURE);
    if (x->len + tx->len > (uint64_t)rt->block_len_max * NORMAL_PERCENT / 100 ||
        x->ref_time + tx->ref_time > rt->block_ref_time_max / 100 * NORMAL_PERCENT)
        return invalid(INVALID_EXHAUSTS_RESOURCES);
    struct account *a = state_account(st, tx->signer);
    struct account_rec rec = a->rec;
    u128 fee = runtime_fee(rt, tx);
    rec.nonce++;
    rec.free -= fee;
    state_write(st, a, rec);
    x->index = (uint32_t)x->tx_count;
    size_t mark = state_checkpoint(st), events = x->events.len;
    uint32_t event_count = x->event_count;
    struct scale_in call = scale_in_of(tx->call, tx->call_len);
    struct dispatch_error e;
    if (x->dry_run || !rt->fails || !rt->fails(rt->fails_arg, tx, &e))
        e = exec__dispatch(x, tx->signer, &call);
    if (e.kind != DISPATCH_KIND_OK) {
        state_rollback(st, mark);
        x->events.len = events;
        x->event_count = event_count;
    }
    fee_event(x, tx, fee);
    result_event(x, tx, e);
    append_tx(x, tx);
    *ret_error = e;
    return v;
}

struct validity exec_dry_run(struct runtime *rt, struct tx *tx, struct dispatch_error *ret_error)
{
    struct exec x;
    size_t mark = state_checkpoint(&rt->chain->state);
    exec_init(&x, rt, 0);
    x.dry_run = true;
    struct validity v = exec_apply(&x, tx, ret_error);
    exec_done(&x);
    state_rollback(&rt->chain->state, mark);
    return v;
}
