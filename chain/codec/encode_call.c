/* Calls by name, and the public functions from JSON text to bytes. Their result always decodes
 * again. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hex.h"
#include "encode_internal.h"

static int encode_args(struct encoder *e, const struct metadata_pallet *pallet,
                       const struct type_variant *call, const json_t *args)
{
    if (!codec__enter(&e->path, call->name, CODEC_NO_INDEX))
        return encode__too_deep(e);
    buf_put_u8(e->out, pallet->index);
    buf_put_u8(e->out, call->index);
    int rc = encode__fields(e, call->first, call->count, args);
    codec__leave(&e->path);
    return rc;
}

static int encode_by_name(struct encoder *e, const char *pallet_name, const char *name,
                          const json_t *args)
{
    struct err why = {0};
    const struct metadata_pallet *pallet = codec__pallet_with_calls(e->md, pallet_name, &why);
    const struct type_variant *call = pallet ? codec__call_named(e->md, pallet, name, &why) : NULL;
    if (!call)
        return encode__refuse(e, "%s", why.text);
    if (!codec__enter(&e->path, pallet->name, CODEC_NO_INDEX))
        return encode__too_deep(e);
    int rc = encode_args(e, pallet, call, args);
    codec__leave(&e->path);
    return rc;
}

/* ---- calls inside of calls ---- */

bool encode__is_call(const json_t *value)
{
    return encode__is_hex(value) || json_object_get(value, "pallet");
}

static int encode_call_bytes(struct encoder *e, const json_t *value)
{
    struct buf bytes = {0};
    struct err why = {0};
    const struct type *t = &e->md->types[e->md->type_call];
    int rc = 0;
    if (!hex_decode(json_string_value(value), json_string_length(value), &bytes))
        rc = encode__unfit(e, t, value, "0x is followed by an even count of hexadecimal digits");
    else if (codec_check_call(e->md, bytes.data, bytes.len, &why) != 0)
        rc = encode__unfit(e, t, value, "%.120s", why.text);
    else
        buf_put(e->out, bytes.data, bytes.len);
    buf_done(&bytes);
    return rc;
}

int encode__call(struct encoder *e, const json_t *value)
{
    static const char form[] = "give {\"pallet\": name, \"call\": name, \"args\": {..} or [..]}";
    if (encode__is_hex(value))
        return encode_call_bytes(e, value);
    const char *pallet = encode__text(json_object_get(value, "pallet"));
    const char *call = encode__text(json_object_get(value, "call"));
    const json_t *args = json_object_get(value, "args");
    const struct type *t = &e->md->types[e->md->type_call];
    if (!pallet || !call || json_object_size(value) != (args ? 3u : 2u))
        return encode__unfit(e, t, value, "%s", form);
    return encode_by_name(e, pallet, call, args ? args : json_null());
}

/* ---- the public functions ---- */

static json_t *parse(const char *text, struct err *err)
{
    json_error_t at;
    if (strlen(text) > CODEC_JSON_MAX) {
        err_set(err, ERR_ARGUMENT, "JSON of more than %d bytes", CODEC_JSON_MAX);
        return NULL;
    }
    json_t *json = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &at);
    if (!json && json_error_code(&at) == json_error_numeric_overflow)
        err_set(err, ERR_ARGUMENT,
                "line %d, column %d: %.80s: give numbers above 9223372036854775807 as text",
                at.line, at.column, at.text);
    else if (!json)
        err_set(err, ERR_ARGUMENT,
                "it is not JSON: line %d, column %d: %.120s: write text in double quotes, and "
                "arguments as [..] or {..}",
                at.line, at.column, at.text);
    return json;
}

/* A call given as 0x bytes counts as one level here and as several when it is decoded: check the
 * result, so that every decoder accepts it. */
static int check_whole(const struct metadata *md, uint32_t type, const struct buf *out,
                       size_t start, struct err *err)
{
    struct scale_in in = scale_in_of(out->data + start, out->len - start);
    struct err why = {0};
    if (codec_skip(md, type, &in, &why) != 0)
        return err_set(err, ERR_ARGUMENT, "%s", why.text);
    if (scale_left(&in) != 0) /* a node's metadata may say two things of one call */
        return err_set(err, ERR_METADATA,
                       "the metadata contradicts itself: what its calls encode is not what its "
                       "call type holds");
    return 0;
}

static int finish(struct encoder *e, uint32_t type, int rc, size_t start)
{
    if (rc == 0 && e->out->len > start)
        rc = check_whole(e->md, type, e->out, start, e->err);
    if (rc != 0)
        e->out->len = start;
    return rc;
}

int codec_from_json(const struct metadata *md, uint32_t type, const char *text, struct buf *out,
                    struct err *err)
{
    struct encoder e = {.md = md, .out = out, .err = err};
    size_t start = out->len;
    if (type >= md->type_count)
        return err_set(err, ERR_ARGUMENT, "type %u is not in the metadata", type);
    json_t *value = parse(text, err);
    if (!value)
        return ERR_ARGUMENT;
    int rc = finish(&e, type, encode__value(&e, type, value), start);
    json_decref(value);
    return rc;
}

int codec_call_from_json(const struct metadata *md, const char *pallet_dot_call,
                         const char *json_args, struct buf *out, struct err *err)
{
    struct encoder e = {.md = md, .out = out, .err = err};
    struct err why = {0};
    size_t start = out->len;
    const char *dot = strchr(pallet_dot_call, '.');
    if (!dot)
        return err_set(err, ERR_ARGUMENT, "'%.80s' is not of the form Pallet.call",
                       pallet_dot_call);
    json_t *args = parse(json_args, &why);
    if (!args)
        return err_set(err, ERR_ARGUMENT, "%.80s: the arguments: %s", pallet_dot_call, why.text);
    char *pallet = xstrndup(pallet_dot_call, (size_t)(dot - pallet_dot_call));
    int rc = finish(&e, md->type_call, encode_by_name(&e, pallet, dot + 1, args), start);
    free(pallet);
    json_decref(args);
    return rc;
}
