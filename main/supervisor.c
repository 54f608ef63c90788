/* The datagrams of sd_notify(3), and the watchdog of sd_watchdog_enabled(3). */
#define _GNU_SOURCE
#include "supervisor.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "loop/loop.h"

struct supervisor {
    struct loop *loop;
    int fd; /* connected; -1: no supervisor listens */
    struct loop_timer *watchdog;
    uint64_t watchdog_ms; /* between two datagrams */
    char status[400];
};

/* "/path", or "@name" for an abstract socket. */
static int connect_to(const char *address)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t len = strlen(address);
    if ((address[0] != '/' && address[0] != '@') || len >= sizeof(to.sun_path))
        return -1;
    memcpy(to.sun_path, address, len);
    if (address[0] == '@')
        to.sun_path[0] = 0;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&to, size)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* A supervisor that is gone or busy (false) is no reason to stop. */
static bool say(struct supervisor *s, const char *text)
{
    return s->fd >= 0 && send(s->fd, text, strlen(text), MSG_NOSIGNAL) >= 0;
}

static void on_watchdog(void *arg)
{
    struct supervisor *s = arg;
    say(s, "WATCHDOG=1");
    loop_timer_at(s->watchdog, loop_now_ms(s->loop) + s->watchdog_ms);
}

/* The interval that the supervisor wants from this process; 0: none. */
static uint64_t watchdog_us(void)
{
    const char *interval = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    if (!interval || (pid && strtol(pid, NULL, 10) != getpid()))
        return 0;
    return strtoull(interval, NULL, 10);
}

struct supervisor *supervisor_new(struct loop *l)
{
    struct supervisor *s = xcalloc(1, sizeof(*s));
    const char *address = getenv("NOTIFY_SOCKET");
    s->loop = l;
    s->fd = address ? connect_to(address) : -1;
    if (address && s->fd < 0)
        log_warn("supervisor.unreachable", "socket=%s text=\"NOTIFY_SOCKET is not reachable\"",
                 address);
    uint64_t us = s->fd >= 0 ? watchdog_us() : 0;
    if (us) {
        enum { US_PER_MS = 1000, SHARE = 3 }; /* two may be late */
        s->watchdog_ms = us / US_PER_MS / SHARE + 1;
        s->watchdog = loop_timer_new(l, on_watchdog, s);
        loop_timer_at(s->watchdog, loop_now_ms(l));
    }
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    return s;
}

struct supervisor *supervisor_free(struct supervisor *s)
{
    if (!s)
        return NULL;
    loop_timer_close(s->watchdog);
    if (s->fd >= 0)
        close(s->fd);
    free(s);
    return NULL;
}

void supervisor_ready(struct supervisor *s)
{
    say(s, "READY=1");
}

void supervisor_reloading(struct supervisor *s)
{
    enum { NS_PER_US = 1000 };
    char text[80];
    snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
             loop_clock_ns(s->loop) / NS_PER_US);
    say(s, text);
}

void supervisor_stopping(struct supervisor *s)
{
    say(s, "STOPPING=1");
}

void supervisor_status(struct supervisor *s, const char *text)
{
    char line[sizeof(s->status) + 16];
    if (!strcmp(s->status, text))
        return;
    snprintf(line, sizeof(line), "STATUS=%s", text);
    if (say(s, line)) /* else it is said again at the next look */
        snprintf(s->status, sizeof(s->status), "%s", text);
}
