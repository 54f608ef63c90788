/* What operators do. The database does it and records it, so any relay may be asked; the leader
 * finds it there. The one exception is a drain, which concerns the relay that is asked. */
#include <stdlib.h>
#include <string.h>

#include "api_internal.h"
#include "base/check.h"

enum { FIELDS = 3, IDS_MAX = 500 };

static const struct {
    const char *action;
    struct body_field fields[FIELDS];
    bool many; /* the field ids, instead of the path's id */
} operations[HTTP_ROUTE_COUNT] = {
    [HTTP_ROUTE_CANCEL] = {"cancel", {{0}}, false},
    [HTTP_ROUTE_BUMP] = {"bump", {{"tip", BODY_AMOUNT}}, false},
    [HTTP_ROUTE_RETRY] = {"retry",
                          {{"deadline", BODY_TEXT}, {"deadline_block", BODY_WHOLE}},
                          false},
    [HTTP_ROUTE_CANCEL_MANY] = {"cancel", {{"ids", BODY_IDS}}, true},
    [HTTP_ROUTE_BUMP_MANY] = {"bump", {{"ids", BODY_IDS}, {"tip", BODY_AMOUNT}}, true},
    [HTTP_ROUTE_RETRY_MANY] = {"retry",
                               {{"ids", BODY_IDS},
                                {"deadline", BODY_TEXT},
                                {"deadline_block", BODY_WHOLE}},
                               true},
    [HTTP_ROUTE_PAUSE] = {"pause", {{"reason", BODY_TEXT}}, false},
    [HTTP_ROUTE_RESUME] = {"resume", {{0}}, false},
    [HTTP_ROUTE_POLICY] = {"policy", {{0}}, false},
    [HTTP_ROUTE_WEBHOOK_AGAIN] = {"webhook_again", {{"number", BODY_WHOLE}}, false},
    [HTTP_ROUTE_WEBHOOK_PAUSE] = {"webhook_pause", {{0}}, false},
    [HTTP_ROUTE_WEBHOOK_RESUME] = {"webhook_resume", {{0}}, false},
    [HTTP_ROUTE_DRAIN] = {"drain", {{0}}, false},
};

bool api__take_body(struct ask *k, const struct body_field *fields, size_t n)
{
    struct err err = {0};
    if (api__body_read(k, &err) == 0 && (!fields || api__body_check(k->body, fields, n, &err) == 0))
        return true;
    if (err.code == ERR_PROTOCOL)
        api__problem(k, 415, "unsupported_media_type", NULL, err.text);
    else
        api__problem(k, 400, "bad_request", NULL, err.text);
    return false;
}

static void absent(struct ask *k, bool row)
{
    (void)row;
    api__problem(k, 404, "not_found", NULL, "there is nothing");
}

/* The ids as an array of Postgres. false: k was answered. */
static bool take_ids(struct ask *k, struct buf *out)
{
    const json_t *ids = json_object_get(k->body, "ids");
    if (!json_array_size(ids) || json_array_size(ids) > IDS_MAX) {
        api__problem(k, 400, "bad_request", NULL, "ids must be a list of 1 to 500 ids");
        return false;
    }
    for (size_t i = 0; i < json_array_size(ids); i++)
        buf_printf(out, "%c%lld", i ? ',' : '{',
                   (long long)json_integer_value(json_array_get(ids, i)));
    buf_puts(out, "}");
    json_object_del(k->body, "ids");
    return true;
}

static void operate_many(struct ask *k)
{
    struct buf ids = {0};
    struct conn_param params[4] = {{.data = k->who}, {.data = operations[k->match.route].action}};
    if (take_ids(k, &ids)) {
        k->text = json_dumps(k->body, JSON_COMPACT);
        params[2].data = buf_str(&ids);
        params[3].data = k->text;
        api__query(k, k->api->acts, "operate_many.sql", false, 4, params, absent);
    }
    buf_done(&ids);
}

/* It is recorded; now it happens. */
static void drained(struct ask *k, const char *text, size_t len)
{
    const struct api *a = k->api;
    api__answer(k, 200, NULL, text, len);
    a->drain(a->arg);
}

void api__operate(struct ask *k)
{
    static const struct api_param subject[] = {
        {"id", API_NUMBER}, {"account", API_TEXT}, {"webhook", API_TEXT}};
    const struct body_field *fields = operations[k->match.route].fields;
    struct conn_param params[5] = {{.data = k->who}, {.data = operations[k->match.route].action}};
    size_t n = 0;
    while (n < FIELDS && fields[n].name)
        n++;
    if (!api__take_params(k, subject, ARRAY_LEN(subject), params + 2) ||
        !api__take_body(k, k->match.route == HTTP_ROUTE_POLICY ? NULL : fields, n))
        return;
    if (operations[k->match.route].many) {
        operate_many(k);
        return;
    }
    if (k->match.route == HTTP_ROUTE_DRAIN) {
        json_object_set_new(k->body, "relay", json_string(k->api->relay(k->api->arg)));
        k->extend = drained;
    }
    if (params[4].data)
        json_object_set_new(k->body, "webhook", json_string(params[4].data));
    k->text = json_dumps(k->body, JSON_COMPACT);
    params[4] = (struct conn_param){.data = k->text};
    api__query(k, k->api->acts, "operate.sql", false, 5, params, absent);
}

/* What the relay that is asked knows beside the database. */
void api__extend_account(struct ask *k, const char *text, size_t len)
{
    struct api_account now = {0};
    struct buf out = {0};
    char amount[40];
    const char *name = http_param(&k->match.params, "account");
    PRE(len > 2 && text[len - 1] == '}');
    bool known = k->api->account(k->api->arg, name, &now);
    buf_put(&out, text, len - 1);
    buf_printf(&out, ", \"window\" : ");
    if (known)
        buf_printf(&out, "%u", now.window);
    else
        buf_puts(&out, "null");
    if (known && now.has_balance)
        buf_printf(&out, ", \"balance\" : \"%s\"}", u128_text(now.balance, amount));
    else
        buf_puts(&out, ", \"balance\" : null}");
    api__answer(k, 200, NULL, (const char *)out.data, out.len);
    buf_done(&out);
}
