/* JSON to SCALE bytes, by type. Accepts what codec_json.c and decode.c print and the forms that
 * people write (see codec_from_json). */
#include <string.h>

#include "base/check.h"
#include "encode_internal.h"

int encode__child(struct encoder *e, uint32_t id, const char *name, uint32_t index,
                  const json_t *value)
{
    if (!codec__enter(&e->path, name, index))
        return encode__too_deep(e);
    int rc = encode__value(e, id, value);
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

static int no_such_field(struct encoder *e, const struct type_field *f, uint32_t count,
                         const char *name)
{
    struct nearest_names nearest = nearest_names_of(name);
    char text[NEAREST_TEXT];
    for (uint32_t i = 0; i < count; i++)
        if (f[i].name)
            nearest_names_offer(&nearest, f[i].name);
    return encode__refuse(e, "there is no field '%.40s'%s", name,
                          nearest_names_text(&nearest, text));
}

static int encode_object(struct encoder *e, const struct type_field *f, uint32_t count,
                         const json_t *value)
{
    const char *key;
    json_t *item;
    json_object_foreach((json_t *)(uintptr_t)value, key, item)
    {
        if (!has_field(f, count, key))
            return no_such_field(e, f, count, key);
    }
    int rc = 0;
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        const json_t *field = f[i].name ? json_object_get(value, f[i].name) : NULL;
        if (!field) {
            struct buf type = {0};
            metadata__type_text(e->md, f[i].type, NULL, &type);
            rc = encode__refuse(e, "the field '%.40s' (%.60s) is missing",
                                f[i].name ? f[i].name : "", buf_str(&type));
            buf_done(&type);
            return rc;
        }
        rc = encode__child(e, f[i].type, f[i].name, CODEC_NO_INDEX, field);
    }
    return rc;
}

static int encode_positions(struct encoder *e, const struct type_field *f, uint32_t count,
                            const json_t *value)
{
    if (json_array_size(value) != count)
        return encode__refuse(e, "%u values are wanted, %zu are given", count,
                              json_array_size(value));
    int rc = 0;
    for (uint32_t i = 0; i < count && rc == 0; i++)
        rc = encode__child(e, f[i].type, f[i].name, f[i].name ? CODEC_NO_INDEX : i,
                           json_array_get(value, i));
    return rc;
}

int encode__fields(struct encoder *e, uint32_t first, uint32_t count, const json_t *value)
{
    const struct type_field *f = &e->md->fields[first];
    if (json_is_array(value))
        return encode_positions(e, f, count, value);
    if (json_is_object(value))
        return encode_object(e, f, count, value);
    if (count == 0 && json_is_null(value))
        return 0;
    if (count == 0)
        return encode__refuse(e, "nothing is wanted here: give {} or null");
    return encode__refuse(e, "an object {\"%.40s\": ...} or an array of %u values is wanted",
                          f->name ? f->name : "field", count);
}

/* A struct of one unnamed field is written as that field, as in the output. */
static int encode_inside(struct encoder *e, uint32_t first, uint32_t count, const json_t *value)
{
    const struct type_field *f = &e->md->fields[first];
    if (count == 1 && !f->name)
        return encode__child(e, f->type, NULL, CODEC_NO_INDEX, value);
    return encode__fields(e, first, count, value);
}

/* ---- sequences ---- */

/* An object where a sequence of pairs is expected is a map. Its keys are text, which every type
 * accepts. */
static int encode_map(struct encoder *e, const struct type *pair, const json_t *value)
{
    const struct type_field *f = &e->md->fields[pair->first];
    const char *key;
    json_t *item;
    int rc = 0;
    scale_put_compact(e->out, json_object_size(value));
    json_object_foreach((json_t *)(uintptr_t)value, key, item)
    {
        json_t *text = json_string(key);
        rc = encode__child(e, f[0].type, key, CODEC_NO_INDEX, text);
        json_decref(text);
        if (rc == 0)
            rc = encode__child(e, f[1].type, key, CODEC_NO_INDEX, item);
        if (rc != 0)
            break;
    }
    return rc;
}

static int encode_elements(struct encoder *e, const struct type *t, const json_t *value)
{
    const struct type *inner = &e->md->types[t->inner];
    if (codec__is_bytes(e->md, t) && !json_is_array(value))
        return encode__bytes(e, t, value);
    if (t->kind == TYPE_SEQUENCE && inner->kind == TYPE_TUPLE && inner->count == 2 &&
        json_is_object(value))
        return encode_map(e, inner, value);
    size_t n = json_array_size(value);
    if (!json_is_array(value))
        return encode__unfit(e, t, value, "give an array");
    if (t->kind == TYPE_SEQUENCE)
        scale_put_compact(e->out, n);
    else if (n != t->len)
        return encode__refuse(e, "%u elements are wanted, %zu are given", t->len, n);
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = encode__child(e, t->inner, NULL, (uint32_t)i, json_array_get(value, i));
    return rc;
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
            return encode__unfit(e, t, value,
                                 "give null or {\"Some\": value}: the value may be null itself");
        value = wrapped;
    }
    buf_put_u8(e->out, 1);
    return encode__child(e, inner, NULL, CODEC_NO_INDEX, value);
}

static int no_such_variant(struct encoder *e, const struct type *t, const char *name)
{
    struct nearest_names nearest = nearest_names_of(name);
    char text[NEAREST_TEXT];
    for (uint32_t i = 0; i < t->count; i++)
        nearest_names_offer(&nearest, e->md->variants[t->first + i].name);
    if (nearest.count == 0) /* suggest some existing ones */
        for (uint32_t i = 0; i < t->count && i < NEAREST_MAX; i++)
            nearest.best[nearest.count++] = e->md->variants[t->first + i].name;
    return encode__refuse(e, "%.60s has no variant '%.40s'%s", *t->name ? t->name : "the enum",
                          name, nearest_names_text(&nearest, text));
}

static bool is_nothing(const json_t *value)
{
    return !value || json_is_null(value) || (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

/* fields NULL: the variant was given as text. */
static int encode_named(struct encoder *e, const struct type *t, const char *name,
                        const json_t *fields)
{
    const struct type_variant *v = metadata__variant_named(e->md, t, name);
    if (!v)
        return no_such_variant(e, t, name);
    buf_put_u8(e->out, v->index);
    if (v->count == 0)
        return is_nothing(fields)
                   ? 0
                   : encode__refuse(e, "the variant %.60s has no fields: give \"%.60s\"", v->name,
                                    v->name);
    if (!fields)
        return encode__refuse(e, "the variant %.60s has fields: {\"%.60s\": ...} is wanted",
                              v->name, v->name);
    if (!codec__enter(&e->path, v->name, CODEC_NO_INDEX))
        return encode__too_deep(e);
    int rc = encode_inside(e, v->first, v->count, fields);
    codec__leave(&e->path);
    return rc;
}

static int encode_variant(struct encoder *e, const struct type *t, const json_t *value)
{
    const char *name = encode__text(value);
    if (t->role == ROLE_OPTION)
        return encode_some(e, t, value);
    if (t->role == ROLE_MULTI_ADDRESS && name)
        return encode__address(e, t, value);
    if (t->role == ROLE_ERA && json_object_get(value, "period"))
        return encode__era(e, t, value);
    if (name)
        return encode_named(e, t, name, NULL);
    if (!json_is_object(value) || json_object_size(value) != 1)
        return encode__unfit(e, t, value, "give \"Variant\" or {\"Variant\": fields}");
    void *at = json_object_iter((json_t *)(uintptr_t)value);
    return encode_named(e, t, json_object_iter_key(at), json_object_iter_value(at));
}

static int encode_composite(struct encoder *e, const struct type *t, const json_t *value)
{
    if (t->role == ROLE_ACCOUNT)
        return encode__account(e, t, value);
    if (t->role == ROLE_U256 && !json_is_array(value))
        return encode__u256(e, t, value);
    return encode_inside(e, t->first, t->count, value);
}

int encode__value(struct encoder *e, uint32_t id, const json_t *value)
{
    const struct type *t = &e->md->types[id];
    if (id == e->md->type_call && encode__is_call(value))
        return encode__call(e, value);
    switch ((enum type_kind)t->kind) {
    case TYPE_COMPOSITE:
        return encode_composite(e, t, value);
    case TYPE_TUPLE:
        return encode__fields(e, t->first, t->count, value);
    case TYPE_VARIANT:
        return encode_variant(e, t, value);
    case TYPE_SEQUENCE:
    case TYPE_ARRAY:
        return encode_elements(e, t, value);
    case TYPE_PRIMITIVE:
        return encode__prim(e, t, value);
    case TYPE_COMPACT:
        return encode__compact(e, t, value);
    case TYPE_BITS:
        return encode__bits(e, t, value);
    }
    UNREACHABLE(); /* the parser checked the kind */
}
