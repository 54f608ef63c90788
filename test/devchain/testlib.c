/* Transactions by hand and the core with a diary; see testlib.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "testlib.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "chain/codec/hash.h"

struct keypair *test_key(const char *uri, enum key_scheme scheme)
{
    struct keypair *key;
    struct err err;
    assert_int_equal(keypair_from_uri(uri, scheme, &key, &err), 0);
    return key;
}

void call_remark(struct buf *out, const char *text)
{
    buf_put(out, "\0\0", 2);
    scale_put_str(out, text);
}

void call_transfer(struct buf *out, const uint8_t dest[32], u128 amount, unsigned call)
{
    buf_put_u8(out, (uint8_t)(call >> 8));
    buf_put_u8(out, (uint8_t)call);
    buf_put_u8(out, 0);
    buf_put(out, dest, 32);
    scale_put_compact(out, amount);
}

static void put_era(struct buf *b, const struct tx_facts *f)
{
    if (!f->era_period) {
        buf_put_u8(b, 0);
        return;
    }
    unsigned exponent = 0;
    while (2u << exponent < f->era_period)
        exponent++;
    uint32_t quantize = f->era_period >> 12 ? f->era_period >> 12 : 1;
    scale_put_u16(b, (uint16_t)(exponent | (f->era_phase / quantize) << 4));
}

void test_sign(const struct tx_facts *f, const struct keypair *key, uint32_t nonce, u128 tip,
               const struct buf *call, struct buf *out)
{
    struct buf payload = {0}, body = {0}, extra = {0};
    uint8_t digest[32], sig[KEY_SIG_MAX];
    size_t id_len;
    put_era(&extra, f);
    scale_put_compact(&extra, nonce);
    scale_put_compact(&extra, tip);
    buf_put(&payload, call->data, call->len);
    buf_put(&payload, extra.data, extra.len);
    scale_put_u32(&payload, f->spec);
    scale_put_u32(&payload, f->tx_version);
    buf_put(&payload, f->genesis, 32);
    buf_put(&payload, f->era_period ? f->birth : f->genesis, 32);
    const uint8_t *msg = payload.data;
    size_t len = payload.len;
    if (len > 256) {
        hash_blake2b_256(msg, len, digest);
        msg = digest;
        len = 32;
    }
    size_t sig_len = keypair_sign(key, msg, len, sig);
    buf_put_u8(&body, 0x84);
    buf_put_u8(&body, 0);
    buf_put(&body, keypair_account_id(key, &id_len), 32);
    buf_put_u8(&body, (uint8_t)keypair_scheme(key));
    buf_put(&body, sig, sig_len);
    buf_put(&body, extra.data, extra.len);
    buf_put(&body, call->data, call->len);
    scale_put_bytes(out, body.data, body.len);
    buf_done(&payload);
    buf_done(&body);
    buf_done(&extra);
}

/* ---- the rig ---- */

static void on_status(void *arg, struct watch *w, enum pool_status status, const uint8_t *hash)
{
    struct rig *r = arg;
    struct diary *d = CONTAINER_OF(w, struct diary, watch);
    buf_printf(&d->text, "%s%s", d->text.len ? " " : "", pool_status_name(status));
    if (!hash)
        return;
    const struct block *b = chain_block(&r->core.chain, hash);
    if (b)
        buf_printf(&d->text, ":%llu", (unsigned long long)b->salt);
    else
        buf_printf(&d->text, ":%02x%02x", hash[0], hash[1]);
}

static void on_block(void *arg, const struct block *b, bool best)
{
    struct rig *r = arg;
    if (best)
        buf_printf(&r->heads, "%llu ", (unsigned long long)b->number);
}

static void on_finalized(void *arg, const struct block *b)
{
    struct rig *r = arg;
    (void)b;
    r->finalized_told++;
}

static void on_runtime(void *arg)
{
    struct rig *r = arg;
    r->runtime_told++;
}

static bool verdict(void *arg, const struct tx *tx, struct validity *v)
{
    struct rig *r = arg;
    if (r->verdict)
        *v = r->verdict(r, tx, *v);
    return true;
}

static struct core_config default_config(void)
{
    return (struct core_config){
        .pool = {8192, 20u << 20, 512, 1u << 20, 1800000, POOL_TYPE_SINGLE_STATE, 128},
        .finality_blocks_max = 512,
        .keep_bytes_max = 64u << 20,
        .block_extrinsics_max = 5000,
        .runtime = {.version = {100, 1},
                    .block_hash_count = 2400,
                    .ss58_prefix = 42,
                    .existential_deposit = 1000000000,
                    .fee_base = 100000000,
                    .fee_byte = 1000000,
                    .block_ref_time_max = 2000000000000,
                    .block_proof_size_max = 5u << 20,
                    .block_len_max = 5u << 20},
    };
}

const uint8_t *rig_id(const struct keypair *key)
{
    size_t len;
    return keypair_account_id(key, &len);
}

struct rig *rig_new(void (*adjust)(struct core_config *config))
{
    struct rig *r = xcalloc(1, sizeof *r);
    struct core_config config = default_config();
    if (adjust)
        adjust(&config);
    struct core_callbacks cb = {on_status, on_block, on_finalized, on_runtime,
                                NULL,      verdict,  NULL,         r};
    r->now_ms = 1000;
    r->wall_ms = 1700000000000;
    r->alice = test_key("//Alice", KEY_ED25519);
    r->bob = test_key("//Bob", KEY_ED25519);
    r->charlie = test_key("//Charlie", KEY_ED25519);
    core_init(&r->core, &config, &cb);
    struct core_change funds[2] = {{.set_free = true, .free = 1000 * DEV},
                                   {.set_free = true, .free = 1000 * DEV}};
    memcpy(funds[0].id, rig_id(r->alice), 32);
    memcpy(funds[1].id, rig_id(r->bob), 32);
    core_genesis(&r->core, funds, 2, r->wall_ms);
    return r;
}

void rig_free(struct rig *r)
{
    core_done(&r->core);
    keypair_free(r->alice);
    keypair_free(r->bob);
    keypair_free(r->charlie);
    buf_done(&r->heads);
    free(r);
}

struct tx_facts rig_facts(const struct rig *r)
{
    struct tx_facts f = {.spec = r->core.rt.version.spec, .tx_version = r->core.rt.version.tx};
    memcpy(f.genesis, r->core.rt.genesis, 32);
    return f;
}

int rig_code(const struct pool_result *p)
{
    switch (p->kind) {
    case POOL_OK:
        return 0;
    case POOL_BANNED:
        return 1012;
    case POOL_ALREADY_IMPORTED:
        return 1013;
    case POOL_NOT_VALID:
        return p->validity.kind == VALIDITY_TRAP      ? 1002
               : p->validity.kind == VALIDITY_UNKNOWN ? 1011
                                                      : 1010;
    case POOL_NO_TAGS:
        return 1019;
    case POOL_UNACTIONABLE:
        return 1018;
    case POOL_TOO_LOW_PRIORITY:
        return 1014;
    case POOL_CYCLE:
        return 1015;
    case POOL_IMMEDIATELY_DROPPED:
        return 1016;
    default:
        return -1;
    }
}

int rig_bytes(struct rig *r, const void *bytes, size_t len, struct diary *d)
{
    struct tx *tx = NULL;
    if (core_submit(&r->core, r->now_ms, bytes, len, d ? &d->watch : NULL, &tx, &r->last) ==
        CORE_DECODE_BAD)
        return 1001;
    if (d)
        memcpy(d->hash, tx->hash, 32);
    tx_unref(tx);
    return rig_code(&r->last);
}

int rig_call(struct rig *r, const struct keypair *key, uint32_t nonce, u128 tip,
             const struct buf *call, struct diary *d)
{
    struct buf bytes = {0};
    struct tx_facts f = rig_facts(r);
    test_sign(&f, key, nonce, tip, call, &bytes);
    int code = rig_bytes(r, bytes.data, bytes.len, d);
    buf_done(&bytes);
    return code;
}

int rig_remark(struct rig *r, const struct keypair *key, uint32_t nonce, u128 tip, const char *text,
               struct diary *d)
{
    struct buf call = {0};
    call_remark(&call, text);
    int code = rig_call(r, key, nonce, tip, &call, d);
    buf_done(&call);
    return code;
}

const struct block *rig_block(struct rig *r)
{
    r->now_ms += 6000;
    r->wall_ms += 6000;
    return core_author(&r->core, r->now_ms, r->wall_ms, false);
}

void rig_blocks(struct rig *r, size_t count)
{
    while (count--)
        rig_block(r);
}

const char *diary_text(struct diary *d)
{
    return buf_str(&d->text);
}

void diary_done(struct diary *d)
{
    buf_done(&d->text);
}

/* Walks the event records by hand: only System.ExtrinsicSuccess and ExtrinsicFailed are looked for,
 * by their phase. */
const char *block_outcome(const struct block *b, uint32_t index)
{
    static char text[32];
    for (size_t at = 0; at + 8 <= b->events.len; at++) {
        const uint8_t *e = b->events.data + at;
        uint32_t phase;
        memcpy(&phase, e + 1, 4);
        if (e[0] != 0 || phase != index || e[5] != PALLET_SYSTEM || e[6] > 1)
            continue;
        if (e[6] == 0)
            return "ok";
        if (e[7] == DISPATCH_KIND_MODULE)
            snprintf(text, sizeof text, "module:%u:%u", e[8], e[9]);
        else
            snprintf(text, sizeof text, "%s:%u", e[7] == DISPATCH_KIND_TOKEN ? "token" : "other",
                     e[8]);
        return text;
    }
    return "none";
}
