/* One call: resolve, connect to one address after the other, TLS, the request, the answer's head.
 *
 *   RESOLVE -> CONNECT (-> CONNECT the next address) -> SHAKE -> ANSWER -> done
 *
 * One timer bounds all of it. The end is a task, so that on_done never fires inside of a callback
 * of the socket or the parser. */
#include "net/http_client.h"

#include <llhttp.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/host.h"
#include "loop/socket.h"
#include "tls_internal.h"

enum { TIMEOUT_MS = 10000, HEAD_MAX = 16 << 10, URL_MAX = 2048, HOST_MAX = 255 };

struct http_call {
    struct loop *loop;
    struct http_call_config config;
    char *host;
    uint16_t port;
    bool secure;
    struct buf request;
    struct loop_resolve resolve;
    int address; /* that is tried */
    struct loop_socket *socket;
    struct tls_session *tls;
    struct loop_timer *timer;
    struct loop_task end;
    llhttp_t parser;
    size_t read; /* bytes of the answer */
    bool head;   /* it is whole, and the body is read */
    bool sent, over;
    int status;
    struct err err;
};

static void connect_next(struct http_call *c);

/* ---- the end ---- */

static void call_free(struct http_call *c)
{
    loop_resolve_cancel(&c->resolve);
    loop_task_cancel(&c->end);
    loop_timer_close(c->timer);
    if (c->socket)
        loop_socket_close(c->socket);
    tls__session_free(c->tls);
    buf_done(&c->request);
    free(c->host);
    free(c);
}

void http_call_cancel(struct http_call *c)
{
    call_free(c);
}

static void on_end_task(struct loop_task *task)
{
    struct http_call *c = CONTAINER_OF(task, struct http_call, end);
    void (*done)(void *arg, int status, const struct err *err) = c->config.on_done;
    void *arg = c->config.arg;
    int status = c->status;
    struct err err = c->err;
    call_free(c);
    done(arg, status, &err);
}

static void finish(struct http_call *c, int status)
{
    if (c->over)
        return;
    c->over = true;
    c->status = status;
    loop_post(c->loop, &c->end, on_end_task);
}

static void fail(struct http_call *c, const char *what, const char *why)
{
    if (c->over)
        return;
    err_set(&c->err, ERR_NET, "%s%s%s", what, *why ? ": " : "", why);
    finish(c, 0);
}

static void on_timeout(void *arg)
{
    struct http_call *c = arg;
    fail(c,
         !c->socket ? "no connection in time"
         : c->sent  ? "no answer in time"
                    : "no connection in time",
         "");
}

/* ---- the answer ---- */

static uint32_t timeout_of(const struct http_call *c)
{
    return c->config.timeout_ms ? c->config.timeout_ms : TIMEOUT_MS;
}

static void limit_silence(struct http_call *c)
{
    loop_timer_at(c->timer, loop_now_ms(c->loop) + timeout_of(c));
}

static int on_head(llhttp_t *p)
{
    struct http_call *c = p->data;
    int status = p->status_code;
    if (status < 200)
        return 0;
    c->head = c->config.on_part != NULL;
    if (!c->head)
        finish(c, status);
    return !c->head; /* 1: there is no body to read */
}

static int on_body(llhttp_t *p, const char *at, size_t len)
{
    struct http_call *c = p->data;
    limit_silence(c);
    if (c->config.on_part(c->config.arg, p->status_code, at, len))
        return 0;
    finish(c, p->status_code);
    return -1;
}

static int on_whole(llhttp_t *p)
{
    struct http_call *c = p->data;
    if (c->head) /* and not that of an answer before it, such as 100 */
        finish(c, p->status_code);
    return 0;
}

static const llhttp_settings_t settings = {
    .on_headers_complete = on_head, .on_body = on_body, .on_message_complete = on_whole};

static bool on_plain(void *arg, const uint8_t *data, size_t len)
{
    struct http_call *c = arg;
    size_t room = c->head ? len : HEAD_MAX - c->read;
    if (c->over)
        return false;
    llhttp_errno_t rc = llhttp_execute(&c->parser, (const char *)data, len < room ? len : room);
    c->read += len;
    if (c->over)
        return false;
    if (rc != HPE_OK)
        fail(c, "the answer is not HTTP/1", llhttp_get_error_reason(&c->parser));
    else if (len > room)
        fail(c, "the head of the answer is too long", "");
    return !c->over;
}

/* ---- the connection ---- */

static void send_tls(struct http_call *c)
{
    const uint8_t *data = NULL;
    size_t n = tls__session_out(c->tls, &data);
    if (n)
        loop_socket_write(c->socket, data, n);
    tls__session_sent(c->tls);
}

static void send_request(struct http_call *c)
{
    struct err err = {0};
    c->sent = true;
    if (!c->tls)
        loop_socket_write(c->socket, c->request.data, c->request.len);
    else if (tls__session_put(c->tls, c->request.data, c->request.len, &err))
        fail(c, err.text, "");
}

static void on_open(void *arg)
{
    struct http_call *c = arg;
    struct err err = {0};
    if (!c->secure) {
        send_request(c);
        return;
    }
    c->tls = tls__session_new(c->config.tls, c->host);
    if (tls__session_start(c->tls, &err))
        fail(c, err.text, "");
    send_tls(c);
}

static void on_bytes(void *arg, const uint8_t *data, size_t len)
{
    struct http_call *c = arg;
    struct err err = {0};
    if (c->over)
        return;
    if (!c->tls) {
        on_plain(c, data, len);
        return;
    }
    if (tls__session_feed(c->tls, data, len, on_plain, c, &err))
        fail(c, err.text, "");
    else if (tls__session_up(c->tls) && !c->sent)
        send_request(c);
    send_tls(c);
}

static void on_end(void *arg, const struct err *why)
{
    struct http_call *c = arg;
    if (c->over)
        return;
    if (!c->sent && !c->tls) {
        c->err = *why;
        c->socket = loop_socket_close(c->socket);
        c->address++;
        connect_next(c);
        return;
    }
    fail(c, "the connection ended before an answer", why->code ? why->text : "");
}

/* A request is small, and nothing follows it. */
static void on_written(void *arg)
{
    (void)arg;
}

static const struct loop_socket_events events = {
    .on_open = on_open, .on_bytes = on_bytes, .on_written = on_written, .on_end = on_end};

/* Each address is asked for just before it is connected to. */
static void connect_next(struct http_call *c)
{
    for (; c->address < c->resolve.count; c->address++) {
        const char *address = c->resolve.addr[c->address];
        struct err err = {0};
        if (c->config.allowed && !c->config.allowed(c->config.arg, address, c->secure, &err)) {
            c->err = err;
            continue;
        }
        char *text = xasprintf("tcp:%s:%u", address, c->port);
        c->socket = loop_socket_connect(c->loop, text, &events, c, &err);
        free(text);
        if (c->socket)
            return;
        c->err = err;
    }
    finish(c, 0); /* err is of the last address */
}

static void on_resolved(struct loop_resolve *r)
{
    struct http_call *c = CONTAINER_OF(r, struct http_call, resolve);
    if (r->err.code || !r->count)
        fail(c, "the host is not known", r->err.text);
    else
        connect_next(c);
}

/* ---- the request ---- */

static int refuse(struct err *err, const char *url, const char *why)
{
    char *shown = host_url_shown(url);
    err_set(err, ERR_ARGUMENT, "url \"%.100s\": %s; write https://HOST[:PORT]/PATH", shown, why);
    free(shown);
    return err->code;
}

static int parse(struct http_call *c, const char *url, const char **ret_target,
                 size_t *ret_authority, struct err *err)
{
    const char *port = NULL;
    c->secure = !strncmp(url, "https://", 8);
    if (!c->secure && strncmp(url, "http://", 7) != 0)
        return refuse(err, url, "has another scheme");
    if (strlen(url) > URL_MAX)
        return refuse(err, url, "is too long");
    for (const char *p = url; *p; p++)
        if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f || *p == '#')
            return refuse(err, url, "has a character that does not belong there");
    const char *rest = url + (c->secure ? 8 : 7), *host = rest;
    size_t authority = strcspn(rest, "/?");
    if (memchr(rest, '@', authority))
        return refuse(err, url, "has a user");
    size_t len = host_split(&host, authority, &port);
    if (!len || len > HOST_MAX)
        return refuse(err, url, "has no usable host");
    char *end = NULL;
    long number = port ? strtol(port, &end, 10) : c->secure ? 443 : 80;
    if (number < 1 || number > UINT16_MAX || (port && end != rest + authority))
        return refuse(err, url, "has no usable port");
    if (c->secure && !c->config.tls)
        return refuse(err, url, "needs TLS, and there is none");
    c->port = (uint16_t)number;
    c->host = xstrndup(host, len);
    *ret_target = rest + authority;
    *ret_authority = authority;
    return 0;
}

static void put_request(struct http_call *c, const char *target, size_t authority)
{
    buf_printf(&c->request, "%s %s%s HTTP/1.1\r\nHost: ", c->config.on_part ? "GET" : "POST",
               *target == '/' ? "" : "/", target);
    buf_put(&c->request, target - authority, authority);
    buf_puts(&c->request, "\r\n");
    if (!c->config.on_part)
        buf_printf(&c->request, "Content-Length: %zu\r\n", c->config.len);
    buf_printf(&c->request, "Connection: close\r\n%s\r\n",
               c->config.headers ? c->config.headers : "");
    buf_put(&c->request, c->config.body, c->config.len);
    c->config.body = c->config.headers = c->config.url = NULL;
}

struct http_call *http_call_start(struct loop *l, const struct http_call_config *config,
                                  struct err *err)
{
    struct http_call *c = xcalloc(1, sizeof(*c));
    const char *target = NULL;
    size_t authority = 0;
    c->loop = l;
    c->config = *config;
    if (parse(c, config->url, &target, &authority, err)) {
        free(c);
        return NULL;
    }
    put_request(c, target, authority);
    llhttp_init(&c->parser, HTTP_RESPONSE, &settings);
    c->parser.data = c;
    c->timer = loop_timer_new(l, on_timeout, c);
    limit_silence(c);
    if (!config->address) {
        loop_resolve_start(l, &c->resolve, c->host, on_resolved);
        return c;
    }
    c->socket = loop_socket_connect(l, config->address, &events, c, err);
    if (c->socket)
        return c;
    call_free(c);
    return NULL;
}
