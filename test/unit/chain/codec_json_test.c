/* JSON to call bytes is what another implementation makes of the same call, and a mistake in the JSON is
 * named with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/codec.h"
#include "support_vectors.h"

static struct metadata *polkadot;

static int set_up(void **state)
{
    (void)state;
    polkadot = vectors_metadata("v15-polkadot");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    polkadot = metadata_free(polkadot);
    return 0;
}

static void calls_are_identical(void **state)
{
    (void)state;
    json_t *calls = vectors_load("calls.json");
    struct metadata *evm = vectors_metadata("sh-solochain-evm");
    size_t i;
    json_t *item;
    json_array_foreach(calls, i, item)
    {
        const char *metadata = json_string_value(json_object_get(item, "metadata"));
        const char *name = json_string_value(json_object_get(item, "call"));
        const struct metadata *md = strcmp(metadata, "v15-polkadot") == 0 ? polkadot : evm;
        char *args = json_dumps(json_object_get(item, "args"), 0);
        struct buf got = {0}, want = {0};
        struct err err = {0};
        vectors_hex(item, "bytes", &want);
        int rc = codec_call_from_json(md, name, args, &got, &err);
        if (rc != 0)
            fprintf(stderr, "%s\n", err.text);
        assert_int_equal(rc, 0);
        assert_int_equal(got.len, want.len);
        assert_memory_equal(got.data, want.data, want.len);
        assert_int_equal(codec_check_call(md, got.data, got.len, &err), 0);
        free(args);
        buf_done(&got);
        buf_done(&want);
    }
    assert_int_equal(i, 14);
    metadata_free(evm);
    json_decref(calls);
}

/* The call is refused with ERR_ARGUMENT, nothing is appended, and the text holds `part`. */
static void assert_refused(const char *call, const char *args, const char *part)
{
    struct buf out = {0};
    struct err err = {0};
    buf_puts(&out, "before");
    assert_int_equal(codec_call_from_json(polkadot, call, args, &out, &err), ERR_ARGUMENT);
    assert_int_equal(out.len, 6);
    if (!strstr(err.text, part))
        fprintf(stderr, "got '%s', wanted '%s' in it\n", err.text, part);
    assert_non_null(strstr(err.text, part));
    buf_done(&out);
}

static void mistakes_are_named(void **state)
{
    static const char dest[] = "{\"dest\": \"14E5nqKAp3oAJcmzgZhUD2RcptBeUBScxKHgJKU4HPNcKVf3\", \"value\": ";
    char args[256];
    (void)state;
    assert_refused("remark", "[]", "'remark' is not of the form Pallet.call");
    assert_refused("Sistem.remark", "[]", "no such pallet");
    assert_refused("System.remarc", "[]", "no such call");
    assert_refused("System.remark", "[", "not JSON: line 1, column 1");
    assert_refused("System.remark", "{\"remark\": \"0x\", \"remark\": \"0x\"}", "not JSON");
    assert_refused("System.remark", "{}", "System.remark: the field 'remark' is missing");
    assert_refused("System.remark", "[\"0x\", 1]", "System.remark: 1 values are wanted, 2 are given");
    assert_refused("System.remark", "\"0x\"", "an object or an array is wanted, not the text '0x'");
    assert_refused("System.remark", "{\"remark\": \"0x\", \"more\": 1}", "there is no field 'more'");
    assert_refused("System.remark", "{\"remark\": \"Hello\"}", "System.remark.remark: bytes as 0x");
    assert_refused("System.remark", "{\"remark\": \"0x123\"}", "System.remark.remark: bytes as 0x");
    assert_refused("System.remark", "{\"remark\": [1, 256]}",
                   "System.remark.remark[1]: the number does not fit u8");
    assert_refused("Balances.transfer_keep_alive", "[\"nobody\", 1]", "MultiAddress has no variant 'nobody'");
    assert_refused("Proxy.proxy", "[\"0x1234\", null, {}]", "has no variant '0x1234'");
    snprintf(args, sizeof(args), "%s-1}", dest);
    assert_refused("Balances.transfer_keep_alive", args, ".value: the number does not fit u128");
    snprintf(args, sizeof(args), "%s1.5}", dest);
    assert_refused("Balances.transfer_keep_alive", args, ".value: a whole number");
    snprintf(args, sizeof(args), "%s\"340282366920938463463374607431768211456\"}", dest);
    assert_refused("Balances.transfer_keep_alive", args, ".value: a whole number");
    snprintf(args, sizeof(args), "%s\"12x\"}", dest);
    assert_refused("Balances.transfer_keep_alive", args, "not the text '12x'");
    snprintf(args, sizeof(args), "%s99999999999999999999}", dest);
    assert_refused("Balances.transfer_keep_alive", args, "too big integer");
    assert_refused("Staking.set_payee", "{\"payee\": \"Nowhere\"}",
                   "RewardDestination has no variant 'Nowhere'");
    assert_refused("Staking.set_payee", "{\"payee\": \"Account\"}", "the variant Account has fields");
    assert_refused("Staking.set_payee", "{\"payee\": {\"Account\": 7}}",
                   ".payee.Account: an account of 32 bytes");
    assert_refused("Staking.set_payee", "{\"payee\": 7}",
                   "a variant as text or {\"Variant\": fields} is wanted");
    assert_refused("Utility.batch", "[[{\"System\": {\"remark\": [true]}}]]",
                   "Utility.batch.calls[0].System.remark.remark: bytes");
}

/* Two ways of deep: JSON that never ends, and bytes that never end. */
static void depth_is_bounded(void **state)
{
    (void)state;
    struct buf json = {0}, bytes = {0}, out = {0};
    struct err err = {0};
    uint8_t index[2];
    enum { NESTED = 200 };
    assert_true(metadata_find_call(polkadot, "Utility", "batch", index));
    for (int i = 0; i < NESTED; i++) {
        buf_puts(&json, "[[{\"Utility\":{\"batch\":");
        buf_put(&bytes, index, 2);
        buf_put_u8(&bytes, 1 << 2);
    }
    buf_puts(&json, "[[]]");
    for (int i = 0; i < NESTED; i++)
        buf_puts(&json, "}}]]");
    buf_put(&bytes, "\0\0\0", 3);
    assert_int_equal(codec_call_from_json(polkadot, "Utility.batch", buf_str(&json), &out, &err),
                     ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "nested deeper than 64 levels"));
    assert_int_equal(codec_check_call(polkadot, bytes.data, bytes.len, &err), ERR_DECODE);
    assert_non_null(strstr(err.text, "nested deeper than 64 levels"));
    buf_done(&json);
    buf_done(&bytes);
    buf_done(&out);
}

static void assert_call_refused(const char *hex_less, size_t len, const char *part)
{
    struct err err = {0};
    assert_int_equal(codec_check_call(polkadot, (const uint8_t *)hex_less, len, &err), ERR_DECODE);
    if (!strstr(err.text, part))
        fprintf(stderr, "got '%s', wanted '%s' in it\n", err.text, part);
    assert_non_null(strstr(err.text, part));
}

static void bad_bytes_are_placed(void **state)
{
    (void)state;
    assert_call_refused("", 0, "byte 0 of 0: 1 bytes needed, 0 left");
    assert_call_refused("\xfe", 1, "byte 0 of 1: RuntimeCall has no variant 254");
    assert_call_refused("\x00\xfe", 2, "System: byte 1 of 2: Call has no variant 254");
    assert_call_refused("\x00\x00\x14hell", 7, "System.remark.remark: byte 3 of 7: 5 bytes needed, 4 left");
    assert_call_refused("\x00\x00\x01", 3, "System.remark.remark: byte 2 of 3: not a compact length");
    assert_call_refused("\x00\x00\x00\x00\x00", 5,
                        "System.remark ends at byte 3 of 5: 2 bytes are left over");
    /* Balances.transfer_all to Address20, keep_alive = 2 */
    assert_call_refused("\x05\x04\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02", 24,
                        "Balances.transfer_all.keep_alive: byte 23 of 24: a bool is 0 or 1, not 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_identical),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(bad_bytes_are_placed),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
