/* The server is libwebsockets' too, in a context of its own. */
#define _GNU_SOURCE
#include "ws_server.h"

#include <libwebsockets.h>
#include <openssl/ssl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"

struct message {
    struct list node;
    size_t len;
    uint8_t data[];
};

struct ws_peer {
    struct lws *wsi;
    struct ws_server *server;
    struct list outgoing;
    struct buf incoming;
    void *data;
    bool cut;
};

struct ws_server {
    struct loop *loop;
    struct ws_script script;
    struct lws_context *context;
    int port;
    unsigned accepted;
    char authorization[256], path[256]; /* of the last request */
    SSL_CTX *client_tls;
    struct loop_task task;
    unsigned rounds;
    void (*closed)(void *arg);
    void *closed_arg;
};

static int peer_open(struct ws_server *s, struct ws_peer *p, struct lws *wsi)
{
    *p = (struct ws_peer){.wsi = wsi, .server = s};
    list_init(&p->outgoing);
    s->accepted++;
    if (s->script.on_open)
        s->script.on_open(s->script.arg, p);
    return p->cut ? -1 : 0;
}

static int peer_receive(struct ws_server *s, struct ws_peer *p, const void *in, size_t len)
{
    buf_put(&p->incoming, in, len);
    if (!lws_is_final_fragment(p->wsi) || lws_remaining_packet_payload(p->wsi))
        return 0;
    struct buf text = p->incoming;
    p->incoming = (struct buf){0};
    if (s->script.on_text)
        s->script.on_text(s->script.arg, p, buf_str(&text), text.len);
    buf_done(&text);
    return p->cut ? -1 : 0;
}

static int peer_write(struct ws_peer *p)
{
    if (p->cut)
        return -1;
    struct list *n = list_first(&p->outgoing);
    if (!n)
        return 0;
    struct message *m = CONTAINER_OF(n, struct message, node);
    list_remove(n);
    int rc = lws_write(p->wsi, m->data + LWS_PRE, m->len, LWS_WRITE_TEXT);
    free(m);
    if (!list_empty(&p->outgoing))
        lws_callback_on_writable(p->wsi);
    return rc < 0 ? -1 : 0;
}

static void peer_close(struct ws_server *s, struct ws_peer *p)
{
    if (s->script.on_close)
        s->script.on_close(s->script.arg, p);
    for (struct list *n = list_first(&p->outgoing); n; n = list_first(&p->outgoing)) {
        list_remove(n);
        free(CONTAINER_OF(n, struct message, node));
    }
    buf_done(&p->incoming);
}

static int requested(struct ws_server *s, struct lws *wsi)
{
    char query[128];
    s->authorization[0] = s->path[0] = 0;
    lws_hdr_copy(wsi, s->authorization, sizeof(s->authorization), WSI_TOKEN_HTTP_AUTHORIZATION);
    lws_hdr_copy(wsi, s->path, sizeof(s->path), WSI_TOKEN_GET_URI);
    size_t len = strlen(s->path);
    if (lws_hdr_copy_fragment(wsi, query, sizeof(query), WSI_TOKEN_HTTP_URI_ARGS, 0) > 0)
        snprintf(s->path + len, sizeof(s->path) - len, "?%s", query);
    return 0;
}

static int server_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                           size_t len)
{
    struct ws_server *s = lws_context_user(lws_get_context(wsi));
    switch ((int)reason) {
    case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION:
        return requested(s, wsi);
    case LWS_CALLBACK_ESTABLISHED:
        return peer_open(s, user, wsi);
    case LWS_CALLBACK_RECEIVE:
        return peer_receive(s, user, in, len);
    case LWS_CALLBACK_SERVER_WRITEABLE:
        return peer_write(user);
    case LWS_CALLBACK_CLOSED:
        peer_close(s, user);
        return 0;
    default:
        return 0;
    }
}

static const struct lws_protocols protocols[] = {
    {.name = "server",
     .callback = server_callback,
     .per_session_data_size = sizeof(struct ws_peer)},
    {.name = NULL},
};

struct ws_server *ws_server_new(struct loop *l, const struct ws_script *script, int port)
{
    struct ws_server *s = xcalloc(1, sizeof(*s));
    s->loop = l;
    s->script = *script;
    void *loops[] = {loop_uv(l)};
    struct lws_context_creation_info info = {
        .port = port,
        .iface = "127.0.0.1",
        .protocols = protocols,
        .gid = -1,
        .uid = -1,
        .options = LWS_SERVER_OPTION_LIBUV | LWS_SERVER_OPTION_EXPLICIT_VHOSTS,
        .foreign_loops = loops,
        .fd_limit_per_thread = 64,
        .user = s,
        .pcontext = &s->context,
    };
    if (script->cert_file) {
        info.options |= LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
        info.ssl_cert_filepath = script->cert_file;
        info.ssl_private_key_filepath = script->key_file;
        /* Left to itself the library makes one for the vhost, which it never frees. */
        info.provided_client_ssl_ctx = s->client_tls = SSL_CTX_new(TLS_client_method());
    }
    lws_set_log_level(0, NULL);
    s->context = lws_create_context(&info);
    INVARIANT(s->context);
    struct lws_vhost *vhost = lws_create_vhost(s->context, &info);
    INVARIANT(vhost);
    s->port = lws_get_vhost_listen_port(vhost);
    return s;
}

int ws_server_port(const struct ws_server *s)
{
    return s->port;
}

const char *ws_server_authorization(const struct ws_server *s)
{
    return s->authorization;
}

const char *ws_server_path(const struct ws_server *s)
{
    return s->path;
}

unsigned ws_server_accepted(const struct ws_server *s)
{
    return s->accepted;
}

/* Two calls, with the loop turns in between that the handles take to close (net/ws_context.c). */
static void destroy_round(struct loop_task *task)
{
    struct ws_server *s = CONTAINER_OF(task, struct ws_server, task);
    if (++s->rounds < 4) {
        loop_post(s->loop, task, destroy_round);
        return;
    }
    lws_context_destroy(s->context);
    INVARIANT(!s->context);
    void (*cb)(void *arg) = s->closed;
    void *cb_arg = s->closed_arg;
    SSL_CTX_free(s->client_tls);
    free(s);
    if (cb)
        cb(cb_arg);
}

static void destroy_start(struct loop_task *task)
{
    struct ws_server *s = CONTAINER_OF(task, struct ws_server, task);
    lws_context_destroy(s->context);
    loop_post(s->loop, task, destroy_round);
}

void ws_server_close(struct ws_server *s, void (*cb)(void *arg), void *arg)
{
    s->closed = cb;
    s->closed_arg = arg;
    loop_post(s->loop, &s->task, destroy_start);
}

void ws_peer_send(struct ws_peer *p, const char *text)
{
    size_t len = strlen(text);
    struct message *m = xmalloc(sizeof(*m) + LWS_PRE + len);
    *m = (struct message){.len = len};
    memcpy(m->data + LWS_PRE, text, len);
    list_append(&p->outgoing, &m->node);
    lws_callback_on_writable(p->wsi);
}

void ws_peer_printf(struct ws_peer *p, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    va_start(ap, fmt);
    INVARIANT(vasprintf(&text, fmt, ap) >= 0);
    va_end(ap);
    ws_peer_send(p, text);
    free(text);
}

void ws_peer_cut(struct ws_peer *p)
{
    p->cut = true;
    lws_set_timeout(p->wsi, PENDING_TIMEOUT_USER_REASON_BASE, LWS_TO_KILL_ASYNC);
}

void ws_peer_stop_reading(struct ws_peer *p)
{
    lws_rx_flow_control(p->wsi, 0);
}

void ws_peer_set_data(struct ws_peer *p, void *data)
{
    p->data = data;
}

void *ws_peer_data(const struct ws_peer *p)
{
    return p->data;
}

/* ---- waiting for a condition ---- */

struct wait {
    struct loop *loop;
    bool (*done)(void *arg);
    void *arg;
    struct loop_timer *look, *limit;
    bool late;
};

static void look(void *arg)
{
    struct wait *w = arg;
    if (w->done(w->arg))
        loop_stop(w->loop);
    else
        loop_timer_at(w->look, loop_now_ms(w->loop) + 1);
}

static void too_late(void *arg)
{
    struct wait *w = arg;
    w->late = true;
    loop_stop(w->loop);
}

bool run_until(struct loop *l, bool (*done)(void *arg), void *arg, unsigned limit_ms)
{
    struct wait w = {.loop = l, .done = done, .arg = arg};
    if (done(arg))
        return true;
    w.look = loop_timer_new(l, look, &w);
    w.limit = loop_timer_new(l, too_late, &w);
    loop_timer_at(w.look, loop_now_ms(l) + 1);
    loop_timer_at(w.limit, loop_now_ms(l) + limit_ms);
    while (!w.late && !done(arg))
        loop_run(l);
    loop_timer_close(w.look);
    loop_timer_close(w.limit);
    return done(arg);
}
