/* JSON leaves as SCALE bytes: numbers, text, bytes, bits, eras. */
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "chain/codec/extrinsic.h"
#include "encode_internal.h"
#include "u256.h"

/* ---- numbers ---- */

static bool from_hex(const char *digits, u128 *ret)
{
    size_t n = strlen(digits);
    u128 v = 0;
    if (n == 0 || n > 32 || strspn(digits, "0123456789abcdefABCDEF") != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        char c = digits[i];
        v = v << 4 | (unsigned)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    *ret = v;
    return true;
}

static bool read_number(const json_t *value, bool *ret_negative, u128 *ret)
{
    const char *s = encode__text(value);
    if (json_is_integer(value)) {
        json_int_t n = json_integer_value(value);
        *ret_negative = n < 0;
        *ret = n < 0 ? -(u128)n : (u128)n;
        return true;
    }
    if (!s)
        return false;
    *ret_negative = *s == '-';
    if (strncmp(s, "0x", 2) == 0)
        return from_hex(s + 2, ret);
    return u128_parse(s + *ret_negative, ret);
}

/* Is it a number, only too long to be parsed? */
static bool is_digits(const json_t *value)
{
    const char *s = encode__text(value);
    if (!s)
        return false;
    s += *s == '-';
    return *s && strspn(s, "0123456789") == strlen(s);
}

static int encode_integer(struct encoder *e, const struct type *t, enum type_prim prim,
                          const json_t *value)
{
    unsigned size = codec__prim_size(prim);
    bool is_signed = !codec__prim_is_unsigned(prim);
    bool negative = false;
    u128 v = 0;
    char digits[40];
    bool good = read_number(value, &negative, &v);
    if (!good && !is_digits(value))
        return encode__unfit(e, t, value,
                             "give a whole number, a large one as text: \"1000000000000\"");
    if (negative && !is_signed && v != 0)
        return encode__unfit(e, t, value, "it is below 0, the smallest");
    u128 max = codec__prim_max(prim);
    if (is_signed)
        max = max / 2 + negative;
    if (!good || v > max)
        return encode__unfit(e, t, value, "it does not fit; %s%s is the %s", negative ? "-" : "",
                             u128_text(max, digits), negative ? "smallest" : "largest");
    if (negative)
        v = ~v + 1;
    if (t->kind == TYPE_COMPACT)
        scale_put_compact(e->out, v);
    else
        for (unsigned i = 0; i < size; i++)
            buf_put_u8(e->out, (uint8_t)(v >> (8 * i)));
    return 0;
}

int encode__compact(struct encoder *e, const struct type *t, const json_t *value)
{
    enum type_prim prim;
    if (t->plain_size == 0)
        return encode__child(e, t->inner, NULL, CODEC_NO_INDEX, value);
    if (!codec__compact_prim(e->md, t, &prim))
        return encode__refuse(e,
                              "the metadata asks for a compact of something that is not a number");
    return encode_integer(e, t, prim, value);
}

int encode__u256(struct encoder *e, const struct type *t, const json_t *value)
{
    uint8_t bytes[U256_BYTES];
    char digits[24];
    const char *text = encode__text(value);
    if (json_is_integer(value)) {
        snprintf(digits, sizeof(digits), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        text = digits;
    }
    if (!text || !u256__parse(text, bytes))
        return encode__unfit(e, t, value, "give a whole number below 2^256, a large one as text");
    buf_put(e->out, bytes, sizeof(bytes));
    return 0;
}

/* ---- bytes ---- */

static int encode_fixed(struct encoder *e, const struct type *t, const json_t *value, size_t size)
{
    struct buf bytes = {0};
    bool good = encode__is_hex(value) &&
                hex_decode(json_string_value(value), json_string_length(value), &bytes) &&
                bytes.len == size;
    if (good)
        buf_put(e->out, bytes.data, bytes.len);
    buf_done(&bytes);
    return good ? 0 : encode__unfit(e, t, value, "give 0x and %zu hexadecimal digits", size * 2);
}

/* Text that starts with 0x is hexadecimal; other text stands for its own bytes. */
int encode__bytes(struct encoder *e, const struct type *t, const json_t *value)
{
    const char *s = json_string_value(value);
    if (t->kind == TYPE_ARRAY)
        return encode_fixed(e, t, value, t->len);
    if (!s)
        return encode__unfit(e, t, value, "give 0x and hexadecimal digits, or a text");
    if (!encode__is_hex(value)) {
        scale_put_bytes(e->out, s, json_string_length(value));
        return 0;
    }
    struct buf bytes = {0};
    bool good = hex_decode(s, json_string_length(value), &bytes);
    if (good)
        scale_put_bytes(e->out, bytes.data, bytes.len);
    buf_done(&bytes);
    return good ? 0
                : encode__unfit(e, t, value,
                                "0x is followed by an even count of hexadecimal digits");
}

static int encode_char(struct encoder *e, const struct type *t, const json_t *value)
{
    json_int_t v = json_is_integer(value) ? json_integer_value(value) : -1;
    if (v < 0 || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
        return encode__unfit(e, t, value, "give the number of a character");
    scale_put_u32(e->out, (uint32_t)v);
    return 0;
}

int encode__prim(struct encoder *e, const struct type *t, const json_t *value)
{
    enum type_prim prim = (enum type_prim)t->prim;
    if (prim == PRIM_BOOL) {
        if (!json_is_boolean(value))
            return encode__unfit(e, t, value, "give true or false");
        buf_put_u8(e->out, json_is_true(value));
        return 0;
    }
    if (prim == PRIM_STR) {
        if (!json_is_string(value))
            return encode__unfit(e, t, value, "give a text");
        scale_put_bytes(e->out, json_string_value(value), json_string_length(value));
        return 0;
    }
    if (prim == PRIM_CHAR)
        return encode_char(e, t, value);
    if (codec__prim_size(prim) > 16)
        return encode_fixed(e, t, value, codec__prim_size(prim));
    return encode_integer(e, t, prim, value);
}

int encode__bits(struct encoder *e, const struct type *t, const json_t *value)
{
    const char *s = encode__text(value);
    unsigned store = codec__store_bits(e->md, t);
    if (!store || !s || strncmp(s, "0b", 2) != 0 || strspn(s + 2, "01") != strlen(s + 2))
        return encode__unfit(e, t, value, "give 0b and the bits, the first one first: \"0b1101\"");
    s += 2;
    size_t count = strlen(s);
    size_t len = (count + store - 1) / store * (store / 8);
    bool msb = codec__msb_first(e->md, t);
    scale_put_compact(e->out, count);
    uint8_t *bytes = buf_grow(e->out, len);
    memset(bytes, 0, len);
    for (size_t i = 0; i < count; i++) {
        size_t bit = msb ? store - 1 - i % store : i % store;
        if (s[i] == '1')
            bytes[i / store * (store / 8) + bit / 8] |= (uint8_t)(1u << bit % 8);
    }
    e->out->len += len;
    return 0;
}

/* ---- eras ---- */

/* An era that two bytes cannot express is refused, not rounded. */
int encode__era(struct encoder *e, const struct type *t, const json_t *value)
{
    json_int_t period = json_integer_value(json_object_get(value, "period"));
    json_int_t phase = json_integer_value(json_object_get(value, "phase"));
    bool good = json_object_size(value) == 2 && json_is_integer(json_object_get(value, "phase")) &&
                period >= 4 && period <= 65536 && (period & (period - 1)) == 0 && phase >= 0 &&
                phase < period && (period <= 4096 || phase % (period >> 12) == 0);
    if (!good)
        return encode__unfit(
            e, t, value,
            "period is a power of two in 4..65536, phase is below it (a multiple of "
            "period / 4096)");
    uint8_t bytes[2];
    size_t n = era_encode((struct era){(uint32_t)period, (uint32_t)phase}, bytes);
    buf_put(e->out, bytes, n);
    return 0;
}
