/* A request: what its owner reads, and its answer. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/check.h"
#include "http_conn_internal.h"

void http__request_free(struct http_request *r)
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

bool http_header_repeats(const struct http_request *r, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < r->headers; i++)
        n += !strcasecmp((const char *)r->text.data + r->names[i], name);
    return n > 1;
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
        http__request_free(r);
        return;
    }
    http__enter(c);
    http__write(&out, a, c->config.headers, r->head, http__conn_ends(c));
    http__conn_answer(c, &out);
    buf_done(&out);
    http__leave(c);
}
