/* Decoding of extrinsics. The runtime is ours and fixed, so the layout is read by hand with SCALE
 * readers: fast, and independent of the decoder that the relay itself uses. */
#include "tx.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "chain/codec/hash.h"

enum { CALL_DEPTH_MAX = 64, BASE_REF_TIME = 20000000, CALL_REF_TIME = 10000000 };

bool tx_get_address(struct scale_in *in, uint8_t ret_id[32])
{
    switch (scale_get_u8(in)) {
    case 0: { /* Id */
        const uint8_t *id = scale_get_bytes(in, 32);
        if (id)
            memcpy(ret_id, id, 32);
        return id != NULL;
    }
    case 1: /* Index: Compact<()> takes no byte */
        return false;
    case 2: /* Raw */
        scale_get_bytes(in, scale_get_len(in));
        return false;
    case 3: /* Address32: AccountIdLookup knows only Id */
        scale_get_bytes(in, 32);
        return false;
    case 4: /* Address20 */
        scale_get_bytes(in, 20);
        return false;
    default:
        in->bad = true;
        return false;
    }
}

static void skip_calls(struct scale_in *in, unsigned depth, uint64_t *weight)
{
    uint32_t count = scale_get_compact_u32(in);
    for (uint32_t i = 0; i < count && !in->bad; i++)
        tx_skip_call(in, depth + 1, weight);
}

bool tx_skip_call(struct scale_in *in, unsigned depth, uint64_t *weight)
{
    uint8_t id[32];
    unsigned pallet = scale_get_u8(in);
    unsigned call = pallet << 8 | scale_get_u8(in);
    *weight += CALL_REF_TIME;
    if (depth > CALL_DEPTH_MAX)
        in->bad = true;
    if (in->bad)
        return false;
    switch (call) {
    case CALL_REMARK:
    case CALL_REMARK_WITH_EVENT:
        scale_get_bytes(in, scale_get_len(in));
        break;
    case CALL_TIMESTAMP_SET:
        scale_get_compact(in);
        break;
    case CALL_TRANSFER_ALLOW_DEATH:
    case CALL_TRANSFER_KEEP_ALIVE:
        tx_get_address(in, id);
        scale_get_compact(in);
        break;
    case CALL_TRANSFER_ALL:
        tx_get_address(in, id);
        scale_get_bool(in);
        break;
    case CALL_BATCH:
    case CALL_BATCH_ALL:
    case CALL_FORCE_BATCH:
        skip_calls(in, depth, weight);
        break;
    case CALL_SUDO:
        tx_skip_call(in, depth + 1, weight);
        break;
    default:
        in->bad = true;
    }
    return !in->bad;
}

/* era.rs: two bytes, the low nibble is the period's exponent minus one, the rest the quantised
 * phase. */
static void get_era(struct scale_in *in, struct tx *tx)
{
    uint8_t first = scale_get_u8(in);
    if (first == 0)
        return;
    unsigned encoded = first | (unsigned)scale_get_u8(in) << 8;
    uint32_t period = 2u << (encoded & 15);
    uint32_t quantize = period >> 12 ? period >> 12 : 1;
    tx->era_mortal = true;
    tx->era_period = (uint16_t)period;
    tx->era_phase = (encoded >> 4) * quantize;
    if (period < 4 || tx->era_phase >= period)
        in->bad = true;
}

static uint32_t era_period(const struct tx *tx)
{
    return tx->era_period ? tx->era_period : 65536;
}

uint64_t tx_era_birth(const struct tx *tx, uint64_t current)
{
    if (!tx->era_mortal)
        return 0;
    uint32_t period = era_period(tx);
    uint64_t from = current > tx->era_phase ? current : tx->era_phase;
    return (from - tx->era_phase) / period * period + tx->era_phase;
}

uint64_t tx_era_death(const struct tx *tx, uint64_t current)
{
    return tx->era_mortal ? tx_era_birth(tx, current) + era_period(tx) : UINT64_MAX;
}

static void get_signed_part(struct scale_in *in, struct tx *tx)
{
    tx->signer_kind = tx_get_address(in, tx->signer) ? TX_SIGNED : TX_UNKNOWN_ADDRESS;
    uint8_t scheme = scale_get_u8(in);
    if (scheme > KEY_ECDSA) {
        in->bad = true;
        return;
    }
    tx->scheme = (enum key_scheme)scheme;
    tx->signature = scale_get_bytes(in, scheme == KEY_ECDSA ? 65 : 64);
    tx->extra = in->p;
    get_era(in, tx);
    tx->nonce = scale_get_compact_u32(in);
    tx->tip = scale_get_compact(in);
    tx->extra_len = (size_t)(in->p - tx->extra);
}

static bool decode_body(struct tx *tx, struct scale_in *in)
{
    switch (scale_get_u8(in)) {
    case 0x84:
        get_signed_part(in, tx);
        break;
    case 0x04:
        tx->signer_kind = TX_BARE;
        break;
    default:
        return false;
    }
    const uint8_t *call = in->p;
    tx->ref_time = BASE_REF_TIME;
    if (in->bad || !tx_skip_call(in, 0, &tx->ref_time) || scale_left(in))
        return false;
    tx->call = call;
    tx->call_len = (size_t)(in->p - call);
    return true;
}

enum tx_decode tx_decode(const uint8_t *bytes, size_t len, struct tx **ret_tx)
{
    struct scale_in in = scale_in_of(bytes, len);
    size_t body_len = scale_get_len(&in);
    const uint8_t *body = scale_get_bytes(&in, body_len);
    if (in.bad)
        return TX_DECODE_BAD_FRAME;
    struct buf b = {0};
    scale_put_compact(&b, body_len);
    size_t prefix = b.len;
    buf_put(&b, body, body_len);
    struct tx *tx = xcalloc(1, sizeof *tx);
    tx->refs = 1;
    tx->bytes = b.data;
    tx->len = b.len;
    hash_blake2b_256(tx->bytes, tx->len, tx->hash);
    *ret_tx = tx;
    struct scale_in inner = scale_in_of(tx->bytes + prefix, body_len);
    return decode_body(tx, &inner) ? TX_DECODE_OK : TX_DECODE_BAD_BODY;
}

struct tx *tx_ref(struct tx *tx)
{
    tx->refs++;
    return tx;
}

void tx_unref(struct tx *tx)
{
    if (!tx || --tx->refs)
        return;
    free(tx->bytes);
    free(tx);
}

struct tx *tx_timestamp(uint64_t now_ms)
{
    struct buf body = {0}, all = {0};
    struct tx *tx = NULL;
    buf_put_u8(&body, 0x04);
    buf_put_u8(&body, PALLET_TIMESTAMP);
    buf_put_u8(&body, 0);
    scale_put_compact(&body, now_ms);
    scale_put_bytes(&all, body.data, body.len);
    enum tx_decode got = tx_decode(all.data, all.len, &tx);
    INVARIANT(got == TX_DECODE_OK);
    buf_done(&body);
    buf_done(&all);
    return tx;
}
