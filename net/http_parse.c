/* The parser's callbacks: a request takes form, or is refused. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "http_conn_internal.h"

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
    http__move(c, CONN_HEAD, c->config.limits->head_ms);
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
    if (!r->whole_head && (!r->names[r->headers] || r->names[r->headers] == r->text.len))
        return stop(c, 400, "a header has no name");
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
        return stop(c, 400, HTTP_VERSIONS);
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
        http__write_bytes(c, text, sizeof(text) - 1);
    }
    http__move(c, CONN_BODY, c->config.limits->body_ms);
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

const llhttp_settings_t http__settings = {
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
