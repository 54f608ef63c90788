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

static void tips_of_u64(void **state)
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
static void fees_of_u64(void **state)
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

static void v16_without_set_0(void **state)
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

/* ---- extensions that are not known ---- */

struct added {
    const char *name;
    uint32_t type, additional;
};

/* The type of polkadot's metadata that is of this role and kind. */
static uint32_t some_type(const struct metadata *md, enum type_role role, enum type_kind kind,
                          int prim)
{
    for (uint32_t i = 0; i < md->type_count; i++)
        if (md->types[i].role == role && md->types[i].kind == kind &&
            (prim < 0 || md->types[i].prim == prim))
            return i;
    fail_msg("there is no such type");
    return 0;
}

/* Polkadot's runtime with these extensions before its own. */
static struct metadata *with_extensions(const struct added *list, size_t count)
{
    static const char first[] = "CheckNonZeroSender";
    struct buf blob = {0}, more = {0};
    vectors_metadata_bytes("v14-polkadot", &blob);
    uint8_t *at = NULL, *next = blob.data; /* the last place: a type has the name too */
    while ((next = memmem(next, (size_t)(blob.data + blob.len - next), first, strlen(first))))
        at = next++;
    at -= 2; /* its length, and the number of extensions */
    assert_int_equal(*at, 10 << 2);
    buf_put(&more, blob.data, (size_t)(at - blob.data));
    scale_put_compact(&more, 10 + count);
    for (size_t i = 0; i < count; i++) {
        scale_put_str(&more, list[i].name);
        scale_put_compact(&more, list[i].type);
        scale_put_compact(&more, list[i].additional);
    }
    buf_put(&more, at + 1, (size_t)(blob.data + blob.len - at - 1));
    buf_done(&blob);
    return parsed(&more);
}

enum { PEOPLE = 7 };

/* As of people-next: one enum, Options, one without bytes, a bool. */
static struct metadata *people(void)
{
    struct metadata *md = vectors_metadata("v14-polkadot");
    uint32_t option = some_type(md, ROLE_OPTION, TYPE_VARIANT, -1),
             boolean = some_type(md, ROLE_NONE, TYPE_PRIMITIVE, PRIM_BOOL),
             unit = md->extensions[0].additional,
             variant = some_type(md, ROLE_MULTI_ADDRESS, TYPE_VARIANT, -1);
    metadata_free(md);
    const struct added list[PEOPLE] = {
        {"VerifyMultiSignature", variant, unit}, {"AsPerson", option, unit},
        {"ScoreAsParticipant", option, unit},    {"AsMember", option, unit},
        {"AuthorizeCall", unit, unit},           {"RestrictOrigins", boolean, unit},
        {"PeopleLiteAuth", option, unit},
    };
    return with_extensions(list, PEOPLE);
}

/* MultiAddress::Address20 of zeros stands for an enum's value. */
static const uint8_t enum_bytes[21] = {4}, bool_bytes[] = {1};

static void configure(struct metadata *md)
{
    const struct extrinsic_extension list[] = {
        {.name = "RestrictOrigins", .explicit_part = {.data = (uint8_t *)bool_bytes, .len = 1}},
        {.name = "NotOfThisChain", .explicit_part = {.data = (uint8_t *)bool_bytes, .len = 1}},
        {.name = "VerifyMultiSignature",
         .explicit_part = {.data = (uint8_t *)enum_bytes, .len = sizeof(enum_bytes)}},
    };
    extrinsic_configure(md, list, ARRAY_LEN(list));
}

static void unknown_ones_are_named_at_once(void **state)
{
    (void)state;
    struct metadata *md = people();
    struct extrinsic_params p = {.era = era_mortal(64, 1000)};
    struct buf out = {0};
    struct err err = {0};
    assert_int_equal(extrinsic_supported(md, &err), ERR_EXTENSION);
    assert_string_equal(err.text,
                        "unknown signed extensions VerifyMultiSignature and RestrictOrigins: give "
                        "their bytes in chain.extensions of the configuration");
    assert_int_equal(extrinsic_payload(md, &p, remark, sizeof(remark), &out, &err), ERR_EXTENSION);
    assert_int_equal(extrinsic_verifiable(md, &err), 0);
    extrinsic_extensions_text(md, &out);
    assert_string_equal(buf_str(&out),
                        "AsPerson, ScoreAsParticipant, AsMember and PeopleLiteAuth are None");
    buf_done(&out);
    metadata_free(md);
}

static void options_are_none_and_others_configured(void **state)
{
    (void)state;
    struct metadata *md = people(), *plain = people();
    struct extrinsic_params p = {.nonce = 3, .tip = 9, .era = era_mortal(64, 1000)};
    struct keypair *key = vectors_key("sr25519");
    struct extrinsic_view view;
    struct buf out = {0}, text = {0}, want = {0};
    struct err err = {0};
    uint8_t hash[32];
    bool good = false;
    configure(md);
    assert_int_equal(extrinsic_supported(md, &err), 0);
    assert_int_equal(extrinsic_sign(md, &p, key, remark, sizeof(remark), &out, hash, &err), 0);
    assert_int_equal(extrinsic_decode(md, out.data, out.len, &view, &err), 0);
    /* the enum, three Nones, the bool, a None; then polkadot's own */
    buf_put(&want, enum_bytes, sizeof(enum_bytes));
    buf_put(&want, "\0\0\0\1\0", 5);
    assert_true(view.extra_len > want.len);
    assert_memory_equal(view.extra, want.data, want.len);
    assert_int_equal(view.nonce, 3);
    /* without the configuration it cannot be signed, but read and verified */
    assert_int_equal(extrinsic_decode(plain, out.data, out.len, &view, &err), 0);
    assert_int_equal(extrinsic_verify(plain, &view, &p, &good, &err), 0);
    assert_true(good);
    extrinsic_extensions_text(md, &text);
    assert_non_null(strstr(buf_str(&text), "are None; VerifyMultiSignature is 0x04000"));
    assert_non_null(strstr(buf_str(&text), "; RestrictOrigins is 0x01"));
    buf_done(&text);
    buf_done(&want);
    buf_done(&out);
    keypair_free(key);
    metadata_free(plain);
    metadata_free(md);
}

static void bytes_that_do_not_fit(void **state)
{
    (void)state;
    struct metadata *md = people();
    struct err err = {0};
    static const uint8_t two[] = {1, 1};
    const struct extrinsic_extension bad = {.name = "RestrictOrigins",
                                            .explicit_part = {.data = (uint8_t *)two, .len = 2}};
    configure(md);
    extrinsic_configure(md, &bad, 1);
    assert_int_equal(extrinsic_supported(md, &err), ERR_EXTENSION);
    assert_non_null(strstr(err.text, "chain.extensions do not fit"));
    assert_non_null(strstr(err.text, "RestrictOrigins"));
    metadata_free(md);
}

/* What is signed and not in the extrinsic nobody can guess. */
static void unknown_implicit_bytes(void **state)
{
    (void)state;
    struct metadata *base = vectors_metadata("v14-polkadot");
    const struct added hidden = {"CheckSecret", base->extensions[0].additional,
                                 some_type(base, ROLE_NONE, TYPE_PRIMITIVE, PRIM_BOOL)};
    struct metadata *md = with_extensions(&hidden, 1);
    struct extrinsic_params p = {.era = era_mortal(64, 1000)};
    struct buf with = {0}, without = {0};
    struct err err = {0};
    const struct extrinsic_extension list = {
        .name = "CheckSecret", .implicit_part = {.data = (uint8_t *)bool_bytes, .len = 1}};
    assert_int_equal(extrinsic_verifiable(md, &err), ERR_EXTENSION);
    assert_non_null(strstr(err.text, "CheckSecret"));
    assert_int_equal(extrinsic_supported(md, &err), ERR_EXTENSION);
    extrinsic_configure(md, &list, 1);
    assert_int_equal(extrinsic_supported(md, &err), 0);
    assert_int_equal(extrinsic_payload(md, &p, remark, sizeof(remark), &with, &err), 0);
    assert_int_equal(extrinsic_payload(base, &p, remark, sizeof(remark), &without, &err), 0);
    assert_int_equal(with.len, without.len + 1);
    buf_done(&with);
    buf_done(&without);
    metadata_free(md);
    metadata_free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_ones_are_named_at_once),
        cmocka_unit_test(options_are_none_and_others_configured),
        cmocka_unit_test(bytes_that_do_not_fit),
        cmocka_unit_test(unknown_implicit_bytes),
        cmocka_unit_test(fees_of_u64),
        cmocka_unit_test(tips_of_u64),
        cmocka_unit_test(v16_without_set_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
