/* POST /v1/transactions: the call as bytes or by its name, and the options of txrelay.enqueue. */
#include <stdlib.h>
#include <string.h>

#include "api_internal.h"
#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "chain/codec/codec.h"

/* In the order of the statement's parameters, but for the last two. */
static const struct body_field enqueue_fields[] = {
    {"account", BODY_TEXT},       {"call", BODY_ANY},         {"key", BODY_TEXT},
    {"creator", BODY_TEXT},       {"traceparent", BODY_TEXT}, {"tip", BODY_AMOUNT},
    {"max_tip", BODY_AMOUNT},     {"not_before", BODY_TEXT},  {"deadline", BODY_TEXT},
    {"delay", BODY_TEXT},         {"expires_in", BODY_TEXT},  {"priority", BODY_WHOLE},
    {"spec_version", BODY_WHOLE}, {"retries", BODY_WHOLE},    {"deadline_block", BODY_WHOLE},
    {"dry_run", BODY_BOOL}};
enum { ENQUEUE_CALL = 1, ENQUEUE_KEY = 2, ENQUEUE_OPTIONS = 15 };

static int encode(struct ask *k, const json_t *call, const struct metadata *md, struct err *err)
{
    static const struct body_field fields[] = {
        {"pallet", BODY_TEXT}, {"name", BODY_TEXT}, {"args", BODY_ANY}};
    const char *pallet = json_string_value(json_object_get(call, "pallet")),
               *name = json_string_value(json_object_get(call, "name"));
    if (api__body_check(call, fields, ARRAY_LEN(fields), err))
        return err->code;
    if (!pallet || !name)
        return err_set(err, ERR_ARGUMENT, "call: an object has pallet, name and args");
    json_t *given = json_object_get(call, "args");
    char *args = given && !json_is_null(given) ? json_dumps(given, JSON_COMPACT | JSON_ENCODE_ANY)
                                               : xstrdup("{}");
    char *dotted = xasprintf("%s.%s", pallet, name);
    int rc = codec_call_from_json(md, dotted, args, &k->call, err);
    free(dotted);
    free(args);
    return rc;
}

/* The call's bytes into k->call. ERR_RETRY's class: the chain is not known now. */
static int take_call(struct ask *k, const struct metadata *md, struct err *err)
{
    const json_t *call = json_object_get(k->body, "call");
    const char *hex = json_string_value(call);
    if (hex && hex_decode(hex, strlen(hex), &k->call) && k->call.len)
        return 0;
    if (!json_is_object(call))
        return err_set(err, ERR_ARGUMENT,
                       "call must be its bytes in hexadecimal, or an object with pallet, name and "
                       "args");
    if (!md)
        return err_set(err, ERR_NET,
                       "no node of the chain answers now, so a call cannot be encoded: give its "
                       "bytes, or ask again");
    return encode(k, call, md, err);
}

static void not_enqueued(struct ask *k, bool row)
{
    if (row)
        api__refuse(k, 403, "forbidden", NULL, "the token may not enqueue for this account");
    else
        api__refuse(k, 401, "unauthorized", "WWW-Authenticate: Bearer\r\n",
                    "the token was revoked, or has expired");
}

/* false: k was answered. */
static bool take_key(struct ask *k, struct conn_param *ret)
{
    const char *header = http_header(k->r, "idempotency-key");
    if (header && ret->data && strcmp(header, ret->data) != 0) {
        api__problem(k, 400, "bad_request", NULL,
                     "the header Idempotency-Key and the field key differ");
        return false;
    }
    if (header)
        ret->data = header;
    return true;
}

void api__enqueue(struct ask *k)
{
    struct conn_param params[API_PARAMS] = {{0}};
    const struct metadata *md = k->api->metadata(k->api->arg);
    struct err err = {0};
    if (!api__take_params(k, NULL, 0, NULL) ||
        !api__take_body(k, enqueue_fields, ARRAY_LEN(enqueue_fields)))
        return;
    for (size_t i = 0; i < ENQUEUE_OPTIONS; i++)
        params[i].data = api__body_text(k->body, enqueue_fields[i].name, k->numbers[i]);
    if (!params[0].data) {
        api__problem(k, 400, "bad_request", NULL,
                     "account is missing: it names who signs, by alias, id or address");
        return;
    }
    if (!take_key(k, &params[ENQUEUE_KEY]))
        return;
    if (take_call(k, md, &err)) {
        bool later = err_class(err.code) == ERR_CLASS_RETRY;
        api__problem(k, later ? 503 : 422, later ? "no_chain" : "bad_call",
                     later ? "Retry-After: 5\r\n" : NULL, err.text);
        return;
    }
    if (json_is_true(json_object_get(k->body, "dry_run"))) {
        api__dry_run(k, md);
        return;
    }
    struct buf hex = {0};
    hex_put(&hex, k->call.data, k->call.len);
    k->text = xstrdup(buf_str(&hex));
    buf_done(&hex);
    params[ENQUEUE_CALL].data = k->text;
    params[ENQUEUE_OPTIONS].data = k->hash;
    k->location = "/v1/transactions/";
    api__query(k, k->api->acts, "enqueue.sql", true, API_PARAMS, params, not_enqueued);
}
