/* The context of libwebsockets: one for each client on the client's loop, made at the first connect
 * and kept until the client is freed.
 *
 * What libwebsockets 4.1.6 requires or does (each point was measured or met):
 *  - It follows $http_proxy: switched off.
 *  - It sizes its tables by ulimit: we set fd_limit_per_thread.
 *  - Destroying the context closes its eventfd twice, one loop turn apart (seen with strace). We
 *    occupy the number in between; otherwise the second close would hit a descriptor opened
 *    meanwhile.
 *  - Destroying the context takes two calls. The first closes its handles, which takes two loop
 *    turns; only then may the second free the context, and no callback says when. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "ws_lws_internal.h"

enum {
    FD_LIMIT = 32,          /* the connection, dropped ones that still close, internal ones */
    SERVICE_BUFFER = 65536, /* size of one piece of a large message */
    DESTROY_TURNS =
        4, /* the connections' handles close in the first, the context's own in the second */
};

static void lws_said(int level, const char *line)
{
    log_debug(level & LLL_ERR ? "lws.error" : "lws.warning", "text=\"%.*s\"",
              (int)strcspn(line, "\n"), line);
}

static const struct lws_protocols protocols[] = {
    {.name = WS_PROTOCOL, .callback = ws__lws_callback},
    {.name = NULL},
};

/* A context opens its descriptors in a row: one for random bytes, then the eventfd. */
enum { NEW_FDS = 4 };

/* Which of the next NEW_FDS numbers are free, from the one that the next open will return. */
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

/* After the first close of the eventfd: occupy its number for the second close. */
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

bool ws__context_make(struct ws_conn *conn)
{
    bool was_free[NEW_FDS];
    int first = free_fds(was_free);
    void *loops[] = {loop_uv(conn->client->loop)};
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
        .user = conn,
        .pcontext = &conn->context,
    };
    if (conn->client->url.tls) {
        info.options |= LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
        if (conn->client->config.ca_file) {
            info.options |= LWS_SERVER_OPTION_DISABLE_OS_CA_CERTS;
            info.client_ssl_ca_filepath = conn->client->config.ca_file;
        }
    }
    lws_set_log_level(LLL_ERR | LLL_WARN, lws_said);
    conn->context = lws_create_context(&info);
    conn->event_fd = -1;
    for (int i = 0; i < NEW_FDS; i++)
        if (was_free[i] && is_event_fd(first + i))
            conn->event_fd = first + i;
    return conn->context != NULL;
}

static int check_ca_file(const char *path, struct err *err)
{
    X509_STORE *store = X509_STORE_new();
    bool good = X509_STORE_load_file(store, path) == 1;
    X509_STORE_free(store);
    if (good)
        return 0;
    return err_set(err, ERR_CONFIG,
                   "ca_file \"%s\" holds no certificate that can be read; give a PEM file", path);
}

struct ws_conn *ws__conn_new(struct ws_client *c, struct err *err)
{
    uint8_t addr[16];
    if (c->url.tls && c->config.ca_file && check_ca_file(c->config.ca_file, err))
        return NULL;
    struct ws_conn *conn = xcalloc(1, sizeof(*conn));
    conn->client = c;
    conn->generation = 1;
    conn->host_is_address =
        inet_pton(AF_INET, c->url.host, addr) == 1 || inet_pton(AF_INET6, c->url.host, addr) == 1;
    return conn;
}

static void freed(struct ws_conn *conn)
{
    void (*cb)(struct ws_client * c) = conn->freed;
    struct ws_client *c = conn->client;
    buf_done(&conn->message);
    free(conn);
    cb(c);
}

static void destroy_end(struct loop_task *task)
{
    struct ws_conn *conn = CONTAINER_OF(task, struct ws_conn, destroy_task);
    if (conn->context && ++conn->destroy_turns < DESTROY_TURNS) {
        loop_post(conn->client->loop, task, destroy_end);
        return;
    }
    if (conn->context)
        lws_context_destroy(conn->context);
    INVARIANT(!conn->context);
    freed(conn);
}

static void destroy_begin(struct loop_task *task)
{
    struct ws_conn *conn = CONTAINER_OF(task, struct ws_conn, destroy_task);
    if (conn->context) {
        lws_context_destroy(conn->context);
        event_fd_occupy(conn->event_fd);
    }
    loop_post(conn->client->loop, task, destroy_end);
}

/* From the loop: a context must not be destroyed inside one of its callbacks. */
void ws__conn_free(struct ws_conn *conn, void (*cb)(struct ws_client *c))
{
    PRE(!conn->wsi);
    conn->freed = cb;
    loop_post(conn->client->loop, &conn->destroy_task, destroy_begin);
}
