#include "hook/serve.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "hook/hooks.h"
#include "net/tls.h"

static void erase(char *key)
{
    if (key)
        explicit_bzero(key, strlen(key));
    free(key);
}

static int serve_open(void *arg, struct loop *l, struct service *s, struct err *err)
{
    struct hook_serve *h = arg;
    const struct config_webhooks *c = &h->file->webhooks;
    char *key = hooks_key_read(c->key_file, err);
    if (!key)
        return err->code;
    const struct hooks_config config = {
        .dsn = h->file->database.url,
        .name = "txrelay webhooks",
        .holder = service_holder(s),
        .key = key,
        .ca_file = c->ca_file,
        .allow_private = c->allow_private,
        .timeout_ms = c->timeout_ms,
    };
    h->hooks = hooks_open(l, &config, err);
    erase(key);
    return h->hooks ? 0 : err->code;
}

static void serve_drain(void *arg)
{
    hooks_drain(((struct hook_serve *)arg)->hooks);
}

static void serve_close(void *arg, void (*cb)(void *arg), void *cb_arg)
{
    struct hook_serve *h = arg;
    struct hooks *hooks = h->hooks;
    h->hooks = NULL;
    hooks_close(hooks, cb, cb_arg);
}

static void serve_metrics(void *arg, struct buf *out)
{
    const struct hook_serve *h = arg;
    if (h->hooks)
        hooks_metrics(h->hooks, out);
}

int hook_serve_check(const struct config_file *f, struct buf *out,
                     void (*caution)(void *arg, const char *text), void *arg, struct err *err)
{
    (void)caution;
    (void)arg;
    const struct config_webhooks *c = &f->webhooks;
    const struct tls_config config = {.http1 = true, .ca_file = c->ca_file};
    if (!c->key_file)
        return 0;
    if (!f->database.url)
        return err_set(err, ERR_CONFIG,
                       "webhooks.key_file is given, and no database: webhooks need one "
                       "(database.url)");
    char *key = hooks_key_read(c->key_file, err);
    if (!key)
        return err->code;
    erase(key);
    struct tls_context *tls = tls_context_new(&config, err);
    if (!tls)
        return err->code;
    tls_context_free(tls);
    buf_printf(out, "webhooks are delivered to %s",
               c->allow_private ? "any address, private networks included"
                                : "public addresses, by https");
    return 0;
}

int hook_serve_fill(struct hook_serve *h, const struct config_file *f, struct service_config *ret,
                    struct err *err)
{
    struct buf shown = {0};
    *h = (struct hook_serve){.file = f};
    int rc = hook_serve_check(f, &shown, NULL, NULL, err);
    buf_done(&shown);
    if (rc || !f->webhooks.key_file)
        return rc;
    ret->webhooks = (struct service_http){.open = serve_open,
                                          .drain = serve_drain,
                                          .close = serve_close,
                                          .metrics = serve_metrics,
                                          .arg = h};
    return 0;
}

void hook_serve_reload(struct hook_serve *h)
{
    struct err err = {0};
    if (h->hooks && hooks_reload(h->hooks, &err))
        log_error("webhook.reload_failed",
                  "text=\"%s\" kept=\"the certificates that were in force\"", err.text);
}
