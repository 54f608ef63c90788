/* The libwebsockets door: one context per rpc on the foreign loop, one connection at a time.
 *
 * What libwebsockets 4.1.6 asks for (measured, each was met):
 *  - its connect resolves names synchronously: it only ever gets numeric addresses;
 *  - the payload of a client is masked in place: a frame is written once;
 *  - a message comes in pieces: they are joined here, up to message_max_bytes;
 *  - its client looks at each received byte by itself, 83 instructions long (its issue 3394; no setting of
 *    ours is in it): nine tenths of what it costs us;
 *  - a connect may fail by NULL without the error callback, or by the callback: both are taken, once;
 *  - TLS refusals come as a number only: the reason is taken from the verify callback;
 *  - it follows $http_proxy by itself: switched off;
 *  - its tables are sized by ulimit: fd_limit_per_thread;
 *  - a host that is an address is not looked for in the certificate's addresses: done here;
 *  - destroying the context closes its eventfd twice, a round apart (strace): the number is kept occupied
 *    between, else a descriptor that was opened meanwhile would be closed;
 *  - destroying the context takes two calls: the first closes its handles, which ends two rounds of the loop
 *    later; only then may the second free it, and nothing tells when.
 *
 * A connection is known by a number, its generation, so that whatever libwebsockets still says about a
 * dropped one is not taken for the present one. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <libwebsockets.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "rpc_internal.h"

enum {
    FD_LIMIT = 32,          /* the connection, those that are being dropped, the internal ones */
    SERVICE_BUFFER = 65536, /* the size of a piece of a large message */
    KEEP_BUFFER = 1 << 20,  /* a larger reassembly buffer is given back after its message */
    DESTROY_ROUNDS = 4,     /* the connections' handles close in the first, the context's own in the second */
};

_Static_assert(RPC_FRAME_HEADROOM >= LWS_PRE, "room for the WebSocket header");

struct rpc_ws {
    struct rpc *rpc;
    struct lws_context *context; /* NULL: not made yet, or destroyed */
    struct lws *wsi;             /* the present connection */
    uintptr_t generation;        /* of the present connection */
    bool connecting;             /* inside lws_client_connect_via_info */
    bool established;
    bool broken; /* a write failed */
    bool ping_due;
    bool write_asked; /* the callback for writing will come: asking again is two system calls of libuv's */
    bool host_is_address;
    struct buf message;
    char why[200]; /* the most telling reason so far */
    int event_fd;  /* the context's own; -1: not found */
    struct loop_task destroy_task;
    unsigned destroy_rounds;
    void (*freed)(struct rpc *r);
};

/* ---- the context ---- */

static void lws_said(int level, const char *line)
{
    log_debug(level & LLL_ERR ? "lws.error" : "lws.warning", "%.*s", (int)strcspn(line, "\n"), line);
}

static int ws_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len);

static const struct lws_protocols protocols[] = {
    {.name = "rpc", .callback = ws_callback},
    {.name = NULL},
};

/* Descriptors of the context are made next to each other: first one for random bytes, then the eventfd. */
enum { NEW_FDS = 4 };

/* Which of the next numbers are free now, beginning with the one that the next open will get. */
static int free_fds(bool ret_free[NEW_FDS])
{
    int first = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (first >= 0)
        close(first);
    for (int i = 0; i < NEW_FDS; i++)
        ret_free[i] = first >= 0 && fcntl(first + i, F_GETFD) == -1;
    return first;
}

static bool is_event_fd(int fd)
{
    char path[64], target[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(path, target, sizeof(target) - 1);
    target[n > 0 ? n : 0] = 0;
    return strstr(target, "eventfd") != NULL;
}

/* After its first close: occupy the number, for the second close to hit. */
static void event_fd_occupy(int event_fd)
{
    if (event_fd < 0 || fcntl(event_fd, F_GETFD) != -1)
        return;
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && fd != event_fd) {
        dup3(fd, event_fd, O_CLOEXEC);
        close(fd);
    }
}

static bool context_make(struct rpc_ws *ws)
{
    bool was_free[NEW_FDS];
    int first = free_fds(was_free);
    void *loops[] = {loop_uv(ws->rpc->loop)};
    struct lws_context_creation_info info = {
        .port = CONTEXT_PORT_NO_LISTEN,
        .protocols = protocols,
        .gid = -1,
        .uid = -1,
        .options = LWS_SERVER_OPTION_LIBUV,
        .foreign_loops = loops,
        .fd_limit_per_thread = FD_LIMIT,
        .pt_serv_buf_size = SERVICE_BUFFER,
        .http_proxy_address = "none:0",
        .user = ws,
        .pcontext = &ws->context,
    };
    if (ws->rpc->url.tls) {
        info.options |= LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
        if (ws->rpc->config.ca_file) {
            info.options |= LWS_SERVER_OPTION_DISABLE_OS_CA_CERTS;
            info.client_ssl_ca_filepath = ws->rpc->config.ca_file;
        }
    }
    lws_set_log_level(LLL_ERR | LLL_WARN, lws_said);
    ws->context = lws_create_context(&info);
    ws->event_fd = -1;
    for (int i = 0; i < NEW_FDS; i++)
        if (was_free[i] && is_event_fd(first + i))
            ws->event_fd = first + i;
    return ws->context != NULL;
}

static int check_ca_file(const char *path, struct err *err)
{
    X509_STORE *store = X509_STORE_new();
    bool good = X509_STORE_load_file(store, path) == 1;
    X509_STORE_free(store);
    if (good)
        return 0;
    return err_set(err, ERR_CONFIG, "ca_file \"%s\" holds no certificate that can be read; give a PEM file",
                   path);
}

struct rpc_ws *rpc__ws_new(struct rpc *r, struct err *err)
{
    uint8_t addr[16];
    if (r->url.tls && r->config.ca_file && check_ca_file(r->config.ca_file, err))
        return NULL;
    struct rpc_ws *ws = xcalloc(1, sizeof(*ws));
    ws->rpc = r;
    ws->generation = 1;
    ws->host_is_address =
        inet_pton(AF_INET, r->url.host, addr) == 1 || inet_pton(AF_INET6, r->url.host, addr) == 1;
    return ws;
}

static void freed(struct rpc_ws *ws)
{
    void (*cb)(struct rpc * r) = ws->freed;
    struct rpc *r = ws->rpc;
    buf_done(&ws->message);
    free(ws);
    cb(r);
}

static void destroy_round(struct loop_task *task)
{
    struct rpc_ws *ws = CONTAINER_OF(task, struct rpc_ws, destroy_task);
    if (++ws->destroy_rounds < DESTROY_ROUNDS) {
        loop_post(ws->rpc->loop, task, destroy_round);
        return;
    }
    lws_context_destroy(ws->context);
    INVARIANT(!ws->context);
    freed(ws);
}

void rpc__ws_free(struct rpc_ws *ws, void (*cb)(struct rpc *r))
{
    ws->freed = cb;
    if (!ws->context) {
        freed(ws);
        return;
    }
    lws_context_destroy(ws->context);
    event_fd_occupy(ws->event_fd);
    loop_post(ws->rpc->loop, &ws->destroy_task, destroy_round);
}

/* ---- connecting ---- */

static int tls_flags(const struct rpc_ws *ws)
{
    if (!ws->rpc->url.tls)
        return 0;
    if (ws->rpc->config.insecure)
        return LCCSCF_USE_SSL | LCCSCF_ALLOW_SELFSIGNED | LCCSCF_ALLOW_EXPIRED | LCCSCF_ALLOW_INSECURE |
               LCCSCF_SKIP_SERVER_CERT_HOSTNAME_CHECK;
    return LCCSCF_USE_SSL | (ws->host_is_address ? LCCSCF_SKIP_SERVER_CERT_HOSTNAME_CHECK : 0);
}

/* "name:port"; the port is left away where it is the scheme's own. */
static char *host_header(const struct rpc_url *url)
{
    const char *v6 = strchr(url->host, ':');
    if (url->port == (url->tls ? 443 : 80))
        return xasprintf("%s%s%s", v6 ? "[" : "", url->host, v6 ? "]" : "");
    return xasprintf("%s%s%s:%u", v6 ? "[" : "", url->host, v6 ? "]" : "", url->port);
}

bool rpc__ws_connect(struct rpc_ws *ws, const char *addr)
{
    PRE(!ws->wsi);
    if (!ws->context && !context_make(ws))
        return false;
    char *host = host_header(&ws->rpc->url);
    ws->why[0] = 0;
    ws->established = ws->broken = ws->ping_due = ws->write_asked = false;
    struct lws_client_connect_info info = {
        .context = ws->context,
        .address = addr,
        .port = ws->rpc->url.port,
        .ssl_connection = tls_flags(ws),
        .path = ws->rpc->url.path,
        .host = host,
        .ietf_version_or_minus_one = -1,
        .local_protocol_name = protocols[0].name,
        .pwsi = &ws->wsi,
        .opaque_user_data = (void *)ws->generation,
    };
    ws->connecting = true;
    struct lws *wsi = lws_client_connect_via_info(&info);
    ws->connecting = false;
    free(host);
    if (!wsi) {
        ws->generation++;
        ws->wsi = NULL;
    }
    return wsi != NULL;
}

void rpc__ws_drop(struct rpc_ws *ws)
{
    if (!ws)
        return;
    ws->generation++;
    if (ws->wsi)
        lws_set_timeout(ws->wsi, PENDING_TIMEOUT_USER_REASON_BASE, LWS_TO_KILL_ASYNC);
    ws->wsi = NULL;
    ws->established = false;
    buf_clear(&ws->message);
}

/* ---- writing ---- */

void rpc__ws_want_write(struct rpc_ws *ws)
{
    if (!ws || !ws->established || ws->write_asked)
        return;
    ws->write_asked = true;
    lws_callback_on_writable(ws->wsi);
}

bool rpc__ws_can_write(struct rpc_ws *ws)
{
    return ws->established && !ws->broken && !lws_send_pipe_choked(ws->wsi);
}

void rpc__ws_write(struct rpc_ws *ws, struct rpc_frame *frame)
{
    int n = lws_write(ws->wsi, frame->data + RPC_FRAME_HEADROOM, frame->len, LWS_WRITE_TEXT);
    ws->broken = n < 0;
}

void rpc__ws_ping(struct rpc_ws *ws)
{
    if (!ws || !ws->established)
        return;
    ws->ping_due = true;
    rpc__ws_want_write(ws);
}

static int writable(struct rpc_ws *ws)
{
    ws->write_asked = false;
    if (ws->ping_due && rpc__ws_can_write(ws)) {
        uint8_t ping[LWS_PRE];
        ws->ping_due = false;
        ws->broken = lws_write(ws->wsi, ping + LWS_PRE, 0, LWS_WRITE_PING) < 0;
    }
    uintptr_t generation = ws->generation;
    rpc__on_writable(ws->rpc);
    return generation != ws->generation || ws->broken ? -1 : 0;
}

/* ---- reading ---- */

static void closed(struct rpc_ws *ws, const char *why)
{
    char text[sizeof(ws->why)];
    snprintf(text, sizeof(text), "%s", ws->why[0] ? ws->why : why);
    ws->generation++;
    ws->wsi = NULL;
    ws->established = false;
    buf_clear(&ws->message);
    rpc__on_closed(ws->rpc, text);
}

/* What libwebsockets says of an attempt is terse; the status tells a busy node (429) from a wrong port. */
static void attempt_failed(struct rpc_ws *ws, struct lws *wsi, const char *said)
{
    char text[sizeof(ws->why)];
    unsigned status = lws_http_client_http_response(wsi);
    if (!said || strcmp(said, "closed before established") == 0)
        said = "refused, or closed before the WebSocket was open";
    if (status)
        snprintf(text, sizeof(text), "%.120s (HTTP status %u)", said, status);
    else
        snprintf(text, sizeof(text), "%.120s", said);
    closed(ws, text);
}

static int received(struct rpc_ws *ws, struct lws *wsi, const void *in, size_t len)
{
    uintptr_t generation = ws->generation;
    bool last = lws_is_final_fragment(wsi) && lws_remaining_packet_payload(wsi) == 0;
    rpc__on_bytes(ws->rpc);
    if (ws->message.len + len > ws->rpc->config.message_max_bytes) {
        snprintf(ws->why, sizeof(ws->why), "sent a message of more than %u bytes",
                 ws->rpc->config.message_max_bytes);
        return -1; /* closed() follows */
    }
    if (last && ws->message.len == 0) {
        rpc__on_text(ws->rpc, in, len);
        return generation == ws->generation ? 0 : -1;
    }
    buf_put(&ws->message, in, len);
    if (!last)
        return 0;
    struct buf message = ws->message; /* dispatching may drop the connection, which clears the buffer */
    ws->message = (struct buf){0};
    rpc__on_text(ws->rpc, (const char *)message.data, message.len);
    if (message.cap <= KEEP_BUFFER && !ws->message.data) {
        ws->message = message;
        buf_clear(&ws->message);
    } else {
        buf_done(&message);
    }
    return generation == ws->generation ? 0 : -1;
}

static void peer_closes(struct rpc_ws *ws, const uint8_t *in, size_t len)
{
    if (len < 2)
        return;
    snprintf(ws->why, sizeof(ws->why), "the node closed the connection: code %u %.*s",
             (unsigned)(in[0] << 8 | in[1]), (int)(len - 2), (const char *)in + 2);
}

/* Called for each certificate of the chain, from the leaf's issuer down to depth 0. Nonzero refuses. */
static int verify(struct rpc_ws *ws, X509_STORE_CTX *x509, bool good)
{
    int error = X509_STORE_CTX_get_error(x509);
    if (ws->rpc->config.insecure)
        return 0;
    if (!good) {
        snprintf(ws->why, sizeof(ws->why), "its certificate is refused: %s",
                 X509_verify_cert_error_string(error));
        return 1;
    }
    if (ws->host_is_address && X509_STORE_CTX_get_error_depth(x509) == 0 &&
        X509_check_ip_asc(X509_STORE_CTX_get_current_cert(x509), ws->rpc->url.host, 0) != 1) {
        snprintf(ws->why, sizeof(ws->why), "its certificate is refused: it is not for the address %s",
                 ws->rpc->url.host);
        X509_STORE_CTX_set_error(x509, X509_V_ERR_IP_ADDRESS_MISMATCH);
        return 1;
    }
    return 0;
}

static int ws_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
    struct rpc_ws *ws = lws_context_user(lws_get_context(wsi));
    bool present = (uintptr_t)lws_get_opaque_user_data(wsi) == ws->generation;
    switch ((int)reason) { /* most of the hundred reasons are none of ours */
    case LWS_CALLBACK_OPENSSL_PERFORM_SERVER_CERT_VERIFICATION:
        return verify(ws, user, len != 0);
    case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
        if (present && ws->connecting)
            return 0; /* NULL comes back from the connect */
        if (present)
            attempt_failed(ws, wsi, in);
        return 0;
    case LWS_CALLBACK_CLIENT_ESTABLISHED:
        if (!present)
            return -1;
        ws->wsi = wsi;
        ws->established = true;
        rpc__on_connected(ws->rpc);
        return 0;
    case LWS_CALLBACK_CLIENT_RECEIVE:
        return present ? received(ws, wsi, in, len) : -1;
    case LWS_CALLBACK_CLIENT_RECEIVE_PONG:
        if (present)
            rpc__on_bytes(ws->rpc);
        return 0;
    case LWS_CALLBACK_CLIENT_WRITEABLE:
        return present ? writable(ws) : -1;
    case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
        if (present)
            peer_closes(ws, in, len);
        return 0;
    case LWS_CALLBACK_CLIENT_CLOSED:
        if (present)
            closed(ws, "connection lost");
        return 0;
    case LWS_CALLBACK_WSI_DESTROY:
        if (present && !ws->connecting)
            closed(ws, "connection lost");
        return 0;
    default:
        return 0;
    }
}
