/* The metadata hash of CheckMetadataHash (RFC 78) is the one that another implementation computes
 * for real runtimes; vectors by test/vectors/digests.mjs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "blake3.h"
#include "chain/codec/metadata.h"
#include "support_vectors.h"

static void as_the_reference(void **state)
{
    (void)state;
    json_t *list = vectors_load("digests.json");
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        struct metadata *md =
            vectors_metadata(json_string_value(json_object_get(item, "metadata")));
        struct metadata_token token = {
            .symbol = json_string_value(json_object_get(item, "symbol")),
            .decimals = (uint8_t)json_integer_value(json_object_get(item, "decimals"))};
        struct buf want = {0};
        struct err err = {0};
        uint8_t digest[32];
        vectors_hex(item, "digest", &want);
        if (metadata_digest(md, &token, digest, &err) != 0)
            fail_msg("%s", err.text);
        assert_int_equal(want.len, sizeof(digest));
        assert_memory_equal(digest, want.data, want.len);
        buf_done(&want);
        metadata_free(md);
    }
    assert_int_equal(i, 7);
    json_decref(list);
}

/* A runtime computes its own from V15, and no other version has the same types. */
static void of_v15_alone(void **state)
{
    (void)state;
    static const char *const others[] = {"v14-polkadot", "v16-substrate"};
    struct metadata_token token = {.symbol = "DOT", .decimals = 10};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        struct metadata *md = vectors_metadata(others[i]);
        struct err err = {0};
        uint8_t digest[32] = {7};
        assert_int_equal(metadata_digest(md, &token, digest, &err), ERR_METADATA);
        assert_non_null(strstr(err.text, "V15"));
        assert_int_equal(digest[0], 7);
        metadata_free(md);
    }
}

/* Of BLAKE3's own test_vectors.json: the input counts up to 250, again and again. */
static void blake3_is_blake3(void **state)
{
    (void)state;
    static const struct {
        size_t len;
        const char *hash;
    } cases[] = {
        {0, "0xaf1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"},
        {1, "0x2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213"},
        {64, "0x4eed7141ea4a5cd4b788606bd23f46e212af9cacebacdc7d1f4c6dc7f2511b98"},
        {1023, "0x10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11"},
        {1024, "0x42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7"},
        {1025, "0xd00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444"},
        {5121, "0x628bd2cb2004694adaab7bbd778a25df25c47b9d4155a55f8fbd79f2fe154cff"},
        {31744, "0x62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47"},
    };
    static uint8_t input[31744];
    for (size_t i = 0; i < sizeof(input); i++)
        input[i] = (uint8_t)(i % 251);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        blake3_hasher h;
        uint8_t hash[32];
        struct buf want = {0};
        blake3_hasher_init(&h);
        blake3_hasher_update(&h, input, cases[i].len);
        blake3_hasher_finalize(&h, hash, sizeof(hash));
        assert_true(hex_decode(cases[i].hash, strlen(cases[i].hash), &want));
        assert_memory_equal(hash, want.data, sizeof(hash));
        buf_done(&want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_reference),
        cmocka_unit_test(of_v15_alone),
        cmocka_unit_test(blake3_is_blake3),
    };
    return cmocka_run_group_tests_name("chain_digest", tests, NULL, NULL);
}
