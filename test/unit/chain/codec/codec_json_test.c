/* JSON to call bytes is what another implementation makes of the same call, and a mistake in the
 * JSON is named with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/codec/codec.h"
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
    static const char dest[] =
        "{\"dest\": \"14E5nqKAp3oAJcmzgZhUD2RcptBeUBScxKHgJKU4HPNcKVf3\", \"value\": ";
    char args[256];
    (void)state;
    assert_refused("remark", "[]", "'remark' is not of the form Pallet.call");
    assert_refused("Sistem.remark", "[]", "the chain has no such pallet: 'Sistem'; near: System");
    assert_refused("Qqqq.remark", "[]",
                   "no such pallet: 'Qqqq'; txrelay encode --list shows what there is");
    assert_refused("Historical.remark", "[]", "the pallet Historical has no calls");
    assert_refused("System.remarc", "[]",
                   "the pallet System has no such call: 'remarc'; near: remark");
    assert_refused("Balances.transferKeepAlive", "[]",
                   "'transferKeepAlive'; near: transfer_keep_alive");
    assert_refused("System.remark", "[",
                   "System.remark: the arguments: it is not JSON: line 1, column 1");
    assert_refused("System.remark", "{\"remark\": \"0x\", \"remark\": \"0x\"}", "not JSON");
    assert_refused("System.remark", "{}", "System.remark: the field 'remark' (bytes) is missing");
    assert_refused("System.remark", "[\"0x\", 1]",
                   "System.remark: 1 values are wanted, 2 are given");
    assert_refused("System.remark", "\"0x\"",
                   "an object {\"remark\": ...} or an array of 1 values is wanted");
    assert_refused("System.remark", "{\"remark\": \"0x\", \"more\": 1}",
                   "there is no field 'more'");
    assert_refused("System.remark", "{\"remark\": \"0x123\"}",
                   "System.remark.remark: bytes is wanted, not \"0x123\"");
    assert_refused(
        "System.remark", "{\"remark\": [1, 256]}",
        "System.remark.remark[1]: u8 is wanted, not 256: it does not fit; 255 is the largest");
    assert_refused("Balances.transfer_keep_alive", "[\"nobody\", 1]",
                   "MultiAddress is wanted, not \"nobody\"");
    assert_refused("Balances.transfer_keep_alive",
                   "[\"5FHneW46xGXgs5mUiveU4sbTyGBzmstUspZC92UhjJM694ty\", 1]",
                   "prefix 42, this chain's is 0; the same key here: "
                   "14E5nqKAp3oAJcmzgZhUD2RcptBeUBScxKHgJKU4HPNcKVf3");
    assert_refused("Proxy.proxy", "[\"0x1234\", null, {}]",
                   "MultiAddress is wanted, not \"0x1234\"");
    snprintf(args, sizeof(args), "%s-1}", dest);
    assert_refused("Balances.transfer_keep_alive", args,
                   ".value: u128 is wanted, not -1: it is below 0");
    snprintf(args, sizeof(args), "%s1.5}", dest);
    assert_refused("Balances.transfer_keep_alive", args, ".value: u128 is wanted, not 1.5");
    snprintf(args, sizeof(args), "%s\"340282366920938463463374607431768211456\"}", dest);
    assert_refused("Balances.transfer_keep_alive", args, "it does not fit");
    snprintf(args, sizeof(args), "%s\"12x\"}", dest);
    assert_refused("Balances.transfer_keep_alive", args, "not \"12x\"");
    snprintf(args, sizeof(args), "%s99999999999999999999}", dest);
    assert_refused("Balances.transfer_keep_alive", args,
                   "give numbers above 9223372036854775807 as text");
    assert_refused("Staking.set_payee", "{\"payee\": \"Nowhere\"}",
                   "RewardDestination has no variant 'Nowhere'");
    assert_refused("Staking.set_payee", "{\"payee\": \"Account\"}",
                   "the variant Account has fields");
    assert_refused("Staking.set_payee", "{\"payee\": {\"Account\": 7}}",
                   ".payee.Account: AccountId32 is wanted, not 7");
    assert_refused("Staking.set_payee", "{\"payee\": 7}",
                   "RewardDestination is wanted, not 7: give \"Variant\" or {\"Variant\": fields}");
    assert_refused("Utility.batch", "[[{\"System\": {\"remark\": [true]}}]]",
                   "Utility.batch.calls[0].System.remark.remark: bytes is wanted, not true");
    assert_refused("Utility.batch",
                   "[[{\"pallet\": \"System\", \"call\": \"remark\", \"args\": [true]}]]",
                   "Utility.batch.calls[0].System.remark.remark: bytes is wanted, not true");
    assert_refused(
        "Utility.batch", "[[{\"pallet\": \"System\", \"call\": \"remarc\"}]]",
        "Utility.batch.calls[0]: the pallet System has no such call: 'remarc'; near: remark");
    assert_refused("Utility.batch", "[[{\"pallet\": \"System\"}]]",
                   "give {\"pallet\": name, \"call\": name");
    assert_refused("Utility.batch",
                   "[[{\"pallet\": \"System\", \"call\": \"remark\", \"arg\": []}]]",
                   "give {\"pallet\": name, \"call\": name, \"args\"");
    assert_refused("Utility.batch", "[[\"0x0000\"]]",
                   "RuntimeCall is wanted, not \"0x0000\": System.remark.remark: byte 2 of 2");
    assert_refused("Utility.batch", "[[\"0x000\"]]", "0x is followed by an even count");
    assert_refused("Utility.batch", "[[5]]",
                   "Utility.batch.calls[0]: RuntimeCall is wanted, not 5");
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

static int batch_in_batch(int shown, int hidden, struct err *err)
{
    struct buf json = {0}, out = {0};
    for (int i = 0; i < shown; i++)
        buf_puts(&json, "[[{\"pallet\":\"Utility\",\"call\":\"batch\",\"args\":");
    buf_puts(&json, "[[\"0x");
    for (int i = 0; i < hidden; i++)
        buf_puts(&json, "1a0004");
    buf_puts(&json, "000000\"]]");
    for (int i = 0; i < shown; i++)
        buf_puts(&json, "}]]");
    int rc = codec_call_from_json(polkadot, "Utility.batch", buf_str(&json), &out, err);
    assert_int_equal(out.len > 0, rc == 0);
    buf_done(&json);
    buf_done(&out);
    return rc;
}

/* Depth that is hidden in bytes counts as well: what is made must be taken by everybody. */
static void hidden_depth_is_found(void **state)
{
    struct err err = {0};
    (void)state;
    assert_int_equal(batch_in_batch(8, 0, &err), 0);
    assert_int_equal(batch_in_batch(0, 10, &err), 0);
    assert_int_equal(batch_in_batch(8, 10, &err), ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "nested deeper than 64 levels"));
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
    assert_call_refused("\x00\x00\x14hell", 7,
                        "System.remark.remark: byte 3 of 7: 5 bytes needed, 4 left");
    assert_call_refused("\x00\x00\x01", 3,
                        "System.remark.remark: byte 2 of 3: not a compact length");
    assert_call_refused("\x00\x00\x00\x00\x00", 5,
                        "System.remark ends at byte 3 of 5: 2 bytes are left over");
    /* Balances.transfer_all to Address20, keep_alive = 2 */
    assert_call_refused("\x05\x04\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02", 24,
                        "Balances.transfer_all.keep_alive: byte 23 of 24: a bool is 0 or 1, not 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_identical),  cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(depth_is_bounded),     cmocka_unit_test(hidden_depth_is_found),
        cmocka_unit_test(bad_bytes_are_placed),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
