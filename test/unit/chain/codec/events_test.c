/* Events say what became of each extrinsic: a real block's, and written ones for every runtime
 * generation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "chain/codec/events.h"
#include "chain/codec/scale.h"
#include "chain/keys/extrinsic_sign.h"
#include "support_vectors.h"

static const char *const runtimes[] = {"v14-polkadot",  "v15-polkadot",  "v15-asset-hub-polkadot",
                                       "v14-substrate", "v15-substrate", "v16-substrate"};

/* ---- a real block ---- */

struct block {
    json_t *json;
    struct metadata *md;
    struct buf events;
};

static void load_block(struct block *b)
{
    memset(b, 0, sizeof(*b));
    b->json = vectors_load("block.json");
    b->md = vectors_metadata(json_string_value(json_object_get(b->json, "metadata")));
    vectors_hex(b->json, "events", &b->events);
}

static void drop_block(struct block *b)
{
    json_decref(b->json);
    metadata_free(b->md);
    buf_done(&b->events);
}

static void a_real_block(void **state)
{
    (void)state;
    static const struct {
        enum dispatch_outcome outcome;
        bool inner;
        const char *error;
    } want[12] = {
        [0] = {DISPATCH_OK, false, ""},
        [1] = {DISPATCH_OK, false, ""},
        [2] = {DISPATCH_OK, false, ""},
        [3] = {DISPATCH_FAILED, false, "Balances.InsufficientBalance"},
        [4] = {DISPATCH_FAILED, true, "Utility.BatchInterrupted[2]: Balances.InsufficientBalance"},
        [5] = {DISPATCH_FAILED, false, "Balances.InsufficientBalance"},
        [6] = {DISPATCH_OK, false, ""},
        [7] = {DISPATCH_FAILED, false, "BadOrigin"},
        [8] = {DISPATCH_OK, false, ""},
        [9] = {DISPATCH_FAILED, true, "Proxy.ProxyExecuted: Balances.InsufficientBalance"},
        [10] = {DISPATCH_OK, false, ""},
        [11] = {DISPATCH_FAILED, false, "Balances.InsufficientBalance"},
    };
    struct block b;
    struct dispatch_result results[12];
    struct err err = {0};
    load_block(&b);
    assert_int_equal(events_decode(b.md, b.events.data, b.events.len, results, 12, &err), 0);
    for (size_t i = 0; i < 12; i++) {
        assert_int_equal(results[i].outcome, want[i].outcome);
        assert_int_equal(results[i].inner, want[i].inner);
        assert_string_equal(results[i].error, want[i].error);
        assert_false(results[i].has_fee); /* this runtime is older than TransactionFeePaid */
    }
    drop_block(&b);
}

static void a_real_blocks_extrinsics(void **state)
{
    (void)state;
    struct block b;
    struct extrinsic_params params = {0};
    struct err err = {0};
    struct buf bytes = {0};
    size_t i, is_signed = 0;
    json_t *item;
    load_block(&b);
    params.spec_version = (uint32_t)json_integer_value(json_object_get(b.json, "spec_version"));
    params.transaction_version =
        (uint32_t)json_integer_value(json_object_get(b.json, "transaction_version"));
    const char *genesis = json_string_value(json_object_get(b.json, "genesis"));
    assert_true(hex_decode_fixed(genesis, strlen(genesis), params.genesis, 32));
    json_array_foreach(json_object_get(b.json, "extrinsics"), i, item)
    {
        struct extrinsic_view view;
        bool good = false;
        buf_clear(&bytes);
        assert_true(hex_decode(json_string_value(item), json_string_length(item), &bytes));
        assert_int_equal(extrinsic_decode(b.md, bytes.data, bytes.len, &view, &err), 0);
        assert_int_equal(view.is_signed, i >= 2); /* the inherents come first */
        if (!view.is_signed)
            continue;
        assert_int_equal(view.era.period, 0);
        assert_int_equal(extrinsic_verify(b.md, &view, &params, &good, &err), 0);
        assert_true(good);
        is_signed++;
    }
    assert_int_equal(is_signed, 10);
    buf_done(&bytes);
    drop_block(&b);
}

/* ---- written events ---- */

struct writer {
    const struct metadata *md;
    struct buf body;
    uint32_t count;
};

static bool find_event(const struct metadata *md, const char *pallet, const char *event,
                       uint8_t out[2])
{
    for (unsigned p = 0; p < 256; p++) {
        const char *name = metadata_pallet_name(md, (uint8_t)p);
        for (unsigned e = 0; name && strcmp(name, pallet) == 0 && e < 256; e++) {
            const char *event_name = metadata_event_name(md, (uint8_t)p, (uint8_t)e);
            if (event_name && strcmp(event_name, event) == 0) {
                out[0] = (uint8_t)p;
                out[1] = (uint8_t)e;
                return true;
            }
        }
    }
    return false;
}

static bool find_error(const struct metadata *md, const char *pallet, const char *error,
                       uint8_t out[2])
{
    for (unsigned p = 0; p < 256; p++) {
        const char *name = metadata_pallet_name(md, (uint8_t)p);
        for (unsigned e = 0; name && strcmp(name, pallet) == 0 && e < 256; e++) {
            const char *error_name = metadata_error_name(md, (uint8_t)p, (uint8_t)e);
            if (error_name && strcmp(error_name, error) == 0) {
                out[0] = (uint8_t)p;
                out[1] = (uint8_t)e;
                return true;
            }
        }
    }
    return false;
}

/* A record up to its fields. */
static void begin(struct writer *w, int64_t extrinsic, const char *pallet, const char *event)
{
    uint8_t index[2];
    if (!find_event(w->md, pallet, event, index))
        fail_msg("no event %s.%s", pallet, event);
    if (extrinsic >= 0) {
        buf_put_u8(&w->body, 0);
        scale_put_u32(&w->body, (uint32_t)extrinsic);
    } else {
        buf_put_u8(&w->body, 1); /* finalization */
    }
    buf_put(&w->body, index, 2);
    w->count++;
}

static void end(struct writer *w, unsigned topics)
{
    uint8_t topic[32] = {1};
    scale_put_compact(&w->body, topics);
    for (unsigned i = 0; i < topics; i++)
        buf_put(&w->body, topic, 32);
}

static void put_dispatch_info(struct writer *w)
{
    scale_put_compact(&w->body, 1000000000);
    scale_put_compact(&w->body, 3000);
    buf_put(&w->body, "\0\0", 2); /* normal, pays */
}

static void put_module_error(struct writer *w, const char *pallet, const char *error)
{
    uint8_t index[2];
    if (!find_error(w->md, pallet, error, index))
        fail_msg("no error %s.%s", pallet, error);
    buf_put_u8(&w->body, 3);
    buf_put(&w->body, index, 2);
    buf_put(&w->body, "\0\0\0", 3);
}

static void put_success(struct writer *w, uint32_t extrinsic)
{
    begin(w, extrinsic, "System", "ExtrinsicSuccess");
    put_dispatch_info(w);
    end(w, 0);
}

static void put_fee(struct writer *w, uint32_t extrinsic, u128 fee)
{
    uint8_t who[32] = {7};
    begin(w, extrinsic, "TransactionPayment", "TransactionFeePaid");
    buf_put(&w->body, who, 32);
    scale_put_u128(&w->body, fee);
    scale_put_u128(&w->body, 1);
    end(w, 0);
}

static void finish(struct writer *w, struct buf *out)
{
    buf_clear(out);
    scale_put_compact(out, w->count);
    buf_put(out, w->body.data, w->body.len);
    buf_done(&w->body);
}

/* Raw DispatchError bytes in ExtrinsicFailed give this text. */
static void assert_error(const struct metadata *md, const void *error, size_t len, const char *want)
{
    struct writer w = {.md = md};
    struct buf bytes = {0};
    struct dispatch_result result;
    struct err err = {0};
    begin(&w, 0, "System", "ExtrinsicFailed");
    buf_put(&w.body, error, len);
    put_dispatch_info(&w);
    end(&w, 0);
    finish(&w, &bytes);
    assert_int_equal(events_decode(md, bytes.data, bytes.len, &result, 1, &err), 0);
    assert_int_equal(result.outcome, DISPATCH_FAILED);
    assert_false(result.inner);
    assert_string_equal(result.error, want);

    buf_done(&bytes);
}

static void every_kind_of_error(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++) {
        struct metadata *md = vectors_metadata(runtimes[i]);
        uint8_t module[6] = {3};
        assert_true(find_error(md, "Balances", "InsufficientBalance", module + 1));
        assert_error(md, module, 6, "Balances.InsufficientBalance");
        assert_error(md, "\x00", 1, "Other");
        assert_error(md, "\x02", 1, "BadOrigin");
        assert_error(md, "\x07\x00", 2, "Token.FundsUnavailable");
        assert_error(md, "\x08\x01", 2, "Arithmetic.Overflow");
        assert_error(md, "\x09\x00", 2, "Transactional.LimitReached");
        assert_error(md, "\x0a", 1, "Exhausted");
        assert_null(metadata_pallet_name(md, 247));
        assert_error(md, "\x03\xf7\x05\0\0\0", 6, "pallet 247.error 5");
        assert_error(md, "\x03\x00\xfe\0\0\0", 6, "System.error 254");
        metadata_free(md);
    }
}

static void fees_and_outcomes_by_extrinsic(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++) {
        struct writer w = {.md = vectors_metadata(runtimes[i])};
        struct buf bytes = {0};
        struct dispatch_result r[4];
        struct err err = {0};
        put_success(&w, 0);
        put_fee(&w, 1, (u128)5 << 70);
        put_success(&w, 1);
        put_fee(&w, 2, 77);
        begin(&w, 2, "System", "ExtrinsicFailed");
        put_module_error(&w, "Balances", "ExistentialDeposit");
        put_dispatch_info(&w);
        end(&w, 2);
        put_success(&w, 9); /* beyond the caller's array */
        begin(&w, -1, "System", "CodeUpdated");
        end(&w, 0);
        finish(&w, &bytes);
        assert_int_equal(events_decode(w.md, bytes.data, bytes.len, r, 4, &err), 0);
        assert_int_equal(r[0].outcome, DISPATCH_OK);
        assert_false(r[0].has_fee);
        assert_int_equal(r[1].outcome, DISPATCH_OK);
        assert_true(r[1].has_fee && r[1].fee == (u128)5 << 70);
        assert_int_equal(r[2].outcome, DISPATCH_FAILED);
        assert_string_equal(r[2].error, "Balances.ExistentialDeposit");
        assert_true(r[2].has_fee && r[2].fee == 77);
        assert_int_equal(r[3].outcome, DISPATCH_NONE);
        buf_done(&bytes);
        metadata_free((struct metadata *)(uintptr_t)w.md);
    }
}

static void put_result(struct writer *w, bool good)
{
    buf_put_u8(&w->body, good ? 0 : 1);
    if (!good)
        buf_put(&w->body, "\x07\x00", 2); /* Token.FundsUnavailable */
}

static void put_multisig(struct writer *w, uint32_t extrinsic, bool good)
{
    uint8_t id[32] = {9};
    begin(w, extrinsic, "Multisig", "MultisigExecuted");
    buf_put(&w->body, id, 32);
    scale_put_u32(&w->body, 100); /* timepoint */
    scale_put_u32(&w->body, 2);
    buf_put(&w->body, id, 32);
    buf_put(&w->body, id, 32);
    put_result(w, good);
    end(w, 0);
}

static void put_simple_result(struct writer *w, uint32_t extrinsic, const char *pallet,
                              const char *event, bool good)
{
    begin(w, extrinsic, pallet, event);
    put_result(w, good);
    end(w, 0);
}

static void assert_inner(const struct dispatch_result *r, const char *want)
{
    assert_int_equal(r->outcome, DISPATCH_FAILED);
    assert_true(r->inner);
    assert_string_equal(r->error, want);
}

static void inner_failures(void **state)
{
    (void)state;
    struct writer w = {.md = vectors_metadata("v14-substrate")}; /* has all these pallets */
    struct buf bytes = {0};
    struct dispatch_result r[12];
    struct err err = {0};
    begin(&w, 0, "Utility", "BatchInterrupted");
    scale_put_u32(&w.body, 2);
    put_module_error(&w, "Balances", "InsufficientBalance");
    end(&w, 0);
    begin(&w, 1, "Utility", "ItemFailed");
    buf_put_u8(&w.body, 2);
    end(&w, 0);
    put_simple_result(&w, 2, "Utility", "DispatchedAs", false);
    put_simple_result(&w, 3, "Proxy", "ProxyExecuted", false);
    put_multisig(&w, 4, false);
    put_simple_result(&w, 5, "Sudo", "Sudid", false);
    put_simple_result(&w, 6, "Sudo", "SudoAsDone", false);
    put_simple_result(&w, 7, "Proxy", "ProxyExecuted", true);
    put_multisig(&w, 8, true);
    put_simple_result(&w, 9, "Proxy", "ProxyExecuted", false); /* cause first, wrapper after it */
    put_simple_result(&w, 9, "Sudo", "Sudid", false);
    put_simple_result(&w, 10, "Sudo", "Sudid", false); /* and then all is rolled back */
    for (uint32_t i = 0; i < 10; i++)
        put_success(&w, i);
    begin(&w, 10, "System", "ExtrinsicFailed");
    buf_put_u8(&w.body, 2);
    put_dispatch_info(&w);
    end(&w, 0);
    finish(&w, &bytes);
    assert_int_equal(events_decode(w.md, bytes.data, bytes.len, r, 12, &err), 0);
    assert_inner(&r[0], "Utility.BatchInterrupted[2]: Balances.InsufficientBalance");
    assert_inner(&r[1], "Utility.ItemFailed: BadOrigin");
    assert_inner(&r[2], "Utility.DispatchedAs: Token.FundsUnavailable");
    assert_inner(&r[3], "Proxy.ProxyExecuted: Token.FundsUnavailable");
    assert_inner(&r[4], "Multisig.MultisigExecuted: Token.FundsUnavailable");
    assert_inner(&r[5], "Sudo.Sudid: Token.FundsUnavailable");
    assert_inner(&r[6], "Sudo.SudoAsDone: Token.FundsUnavailable");
    assert_int_equal(r[7].outcome, DISPATCH_OK);
    assert_int_equal(r[8].outcome, DISPATCH_OK);
    assert_inner(&r[9], "Proxy.ProxyExecuted: Token.FundsUnavailable");
    assert_int_equal(r[10].outcome, DISPATCH_FAILED);
    assert_false(r[10].inner);
    assert_string_equal(r[10].error, "BadOrigin");
    assert_int_equal(r[11].outcome, DISPATCH_NONE);
    buf_done(&bytes);
    metadata_free((struct metadata *)(uintptr_t)w.md);
}

static void cut_events_are_refused(void **state)
{
    (void)state;
    struct block b;
    struct dispatch_result results[12];
    struct err err = {0};
    load_block(&b);
    for (size_t len = 0; len < b.events.len; len++) {
        uint8_t *exact = malloc(len + 1); /* so that a sanitizer sees a read behind the end */
        assert_non_null(exact);
        memcpy(exact, b.events.data, len);
        assert_int_equal(events_decode(b.md, exact, len, results, 12, &err), ERR_DECODE);
        free(exact);
    }
    buf_put_u8(&b.events, 0);
    assert_int_equal(events_decode(b.md, b.events.data, b.events.len, results, 12, &err),
                     ERR_DECODE);
    assert_non_null(strstr(err.text, "left over"));
    drop_block(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_real_block),        cmocka_unit_test(a_real_blocks_extrinsics),
        cmocka_unit_test(every_kind_of_error), cmocka_unit_test(fees_and_outcomes_by_extrinsic),
        cmocka_unit_test(inner_failures),      cmocka_unit_test(cut_events_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
