/* The room: the server, two sessions of the database, and who may ask.
 *
 *   request -> route, Host, Origin -> token (acts) -> rate -> route's statement -> answer
 *
 * A request is answered once, and holds its place until then. Closing ends the sessions first,
 * which ends every statement, so every request is answered before the server goes. */
#include <stdlib.h>
#include <string.h>

#include "api_internal.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/hex.h"
#include "base/table.h"
#include "chain/codec/hash.h"
#include "events_internal.h"
#include "loop/peer.h"

enum {
    RATE = 200,
    CONNECTIONS_MAX = 500,
    RATES_MAX = 1000, /* tokens and addresses whose rate is kept */
    BACKOFF_CAP_MS = 2000,
    ANSWER_MS = 15000, /* a session that is silent for longer is given up */
};

/* Of a browser's pages only the relay's own gets at an answer, and it runs no script but the
 * relay's. Nothing keeps one. */
static const char headers[] =
    "Cache-Control: no-store\r\n"
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "X-Content-Type-Options: nosniff\r\n";

enum { API_RATE_MAX = API_HASH_HEX + 1 };
struct token_rate {
    /* Of a token; "@" and an address, for those that it had refused; "#" and the hash of one that
     * was good. */
    char name[API_RATE_MAX];
    struct http_rate rate;
    UT_hash_handle hh;
};

/* One plan for all values: sql/transactions.sql skips what they do not ask for when it runs, and
 * planning it takes longer than most pages do. */
static const char *const setup[] = {"SET statement_timeout = '5s'", "SET lock_timeout = '2s'",
                                    "SET plan_cache_mode = force_generic_plan", NULL};

/* ---- who asks ---- */

static void forget_rates(struct api *a)
{
    struct token_rate *t, *next;
    HASH_ITER(hh, a->rates, t, next)
    {
        HASH_DEL(a->rates, t);
        free(t);
    }
}

static struct http_rate *rate_of(struct api *a, const char *name)
{
    struct token_rate *t = NULL;
    HASH_FIND_STR(a->rates, name, t);
    if (!t) {
        if (HASH_COUNT(a->rates) >= RATES_MAX)
            forget_rates(a);
        t = xcalloc(1, sizeof(*t));
        memcpy(t->name, name, strlen(name));
        HASH_ADD_STR(a->rates, name, t);
    }
    return &t->rate;
}

static bool within_rate(struct api *a, const char *name)
{
    return http_rate_take(rate_of(a, name), a->rate, loop_now_ms(a->loop));
}

/* Who has shown so many bad tokens lately that the database is not asked for another one: by
 * address, without the port. */
static struct http_rate *refused_of(const struct ask *k)
{
    char name[API_RATE_MAX];
    const char *peer = http_peer(k->r), *port = strrchr(peer, ':');
    snprintf(name, sizeof(name), "@%.*s", port ? (int)(port - peer) : (int)strlen(peer), peer);
    return rate_of(k->api, name);
}

static void unauthorized(struct ask *k, const char *challenge, const char *detail)
{
    struct api *a = k->api;
    if (http_rate_take(refused_of(k), a->rate, loop_now_ms(a->loop)))
        api__refuse(k, 401, "unauthorized", challenge, detail);
    else
        api__refuse(k, 429, "too_many_requests", "Retry-After: 1\r\n",
                    "this address shows bad tokens too fast (http.rate)");
}

static bool is_guessing(const struct ask *k)
{
    struct http_rate now = *refused_of(k);
    return !http_rate_take(&now, k->api->rate, loop_now_ms(k->api->loop));
}

/* A token that was good lately, and so is no guess. */
static bool is_known(const struct ask *k)
{
    char name[API_RATE_MAX];
    struct token_rate *t = NULL;
    snprintf(name, sizeof(name), "#%s", k->hash);
    HASH_FIND_STR(k->api->rates, name, t);
    return t;
}

static void remember(const struct ask *k)
{
    char name[API_RATE_MAX];
    snprintf(name, sizeof(name), "#%s", k->hash);
    rate_of(k->api, name);
}

static void on_token(struct conn_query *q, const struct conn_result *r)
{
    struct ask *k = CONTAINER_OF(q, struct ask, query);
    char detail[80];
    int len = 0;
    if (q->err.code) {
        struct err err = q->err;
        api__database_problem(k, &err);
        return;
    }
    if (!conn_result_rows(r)) {
        unauthorized(k, "WWW-Authenticate: Bearer error=\"invalid_token\"\r\n",
                     "there is no such token, or it was revoked, or has expired");
        return;
    }
    const char *name = conn_result_get(r, 0, 0, &len);
    INVARIANT((size_t)len < sizeof(k->who));
    memcpy(k->who, name, (size_t)len);
    remember(k);
    if (*conn_result_get(r, 0, 1, &len) != 't') {
        snprintf(detail, sizeof(detail), "the token has not the scope %s",
                 http_scope_name(http_routes[k->match.route].scope));
        api__refuse(k, 403, "forbidden", NULL, detail);
    } else if (!k->api->reads) {
        api__problem(k, 503, "unavailable", NULL, "the relay stops");
    } else if (!within_rate(k->api, k->who)) {
        api__problem(k, 429, "too_many_requests", "Retry-After: 1\r\n",
                     "the token's requests come too fast (http.rate)");
    } else {
        api__route(k);
    }
}

static void hash_token(struct ask *k, const char *token)
{
    uint8_t hash[32];
    struct buf hex = {0};
    hash_sha256(token, strlen(token), hash);
    hex_put(&hex, hash, sizeof(hash));
    memcpy(k->hash, buf_str(&hex), sizeof(k->hash));
    buf_done(&hex);
}

static void ask_token(struct ask *k)
{
    static const char file[] = "token_use.sql";
    const char *token = http_bearer(http_header(k->r, "authorization"));
    if (token)
        hash_token(k, token);
    if (!token || (!is_known(k) && is_guessing(k))) {
        unauthorized(k, "WWW-Authenticate: Bearer\r\n",
                     "this needs a token: Authorization: Bearer TOKEN (txrelay token create)");
        return;
    }
    struct conn_param params[] = {
        {.data = k->hash}, {.data = http_scope_name(http_routes[k->match.route].scope)}, {0}};
    conn_query_start(k->api->acts, &k->query, file, api__sql(file), 3, params, 0, on_token);
}

static void not_matched(struct ask *k)
{
    char allow[60];
    switch (k->match.status) {
    case 404:
        api__problem(k, 404, "not_found", NULL, "there is nothing at this path: /openapi.json");
        return;
    case 405:
        snprintf(allow, sizeof(allow), "Allow: %s\r\n", k->match.allow);
        api__problem(k, 405, "method_not_allowed", allow, "this path has other methods");
        return;
    default:
        api__problem(k, 400, "bad_request", NULL, k->match.why);
        return;
    }
}

static void on_request(void *arg, struct http_request *r)
{
    struct api *a = arg;
    struct ask *k = xcalloc(1, sizeof(*k));
    const char *host = http_header(r, "host"), *twice = api__repeated_header(r);
    char detail[60];
    k->api = a;
    k->r = r;
    k->since_ms = loop_now_ms(a->loop);
    http_match(http_method(r), http_target(r), &k->match);
    if (twice) {
        snprintf(detail, sizeof(detail), "the header %s comes more than once", twice);
        api__problem(k, 400, "bad_request", NULL, detail);
    } else if (!host || !http_host_is_ours(host, a->host)) {
        api__refuse(k, 403, "foreign_host", NULL,
                    "this host answers to its own names only (http.host)");
    } else if (!http_origin_is_ours(http_header(r, "origin"), host)) {
        api__refuse(k, 403, "foreign_origin", NULL, "pages of other origins may not ask");
    } else if (k->match.status != 200) {
        not_matched(k);
    } else if (http_routes[k->match.route].scope == HTTP_NONE) {
        api__route(k);
    } else if (!a->reads) {
        api__problem(k, 503, "unavailable", NULL, "the relay stops");
    } else {
        ask_token(k);
    }
}

/* ---- life ---- */

static char *copy_of(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

int api_values(const struct api_config *c, struct err *err)
{
    if (loop_address_check(c->listen, err))
        return err->code;
    if (!c->cert_file != !c->key_file)
        return err_set(err, ERR_CONFIG, "http.cert_file and http.key_file belong together");
    if (c->ca_file && !c->cert_file)
        return err_set(err, ERR_CONFIG, "http.ca_file needs http.cert_file and http.key_file");
    return c->cert_file ? 0 : tls_listen_check(NULL, c->listen, err);
}

/* NULL without an error: cleartext. */
static struct tls_context *make_tls(const struct api_config *c, struct err *err)
{
    const struct tls_config tls = {.server = true,
                                   .http1 = true,
                                   .cert_file = c->cert_file,
                                   .key_file = c->key_file,
                                   .ca_file = c->ca_file};
    return c->cert_file ? tls_context_new(&tls, err) : NULL;
}

int api_check(const struct api_config *c, struct buf *out,
              void (*caution)(void *arg, const char *text), void *arg, struct err *err)
{
    if (api_values(c, err))
        return err->code;
    struct tls_context *tls = make_tls(c, err);
    if (c->cert_file && !tls)
        return err->code;
    buf_printf(out, "%s answers requests with %s", c->listen,
               c->ca_file ? "a certificate and a token" : "a token");
    if (tls) {
        buf_puts(out, "; TLS ");
        tls_context_shown(tls, out);
        tls_context_cautions(tls, caution, arg);
    }
    tls_context_free(tls);
    return 0;
}

static struct conn *session(struct api *a, const struct api_config *c)
{
    const struct conn_config config = {
        .dsn = c->dsn,
        .name = c->name,
        .setup = setup,
        .refuse_standby = true,
        .answer_timeout_ms = ANSWER_MS,
        .backoff_cap_ms = BACKOFF_CAP_MS,
    };
    struct conn *s = conn_new(a->loop, &config);
    conn_open(s);
    return s;
}

static void api_free(struct api *a)
{
    forget_rates(a);
    http_server_close(a->server);
    tls_context_free(a->tls);
    free(a->host);
    free(a);
}

struct api *api_open(struct loop *l, const struct api_config *config, struct err *err)
{
    if (api_values(config, err))
        return NULL;
    struct api *a = xcalloc(1, sizeof(*a));
    a->loop = l;
    a->host = copy_of(config->host);
    a->rate = config->rate ? config->rate : RATE;
    a->metadata = config->metadata;
    a->account = config->account;
    a->enrolment = config->enrolment;
    a->relay = config->relay;
    a->drain = config->drain;
    a->fee = config->fee;
    a->fee_forget = config->fee_forget;
    list_init(&a->fees);
    a->arg = config->arg;
    a->tls = make_tls(config, err);
    if (!config->cert_file || a->tls) {
        struct http_server_config server = {.address = config->listen,
                                            .tls = a->tls,
                                            .limits = {.connections_max = CONNECTIONS_MAX},
                                            .headers = headers,
                                            .on_request = on_request,
                                            .arg = a};
        a->server = http_server_new(l, &server, err);
    }
    if (!a->server) {
        api_free(a);
        return NULL;
    }
    a->reads = session(a, config);
    a->acts = session(a, config);
    a->hub = hub__new(a, config->listen_dsn);
    return a;
}

const char *api_address(const struct api *a)
{
    return http_server_address(a->server);
}

int api_reload(struct api *a, struct err *err)
{
    return a->tls ? tls_context_reload(a->tls, err) : 0;
}

void api_drain(struct api *a)
{
    hub__drain(a->hub);
    http_server_drain(a->server);
}

static void on_hub_closed(void *arg)
{
    struct api *a = arg;
    void (*cb)(void *arg) = a->cb;
    void *cb_arg = a->cb_arg;
    api_free(a);
    cb(cb_arg);
}

static void on_acts_closed(void *arg)
{
    struct api *a = arg;
    hub__close(a->hub, on_hub_closed, a);
}

static void on_reads_closed(void *arg)
{
    struct api *a = arg;
    struct conn *acts = a->acts;
    a->acts = NULL;
    conn_close(acts, on_acts_closed, a);
}

void api_close(struct api *a, void (*cb)(void *arg), void *arg)
{
    struct conn *reads = a->reads;
    a->cb = cb;
    a->cb_arg = arg;
    a->reads = NULL;
    api__dry_runs_end(a);
    hub__drain(a->hub);
    conn_close(reads, on_reads_closed, a);
}
