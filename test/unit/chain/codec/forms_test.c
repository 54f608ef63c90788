/* Chains whose extrinsics have another form than those of the reference vectors. Their metadata is
 * that of a real runtime in which one thing is changed. */
#define _GNU_SOURCE /* memmem */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "chain/codec/codec.h"
#include "chain/codec/events.h"
#include "metadata_internal.h"
#include "support_vectors.h"

static const uint8_t remark[] = {0, 0, 0x14, 'H', 'e', 'l', 'l', 'o'};

/* Replaces the only place that holds these bytes by as many others. */
static void patch(struct buf *blob, const uint8_t *from, const uint8_t *to, size_t len)
{
    uint8_t *at = memmem(blob->data, blob->len, from, len);
    assert_non_null(at);
    size_t behind = (size_t)(at + len - blob->data);
    assert_null(memmem(at + len, blob->len - behind, from, len));
    memcpy(at, to, len);
}

static struct metadata *parsed(struct buf *blob)
{
    struct metadata *md;
    struct err err = {0};
    if (metadata_parse(blob->data, blob->len, &md, &err))
        fail_msg("%s", err.text);
    buf_done(blob);
    return md;
}

/* ---- balances of u64 ---- */

/* Polkadot's runtime with each u128 made a u64, and so its balances, fees and tips. */
static struct metadata *with_u64_balances(void)
{
    static const uint8_t u128_type[] = {0, 0, 5, PRIM_U128, 0}, u64_type[] = {0, 0, 5, PRIM_U64, 0};
    struct buf blob = {0};
    vectors_metadata_bytes("v14-polkadot", &blob);
    patch(&blob, u128_type, u64_type, sizeof(u128_type));
    return parsed(&blob);
}

static void c6_tips_of_u64(void **state)
{
    (void)state;
    struct metadata *md = with_u64_balances();
    struct extrinsic_params p = {.tip = (u128)UINT32_MAX + 1, .era = era_mortal(64, 1000)};
    struct buf payload = {0};
    struct err err = {0};
    assert_true(extrinsic_tip_max(md) == UINT64_MAX);
    assert_int_equal(extrinsic_payload(md, &p, remark, sizeof(remark), &payload, &err), 0);
    p.tip = UINT64_MAX;
    assert_int_equal(extrinsic_payload(md, &p, remark, sizeof(remark), &payload, &err), 0);
    p.tip++;
    assert_int_equal(extrinsic_payload(md, &p, remark, sizeof(remark), &payload, &err),
                     ERR_ARGUMENT);
    buf_done(&payload);
    metadata_free(md);
    md = vectors_metadata("v14-polkadot");
    assert_true(extrinsic_tip_max(md) == ~(u128)0);
    metadata_free(md);
}

/* System.Events with one TransactionFeePaid of extrinsic 0. */
static void c5_fees_of_u64(void **state)
{
    (void)state;
    struct metadata *md = with_u64_balances();
    const struct metadata_pallet *pallet = metadata__pallet_named(md, "TransactionPayment");
    const struct type_variant *paid =
        metadata__variant_named(md, metadata__type(md, pallet->event), "TransactionFeePaid");
    struct dispatch_result result = {0};
    struct buf events = {0};
    struct err err = {0};
    uint8_t who[32] = {0xaa};
    scale_put_compact(&events, 1);
    buf_put_u8(&events, 0); /* phase: ApplyExtrinsic */
    scale_put_u32(&events, 0);
    buf_put_u8(&events, pallet->index);
    buf_put_u8(&events, paid->index);
    buf_put(&events, who, sizeof(who));
    scale_put_u64(&events, 777); /* actual_fee */
    scale_put_u64(&events, 5);   /* tip */
    scale_put_compact(&events, 0);
    assert_int_equal(events_decode(md, events.data, events.len, &result, 1, &err), 0);
    assert_true(result.has_fee && result.fee == 777);
    buf_done(&events);
    metadata_free(md);
}

/* ---- V16 without the extensions of v4 ---- */

static void c7_v16_without_set_0(void **state)
{
    (void)state;
    static const uint8_t set_0[] = {4, 0, 0x2c, 0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40},
                         set_1[] = {4, 1, 0x2c, 0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40};
    struct buf blob = {0}, json = {0};
    struct err err = {0};
    vectors_metadata_bytes("v16-substrate", &blob);
    patch(&blob, set_0, set_1, sizeof(set_0));
    struct metadata *md = parsed(&blob);
    assert_int_equal(codec_call_to_json(md, remark, sizeof(remark), &json, &err), 0);
    assert_non_null(strstr(buf_str(&json), "remark"));
    assert_int_equal(extrinsic_supported(md, &err), ERR_METADATA);
    assert_non_null(strstr(err.text, "no set 0 of transaction extensions"));
    buf_done(&json);
    metadata_free(md);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c5_fees_of_u64),
        cmocka_unit_test(c6_tips_of_u64),
        cmocka_unit_test(c7_v16_without_set_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
