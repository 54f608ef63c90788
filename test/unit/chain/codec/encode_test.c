/* Every family of types, on a registry made by hand: JSON to bytes, bytes to what people read and
 * back, and what is told of a value that does not fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "codec_internal.h"

enum {
    T_FIRST_PRIM = 0, /* PRIM_COUNT of them, in their order */
    T_COMPACT_U32 = PRIM_COUNT,
    T_COMPACT_U128,
    T_COMPACT_UNIT,
    T_UNIT,
    T_BYTES,
    T_BYTES4,
    T_VEC_U16,
    T_ARRAY3_U16,
    T_PAIR,  /* (str, u32) */
    T_MAP,   /* BTreeMap<str, u32> */
    T_PAIRS, /* Vec<(str, u32)> */
    T_STRUCT,
    T_WRAPPED, /* Perbill(u32) */
    T_ENUM,
    T_OPTION,
    T_OPTION_OPTION,
    T_HASH,
    T_BYTES32,
    T_ACCOUNT,
    T_BYTES20,
    T_ACCOUNT20,
    T_ADDRESS,
    T_LSB0,
    T_MSB0,
    T_BITS8,
    T_BITS16_MSB,
    T_ERA,
    T_CHAIN, /* struct Chain { next: Option<Chain> }: a value may be as deep as it likes */
    T_OPTION_CHAIN,
    T_LIMBS,
    T_U256,
    T_COUNT
};

static const struct type_field fields[] = {
    {NULL, PRIM_STR, 0},         {NULL, PRIM_U32, 0},   /* 0: pair */
    {NULL, T_PAIRS, 0},                                 /* 2: map */
    {"first", PRIM_U8, 0},       {"second", T_PAIR, 0}, /* 3: struct */
    {NULL, PRIM_U32, 0},                                /* 5: Perbill, and a variant */
    {"a", PRIM_BOOL, 0},         {"b", PRIM_U8, 0},     /* 6: variant */
    {NULL, PRIM_U8, 0},          {NULL, PRIM_BOOL, 0},  /* 8: variant */
    {NULL, T_OPTION, 0},                                /* 10 */
    {NULL, T_BYTES32, 0},                               /* 11: hash, account */
    {NULL, T_BYTES20, 0},                               /* 12 */
    {NULL, T_ACCOUNT, 0},                               /* 13: Id */
    {NULL, T_COMPACT_UNIT, 0},                          /* 14: Index */
    {NULL, T_BYTES, 0},                                 /* 15: Raw */
    {NULL, PRIM_U8, 0},                                 /* 16: a mortal era */
    {"next", T_OPTION_CHAIN, 0},                        /* 17 */
    {NULL, T_CHAIN, 0},                                 /* 18 */
    {NULL, T_LIMBS, 0},                                 /* 19 */
};

enum {
    V_ENUM = 0,
    V_OPTION = 4,
    V_OPTION2 = 6,
    V_ADDRESS = 8,
    V_CHAIN = 11,
    V_ERA = 13,
    V_COUNT = V_ERA + 256
};
static struct type_variant variants[V_COUNT] = {
    {"Plain", 0, 0, 0}, {"Number", 5, 1, 1}, {"Named", 6, 2, 5},
    {"Two", 8, 2, 7},                                           /* T_ENUM: with a hole */
    {"None", 0, 0, 0},  {"Some", 8, 1, 1},                      /* Option<u8> */
    {"None", 0, 0, 0},  {"Some", 10, 1, 1},                     /* Option<Option<u8>> */
    {"Id", 13, 1, 0},   {"Index", 14, 1, 1}, {"Raw", 15, 1, 2}, /* MultiAddress */
    {"None", 0, 0, 0},  {"Some", 18, 1, 1},                     /* Option<Chain> */
};
static char era_names[256][12];
static struct type types[T_COUNT];
static const struct metadata_const prefix_const = {"SS58Prefix", (const uint8_t *)"\x2a", 1};
static struct metadata_pallet system_pallet = {
    .name = "System", .calls = TYPE_NONE, .event = TYPE_NONE, .error = TYPE_NONE, .const_count = 1};
static struct metadata md;

#define STRUCT(name_, first_, count_, size)                                                        \
    {                                                                                              \
        .kind = TYPE_COMPOSITE, .name = (name_), .first = (first_), .count = (count_),             \
        .plain_size = (size)                                                                       \
    }
#define VARIANT(name_, first_, count_, role_)                                                      \
    {                                                                                              \
        .kind = TYPE_VARIANT, .name = (name_), .first = (first_), .count = (count_),               \
        .role = (role_), .plain_size = TYPE_SIZE_VARIES                                            \
    }
#define OVER(kind_, inner_, len_, size)                                                            \
    {                                                                                              \
        .kind = (kind_), .name = "", .inner = (inner_), .len = (len_), .plain_size = (size)        \
    }

static const struct type made[T_COUNT] = {
    [T_COMPACT_U32] = OVER(TYPE_COMPACT, PRIM_U32, 0, TYPE_SIZE_VARIES),
    [T_COMPACT_U128] = OVER(TYPE_COMPACT, PRIM_U128, 0, TYPE_SIZE_VARIES),
    [T_COMPACT_UNIT] = OVER(TYPE_COMPACT, T_UNIT, 0, 0),
    [T_UNIT] = {.kind = TYPE_TUPLE, .name = ""},
    [T_BYTES] = OVER(TYPE_SEQUENCE, PRIM_U8, 0, TYPE_SIZE_VARIES),
    [T_BYTES4] = OVER(TYPE_ARRAY, PRIM_U8, 4, 4),
    [T_VEC_U16] = OVER(TYPE_SEQUENCE, PRIM_U16, 0, TYPE_SIZE_VARIES),
    [T_ARRAY3_U16] = OVER(TYPE_ARRAY, PRIM_U16, 3, 6),
    [T_PAIR] =
        {.kind = TYPE_TUPLE, .name = "", .first = 0, .count = 2, .plain_size = TYPE_SIZE_VARIES},
    [T_PAIRS] = OVER(TYPE_SEQUENCE, T_PAIR, 0, TYPE_SIZE_VARIES),
    [T_MAP] = STRUCT("BTreeMap", 2, 1, TYPE_SIZE_VARIES),
    [T_STRUCT] = STRUCT("Struct", 3, 2, TYPE_SIZE_VARIES),
    [T_WRAPPED] = STRUCT("Perbill", 5, 1, 4),
    [T_ENUM] = VARIANT("Choice", V_ENUM, 4, ROLE_NONE),
    [T_OPTION] = VARIANT("Option", V_OPTION, 2, ROLE_OPTION),
    [T_OPTION_OPTION] = VARIANT("Option", V_OPTION2, 2, ROLE_OPTION),
    [T_HASH] = STRUCT("H256", 11, 1, 32),
    [T_BYTES32] = OVER(TYPE_ARRAY, PRIM_U8, 32, 32),
    [T_ACCOUNT] = {.kind = TYPE_COMPOSITE,
                   .name = "AccountId32",
                   .first = 11,
                   .count = 1,
                   .plain_size = 32,
                   .role = ROLE_ACCOUNT},
    [T_BYTES20] = OVER(TYPE_ARRAY, PRIM_U8, 20, 20),
    [T_ACCOUNT20] = {.kind = TYPE_COMPOSITE,
                     .name = "AccountId20",
                     .first = 12,
                     .count = 1,
                     .plain_size = 20,
                     .role = ROLE_ACCOUNT},
    [T_ADDRESS] = VARIANT("MultiAddress", V_ADDRESS, 3, ROLE_MULTI_ADDRESS),
    [T_LSB0] = STRUCT("Lsb0", 0, 0, 0),
    [T_MSB0] = STRUCT("Msb0", 0, 0, 0),
    [T_BITS8] = OVER(TYPE_BITS, PRIM_U8, T_LSB0, TYPE_SIZE_VARIES),
    [T_BITS16_MSB] = OVER(TYPE_BITS, PRIM_U16, T_MSB0, TYPE_SIZE_VARIES),
    [T_ERA] = VARIANT("Era", V_ERA, 256, ROLE_ERA),
    [T_CHAIN] = STRUCT("Chain", 17, 1, TYPE_SIZE_VARIES),
    [T_LIMBS] = OVER(TYPE_ARRAY, PRIM_U64, 4, 32),
    [T_U256] = {.kind = TYPE_COMPOSITE,
                .name = "U256",
                .first = 19,
                .count = 1,
                .plain_size = 32,
                .role = ROLE_U256},
    [T_OPTION_CHAIN] = VARIANT("Option", V_CHAIN, 2, ROLE_OPTION),
};

static int make_registry(void **state)
{
    (void)state;
    memcpy(types, made, sizeof(types));
    for (unsigned p = 0; p < PRIM_COUNT; p++) {
        bool checked = p == PRIM_BOOL || p == PRIM_CHAR || p == PRIM_STR;
        types[p] = (struct type){.kind = TYPE_PRIMITIVE, .name = "", .prim = (uint8_t)p};
        types[p].plain_size = checked ? TYPE_SIZE_VARIES : codec__prim_size((enum type_prim)p);
    }
    for (unsigned i = 0; i < 256; i++) {
        snprintf(era_names[i], sizeof(era_names[i]), i ? "Mortal%u" : "Immortal", i);
        variants[V_ERA + i] = (struct type_variant){era_names[i], 16, i > 0, (uint8_t)i};
    }
    md = (struct metadata){.types = types,
                           .type_count = T_COUNT,
                           .fields = (struct type_field *)(uintptr_t)fields,
                           .variants = variants,
                           .pallets = &system_pallet,
                           .pallet_count = 1,
                           .consts = (struct metadata_const *)(uintptr_t)&prefix_const,
                           .const_count = 1,
                           .type_call = TYPE_NONE};
    return 0;
}

/* ---- what fits ---- */

#define ALICE  "5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY"
#define ALICE_ "d43593c715fdd31c61141abd04a99fd6822c8558854ccde39a5684e7a56da27d"

#define ZERO_16 "00000000000000000000000000000000"

static const struct {
    uint32_t type;
    const char *json, *hex;
    const char *shown; /* NULL: as given */
} fits[] = {
    {PRIM_BOOL, "true", "01", NULL},
    {PRIM_BOOL, "false", "00", NULL},
    {PRIM_CHAR, "8364", "ac200000", NULL},
    {PRIM_STR, "\"h\xc3\xa9 \\\"x\\\" \\n\"", "2468c3a920227822200a",
     "\"h\xc3\xa9 \\\"x\\\" \\u000a\""},
    {PRIM_STR, "\"a\\u0000b\"", "0c610062", NULL},
    {T_BYTES, "\"a\\u0000b\"", "0c610062", "\"0x610062\""},
    {PRIM_U8, "255", "ff", NULL},
    {PRIM_U8, "\"255\"", "ff", "255"},
    {PRIM_U8, "\"0xff\"", "ff", "255"},
    {PRIM_U16, "258", "0201", NULL},
    {PRIM_U32, "\"0xFfFfFfFe\"", "feffffff", "4294967294"},
    {PRIM_U64, "9223372036854775807", "ffffffffffffff7f", "\"9223372036854775807\""},
    {PRIM_U64, "\"18446744073709551615\"", "ffffffffffffffff", NULL},
    {PRIM_U128, "\"340282366920938463463374607431768211455\"", "ffffffffffffffffffffffffffffffff",
     NULL},
    {PRIM_U128, "0", "00000000000000000000000000000000", "\"0\""},
    {PRIM_U256, "\"0x0100000000000000000000000000000000000000000000000000000000000000\"",
     "0100000000000000000000000000000000000000000000000000000000000000", NULL},
    {T_U256, "\"0\"", ZERO_16 ZERO_16, NULL},
    {T_U256, "258",
     "0201000000000000"
     "0000000000000000" ZERO_16,
     "\"258\""},
    {T_U256, "\"340282366920938463463374607431768211456\"",
     ZERO_16 "01000000000000000000000000000000", NULL},
    {T_U256, "\"0xFf00000000000000000000000000000000\"", ZERO_16 "ff000000000000000000000000000000",
     "\"86772003564839308183160524895100893921280\""},
    {T_U256, "\"115792089237316195423570985008687907853269984665640564039457584007913129639935\"",
     "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", NULL},
    {T_U256, "[1, 0, \"2\", 0]", "0100000000000000000000000000000002000000000000000000000000000000",
     "\"680564733841876926926749214863536422913\""},
    {PRIM_I8, "-128", "80", NULL},
    {PRIM_I8, "127", "7f", NULL},
    {PRIM_I16, "\"-2\"", "feff", "-2"},
    {PRIM_I32, "-2147483648", "00000080", NULL},
    {PRIM_I64, "-9223372036854775808", "0000000000000080", "\"-9223372036854775808\""},
    {PRIM_I128, "\"-170141183460469231731687303715884105728\"", "00000000000000000000000000000080",
     NULL},
    {T_COMPACT_U32, "63", "fc", NULL},
    {T_COMPACT_U32, "64", "0101", NULL},
    {T_COMPACT_U32, "1073741824", "0300000040", NULL},
    {T_COMPACT_U128, "\"1000000000000\"", "070010a5d4e8", NULL},
    {T_COMPACT_U128, "\"0xe8d4a51000\"", "070010a5d4e8", "\"1000000000000\""},
    {T_COMPACT_UNIT, "null", "", "[]"},
    {T_UNIT, "[]", "", NULL},
    {T_UNIT, "{}", "", "[]"},
    {T_BYTES, "\"hello\"", "1468656c6c6f", NULL},
    {T_BYTES, "\"0x68656c6c6f\"", "1468656c6c6f", "\"hello\""},
    {T_BYTES, "\"0x\"", "00", NULL},
    {T_BYTES, "\"\"", "00", "\"0x\""},
    {T_BYTES, "[1, 2]", "080102", "\"0x0102\""},
    {T_BYTES, "\"0x3078\"", "083078", NULL}, /* "0x" would be read as no bytes */
    {T_BYTES, "\"0x3037\"", "083037", "\"07\""},
    {T_BYTES, "\"0x1b5b41\"", "0c1b5b41", NULL},     /* a terminal's escape is not shown as text */
    {T_BYTES, "\"0xe280ae61\"", "10e280ae61", NULL}, /* nor what turns the writing round */
    {T_BYTES, "\"0xc328\"", "08c328", NULL},         /* nor what is no UTF-8 */
    {T_BYTES, "\"\xe2\x82\xac\\n\\t\"", "14e282ac0a09", "\"\xe2\x82\xac\\u000a\\u0009\""},
    {T_BYTES4, "\"0x01020304\"", "01020304", NULL},
    {T_BYTES4, "[1, 2, 3, \"0x4\"]", "01020304", "\"0x01020304\""},
    {T_VEC_U16, "[1, \"2\"]", "0801000200", "[1,2]"},
    {T_VEC_U16, "[]", "00", NULL},
    {T_ARRAY3_U16, "[1, 2, 3]", "010002000300", "[1,2,3]"},
    {T_PAIR, "[\"a\", 1]", "046101000000", "[\"a\",1]"},
    {T_MAP, "[[\"a\", 1], [\"b\", 2]]",
     "080461010000000462"
     "02000000",
     "[[\"a\",1],[\"b\",2]]"},
    {T_MAP, "{\"a\": 1, \"b\": 2}", "08046101000000046202000000", "[[\"a\",1],[\"b\",2]]"},
    {T_MAP, "{}", "00", "[]"},
    {T_STRUCT, "{\"second\": [\"a\", 1], \"first\": 9}", "09046101000000",
     "{\"first\":9,\"second\":[\"a\",1]}"},
    {T_STRUCT, "[9, [\"a\", 1]]", "09046101000000", "{\"first\":9,\"second\":[\"a\",1]}"},
    {T_WRAPPED, "500000000", "0065cd1d", NULL},
    {T_ENUM, "\"Plain\"", "00", NULL},
    {T_ENUM, "{\"Plain\": null}", "00", "\"Plain\""},
    {T_ENUM, "{\"Plain\": []}", "00", "\"Plain\""},
    {T_ENUM, "{\"Number\": 7}", "0107000000", "{\"Number\":7}"},
    {T_ENUM, "{\"Named\": {\"b\": 2, \"a\": true}}", "050102", "{\"Named\":{\"a\":true,\"b\":2}}"},
    {T_ENUM, "{\"Two\": [3, false]}", "070300", "{\"Two\":[3,false]}"},
    {T_OPTION, "null", "00", NULL},
    {T_OPTION, "5", "0105", NULL},
    {T_OPTION_OPTION, "null", "00", NULL},
    {T_OPTION_OPTION, "{\"Some\": null}", "0100", "{\"Some\":null}"},
    {T_OPTION_OPTION, "{\"Some\": 5}", "010105", "{\"Some\":5}"},
    {T_HASH, "\"0x" ALICE_ "\"", ALICE_, NULL},
    {T_ACCOUNT, "\"" ALICE "\"", ALICE_, NULL},
    {T_ACCOUNT, "\"0x" ALICE_ "\"", ALICE_, "\"" ALICE "\""},
    {T_ACCOUNT20, "\"0x1111111111111111111111111111111111111111\"",
     "1111111111111111111111111111111111111111", NULL},
    {T_ADDRESS, "\"" ALICE "\"", "00" ALICE_, NULL},
    {T_ADDRESS, "{\"Id\": \"" ALICE "\"}", "00" ALICE_, "\"" ALICE "\""},
    {T_ADDRESS, "{\"Index\": null}", "01", "{\"Index\":[]}"},
    {T_ADDRESS, "{\"Raw\": \"abc\"}", "020c616263", "{\"Raw\":\"abc\"}"},
    {T_BITS8, "\"0b1101\"", "100b", NULL},
    {T_BITS8, "\"0b\"", "00", NULL},
    {T_BITS8, "\"0b000000001\"", "240001", NULL},
    {T_BITS16_MSB, "\"0b11\"", "0800c0", NULL},
    {T_ERA, "\"Immortal\"", "00", NULL},
    {T_ERA, "{\"period\": 64, \"phase\": 57}", "9503", "{\"period\":64,\"phase\":57}"},
    {T_ERA, "{\"Mortal149\": 3}", "9503", "{\"period\":64,\"phase\":57}"},
    {T_ERA, "{\"period\": 65536, \"phase\": 16}", "1f00", "{\"period\":65536,\"phase\":16}"},
    {T_ERA, "{\"Mortal16\": 0}", "1000",
     "{\"Mortal16\":0}"}, /* a period of 2: no era, but bytes that may be there */
    {T_CHAIN, "{\"next\": {\"next\": null}}", "0100", "{\"next\":{\"next\":null}}"},
};

static void assert_text(struct buf *got, const char *want, const char *of)
{
    if (strcmp(buf_str(got), want) != 0)
        fail_msg("%s: '%s', wanted '%s'", of, buf_str(got), want);
}

static void every_family_there_and_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(fits) / sizeof(fits[0]); i++) {
        struct buf bytes = {0}, hex = {0}, shown = {0}, plain = {0}, again = {0};
        struct err err = {0};
        if (codec_from_json(&md, fits[i].type, fits[i].json, &bytes, &err) != 0)
            fail_msg("%s: %s", fits[i].json, err.text);
        if (bytes.len)
            hex_put(&hex, bytes.data, bytes.len);
        assert_text(&hex, fits[i].hex, fits[i].json);
        struct scale_in in = scale_in_of(bytes.data, bytes.len);
        assert_int_equal(codec_to_readable(&md, fits[i].type, &in, &shown, &err), 0);
        assert_int_equal(scale_left(&in), 0);
        assert_text(&shown, fits[i].shown ? fits[i].shown : fits[i].json, fits[i].json);
        in = scale_in_of(bytes.data, bytes.len);
        assert_int_equal(codec_to_json(&md, fits[i].type, &in, &plain, &err), 0);
        const char *forms[] = {buf_str(&shown), buf_str(&plain)};
        for (int f = 0; f < 2; f++) { /* both forms are the same bytes again */
            buf_clear(&again);
            if (codec_from_json(&md, fits[i].type, forms[f], &again, &err) != 0)
                fail_msg("%s: %s", forms[f], err.text);
            assert_int_equal(again.len, bytes.len);
            assert_true(!bytes.len || memcmp(again.data, bytes.data, bytes.len) == 0);
        }
        buf_done(&bytes);
        buf_done(&hex);
        buf_done(&shown);
        buf_done(&plain);
        buf_done(&again);
    }
}

/* ---- what does not ---- */

static const struct {
    uint32_t type;
    const char *json, *told;
} refused[] = {
    {PRIM_BOOL, "1", "bool is wanted, not 1: give true or false"},
    {PRIM_CHAR, "55296", "char is wanted, not 55296: give the number of a character"},
    {PRIM_STR, "5", "str is wanted, not 5: give a text"},
    {PRIM_U8, "256", "u8 is wanted, not 256: it does not fit; 255 is the largest"},
    {PRIM_U8, "-1", "u8 is wanted, not -1: it is below 0, the smallest"},
    {PRIM_U8, "1.0",
     "u8 is wanted, not 1.0: give a whole number, a large one as text: \"1000000000000\""},
    {PRIM_U8, "\"0x\"", "u8 is wanted, not \"0x\": give a whole number"},
    {PRIM_U8, "\" 1\"", "u8 is wanted, not \" 1\": give a whole number"},
    {PRIM_U8, "null", "u8 is wanted, not null: give a whole number"},
    {PRIM_U64, "\"0x10000000000000000\"", "it does not fit; 18446744073709551615 is the largest"},
    {PRIM_U128, "\"0x100000000000000000000000000000000\"", "give a whole number"},
    {PRIM_U128, "\"340282366920938463463374607431768211456\"",
     "u128 is wanted, not \"340282366920938463463374607431768211456\": it does not fit; "
     "340282366920938463463374607431768211455 is the largest"},
    {PRIM_U64, "9223372036854775808", "give numbers above 9223372036854775807 as text"},
    {T_U256, "\"115792089237316195423570985008687907853269984665640564039457584007913129639936\"",
     "give a whole number below 2^256"},
    {T_U256, "\"0x10000000000000000000000000000000000000000000000000000000000000000\"",
     "below 2^256"},
    {T_U256, "-1", "U256 is wanted, not -1: give a whole number below 2^256"},
    {T_U256, "\"a\"", "U256 is wanted, not \"a\""},
    {T_U256, "\"0x\"", "U256 is wanted, not \"0x\""},
    {T_U256, "\"\"", "U256 is wanted, not \"\""},
    {PRIM_I8, "128", "i8 is wanted, not 128: it does not fit; 127 is the largest"},
    {PRIM_I8, "-129", "i8 is wanted, not -129: it does not fit; -128 is the smallest"},
    {PRIM_U256, "5", "u256 is wanted, not 5: give 0x and 64 hexadecimal digits"},
    {T_COMPACT_U32, "4294967296",
     "u32 is wanted, not 4294967296: it does not fit; 4294967295 is the largest"},
    {T_UNIT, "5", "nothing is wanted here: give {} or null"},
    {T_UNIT, "[1]", "0 values are wanted, 1 are given"},
    {T_BYTES, "\"0x123\"", "bytes is wanted, not \"0x123\": 0x is followed by an even count"},
    {T_BYTES, "5", "bytes is wanted, not 5: give 0x and hexadecimal digits, or a text"},
    {T_BYTES4, "\"0x0102\"", "[u8; 4] is wanted, not \"0x0102\": give 0x and 8 hexadecimal digits"},
    {T_VEC_U16, "{}", "Vec<u16> is wanted, not {}: give an array"},
    {T_VEC_U16, "[1, [2, [3]]]", "[1]: u16 is wanted, not [2,[3]]: give a whole number"},
    {T_ARRAY3_U16, "[1, 2]", "3 elements are wanted, 2 are given"},
    {T_PAIR, "[\"a\"]", "2 values are wanted, 1 are given"},
    {T_MAP, "{\"a\": \"b\"}", "a: u32 is wanted, not \"b\""},
    {T_MAP, "5", "Vec<(str, u32)> is wanted, not 5: give an array"},
    {T_STRUCT, "{\"Second\": 1}", "there is no field 'Second'; near: second"},
    {T_STRUCT, "{\"first\": 1}", "the field 'second' ((str, u32)) is missing"},
    {T_STRUCT, "7", "an object {\"first\": ...} or an array of 2 values is wanted"},
    {T_STRUCT, "[7, [\"a\", true]]", "second[1]: u32 is wanted, not true"},
    {T_WRAPPED, "\"half\"", "u32 is wanted, not \"half\": give a whole number"},
    {T_ENUM, "\"plane\"", "Choice has no variant 'plane'; near: Plain"},
    {T_ENUM, "\"xyzxyz\"", "Choice has no variant 'xyzxyz'; near: Plain, Number, Named"},
    {T_ENUM, "\"Number\"", "the variant Number has fields: {\"Number\": ...} is wanted"},
    {T_ENUM, "{\"Plain\": 5}", "the variant Plain has no fields: give \"Plain\""},
    {T_ENUM, "{\"Number\": 1, \"Plain\": null}",
     "Choice is wanted, not {\"Number\":1,\"Plain\":null}: give \"Variant\" or"},
    {T_ENUM, "{\"Named\": {\"a\": 3, \"b\": 4}}", "Named.a: bool is wanted, not 3"},
    {T_OPTION, "\"x\"", "u8 is wanted, not \"x\""},
    {T_OPTION_OPTION, "5", "Option<Option<u8>> is wanted, not 5: give null or {\"Some\": value}"},
    {T_HASH, "\"0x12\"", "[u8; 32] is wanted, not \"0x12\": give 0x and 64 hexadecimal digits"},
    {T_ACCOUNT, "\"15oF4uVJwmo4TdGW7VfQxNLavjCXviqxT9S1MgbjMNHr6Sp5\"",
     "AccountId32 is wanted, not \"15oF4uVJwmo4TdGW7VfQxNLavjCXviqxT9S1Mgb...: it is of prefix 0, "
     "this chain's is 42; the same key here: " ALICE},
    {T_ACCOUNT, "\"5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQZ\"",
     "its checksum is wrong if it looks like one"},
    {T_ACCOUNT, "\"0x1234\"", "AccountId32 is wanted, not \"0x1234\": give an SS58 address"},
    {T_ACCOUNT, "[1]", "AccountId32 is wanted, not [1]: give an SS58 address"},
    {T_ACCOUNT20, "\"" ALICE "\"", "give 0x and 40 hexadecimal digits"},
    {T_ADDRESS, "\"nobody\"", "MultiAddress is wanted, not \"nobody\": give an SS58 address"},
    {T_ADDRESS, "5", "MultiAddress is wanted, not 5: give \"Variant\" or {\"Variant\": fields}"},
    {T_ADDRESS, "{\"id\": 5}", "MultiAddress has no variant 'id'; near: Id"},
    {T_BITS8, "\"1101\"", "bits is wanted, not \"1101\": give 0b and the bits"},
    {T_BITS8, "\"0b12\"", "bits is wanted, not \"0b12\""},
    {T_BITS8, "\"0b1\\u00001\"", "bits is wanted"},
    {T_ERA, "{\"period\": 63, \"phase\": 0}",
     "Era is wanted, not {\"period\":63,\"phase\":0}: period is a power of two"},
    {T_ERA, "{\"period\": 64, \"phase\": 64}", "phase is below it"},
    {T_ERA, "{\"period\": 65536, \"phase\": 1}", "a multiple of period / 4096"},
    {T_ERA, "{\"period\": 64}", "Era is wanted"},
    {T_ERA, "{\"period\": 64, \"phase\": 1, \"more\": 1}", "Era is wanted"},
    {PRIM_U8, "\"1\\u00002\"",
     "u8 is wanted, not \"1\\u00002\": give a whole number"}, /* a zero ends nothing */
    {T_ENUM, "\"Plain\\u0000\"", "Choice is wanted, not \"Plain\\u0000\""},
    {T_ACCOUNT, "\"" ALICE "\\u0000\"", "AccountId32 is wanted"},
    {T_ADDRESS, "\"" ALICE "\\u0000\"", "MultiAddress is wanted"},
    {PRIM_U8, "", "it is not JSON: line 1, column 0"},
    {PRIM_U8, "1 2", "it is not JSON: line 1, column 3"},
    {T_STRUCT, "{\"first\": 1, \"first\": 2}",
     "it is not JSON: line 1, column 20: duplicate object key"},
    {T_COUNT, "1", "is not in the metadata"},
};

static void every_refusal_names_the_way_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct buf out = {0};
        struct err err = {0};
        buf_puts(&out, "before");
        int rc = codec_from_json(&md, refused[i].type, refused[i].json, &out, &err);
        if (rc != ERR_ARGUMENT || !strstr(err.text, refused[i].told))
            fail_msg("%s: %d, '%s', wanted '%s' in it", refused[i].json, rc, err.text,
                     refused[i].told);
        assert_int_equal(out.len, 6);
        buf_done(&out);
    }
}

/* A value of `depth` structs in each other, as JSON and as bytes. */
static int nested(unsigned depth, struct err *err, int *ret_decode)
{
    struct buf json = {0}, bytes = {0}, out = {0};
    for (unsigned i = 0; i < depth; i++) {
        buf_puts(&json, "{\"next\":");
        buf_put_u8(&bytes, i + 1 < depth);
    }
    buf_puts(&json, "null");
    for (unsigned i = 0; i < depth; i++)
        buf_put_u8(&json, '}');
    int rc = codec_from_json(&md, T_CHAIN, buf_str(&json), &out, err);
    struct scale_in in = scale_in_of(bytes.data, bytes.len);
    *ret_decode = codec_to_readable(&md, T_CHAIN, &in, &out, NULL);
    buf_done(&json);
    buf_done(&bytes);
    buf_done(&out);
    return rc;
}

static void depth_has_a_bound(void **state)
{
    struct err err = {0};
    int decoded;
    (void)state;
    assert_int_equal(nested(20, &err, &decoded), 0);
    assert_int_equal(decoded, 0);
    assert_int_equal(nested(500, &err, &decoded), ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "nested deeper than 64 levels"));
    assert_int_equal(decoded, ERR_DECODE);
    assert_int_equal(nested(3000, &err, &decoded), ERR_ARGUMENT); /* jansson's own bound */
    assert_non_null(strstr(err.text, "it is not JSON"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_there_and_back),
        cmocka_unit_test(every_refusal_names_the_way_out),
        cmocka_unit_test(depth_has_a_bound),
    };
    return cmocka_run_group_tests(tests, make_registry, NULL);
}
