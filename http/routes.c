/* Each route: which parameters it takes, of which kind, and the statement that answers it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_internal.h"
#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "chain/codec/codec.h"
#include "embedded.h"

extern const struct embedded_file http_static_files[];

/* ---- parameters of paths and queries ---- */

enum param_kind { TEXT, NUMBER, LIMIT };
struct param {
    const char *name;
    enum param_kind kind;
};
enum { LIMIT_MAX = 500, DIGITS_MAX = 18, READ_PARAMS = 11 };

/* How a reading route is answered: $1, $2, ... are these parameters. */
struct reading {
    const char *file;
    struct param params[READ_PARAMS];
    const char *what; /* of the 404 where the statement has no row; NULL: it always has one */
};

static const struct reading readings[HTTP_ROUTE_COUNT] = {
    [HTTP_ROUTE_TRANSACTIONS] = {"transactions.sql",
                                 {{"account", TEXT},
                                  {"state", TEXT},
                                  {"outcome", TEXT},
                                  {"key", TEXT},
                                  {"creator", TEXT},
                                  {"hash", TEXT},
                                  {"nonce", NUMBER},
                                  {"from", TEXT},
                                  {"before", TEXT},
                                  {"limit", LIMIT},
                                  {"cursor", NUMBER}},
                                 NULL},
    [HTTP_ROUTE_TRANSACTION] = {"transaction.sql", {{"id", NUMBER}}, "no such transaction"},
    [HTTP_ROUTE_ACCOUNTS] = {"accounts.sql",
                             {{"account", TEXT}, {"cursor", TEXT}, {"limit", LIMIT}},
                             NULL},
    [HTTP_ROUTE_ACCOUNT] = {"account.sql", {{"account", TEXT}}, "no such account"},
    [HTTP_ROUTE_NONCES] = {"nonces.sql",
                           {{"account", TEXT}, {"limit", LIMIT}, {"from", NUMBER}},
                           "no such account"},
    [HTTP_ROUTE_CLUSTER] = {"cluster.sql", {{NULL, TEXT}}, NULL},
    [HTTP_ROUTE_OVERVIEW] = {"overview.sql", {{NULL, TEXT}}, NULL},
    [HTTP_ROUTE_OPERATIONS] = {"operations.sql", {{"limit", LIMIT}, {"cursor", NUMBER}}, NULL},
};

static bool is_kind(const char *value, enum param_kind kind)
{
    size_t digits = strspn(value, "0123456789");
    if (kind == TEXT)
        return true;
    if (!digits || digits > DIGITS_MAX || value[digits])
        return false;
    return kind == NUMBER ||
           (strtoll(value, NULL, 10) >= 1 && strtoll(value, NULL, 10) <= LIMIT_MAX);
}

/* Fills params, in the order of the list. false: k was answered, because it has another parameter,
 * or one of another kind. */
static bool take_params(struct ask *k, const struct param *list, size_t n,
                        struct conn_param *params)
{
    for (size_t i = 0; i < k->match.params.count; i++) {
        const char *name = k->match.params.list[i].name, *value = k->match.params.list[i].value;
        char text[160], shown[41];
        size_t at = 0;
        while (at < n && (!list[at].name || strcmp(list[at].name, name) != 0))
            at++;
        if (at < n && is_kind(value, list[at].kind)) {
            params[at] = (struct conn_param){.data = value};
            continue;
        }
        plain_text(shown, sizeof(shown), name);
        snprintf(text, sizeof(text),
                 at == n                  ? "there is no parameter \"%s\" here"
                 : list[at].kind == LIMIT ? "%s must be a whole number from 1 to 500"
                                          : "%s must be a whole number of at most 18 digits",
                 shown);
        api__problem(k, 400, "bad_request", NULL, text);
        return false;
    }
    return true;
}

static void nothing(struct ask *k, bool row)
{
    const char *what = readings[k->match.route].what;
    (void)row;
    api__problem(k, 404, "not_found", NULL, what ? what : "there is nothing");
}

static void read_route(struct ask *k)
{
    const struct reading *x = &readings[k->match.route];
    struct conn_param params[READ_PARAMS] = {{0}};
    int n = 0;
    PRE(x->file);
    while (n < READ_PARAMS && x->params[n].name)
        n++;
    if (take_params(k, x->params, (size_t)n, params))
        api__query(k, k->api->reads, x->file, false, n, params, nothing);
}

/* ---- operations ---- */

static const struct {
    const char *action;
    struct body_field fields[2];
} operations[HTTP_ROUTE_COUNT] = {
    [HTTP_ROUTE_CANCEL] = {"cancel", {{0}}},
    [HTTP_ROUTE_BUMP] = {"bump", {{"tip", BODY_AMOUNT}}},
    [HTTP_ROUTE_RETRY] = {"retry", {{"deadline", BODY_TEXT}, {"deadline_block", BODY_WHOLE}}},
    [HTTP_ROUTE_PAUSE] = {"pause", {{"reason", BODY_TEXT}}},
    [HTTP_ROUTE_RESUME] = {"resume", {{0}}},
};

/* false: k was answered. */
static bool take_body(struct ask *k, const struct body_field *fields, size_t n)
{
    struct err err = {0};
    if (api__body_read(k, &err) == 0 && api__body_check(k->body, fields, n, &err) == 0)
        return true;
    if (err.code == ERR_PROTOCOL)
        api__problem(k, 415, "unsupported_media_type", NULL, err.text);
    else
        api__problem(k, 400, "bad_request", NULL, err.text);
    return false;
}

static void operate(struct ask *k)
{
    static const struct param subject[] = {{"id", NUMBER}, {"account", TEXT}};
    const struct body_field *fields = operations[k->match.route].fields;
    struct conn_param params[5] = {{.data = k->who}, {.data = operations[k->match.route].action}};
    size_t n = 0;
    while (n < 2 && fields[n].name)
        n++;
    if (!take_params(k, subject, 2, params + 2) || !take_body(k, fields, n))
        return;
    k->text = json_dumps(k->body, JSON_COMPACT);
    params[4] = (struct conn_param){.data = k->text};
    api__query(k, k->api->acts, "operate.sql", false, 5, params, nothing);
}

/* ---- enqueue ---- */

/* In the order of the statement's parameters, but for the last two. */
static const struct body_field enqueue_fields[] = {
    {"account", BODY_TEXT},       {"call", BODY_ANY},         {"key", BODY_TEXT},
    {"creator", BODY_TEXT},       {"traceparent", BODY_TEXT}, {"tip", BODY_AMOUNT},
    {"max_tip", BODY_AMOUNT},     {"not_before", BODY_TEXT},  {"deadline", BODY_TEXT},
    {"delay", BODY_TEXT},         {"expires_in", BODY_TEXT},  {"priority", BODY_WHOLE},
    {"spec_version", BODY_WHOLE}, {"retries", BODY_WHOLE},    {"deadline_block", BODY_WHOLE},
    {"dry_run", BODY_ANY}};
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

/* What would be enqueued. */
static void dry_run(struct ask *k, const struct metadata *md)
{
    struct err err = {0};
    struct buf decoded = {0}, answer = {0};
    if (!md) {
        api__problem(k, 503, "no_chain", "Retry-After: 5\r\n",
                     "no node of the chain answers now, so the call cannot be decoded");
    } else if (codec_call_to_json(md, k->call.data, k->call.len, &decoded, &err)) {
        api__problem(k, 422, "bad_call", NULL, err.text);
    } else {
        buf_puts(&answer, "{\"dry_run\":true,\"call\":\"0x");
        hex_put(&answer, k->call.data, k->call.len);
        buf_printf(&answer, "\",\"decoded\":%s}", buf_str(&decoded));
        api__answer(k, 200, NULL, (const char *)answer.data, answer.len);
    }
    buf_done(&decoded);
    buf_done(&answer);
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

static void enqueue(struct ask *k)
{
    struct conn_param params[API_PARAMS] = {{0}};
    const struct metadata *md = k->api->metadata(k->api->arg);
    struct err err = {0};
    if (!take_params(k, NULL, 0, NULL) || !take_body(k, enqueue_fields, ARRAY_LEN(enqueue_fields)))
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
        dry_run(k, md);
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

/* ---- all of them ---- */

void api__route(struct ask *k)
{
    switch (k->match.route) {
    case HTTP_ROUTE_OPENAPI:
        api__answer(k, 200, NULL, http_static_files[0].text, http_static_files[0].len);
        return;
    case HTTP_ROUTE_TRANSACTIONS:
    case HTTP_ROUTE_TRANSACTION:
    case HTTP_ROUTE_ACCOUNTS:
    case HTTP_ROUTE_ACCOUNT:
    case HTTP_ROUTE_NONCES:
    case HTTP_ROUTE_CLUSTER:
    case HTTP_ROUTE_OVERVIEW:
    case HTTP_ROUTE_OPERATIONS:
        read_route(k);
        return;
    case HTTP_ROUTE_CANCEL:
    case HTTP_ROUTE_BUMP:
    case HTTP_ROUTE_RETRY:
    case HTTP_ROUTE_PAUSE:
    case HTTP_ROUTE_RESUME:
        operate(k);
        return;
    case HTTP_ROUTE_ENQUEUE:
        enqueue(k);
        return;
    case HTTP_ROUTE_PAGE:
    case HTTP_ROUTE_PAGE_FILE:
        api__page(k);
        return;
    case HTTP_ROUTE_EVENTS:
        api__events(k);
        return;
    case HTTP_ROUTE_COUNT:
        break;
    }
    UNREACHABLE();
}
