/* Metadata of real runtimes answers questions; anything malformed, cut, unknown or built to hang is
 * refused with a text that says what is wrong. */
#define _GNU_SOURCE /* memmem */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/rng.h"
#include "chain/codec/codec.h"
#include "chain/codec/scale.h"
#include "metadata_internal.h"
#include "support_vectors.h"

static const struct {
    const char *name;
    unsigned version;
    size_t extensions;
} runtimes[] = {
    {"v14-substrate", 14, 9},        {"v15-substrate", 15, 10},
    {"v16-substrate", 16, 11},       {"v14-polkadot", 14, 10},
    {"v15-polkadot", 15, 10},        {"v14-kusama", 14, 9},
    {"v15-kusama", 15, 9},           {"v15-asset-hub-polkadot", 15, 9},
    {"v15-asset-hub-kusama", 15, 9}, {"sh-parachain", 14, 10},
    {"sh-solochain-evm", 14, 9},     {"v14-substrate-contracts-node", 14, 8},
    {"v14-statemine", 14, 8},
};

static void every_runtime_parses(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(runtimes); i++) {
        struct metadata *md = vectors_metadata(runtimes[i].name);
        struct err err = {0};
        uint8_t index[2];
        assert_int_equal(metadata_version(md), runtimes[i].version);
        assert_int_equal(metadata_extrinsic_version(md), 4);
        assert_int_equal(metadata_extension_count(md), runtimes[i].extensions);
        assert_int_equal(extrinsic_supported(md, &err), 0);
        assert_string_equal(metadata_pallet_name(md, 0), "System");
        assert_true(metadata_find_call(md, "System", "remark", index));
        assert_string_equal(metadata_call_name(md, index[0], index[1]), "remark");
        assert_string_equal(metadata_event_name(md, 0, 0), "ExtrinsicSuccess");
        assert_string_equal(metadata_event_name(md, 0, 1), "ExtrinsicFailed");
        assert_int_not_equal(metadata_type_event_record(md), UINT32_MAX);
        metadata_free(md);
    }
}

static void names_and_constants(void **state)
{
    (void)state;
    struct metadata *md = vectors_metadata("v15-polkadot");
    uint8_t index[2];
    size_t len;
    assert_true(metadata_find_call(md, "Balances", "transfer_keep_alive", index));
    assert_int_equal(index[0], 5);
    assert_int_equal(index[1], 3);
    assert_false(metadata_find_call(md, "Balances", "transfer_keep", index));
    assert_false(metadata_find_call(md, "Balance", "transfer_keep_alive", index));
    assert_string_equal(metadata_error_name(md, 5, 2), "InsufficientBalance");
    assert_null(metadata_pallet_name(md, 250));
    assert_null(metadata_call_name(md, 250, 0));
    assert_null(metadata_call_name(md, 5, 250));
    assert_null(metadata_event_name(md, 5, 250));
    const uint8_t *prefix = metadata_constant(md, "System", "SS58Prefix", &len);
    assert_non_null(prefix);
    assert_int_equal(len, 2);
    assert_int_equal(prefix[0], 0);
    const uint8_t *count = metadata_constant(md, "System", "BlockHashCount", &len);
    assert_non_null(count);
    assert_int_equal(len, 4);
    assert_memory_equal(count, "\x00\x10\x00\x00", 4);
    assert_null(metadata_constant(md, "System", "NoSuchThing", &len));
    assert_null(metadata_constant(md, "NoSuchPallet", "SS58Prefix", &len));
    assert_string_equal(metadata_extension_at(md, 0)->name, "CheckNonZeroSender");
    assert_string_equal(metadata_extension_at(md, 9)->name, "CheckMetadataHash");
    metadata_free(md);
}

/* AccountInfo of today's runtimes: nonce and three counters of 4 bytes, then free, reserved,
 * frozen, flags. */
static void free_balance_of_every_runtime(void **state)
{
    (void)state;
    struct buf info = {0};
    u128 want = ((u128)1 << 100) + 5, got;
    for (unsigned i = 0; i < 4; i++)
        scale_put_u32(&info, 1000 + i);
    scale_put_u128(&info, want);
    for (unsigned i = 0; i < 3; i++)
        scale_put_u128(&info, i);
    for (size_t i = 0; i < ARRAY_LEN(runtimes); i++) {
        struct metadata *md = vectors_metadata(runtimes[i].name);
        got = 0;
        assert_true(metadata_account_has_free(md));
        assert_true(metadata_account_free(md, info.data, info.len, &got));
        assert_true(got == want);
        assert_false(metadata_account_free(md, info.data, info.len - 1, &got));
        assert_false(metadata_account_free(md, info.data, 4, &got));
        metadata_free(md);
    }
    buf_done(&info);
}

/* A chain without System.Account, or whose accounts are no struct with data.free: nothing is known,
 * nothing is read. */
static void no_free_balance(void **state)
{
    (void)state;
    struct metadata *md = vectors_metadata("v15-polkadot");
    static const uint8_t info[80];
    const uint32_t others[] = {TYPE_NONE, md->type_events, md->type_call, md->type_dispatch_error};
    u128 got;
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        md->account = (struct account_format){0};
        md->type_account = others[i];
        metadata__resolve_account(md);
        assert_false(metadata_account_has_free(md));
        assert_false(metadata_account_free(md, info, sizeof(info), &got));
    }
    metadata_free(md);
}

static void assert_unusable(const struct buf *bytes, const char *part)
{
    struct metadata *md = NULL;
    struct err err = {0};
    int rc = metadata_parse(bytes->data, bytes->len, &md, &err);
    if (rc == 0 || !strstr(err.text, part))
        fprintf(stderr, "got '%s', wanted '%s' in it\n", err.text, part);
    assert_int_equal(rc, ERR_METADATA);
    assert_null(md);
    assert_non_null(strstr(err.text, part));
}

/* All three envelopes hold the same; others are refused. */
static void envelopes(void **state)
{
    (void)state;
    struct buf plain = {0}, wrapped = {0};
    struct metadata *md = NULL;
    struct err err = {0};
    vectors_metadata_bytes("v14-statemine", &plain);
    scale_put_bytes(&wrapped, plain.data, plain.len);
    assert_int_equal(metadata_parse(wrapped.data, wrapped.len, &md, &err), 0);
    md = metadata_free(md);
    buf_clear(&wrapped);
    buf_put_u8(&wrapped, 1);
    scale_put_bytes(&wrapped, plain.data, plain.len);
    assert_int_equal(metadata_parse(wrapped.data, wrapped.len, &md, &err), 0);
    md = metadata_free(md);
    wrapped.len--;
    assert_unusable(&wrapped, "not runtime metadata");
    buf_clear(&wrapped);
    assert_unusable(&wrapped, "not runtime metadata");
    buf_put_u8(&wrapped, 0);
    assert_unusable(&wrapped, "does not offer");
    plain.data[4] = 13;
    assert_unusable(&plain, "metadata V13 is not supported: V14, V15 and V16 are");
    plain.data[4] = 14;
    buf_put_u8(&plain, 0);
    assert_unusable(&plain, "1 bytes are left over");
    buf_done(&plain);
    buf_done(&wrapped);
}

static void cut_metadata_is_refused(void **state)
{
    (void)state;
    struct buf bytes = {0};
    static const char *const names[] = {"v14-statemine", "v15-polkadot", "v16-substrate"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        vectors_metadata_bytes(names[i], &bytes);
        uint8_t *magic = memmem(bytes.data, bytes.len, "meta", 4);
        assert_non_null(magic);
        size_t whole = bytes.len - (size_t)(magic - bytes.data);
        for (size_t len = 5; len < whole; len += len < 2000 ? 1 : 997) {
            struct metadata *md = NULL;
            struct err err = {0};
            assert_int_equal(metadata_parse(magic, len, &md, &err), ERR_METADATA);
        }
        struct metadata *md = NULL;
        struct err err = {0};
        assert_int_equal(metadata_parse(magic, whole - 1, &md, &err), ERR_METADATA);
        assert_int_equal(metadata_parse(magic, whole, &md, &err), 0);
        metadata_free(md);
    }
    buf_done(&bytes);
}

/* Damage anywhere: refused, or still usable without harm. */
static void damaged_metadata_is_answered(void **state)
{
    (void)state;
    struct buf bytes = {0}, damaged = {0};
    struct rng rng = {.state = 5};
    static const uint8_t call[] = {0, 0, 0x14, 'H', 'e', 'l', 'l', 'o'};
    vectors_metadata_bytes("v14-substrate-contracts-node", &bytes);
    for (int round = 0; round < 2000; round++) {
        struct metadata *md = NULL;
        struct err err = {0};
        struct buf json = {0};
        buf_clear(&damaged);
        buf_put(&damaged, bytes.data, bytes.len);
        for (uint64_t n = rng_between(&rng, 1, 4); n > 0; n--)
            damaged.data[rng_below(&rng, bytes.len)] = (uint8_t)rng_next(&rng);
        if (metadata_parse(damaged.data, damaged.len, &md, &err) != 0) {
            assert_null(md);
            continue;
        }
        (void)codec_call_to_json(md, call, sizeof(call), &json, &err);
        buf_done(&json);
        metadata_free(md);
    }
    buf_done(&bytes);
    buf_done(&damaged);
}

/* The outer call names another type for a pallet's calls than the pallet does: what is encoded by
 * one does not decode by the other. A node may say so, and it is an error. */
static void contradictions_are_refused(void **state)
{
    (void)state;
    static const char outer[] = "\x18System\x04\0";
    static const size_t outer_len = sizeof(outer) - 1;
    struct buf bytes = {0};
    uint8_t *type = NULL;
    int contradict = 0;
    vectors_metadata_bytes("v14-substrate-contracts-node", &bytes);
    for (size_t i = 0; i + outer_len < bytes.len; i++) /* the last one: events are before calls */
        if (memcmp(bytes.data + i, outer, outer_len) == 0)
            type = bytes.data + i + outer_len;
    assert_non_null(type);
    uint8_t right = *type;
    for (unsigned id = 0; id < 64; id++) {
        struct metadata *md = NULL;
        struct err err = {0};
        struct buf call = {0};
        *type = (uint8_t)(id << 2);
        if (metadata_parse(bytes.data, bytes.len, &md, &err) != 0)
            continue;
        int rc = codec_call_from_json(md, "System.remark", "[\"named\"]", &call, &err);
        assert_true(rc == 0 || *type != right);
        contradict += rc == ERR_METADATA && strstr(err.text, "contradicts itself");
        buf_done(&call);
        metadata_free(md);
    }
    assert_in_range(contradict, 1, 64);
    buf_done(&bytes);
}

/* ---- extensions under other names ---- */

/* Rename the last thing of this name, which is the entry in the list of extensions. */
static struct metadata *renamed(const char *from, const char *to)
{
    struct buf bytes = {0};
    struct metadata *md = NULL;
    struct err err = {0};
    uint8_t *last = NULL;
    vectors_metadata_bytes("v14-polkadot", &bytes);
    assert_int_equal(strlen(from), strlen(to));
    for (size_t i = 0; i + strlen(from) <= bytes.len; i++)
        if (memcmp(bytes.data + i, from, strlen(from)) == 0)
            last = bytes.data + i;
    assert_non_null(last);
    memcpy(last, to, strlen(to));
    assert_int_equal(metadata_parse(bytes.data, bytes.len, &md, &err), 0);
    buf_done(&bytes);
    return md;
}

static void assert_extension(const char *from, const char *to, const char *part)
{
    struct metadata *md = renamed(from, to);
    struct err err = {0};
    int rc = extrinsic_supported(md, &err);
    assert_int_equal(rc, part ? ERR_EXTENSION : 0);
    if (part && !strstr(err.text, part))
        fprintf(stderr, "got '%s', wanted '%s' in it\n", err.text, part);
    assert_true(!part || strstr(err.text, part));
    struct extrinsic_params params = {0};
    struct buf payload = {0};
    rc = extrinsic_payload(md, &params, (const uint8_t *)"\0\0\0", 3, &payload, &err);
    assert_int_equal(rc, part ? ERR_EXTENSION : 0);
    buf_done(&payload);
    metadata_free(md);
}

static void unknown_extensions(void **state)
{
    (void)state;
    assert_extension("CheckWeight", "CheckHeight", NULL); /* unknown, but carries nothing */
    assert_extension("PrevalidateAttests", "PrevalidateBttests", NULL);
    assert_extension("CheckNonce", "CheckNonse",
                     "unknown signed extension CheckNonse: give its bytes");
    assert_extension("CheckGenesis", "CheckGemesis", "unknown signed extension CheckGemesis: give");
    assert_extension("CheckMetadataHash", "CheckMetadataHaxx", "extension CheckMetadataHaxx");
    assert_extension("CheckMortality", "CheckTxVersion", "CheckTxVersion has not the form");
}

/* ---- built metadata: V14 with the given types and nothing else ---- */

struct built {
    struct buf types;
    uint32_t count;
};

static void put_head(struct built *b, const char *name, uint8_t kind)
{
    scale_put_compact(&b->types, b->count++);
    scale_put_compact(&b->types, name ? 1 : 0);
    if (name)
        scale_put_str(&b->types, name);
    scale_put_compact(&b->types, 0); /* parameters */
    buf_put_u8(&b->types, kind);
}

static void put_field(struct built *b, uint32_t type)
{
    buf_put_u8(&b->types, 0);
    scale_put_compact(&b->types, type);
    buf_put_u8(&b->types, 0);
    scale_put_compact(&b->types, 0);
}

static void put_struct(struct built *b, size_t fields, const uint32_t *types)
{
    put_head(b, "S", 0);
    scale_put_compact(&b->types, fields);
    for (size_t i = 0; i < fields; i++)
        put_field(b, types[i]);
    scale_put_compact(&b->types, 0); /* docs */
}

static void put_sequence(struct built *b, uint32_t inner)
{
    put_head(b, NULL, 2);
    scale_put_compact(&b->types, inner);
    scale_put_compact(&b->types, 0);
}

static void put_array(struct built *b, uint32_t len, uint32_t inner)
{
    put_head(b, NULL, 3);
    scale_put_u32(&b->types, len);
    scale_put_compact(&b->types, inner);
    scale_put_compact(&b->types, 0);
}

static void put_empty_tuple(struct built *b)
{
    put_head(b, NULL, 4);
    scale_put_compact(&b->types, 0);
    scale_put_compact(&b->types, 0);
}

static void put_compact_of(struct built *b, uint32_t inner)
{
    put_head(b, NULL, 6);
    scale_put_compact(&b->types, inner);
    scale_put_compact(&b->types, 0);
}

/* An enum of one variant, and the extrinsic whose parameters all are that enum: the least that
 * parses. */
static void build(struct built *b, struct buf *out)
{
    uint32_t call = b->count;
    put_head(b, "Call", 1);
    scale_put_compact(&b->types, 1);
    scale_put_str(&b->types, "Only");
    scale_put_compact(&b->types, 0);
    buf_put_u8(&b->types, 0);
    scale_put_compact(&b->types, 0);
    scale_put_compact(&b->types, 0);
    scale_put_compact(&b->types, b->count++);
    scale_put_compact(&b->types, 0);
    scale_put_compact(&b->types, 3);
    static const char *const params[] = {"Address", "Call", "Signature"};
    for (size_t i = 0; i < ARRAY_LEN(params); i++) {
        scale_put_str(&b->types, params[i]);
        buf_put_u8(&b->types, 1);
        scale_put_compact(&b->types, call);
    }
    buf_put(&b->types, "\0\0\0", 3); /* a struct without fields or docs */
    buf_clear(out);
    buf_put(out, "meta\x0e", 5);
    scale_put_compact(out, b->count);
    buf_put(out, b->types.data, b->types.len);
    scale_put_compact(out, 0); /* pallets */
    scale_put_compact(out, b->count - 1);
    buf_put_u8(out, 4);
    scale_put_compact(out, 0); /* extensions */
    scale_put_compact(out, 0);
    buf_done(&b->types);
    b->count = 0;
}

static void impossible_types_are_refused(void **state)
{
    (void)state;
    struct built b = {0};
    struct buf bytes = {0};
    put_struct(&b, 1, (const uint32_t[]){0});
    build(&b, &bytes);
    assert_unusable(&bytes, "type 0 contains itself");
    put_struct(&b, 1, (const uint32_t[]){1});
    put_array(&b, 3, 0);
    build(&b, &bytes);
    assert_unusable(&bytes, "contains itself");
    put_struct(&b, 1, (const uint32_t[]){99});
    build(&b, &bytes);
    assert_unusable(&bytes, "a field refers to type 99 of 3");
    put_sequence(&b, 99);
    build(&b, &bytes);
    assert_unusable(&bytes, "type 0 refers to a type that does not exist");
    for (uint32_t i = 0; i < 1000; i++)
        put_struct(&b, 1, (const uint32_t[]){i + 1});
    put_empty_tuple(&b);
    build(&b, &bytes);
    assert_unusable(&bytes, "nested deeper");
    b.count = 7;
    put_empty_tuple(&b);
    build(&b, &bytes);
    assert_unusable(&bytes, "type ids are not in sequence");
    buf_done(&bytes);
}

/* Types whose values cost nothing, without end, or with a length that means billions. */
static void nothing_hangs(void **state)
{
    (void)state;
    enum { UNIT, UNITS, HUGE, HUGER, SELF, PAIR, COMPACT, COMPACTS };
    struct built b = {0};
    struct buf bytes = {0}, json = {0};
    struct metadata *md = NULL;
    struct err err = {0};
    struct buf value = {0};
    put_empty_tuple(&b);
    put_sequence(&b, UNIT);
    put_array(&b, UINT32_MAX, UNIT);
    put_array(&b, UINT32_MAX, HUGE);
    put_sequence(&b, SELF);
    put_struct(&b, 2, (const uint32_t[]){HUGER, UNITS});
    put_compact_of(&b, UNIT);
    put_array(&b, UINT32_MAX, COMPACT);
    build(&b, &bytes);
    assert_int_equal(metadata_parse(bytes.data, bytes.len, &md, &err), 0);

    struct scale_in in = scale_in_of("", 0);
    assert_int_equal(codec_skip(md, HUGER, &in, &err), 0);
    assert_int_equal(codec_to_json(md, HUGER, &in, &json, &err), ERR_DECODE);
    assert_non_null(strstr(err.text, "as JSON"));
    assert_int_equal(json.len, 0);

    scale_put_compact(&value, UINT32_MAX);
    in = scale_in_of(value.data, value.len);
    assert_int_equal(codec_skip(md, UNITS, &in, &err), 0);
    assert_int_equal(scale_left(&in), 0);
    in = scale_in_of(value.data, value.len);
    assert_int_equal(codec_skip(md, PAIR, &in, &err), 0);

    buf_clear(&value);
    for (int i = 0; i < 1000; i++)
        buf_put_u8(&value, 1 << 2); /* a sequence of one sequence of one ... */
    in = scale_in_of(value.data, value.len);
    assert_int_equal(codec_skip(md, SELF, &in, &err), ERR_DECODE);
    assert_non_null(strstr(err.text, "nested deeper than 64 levels"));
    in = scale_in_of(value.data, value.len);
    assert_int_equal(codec_skip(md, COMPACTS, &in, &err), 0);
    assert_int_equal(scale_left(&in), value.len);
    buf_done(&bytes);
    buf_done(&json);
    buf_done(&value);
    metadata_free(md);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_runtime_parses),
        cmocka_unit_test(names_and_constants),
        cmocka_unit_test(free_balance_of_every_runtime),
        cmocka_unit_test(no_free_balance),
        cmocka_unit_test(envelopes),
        cmocka_unit_test(cut_metadata_is_refused),
        cmocka_unit_test(damaged_metadata_is_answered),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(unknown_extensions),
        cmocka_unit_test(impossible_types_are_refused),
        cmocka_unit_test(nothing_hangs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
