/* JSON to SCALE bytes, by type. Takes what codec_json.c prints and what people write: decimal text or JSON
 * integers for any number, SS58 for accounts and addresses, struct fields by name or by position. */
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "chain/ss58.h"
#include "codec_internal.h"

struct encoder {
    const struct metadata *md;
    struct buf *out;
    struct err *err;
    struct codec_path path;
};

static int encode(struct encoder *e, uint32_t id, const json_t *value);

static int refuse(struct encoder *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int refuse(struct encoder *e, const char *fmt, ...)
{
    char what[140];
    char path[CODEC_PATH_TEXT];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    return err_set(e->err, ERR_ARGUMENT, "%s: %s", codec__path_text(&e->path, path), what);
}

/* What a JSON value is, for messages: "the text 'abc'", "a number", "an object"... */
static const char *describe(const json_t *value, char out[48])
{
    if (json_is_string(value))
        snprintf(out, 48, "the text '%.32s'", json_string_value(value));
    else
        snprintf(out, 48, "%s",
                 json_is_integer(value)  ? "a number"
                 : json_is_real(value)   ? "a number with a fraction"
                 : json_is_object(value) ? "an object"
                 : json_is_array(value)  ? "an array"
                 : json_is_null(value)   ? "null"
                                         : "true or false");
    return out;
}

static int encode_child(struct encoder *e, uint32_t id, const char *name, uint32_t index, const json_t *value)
{
    if (!codec__enter(&e->path, name, index))
        return refuse(e, "nested deeper than %d levels", CODEC_DEPTH_MAX);
    int rc = encode(e, id, value);
    codec__leave(&e->path);
    return rc;
}

/* ---- structs ---- */

static bool has_field(const struct type_field *f, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (f[i].name && strcmp(f[i].name, name) == 0)
            return true;
    return false;
}

static int encode_object(struct encoder *e, const struct type_field *f, uint32_t count, const json_t *value)
{
    const char *key;
    json_t *item;
    json_object_foreach((json_t *)(uintptr_t)value, key, item)
    {
        if (!has_field(f, count, key))
            return refuse(e, "there is no field '%.60s'", key);
    }
    int rc = 0;
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        const json_t *field = f[i].name ? json_object_get(value, f[i].name) : NULL;
        if (!field)
            return refuse(e, "the field '%.60s' is missing", f[i].name ? f[i].name : "");
        rc = encode_child(e, f[i].type, f[i].name, CODEC_NO_INDEX, field);
    }
    return rc;
}

static int encode_positions(struct encoder *e, const struct type_field *f, uint32_t count,
                            const json_t *value)
{
    if (json_array_size(value) != count)
        return refuse(e, "%u values are wanted, %zu are given", count, json_array_size(value));
    int rc = 0;
    for (uint32_t i = 0; i < count && rc == 0; i++)
        rc = encode_child(e, f[i].type, f[i].name, f[i].name ? CODEC_NO_INDEX : i, json_array_get(value, i));
    return rc;
}

static int encode_fields(struct encoder *e, uint32_t first, uint32_t count, const json_t *value)
{
    const struct type_field *f = &e->md->fields[first];
    char text[48];
    if (json_is_array(value))
        return encode_positions(e, f, count, value);
    if (json_is_object(value))
        return encode_object(e, f, count, value);
    return refuse(e, "an object or an array is wanted, not %s", describe(value, text));
}

/* A struct around one value is that value alone: as in JSON out. */
static int encode_inside(struct encoder *e, uint32_t first, uint32_t count, const json_t *value)
{
    const struct type_field *f = &e->md->fields[first];
    if (count == 1 && !f->name)
        return encode_child(e, f->type, NULL, CODEC_NO_INDEX, value);
    return encode_fields(e, first, count, value);
}

/* ---- numbers ---- */

static int encode_integer(struct encoder *e, enum type_prim prim, const json_t *value, bool compact)
{
    unsigned size = codec__prim_size(prim);
    bool is_signed = !codec__prim_is_unsigned(prim);
    bool negative = false;
    u128 v = 0;
    char text[48];
    if (json_is_integer(value)) {
        json_int_t n = json_integer_value(value);
        negative = n < 0;
        v = negative ? -(u128)n : (u128)n;
    } else {
        const char *s = json_string_value(value);
        negative = s && *s == '-';
        if (!s || !u128_parse(s + negative, &v))
            return refuse(e, "a whole number (large ones as decimal text) is wanted, not %s",
                          describe(value, text));
    }
    u128 max = codec__prim_max(prim);
    if (is_signed)
        max = max / 2 + negative;
    if ((negative && !is_signed && v != 0) || v > max)
        return refuse(e, "the number does not fit %c%u", is_signed ? 'i' : 'u', size * 8);
    if (negative)
        v = ~v + 1;
    if (compact) {
        scale_put_compact(e->out, v);
        return 0;
    }
    for (unsigned i = 0; i < size; i++)
        buf_put_u8(e->out, (uint8_t)(v >> (8 * i)));
    return 0;
}

static int encode_compact(struct encoder *e, const struct type *t, const json_t *value)
{
    enum type_prim prim;
    if (t->plain_size == 0)
        return encode_child(e, t->inner, NULL, CODEC_NO_INDEX, value);
    if (!codec__compact_prim(e->md, t, &prim))
        return refuse(e, "the metadata asks for a compact of something that is not a number");
    return encode_integer(e, prim, value, true);
}

static int encode_fixed_hex(struct encoder *e, const json_t *value, size_t size)
{
    char text[48];
    struct buf bytes = {0};
    bool good = json_is_string(value) && strncmp(json_string_value(value), "0x", 2) == 0 &&
                hex_decode(json_string_value(value), json_string_length(value), &bytes) && bytes.len == size;
    if (good)
        buf_put(e->out, bytes.data, bytes.len);
    buf_done(&bytes);
    return good ? 0
                : refuse(e, "0x and %zu hexadecimal digits are wanted, not %s", size * 2,
                         describe(value, text));
}

static int encode_prim(struct encoder *e, enum type_prim prim, const json_t *value)
{
    char text[48];
    if (prim == PRIM_BOOL) {
        if (!json_is_boolean(value))
            return refuse(e, "true or false is wanted, not %s", describe(value, text));
        buf_put_u8(e->out, json_is_true(value));
        return 0;
    }
    if (prim == PRIM_STR) {
        if (!json_is_string(value))
            return refuse(e, "a text is wanted, not %s", describe(value, text));
        scale_put_bytes(e->out, json_string_value(value), json_string_length(value));
        return 0;
    }
    if (prim == PRIM_CHAR) {
        json_int_t v = json_is_integer(value) ? json_integer_value(value) : -1;
        if (v < 0 || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
            return refuse(e, "the number of a character is wanted, not %s", describe(value, text));
        scale_put_u32(e->out, (uint32_t)v);
        return 0;
    }
    if (codec__prim_size(prim) > 16)
        return encode_fixed_hex(e, value, codec__prim_size(prim));
    return encode_integer(e, prim, value, false);
}

/* ---- sequences ---- */

/* Bytes as 0x.. text. */
static int encode_byte_sequence(struct encoder *e, const struct type *t, const json_t *value)
{
    char text[48];
    const char *s = json_string_value(value);
    if (t->kind == TYPE_ARRAY)
        return encode_fixed_hex(e, value, t->len);
    struct buf bytes = {0};
    bool good = s && strncmp(s, "0x", 2) == 0 && hex_decode(s, json_string_length(value), &bytes);
    if (good)
        scale_put_bytes(e->out, bytes.data, bytes.len);
    buf_done(&bytes);
    return good ? 0
                : refuse(e, "bytes as 0x and hexadecimal digits are wanted, not %s", describe(value, text));
}

static int encode_elements(struct encoder *e, const struct type *t, const json_t *value)
{
    char text[48];
    if (codec__is_bytes(e->md, t) && !json_is_array(value))
        return encode_byte_sequence(e, t, value);
    size_t n = json_array_size(value);
    if (!json_is_array(value))
        return refuse(e, "an array is wanted, not %s", describe(value, text));
    if (t->kind == TYPE_SEQUENCE)
        scale_put_compact(e->out, n);
    else if (n != t->len)
        return refuse(e, "%u elements are wanted, %zu are given", t->len, n);
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = encode_child(e, t->inner, NULL, (uint32_t)i, json_array_get(value, i));
    return rc;
}

static int encode_bits(struct encoder *e, const struct type *t, const json_t *value)
{
    char text[48];
    const char *s = json_string_value(value);
    unsigned store = codec__store_bits(e->md, t);
    if (!store || !s || strncmp(s, "0b", 2) != 0 || strspn(s + 2, "01") != strlen(s + 2))
        return refuse(e, "bits as 0b1101 are wanted, not %s", describe(value, text));
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

/* ---- enums ---- */

static int encode_some(struct encoder *e, const struct type *t, const json_t *value)
{
    const struct type_variant *some = &e->md->variants[t->first + 1];
    uint32_t inner = e->md->fields[some->first].type;
    if (json_is_null(value)) {
        buf_put_u8(e->out, 0);
        return 0;
    }
    if (codec__is_nullable(e->md, inner)) {
        const json_t *wrapped = json_object_get(value, "Some");
        if (!wrapped || json_object_size(value) != 1)
            return refuse(e, "null or {\"Some\": value} is wanted: the value may be null itself");
        value = wrapped;
    }
    buf_put_u8(e->out, 1);
    return encode_child(e, inner, NULL, CODEC_NO_INDEX, value);
}

/* An account alone stands for MultiAddress::Id. */
static bool encode_address(struct encoder *e, const struct type *t, const json_t *value)
{
    uint8_t id[ACCOUNT_ID_MAX];
    size_t len;
    const struct type_variant *v = metadata__variant_named(e->md, t, "Id");
    if (!v || v->count != 1 || !account_id_parse(json_string_value(value), id, &len) ||
        e->md->types[e->md->fields[v->first].type].plain_size != len)
        return false;
    buf_put_u8(e->out, v->index);
    buf_put(e->out, id, len);
    return true;
}

static int encode_variant(struct encoder *e, const struct type *t, const json_t *value)
{
    char text[48];
    const char *name = json_string_value(value);
    const json_t *fields = NULL;
    if (t->role == ROLE_OPTION)
        return encode_some(e, t, value);
    if (t->role == ROLE_MULTI_ADDRESS && name && encode_address(e, t, value))
        return 0;
    if (json_is_object(value) && json_object_size(value) == 1) {
        void *at = json_object_iter((json_t *)(uintptr_t)value);
        name = json_object_iter_key(at);
        fields = json_object_iter_value(at);
    }
    if (!name)
        return refuse(e, "a variant as text or {\"Variant\": fields} is wanted, not %s",
                      describe(value, text));
    const struct type_variant *v = metadata__variant_named(e->md, t, name);
    if (!v)
        return refuse(e, "%s has no variant '%.60s'", *t->name ? t->name : "the enum", name);
    buf_put_u8(e->out, v->index);
    if (v->count == 0)
        return 0;
    if (!fields)
        return refuse(e, "the variant %s has fields: {\"%s\": ...} is wanted", v->name, v->name);
    if (!codec__enter(&e->path, v->name, CODEC_NO_INDEX))
        return refuse(e, "nested deeper than %d levels", CODEC_DEPTH_MAX);
    int rc = encode_inside(e, v->first, v->count, fields);
    codec__leave(&e->path);
    return rc;
}

static int encode_account(struct encoder *e, const struct type *t, const json_t *value)
{
    uint8_t id[ACCOUNT_ID_MAX];
    size_t len = 0;
    char text[48];
    if (!json_is_string(value) || !account_id_parse(json_string_value(value), id, &len) ||
        len != t->plain_size)
        return refuse(e, "an account of %u bytes, as SS58 or 0x text, is wanted, not %s", t->plain_size,
                      describe(value, text));
    buf_put(e->out, id, len);
    return 0;
}

static int encode(struct encoder *e, uint32_t id, const json_t *value)
{
    const struct type *t = &e->md->types[id];
    switch ((enum type_kind)t->kind) {
    case TYPE_COMPOSITE:
        return t->role == ROLE_ACCOUNT ? encode_account(e, t, value)
                                       : encode_inside(e, t->first, t->count, value);
    case TYPE_TUPLE:
        return encode_fields(e, t->first, t->count, value);
    case TYPE_VARIANT:
        return encode_variant(e, t, value);
    case TYPE_SEQUENCE:
    case TYPE_ARRAY:
        return encode_elements(e, t, value);
    case TYPE_PRIMITIVE:
        return encode_prim(e, (enum type_prim)t->prim, value);
    case TYPE_COMPACT:
        return encode_compact(e, t, value);
    case TYPE_BITS:
        return encode_bits(e, t, value);
    }
    UNREACHABLE(); /* kinds are checked when parsed */
}

/* "Pallet.call" to the pallet and the call's variant. */
static int find_call(struct encoder *e, const char *name, const struct metadata_pallet **ret_pallet,
                     const struct type_variant **ret_call)
{
    const char *dot = strchr(name, '.');
    if (!dot)
        return err_set(e->err, ERR_ARGUMENT, "'%.80s' is not of the form Pallet.call", name);
    char *pallet_name = xstrndup(name, (size_t)(dot - name));
    const struct metadata_pallet *pallet = metadata__pallet_named(e->md, pallet_name);
    const struct type *calls = pallet ? metadata__type(e->md, pallet->calls) : NULL;
    free(pallet_name);
    if (!calls)
        return err_set(e->err, ERR_ARGUMENT, "'%.80s': the chain has no such pallet with calls", name);
    *ret_pallet = pallet;
    *ret_call = metadata__variant_named(e->md, calls, dot + 1);
    return *ret_call ? 0 : err_set(e->err, ERR_ARGUMENT, "'%.80s': the pallet has no such call", name);
}

static int encode_call(struct encoder *e, const char *name, const json_t *args)
{
    const struct metadata_pallet *pallet = NULL;
    const struct type_variant *call = NULL;
    int rc = find_call(e, name, &pallet, &call);
    if (rc != 0)
        return rc;
    codec__enter(&e->path, pallet->name, CODEC_NO_INDEX);
    codec__enter(&e->path, call->name, CODEC_NO_INDEX);
    buf_put_u8(e->out, pallet->index);
    buf_put_u8(e->out, call->index);
    return encode_fields(e, call->first, call->count, args);
}

int codec_call_from_json(const struct metadata *md, const char *pallet_dot_call, const char *json_args,
                         struct buf *out, struct err *err)
{
    struct encoder e = {.md = md, .out = out, .err = err};
    size_t start = out->len;
    json_error_t at;
    json_t *args = json_loads(json_args, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &at);
    if (!args)
        return err_set(err, ERR_ARGUMENT, "%.80s: the arguments are not JSON: line %d, column %d: %s",
                       pallet_dot_call, at.line, at.column, at.text);
    int rc = encode_call(&e, pallet_dot_call, args);
    json_decref(args);
    if (rc != 0)
        out->len = start;
    return rc;
}
