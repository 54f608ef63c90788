/* JSON bodies. A field that is not known is refused: a misspelt deadline must not be a transaction
 * without one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api_internal.h"
#include "base/check.h"
#include "base/u128.h"

static bool is_json(const char *type)
{
    static const char json[] = "application/json";
    size_t n = sizeof(json) - 1;
    return type && !strncasecmp(type, json, n) && (!type[n] || type[n] == ';' || type[n] == ' ');
}

int api__body_read(struct ask *k, struct err *err)
{
    json_error_t error;
    size_t len;
    const char *text = http_body(k->r, &len);
    if (!len) {
        k->body = json_object();
        return 0;
    }
    if (!is_json(http_header(k->r, "content-type")))
        return err_set(err, ERR_PROTOCOL, "the body's Content-Type must be application/json");
    k->body = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
    if (!k->body)
        return err_set(err, ERR_ARGUMENT, "the body is not JSON: line %d, column %d: %s",
                       error.line, error.column, error.text);
    if (!json_is_object(k->body))
        return err_set(err, ERR_ARGUMENT, "the body must be a JSON object");
    return 0;
}

static bool is_ids(const json_t *value)
{
    size_t i;
    json_t *id;
    json_array_foreach((json_t *)value, i, id)
    {
        if (!json_is_integer(id))
            return false;
    }
    return json_is_array(value);
}

static bool is_kind(const json_t *value, enum body_kind kind)
{
    u128 amount;
    switch (kind) {
    case BODY_TEXT:
        return json_is_string(value);
    case BODY_WHOLE:
        return json_is_integer(value);
    case BODY_AMOUNT:
        return json_is_integer(value)
                   ? json_integer_value(value) >= 0
                   : json_is_string(value) && u128_parse(json_string_value(value), &amount);
    case BODY_IDS:
        return is_ids(value);
    case BODY_BOOL:
        return json_is_boolean(value);
    case BODY_ANY:
        return true;
    }
    UNREACHABLE();
}

static const char *kind_name(enum body_kind kind)
{
    return kind == BODY_TEXT    ? "a string"
           : kind == BODY_WHOLE ? "a whole number"
           : kind == BODY_IDS   ? "a list of ids"
           : kind == BODY_BOOL  ? "true or false"
                                : "planck: a whole number, or its digits as a string";
}

static int unknown(const char *name, const struct body_field *fields, size_t n, struct err *err)
{
    struct buf names = {0};
    for (size_t i = 0; i < n; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", fields[i].name);
    char shown[41];
    plain_text(shown, sizeof(shown), name);
    err_set(err, ERR_ARGUMENT, "there is no field \"%s\"; there are: %s", shown,
            n ? buf_str(&names) : "none");
    buf_done(&names);
    return err->code;
}

int api__body_check(const json_t *body, const struct body_field *fields, size_t n, struct err *err)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)body, name, value)
    {
        size_t i = 0;
        while (i < n && strcmp(fields[i].name, name) != 0)
            i++;
        if (i == n)
            return unknown(name, fields, n, err);
        if (!json_is_null(value) && !is_kind(value, fields[i].kind))
            return err_set(err, ERR_ARGUMENT, "%s must be %s", name, kind_name(fields[i].kind));
    }
    return 0;
}

const char *api__body_text(const json_t *body, const char *name, char room[24])
{
    const json_t *value = json_object_get(body, name);
    if (!json_is_integer(value))
        return json_string_value(value);
    snprintf(room, 24, "%lld", (long long)json_integer_value(value));
    return room;
}
