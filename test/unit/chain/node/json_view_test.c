/* What a node sends is read where it lies: what is JSON, and what is refused and why. That it is
 * what jansson takes is tested by fuzz_json_view. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "chain/node/json_view.h"

static const struct jv *read_text(struct jv_doc *doc, const char *text)
{
    struct err err = {0};
    const struct jv *v = jv_read(doc, text, strlen(text), &err);
    if (!v)
        fail_msg("%s: %s", text, err.text);
    return v;
}

static void test_finds_values(void **state)
{
    (void)state;
    struct jv_doc doc = {0};
    const struct jv *v =
        read_text(&doc, " {\"id\":7, \"result\":{\"a\":[1,[2,3],{}],\"b\":null},\"x\":[], "
                        "\"text\":\"h\\u00e9\\n\"} ");
    int64_t n;
    char text[16];
    assert_true(jv_is(v, JV_OBJECT));
    assert_int_equal(v->count, 4);
    assert_true(jv_int(jv_get(v, "id"), &n) && n == 7);
    const struct jv *a = jv_get(jv_get(v, "result"), "a");
    assert_int_equal(a->count, 3);
    assert_true(jv_int(jv_at(jv_at(a, 1), 1), &n) && n == 3);
    assert_true(jv_is(jv_at(a, 2), JV_OBJECT));
    assert_null(jv_at(a, 3));
    assert_true(jv_is(jv_get(jv_get(v, "result"), "b"), JV_NULL));
    assert_null(jv_first(jv_get(v, "x")));
    assert_int_equal(jv_copy(jv_get(v, "text"), text, sizeof(text)), 4);
    assert_string_equal(text, "h\xc3\xa9\n");
    assert_true(jv_equals(jv_get(v, "text"), "h\xc3\xa9\n"));
    assert_false(jv_equals(jv_get(v, "text"), "h\xc3\xa9"));
    assert_int_equal(jv_text(jv_get(v, "result"), text, sizeof(text)), 27);
    assert_string_equal(text, "{\"a\":[1,[2,3],{");
    jv_done(&doc);
}

static void test_missing_values(void **state)
{
    (void)state;
    struct jv_doc doc = {0};
    const struct jv *v = read_text(&doc, "{\"a\":1}"), *key, *value;
    struct buf bytes = {0};
    uint8_t fixed[2] = {1, 2};
    int64_t n = 5;
    char text[4] = "abc";
    assert_null(jv_get(v, "b"));
    assert_null(jv_get(jv_get(v, "b"), "c"));
    assert_null(jv_get(jv_get(v, "a"), "c"));
    assert_null(jv_at(v, 0));
    assert_false(jv_pair(jv_get(v, "a"), &key, &value));
    assert_false(jv_int(NULL, &n) || jv_hex(NULL, &bytes) ||
                 jv_hex_fixed(jv_get(v, "a"), fixed, 2));
    assert_false(jv_equals(NULL, "") || jv_equals(jv_get(v, "a"), "1"));
    assert_int_equal(n, 5);
    assert_int_equal(jv_copy(jv_get(v, "a"), text, sizeof(text)), 0);
    assert_string_equal(text, "");
    assert_int_equal(jv_text(NULL, text, sizeof(text)), 0);
    jv_done(&doc);
}

static void test_the_last_of_a_name(void **state)
{
    (void)state;
    struct jv_doc doc = {0};
    int64_t n;
    const struct jv *v = read_text(&doc, "{\"a\":1,\"b\":2,\"\\u0061\":3}");
    assert_true(jv_int(jv_get(v, "a"), &n) && n == 3);
    jv_done(&doc);
}

static void test_integers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
        int64_t value;
    } cases[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"9223372036854775807", true, INT64_MAX},
        {"9223372036854775808", false, 0},
        {"-9223372036854775808", true, INT64_MIN},
        {"-9223372036854775809", false, 0},
        {"18446744073709551616", false, 0},
        {"1.0", false, 0},
        {"1e3", false, 0},
        {"\"1\"", false, 0},
    };
    struct jv_doc doc = {0};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t n = 77;
        assert_int_equal(jv_int(read_text(&doc, cases[i].text), &n), cases[i].good);
        assert_true(n == (cases[i].good ? cases[i].value : 77));
    }
    jv_done(&doc);
}

static void test_hexadecimal(void **state)
{
    (void)state;
    struct jv_doc doc = {0};
    struct buf bytes = {0};
    uint8_t fixed[2];
    assert_true(jv_hex(read_text(&doc, "\"0x00fF\""), &bytes) && bytes.len == 2 &&
                bytes.data[1] == 0xff);
    assert_true(jv_hex(read_text(&doc, "\"\\u0030x1234\""), &bytes) && bytes.len == 4);
    assert_true(jv_hex_fixed(read_text(&doc, "\"0x1\\u00323\\u0034\""), fixed, 2) &&
                fixed[1] == 0x34);
    assert_false(jv_hex(read_text(&doc, "\"0x123\""), &bytes));
    assert_false(jv_hex(read_text(&doc, "\"0x12zz\""), &bytes));
    assert_false(jv_hex_fixed(read_text(&doc, "\"0x123456\""), fixed, 2));
    assert_int_equal(bytes.len, 4);
    buf_done(&bytes);
    jv_done(&doc);
}

static const struct {
    const char *text;
    const char *why;
} refused[] = {
    {"", "byte 0: no value begins so"},
    {"  ", "byte 2: no value begins so"},
    {"}{ not json", "byte 0: no value begins so"},
    {"[1 2]", "byte 3: a comma or ] is missing"},
    {"[1,]", "byte 3: no value begins so"},
    {"[,1]", "byte 1: no value begins so"},
    {"[1", "byte 2: a comma or ] is missing"},
    {"[1}", "byte 2: a comma or ] is missing"},
    {"{\"a\":1", "byte 6: a comma or } is missing"},
    {"{\"a\":1]", "byte 6: a comma or } is missing"},
    {"{\"a\" 1}", "byte 5: a colon is missing"},
    {"{\"a\"}", "byte 4: a colon is missing"},
    {"{\"a\":}", "byte 5: no value begins so"},
    {"{\"a\":1,}", "byte 7: a key must be a string"},
    {"{1:2}", "byte 1: a key must be a string"},
    {"[1:2]", "byte 2: a comma or ] is missing"},
    {"{} {}", "byte 3: more follows"},
    {"1 2", "byte 2: more follows"},
    {"nul", "byte 0: no value begins so"},
    {"nullx", "byte 4: more follows"},
    {"[True]", "byte 1: no value begins so"},
    {"01", "byte 1: not a number"},
    {"-", "byte 1: not a number"},
    {"1.", "byte 2: not a number"},
    {".5", "byte 0: no value begins so"},
    {"1e+", "byte 3: not a number"},
    {"+1", "byte 0: no value begins so"},
    {"0x1", "byte 1: more follows"},
    {"\"abc", "byte 4: the string does not end"},
    {"\"abc\\\"", "byte 6: the string does not end"},
    {"\"abc\\", "byte 4: not an escape"},
    {"\"a\tb\"", "byte 2: a control character"},
    {"\"\\x41\"", "byte 1: not an escape"},
    {"\"\\u12g4\"", "byte 1: not an escape"},
    {"\"\\u123", "byte 1: not an escape"},
    {"\"\\u0x12\"", "byte 1: not an escape"},
    {"\"\\u0000\"", "byte 1: not an escape"},
    {"\"\\ud800\"", "byte 1: not an escape"},
    {"\"\\ud800\\u0041\"", "byte 1: not an escape"},
    {"\"\\udc00\"", "byte 1: not an escape"},
    {"\"0123456789\xff\"", "byte 11: not UTF-8"},
    {"\"\x80\"", "byte 1: not UTF-8"},
    {"\"\xc0\xaf\"", "byte 1: not UTF-8"},
    {"\"\xe0\x80\xaf\"", "byte 1: not UTF-8"},
    {"\"\xed\xa0\x80\"", "byte 1: not UTF-8"},
    {"\"\xf4\x90\x80\x80\"", "byte 1: not UTF-8"},
    {"\"\xf0\x80\x80\x80\"", "byte 1: not UTF-8"},
    {"\"\xe2\x82", "byte 1: not UTF-8"},
    {"\xef\xbb\xbf{}", "byte 0: no value begins so"},
    {"{'a':1}", "byte 1: a key must be a string"},
    {"[1 /* one */]", "byte 3: a comma or ] is missing"},
};

/* Read from memory of just that size, so that a sanitizer sees what is read beyond. */
static void test_refused(void **state)
{
    (void)state;
    struct jv_doc doc = {0};
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct err err = {0};
        size_t len = strlen(refused[i].text);
        char *exact = malloc(len + 1);
        memcpy(exact + 1, refused[i].text, len);
        assert_null(jv_read(&doc, exact + 1, len, &err));
        assert_int_equal(err.code, ERR_PROTOCOL);
        if (!strstr(err.text, refused[i].why))
            fail_msg("%s: %s", refused[i].text, err.text);
        free(exact);
    }
    assert_null(jv_read(&doc, "[\"a\0b\"]", 7, NULL));
    assert_null(jv_read(&doc, "[]\0", 3, NULL));
    jv_done(&doc);
}

static void nested(struct buf *b, size_t depth)
{
    buf_clear(b);
    for (size_t i = 0; i < depth; i++)
        buf_puts(b, i % 2 ? "{\"a\":" : "[");
    for (size_t i = depth; i > 0; i--)
        buf_puts(b, i % 2 ? "]" : i == depth ? "0}" : "}");
}

static void test_nesting(void **state)
{
    (void)state;
    struct jv_doc doc = {0};
    struct buf b = {0};
    struct err err;
    nested(&b, JV_DEPTH_MAX);
    const struct jv *v = jv_read(&doc, (const char *)b.data, b.len, &err);
    assert_non_null(v);
    assert_int_equal(v->len, b.len);
    assert_int_equal(v->span, doc.count);
    nested(&b, JV_DEPTH_MAX + 1);
    assert_null(jv_read(&doc, (const char *)b.data, b.len, &err));
    assert_non_null(strstr(err.text, "nested too deep"));
    buf_done(&b);
    jv_done(&doc);
}

/* The array is the same for every text, and a large one's is given back. */
static void test_memory(void **state)
{
    (void)state;
    struct jv_doc doc = {0};
    struct buf b = {0};
    struct err err;
    read_text(&doc, "[1,2,3]");
    const struct jv *values = doc.values;
    read_text(&doc, "{\"a\":[1,2,3]}");
    jv_trim(&doc);
    assert_ptr_equal(doc.values, values);
    char *p = (char *)buf_grow(&b, 2 * JV_VALUES_MAX + 2);
    for (size_t i = 0; i < JV_VALUES_MAX - 1; i++, p += 2)
        memcpy(p, i ? ",0" : "[0", 2);
    b.len = 2 * (JV_VALUES_MAX - 1);
    buf_puts(&b, "]");
    const struct jv *v = jv_read(&doc, (const char *)b.data, b.len, &err);
    assert_non_null(v);
    assert_int_equal(v->count, JV_VALUES_MAX - 1);
    b.len--;
    buf_puts(&b, ",0]");
    assert_null(jv_read(&doc, (const char *)b.data, b.len, &err));
    assert_non_null(strstr(err.text, "too many values"));
    jv_trim(&doc);
    assert_int_equal(doc.cap, 0);
    buf_done(&b);
    jv_done(&doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds_values),
        cmocka_unit_test(test_missing_values),
        cmocka_unit_test(test_the_last_of_a_name),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_hexadecimal),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
