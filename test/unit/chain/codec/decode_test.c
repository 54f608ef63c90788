/* Calls in calls, whole extrinsics, and the list of what can be called, on real runtimes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "chain/codec/codec.h"
#include "chain/codec/ss58.h"
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

/* ---- calls in calls ---- */

#define BOB "14E5nqKAp3oAJcmzgZhUD2RcptBeUBScxKHgJKU4HPNcKVf3"

static void three_forms_of_a_call_are_one(void **state)
{
    static const char readable[] =
        "{\"pallet\":\"Utility\",\"call\":\"batch\",\"args\":{\"calls\":[{\"pallet\":\"System\","
        "\"call\":\"remark\",\"args\":{\"remark\":\"hello\"}},{\"pallet\":\"Balances\",\"call\":"
        "\"transfer_all\",\"args\":{\"dest\":\"" BOB
        "\",\"keep_alive\":true}},{\"pallet\":\"Utility\",\"call\":\"batch\","
        "\"args\":{\"calls\":[]}}]}}";
    static const char mixed[] =
        "{\"Utility\":{\"batch\":[[\"0x00001468656c6c6f\",{\"Balances\":{\"transfer_all\":[\"" BOB
        "\",true]}},\"0x1a0000\"]]}}";
    static const char bytes[] =
        "\"0x1a000c00001468656c6c6f0504008eaf04151687736326c9fea17e25fc5287613693c912"
        "909cb226aa4794f26a48011a0000\"";
    static const char *const forms[] = {readable, mixed, bytes};
    (void)state;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct buf out = {0}, shown = {0};
        struct err err = {0};
        if (codec_from_json(polkadot, metadata_type_call(polkadot), forms[i], &out, &err) != 0)
            fail_msg("%s: %s", forms[i], err.text);
        assert_int_equal(codec_call_to_readable(polkadot, out.data, out.len, &shown, &err), 0);
        assert_string_equal(buf_str(&shown), readable);
        buf_done(&out);
        buf_done(&shown);
    }
}

/* ---- extrinsics ---- */

/* The bytes of a signed extrinsic, put together again from its JSON alone. */
static void rebuild(const struct metadata *md, const json_t *x, struct buf *ret)
{
    struct buf body = {0};
    struct err err = {0};
    const char *scheme = json_string_value(json_object_get(x, "scheme"));
    char *signer = json_dumps(json_object_get(x, "signer"), JSON_ENCODE_ANY);
    char *call = json_dumps(json_object_get(x, "call"), 0);
    buf_put_u8(&body, 0x84);
    assert_int_equal(codec_from_json(md, metadata_type_address(md), signer, &body, &err), 0);
    if (strcmp(scheme, "ethereum") != 0)
        buf_put_u8(&body, strcmp(scheme, "ed25519") == 0   ? 0
                          : strcmp(scheme, "sr25519") == 0 ? 1
                                                           : 2);
    const char *signature = json_string_value(json_object_get(x, "signature"));
    assert_true(hex_decode(signature, strlen(signature), &body));
    for (size_t i = 0; i < metadata_extension_count(md); i++) {
        const struct metadata_extension *e = metadata_extension_at(md, i);
        const json_t *value = json_object_get(json_object_get(x, "extensions"), e->name);
        if (!value)
            continue;
        char *text = json_dumps(value, JSON_ENCODE_ANY);
        if (codec_from_json(md, e->type, text, &body, &err) != 0)
            fail_msg("%s: %s: %s", e->name, text, err.text);
        free(text);
    }
    assert_int_equal(codec_from_json(md, metadata_type_call(md), call, &body, &err), 0);
    scale_put_bytes(ret, body.data, body.len);
    free(signer);
    free(call);
    buf_done(&body);
}

static void check_facts(const json_t *chain, const json_t *item, const json_t *x)
{
    assert_true(json_is_true(json_object_get(x, "signed")));
    assert_string_equal(json_string_value(json_object_get(x, "hash")),
                        json_string_value(json_object_get(item, "hash")));
    assert_int_equal(json_integer_value(json_object_get(x, "nonce")),
                     json_integer_value(json_object_get(chain, "nonce")));
    assert_int_equal(strtoll(json_string_value(json_object_get(x, "tip")), NULL, 10),
                     json_integer_value(json_object_get(chain, "tip")));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(x, "era"), "period")),
                     json_integer_value(json_object_get(chain, "era_period")));
}

static void check_extrinsic(const struct metadata *md, const json_t *chain, const json_t *item,
                            bool plain)
{
    struct buf bytes = {0}, json = {0}, again = {0};
    struct err err = {0};
    vectors_hex(item, "extrinsic", &bytes);
    if (extrinsic_to_json(md, bytes.data, bytes.len, plain, &json, &err) != 0)
        fail_msg("%s", err.text);
    json_t *x = json_loadb((const char *)json.data, json.len, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(x);
    check_facts(chain, item, x);
    rebuild(md, x, &again);
    assert_int_equal(again.len, bytes.len);
    assert_memory_equal(again.data, bytes.data, bytes.len);
    size_t before = json.len; /* one byte less or one wrong: nothing is appended */
    assert_int_equal(extrinsic_to_json(md, bytes.data, bytes.len - 1, plain, &json, &err),
                     ERR_DECODE);
    assert_int_equal(json.len, before);
    json_decref(x);
    buf_done(&bytes);
    buf_done(&json);
    buf_done(&again);
}

static void extrinsics_come_back_byte_for_byte(void **state)
{
    (void)state;
    json_t *vectors = vectors_load("vectors.json");
    const json_t *chain = json_object_get(vectors, "chain");
    size_t i, k, done = 0;
    json_t *runtime, *item;
    json_array_foreach(json_object_get(vectors, "runtimes"), i, runtime)
    {
        struct metadata *md =
            vectors_metadata(json_string_value(json_object_get(runtime, "metadata")));
        json_array_foreach(json_object_get(runtime, "cases"), k, item)
        {
            check_extrinsic(md, chain, item, false);
            check_extrinsic(md, chain, item, true);
            done++;
        }
        metadata_free(md);
    }
    assert_int_equal(done, 68);
    json_decref(vectors);
}

static void an_unsigned_extrinsic_is_its_call(void **state)
{
    struct buf json = {0};
    struct err err = {0};
    (void)state;
    assert_int_equal(
        extrinsic_to_json(polkadot, (const uint8_t *)"\x10\x04\x00\x00\x00", 5, false, &json, &err),
        0);
    assert_non_null(strstr(buf_str(&json), "\"signed\":false,\"call\":{\"pallet\":\"System\","
                                           "\"call\":\"remark\",\"args\":{\"remark\":\"0x\"}}}"));
    buf_clear(&json);
    assert_int_equal(
        extrinsic_to_json(polkadot, (const uint8_t *)"\x10\x04\x00\x00\x01", 5, false, &json, &err),
        ERR_DECODE);
    assert_non_null(strstr(err.text, "System.remark.remark"));
    assert_int_equal(json.len, 0);
    buf_done(&json);
}

/* ---- lists ---- */

static void assert_lists(const char *pallet, const char *call, const char *part)
{
    struct buf out = {0};
    struct err err = {0};
    if (codec_list_calls(polkadot, pallet, call, &out, &err) != 0)
        fail_msg("%s", err.text);
    if (!strstr(buf_str(&out), part))
        fail_msg("'%s' is not in\n%s", part, buf_str(&out));
    buf_done(&out);
}

static void what_can_be_called_is_listed(void **state)
{
    struct buf out = {0};
    struct err err = {0};
    (void)state;
    assert_lists(NULL, NULL, "\nBalances                         9 calls\n");
    assert_lists(NULL, NULL, "\nTimestamp                        1 call\n");
    assert_lists("Balances", NULL,
                 "Balances.transfer_keep_alive(dest: MultiAddress, value: u128)\n");
    assert_lists("System", NULL, "System.set_storage(items: Vec<(bytes, bytes)>)\n");
    assert_lists("Utility", NULL, "Utility.batch(calls: Vec<RuntimeCall>)\n");
    assert_lists("Proxy", "add_proxy",
                 "Proxy.add_proxy(delegate: MultiAddress, proxy_type: ProxyType, delay: u32)\n");
    assert_lists("Proxy", "add_proxy",
                 "\nMultiAddress: an account as SS58 or 0x, or one of\n    Id: AccountId32\n");
    assert_lists("Proxy", "add_proxy", "\nProxyType: one of\n    Any\n    NonTransfer\n");
    assert_lists("Staking", "set_payee", "    Account: AccountId32\n");
    assert_lists("Staking", "validate",
                 "\nValidatorPrefs: { commission: Perbill, blocked: bool }\n");
    assert_lists("Staking", "validate", "\nPerbill: u32\n");
    assert_lists("ConvictionVoting", "vote", "    Split { aye: u128, nay: u128 }\n");
    assert_lists("Utility", "batch",
                 "\nRuntimeCall: {\"pallet\": name, \"call\": name, \"args\": {..}}, or its bytes");
    assert_lists("XcmPallet", "send",
                 "VersionedXcm: one of\n"); /* types that hold themselves come to an end */
    assert_int_equal(codec_list_calls(polkadot, "Balanses", NULL, &out, &err), ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "no such pallet: 'Balanses'; near: Balances"));
    assert_int_equal(codec_list_calls(polkadot, "Balances", "transfr_all", &out, &err),
                     ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "no such call: 'transfr_all'; near: transfer_all"));
    assert_int_equal(out.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_forms_of_a_call_are_one),
        cmocka_unit_test(extrinsics_come_back_byte_for_byte),
        cmocka_unit_test(an_unsigned_extrinsic_is_its_call),
        cmocka_unit_test(what_can_be_called_is_listed),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
