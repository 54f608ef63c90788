/* Addresses of sockets, and listening on them: for lines (peer.c) and for bytes (socket.c). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
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

enum { PATH_SIZE = sizeof(((struct sockaddr_un *)0)->sun_path) };

int loop__address_parse(const char *text, struct loop_address *ret, struct err *err)
{
    *ret = (struct loop_address){.text = text};
    if (!strncmp(text, "unix:", 5) && text[5]) {
        if (strlen(text + 5) >= PATH_SIZE)
            return err_set(err, ERR_ARGUMENT,
                           "address '%.60s...': the path has %zu bytes, and a socket's path has at "
                           "most %d: give a shorter one",
                           text, strlen(text + 5), PATH_SIZE - 1);
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

enum path_state { PATH_FREE, PATH_STALE, PATH_LIVE, PATH_FILE };

/* What is at the path of a unix socket. Only a refused connection says that nobody listens: the
 * socket of a process that is busy, or of another user, is not stale. */
static enum path_state look_at(const char *path)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    struct stat st;
    if (stat(path, &st) != 0)
        return PATH_FREE;
    if (!S_ISSOCK(st.st_mode))
        return PATH_FILE;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return PATH_LIVE;
    memcpy(sun.sun_path, path, strlen(path) + 1);
    bool stale = connect(fd, (struct sockaddr *)&sun, sizeof(sun)) != 0 && errno == ECONNREFUSED;
    close(fd);
    return stale ? PATH_STALE : PATH_LIVE;
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
    if (look_at(a->path) == PATH_STALE)
        unlink(a->path); /* a process that was killed left it */
    memcpy(sun.sun_path, a->path, strlen(a->path) + 1);
    mode_t old = umask(0177);
    int rc = bind(fd, (const struct sockaddr *)&sun, sizeof(sun));
    umask(old);
    return rc;
}

static const char *way_out(const struct loop_address *a, int error)
{
    switch (error) {
    case EADDRINUSE:
        return a->is_unix && look_at(a->path) == PATH_FILE
                   ? ": a file that is no socket is there: give another path"
                   : ": stop the program that has it, or give another one";
    case ENOENT:
        return a->is_unix ? ": create its folder" : "";
    case EACCES:
    case EROFS:
        return a->is_unix ? ": give a path in a folder that the relay's user may write to"
                          : ": give a port above 1023";
    case EADDRNOTAVAIL:
        return ": this machine has no such address";
    default:
        return "";
    }
}

static int refuse(const struct loop_address *a, int error, struct err *err)
{
    return err_set(err, ERR_IO, "cannot listen on %s: %s%s", a->text,
                   uv_strerror(uv_translate_sys_error(error)), way_out(a, error));
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
    refuse(a, errno, err);
    if (bound && a->is_unix)
        unlink(a->path);
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Nothing is made at the path: a relay may start there at this moment. */
static int try_path(const struct loop_address *a)
{
    enum path_state state = look_at(a->path);
    if (state == PATH_FILE || state == PATH_LIVE)
        return EADDRINUSE;
    const char *slash = strrchr(a->path, '/');
    char *folder = !slash             ? xstrdup(".")
                   : slash == a->path ? xstrdup("/")
                                      : xstrndup(a->path, (size_t)(slash - a->path));
    int error = faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) != 0 ? errno : 0;
    free(folder);
    return error;
}

/* It is bound and not listened on, so a program that listens there in the meantime can. */
static int try_port(const struct loop_address *a)
{
    int fd = socket(a->tcp.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int error = fd < 0 || bind_to(fd, a) != 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    return error;
}

int loop_address_try(const char *address, bool *ret_taken, struct err *err)
{
    struct loop_address a;
    *ret_taken = false;
    if (loop__address_parse(address, &a, err))
        return err->code;
    int error = a.is_unix ? try_path(&a) : try_port(&a);
    if (!error)
        return 0;
    *ret_taken = error == EADDRINUSE && !(a.is_unix && look_at(a.path) == PATH_FILE);
    return refuse(&a, error, err);
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
