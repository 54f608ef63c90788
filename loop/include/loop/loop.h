/* The event loop, and the only user of libuv. One loop runs in one thread; blocking work goes to
 * the thread pool.
 *
 * Every handle is its own heap object: after *_close the callback never fires and the owner may
 * free itself at once; the memory is freed when libuv releases it. loop_free asserts that no handle
 * is open. Callbacks fire from loop_run only, never inside the call that started them. Deadlines
 * are absolute, in milliseconds of loop_now_ms (monotonic). */
#ifndef LOOP_LOOP_H
#define LOOP_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/list.h"

struct loop;
struct loop_timer;
struct loop_poll;
struct loop_signal;
struct loop_stream;

struct loop *loop_new(void);
void loop_run(struct loop *l);  /* until loop_stop, or until no handle is active */
void loop_stop(struct loop *l); /* loop_run returns after this round */
/* Runs the loop dry (close callbacks only) and frees it. Every handle must have been closed: a
 * handle left open is a bug and aborts with its kind. */
void loop_free(struct loop *l);
size_t loop_open_handles(const struct loop *l); /* handles not yet closed by their owner */
/* For use inside another event loop, in place of loop_run: call loop_turn when loop_fd becomes
 * readable and when loop_wait_ms have passed (-1: only loop_fd matters). Ask for both again after
 * each turn and after each call that starts something. A turn handles everything that is due and
 * does not wait. */
int loop_fd(const struct loop *l);
int loop_wait_ms(struct loop *l);
void loop_turn(struct loop *l);
void *loop_uv(struct loop *l); /* the uv_loop_t, for libwebsockets' foreign loop only */

uint64_t loop_now_ms(const struct loop *l);   /* monotonic, constant during one callback */
uint64_t loop_clock_ns(const struct loop *l); /* monotonic, read now: for measuring */
uint64_t loop_steady_ms(void);                /* monotonic, of who has no loop yet */
uint64_t loop_wall_ms(void);        /* wall clock, for display: it decides nothing alone */
uint64_t loop_seed(struct loop *l); /* random, to seed a struct rng */

/* Timers. loop_timer_at replaces an earlier deadline; a past deadline fires in the next round. */
struct loop_timer *loop_timer_new(struct loop *l, void (*cb)(void *arg), void *arg);
void loop_timer_at(struct loop_timer *t, uint64_t deadline_ms);
void loop_timer_stop(struct loop_timer *t);
bool loop_timer_armed(const struct loop_timer *t);
struct loop_timer *loop_timer_close(struct loop_timer *t); /* NULL allowed; returns NULL */

/* Deferral: cb fires once, in the next round. The task is embedded in its owner. */
struct loop_task {
    struct list node;
    void (*cb)(struct loop_task *task);
};
void loop_post(struct loop *l, struct loop_task *task,
               void (*cb)(struct loop_task *task)); /* must not be posted */
void loop_task_cancel(struct loop_task *task);      /* not posted: allowed */

/* Readiness of a file descriptor that the caller owns. Close before the descriptor is closed. */
enum { LOOP_READABLE = 1, LOOP_WRITABLE = 2 };
/* events: LOOP_READABLE | LOOP_WRITABLE; status: 0 or negative when the kernel reports an error. */
struct loop_poll *loop_poll_new(struct loop *l, int fd,
                                void (*cb)(void *arg, int status, int events), void *arg);
void loop_poll_set(struct loop_poll *p, int events); /* 0 stops; no system call when unchanged */
struct loop_poll *loop_poll_close(struct loop_poll *p);

/* Name resolution off the loop. cb gets up to LOOP_ADDRS_MAX numeric addresses, or an error
 * text. A host that is a numeric address is answered whatever the resolver does. */
enum { LOOP_ADDRS_MAX = 16, LOOP_ADDR_LEN = 46 };
struct loop_resolve {
    /* out */
    int count;
    char addr[LOOP_ADDRS_MAX][LOOP_ADDR_LEN];
    struct err err; /* ERR_NET with the resolver's text */
    /* private */
    void (*cb)(struct loop_resolve *r);
    void *uv;
    struct loop_task task; /* of a numeric address, which is the answer */
};
void loop_resolve_start(struct loop *l, struct loop_resolve *r, const char *host,
                        void (*cb)(struct loop_resolve *r));
void loop_resolve_cancel(struct loop_resolve *r); /* cb never fires after this; allowed when idle */

/* Work on the thread pool. `run` is called on another thread and uses only what the owner leaves to
 * it until `done`, which fires once, from the loop. There is no way to take it back. */
struct loop_work {
    void (*run)(struct loop_work *w);
    void (*done)(struct loop_work *w);
    void *uv; /* private */
};
void loop_work_start(struct loop *l, struct loop_work *w, void (*run)(struct loop_work *w),
                     void (*done)(struct loop_work *w));

struct loop_signal *loop_signal_new(struct loop *l, int signum, void (*cb)(void *arg, int signum),
                                    void *arg);
struct loop_signal *loop_signal_close(struct loop_signal *s);

/* Lines from a descriptor (standard input of a standalone relay). cb(line, len); line NULL: end of
 * file. A line over max_len bytes is cut into the error case: cb(NULL, max_len). */
struct loop_stream *loop_stream_new(struct loop *l, int fd, size_t max_len,
                                    void (*cb)(void *arg, const char *line, size_t len), void *arg);
/* After the end: why no more can be read; NULL: it was the end of the file. */
const char *loop_stream_failure(const struct loop_stream *s);
/* false: read no more for now; lines that were read already still come. Not after the end of
 * file. */
void loop_stream_read(struct loop_stream *s, bool on);
struct loop_stream *loop_stream_close(struct loop_stream *s);

#endif
