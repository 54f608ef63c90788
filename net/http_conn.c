/* One connection of HTTP/1: socket, TLS, the parser, and one timer.
 *
 *   SHAKE -> IDLE -> HEAD -> BODY -> SERVE -> WRITE -> IDLE ...
 *                      |-> WRITE (a refusal) -> LINGER -> closed
 *
 * SHAKE is the TLS handshake. In SERVE the owner has the request; in WRITE the kernel has not taken
 * the whole answer. What arrives in these two is held, and read in the next IDLE. LINGER reads and
 * drops what the client still sends, because a socket that is closed with unread bytes resets the
 * connection, and the client may lose the answer. */
#include <llhttp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/alloc.h"
#include "base/check.h"
#include "http_internal.h"
#include "tls_internal.h"

enum { HELD_MAX = 64 << 10, LINGER_MS = 1000 };

enum state { SHAKE, IDLE, HEAD, BODY, SERVE, WRITE, LINGER };

struct http_conn {
    struct http_conn_config config;
    void *end_arg;
    struct loop_socket *socket; /* NULL: closed */
    struct tls_session *tls;
    struct loop_timer *timer;
    struct loop_task turn; /* reads what was held; ends a connection that drains */
    llhttp_t parser;
    enum state state;
    struct http_request *request; /* that is read or answered */
    struct buf held;
    size_t head_len;
    uint64_t deadline_ms; /* 0: none */
    size_t queued;        /* in WRITE, when the timer was set */
    int refused;          /* status of the refusal that a callback of the parser asked for */
    const char *why;
    bool keep; /* the request allows another one after it */
    bool draining, closed;
    unsigned busy; /* the memory stays until the outermost callback is over */
};

static void parse(struct http_conn *c, const uint8_t *data, size_t len);

/* ---- memory and handles ---- */

static void request_free(struct http_request *r)
{
    if (!r)
        return;
    if (r->text.data)
        explicit_bzero(r->text.data, r->text.len); /* it may have held a token */
    if (r->bodies)
        *r->bodies -= r->body.len;
    buf_done(&r->text);
    buf_done(&r->body);
    free(r);
}

static void enter(struct http_conn *c)
{
    c->busy++;
}

static void leave(struct http_conn *c)
{
    if (--c->busy || !c->closed)
        return;
    tls__session_free(c->tls);
    buf_done(&c->held);
    free(c);
}

static void close_handles(struct http_conn *c)
{
    c->closed = true;
    c->timer = loop_timer_close(c->timer);
    loop_task_cancel(&c->turn);
    c->socket = loop_socket_close(c->socket);
    if (c->request && c->state == SERVE) {
        c->request->conn = NULL; /* its owner still answers it */
        *c->request->bodies -= c->request->body.len;
        c->request->bodies = NULL;
        c->request = NULL;
    }
    request_free(c->request);
    c->request = NULL;
}

static void finish(struct http_conn *c)
{
    if (c->closed)
        return;
    close_handles(c);
    c->config.on_end(c->end_arg, c);
}

/* ---- time ---- */

static void move(struct http_conn *c, enum state state, uint32_t limit_ms)
{
    c->state = state;
    c->deadline_ms = limit_ms ? loop_now_ms(c->config.loop) + limit_ms : 0;
    if (c->deadline_ms)
        loop_timer_at(c->timer, c->deadline_ms);
    else
        loop_timer_stop(c->timer);
}

/* ---- output ---- */

static void send_tls(struct http_conn *c)
{
    const uint8_t *data = NULL;
    size_t n = tls__session_out(c->tls, &data);
    if (n && c->socket)
        loop_socket_write(c->socket, data, n);
    tls__session_sent(c->tls);
}

static void write_bytes(struct http_conn *c, const void *data, size_t len)
{
    struct err err = {0};
    if (!c->tls) {
        loop_socket_write(c->socket, data, len);
        return;
    }
    if (tls__session_put(c->tls, data, len, &err) == 0)
        send_tls(c);
}

const char *http_reason(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {{200, "OK"},
                   {201, "Created"},
                   {202, "Accepted"},
                   {204, "No Content"},
                   {304, "Not Modified"},
                   {400, "Bad Request"},
                   {401, "Unauthorized"},
                   {403, "Forbidden"},
                   {404, "Not Found"},
                   {405, "Method Not Allowed"},
                   {408, "Request Timeout"},
                   {409, "Conflict"},
                   {413, "Content Too Large"},
                   {415, "Unsupported Media Type"},
                   {417, "Expectation Failed"},
                   {422, "Unprocessable Content"},
                   {429, "Too Many Requests"},
                   {431, "Request Header Fields Too Large"},
                   {500, "Internal Server Error"},
                   {501, "Not Implemented"},
                   {503, "Service Unavailable"},
                   {505, "HTTP Version Not Supported"}};
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    UNREACHABLE();
}

static void put_date(struct buf *out)
{
    char text[40];
    struct tm tm;
    time_t now = (time_t)(loop_wall_ms() / 1000);
    gmtime_r(&now, &tm);
    strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm);
    buf_printf(out, "Date: %s\r\n", text);
}

void http__write(struct buf *out, const struct http_answer *a, const char *headers, bool no_body,
                 bool ends)
{
    buf_printf(out, "HTTP/1.1 %d %s\r\n", a->status, http_reason(a->status));
    put_date(out);
    if (a->type)
        buf_printf(out, "Content-Type: %s\r\n", a->type);
    if (a->status != 204 && a->status != 304)
        buf_printf(out, "Content-Length: %zu\r\n", a->len);
    if (headers)
        buf_puts(out, headers);
    if (a->headers)
        buf_puts(out, a->headers);
    if (ends)
        buf_puts(out, "Connection: close\r\n");
    buf_puts(out, "\r\n");
    if (!no_body)
        buf_put(out, a->body, a->len);
}

void http__conn_answer(struct http_conn *c, struct buf *bytes)
{
    PRE(c->state == SERVE && c->request);
    request_free(c->request);
    c->request = NULL;
    write_bytes(c, bytes->data, bytes->len);
    c->queued = loop_socket_queued(c->socket);
    move(c, WRITE, c->config.limits->stall_ms);
}

bool http__conn_ends(const struct http_conn *c)
{
    return !c->keep || c->draining;
}

/* Of the server's own accord: a problem, and the end. `why` is a text of this program or the
 * parser's. */
static void refuse(struct http_conn *c, int status, const char *why)
{
    struct buf body = {0}, out = {0};
    const char *reason = http_reason(status);
    buf_printf(&body, "{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%d,\"detail\":\"",
               reason, status);
    for (; *why; why++)
        buf_put_u8(&body, (uint8_t)(*why == '"' || *why == '\\' || *why < ' ' ? '\'' : *why));
    buf_puts(&body, "\"}\n");
    struct http_answer a = {
        .status = status, .type = "application/problem+json", .body = body.data, .len = body.len};
    http__write(&out, &a, c->config.headers, c->request && c->request->head, true);
    c->keep = false;
    request_free(c->request);
    c->request = NULL;
    write_bytes(c, out.data, out.len);
    c->queued = loop_socket_queued(c->socket);
    move(c, WRITE, c->config.limits->stall_ms);
    buf_done(&body);
    buf_done(&out);
}

/* ---- the parser's callbacks ---- */

static int stop(struct http_conn *c, int status, const char *why)
{
    c->refused = status;
    c->why = why;
    return -1;
}

static int on_begin(llhttp_t *p)
{
    struct http_conn *c = p->data;
    struct http_request *r = c->request = xcalloc(1, sizeof(*r));
    r->conn = c;
    r->bodies = c->config.bodies;
    snprintf(r->peer, sizeof(r->peer), "%s", loop_socket_name(c->socket));
    c->head_len = 0;
    move(c, HEAD, c->config.limits->head_ms);
    return 0;
}

/* Trailers are read past, and count as a part of the head. */
static int put_text(struct http_conn *c, const char *at, size_t len)
{
    struct http_request *r = c->request;
    c->head_len += len;
    if (c->head_len > c->config.limits->head_bytes)
        return stop(c, 431, "the request line and the headers are too long");
    if (!r->whole_head)
        buf_put(&r->text, at, len);
    return 0;
}

static int end_text(struct http_conn *c)
{
    if (!c->request->whole_head)
        buf_put_u8(&c->request->text, 0);
    c->head_len++;
    return 0;
}

static int on_text(llhttp_t *p, const char *at, size_t len)
{
    return put_text(p->data, at, len);
}

static int on_url_end(llhttp_t *p)
{
    return end_text(p->data);
}

static int on_name(llhttp_t *p, const char *at, size_t len)
{
    struct http_conn *c = p->data;
    struct http_request *r = c->request;
    if (r->whole_head)
        return put_text(c, at, len);
    if (r->headers == HTTP_HEADERS_MAX)
        return stop(c, 431, "there are too many headers");
    if (!r->names[r->headers])
        r->names[r->headers] = r->text.len;
    return put_text(c, at, len);
}

static int on_name_end(llhttp_t *p)
{
    struct http_conn *c = p->data;
    struct http_request *r = c->request;
    end_text(c);
    if (!r->whole_head)
        r->values[r->headers] = r->text.len;
    return 0;
}

static int on_value_end(llhttp_t *p)
{
    struct http_conn *c = p->data;
    end_text(c);
    if (!c->request->whole_head)
        c->request->headers++;
    return 0;
}

static size_t count(const struct http_request *r, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < r->headers; i++)
        n += !strcasecmp((const char *)r->text.data + r->names[i], name);
    return n;
}

static int on_head(llhttp_t *p)
{
    struct http_conn *c = p->data;
    struct http_request *r = c->request;
    const char *expect;
    r->whole_head = true;
    r->method = llhttp_method_name((llhttp_method_t)llhttp_get_method(p));
    r->head = !strcmp(r->method, "HEAD");
    if (p->http_major != 1 || p->http_minor > 1)
        return stop(c, 505, "this server speaks HTTP/1.1");
    if (*http_target(r) != '/')
        return stop(c, 400, "the target of a request is a path that begins with /");
    if (count(r, "host") != (p->http_minor ? 1 : count(r, "host") > 0))
        return stop(c, 400, "a request has one Host header");
    if (p->content_length > c->config.limits->body_bytes)
        return stop(c, 413, "the body is too long");
    p->upgrade = 0; /* it is answered as HTTP/1.1, whatever it would rather have */
    expect = http_header(r, "expect");
    if (expect && strcasecmp(expect, "100-continue") != 0)
        return stop(c, 417, "the only expectation that can be met is 100-continue");
    if (expect) {
        static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
        write_bytes(c, text, sizeof(text) - 1);
    }
    move(c, BODY, c->config.limits->body_ms);
    return 0;
}

static int on_body(llhttp_t *p, const char *at, size_t len)
{
    struct http_conn *c = p->data;
    if (c->request->body.len + len > c->config.limits->body_bytes)
        return stop(c, 413, "the body is too long");
    if (*c->config.bodies + len > c->config.limits->bodies_bytes)
        return stop(c, 503, "there are too many long requests at a time");
    *c->config.bodies += len;
    buf_put(&c->request->body, at, len);
    return 0;
}

static int on_whole(llhttp_t *p)
{
    (void)p;
    return HPE_PAUSED; /* what follows is another request's */
}

static const llhttp_settings_t settings = {
    .on_message_begin = on_begin,
    .on_url = on_text,
    .on_url_complete = on_url_end,
    .on_header_field = on_name,
    .on_header_field_complete = on_name_end,
    .on_header_value = on_text,
    .on_header_value_complete = on_value_end,
    .on_headers_complete = on_head,
    .on_body = on_body,
    .on_message_complete = on_whole,
};

/* ---- input ---- */

static void hold(struct http_conn *c, const void *data, size_t len)
{
    if (http__conn_ends(c) || !len)
        return; /* no request follows */
    if (c->held.len + len > HELD_MAX)
        finish(c); /* it sends on without reading answers */
    else
        buf_put(&c->held, data, len);
}

static void parse(struct http_conn *c, const uint8_t *data, size_t len)
{
    const char *end = (const char *)data + len;
    llhttp_errno_t rc = llhttp_execute(&c->parser, (const char *)data, len);
    if (rc == HPE_OK)
        return;
    if (rc != HPE_PAUSED) {
        int status = c->refused                                                 ? c->refused
                     : rc == HPE_PAUSED_H2_UPGRADE || rc == HPE_INVALID_VERSION ? 505
                                                                                : 400;
        refuse(c, status, c->refused ? c->why : llhttp_get_error_reason(&c->parser));
        return;
    }
    const char *at = llhttp_get_error_pos(&c->parser);
    c->keep = llhttp_should_keep_alive(&c->parser) && c->parser.http_minor == 1;
    llhttp_resume(&c->parser);
    hold(c, at, (size_t)(end - at));
    if (c->closed)
        return;
    move(c, SERVE, 0);
    c->config.on_request(c->config.arg, c->request);
}

/* Plain bytes of the client. */
static bool take(void *arg, const uint8_t *data, size_t len)
{
    struct http_conn *c = arg;
    switch (c->state) {
    case SHAKE:
        move(c, IDLE, c->config.limits->idle_ms);
        parse(c, data, len);
        break;
    case IDLE:
    case HEAD:
    case BODY:
        parse(c, data, len);
        break;
    case SERVE:
    case WRITE:
        hold(c, data, len);
        break;
    case LINGER:
        break;
    }
    return !c->closed;
}

static void on_turn(struct loop_task *task)
{
    struct http_conn *c = CONTAINER_OF(task, struct http_conn, turn);
    enter(c);
    if (c->state == IDLE && c->draining) {
        finish(c);
    } else if (c->state == IDLE && c->held.len) {
        struct buf held = c->held;
        c->held = (struct buf){0};
        parse(c, held.data, held.len);
        buf_done(&held);
    }
    leave(c);
}

static void turn_later(struct http_conn *c)
{
    if (!list_linked(&c->turn.node))
        loop_post(c->config.loop, &c->turn, on_turn);
}

/* ---- the socket ---- */

static void on_bytes(void *arg, const uint8_t *data, size_t len)
{
    struct http_conn *c = arg;
    enter(c);
    if (!c->tls) {
        take(c, data, len);
    } else {
        struct err err = {0};
        int rc = tls__session_feed(c->tls, data, len, take, c, &err);
        if (!c->closed)
            send_tls(c);
        if (rc)
            finish(c);
        else if (!c->closed && c->state == SHAKE && tls__session_up(c->tls))
            move(c, IDLE, c->config.limits->idle_ms);
    }
    leave(c);
}

static void on_written(void *arg)
{
    struct http_conn *c = arg;
    if (c->state != WRITE || loop_socket_queued(c->socket))
        return;
    if (http__conn_ends(c)) {
        move(c, LINGER, LINGER_MS);
        return;
    }
    move(c, IDLE, c->config.limits->idle_ms);
    turn_later(c);
}

static void on_socket_end(void *arg, const struct err *why)
{
    struct http_conn *c = arg;
    (void)why;
    enter(c);
    finish(c);
    leave(c);
}

static void on_timer(void *arg)
{
    struct http_conn *c = arg;
    enter(c);
    size_t queued = loop_socket_queued(c->socket);
    if (c->state == HEAD || c->state == BODY) {
        refuse(c, 408, "the request did not arrive in time");
    } else if (c->state == WRITE && queued < c->queued) {
        c->queued = queued;
        move(c, WRITE, c->config.limits->stall_ms);
    } else {
        finish(c);
    }
    leave(c);
}

static const struct loop_socket_events socket_events = {
    .on_bytes = on_bytes, .on_written = on_written, .on_end = on_socket_end};

struct http_conn *http__conn_accept(const struct http_conn_config *config, struct loop_socket *s,
                                    void *end_arg)
{
    struct http_conn *c = xcalloc(1, sizeof(*c));
    c->config = *config;
    c->end_arg = end_arg;
    c->socket = s;
    llhttp_init(&c->parser, HTTP_REQUEST, &settings);
    c->parser.data = c;
    c->timer = loop_timer_new(config->loop, on_timer, c);
    if (config->tls)
        c->tls = tls__session_new(config->tls, NULL);
    move(c, c->tls ? SHAKE : IDLE, config->limits->head_ms);
    loop_socket_start(s, &socket_events, c);
    return c;
}

void http__conn_drain(struct http_conn *c)
{
    c->draining = true;
    turn_later(c);
}

struct http_conn *http__conn_close(struct http_conn *c)
{
    enter(c);
    if (!c->closed)
        close_handles(c);
    leave(c);
    return NULL;
}

/* ---- requests ---- */

const char *http_method(const struct http_request *r)
{
    return r->head ? "GET" : r->method;
}

const char *http_target(const struct http_request *r)
{
    return (const char *)r->text.data;
}

const char *http_header(const struct http_request *r, const char *name)
{
    const char *found = NULL;
    for (size_t i = 0; i < r->headers; i++) {
        if (strcasecmp((const char *)r->text.data + r->names[i], name) != 0)
            continue;
        if (found)
            return NULL;
        found = (const char *)r->text.data + r->values[i];
    }
    return found;
}

const char *http_body(const struct http_request *r, size_t *ret_len)
{
    *ret_len = r->body.len;
    return (const char *)r->body.data;
}

const char *http_peer(const struct http_request *r)
{
    return r->peer;
}

void http_answer(struct http_request *r, const struct http_answer *a)
{
    struct http_conn *c = r->conn;
    struct buf out = {0};
    PRE(a->type || !a->len);
    if (!c) {
        request_free(r);
        return;
    }
    enter(c);
    http__write(&out, a, c->config.headers, r->head, http__conn_ends(c));
    http__conn_answer(c, &out);
    buf_done(&out);
    leave(c);
}
