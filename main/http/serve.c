#include "http/serve.h"

#include <string.h>

#include "base/log.h"
#include "http/api.h"

static const struct metadata *metadata(void *arg)
{
    return service_metadata(((struct http_serve *)arg)->service);
}

static bool account(void *arg, const char *name, struct api_account *ret)
{
    struct service_account_now now;
    if (!service_account_now(((struct http_serve *)arg)->service, name, &now))
        return false;
    *ret = (struct api_account){
        .window = now.window, .has_balance = now.has_balance, .balance = now.balance};
    return true;
}

static bool enrolment(void *arg, const uint8_t *account_id, size_t len, struct api_enrolment *ret)
{
    struct service_enrolment e;
    if (!service_enrolment_of(((struct http_serve *)arg)->service, account_id, len, &e))
        return false;
    *ret = (struct api_enrolment){
        .lock_key = e.lock_key, .era_longest = e.era_longest, .era_immortal = e.era_immortal};
    memcpy(ret->address, e.address, sizeof(ret->address));
    memcpy(ret->genesis, e.genesis, sizeof(ret->genesis));
    return true;
}

static const char *relay(void *arg)
{
    return service_holder(((struct http_serve *)arg)->service);
}

static void drain(void *arg)
{
    service_ask_drain(((struct http_serve *)arg)->service);
}

static void *fee(void *arg, const uint8_t *call, size_t len,
                 void (*cb)(void *cb_arg, bool known, u128 fee), void *cb_arg)
{
    return service_fee_ask(((struct http_serve *)arg)->service, call, len, cb, cb_arg);
}

static void fee_forget(void *asked)
{
    service_fee_forget(asked);
}

static struct api_config api_config(const struct config_file *f)
{
    const struct config_http *c = &f->http;
    return (struct api_config){
        .listen = c->listen,
        .host = c->host,
        .cert_file = c->cert_file,
        .key_file = c->key_file,
        .ca_file = c->ca_file,
        .rate = c->rate,
        .dsn = f->database.url,
        .listen_dsn = f->database.listen_url ? f->database.listen_url : f->database.url,
        .name = "txrelay http",
    };
}

static int serve_open(void *arg, struct loop *l, struct service *s, struct err *err)
{
    struct http_serve *h = arg;
    struct api_config config = api_config(h->file);
    config.metadata = metadata;
    config.account = account;
    config.enrolment = enrolment;
    config.relay = relay;
    config.drain = drain;
    config.fee = fee;
    config.fee_forget = fee_forget;
    config.arg = h;
    h->service = s;
    h->api = api_open(l, &config, err);
    if (!h->api)
        return err->code;
    log_info("http.listening", "address=%s tls=%s", api_address(h->api),
             config.cert_file ? "yes" : "no");
    return 0;
}

static void serve_drain(void *arg)
{
    api_drain(((struct http_serve *)arg)->api);
}

static void serve_metrics(void *arg, struct buf *out)
{
    const struct http_serve *h = arg;
    if (h->api)
        api_metrics(h->api, out);
}

static void serve_close(void *arg, void (*cb)(void *arg), void *cb_arg)
{
    struct http_serve *h = arg;
    struct api *api = h->api;
    h->api = NULL;
    api_close(api, cb, cb_arg);
}

static int check_database(const struct config_file *f, struct err *err)
{
    if (f->database.url)
        return 0;
    return err_set(err, ERR_CONFIG,
                   "http.listen is given, and no database: the HTTP interface needs one "
                   "(database.url)");
}

int http_serve_check(const struct config_file *f, struct buf *out,
                     void (*caution)(void *arg, const char *text), void *arg, struct err *err)
{
    const struct api_config config = api_config(f);
    if (!f->http.listen)
        return 0;
    return check_database(f, err) ? err->code : api_check(&config, out, caution, arg, err);
}

int http_serve_fill(struct http_serve *h, const struct config_file *f, struct service_config *ret,
                    struct err *err)
{
    *h = (struct http_serve){.file = f};
    if (!f->http.listen)
        return 0;
    const struct api_config config = api_config(f);
    if (check_database(f, err) || api_values(&config, err))
        return err->code;
    ret->http = (struct service_http){.open = serve_open,
                                      .drain = serve_drain,
                                      .close = serve_close,
                                      .metrics = serve_metrics,
                                      .arg = h};
    return 0;
}

void http_serve_reload(struct http_serve *h)
{
    struct err err = {0};
    if (h->api && api_reload(h->api, &err))
        log_error("http.reload_failed", "text=\"%s\" kept=\"the certificates that were in force\"",
                  err.text);
}
