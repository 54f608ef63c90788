/* loop/loop.h on virtual time: the loop of one simulated process. Its clock has an offset and a
 * rate of its own, and a callback never runs inside the call that started it. A timer keeps one
 * event in the world's queue; when that comes too early, because the deadline has moved on
 * meanwhile, it is put back. */
#include <stdlib.h>

#include "base/alloc.h"
#include "sim.h"
#include "sim_memory.h"

struct loop {
    struct world *w;
    struct process *p;
    struct list tasks;
    bool round;           /* the next round is in the queue */
    size_t open, zombies; /* zombies: timers that are closed and still have an event in the queue */
};

struct loop_timer {
    struct loop *l;
    void (*cb)(void *arg);
    void *arg;
    uint64_t deadline; /* local ms; NEVER: not armed */
    uint64_t queued;   /* world's time of the event that counts; NEVER: none */
    uint32_t token;
    uint32_t events; /* in the queue, the stale ones too */
    bool closed;
};

struct loop *sim_loop_new(struct world *w, struct process *p)
{
    struct loop *l = xcalloc(1, sizeof(*l));
    l->w = w;
    l->p = p;
    list_init(&l->tasks);
    return l;
}

struct world *loop_world(const struct loop *l)
{
    return l->w;
}

struct process *loop_process(const struct loop *l)
{
    return l->p;
}

size_t loop_open_handles(const struct loop *l)
{
    return l->open;
}

/* Of memory, that are the loop's own. */
size_t loop_blocks(const struct loop *l)
{
    return 1 + l->zombies;
}

/* ---- clocks ---- */

uint64_t loop_now_ms(const struct loop *l)
{
    return local_ns(l->w, l->p) / 1000000;
}

uint64_t loop_clock_ns(const struct loop *l)
{
    return local_ns(l->w, l->p);
}

static uint64_t wall_ms; /* of all relays, and of the chain */

void loop_wall_set(uint64_t ms)
{
    wall_ms = ms;
}

uint64_t loop_wall_ms(void)
{
    return wall_ms;
}

uint64_t loop_seed(struct loop *l)
{
    return rng_next(&l->w->rng);
}

/* ---- tasks ---- */

static void queue_round(struct loop *l);

/* What is posted in this round runs in the next one. A process that is stopped meanwhile goes on
 * with the rest. */
static void run_round(struct world *w, struct event *e)
{
    struct loop *l = w->processes[e->process].loop;
    size_t count = 0;
    l->round = false;
    LIST_EACH (n, &l->tasks)
        count++;
    while (count-- && !l->p->paused) {
        struct list *n = list_first(&l->tasks);
        if (!n)
            break; /* one of them cancelled others */
        struct loop_task *task = CONTAINER_OF(n, struct loop_task, node);
        list_remove(n);
        task->cb(task);
        if (!l->p->loop)
            return; /* that was the process's last */
    }
    if (!list_empty(&l->tasks))
        queue_round(l);
}

static void queue_round(struct loop *l)
{
    if (l->round)
        return;
    l->round = true;
    process_later(l->w, l->p, 0, "round", run_round);
}

void loop_post(struct loop *l, struct loop_task *task, void (*cb)(struct loop_task *task))
{
    PRE(!list_linked(&task->node));
    task->cb = cb;
    list_append(&l->tasks, &task->node);
    queue_round(l);
}

void loop_task_cancel(struct loop_task *task)
{
    list_remove(&task->node);
}

/* The thread pool is as fast as the loop. */
struct working {
    struct loop_task task;
    struct loop_work *work;
};

static void work_done(struct loop_task *task)
{
    struct working *x = CONTAINER_OF(task, struct working, task);
    struct loop_work *w = x->work;
    free(x);
    w->done(w);
}

void loop_work_start(struct loop *l, struct loop_work *w, void (*run)(struct loop_work *w),
                     void (*done)(struct loop_work *w))
{
    struct working *x = xcalloc(1, sizeof(*x));
    *w = (struct loop_work){.run = run, .done = done};
    x->work = w;
    run(w);
    loop_post(l, &x->task, work_done);
}

/* ---- timers ---- */

static void fired(struct world *w, struct event *e);

static void queue_timer(struct loop_timer *t, uint64_t at)
{
    struct event *e = process_at(t->l->w, t->l->p->index, t->l->p->life, at, "timer", fired);
    e->p = t;
    e->a = ++t->token;
    t->queued = at;
    t->events++;
}

static void fired(struct world *w, struct event *e)
{
    struct loop_timer *t = e->p;
    t->events--;
    if (t->closed && !t->events) {
        t->l->zombies--;
        free(t);
    } else if (!t->closed && t->token == e->a) {
        t->queued = NEVER;
        if (t->deadline == NEVER)
            return;
        uint64_t due = t->deadline <= loop_now_ms(t->l) ? 0 : world_time(t->l->p, t->deadline);
        if (due > w->now) {
            queue_timer(t, due);
            return;
        }
        t->deadline = NEVER;
        t->cb(t->arg);
    }
}

struct loop_timer *loop_timer_new(struct loop *l, void (*cb)(void *arg), void *arg)
{
    struct loop_timer *t = xcalloc(1, sizeof(*t));
    *t = (struct loop_timer){.l = l, .cb = cb, .arg = arg, .deadline = NEVER, .queued = NEVER};
    l->open++;
    return t;
}

void loop_timer_at(struct loop_timer *t, uint64_t deadline_ms)
{
    t->deadline = deadline_ms;
    uint64_t now = t->l->w->now;
    uint64_t at = deadline_ms <= loop_now_ms(t->l) ? now : world_time(t->l->p, deadline_ms);
    if (at < now)
        at = now;
    if (t->queued == NEVER || at < t->queued)
        queue_timer(t, at);
}

void loop_timer_stop(struct loop_timer *t)
{
    t->deadline = NEVER;
}

bool loop_timer_armed(const struct loop_timer *t)
{
    return t->deadline != NEVER;
}

struct loop_timer *loop_timer_close(struct loop_timer *t)
{
    if (!t)
        return NULL;
    t->l->open--;
    t->closed = true;
    if (t->events)
        t->l->zombies++;
    else
        free(t);
    return NULL;
}
