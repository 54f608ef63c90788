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
#include "base/check.h"
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

int loop_address_check(const char *address, struct err *err)
{
    struct loop_address a;
    return loop__address_parse(address, &a, err);
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

void loop__endpoint_open(union loop_endpoint *uv, int fd)
{
    int rc =
        uv->handle.type == UV_NAMED_PIPE ? uv_pipe_open(&uv->pipe, fd) : uv_tcp_open(&uv->tcp, fd);
    INVARIANT(rc == 0); /* it is a connected socket that nothing else has */
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

static int bind_to(int fd, const struct loop_address *a)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    const int on = 1;
    if (!a->is_unix) {
        bool six = a->tcp.ss_family == AF_INET6;
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        return bind(fd, (const struct sockaddr *)&a->tcp,
                    six ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
    }
    remove_stale(a->path);
    memcpy(sun.sun_path, a->path, strlen(a->path) + 1);
    mode_t old = umask(0177);
    int rc = bind(fd, (const struct sockaddr *)&sun, sizeof(sun));
    umask(old);
    return rc;
}

int loop__listen(const struct loop_address *a, char **ret_path, struct err *err)
{
    int fd = socket(a->is_unix ? AF_UNIX : a->tcp.ss_family,
                    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool bound = fd >= 0 && bind_to(fd, a) == 0;
    if (bound && listen(fd, 64) == 0) {
        if (a->is_unix)
            *ret_path = xstrdup(a->path);
        return fd;
    }
    err_set(err, ERR_IO, "cannot listen on %s: %s%s", a->text,
            uv_strerror(uv_translate_sys_error(errno)),
            errno == EADDRINUSE             ? ": stop the program that has it, or give another one"
            : errno == ENOENT && a->is_unix ? ": create its folder"
                                            : "");
    if (bound && a->is_unix)
        unlink(a->path);
    if (fd >= 0)
        close(fd);
    return -1;
}

char *loop__bound_name(int fd, const struct loop_address *a)
{
    struct sockaddr_storage ss;
    socklen_t len = sizeof(ss);
    if (a->is_unix || getsockname(fd, (struct sockaddr *)&ss, &len) != 0)
        return xstrdup(a->text);
    int port = ss.ss_family == AF_INET ? ((struct sockaddr_in *)&ss)->sin_port
                                       : ((struct sockaddr_in6 *)&ss)->sin6_port;
    return xasprintf("tcp:%s:%d", a->host, ((port & 255) << 8) | (port >> 8 & 255));
}
