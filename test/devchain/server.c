/* The libwebsockets side; see server.h. Its pitfalls that were met are in the comments where they
 * matter. The context is destroyed in two calls with rounds of the loop in between: the first
 * closes its handles. */
#include "server.h"

#include <libwebsockets.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/log.h"
#include "rpc_call.h"
#include "subs.h"

enum {
    FD_LIMIT = 1200,
    RX_BUFFER = 65536,
    KEEP_BUFFER = 1 << 20,
    DESTROY_ROUNDS = 6,
    WRITES_PER_ROUND = 256,
    CONN_BUFFER = 64
};

struct message {
    struct list node;
    size_t len;
    uint8_t data[]; /* LWS_PRE bytes of room, then the text */
};

struct conn {
    struct list node;
    struct server *server;
    struct lws *wsi;
    uint64_t number;
    struct list out;
    struct list subs;
    size_t sub_count;
    size_t queued;
    struct buf in;
    bool oversized; /* the rest of the message is skipped */
    bool cut, frozen;
};

/* Per lws session; zeroed by lws. */
struct session {
    struct conn *conn; /* WebSocket */
    struct buf *body;  /* HTTP request, then its answer */
    size_t sent;
};

struct server {
    struct app *app;
    struct loop *loop;
    struct lws_context *context;
    struct lws_vhost *vhost;
    lws_retry_bo_t retry;
    struct list conns;
    size_t conn_count;
    uint64_t next_number;
    struct loop_task destroy_task;
    unsigned destroy_rounds;
    void (*cb)(void *arg);
    void *arg;
};

static void lws_said(int level, const char *line)
{
    size_t len = strcspn(line, "\n");
    log_line(level & LLL_ERR ? LOG_LEVEL_WARN : LOG_LEVEL_DEBUG, "devchain.lws", "text=\"%.*s\"",
             (int)len, line);
}

/* ---- connections ---- */

void conn_send(struct conn *c, const void *text, size_t len)
{
    if (c->cut || c->frozen)
        return;
    struct message *m = xmalloc(sizeof *m + LWS_PRE + len);
    m->len = len;
    memcpy(m->data + LWS_PRE, text, len);
    bool first = list_empty(&c->out);
    list_append(&c->out, &m->node);
    c->queued++;
    if (first)
        lws_callback_on_writable(c->wsi);
}

void conn_cut(struct conn *c)
{
    c->cut = true;
    c->server->app->stats.cut++;
    lws_callback_on_writable(c->wsi);
}

void conn_freeze(struct conn *c)
{
    c->frozen = true;
    lws_rx_flow_control(c->wsi, 0);
}

struct list *conn_subs(struct conn *c)
{
    return &c->subs;
}

size_t conn_sub_count(const struct conn *c)
{
    return c->sub_count;
}

bool conn_backed_up(const struct conn *c)
{
    return c->queued >= CONN_BUFFER;
}

void conn_subs_changed(struct conn *c, int by)
{
    c->sub_count += (size_t)by;
}

uint64_t conn_number(const struct conn *c)
{
    return c->number;
}

struct conn *server_conn(const struct server *s, uint64_t number)
{
    LIST_EACH (n, &s->conns) {
        struct conn *c = CONTAINER_OF(n, struct conn, node);
        if (c->number == number)
            return c->cut ? NULL : c;
    }
    return NULL;
}

size_t server_cut_all(struct server *s)
{
    LIST_EACH (n, &s->conns)
        conn_cut(CONTAINER_OF(n, struct conn, node));
    return s->conn_count;
}

size_t server_conn_count(const struct server *s)
{
    return s->conn_count;
}

static struct conn *conn_new(struct server *s, struct lws *wsi)
{
    struct conn *c = xcalloc(1, sizeof *c);
    c->server = s;
    c->wsi = wsi;
    c->number = ++s->next_number;
    list_init(&c->out);
    list_init(&c->subs);
    list_append(&s->conns, &c->node);
    s->conn_count++;
    s->app->stats.connections++;
    return c;
}

static void conn_free(struct conn *c)
{
    while (!list_empty(&c->subs))
        sub_free(CONTAINER_OF(list_first(&c->subs), struct sub, conn_node));
    while (!list_empty(&c->out)) {
        struct list *n = list_first(&c->out);
        list_remove(n);
        free(CONTAINER_OF(n, struct message, node));
    }
    list_remove(&c->node);
    c->server->conn_count--;
    buf_done(&c->in);
    free(c);
}

static void too_big(struct conn *c)
{
    struct buf b = {0};
    char data[64];
    snprintf(data, sizeof data, "Exceeded max limit of %zu",
             c->server->app->options.request_bytes_max);
    rpc__put_error(&b, NULL, RPC_OVERSIZED, "Request is too big", data);
    conn_send(c, b.data, b.len);
    buf_done(&b);
}

/* A message comes in pieces: they are joined here. Returns -1 to have the connection closed. */
static int receive(struct conn *c, const void *data, size_t len)
{
    bool last = lws_is_final_fragment(c->wsi) && !lws_remaining_packet_payload(c->wsi);
    if (c->frozen)
        return 0;
    if (!c->oversized && c->in.len + len > c->server->app->options.request_bytes_max) {
        c->oversized = true;
        too_big(c);
    }
    if (!c->oversized)
        buf_put(&c->in, data, len);
    if (last && !c->oversized)
        rpc_handle(c->server->app, c, (const char *)c->in.data, c->in.len);
    if (last) {
        c->oversized = false;
        buf_clear(&c->in);
        if (c->in.cap > KEEP_BUFFER)
            buf_done(&c->in);
    }
    return c->cut ? -1 : 0;
}

static int write_queue(struct conn *c)
{
    if (c->cut)
        return -1;
    for (unsigned i = 0;
         i < WRITES_PER_ROUND && !list_empty(&c->out) && !lws_partial_buffered(c->wsi); i++) {
        struct message *m = CONTAINER_OF(list_first(&c->out), struct message, node);
        int n = lws_write(c->wsi, m->data + LWS_PRE, m->len, LWS_WRITE_TEXT);
        list_remove(&m->node);
        free(m);
        c->queued--;
        if (n < 0)
            return -1;
    }
    if (!list_empty(&c->out))
        lws_callback_on_writable(c->wsi);
    return 0;
}

/* ---- HTTP ---- */

static int http_answer(struct lws *wsi, struct session *ss, unsigned status)
{
    uint8_t head[LWS_PRE + 512], *start = head + LWS_PRE, *p = start, *end = head + sizeof head - 1;
    if (lws_add_http_common_headers(wsi, status, "application/json", ss->body->len, &p, end) ||
        lws_finalize_write_http_header(wsi, start, &p, end))
        return -1;
    lws_callback_on_writable(wsi);
    return 0;
}

static void session_body(struct session *ss)
{
    if (!ss->body)
        ss->body = xcalloc(1, sizeof *ss->body);
}

static void session_done(struct session *ss)
{
    if (!ss->body)
        return;
    buf_done(ss->body);
    free(ss->body);
    ss->body = NULL;
}

/* A body is answered when it is complete; GET /health is a proxy of system_health. */
static int http_request(struct lws *wsi, struct session *ss, const char *path)
{
    session_done(ss);
    session_body(ss);
    if (lws_hdr_total_length(wsi, WSI_TOKEN_POST_URI))
        return 0;
    buf_clear(ss->body);
    if (strncmp(path, "/health", 7) == 0) {
        buf_puts(ss->body, "{\"peers\":0,\"isSyncing\":false,\"shouldHavePeers\":false}");
        return http_answer(wsi, ss, 200);
    }
    buf_puts(ss->body, "{\"error\":\"POST a JSON-RPC request, or connect by WebSocket\"}");
    return http_answer(wsi, ss, 405);
}

static int http_body(struct server *s, struct session *ss, const void *data, size_t len)
{
    session_body(ss);
    if (ss->body->len + len > s->app->options.request_bytes_max)
        return -1;
    buf_put(ss->body, data, len);
    return 0;
}

static int http_complete(struct server *s, struct lws *wsi, struct session *ss)
{
    struct buf out = {0};
    session_body(ss);
    bool sent = rpc_handle_http(s->app, (const char *)ss->body->data, ss->body->len, &out);
    buf_done(ss->body);
    *ss->body = out;
    return sent ? http_answer(wsi, ss, 200) : -1;
}

/* Bytes must have LWS_PRE of room in front only for WebSocket; a large body is buffered by lws
 * itself. */
static int http_write(struct lws *wsi, struct session *ss)
{
    if (!ss->body)
        return 0;
    uint8_t *data = ss->body->data;
    size_t len = ss->body->len;
    int n = lws_write(wsi, data ? data : (uint8_t *)wsi, len, LWS_WRITE_HTTP_FINAL);
    session_done(ss);
    if (n < 0 || lws_http_transaction_completed(wsi))
        return -1;
    return 0;
}

static bool full(const struct server *s)
{
    return s->conn_count >= s->app->options.connections_max;
}

/* The 101st connection. Written by hand: lws_return_http_status would send HTML. */
static int refuse_full(struct lws *wsi)
{
    static const char ANSWER[] =
        "HTTP/1.1 429 Too Many Requests\r\ncontent-type: text/plain\r\nconnection: close\r\n"
        "content-length: 46\r\n\r\nToo many connections. Please try again later.\n";
    uint8_t room[LWS_PRE + sizeof ANSWER];
    memcpy(room + LWS_PRE, ANSWER, sizeof ANSWER - 1);
    lws_write(wsi, room + LWS_PRE, sizeof ANSWER - 1, LWS_WRITE_HTTP_HEADERS);
    return -1;
}

static int callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                    size_t len)
{
    struct session *ss = user;
    struct server *s = lws_context_user(lws_get_context(wsi));
    switch ((int)reason) {
    case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION:
        return full(s) ? refuse_full(wsi) : 0;
    case LWS_CALLBACK_ESTABLISHED:
        ss->conn = conn_new(s, wsi);
        return 0;
    case LWS_CALLBACK_RECEIVE:
        return receive(ss->conn, in, len);
    case LWS_CALLBACK_SERVER_WRITEABLE:
        return ss->conn ? write_queue(ss->conn) : 0;
    case LWS_CALLBACK_CLOSED:
        if (ss->conn)
            conn_free(ss->conn);
        ss->conn = NULL;
        return 0;
    case LWS_CALLBACK_HTTP:
        return full(s) ? refuse_full(wsi) : http_request(wsi, ss, in);
    case LWS_CALLBACK_HTTP_BODY:
        return http_body(s, ss, in, len);
    case LWS_CALLBACK_HTTP_BODY_COMPLETION:
        return http_complete(s, wsi, ss);
    case LWS_CALLBACK_HTTP_WRITEABLE:
        return http_write(wsi, ss);
    case LWS_CALLBACK_CLOSED_HTTP:
    case LWS_CALLBACK_HTTP_DROP_PROTOCOL:
        if (ss)
            session_done(ss);
        return 0;
    default:
        return 0;
    }
}

/* ---- life ---- */

static const struct lws_protocols PROTOCOLS[] = {
    {"devchain", callback, sizeof(struct session), RX_BUFFER, 0, NULL, 0},
    {0},
};

uint16_t server_port(const struct server *s)
{
    return (uint16_t)lws_get_vhost_listen_port(s->vhost);
}

struct server *server_new(struct app *a, struct loop *l, struct err *err)
{
    struct server *s = xcalloc(1, sizeof *s);
    void *loops[1] = {loop_uv(l)};
    s->app = a;
    s->loop = l;
    list_init(&s->conns);
    lws_set_log_level(LLL_ERR | LLL_WARN, lws_said);
    s->retry.secs_since_valid_ping = (uint16_t)a->options.ping_s;
    s->retry.secs_since_valid_hangup = (uint16_t)(2 * a->options.ping_s);
    struct lws_context_creation_info info = {0};
    info.options = LWS_SERVER_OPTION_LIBUV | LWS_SERVER_OPTION_EXPLICIT_VHOSTS;
    info.foreign_loops = loops;
    info.fd_limit_per_thread = FD_LIMIT;
    info.pt_serv_buf_size = RX_BUFFER;
    info.user = s;
    info.gid = -1;
    info.uid = -1;
    info.port = a->options.port;
    info.iface = "127.0.0.1";
    info.protocols = PROTOCOLS;
    if (a->options.ping_s)
        info.retry_and_idle_policy = &s->retry;
    s->context = lws_create_context(&info);
    if (s->context)
        s->vhost = lws_create_vhost(s->context, &info);
    if (!s->vhost) {
        err_set(err, ERR_IO,
                "port %u of 127.0.0.1 cannot be had: another program holds it? Give another --port",
                a->options.port);
        if (s->context)
            lws_context_destroy(s->context);
        free(s);
        return NULL;
    }
    return s;
}

static void destroy_round(struct loop_task *task)
{
    struct server *s = CONTAINER_OF(task, struct server, destroy_task);
    if (++s->destroy_rounds < DESTROY_ROUNDS) {
        loop_post(s->loop, task, destroy_round);
        return;
    }
    lws_context_destroy(s->context);
    void (*cb)(void *arg) = s->cb;
    void *arg = s->arg;
    free(s);
    cb(arg);
}

void server_close(struct server *s, void (*cb)(void *arg), void *arg)
{
    s->cb = cb;
    s->arg = arg;
    lws_context_destroy(s->context);
    loop_post(s->loop, &s->destroy_task, destroy_round);
}
