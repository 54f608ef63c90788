/* Timers, readiness, signals, lines. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "internal.h"

/* ---- timers ---- */

struct loop_timer {
    uv_timer_t uv;
    struct loop *loop;
    void (*cb)(void *arg);
    void *arg;
    uint64_t deadline_ms; /* while it is armed */
};

static void timer_fired(uv_timer_t *h)
{
    struct loop_timer *t = CONTAINER_OF(h, struct loop_timer, uv);
    t->cb(t->arg);
}

struct loop_timer *loop_timer_new(struct loop *l, void (*cb)(void *arg), void *arg)
{
    struct loop_timer *t = xcalloc(1, sizeof(*t));
    *t = (struct loop_timer){.loop = l, .cb = cb, .arg = arg};
    uv_timer_init(&l->uv, &t->uv);
    loop__opened(l);
    return t;
}

/* Owners often set the same time again: thousands of accounts at each block. */
void loop_timer_at(struct loop_timer *t, uint64_t deadline_ms)
{
    if (loop_timer_armed(t) && t->deadline_ms == deadline_ms)
        return;
    t->deadline_ms = deadline_ms;
    uint64_t now = uv_now(&t->loop->uv);
    uv_timer_start(&t->uv, timer_fired, deadline_ms > now ? deadline_ms - now : 1, 0);
}

void loop_timer_stop(struct loop_timer *t)
{
    if (loop_timer_armed(t))
        uv_timer_stop(&t->uv);
}

bool loop_timer_armed(const struct loop_timer *t)
{
    return uv_is_active((const uv_handle_t *)&t->uv);
}

struct loop_timer *loop_timer_close(struct loop_timer *t)
{
    if (t)
        loop__close(t->loop, (uv_handle_t *)&t->uv, t);
    return NULL;
}

/* ---- readiness ---- */

struct loop_poll {
    uv_poll_t uv;
    struct loop *loop;
    void (*cb)(void *arg, int status, int events);
    void *arg;
    int mask;
};

static void poll_ready(uv_poll_t *h, int status, int events)
{
    struct loop_poll *p = CONTAINER_OF(h, struct loop_poll, uv);
    if (status < 0)
        p->mask = 0; /* libuv has stopped the handle */
    int mask =
        (events & UV_READABLE ? LOOP_READABLE : 0) | (events & UV_WRITABLE ? LOOP_WRITABLE : 0);
    p->cb(p->arg, status, mask);
}

struct loop_poll *loop_poll_new(struct loop *l, int fd,
                                void (*cb)(void *arg, int status, int events), void *arg)
{
    struct loop_poll *p = xcalloc(1, sizeof(*p));
    *p = (struct loop_poll){.loop = l, .cb = cb, .arg = arg};
    INVARIANT(uv_poll_init(&l->uv, &p->uv, fd) == 0);
    loop__opened(l);
    return p;
}

void loop_poll_set(struct loop_poll *p, int events)
{
    if (events == p->mask)
        return;
    p->mask = events;
    p->loop->armed = true;
    if (!events) {
        uv_poll_stop(&p->uv);
        return;
    }
    int mask =
        (events & LOOP_READABLE ? UV_READABLE : 0) | (events & LOOP_WRITABLE ? UV_WRITABLE : 0);
    INVARIANT(uv_poll_start(&p->uv, mask, poll_ready) == 0);
}

struct loop_poll *loop_poll_close(struct loop_poll *p)
{
    if (p) {
        uv_poll_stop(&p->uv);
        loop__close(p->loop, (uv_handle_t *)&p->uv, p);
    }
    return NULL;
}

/* ---- signals ---- */

struct loop_signal {
    uv_signal_t uv;
    struct loop *loop;
    void (*cb)(void *arg, int signum);
    void *arg;
};

static void signal_fired(uv_signal_t *h, int signum)
{
    struct loop_signal *s = CONTAINER_OF(h, struct loop_signal, uv);
    s->cb(s->arg, signum);
}

struct loop_signal *loop_signal_new(struct loop *l, int signum, void (*cb)(void *arg, int signum),
                                    void *arg)
{
    struct loop_signal *s = xcalloc(1, sizeof(*s));
    *s = (struct loop_signal){.loop = l, .cb = cb, .arg = arg};
    uv_signal_init(&l->uv, &s->uv);
    INVARIANT(uv_signal_start(&s->uv, signal_fired, signum) == 0);
    uv_unref((uv_handle_t *)&s->uv);
    loop__opened(l);
    return s;
}

struct loop_signal *loop_signal_close(struct loop_signal *s)
{
    if (s)
        loop__close(s->loop, (uv_handle_t *)&s->uv, s);
    return NULL;
}

/* ---- lines ---- */

struct loop_stream {
    union {
        uv_handle_t handle;
        uv_pipe_t pipe;
        uv_tty_t tty;
        uv_idle_t file; /* a regular file is always ready: read one chunk per round */
    } uv;
    struct loop *loop;
    void (*cb)(void *arg, const char *line, size_t len);
    void *arg;
    size_t max_len;
    struct buf pending;
    char chunk[65536];
    int fd;
    int failed;    /* uv's code of what ended it; 0: the end of the file, or it goes on */
    bool skipping; /* inside an overlong line */
    bool closing;
};

static void stream_line(struct loop_stream *s, const char *line, size_t len)
{
    if (!s->closing)
        s->cb(s->arg, line, len);
}

static void stream_bytes(struct loop_stream *s, const char *data, size_t n)
{
    while (n && !s->closing) {
        const char *nl = memchr(data, '\n', n);
        size_t part = nl ? (size_t)(nl - data) : n;
        if (!s->skipping && s->pending.len + part > s->max_len) {
            s->skipping = true;
            buf_clear(&s->pending);
            stream_line(s, NULL, s->max_len);
        }
        if (!s->skipping)
            buf_put(&s->pending, data, part);
        if (nl) {
            if (!s->skipping)
                stream_line(s, buf_str(&s->pending), s->pending.len);
            s->skipping = false;
            buf_clear(&s->pending);
            part++;
        }
        data += part;
        n -= part;
    }
}

static void stream_end(struct loop_stream *s, int code)
{
    s->failed = code == UV_EOF ? 0 : code;
    if (s->pending.len)
        stream_line(s, buf_str(&s->pending), s->pending.len);
    stream_line(s, NULL, 0);
}

static void stream_alloc(uv_handle_t *h, size_t hint, uv_buf_t *buf)
{
    (void)hint;
    struct loop_stream *s = CONTAINER_OF(h, struct loop_stream, uv);
    *buf = uv_buf_init(s->chunk, sizeof(s->chunk));
}

static void stream_read(uv_stream_t *h, ssize_t n, const uv_buf_t *buf)
{
    struct loop_stream *s = CONTAINER_OF(h, struct loop_stream, uv);
    if (n > 0)
        stream_bytes(s, buf->base, (size_t)n);
    if (n < 0) {
        uv_read_stop(h);
        stream_end(s, (int)n);
    }
}

static void stream_file(uv_idle_t *h)
{
    struct loop_stream *s = CONTAINER_OF(h, struct loop_stream, uv);
    ssize_t n = read(s->fd, s->chunk, sizeof(s->chunk));
    if (n > 0) {
        stream_bytes(s, s->chunk, (size_t)n);
        return;
    }
    uv_idle_stop(h);
    stream_end(s, n < 0 ? uv_translate_sys_error(errno) : 0);
}

struct loop_stream *loop_stream_new(struct loop *l, int fd, size_t max_len,
                                    void (*cb)(void *arg, const char *line, size_t len), void *arg)
{
    struct loop_stream *s = xcalloc(1, sizeof(*s));
    s->loop = l;
    s->cb = cb;
    s->arg = arg;
    s->max_len = max_len;
    s->fd = fd;
    uv_handle_type type = uv_guess_handle(fd);
    if (type == UV_TTY && uv_tty_init(&l->uv, &s->uv.tty, fd, 1) == 0) {
        uv_read_start((uv_stream_t *)&s->uv.tty, stream_alloc, stream_read);
    } else if (type == UV_NAMED_PIPE && uv_pipe_init(&l->uv, &s->uv.pipe, 0) == 0 &&
               uv_pipe_open(&s->uv.pipe, fd) == 0) {
        uv_read_start((uv_stream_t *)&s->uv.pipe, stream_alloc, stream_read);
    } else {
        uv_idle_init(&l->uv, &s->uv.file);
        uv_idle_start(&s->uv.file, stream_file);
    }
    loop__opened(l);
    return s;
}

const char *loop_stream_failure(const struct loop_stream *s)
{
    return s->failed ? uv_strerror(s->failed) : NULL;
}

void loop_stream_read(struct loop_stream *s, bool on)
{
    if (s->uv.handle.type == UV_IDLE && on)
        uv_idle_start(&s->uv.file, stream_file);
    else if (s->uv.handle.type == UV_IDLE)
        uv_idle_stop(&s->uv.file);
    else if (on)
        uv_read_start((uv_stream_t *)&s->uv.handle, stream_alloc, stream_read);
    else
        uv_read_stop((uv_stream_t *)&s->uv.handle);
}

struct loop_stream *loop_stream_close(struct loop_stream *s)
{
    if (s) {
        s->closing = true;
        buf_done(&s->pending);
        loop__close(s->loop, &s->uv.handle, s);
    }
    return NULL;
}
