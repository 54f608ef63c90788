#include "http/serve.h"

#include "base/log.h"
#include "http/api.h"

static const struct metadata *metadata(void *arg)
{
    return service_metadata(((struct http_serve *)arg)->service);
}

static int serve_open(void *arg, struct loop *l, struct service *s, struct err *err)
{
    struct http_serve *h = arg;
    const struct config_http *c = &h->file->http;
    const struct api_config config = {
        .listen = c->listen,
        .host = c->host,
        .cert_file = c->cert_file,
        .key_file = c->key_file,
        .ca_file = c->ca_file,
        .rate = c->rate,
        .dsn = h->file->database.url,
        .name = "txrelay http",
        .metadata = metadata,
        .arg = h,
    };
    h->service = s;
    h->api = api_open(l, &config, err);
    if (!h->api)
        return err->code;
    log_info("http.listening", "address=%s tls=%s", api_address(h->api),
             c->cert_file ? "yes" : "no");
    return 0;
}

static void serve_drain(void *arg)
{
    api_drain(((struct http_serve *)arg)->api);
}

static void serve_close(void *arg, void (*cb)(void *arg), void *cb_arg)
{
    struct http_serve *h = arg;
    struct api *api = h->api;
    h->api = NULL;
    api_close(api, cb, cb_arg);
}

int http_serve_fill(struct http_serve *h, const struct config_file *f, struct service_config *ret,
                    struct err *err)
{
    *h = (struct http_serve){.file = f};
    if (!f->http.listen)
        return 0;
    if (!f->database.url)
        return err_set(err, ERR_CONFIG,
                       "http.listen is given, and no database: the HTTP interface needs one "
                       "(database.url)");
    ret->http = (struct service_http){
        .open = serve_open, .drain = serve_drain, .close = serve_close, .arg = h};
    return 0;
}

void http_serve_reload(struct http_serve *h)
{
    struct err err = {0};
    if (h->api && api_reload(h->api, &err))
        log_error("http.reload_failed", "text=\"%s\" kept=\"the certificates that were in force\"",
                  err.text);
}
