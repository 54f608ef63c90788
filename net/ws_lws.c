/* A connection of libwebsockets, one at a time for each client: connecting, writing, reading. The
 * rest of what uses libwebsockets is in ws_context.c.
 *
 * What libwebsockets 4.1.6 requires or does (each point was measured or met):
 *  - Its connect resolves names synchronously: pass it numeric addresses only.
 *  - It masks the text of a frame in place: write a frame once.
 *  - It delivers a message in pieces: we join them, up to message_max_bytes.
 *  - Its client examines every received byte, 83 instructions each (its issue 3394; none of our
 *    settings changes that). That is nine tenths of its cost.
 *  - A connect may fail by returning NULL without the error callback, or by the callback: we count
 *    both once.
 *  - It reports a TLS refusal as a number only: we take the reason from the verify callback.
 *  - It does not compare a host that is an IP address with the certificate's addresses: done here.
 *
 * Each connection has a number, its generation, so that late callbacks about a dropped connection
 * are not taken for the present one. */
#define _GNU_SOURCE
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/check.h"
#include "ws_lws_internal.h"

enum { KEEP_BUFFER = 1 << 20 }; /* a larger reassembly buffer is freed after its message */

_Static_assert(WS_FRAME_HEADROOM >= LWS_PRE, "room for the WebSocket header");

/* ---- connecting ---- */

/* No redirect is followed: it would connect to wherever the answer says, past the url that the
 * operator chose. */
static int connect_flags(const struct ws_conn *conn)
{
    int flags = LCCSCF_HTTP_NO_FOLLOW_REDIRECT;
    if (!conn->client->url.tls)
        return flags;
    if (conn->client->config.insecure)
        return flags | LCCSCF_USE_SSL | LCCSCF_ALLOW_SELFSIGNED | LCCSCF_ALLOW_EXPIRED |
               LCCSCF_ALLOW_INSECURE | LCCSCF_SKIP_SERVER_CERT_HOSTNAME_CHECK;
    return flags | LCCSCF_USE_SSL |
           (conn->host_is_address ? LCCSCF_SKIP_SERVER_CERT_HOSTNAME_CHECK : 0);
}

/* "name:port", without the port if it is the scheme's default. */
static char *host_header(const struct ws_url *url)
{
    const char *v6 = strchr(url->host, ':');
    if (url->port == (url->tls ? 443 : 80))
        return xasprintf("%s%s%s", v6 ? "[" : "", url->host, v6 ? "]" : "");
    return xasprintf("%s%s%s:%u", v6 ? "[" : "", url->host, v6 ? "]" : "", url->port);
}

bool ws__conn_connect(struct ws_conn *conn, const char *addr)
{
    PRE(!conn->wsi);
    if (!conn->context && !ws__context_make(conn))
        return false;
    char *host = host_header(&conn->client->url);
    conn->why[0] = 0;
    conn->established = conn->broken = conn->ping_due = conn->write_asked = false;
    struct lws_client_connect_info info = {
        .context = conn->context,
        .address = addr,
        .port = conn->client->url.port,
        .ssl_connection = connect_flags(conn),
        .path = conn->client->url.path,
        .host = host,
        .ietf_version_or_minus_one = -1,
        .local_protocol_name = WS_PROTOCOL,
        .pwsi = &conn->wsi,
        .opaque_user_data = (void *)conn->generation,
    };
    conn->connecting = true;
    struct lws *wsi = lws_client_connect_via_info(&info);
    conn->connecting = false;
    free(host);
    if (!wsi) {
        conn->generation++;
        conn->wsi = NULL;
    }
    return wsi != NULL;
}

void ws__conn_drop(struct ws_conn *conn)
{
    conn->generation++;
    if (conn->wsi)
        lws_set_timeout(conn->wsi, PENDING_TIMEOUT_USER_REASON_BASE, LWS_TO_KILL_ASYNC);
    conn->wsi = NULL;
    conn->established = false;
    buf_clear(&conn->message);
}

/* ---- writing ---- */

void ws__conn_want_write(struct ws_conn *conn)
{
    if (!conn->established || conn->write_asked)
        return;
    conn->write_asked = true;
    lws_callback_on_writable(conn->wsi);
}

bool ws__conn_can_write(const struct ws_conn *conn)
{
    return conn->established && !conn->broken && !lws_send_pipe_choked(conn->wsi);
}

void ws__conn_write(struct ws_conn *conn, struct ws_frame *f)
{
    PRE(conn->established);
    int n = lws_write(conn->wsi, f->data + WS_FRAME_HEADROOM, f->len, LWS_WRITE_TEXT);
    conn->broken = n < 0;
}

void ws__conn_ping(struct ws_conn *conn)
{
    PRE(conn->established);
    conn->ping_due = true;
    ws__conn_want_write(conn);
}

static int writable(struct ws_conn *conn)
{
    conn->write_asked = false;
    if (conn->ping_due && ws__conn_can_write(conn)) {
        uint8_t empty[LWS_PRE];
        conn->ping_due = false;
        conn->broken = lws_write(conn->wsi, empty + LWS_PRE, 0, LWS_WRITE_PING) < 0;
    }
    uintptr_t generation = conn->generation;
    ws__frames_write(conn->client);
    return generation != conn->generation || conn->broken ? -1 : 0;
}

/* ---- reading ---- */

/* We offer no extension, so no frame may have a reserved bit. libwebsockets ends the connection at
 * the first that has one. */
static const char compressed[] = "a message is compressed (permessage-deflate), and no compression "
                                 "was asked for: switch it off at the server";

static void closed(struct ws_conn *conn, const char *why)
{
    char text[sizeof(conn->why)];
    snprintf(text, sizeof(text), "%s", conn->why[0] ? conn->why : why);
    conn->generation++;
    conn->wsi = NULL;
    conn->established = false;
    buf_clear(&conn->message);
    ws__on_closed(conn->client, text);
}

/* -1: there is none. */
static int64_t date_s(const char *text)
{
    struct tm tm = {0};
    return strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm) ? (int64_t)timegm(&tm) : -1;
}

/* Seconds, or a date, which is as far away as the server's own clock says. */
static uint64_t retry_after_ms(struct lws *wsi)
{
    enum { HOUR_S = 3600 };
    char after[40] = "", now[40] = "";
    if (lws_hdr_copy(wsi, after, sizeof(after), WSI_TOKEN_HTTP_RETRY_AFTER) <= 0)
        return 0;
    int64_t seconds = (int64_t)strtoul(after, NULL, 10), then = date_s(after);
    lws_hdr_copy(wsi, now, sizeof(now), WSI_TOKEN_HTTP_DATE);
    if (then >= 0 && date_s(now) >= 0)
        seconds = then - date_s(now);
    if (seconds < 0 || seconds > HOUR_S)
        seconds = seconds < 0 ? 0 : HOUR_S;
    return (uint64_t)seconds * 1000;
}

static const char no_handshake[] =
    "the server did not answer as a WebSocket: it is no node, or it wants TLS (wss://)";

/* libwebsockets explains a failed attempt in a few words; the HTTP status tells a busy server (429)
 * from a wrong port. */
static void attempt_failed(struct ws_conn *conn, struct lws *wsi, const char *said)
{
    char text[sizeof(conn->why)];
    unsigned status = lws_http_client_http_response(wsi);
    conn->client->retry_after_ms = retry_after_ms(wsi);
    if (!said || strcmp(said, "closed before established") == 0)
        said = "refused, or closed before the WebSocket was open";
    else if (strcmp(said, "read failed") == 0)
        said = no_handshake;
    else if (strstr(said, "EXT"))
        said = "the server turns on an extension that was not offered (compression)";
    else if (strstr(said, "SSL"))
        said = "the TLS handshake failed: the server speaks no TLS at this port (ws://), or an old "
               "version of it";
    if (status >= 300 && status < 400)
        snprintf(text, sizeof(text),
                 "HTTP status %u: a redirect, which is not followed; give the url that it leads to",
                 status);
    else if (status == 200 || status == 404)
        snprintf(text, sizeof(text),
                 "a web server answers there, and no node (HTTP status %u): correct the port or "
                 "the path",
                 status);
    else if (status)
        snprintf(text, sizeof(text), "%.120s (HTTP status %u)", said, status);
    else
        snprintf(text, sizeof(text), "%.120s", said);
    closed(conn, text);
}

static int received(struct ws_conn *conn, struct lws *wsi, const void *in, size_t len)
{
    uintptr_t generation = conn->generation;
    bool last = lws_is_final_fragment(wsi) && lws_remaining_packet_payload(wsi) == 0;
    ws__on_bytes(conn->client);
    if (conn->message.len + len > conn->client->config.message_max_bytes) {
        snprintf(conn->why, sizeof(conn->why), "sent a message of more than %u bytes",
                 conn->client->config.message_max_bytes);
        return -1; /* closed() follows */
    }
    if (last && conn->message.len == 0) {
        ws__on_text(conn->client, in, len);
        return generation == conn->generation ? 0 : -1;
    }
    buf_put(&conn->message, in, len);
    if (!last)
        return 0;
    struct buf message =
        conn->message; /* on_text may drop the connection, which clears the buffer */
    conn->message = (struct buf){0};
    ws__on_text(conn->client, (const char *)message.data, message.len);
    if (message.cap <= KEEP_BUFFER && !conn->message.data) {
        conn->message = message;
        buf_clear(&conn->message);
    } else {
        buf_done(&message);
    }
    return generation == conn->generation ? 0 : -1;
}

static void peer_closes(struct ws_conn *conn, const uint8_t *in, size_t len)
{
    if (len < 2)
        return;
    snprintf(conn->why, sizeof(conn->why), "the %s closed the connection: code %u %.*s",
             conn->client->config.peer, (unsigned)(in[0] << 8 | in[1]), (int)(len - 2),
             (const char *)in + 2);
}

/* Called for each certificate of the chain, from the leaf's issuer down to depth 0. Nonzero refuses
 * it. */
static int verify(struct ws_conn *conn, X509_STORE_CTX *x509, bool good)
{
    int error = X509_STORE_CTX_get_error(x509);
    if (conn->client->config.insecure)
        return 0;
    if (!good) {
        snprintf(conn->why, sizeof(conn->why), "its certificate is refused: %s",
                 X509_verify_cert_error_string(error));
        return 1;
    }
    if (conn->host_is_address && X509_STORE_CTX_get_error_depth(x509) == 0 &&
        X509_check_ip_asc(X509_STORE_CTX_get_current_cert(x509), conn->client->url.host, 0) != 1) {
        snprintf(conn->why, sizeof(conn->why),
                 "its certificate is refused: it is not for the address %s",
                 conn->client->url.host);
        X509_STORE_CTX_set_error(x509, X509_V_ERR_IP_ADDRESS_MISMATCH);
        return 1;
    }
    return 0;
}

/* The request's head has `len` bytes of room. What the url says of a user goes into it. */
static int authorize(const struct ws_conn *conn, struct lws *wsi, unsigned char **in, size_t len)
{
    const char *credentials = conn->client->url.credentials;
    if (!credentials)
        return 0;
    size_t size = strlen(credentials) * 4 / 3 + 16;
    char *value = xasprintf("Basic %*s", (int)size, "");
    bool good =
        lws_b64_encode_string(credentials, (int)strlen(credentials), value + 6, (int)size) > 0 &&
        lws_add_http_header_by_token(wsi, WSI_TOKEN_HTTP_AUTHORIZATION, (unsigned char *)value,
                                     (int)strlen(value), in, *in + len) == 0;
    explicit_bzero(value, size + 6);
    free(value);
    return good ? 0 : -1;
}

int ws__lws_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                     size_t len)
{
    struct ws_conn *conn = lws_context_user(lws_get_context(wsi));
    bool present = (uintptr_t)lws_get_opaque_user_data(wsi) == conn->generation;
    switch ((int)reason) { /* we handle a few of a hundred reasons */
    case LWS_CALLBACK_OPENSSL_PERFORM_SERVER_CERT_VERIFICATION:
        return verify(conn, user, len != 0);
    case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
        if (present && conn->connecting)
            return 0; /* the connect returns NULL */
        if (present)
            attempt_failed(conn, wsi, in);
        return 0;
    case LWS_CALLBACK_CLIENT_APPEND_HANDSHAKE_HEADER:
        return authorize(conn, wsi, in, len);
    case LWS_CALLBACK_CLIENT_ESTABLISHED:
        if (!present)
            return -1;
        conn->wsi = wsi;
        conn->established = true;
        ws__on_open(conn->client);
        return 0;
    case LWS_CALLBACK_CLIENT_RECEIVE:
        return present ? received(conn, wsi, in, len) : -1;
    case LWS_CALLBACK_CLIENT_RECEIVE_PONG:
        if (present)
            ws__on_bytes(conn->client);
        return 0;
    case LWS_CALLBACK_CLIENT_WRITEABLE:
        return present ? writable(conn) : -1;
    case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
        if (present)
            peer_closes(conn, in, len);
        return 0;
    case LWS_CALLBACK_CLIENT_CLOSED:
        if (present)
            closed(conn, lws_get_reserved_bits(wsi) ? compressed : "connection lost");
        return 0;
    case LWS_CALLBACK_WSI_DESTROY:
        if (present && !conn->connecting)
            closed(conn, conn->established ? "connection lost" : no_handshake);
        return 0;
    default:
        return 0;
    }
}
