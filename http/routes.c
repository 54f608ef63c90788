/* Each route: which parameters it takes, of which kind, and the statement that answers it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_internal.h"
#include "base/check.h"
#include "embedded.h"

extern const struct embedded_file http_static_files[];

/* ---- parameters of paths and queries ---- */

enum { LIMIT_MAX = 500, DIGITS_MAX = 18, READ_PARAMS = 11 };

/* How a reading route is answered: $1, $2, ... are these parameters. */
struct reading {
    const char *file;
    struct api_param params[READ_PARAMS];
    const char *what; /* of the 404 where the statement has no row; NULL: it always has one */
};

static const struct reading readings[HTTP_ROUTE_COUNT] = {
    [HTTP_ROUTE_TRANSACTIONS] = {"transactions.sql",
                                 {{"account", API_TEXT},
                                  {"state", API_TEXT},
                                  {"outcome", API_TEXT},
                                  {"key", API_TEXT},
                                  {"creator", API_TEXT},
                                  {"hash", API_TEXT},
                                  {"nonce", API_NUMBER},
                                  {"from", API_TEXT},
                                  {"before", API_TEXT},
                                  {"limit", API_LIMIT},
                                  {"cursor", API_NUMBER}},
                                 NULL},
    [HTTP_ROUTE_TRANSACTION] = {"transaction.sql", {{"id", API_NUMBER}}, "no such transaction"},
    [HTTP_ROUTE_ACCOUNTS] = {"accounts.sql",
                             {{"account", API_TEXT}, {"cursor", API_TEXT}, {"limit", API_LIMIT}},
                             NULL},
    [HTTP_ROUTE_ACCOUNT] = {"account.sql", {{"account", API_TEXT}}, "no such account"},
    [HTTP_ROUTE_NONCES] = {"nonces.sql",
                           {{"account", API_TEXT}, {"limit", API_LIMIT}, {"from", API_NUMBER}},
                           "no such account"},
    [HTTP_ROUTE_LEADERS] = {"leaders.sql",
                            {{"account", API_TEXT}, {"limit", API_LIMIT}, {"cursor", API_NUMBER}},
                            NULL},
    [HTTP_ROUTE_WEBHOOKS] = {"webhooks.sql", {{"limit", API_LIMIT}, {"cursor", API_TEXT}}, NULL},
    [HTTP_ROUTE_WEBHOOK_DEAD] = {"webhook_dead.sql",
                                 {{"webhook", API_TEXT},
                                  {"limit", API_LIMIT},
                                  {"cursor", API_NUMBER}},
                                 NULL},
    [HTTP_ROUTE_OVERVIEW] = {"overview.sql", {{NULL, API_TEXT}}, NULL},
    [HTTP_ROUTE_CLUSTER] = {"cluster.sql", {{NULL, API_TEXT}}, NULL},
    [HTTP_ROUTE_OPERATIONS] = {"operations.sql",
                               {{"limit", API_LIMIT}, {"cursor", API_NUMBER}},
                               NULL},
};

static bool is_kind(const char *value, enum api_param_kind kind)
{
    size_t digits = strspn(value, "0123456789");
    if (kind == API_TEXT)
        return true;
    if (!digits || digits > DIGITS_MAX || value[digits])
        return false;
    return kind == API_NUMBER ||
           (strtoll(value, NULL, 10) >= 1 && strtoll(value, NULL, 10) <= LIMIT_MAX);
}

bool api__take_params(struct ask *k, const struct api_param *list, size_t n,
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
                 at == n                      ? "there is no parameter \"%s\" here"
                 : list[at].kind == API_LIMIT ? "%s must be a whole number from 1 to 500"
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
    char text[100], shown[41];
    (void)row;
    PRE(what && k->match.params.count);
    plain_text(shown, sizeof(shown), k->match.params.list[0].value);
    snprintf(text, sizeof(text), "%s: %s", what, shown);
    api__problem(k, 404, "not_found", NULL, text);
}

static void read_route(struct ask *k)
{
    const struct reading *x = &readings[k->match.route];
    struct conn_param params[READ_PARAMS] = {{0}};
    int n = 0;
    /* Which plan is good depends on the filters that are given: that list is planned each time. */
    bool prepare = k->match.route != HTTP_ROUTE_TRANSACTIONS;
    PRE(x->file);
    while (n < READ_PARAMS && x->params[n].name)
        n++;
    if (k->match.route == HTTP_ROUTE_ACCOUNT)
        k->extend = api__extend_account;
    if (k->match.route == HTTP_ROUTE_TRANSACTION)
        k->extend = api__extend_transaction;
    if (api__take_params(k, x->params, (size_t)n, params))
        api__query(k, k->api->reads, x->file, prepare, n, params, nothing);
}

/* ---- all of them ---- */

void api__route(struct ask *k)
{
    switch (k->match.route) {
    case HTTP_ROUTE_OPENAPI:
        if (!api__take_params(k, NULL, 0, NULL))
            return;
        api__answer(k, 200, NULL, http_static_files[0].text, http_static_files[0].len);
        return;
    case HTTP_ROUTE_TRANSACTIONS:
    case HTTP_ROUTE_TRANSACTION:
    case HTTP_ROUTE_ACCOUNTS:
    case HTTP_ROUTE_ACCOUNT:
    case HTTP_ROUTE_NONCES:
    case HTTP_ROUTE_CLUSTER:
    case HTTP_ROUTE_LEADERS:
    case HTTP_ROUTE_OVERVIEW:
    case HTTP_ROUTE_OPERATIONS:
    case HTTP_ROUTE_WEBHOOKS:
    case HTTP_ROUTE_WEBHOOK_DEAD:
        read_route(k);
        return;
    case HTTP_ROUTE_CANCEL:
    case HTTP_ROUTE_BUMP:
    case HTTP_ROUTE_RETRY:
    case HTTP_ROUTE_PAUSE:
    case HTTP_ROUTE_RESUME:
    case HTTP_ROUTE_POLICY:
    case HTTP_ROUTE_CANCEL_MANY:
    case HTTP_ROUTE_BUMP_MANY:
    case HTTP_ROUTE_RETRY_MANY:
    case HTTP_ROUTE_WEBHOOK_AGAIN:
    case HTTP_ROUTE_WEBHOOK_PAUSE:
    case HTTP_ROUTE_WEBHOOK_RESUME:
    case HTTP_ROUTE_DRAIN:
        api__operate(k);
        return;
    case HTTP_ROUTE_CALLS:
    case HTTP_ROUTE_CALLS_OF:
    case HTTP_ROUTE_CALL_TYPES:
        api__calls(k);
        return;
    case HTTP_ROUTE_REGISTER:
        api__register(k);
        return;
    case HTTP_ROUTE_ENQUEUE:
        api__enqueue(k);
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
