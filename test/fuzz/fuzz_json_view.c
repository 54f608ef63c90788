/* Texts that are JSON, or nearly: the view takes exactly what jansson takes, and finds in it the
 * same. The first byte says what the others are: the text itself; pieces of JSON in any order; or
 * choices, by which a text that is JSON is made, of which then one byte may be another. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "chain/node/json_view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const pieces[32] = {
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\"a\":",
    "\"b\"",
    "null",
    "true",
    "false",
    "0",
    "-1",
    "12.5e3",
    "\\u0041",
    "\\ud83d\\ude00",
    "\\ud800",
    "\\u0000",
    "\\n",
    " ",
    "\n\t\r ",
    "\xc3\xa9",
    "\xe2\x82\xac",
    "\xf0\x9f\x98\x80",
    "\xed\xa0\x80",
    "0123456789abcdef",
    "\"0x00ff\"",
    "{\"a\":[1,2],\"a\":{}}",
    "9223372036854775807",
    "\\/",
    "\x7f",
};

static void compare_string(const char *text, size_t len, const struct jv *v)
{
    char *out = malloc(len + 1), *cut = malloc(len / 2 + 1);
    struct buf hex = {0}, want = {0};
    INVARIANT(out && cut && jv_is(v, JV_STRING));
    INVARIANT(jv_copy(v, out, len + 1) == len && memcmp(out, text, len + 1) == 0);
    INVARIANT(jv_copy(v, cut, len / 2 + 1) == len && memcmp(cut, text, len / 2) == 0 &&
              !cut[len / 2]);
    INVARIANT(jv_equals(v, text) && (len == 0 || !jv_equals(v, cut)) && !jv_equals(v, "\xff"));
    INVARIANT(jv_hex(v, &hex) == hex_decode(text, len, &want));
    INVARIANT(hex.len == want.len && (hex.len == 0 || memcmp(hex.data, want.data, hex.len) == 0));
    buf_done(&hex);
    buf_done(&want);
    free(out);
    free(cut);
}

static void compare(const json_t *want, const struct jv *v);

static void compare_array(const json_t *want, const struct jv *v)
{
    const struct jv *item = jv_first(v);
    INVARIANT(jv_is(v, JV_ARRAY) && v->count == json_array_size(want));
    for (size_t i = 0; i < json_array_size(want); i++, item = jv_next(v, item)) {
        INVARIANT(item && item == jv_at(v, i));
        compare(json_array_get(want, i), item);
    }
    INVARIANT(!item);
}

static void compare_object(const json_t *want, const struct jv *v)
{
    const char *name;
    json_t *member;
    const struct jv *key, *first;
    INVARIANT(jv_is(v, JV_OBJECT) && v->count >= json_object_size(want));
    INVARIANT(jv_pair(v, &key, &first) == (json_object_size(want) > 0));
    json_object_foreach((json_t *)want, name, member) compare(member, jv_get(v, name));
}

static void compare(const json_t *want, const struct jv *v)
{
    int64_t n = 7;
    switch (json_typeof(want)) {
    case JSON_NULL:
        INVARIANT(jv_is(v, JV_NULL));
        break;
    case JSON_FALSE:
        INVARIANT(jv_is(v, JV_FALSE));
        break;
    case JSON_TRUE:
        INVARIANT(jv_is(v, JV_TRUE));
        break;
    case JSON_INTEGER:
        INVARIANT(jv_int(v, &n) && n == json_integer_value(want));
        break;
    case JSON_REAL:
        INVARIANT(jv_is(v, JV_NUMBER) && !jv_int(v, &n) && n == 7);
        break;
    case JSON_STRING:
        compare_string(json_string_value(want), json_string_length(want), v);
        break;
    case JSON_ARRAY:
        compare_array(want, v);
        break;
    case JSON_OBJECT:
        compare_object(want, v);
        break;
    }
}

/* The text of a value is JSON of the same value. */
static void compare_text(const json_t *want, const struct jv *v, size_t len)
{
    char *text = malloc(len + 1);
    struct jv_doc again = {0};
    INVARIANT(text);
    size_t n = jv_text(v, text, len + 1);
    INVARIANT(n <= len && n == strlen(text));
    const struct jv *same = jv_read(&again, text, n, NULL);
    INVARIANT(same);
    compare(want, same);
    jv_done(&again);
    free(text);
}

static void check(const char *text, size_t len)
{
    static struct jv_doc doc;
    json_error_t error;
    struct err err = {0};
    json_t *want = json_loadb(text, len, JSON_DECODE_ANY, &error);
    const struct jv *v = jv_read(&doc, text, len, &err);
    bool nul = len && memchr(text, 0, len); /* jansson 2.14 overlooks one behind a number */
    bool too_big =
        !want && json_error_code(&error) == json_error_numeric_overflow; /* told when asked for */
    INVARIANT(too_big || (want && !nul) == (v != NULL));
    INVARIANT(v ? !err.code : err.code == ERR_PROTOCOL && err.text[0]);
    if (want && v) {
        compare(want, v);
        compare_text(want, v, len);
    }
    json_decref(want);
}

/* ---- the text ---- */

struct choices {
    const uint8_t *p, *end;
};

static unsigned choose(struct choices *c, unsigned n)
{
    return c->p < c->end ? *c->p++ % n : 0;
}

static void make_string(struct buf *text, struct choices *c)
{
    buf_puts(text, "\"");
    for (unsigned n = choose(c, 8); n > 0;
         n--) /* of the pieces, those that may stand in a string */
        buf_puts(text, pieces[choose(c, 4) ? 26
                                           : (const unsigned[]){15, 16, 19, 20, 22, 23, 24, 30,
                                                                31}[choose(c, 9)]]);
    buf_puts(text, "\"");
}

static void make(struct buf *text, struct choices *c, unsigned depth)
{
    unsigned kind = choose(c, depth < 20 ? 10 : 6);
    if (kind < 6) {
        kind < 5 ? buf_puts(text, pieces[9 + kind]) : make_string(text, c);
        return;
    }
    buf_puts(text, kind % 2 ? "{" : "[");
    for (unsigned n = choose(c, 6), i = 0; i < n; i++) {
        buf_puts(text, i ? "," : "");
        buf_puts(text, choose(c, 5) ? "" : pieces[21]);
        if (kind % 2) {
            make_string(text, c);
            buf_puts(text, ":");
        }
        make(text, c, depth + 1);
    }
    buf_puts(text, kind % 2 ? "}" : "]");
}

static void text_of(const uint8_t *data, size_t size, struct buf *text)
{
    struct choices c = {data + 4, data + size};
    if (data[0] % 4 == 0)
        buf_put(text, data + 1, size - 1);
    else if (data[0] % 4 == 1)
        for (size_t i = 1; i < size; i++)
            buf_puts(text, pieces[data[i] % 32]);
    else
        make(text, &c, 0);
    if (data[0] % 4 == 3 && text->len)
        text->data[(size_t)(data[1] << 8 | data[2]) % text->len] = data[3];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf text = {0};
    if (size < 4 || size > 2000) /* so short that jansson's bound on nesting is not met */
        return 0;
    text_of(data, size, &text);
    char *exact = malloc(text.len + 1); /* so that a sanitizer sees each byte read beyond the end */
    INVARIANT(exact);
    memcpy(exact + 1, buf_str(&text), text.len);
    check(exact + 1, text.len);
    free(exact);
    buf_done(&text);
    return 0;
}
