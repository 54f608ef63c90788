/* Addresses of sockets, and listening on them: for lines (peer.c) and for bytes (socket.c). */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/host.h"
#include "internal.h"
#include "loop/peer.h"

int loop__address_parse(const char *text, struct loop_address *ret, struct err *err)
{
    *ret = (struct loop_address){.text = text};
    if (!strncmp(text, "unix:", 5) && text[5] &&
        strlen(text + 5) < sizeof(((struct sockaddr_un *)0)->sun_path)) {
        ret->is_unix = true;
        ret->path = text + 5;
        return 0;
    }
    const char *colon = strrchr(text, ':');
    if (!strncmp(text, "tcp:", 4) && colon > text + 4) {
        size_t n = (size_t)(colon - text - 4);
        char *end = NULL;
        long port = strtol(colon + 1, &end, 10);
        if (n < sizeof(ret->host) && end != colon + 1 && !*end && port >= 0 && port < 65536) {
            memcpy(ret->host, text + 4, n);
            ret->port = (int)port;
            if (uv_ip4_addr(ret->host, ret->port, (struct sockaddr_in *)&ret->tcp) == 0 ||
                uv_ip6_addr(ret->host, ret->port, (struct sockaddr_in6 *)&ret->tcp) == 0)
                return 0;
        }
    }
    return err_set(err, ERR_ARGUMENT,
                   "address '%s' is neither unix:/path nor tcp:NUMERIC-HOST:PORT", text);
}

bool loop_address_is_unix(const char *address)
{
    struct loop_address a;
    struct err err;
    return loop__address_parse(address, &a, &err) == 0 && a.is_unix;
}

bool loop_address_is_local(const char *address)
{
    struct loop_address a;
    struct err err;
    if (loop__address_parse(address, &a, &err))
        return false;
    return a.is_unix || host_is_loopback(a.host, strlen(a.host));
}

void loop__endpoint_init(struct loop *l, union loop_endpoint *uv, bool is_unix)
{
    if (is_unix)
        uv_pipe_init(&l->uv, &uv->pipe, 0);
    else
        uv_tcp_init(&l->uv, &uv->tcp);
    loop__opened(l);
}

/* A socket file on which no process answers was left by a process that was killed. */
static void remove_stale(const char *path)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISSOCK(st.st_mode))
        return;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    memcpy(sun.sun_path, path, strlen(path) + 1);
    if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) != 0)
        unlink(path);
    close(fd);
}

static int bind_to(union loop_endpoint *uv, const struct loop_address *a, char **ret_path)
{
    if (!a->is_unix)
        return uv_tcp_bind(&uv->tcp, (const struct sockaddr *)&a->tcp, 0);
    remove_stale(a->path);
    mode_t old = umask(0177);
    int rc = uv_pipe_bind(&uv->pipe, a->path);
    umask(old);
    if (rc == 0)
        *ret_path = xstrdup(a->path);
    return rc;
}

/* uv reports a folder that is missing as one that may not be entered. */
static bool lacks_folder(const struct loop_address *a)
{
    char folder[256];
    struct stat st;
    snprintf(folder, sizeof(folder), "%s", a->path);
    char *slash = strrchr(folder, '/');
    if (!slash || slash == folder)
        return false;
    *slash = 0;
    return stat(folder, &st) != 0 && errno == ENOENT;
}

int loop__listen(struct loop *l, union loop_endpoint *uv, const struct loop_address *a,
                 uv_connection_cb cb, char **ret_path, struct err *err)
{
    loop__endpoint_init(l, uv, a->is_unix);
    int rc = bind_to(uv, a, ret_path);
    if (rc == 0)
        rc = uv_listen(&uv->stream, 64, cb);
    if (rc == 0)
        return 0;
    return err_set(
        err, ERR_IO, "cannot listen on %s: %s%s", a->text,
        rc == UV_EACCES && a->is_unix && lacks_folder(a) ? "its folder does not exist: create it"
                                                         : uv_strerror(rc),
        rc == UV_EADDRINUSE ? ": stop the program that has it, or give another one" : "");
}

char *loop__bound_name(const union loop_endpoint *uv, const struct loop_address *a)
{
    struct sockaddr_storage ss;
    int len = sizeof(ss);
    if (a->is_unix || uv_tcp_getsockname(&uv->tcp, (struct sockaddr *)&ss, &len) != 0)
        return xstrdup(a->text);
    int port = ss.ss_family == AF_INET ? ((struct sockaddr_in *)&ss)->sin_port
                                       : ((struct sockaddr_in6 *)&ss)->sin6_port;
    return xasprintf("tcp:%s:%d", a->host, ((port & 255) << 8) | (port >> 8 & 255));
}
