/* Private to net/: one connection of HTTP/1 on a socket. */
#ifndef NET_HTTP_INTERNAL_H
#define NET_HTTP_INTERNAL_H

#include "base/buf.h"
#include "base/list.h"
#include "loop/socket.h"
#include "net/http.h"

struct http_conn;

struct http_conn_config {
    struct loop *loop;
    struct tls_context *tls;
    const struct http_limits *limits; /* borrowed */
    const char *headers;
    size_t *bodies; /* bytes of all bodies of the server's requests */
    void (*on_request)(void *arg, struct http_request *r);
    void (*on_end)(void *arg, struct http_conn *c); /* closed by then; arg: that of the accept */
    void *arg;                                      /* of on_request */
};

enum { HTTP_HEADERS_MAX = 64 };

struct http_request {
    struct http_conn *conn; /* NULL: the client has gone */
    struct buf text;        /* the target, then names and values of headers, each with a NUL */
    size_t names[HTTP_HEADERS_MAX], values[HTTP_HEADERS_MAX]; /* in text */
    size_t headers;
    const char *method;
    bool head; /* the answer has no body */
    bool whole_head;
    struct buf body;
    size_t *bodies; /* its share is in here; NULL: not any more */
    char peer[64];
};

/* Takes the socket. */
struct http_conn *http__conn_accept(const struct http_conn_config *config, struct loop_socket *s,
                                    void *end_arg);
void http__conn_drain(struct http_conn *c);
struct http_conn *http__conn_close(struct http_conn *c); /* at once, without on_end */
/* The answer to its request, as bytes of the connection. */
void http__conn_answer(struct http_conn *c, struct buf *bytes);
bool http__conn_ends(const struct http_conn *c); /* after the present answer */

/* The head and, unless no_body, the body. */
void http__write(struct buf *out, const struct http_answer *a, const char *headers, bool no_body,
                 bool ends);

#endif
