/* HTTP/1.1 as a server, on the loop. It parses and frames; the owner answers.
 *
 * on_request fires from the loop, once for each request that is whole: its head is well formed and
 * its body complete. The owner answers it exactly once with http_answer, inside of on_request or
 * later, also if the client has gone: the request lives until then. A connection has one request at
 * a time; what a client sends meanwhile is kept up to a bound. The server itself refuses what is
 * not HTTP/1, or is over a limit, with a problem (RFC 9457), and closes the connection. */
#ifndef NET_HTTP_H
#define NET_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/shared.h"
#include "loop/loop.h"
#include "net/tls.h"

struct http_server;
struct http_request;

/* What clients may take. 0: the default behind it. */
struct http_limits {
    uint32_t connections_max; /* 200; one more is closed at once */
    uint32_t head_bytes;      /* of the request line and the headers: 16 KiB */
    uint32_t body_bytes;      /* of a request: 1 MiB */
    uint32_t bodies_bytes;    /* of all requests together: 16 MiB */
    uint32_t head_ms;         /* from the first byte, or the socket with TLS, to the end of the
                                 headers: 10,000 */
    uint32_t body_ms;         /* for the body: 30,000 */
    uint32_t idle_ms;         /* between two requests: 60,000 */
    uint32_t stall_ms;        /* an answer is queued and no byte of it is taken: 30,000 */
};

struct http_server_config {
    const char *address;     /* unix:/path or tcp:HOST:PORT */
    struct tls_context *tls; /* borrowed; NULL: cleartext, on loopback or a unix socket only */
    struct http_limits limits;
    const char *headers; /* lines for every answer, each with CRLF; borrowed; NULL: none */
    void (*on_request)(void *arg, struct http_request *r);
    void *arg;
};

/* NULL and *err: ERR_CONFIG for cleartext that other machines reach, ERR_ARGUMENT for a bad
 * address, ERR_IO if it cannot be bound. */
struct http_server *http_server_new(struct loop *l, const struct http_server_config *config,
                                    struct err *err);
const char *http_server_address(const struct http_server *s); /* with the real port */
size_t http_server_connections(const struct http_server *s);
/* Accept no more. Each connection ends after its present answer, an idle one at once. */
void http_server_drain(struct http_server *s);
/* At once. Requests without an answer stay their owner's, and are still to be answered. */
struct http_server *http_server_close(struct http_server *s);

/* ---- requests ---- */

const char *http_method(const struct http_request *r); /* "GET"; HEAD is answered like GET */
const char *http_target(const struct http_request *r); /* "/path?query", as it came */
/* NULL: it has no such header, or more than one. */
const char *http_header(const struct http_request *r, const char *name);
bool http_header_repeats(const struct http_request *r, const char *name);
const char *http_body(const struct http_request *r, size_t *ret_len);
const char *http_peer(const struct http_request *r); /* "127.0.0.1:4711", or "unix" */

struct http_answer {
    int status;
    const char *type;    /* Content-Type; NULL: no body */
    const char *headers; /* lines of its own, each with CRLF; NULL: none */
    const void *body;    /* copied */
    size_t len;
};
void http_answer(struct http_request *r, const struct http_answer *a); /* frees r */
const char *http_reason(int status);                                   /* "Not Found" */

/* ---- answers that go on ---- */

/* An answer without a length, written bit by bit; the last one of its connection. A client that
 * takes no byte of what is queued for stall_ms is closed. The owner writes no more than it wants
 * queued, and goes on at on_room. */
struct http_stream;
struct http_stream_events {
    void (*on_room)(void *arg); /* the kernel took bytes; from the loop */
    void (*on_end)(void *arg);  /* the client has gone, or the server; the stream is freed */
};
/* `a` has no body. Frees r. NULL: there is nothing to write, because the client asked for the head
 * alone, or has gone; it was answered. `events` is borrowed. */
struct http_stream *http_stream_start(struct http_request *r, const struct http_answer *a,
                                      const struct http_stream_events *events, void *arg);
void http_stream_write(struct http_stream *s, const void *data, size_t len); /* copied */
/* The same bytes for many streams, which own what http_stream_piece made until it is sent. */
struct shared *http_stream_piece(const void *data, size_t len);
void http_stream_share(struct http_stream *s, struct shared *piece);
size_t http_stream_queued(const struct http_stream *s); /* bytes that the kernel has not taken */
void http_stream_end(struct http_stream *s);            /* what is queued is still sent; frees s */

#endif
