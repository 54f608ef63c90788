/* What a request asks for: its route, its arguments and who asks. Pure: texts in, decisions out. */
#ifndef HTTP_CORE_REQUEST_H
#define HTTP_CORE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a bearer may do. NONE: anybody. */
enum http_scope { HTTP_NONE, HTTP_READ, HTTP_ENQUEUE, HTTP_OPERATE };
const char *http_scope_name(enum http_scope scope); /* "read"; "" for NONE */

/* X(id, method, path, scope): {name} stands for one segment. docs/http.md and http/openapi.json
 * describe each of them, and a test holds the three together. */
#define HTTP_ROUTES(X)                                                                             \
    X(PAGE, "GET", "/", NONE)                                                                      \
    X(PAGE_FILE, "GET", "/page/{file}", NONE)                                                      \
    X(OPENAPI, "GET", "/openapi.json", NONE)                                                       \
    X(TRANSACTIONS, "GET", "/v1/transactions", READ)                                               \
    X(ENQUEUE, "POST", "/v1/transactions", ENQUEUE)                                                \
    X(TRANSACTION, "GET", "/v1/transactions/{id}", READ)                                           \
    X(CANCEL, "POST", "/v1/transactions/{id}/cancel", OPERATE)                                     \
    X(BUMP, "POST", "/v1/transactions/{id}/bump", OPERATE)                                         \
    X(RETRY, "POST", "/v1/transactions/{id}/retry", OPERATE)                                       \
    X(CANCEL_MANY, "POST", "/v1/transactions/cancel", OPERATE)                                     \
    X(BUMP_MANY, "POST", "/v1/transactions/bump", OPERATE)                                         \
    X(RETRY_MANY, "POST", "/v1/transactions/retry", OPERATE)                                       \
    X(CALLS, "GET", "/v1/calls", READ)                                                             \
    X(CALLS_OF, "GET", "/v1/calls/{pallet}", READ)                                                 \
    X(CALL_TYPES, "GET", "/v1/calls/{pallet}/{call}", READ)                                        \
    X(ACCOUNTS, "GET", "/v1/accounts", READ)                                                       \
    X(REGISTER, "POST", "/v1/accounts", OPERATE)                                                   \
    X(ACCOUNT, "GET", "/v1/accounts/{account}", READ)                                              \
    X(NONCES, "GET", "/v1/accounts/{account}/nonces", READ)                                        \
    X(PAUSE, "POST", "/v1/accounts/{account}/pause", OPERATE)                                      \
    X(RESUME, "POST", "/v1/accounts/{account}/resume", OPERATE)                                    \
    X(POLICY, "POST", "/v1/accounts/{account}/policy", OPERATE)                                    \
    X(CLUSTER, "GET", "/v1/cluster", READ)                                                         \
    X(OVERVIEW, "GET", "/v1/overview", READ)                                                       \
    X(EVENTS, "GET", "/v1/events", READ)                                                           \
    X(LEADERS, "GET", "/v1/leaders", READ)                                                         \
    X(WEBHOOKS, "GET", "/v1/webhooks", OPERATE)                                                    \
    X(WEBHOOK_DEAD, "GET", "/v1/webhooks/{webhook}/dead", OPERATE)                                 \
    X(WEBHOOK_AGAIN, "POST", "/v1/webhooks/{webhook}/again", OPERATE)                              \
    X(WEBHOOK_PAUSE, "POST", "/v1/webhooks/{webhook}/pause", OPERATE)                              \
    X(WEBHOOK_RESUME, "POST", "/v1/webhooks/{webhook}/resume", OPERATE)                            \
    X(DRAIN, "POST", "/v1/relay/drain", OPERATE)                                                   \
    X(OPERATIONS, "GET", "/v1/operations", OPERATE)

enum http_route_id {
#define X(id, method, path, scope) HTTP_ROUTE_##id,
    HTTP_ROUTES(X)
#undef X
        HTTP_ROUTE_COUNT
};

struct http_route {
    const char *method, *path;
    enum http_scope scope;
};
extern const struct http_route http_routes[HTTP_ROUTE_COUNT];

/* Names and values of a path and a query, decoded. Texts lie in `text`. */
enum { HTTP_PARAMS_MAX = 16, HTTP_PARAMS_BYTES = 4096 };
struct http_params {
    struct {
        const char *name, *value;
    } list[HTTP_PARAMS_MAX];
    size_t count, used;
    char text[HTTP_PARAMS_BYTES];
};
/* NULL: there is none. */
const char *http_param(const struct http_params *p, const char *name);

struct http_match {
    int status; /* 200; 404: no route has the path; 405: not with this method; 400: why says more */
    enum http_route_id route; /* 200 */
    char allow[40];           /* 405: for the header of this name */
    const char *why;
    struct http_params params; /* of the path, then those of the query */
};
/* method: GET for HEAD. target: the path and the query. */
void http_match(const char *method, const char *target, struct http_match *ret);

/* The token of an Authorization header (NULL allowed). NULL: there is none, or it is no token. */
enum { HTTP_TOKEN_MAX = 200 };
const char *http_bearer(const char *authorization);

/* Is a Host header's value a name of this machine, or `name` (NULL: none), with any port? */
bool http_host_is_ours(const char *host, const char *name);
/* May a browser's page of this Origin (NULL: no browser, or the same page) ask? Only one that this
 * host served. */
bool http_origin_is_ours(const char *origin, const char *host);

/* A bucket that fills with `per_s` a second, up to that number. */
struct http_rate {
    double level;
    uint64_t at_ms; /* 0: it is full */
};
bool http_rate_take(struct http_rate *r, uint32_t per_s, uint64_t now_ms);

#endif
