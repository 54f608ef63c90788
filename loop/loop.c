#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "internal.h"

static void run_tasks(uv_check_t *check)
{
    struct loop *l = CONTAINER_OF(check, struct loop, check);
    struct list batch; /* tasks posted from now on wait for the next round */
    list_init(&batch);
    for (struct list *n = list_first(&l->tasks); n; n = list_first(&l->tasks)) {
        list_remove(n);
        list_append(&batch, n);
    }
    for (struct list *n = list_first(&batch); n; n = list_first(&batch)) {
        struct loop_task *task = CONTAINER_OF(n, struct loop_task, node);
        list_remove(n);
        task->cb(task);
    }
    if (list_empty(&l->tasks))
        uv_idle_stop(&l->idle);
}

static void idle_nothing(uv_idle_t *idle)
{
    (void)idle;
}

struct loop *loop_new(void)
{
    struct loop *l = xcalloc(1, sizeof(*l));
    INVARIANT(uv_loop_init(&l->uv) == 0);
    uv_idle_init(&l->uv, &l->idle);
    uv_check_init(&l->uv, &l->check);
    uv_check_start(&l->check, run_tasks);
    uv_unref((uv_handle_t *)&l->check);
    list_init(&l->tasks);
    l->armed = true;
    return l;
}

void loop_run(struct loop *l)
{
    uv_run(&l->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *l)
{
    uv_stop(&l->uv);
}

int loop_fd(const struct loop *l)
{
    return uv_backend_fd(&l->uv);
}

int loop_wait_ms(struct loop *l)
{
    if (!uv_loop_alive(&l->uv))
        return -1;
    if (l->armed)
        return 0;
    uv_update_time(&l->uv);
    return uv_backend_timeout(&l->uv);
}

void loop_turn(struct loop *l)
{
    do {
        l->armed = false;
        uv_run(&l->uv, UV_RUN_NOWAIT);
    } while (l->armed);
}

static void report_open(uv_handle_t *h, void *arg)
{
    struct loop *l = arg;
    if (h == (uv_handle_t *)&l->idle || h == (uv_handle_t *)&l->check || uv_is_closing(h))
        return;
    log_error("loop.leak", "handle=%s", uv_handle_type_name(h->type));
}

void loop_free(struct loop *l)
{
    INVARIANT(list_empty(&l->tasks));
    if (l->open)
        uv_walk(&l->uv, report_open, l);
    INVARIANT(l->open == 0);
    uv_close((uv_handle_t *)&l->idle, NULL);
    uv_close((uv_handle_t *)&l->check, NULL);
    uv_run(&l->uv, UV_RUN_DEFAULT); /* close callbacks, and unfinished work on the pool */
    INVARIANT(l->works == 0);
    int rc = uv_loop_close(&l->uv);
    if (rc)
        uv_walk(&l->uv, report_open, l);
    INVARIANT(rc == 0);
    free(l);
}

size_t loop_open_handles(const struct loop *l)
{
    return l->open;
}

void *loop_uv(struct loop *l)
{
    return &l->uv;
}

uint64_t loop_now_ms(const struct loop *l)
{
    return uv_now(&l->uv);
}

uint64_t loop_clock_ns(const struct loop *l)
{
    (void)l; /* the clock is the process's; a simulated process has one of its own */
    return uv_hrtime();
}

uint64_t loop_steady_ms(void)
{
    return uv_hrtime() / 1000000;
}

uint64_t loop_wall_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

uint64_t loop_seed(struct loop *l)
{
    (void)l;
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
        seed = uv_hrtime();
    return seed;
}

void loop_post(struct loop *l, struct loop_task *task, void (*cb)(struct loop_task *task))
{
    PRE(!list_linked(&task->node));
    task->cb = cb;
    list_append(&l->tasks, &task->node);
    uv_idle_start(&l->idle, idle_nothing);
}

void loop_task_cancel(struct loop_task *task)
{
    list_remove(&task->node);
}

void loop__opened(struct loop *l)
{
    l->open++;
}

static void closed(uv_handle_t *h)
{
    free(h->data);
}

void loop__close(struct loop *l, uv_handle_t *h, void *memory)
{
    INVARIANT(l->open > 0);
    l->open--;
    h->data = memory;
    uv_close(h, closed);
}
