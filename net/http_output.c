/* Answers and refusals as bytes. */
#include <time.h>

#include "base/check.h"
#include "http_conn_internal.h"

void http__send_tls(struct http_conn *c)
{
    const uint8_t *data = NULL;
    size_t n = tls__session_out(c->tls, &data);
    if (n && c->socket)
        loop_socket_write(c->socket, data, n);
    tls__session_sent(c->tls);
}

void http__write_bytes(struct http_conn *c, const void *data, size_t len)
{
    struct err err = {0};
    if (!c->tls) {
        loop_socket_write(c->socket, data, len);
        return;
    }
    if (tls__session_put(c->tls, data, len, &err) == 0)
        http__send_tls(c);
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
                   {503, "Service Unavailable"}};
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

void http__put_head(struct buf *out, const struct http_answer *a, const char *headers, bool ends,
                    enum http_length length)
{
    buf_printf(out, "HTTP/1.1 %d %s\r\n", a->status, http_reason(a->status));
    put_date(out);
    if (a->type)
        buf_printf(out, "Content-Type: %s\r\n", a->type);
    if (length == HTTP_LENGTH_CHUNKED)
        buf_puts(out, "Transfer-Encoding: chunked\r\n");
    else if (length == HTTP_LENGTH_KNOWN && a->status != 204 && a->status != 304)
        buf_printf(out, "Content-Length: %zu\r\n", a->len);
    if (headers)
        buf_puts(out, headers);
    if (a->headers)
        buf_puts(out, a->headers);
    if (ends)
        buf_puts(out, "Connection: close\r\n");
    buf_puts(out, "\r\n");
}

void http__write(struct buf *out, const struct http_answer *a, const char *headers, bool no_body,
                 bool ends)
{
    http__put_head(out, a, headers, ends, HTTP_LENGTH_KNOWN);
    if (!no_body)
        buf_put(out, a->body, a->len);
}

void http__conn_answer(struct http_conn *c, struct buf *bytes)
{
    PRE(c->state == CONN_SERVE && c->request);
    http__request_free(c->request);
    c->request = NULL;
    http__write_bytes(c, bytes->data, bytes->len);
    c->queued = loop_socket_queued(c->socket);
    http__move(c, CONN_WRITE, c->config.limits->stall_ms);
}

bool http__conn_ends(const struct http_conn *c)
{
    return !c->keep || c->draining;
}

void http__refuse(struct http_conn *c, int status, const char *why)
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
    http__request_free(c->request);
    c->request = NULL;
    http__write_bytes(c, out.data, out.len);
    c->queued = loop_socket_queued(c->socket);
    http__move(c, CONN_WRITE, c->config.limits->stall_ms);
    buf_done(&body);
    buf_done(&out);
}
