/* Every reference extrinsic, made by another implementation, is made again byte for byte, decodes,
 * verifies, and its call goes through JSON and back unchanged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "chain/codec/codec.h"
#include "chain/codec/hash.h"
#include "chain/codec/scale.h"
#include "support_vectors.h"

struct reference {
    const json_t *vectors, *runtime;
    const struct metadata *md;
    struct extrinsic_params params;
};

static void assert_bytes(const struct buf *got, const struct buf *want)
{
    assert_int_equal(got->len, want->len);
    assert_memory_equal(got->data, want->data, want->len);
}

typedef void check_fn(const struct reference *ref, const json_t *item);

static size_t each_case(check_fn *check)
{
    json_t *vectors = vectors_load("vectors.json");
    size_t i, k, count = 0;
    json_t *runtime, *item;
    json_array_foreach(json_object_get(vectors, "runtimes"), i, runtime)
    {
        struct metadata *md =
            vectors_metadata(json_string_value(json_object_get(runtime, "metadata")));
        struct reference ref = {vectors, runtime, md, {0}};
        vectors_params(vectors, runtime, &ref.params);
        json_array_foreach(json_object_get(runtime, "cases"), k, item)
        {
            check(&ref, item);
            count++;
        }
        metadata_free(md);
    }
    json_decref(vectors);
    return count;
}

static void check_payload(const struct reference *ref, const json_t *item)
{
    struct buf call = {0}, payload = {0}, want = {0};
    struct err err = {0};
    vectors_hex(item, "call", &call);
    vectors_hex(item, "payload", &want);
    assert_int_equal(extrinsic_payload(ref->md, &ref->params, call.data, call.len, &payload, &err),
                     0);
    assert_bytes(&payload, &want);
    buf_done(&call);
    buf_done(&payload);
    buf_done(&want);
}

static void payloads_are_identical(void **state)
{
    (void)state;
    assert_int_equal(each_case(check_payload), 68);
}

static void verify_own(const struct reference *ref, const struct buf *bytes)
{
    struct extrinsic_view view;
    struct err err = {0};
    bool good = false;
    assert_int_equal(extrinsic_decode(ref->md, bytes->data, bytes->len, &view, &err), 0);
    assert_int_equal(extrinsic_verify(ref->md, &view, &ref->params, &good, &err), 0);
    assert_true(good);
}

static void check_signed(const struct reference *ref, const json_t *item)
{
    const char *scheme = json_string_value(json_object_get(item, "key"));
    struct keypair *key = vectors_key(scheme);
    struct buf call = {0}, bytes = {0}, want = {0};
    struct err err = {0};
    uint8_t hash[32];
    vectors_hex(item, "call", &call);
    assert_int_equal(
        extrinsic_sign(ref->md, &ref->params, key, call.data, call.len, &bytes, hash, &err), 0);
    vectors_hex(item, "extrinsic", &want);
    assert_int_equal(bytes.len, want.len);
    if (strcmp(scheme, "sr25519") != 0) { /* whose signatures are randomised */
        assert_bytes(&bytes, &want);
        vectors_hex(item, "hash", &want);
        assert_memory_equal(hash, want.data, 32);
    }
    verify_own(ref, &bytes);
    buf_done(&call);
    buf_done(&bytes);
    buf_done(&want);
    keypair_free(key);
}

static void extrinsics_are_identical(void **state)
{
    (void)state;
    assert_int_equal(each_case(check_signed), 68);
}

static void assert_signer(const struct reference *ref, const json_t *item,
                          const struct extrinsic_view *view)
{
    const char *scheme = json_string_value(json_object_get(item, "key"));
    struct buf id = {0};
    vectors_hex(json_object_get(json_object_get(ref->vectors, "keys"), scheme), "account_id", &id);
    assert_string_equal(key_scheme_name(view->scheme), scheme);
    assert_int_equal(view->signer_len, id.len);
    assert_memory_equal(view->signer, id.data, id.len);
    buf_done(&id);
}

static void check_decoded(const struct reference *ref, const json_t *item)
{
    struct buf bytes = {0}, call = {0}, sig = {0};
    struct extrinsic_view view;
    struct err err = {0};
    vectors_hex(item, "extrinsic", &bytes);
    vectors_hex(item, "call", &call);
    vectors_hex(item, "signature", &sig);
    assert_int_equal(extrinsic_decode(ref->md, bytes.data, bytes.len, &view, &err), 0);
    assert_true(view.is_signed);
    assert_signer(ref, item, &view);
    assert_memory_equal(view.signature, sig.data, sig.len);
    assert_int_equal(view.nonce, ref->params.nonce);
    assert_true(view.tip == ref->params.tip);
    assert_int_equal(view.era.period, ref->params.era.period);
    assert_int_equal(view.era.phase, ref->params.era.phase);
    assert_int_equal(view.call_len, call.len);
    assert_memory_equal(view.call, call.data, call.len);
    buf_done(&bytes);
    buf_done(&call);
    buf_done(&sig);
}

static void references_decode(void **state)
{
    (void)state;
    assert_int_equal(each_case(check_decoded), 68);
}

static bool verifies(const struct reference *ref, const struct extrinsic_params *params,
                     const json_t *item)
{
    struct buf bytes = {0};
    struct extrinsic_view view;
    struct err err = {0};
    bool good = false;
    vectors_hex(item, "extrinsic", &bytes);
    assert_int_equal(extrinsic_decode(ref->md, bytes.data, bytes.len, &view, &err), 0);
    assert_int_equal(extrinsic_verify(ref->md, &view, params, &good, &err), 0);
    buf_done(&bytes);
    return good;
}

/* The signature covers every fact: any of them wrong, and it does not verify. */
static void check_verified(const struct reference *ref, const json_t *item)
{
    struct extrinsic_params params = ref->params;
    assert_true(verifies(ref, &params, item));
    params.spec_version++;
    assert_false(verifies(ref, &params, item));
    params = ref->params;
    params.transaction_version++;
    assert_false(verifies(ref, &params, item));
    params = ref->params;
    params.genesis[31] ^= 1;
    assert_false(verifies(ref, &params, item));
    params = ref->params;
    params.era_block_hash[0] ^= 1;
    assert_false(verifies(ref, &params, item));
}

static void references_verify(void **state)
{
    (void)state;
    assert_int_equal(each_case(check_verified), 68);
}

/* {"System":{"remark":{..}}} to "System.remark" and the arguments. */
static void call_again(const struct metadata *md, const struct buf *json, struct buf *out)
{
    struct buf copy = {0};
    json_error_t at;
    struct err err = {0};
    char name[128];
    buf_put(&copy, json->data, json->len);
    json_t *call = json_loads(buf_str(&copy), 0, &at);
    assert_non_null(call);
    const char *pallet = json_object_iter_key(json_object_iter(call));
    json_t *inner = json_object_get(call, pallet);
    const char *function = json_object_iter_key(json_object_iter(inner));
    snprintf(name, sizeof(name), "%s.%s", pallet, function);
    char *args = json_dumps(json_object_get(inner, function), 0);
    assert_int_equal(codec_call_from_json(md, name, args, out, &err), 0);
    free(args);
    json_decref(call);
    buf_done(&copy);
}

static void check_call(const struct reference *ref, const json_t *item)
{
    struct buf call = {0}, json = {0}, again = {0};
    struct err err = {0};
    vectors_hex(item, "call", &call);
    assert_int_equal(codec_check_call(ref->md, call.data, call.len, &err), 0);
    assert_int_equal(codec_call_to_json(ref->md, call.data, call.len, &json, &err), 0);
    call_again(ref->md, &json, &again);
    assert_bytes(&again, &call);

    assert_int_equal(codec_check_call(ref->md, call.data, call.len - 1, &err), ERR_DECODE);
    assert_non_null(strstr(err.text, "System.remark"));
    assert_non_null(strstr(err.text, "byte "));
    buf_put_u8(&call, 0);
    assert_int_equal(codec_check_call(ref->md, call.data, call.len, &err), ERR_DECODE);
    assert_non_null(strstr(err.text, "1 bytes are left over"));
    buf_done(&call);
    buf_done(&json);
    buf_done(&again);
}

static void calls_go_through_json(void **state)
{
    (void)state;
    assert_int_equal(each_case(check_call), 68);
}

static void eras_are_identical(void **state)
{
    (void)state;
    json_t *vectors = vectors_load("vectors.json");
    size_t i;
    json_t *item;
    struct buf want = {0};
    json_array_foreach(json_object_get(vectors, "eras"), i, item)
    {
        uint64_t current = (uint64_t)json_integer_value(json_object_get(item, "current"));
        uint32_t period = (uint32_t)json_integer_value(json_object_get(item, "period"));
        struct era era = era_mortal(period, current);
        struct era again;
        uint8_t bytes[2];
        vectors_hex(item, "bytes", &want);
        assert_int_equal(era_encode(era, bytes), want.len);
        assert_memory_equal(bytes, want.data, want.len);
        assert_int_equal(era.period, json_integer_value(json_object_get(item, "rounded")));
        assert_int_equal(era.phase, json_integer_value(json_object_get(item, "phase")));
        assert_int_equal(era_birth(era, current),
                         json_integer_value(json_object_get(item, "birth")));
        assert_int_equal(era_death(era, current),
                         json_integer_value(json_object_get(item, "death")));
        struct scale_in in = scale_in_of(bytes, sizeof(bytes));
        assert_true(era_decode(&in, &again));
        assert_int_equal(again.period, era.period);
        assert_int_equal(again.phase, era.phase);
    }
    assert_int_equal(i, 10);
    buf_done(&want);
    json_decref(vectors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payloads_are_identical), cmocka_unit_test(extrinsics_are_identical),
        cmocka_unit_test(references_decode),      cmocka_unit_test(references_verify),
        cmocka_unit_test(calls_go_through_json),  cmocka_unit_test(eras_are_identical),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
