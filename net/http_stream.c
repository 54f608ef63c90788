/* Answers that go on: chunks, what is queued, and the end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "http_conn_internal.h"

enum { CRLF = 2 };

struct http_stream {
    struct http_conn *conn;
    const struct http_stream_events *events;
    void *arg;
    bool chunked; /* HTTP/1.0: the end of the connection is the end */
    bool moved;   /* the kernel took a whole write since the timer was set */
};

struct http_stream *http_stream_start(struct http_request *r, const struct http_answer *a,
                                      const struct http_stream_events *events, void *arg)
{
    struct http_conn *c = r->conn;
    struct buf head = {0};
    PRE(!a->len);
    if (!c || r->head) {
        http_answer(r, a);
        return NULL;
    }
    PRE(c->state == CONN_SERVE);
    struct http_stream *s = c->stream = xcalloc(1, sizeof(*s));
    s->conn = c;
    s->events = events;
    s->arg = arg;
    s->chunked = c->parser.http_minor == 1;
    c->keep = false;
    http__request_free(r);
    c->request = NULL;
    http__put_head(&head, a, c->config.headers, true,
                   s->chunked ? HTTP_LENGTH_CHUNKED : HTTP_LENGTH_UNKNOWN);
    http__move(c, CONN_STREAM, 0);
    http__write_bytes(c, head.data, head.len);
    buf_done(&head);
    return s;
}

/* The timer runs while something is queued. */
static void watch(struct http_conn *c)
{
    c->stream->moved = false;
    c->queued = loop_socket_queued(c->socket);
    http__move(c, CONN_STREAM, c->queued ? c->config.limits->stall_ms : 0);
}

struct shared *http_stream_piece(const void *data, size_t len)
{
    char size[24];
    PRE(len > 0); /* an empty chunk is the last one */
    size_t head = (size_t)snprintf(size, sizeof(size), "%zx\r\n", len);
    struct shared *piece = shared_new(head + len + CRLF);
    memcpy(piece->data, size, head);
    memcpy(piece->data + head, data, len);
    memcpy(piece->data + head + len, "\r\n", CRLF);
    return piece;
}

void http_stream_share(struct http_stream *s, struct shared *piece)
{
    struct http_conn *c = s->conn;
    const uint8_t *start = memchr(piece->data, '\n', piece->len);
    INVARIANT(start);
    if (!s->chunked)
        http__write_bytes(c, start + 1, piece->len - (size_t)(start + 1 - piece->data) - CRLF);
    else if (c->tls)
        http__write_bytes(c, piece->data, piece->len);
    else
        loop_socket_share(c->socket, piece);
    if (!c->deadline_ms)
        watch(c);
}

void http_stream_write(struct http_stream *s, const void *data, size_t len)
{
    if (!len)
        return;
    struct shared *piece = http_stream_piece(data, len);
    http_stream_share(s, piece);
    shared_drop(piece);
}

size_t http_stream_queued(const struct http_stream *s)
{
    return loop_socket_queued(s->conn->socket);
}

void http_stream_end(struct http_stream *s)
{
    static const char last[] = "0\r\n\r\n";
    struct http_conn *c = s->conn;
    c->stream = NULL;
    if (s->chunked)
        http__write_bytes(c, last, sizeof(last) - 1);
    free(s);
    c->queued = loop_socket_queued(c->socket);
    http__move(c, CONN_WRITE, c->config.limits->stall_ms);
}

void http__stream_room(struct http_conn *c)
{
    struct http_stream *s = c->stream;
    s->moved = true;
    s->events->on_room(s->arg);
}

bool http__stream_stalls(struct http_conn *c)
{
    size_t queued = loop_socket_queued(c->socket);
    if (queued && queued >= c->queued && !c->stream->moved)
        return true;
    watch(c);
    return false;
}

void http__stream_gone(struct http_conn *c)
{
    struct http_stream *s = c->stream;
    if (!s)
        return;
    c->stream = NULL;
    s->events->on_end(s->arg);
    free(s);
}
