/* Accepting connections. libuv's own way closes every waiting connection without a word when the
 * process has no descriptor left; here they wait, and the log says so. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "internal.h"

enum {
    AGAIN_MS = 200,    /* from a failure to the next accept */
    REPORT_MS = 10000, /* from one line of the log to the next */
};

struct loop_acceptor {
    struct loop *loop;
    int fd;
    struct loop_poll *poll;
    struct loop_timer *again;
    unsigned failures; /* since the last line of the log */
    uint64_t reported_at;
    bool reported;
    char *path; /* unix: removed at close */
    char *address;
    void (*cb)(void *arg, int fd);
    void *arg;
};

/* The connection ended before it was accepted: accept(2) of Linux has these. */
static bool of_the_connection(int error)
{
    switch (error) {
    case EAGAIN:
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENOPROTOOPT:
    case EOPNOTSUPP:
    case ENONET:
        return true;
    default:
        return false;
    }
}

static void failed(struct loop_acceptor *a, int error)
{
    uint64_t now = loop_now_ms(a->loop);
    a->failures++;
    loop_poll_set(a->poll, 0);
    loop_timer_at(a->again, now + AGAIN_MS);
    if (a->reported && now - a->reported_at < REPORT_MS)
        return;
    log_error("listener.failed",
              "address=%s failures=%u text=\"a connection cannot be accepted: %s; it waits\"",
              a->address, a->failures, uv_strerror(uv_translate_sys_error(error)));
    a->reported = true;
    a->reported_at = now;
    a->failures = 0;
}

static void on_again(void *arg)
{
    loop_poll_set(((struct loop_acceptor *)arg)->poll, LOOP_READABLE);
}

/* One connection in each round: cb may close the acceptor. */
static void on_ready(void *arg, int status, int events)
{
    struct loop_acceptor *a = arg;
    (void)events;
    if (status < 0) {
        failed(a, -status);
        return;
    }
    int fd = accept4(a->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0)
        a->cb(a->arg, fd);
    else if (!of_the_connection(errno))
        failed(a, errno);
}

struct loop_acceptor *loop__acceptor_new(struct loop *l, const struct loop_address *address,
                                         void (*cb)(void *arg, int fd), void *arg, struct err *err)
{
    char *path = NULL;
    int fd = loop__listen(address, &path, err);
    if (fd < 0)
        return NULL;
    struct loop_acceptor *a = xcalloc(1, sizeof(*a));
    *a = (struct loop_acceptor){.loop = l, .fd = fd, .path = path, .cb = cb, .arg = arg};
    a->address = loop__bound_name(fd, address);
    a->poll = loop_poll_new(l, fd, on_ready, a);
    a->again = loop_timer_new(l, on_again, a);
    loop_poll_set(a->poll, LOOP_READABLE);
    return a;
}

const char *loop__acceptor_address(const struct loop_acceptor *a)
{
    return a->address;
}

struct loop_acceptor *loop__acceptor_close(struct loop_acceptor *a)
{
    if (!a)
        return NULL;
    loop_poll_close(a->poll);
    loop_timer_close(a->again);
    close(a->fd);
    if (a->path)
        unlink(a->path);
    free(a->path);
    free(a->address);
    free(a);
    return NULL;
}
