/* Bytes of the client: out of TLS, held while a request is answered, and into the parser. */
#include "http_conn_internal.h"

enum { HELD_MAX = 64 << 10 };

static void hold(struct http_conn *c, const void *data, size_t len)
{
    if (http__conn_ends(c) || !len)
        return; /* no request follows */
    if (c->held.len + len > HELD_MAX)
        http__finish(c); /* it sends on without reading answers */
    else
        buf_put(&c->held, data, len);
}

void http__parse(struct http_conn *c, const uint8_t *data, size_t len)
{
    const char *end = (const char *)data + len;
    llhttp_errno_t rc = llhttp_execute(&c->parser, (const char *)data, len);
    if (rc == HPE_OK)
        return;
    if (rc != HPE_PAUSED) {
        bool version = rc == HPE_PAUSED_H2_UPGRADE || rc == HPE_INVALID_VERSION;
        http__refuse(c, c->refused ? c->refused : 400,
                     c->refused ? c->why
                     : version  ? HTTP_VERSIONS
                                : llhttp_get_error_reason(&c->parser));
        return;
    }
    const char *at = llhttp_get_error_pos(&c->parser);
    c->keep = llhttp_should_keep_alive(&c->parser) && c->parser.http_minor == 1;
    llhttp_resume(&c->parser);
    hold(c, at, (size_t)(end - at));
    if (c->closed)
        return;
    http__move(c, CONN_SERVE, 0);
    c->config.on_request(c->config.arg, c->request);
}

/* Plain bytes of the client. */
static bool take(void *arg, const uint8_t *data, size_t len)
{
    struct http_conn *c = arg;
    switch (c->state) {
    case CONN_SHAKE:
        http__move(c, CONN_IDLE, c->config.limits->idle_ms);
        http__parse(c, data, len);
        break;
    case CONN_IDLE:
    case CONN_HEAD:
    case CONN_BODY:
        http__parse(c, data, len);
        break;
    case CONN_SERVE:
    case CONN_WRITE:
        hold(c, data, len);
        break;
    case CONN_STREAM:
    case CONN_LINGER:
        break;
    }
    return !c->closed;
}

void http__bytes(void *arg, const uint8_t *data, size_t len)
{
    struct http_conn *c = arg;
    http__enter(c);
    if (!c->tls) {
        take(c, data, len);
    } else {
        struct err err = {0};
        int rc = tls__session_feed(c->tls, data, len, take, c, &err);
        if (!c->closed)
            http__send_tls(c);
        if (rc)
            http__finish(c);
        else if (!c->closed && c->state == CONN_SHAKE && tls__session_up(c->tls))
            http__move(c, CONN_IDLE, c->config.limits->idle_ms);
    }
    http__leave(c);
}
