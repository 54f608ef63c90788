/* Extrinsics beyond the reference vectors: what cannot be signed is refused with a reason, and
 * every other form that a block may hold is taken apart or refused, never believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "chain/codec/hash.h"
#include "chain/codec/scale.h"
#include "support_vectors.h"

static struct metadata *polkadot, *evm;
static const uint8_t remark[] = {0, 0, 0x14, 'H', 'e', 'l', 'l', 'o'};

static int set_up(void **state)
{
    (void)state;
    polkadot = vectors_metadata("v14-polkadot");
    evm = vectors_metadata("sh-solochain-evm");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    polkadot = metadata_free(polkadot);
    evm = metadata_free(evm);
    return 0;
}

static struct extrinsic_params some_params(void)
{
    struct extrinsic_params p = {
        .nonce = 3, .tip = 9, .era = era_mortal(64, 1000), .spec_version = 7};
    memset(p.genesis, 0x11, 32);
    memset(p.era_block_hash, 0x22, 32);
    return p;
}

static void sign(const struct metadata *md, const struct extrinsic_params *params,
                 const char *scheme, struct buf *out)
{
    struct keypair *key = vectors_key(scheme);
    uint8_t hash[32], again[32];
    struct err err = {0};
    buf_clear(out);
    assert_int_equal(extrinsic_sign(md, params, key, remark, sizeof(remark), out, hash, &err), 0);
    hash_blake2b_256(out->data, out->len, again);
    assert_memory_equal(hash, again, 32);
    keypair_free(key);
}

static void keys_of_the_other_style(void **state)
{
    (void)state;
    struct extrinsic_params params = some_params();
    struct keypair *ethereum = vectors_key("ethereum");
    struct keypair *sr25519 = vectors_key("sr25519");
    struct buf out = {0};
    struct err err = {0};
    uint8_t hash[32];
    assert_int_equal(extrinsic_sign(polkadot, &params, ethereum, remark, 8, &out, hash, &err),
                     ERR_KEY);
    assert_non_null(strstr(err.text, "a key of scheme ethereum cannot sign"));
    assert_non_null(strstr(err.text, "use sr25519, ed25519 or ecdsa"));
    assert_int_equal(extrinsic_sign(evm, &params, sr25519, remark, 8, &out, hash, &err), ERR_KEY);
    assert_non_null(strstr(err.text, "use scheme ethereum"));
    assert_int_equal(out.len, 0);
    keypair_free(ethereum);
    keypair_free(sr25519);
}

static void facts_that_do_not_fit(void **state)
{
    (void)state;
    struct extrinsic_params params = some_params();
    struct buf out = {0};
    struct err err = {0};
    params.nonce = UINT32_MAX;
    params.tip = ~(u128)0; /* Compact<u128> */
    assert_int_equal(extrinsic_payload(polkadot, &params, remark, 8, &out, &err), 0);
    params.nonce++;
    assert_int_equal(extrinsic_payload(polkadot, &params, remark, 8, &out, &err), ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "nonce 4294967296"));
    buf_done(&out);
}

/* An immortal one signs the genesis hash, whatever the caller left in era_block_hash. */
static void immortal(void **state)
{
    (void)state;
    struct extrinsic_params params = some_params();
    struct buf out = {0};
    struct extrinsic_view view;
    struct err err = {0};
    bool good = false;
    params.era = (struct era){0, 0};
    sign(polkadot, &params, "sr25519", &out);
    assert_int_equal(extrinsic_decode(polkadot, out.data, out.len, &view, &err), 0);
    assert_int_equal(view.era.period, 0);
    assert_int_equal(era_death(view.era, 5), UINT64_MAX);
    memset(params.era_block_hash, 0x77, 32);
    params.era = era_mortal(64, 5); /* the view's era counts, not this one */
    assert_int_equal(extrinsic_verify(polkadot, &view, &params, &good, &err), 0);
    assert_true(good);
    buf_done(&out);
}

/* A second extrinsic behind the first in one buffer leaves the first alone. */
static void appended(void **state)
{
    (void)state;
    struct extrinsic_params params = some_params();
    struct keypair *key = vectors_key("ed25519");
    struct buf both = {0}, one = {0};
    struct err err = {0};
    uint8_t hash[32];
    sign(polkadot, &params, "ed25519", &one);
    assert_int_equal(extrinsic_sign(polkadot, &params, key, remark, 8, &both, hash, &err), 0);
    assert_int_equal(extrinsic_sign(polkadot, &params, key, remark, 8, &both, hash, &err), 0);
    assert_int_equal(both.len, 2 * one.len);
    assert_memory_equal(both.data, one.data, one.len);
    assert_memory_equal(both.data + one.len, one.data, one.len);
    keypair_free(key);
    buf_done(&both);
    buf_done(&one);
}

static void changed_bytes_do_not_verify(void **state)
{
    (void)state;
    static const char *const schemes[] = {"ed25519", "sr25519", "ecdsa", "ethereum"};
    struct extrinsic_params params = some_params();
    struct buf out = {0};
    for (size_t s = 0; s < ARRAY_LEN(schemes); s++) {
        const struct metadata *md = s == 3 ? evm : polkadot;
        sign(md, &params, schemes[s], &out);
        for (size_t i = 2; i < out.len; i++) {
            struct extrinsic_view view;
            struct err err = {0};
            bool good = false;
            out.data[i] ^= 0x04;
            int rc = extrinsic_decode(md, out.data, out.len, &view, &err);
            if (rc == 0)
                rc = extrinsic_verify(md, &view, &params, &good, &err);
            assert_true(rc != 0 || !good);
            out.data[i] ^= 0x04;
        }
    }
    buf_done(&out);
}

static void cut_bytes_are_refused(void **state)
{
    (void)state;
    struct extrinsic_params params = some_params();
    struct buf out = {0};
    struct extrinsic_view view;
    struct err err = {0};
    sign(polkadot, &params, "sr25519", &out);
    for (size_t len = 0; len < out.len; len++) {
        assert_int_equal(extrinsic_decode(polkadot, out.data, len, &view, &err), ERR_DECODE);
        /* and with a length prefix that agrees */
        struct buf cut = {0};
        scale_put_bytes(&cut, out.data + 2, len > 2 ? len - 2 : 0);
        int rc = extrinsic_decode(polkadot, cut.data, cut.len, &view, &err);
        if (len + sizeof(remark) < out.len + 2)
            assert_int_equal(rc, ERR_DECODE);
        buf_done(&cut);
    }
    buf_done(&out);
}

static int decode_form(const char *body, size_t len, struct extrinsic_view *view, struct err *err)
{
    struct buf bytes = {0};
    scale_put_bytes(&bytes, body, len);
    int rc = extrinsic_decode(polkadot, bytes.data, bytes.len, view, err);
    if (rc == 0 && view->call) /* the view points into bytes that go away */
        view->call = NULL;
    buf_done(&bytes);
    return rc;
}

static void other_forms(void **state)
{
    (void)state;
    struct extrinsic_view view;
    struct err err = {0};
    assert_int_equal(decode_form("\x04\0\0\x04!", 5, &view, &err), 0); /* bare v4 */
    assert_false(view.is_signed);
    assert_int_equal(view.call_len, 4);
    assert_int_equal(decode_form("\x05\0\0\x04!", 5, &view, &err), 0); /* bare v5 */
    assert_false(view.is_signed);
    /* general v5: set 0, immortal, nonce 1, tip 0, mode 0 */
    assert_int_equal(decode_form("\x45\0\0\x04\0\0\0\0\x04!", 10, &view, &err), 0);
    assert_false(view.is_signed);
    assert_int_equal(view.nonce, 1);
    assert_int_equal(view.call_len, 4);
    assert_int_equal(decode_form("\x45\1\0\x04\0\0\0\0\x04!", 10, &view, &err), ERR_DECODE);
    assert_int_equal(decode_form("\x85\0\0\x04!", 5, &view, &err), ERR_DECODE);
    assert_int_equal(decode_form("\x03\0\0\x04!", 5, &view, &err), ERR_DECODE);
    assert_int_equal(decode_form("\xc4\0\0\x04!", 5, &view, &err), ERR_DECODE);
    assert_non_null(strstr(err.text, "form 0xc4 is not supported"));
    assert_int_equal(decode_form("\x04", 1, &view, &err), ERR_DECODE);
    assert_int_equal(decode_form("", 0, &view, &err), ERR_DECODE);
}

/* MultiAddress::Index: the signer is not known, so nothing is verified against it. */
static void signer_that_is_no_account_id(void **state)
{
    (void)state;
    struct extrinsic_params params = some_params();
    struct buf body = {0}, bytes = {0};
    struct extrinsic_view view;
    struct err err = {0};
    bool good = false;
    uint8_t signature[65] = {1};
    buf_put(&body, "\x84\x01", 2); /* Index(Compact<()>): one byte */
    buf_put(&body, signature, 65);
    buf_put(&body, "\0\0\0\0", 4);
    buf_put(&body, remark, sizeof(remark));
    scale_put_bytes(&bytes, body.data, body.len);
    assert_int_equal(extrinsic_decode(polkadot, bytes.data, bytes.len, &view, &err), 0);
    assert_true(view.is_signed);
    assert_int_equal(view.signer_len, 0);
    assert_int_equal(view.call_len, sizeof(remark));
    assert_int_equal(extrinsic_verify(polkadot, &view, &params, &good, &err), ERR_DECODE);
    assert_false(good);
    buf_done(&body);
    buf_done(&bytes);
}

static void eras_at_the_edges(void **state)
{
    (void)state;
    assert_int_equal(era_mortal(1, 7).period, 4);
    assert_int_equal(era_mortal(5, 7).period, 8);
    assert_int_equal(era_mortal(70000, 7).period, 65536);
    /* Above 4096 the birth may be before the anchor, by less than a quantum. */
    for (uint64_t current = 1000000; current < 1000100; current++) {
        struct era era = era_mortal(65536, current);
        uint64_t birth = era_birth(era, current);
        assert_true(birth <= current && current - birth < 16);
        assert_int_equal(birth % 16, 0);
        assert_int_equal(era_death(era, current), birth + 65536);
    }
    /* The birth stays the same for the whole life. */
    struct era era = era_mortal(64, 12345);
    for (uint64_t current = 12345; current < 12345 + 64; current++)
        assert_int_equal(era_birth(era, current), 12345);
    assert_int_equal(era_birth(era, 12345 + 64), 12345 + 64);
    static const uint8_t bad[][2] = {
        {0x10, 0x00}, {0x21, 0x01}, {0xf1, 0xff}}; /* period 2; phases not in 4 */
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct scale_in in = scale_in_of(bad[i], 2);
        assert_false(era_decode(&in, &era));
        assert_true(in.bad);
    }
    struct scale_in in = scale_in_of("\x95", 1);
    assert_false(era_decode(&in, &era));
}

/* Another runtime's extensions may differ behind the nonce: the nonce is known all the same. */
static void nonce_of_what_does_not_decode(void **state)
{
    (void)state;
    struct extrinsic_params params = some_params();
    struct buf out = {0};
    struct extrinsic_view view;
    struct err err = {0};
    uint64_t nonce = 0;
    params.nonce = 4711;
    sign(polkadot, &params, "sr25519", &out);
    assert_true(extrinsic_nonce(polkadot, out.data, out.len, &nonce));
    assert_int_equal(nonce, 4711);
    assert_int_equal(extrinsic_decode(polkadot, out.data, out.len, &view, &err), 0);
    size_t mode = (size_t)(view.extra - out.data) + view.extra_len - 1;
    out.data[mode] = 10;
    assert_int_not_equal(extrinsic_decode(polkadot, out.data, out.len, &view, &err), 0);
    assert_non_null(strstr(err.text, "CheckMetadataHash"));
    nonce = 0;
    assert_true(extrinsic_nonce(polkadot, out.data, out.len, &nonce));
    assert_int_equal(nonce, 4711);
    nonce = 7;
    for (size_t len = 0; len < mode - 2; len++) { /* cut before the nonce, with its prefix right */
        struct buf cut = {0};
        scale_put_bytes(&cut, out.data + 2, len > 2 ? len - 2 : 0);
        bool known = extrinsic_nonce(polkadot, cut.data, cut.len, &nonce);
        assert_true(!known || len + 4 > mode);
        buf_done(&cut);
    }
    buf_done(&out);
}

static bool verifies(const struct metadata *md, const struct buf *bytes, struct err *err,
                     int *ret_rc)
{
    struct extrinsic_params facts = some_params();
    struct extrinsic_view view;
    bool good = false;
    assert_int_equal(extrinsic_decode(md, bytes->data, bytes->len, &view, err), 0);
    *ret_rc = extrinsic_verify(md, &view, &facts, &good, err);
    return good;
}

/* Mode 1 of CheckMetadataHash, which wallets sign: the mode is in the extrinsic, the hash is signed
 * as Some. (That the hash is right: chain_digest.) */
static void a_metadata_hash_that_a_wallet_signed(void **state)
{
    (void)state;
    static const struct metadata_token dot = {"DOT", 10}, other = {"DOT", 12};
    struct metadata *md = vectors_metadata("v15-polkadot");
    struct metadata *without = vectors_metadata("v14-substrate-contracts-node");
    struct extrinsic_params params = some_params();
    struct buf out = {0}, payload = {0};
    struct extrinsic_view view;
    struct err err = {0};
    uint8_t digest[32];
    int rc = 0;
    params.metadata_hash = true;
    assert_true(extrinsic_has_metadata_hash(md) && !extrinsic_has_metadata_hash(without));
    assert_int_equal(extrinsic_metadata_hash(md, &err), ERR_EXTENSION);
    assert_non_null(strstr(err.text, "chain.token_symbol"));
    assert_int_equal(extrinsic_payload(md, &params, remark, sizeof(remark), &payload, &err),
                     ERR_EXTENSION);
    extrinsic_set_token(md, &dot);
    assert_int_equal(extrinsic_metadata_hash(md, &err), 0);
    assert_int_equal(metadata_digest(md, &dot, digest, &err), 0);
    assert_int_equal(extrinsic_payload(md, &params, remark, sizeof(remark), &payload, &err), 0);
    assert_int_equal(payload.data[payload.len - 33], 1); /* Some; it is the last extension */
    assert_memory_equal(payload.data + payload.len - 32, digest, 32);
    sign(md, &params, "sr25519", &out);
    assert_int_equal(extrinsic_decode(md, out.data, out.len, &view, &err), 0);
    assert_true(view.metadata_hash);
    assert_int_equal(view.extra[view.extra_len - 1], 1);
    assert_true(verifies(md, &out, &err, &rc));
    extrinsic_set_token(md, &other);
    assert_false(verifies(md, &out, &err, &rc));
    assert_int_equal(rc, 0);
    extrinsic_set_token(md, NULL);
    assert_false(verifies(md, &out, &err, &rc));
    assert_int_equal(rc, ERR_EXTENSION);
    params.metadata_hash = false;
    sign(md, &params, "sr25519", &out);
    assert_int_equal(extrinsic_decode(md, out.data, out.len, &view, &err), 0);
    assert_false(view.metadata_hash);
    assert_true(verifies(md, &out, &err, &rc)); /* mode 0 needs no token */
    extrinsic_set_token(without, &dot);
    assert_int_equal(extrinsic_metadata_hash(without, &err), ERR_EXTENSION);
    assert_non_null(strstr(err.text, "no signed extension CheckMetadataHash"));
    extrinsic_set_token(polkadot, &dot);
    assert_int_equal(extrinsic_metadata_hash(polkadot, &err), ERR_METADATA);
    assert_non_null(strstr(err.text, "V15"));
    metadata_free(without);
    buf_done(&out);
    buf_done(&payload);
    metadata_free(md);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nonce_of_what_does_not_decode),
        cmocka_unit_test(a_metadata_hash_that_a_wallet_signed),
        cmocka_unit_test(keys_of_the_other_style),
        cmocka_unit_test(facts_that_do_not_fit),
        cmocka_unit_test(immortal),
        cmocka_unit_test(appended),
        cmocka_unit_test(changed_bytes_do_not_verify),
        cmocka_unit_test(cut_bytes_are_refused),
        cmocka_unit_test(other_forms),
        cmocka_unit_test(signer_that_is_no_account_id),
        cmocka_unit_test(eras_at_the_edges),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
