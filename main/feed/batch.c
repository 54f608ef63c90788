#include "batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"

static int wrong(size_t i, const char *what, struct err *err)
{
    return err_set(err, ERR_ARGUMENT, "calls[%zu]: %s", i, what);
}

static int read_hex(size_t i, const json_t *text, struct feed_batch *b, struct feed_wire_call *ret,
                    struct err *err)
{
    const char *hex = json_string_value(text);
    size_t before = b->bytes.len;
    if (!hex || !hex_decode(hex, json_string_length(text), &b->bytes) || b->bytes.len == before)
        return wrong(i, "a call is hexadecimal bytes, as txrelay encode prints them", err);
    ret->call_len = b->bytes.len - before; /* where they are is known at the end */
    return 0;
}

struct number_field {
    const char *name;
    int64_t most;
    int64_t *to;
};

static int read_field(size_t i, const char *key, const json_t *value, struct feed_wire_call *ret,
                      int64_t *ret_retries, int64_t *ret_spec, struct err *err)
{
    const struct number_field numbers[] = {
        {"priority", INT64_MAX, &ret->priority},
        {"not_before_ms", INT64_MAX, &ret->not_before_ms},
        {"deadline_ms", INT64_MAX, &ret->deadline_ms},
        {"deadline_block", INT64_MAX, &ret->deadline_block},
        {"retries", UINT32_MAX, ret_retries},
        {"spec_version", UINT32_MAX, ret_spec},
    };
    char text[120];
    for (size_t k = 0; k < ARRAY_LEN(numbers); k++)
        if (!strcmp(key, numbers[k].name)) {
            int64_t v = json_integer_value(value);
            if (!json_is_integer(value) || v > numbers[k].most || (v < 0 && k > 0)) {
                snprintf(text, sizeof(text), "%s must be a whole number", key);
                return wrong(i, text, err);
            }
            *numbers[k].to = v;
            return 0;
        }
    const char **amount = !strcmp(key, "tip")       ? &ret->tip
                          : !strcmp(key, "max_tip") ? &ret->max_tip
                                                    : NULL;
    const char *digits = json_string_value(value);
    if (amount && digits && digits[0] && !digits[strspn(digits, "0123456789")]) {
        *amount = digits;
        return 0;
    }
    snprintf(text, sizeof(text),
             amount ? "%.60s is an amount in decimal, as text" : "there is no field '%.60s'", key);
    return wrong(i, text, err);
}

static int read_call(size_t i, json_t *json, struct feed_batch *b, struct feed_wire_call *ret,
                     struct err *err)
{
    const char *key;
    json_t *value;
    int64_t retries = 0, spec = 0;
    if (!json_is_object(json))
        return read_hex(i, json, b, ret, err);
    if (read_hex(i, json_object_get(json, "call"), b, ret, err))
        return err->code;
    json_object_foreach(json, key, value)
    {
        if (strcmp(key, "call") != 0 && read_field(i, key, value, ret, &retries, &spec, err))
            return err->code;
    }
    ret->retries = (uint32_t)retries;
    ret->spec_version = (uint32_t)spec;
    return 0;
}

static int read_calls(const json_t *calls, struct feed_batch *b, struct err *err)
{
    b->count = json_array_size(calls);
    b->calls = xcalloc(b->count + 1, sizeof(*b->calls));
    for (size_t i = 0; i < b->count; i++)
        if (read_call(i, json_array_get(calls, i), b, &b->calls[i], err))
            return err->code;
    size_t at = 0;
    for (size_t i = 0; i < b->count; i++) {
        b->calls[i].call = b->bytes.data + at;
        at += b->calls[i].call_len;
    }
    return 0;
}

static int read_number(const json_t *json, struct feed_batch *b, struct err *err)
{
    const char *key;
    json_t *value, *object = (json_t *)(uintptr_t)json;
    json_object_foreach(object, key, value)
    {
        if (!strcmp(key, "calls"))
            continue;
        if (strcmp(key, "number") != 0)
            return err_set(err, ERR_ARGUMENT, "there is no field '%.60s'", key);
        if (!json_is_integer(value) || json_integer_value(value) < 0)
            return err_set(err, ERR_ARGUMENT, "number must be a whole number");
        b->number = json_integer_value(value);
    }
    return 0;
}

int feed_batch_read(const char *text, size_t len, struct feed_batch *ret, struct err *err)
{
    json_error_t where;
    *ret = (struct feed_batch){.number = -1};
    ret->json = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);
    if (!ret->json)
        return err_set(err, ERR_ARGUMENT, "it is no JSON: %s", where.text);
    const json_t *calls =
        json_is_array(ret->json) ? ret->json : json_object_get(ret->json, "calls");
    if (!json_is_array(calls))
        err_set(err, ERR_ARGUMENT,
                "a batch is an array of calls, or {\"number\": N, \"calls\": [...]}");
    else if (!read_number(json_is_array(ret->json) ? NULL : ret->json, ret, err) &&
             !read_calls(calls, ret, err))
        return 0;
    feed_batch_done(ret);
    return err->code;
}

void feed_batch_done(struct feed_batch *b)
{
    free(b->calls);
    b->calls = NULL;
    json_decref(b->json);
    b->json = NULL;
    buf_done(&b->bytes);
}
