/* SCALE primitives agree with the reference encodings, and a reader survives every bad input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "chain/codec/scale.h"

static void assert_hex(struct buf *b, const char *hex)
{
    struct buf text = {0};
    hex_put_0x(&text, b->data, b->len);
    assert_string_equal(buf_str(&text), hex);
    buf_done(&text);
    buf_done(b);
}

static const struct {
    const char *value;
    const char *hex;
} compacts[] = {
    {"0", "0x00"},
    {"1", "0x04"},
    {"63", "0xfc"},
    {"64", "0x0101"},
    {"16383", "0xfdff"},
    {"16384", "0x02000100"},
    {"1073741823", "0xfeffffff"},
    {"1073741824", "0x0300000040"},
    {"4294967296", "0x070000000001"},
    {"18446744073709551615", "0x13ffffffffffffffff"},
    {"340282366920938463463374607431768211455", "0x33ffffffffffffffffffffffffffffffff"},
};

static void test_compact(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(compacts); i++) {
        u128 v;
        struct buf b = {0};
        char text[40];
        assert_true(u128_parse(compacts[i].value, &v));
        assert_string_equal(u128_text(v, text), compacts[i].value);
        scale_put_compact(&b, v);
        struct scale_in in = scale_in_of(b.data, b.len);
        assert_true(scale_get_compact(&in) == v);
        assert_false(in.bad);
        assert_int_equal(scale_left(&in), 0);
        for (size_t cut = 0; cut < b.len; cut++) {
            in = scale_in_of(b.data, cut);
            assert_true(scale_get_compact(&in) == 0 && in.bad);
        }
        assert_hex(&b, compacts[i].hex);
    }
}

static void test_compact_refuses(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "0x0100",
        "0xfd00",
        "0x02000000",
        "0xfeff0000",
        "0x0300000000",
        "0x03ffffff3f",
        "0x07ffffff00",
        "0x070000000000",
        "0x37ffffffffffffffffffffffffffffffffff",
        "0xff",
        "0x3300ffffffffffffffffffffffffffff00",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct buf b = {0};
        assert_true(hex_decode(bad[i], strlen(bad[i]), &b));
        struct scale_in in = scale_in_of(b.data, b.len);
        assert_true(scale_get_compact(&in) == 0);
        assert_true(in.bad);
        assert_int_equal(scale_left(&in), 0);
        buf_done(&b);
    }
    struct scale_in in = scale_in_of("\x07\x00\x00\x00\x00\x01", 6);
    assert_int_equal(scale_get_compact_u32(&in), 0);
    assert_true(in.bad);
    in = scale_in_of("\x03\xff\xff\xff\xff", 5);
    assert_true(scale_get_compact_u32(&in) == UINT32_MAX && !in.bad);
}

static void test_put(void **state)
{
    (void)state;
    struct buf b = {0};
    buf_put_u8(&b, 0); /* Option<bool> None */
    assert_hex(&b, "0x00");
    buf_put_u8(&b, 1); /* Option<u8> 7 */
    buf_put_u8(&b, 7);
    assert_hex(&b, "0x0107");
    scale_put_compact(&b, 3); /* Vec<u16> */
    for (uint16_t v = 1; v <= 3; v++)
        scale_put_u16(&b, v);
    assert_hex(&b, "0x0c010002000300");
    scale_put_bytes(&b, "\x01\x02\x03", 3);
    assert_hex(&b, "0x0c010203");
    scale_put_str(&b, "h\xc3\xa9llo");
    assert_hex(&b, "0x1868c3a96c6c6f");
    buf_put_u8(&b, 1); /* (u8, u32) */
    scale_put_u32(&b, 2);
    assert_hex(&b, "0x0102000000");
    scale_put_u128(&b, (u128)-1); /* i128 -1 */
    assert_hex(&b, "0xffffffffffffffffffffffffffffffff");
    scale_put_compact(&b, 8); /* BitVec of eight bits */
    buf_put_u8(&b, 0x0a);
    assert_hex(&b, "0x200a");
    scale_put_u64(&b, 0x0102030405060708);
    assert_hex(&b, "0x0807060504030201");
}

static void test_get(void **state)
{
    (void)state;
    static const uint8_t data[] = {1,  2,  3,  4,  5,  6, 7, 8, 9,    10,
                                   11, 12, 13, 14, 15, 1, 0, 8, 0xaa, 0xbb};
    struct scale_in in = scale_in_of(data, sizeof(data));
    assert_int_equal(scale_get_u8(&in), 1);
    assert_int_equal(scale_get_u8(&in), 2);
    assert_int_equal(scale_get_u8(&in), 3);
    assert_int_equal(scale_get_u32(&in), 0x07060504);
    assert_true(scale_get_u64(&in) == 0x0f0e0d0c0b0a0908);
    assert_true(scale_get_bool(&in));
    assert_false(scale_get_bool(&in));
    assert_int_equal(scale_get_len(&in), 2);
    assert_ptr_equal(scale_get_bytes(&in, 2), data + sizeof(data) - 2);
    assert_non_null(scale_get_bytes(&in, 0));
    assert_false(in.bad);
    assert_null(scale_get_bytes(&in, 1));
    assert_true(in.bad);
    assert_null(scale_get_bytes(&in, 0));

    in = scale_in_of(data, 16);
    assert_true(scale_get_u128(&in) == ((u128)0x010f0e0d0c0b0a09 << 64 | 0x0807060504030201));
    in = scale_in_of(data + 1, 1);
    assert_false(scale_get_bool(&in));
    assert_true(in.bad);
    in = scale_in_of("\x08\x01", 2); /* a length of two with one byte left */
    assert_int_equal(scale_get_len(&in), 0);
    assert_true(in.bad);
    in = scale_in_of(NULL, 0);
    assert_non_null(scale_get_bytes(&in, 0));
    assert_int_equal(scale_get_u64(&in), 0);
    assert_true(in.bad);
}

static void test_short_reads_stay_bad(void **state)
{
    (void)state;
    struct scale_in in = scale_in_of("\x01\x02\x03", 3);
    assert_int_equal(scale_get_u32(&in), 0);
    assert_true(in.bad);
    assert_int_equal(scale_get_u8(&in), 0); /* the three bytes are gone */
    assert_int_equal(scale_get_compact_u32(&in), 0);
    assert_true(in.bad);
}

static void test_u128_text(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "-1",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "0x1",
                                      "1e3",
                                      "1.0",
                                      "340282366920938463463374607431768211456",
                                      "3402823669209384634633746074317682114550"};
    u128 v = 42;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(u128_parse(bad[i], &v));
    assert_true(v == 42);
    assert_true(u128_parse("007", &v) && v == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compact),
        cmocka_unit_test(test_compact_refuses),
        cmocka_unit_test(test_put),
        cmocka_unit_test(test_get),
        cmocka_unit_test(test_short_reads_stay_bad),
        cmocka_unit_test(test_u128_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
