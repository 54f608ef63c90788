/* What devchain says of itself must be true: the relay's own decoder reads its metadata, signs by
 * it, and decodes its blocks' events by it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/check.h"
#include "chain/codec/codec.h"
#include "chain/codec/events.h"
#include "chain/codec/metadata.h"
#include "chain/keys/extrinsic_sign.h"
#include "metadata_build.h"
#include "testlib.h"

static struct metadata *parse(const struct runtime *rt, unsigned version)
{
    struct buf bytes = {0};
    struct metadata *md = NULL;
    struct err err = {0};
    metadata_build(rt, version, &bytes);
    if (metadata_parse(bytes.data, bytes.len, &md, &err))
        fail_msg("%s", err.text);
    buf_done(&bytes);
    return md;
}

static void names_and_extensions(void **state)
{
    (void)state;
    static const char *const EXTENSIONS[] = {
        "CheckNonZeroSender", "CheckSpecVersion", "CheckTxVersion", "CheckGenesis",
        "CheckMortality",     "CheckNonce",       "CheckWeight",    "ChargeTransactionPayment"};
    struct rig *r = rig_new(NULL);
    for (unsigned version = 14; version <= 15; version++) {
        struct metadata *md = parse(&r->core.rt, version);
        uint8_t index[2];
        size_t len;
        assert_int_equal(metadata_version(md), version);
        assert_int_equal(metadata_extrinsic_version(md), 4);
        assert_int_equal(metadata_extension_count(md), ARRAY_LEN(EXTENSIONS));
        for (size_t i = 0; i < ARRAY_LEN(EXTENSIONS); i++)
            assert_string_equal(metadata_extension_at(md, i)->name, EXTENSIONS[i]);
        assert_true(metadata_find_call(md, "System", "remark", index));
        assert_int_equal(index[0] << 8 | index[1], CALL_REMARK);
        assert_true(metadata_find_call(md, "Utility", "force_batch", index));
        assert_int_equal(index[0] << 8 | index[1], CALL_FORCE_BATCH);
        assert_string_equal(metadata_error_name(md, PALLET_BALANCES, 2), "InsufficientBalance");
        assert_memory_equal(metadata_constant(md, "System", "SS58Prefix", &len), "\x2a\0", 2);
        assert_int_equal(extrinsic_supported(md, NULL), 0);
        metadata_free(md);
    }
    rig_free(r);
}

/* Sign by the metadata, with the relay's code; the runtime of devchain must find the signature
 * good. */
static void sign(struct rig *r, const struct metadata *md, uint32_t nonce, const struct buf *call)
{
    struct extrinsic_params params = {
        .nonce = nonce, .tip = 3, .spec_version = 100, .transaction_version = 1};
    struct buf bytes = {0};
    uint8_t hash[32];
    struct err err = {0};
    memcpy(params.genesis, r->core.rt.genesis, 32);
    memcpy(params.era_block_hash, r->core.chain.best->hash, 32);
    params.era = era_mortal(64, r->core.chain.best->number);
    if (extrinsic_sign(md, &params, r->alice, call->data, call->len, &bytes, hash, &err))
        fail_msg("%s", err.text);
    struct diary d = {0};
    assert_int_equal(rig_bytes(r, bytes.data, bytes.len, &d), 0);
    assert_memory_equal(d.hash, hash, 32);
    listener_unwatch(&r->core.listener, &d.watch);
    diary_done(&d);
    buf_done(&bytes);
}

static void one_outcome(struct rig *r, const struct metadata *md, const char *name,
                        const char *args, const char *want_error, bool want_inner)
{
    struct buf call = {0}, events = {0};
    struct err err = {0};
    struct dispatch_result results[2];
    uint32_t nonce = core_next_index(&r->core, rig_id(r->alice));
    if (codec_call_from_json(md, name, args, &call, &err))
        fail_msg("%s", err.text);
    sign(r, md, nonce, &call);
    const struct block *b = rig_block(r);
    assert_int_equal(b->tx_count, 2);
    scale_put_compact(&events, b->event_count);
    buf_put(&events, b->events.data, b->events.len);
    if (events_decode(md, events.data, events.len, results, 2, &err))
        fail_msg("%s: %s", name, err.text);
    assert_int_equal(results[0].outcome, DISPATCH_OK); /* the inherent */
    assert_int_equal(results[1].outcome, want_error ? DISPATCH_FAILED : DISPATCH_OK);
    assert_string_equal(results[1].error, want_error ? want_error : "");
    assert_int_equal(results[1].inner, want_inner);
    assert_true(results[1].has_fee && results[1].fee == runtime_fee(&r->core.rt, b->txs[1]));
    buf_done(&call);
    buf_done(&events);
}

#define BOB "5FHneW46xGXgs5mUiveU4sbTyGBzmstUspZC92UhjJM694ty"
#define PAY                                                                                        \
    "{\"Balances\":{\"transfer_keep_alive\":{\"dest\":{\"Id\":\"" BOB                              \
    "\"},\"value\":\"999000000000000000\"}}}"

static void outcomes_by_the_metadata(void **state)
{
    (void)state;
    for (unsigned version = 14; version <= 15; version++) {
        struct rig *r = rig_new(NULL);
        struct metadata *md = parse(&r->core.rt, version);
        rig_block(r);
        one_outcome(r, md, "System.remark", "{\"remark\":\"0x1234\"}", NULL, false);
        one_outcome(r, md, "System.remark_with_event", "{\"remark\":\"0x1234\"}", NULL, false);
        one_outcome(r, md, "Balances.transfer_keep_alive",
                    "{\"dest\":\"" BOB "\",\"value\":\"5000000000000\"}", NULL, false);
        one_outcome(r, md, "Balances.transfer_keep_alive",
                    "{\"dest\":\"" BOB "\",\"value\":\"999000000000000000\"}",
                    "Balances.InsufficientBalance", false);
        one_outcome(
            r, md, "Balances.transfer_allow_death",
            "{\"dest\":\"5C4hrfjw9DjXZTzV3MwzrrAr9P1MJhSrvWGWqi1eSuyUpnhM\",\"value\":\"1\"}",
            "Token.BelowMinimum", false);
        one_outcome(r, md, "Utility.batch",
                    "{\"calls\":[{\"System\":{\"remark\":{\"remark\":\"0x01\"}}}," PAY "]}",
                    "Utility.BatchInterrupted[1]: Balances.InsufficientBalance", true);
        one_outcome(r, md, "Utility.batch_all",
                    "{\"calls\":[{\"System\":{\"remark\":{\"remark\":\"0x01\"}}}," PAY "]}",
                    "Balances.InsufficientBalance", false);
        one_outcome(r, md, "Sudo.sudo",
                    "{\"call\":{\"System\":{\"remark\":{\"remark\":\"0x01\"}}}}",
                    "Sudo.RequireSudo", false);
        metadata_free(md);
        rig_free(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_extensions),
        cmocka_unit_test(outcomes_by_the_metadata),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
