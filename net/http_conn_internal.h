/* Private to net/http_*.c: a connection of HTTP/1.
 *
 * - http_conn.c: its states, its timer, its end
 * - http_input.c: bytes: TLS, what is held, the parser's verdict
 * - http_parse.c: the parser's callbacks: a request takes form
 * - http_output.c: answers and refusals as bytes
 * - http_request.c: what the owner reads of a request, and its answer
 * - http_stream.c: answers that go on
 */
#ifndef NET_HTTP_CONN_INTERNAL_H
#define NET_HTTP_CONN_INTERNAL_H

#include <llhttp.h>

#include "http_internal.h"
#include "tls_internal.h"

enum http_conn_state {
    CONN_SHAKE,
    CONN_IDLE,
    CONN_HEAD,
    CONN_BODY,
    CONN_SERVE,
    CONN_STREAM,
    CONN_WRITE,
    CONN_LINGER
};

struct http_conn {
    struct http_conn_config config;
    void *end_arg;
    struct loop_socket *socket; /* NULL: closed */
    struct tls_session *tls;
    struct loop_timer *timer;
    struct loop_task turn; /* reads what was held; ends a connection that drains */
    llhttp_t parser;
    enum http_conn_state state;
    struct http_request *request; /* that is read or answered */
    struct http_stream *stream;   /* in STREAM */
    struct buf held;
    size_t head_len;
    uint64_t deadline_ms; /* 0: none */
    size_t queued;        /* in WRITE and STREAM, when the timer was set */
    int refused;          /* status of the refusal that a callback of the parser asked for */
    const char *why;
    bool keep; /* the request allows another one after it */
    bool draining, closed;
    unsigned busy; /* the memory stays until the outermost callback is over */
};

/* http_conn.c */
void http__enter(struct http_conn *c);
void http__leave(struct http_conn *c);
void http__finish(struct http_conn *c);
void http__move(struct http_conn *c, enum http_conn_state state, uint32_t limit_ms);
void http__turn_later(struct http_conn *c);

/* http_input.c */
void http__parse(struct http_conn *c, const uint8_t *data, size_t len);
void http__bytes(void *arg, const uint8_t *data, size_t len); /* on_bytes of the socket */

/* http_parse.c */
extern const llhttp_settings_t http__settings;

/* http_output.c */
void http__send_tls(struct http_conn *c);
void http__write_bytes(struct http_conn *c, const void *data, size_t len);
/* Of the server's own accord: a problem, and the end. `why` is a text of this program or the
 * parser's. */
#define HTTP_VERSIONS "this server speaks HTTP/1.1 and HTTP/1.0"
void http__refuse(struct http_conn *c, int status, const char *why);

/* The status line and the headers. The length of an answer that goes on is not known: it comes in
 * chunks, or until the connection ends. */
enum http_length { HTTP_LENGTH_KNOWN, HTTP_LENGTH_CHUNKED, HTTP_LENGTH_UNKNOWN };
void http__put_head(struct buf *out, const struct http_answer *a, const char *headers, bool ends,
                    enum http_length length);

/* http_stream.c */
void http__stream_room(struct http_conn *c);   /* the kernel took bytes */
void http__stream_gone(struct http_conn *c);   /* the connection is closed */
bool http__stream_stalls(struct http_conn *c); /* no byte was taken since the timer was set */

/* http_request.c */
void http__request_free(struct http_request *r); /* NULL allowed */

#endif
