/* A delivery: a POST with the headers of Standard Webhooks. What is signed is
 * "webhook-id.webhook-timestamp.body"; the id is the transaction's, so that a receiver knows a
 * repetition. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/host.h"
#include "base/log.h"
#include "chain/codec/hash.h"
#include "hooks_internal.h"

enum { MS = 1000 };

void hooks__release(void *item)
{
    struct delivery *d = item;
    if (d->call)
        http_call_cancel(d->call);
    loop_task_cancel(&d->refused);
    list_remove(&d->node);
    free(d->url);
    free(d->body);
    free(d);
}

static void put_signature(const struct delivery *d, const char *salt, const struct buf *text,
                          struct buf *out)
{
    uint8_t secret[32], mac[32];
    char shown[HOOK_BASE64_MAX];
    hooks__secret_of(d->hooks->key, d->webhook, salt, secret);
    hash_hmac_sha256(secret, sizeof(secret), text->data, text->len, mac);
    hook_base64(mac, sizeof(mac), shown);
    buf_printf(out, "%sv1,%s", out->len && out->data[out->len - 1] != ' ' ? " " : "", shown);
    explicit_bzero(secret, sizeof(secret));
}

/* The time is the wall clock's: it is for the receiver, which refuses what is old. */
static void put_headers(const struct delivery *d, struct buf *out)
{
    struct buf text = {0};
    uint64_t now = loop_wall_ms() / MS;
    buf_printf(&text, "tx_%" PRIu64 ".%" PRIu64 ".%s", d->id, now, d->body);
    buf_printf(out,
               "Content-Type: application/json\r\nUser-Agent: txrelay\r\nwebhook-id: tx_%" PRIu64
               "\r\nwebhook-timestamp: %" PRIu64 "\r\nwebhook-signature: ",
               d->id, now);
    put_signature(d, d->salt, &text, out);
    if (*d->salt_before)
        put_signature(d, d->salt_before, &text, out);
    buf_puts(out, "\r\n");
    buf_done(&text);
}

/* Cleartext stays in networks where an operator allows receivers anyway. */
static bool allowed(void *arg, const char *address, bool tls, struct err *err)
{
    const struct delivery *d = arg;
    bool is_public = host_address_is_public(address);
    if (!is_public && !d->hooks->allow_private)
        err_set(err, ERR_NET, "%s is an address of a private network (webhooks.allow_private)",
                address);
    else if (is_public && !tls)
        err_set(err, ERR_NET, "%s is a public address: https is needed", address);
    else
        return true;
    return false;
}

static void on_done(void *arg, int status, const struct err *err)
{
    struct delivery *d = arg;
    struct hooks *h = d->hooks;
    uint64_t lane = d->lane;
    struct hook_event ev = {.type = HOOK_EV_ANSWER, .lane = lane};
    char why[HOOK_WHY];
    d->call = NULL;
    metric_observe(&h->took, (double)(loop_now_ms(h->loop) - d->since_ms) / MS);
    ev.failed = err->code || !hook_taken(status);
    if (ev.failed) {
        if (err->code)
            snprintf(why, sizeof(why), "%s", err->text);
        else
            snprintf(why, sizeof(why), "it answered %d%s", status,
                     status >= 300 && status < 400 ? ", and redirects are not followed" : "");
        log_info("webhook.failed", "webhook=%s id=%" PRIu64 " text=\"%s\"", d->webhook, d->id, why);
        hooks__failed(h, lane, why);
    }
    hooks__step(h, &ev);
}

/* The URL is none: an answer like any other, but not inside of the step that sends. */
static void on_refused(struct loop_task *task)
{
    struct delivery *d = CONTAINER_OF(task, struct delivery, refused);
    struct hook_event ev = {.type = HOOK_EV_ANSWER, .lane = d->lane, .failed = true};
    hooks__step(d->hooks, &ev);
}

void hooks__send(struct delivery *d, uint64_t lane)
{
    struct hooks *h = d->hooks;
    struct buf headers = {0};
    struct err err = {0};
    put_headers(d, &headers);
    struct http_call_config config = {.url = d->url,
                                      .tls = h->tls,
                                      .headers = buf_str(&headers),
                                      .body = d->body,
                                      .len = strlen(d->body),
                                      .timeout_ms = h->timeout_ms,
                                      .allowed = allowed,
                                      .on_done = on_done,
                                      .arg = d};
    d->lane = lane;
    d->since_ms = loop_now_ms(h->loop);
    d->call = http_call_start(h->loop, &config, &err);
    buf_done(&headers);
    if (!d->call) {
        hooks__failed(h, lane, err.text);
        loop_post(h->loop, &d->refused, on_refused);
    }
}
