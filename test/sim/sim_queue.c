/* One queue for everything that happens. Events of one moment keep the order in which they were
 * made. An event that belongs to a process runs in that process's memory; it is dropped when the
 * process (its life) is gone, and held back while it is stopped: time goes on, it does not. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "sim.h"
#include "sim_memory.h"

static bool before(const struct event *a, const struct event *b)
{
    return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void push(struct world *w, struct event *e)
{
    if (w->heap_count == w->heap_cap) {
        struct memory *m = memory_use(NULL);
        w->heap_cap = w->heap_cap ? w->heap_cap * 2 : 1024;
        w->heap = xrealloc(w->heap, w->heap_cap * sizeof(struct event *));
        memory_use(m);
    }
    size_t i = w->heap_count++;
    for (; i && before(e, w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = e;
}

static struct event *pop(struct world *w)
{
    struct event *top = w->heap[0], *last = w->heap[--w->heap_count];
    size_t i = 0;
    for (size_t k; (k = 2 * i + 1) < w->heap_count; i = k) {
        if (k + 1 < w->heap_count && before(w->heap[k + 1], w->heap[k]))
            k++;
        if (!before(w->heap[k], last))
            break;
        w->heap[i] = w->heap[k];
    }
    w->heap[i] = last;
    return top;
}

static struct event *make(struct world *w, uint64_t at, const char *name,
                          void (*run)(struct world *w, struct event *e))
{
    struct event *e = w->spare;
    if (e)
        w->spare = e->next;
    else
        e = world_alloc(sizeof(*e));
    *e = (struct event){.at = at, .seq = w->seq++, .name = name, .run = run, .process = -1};
    return e;
}

static void retire(struct world *w, struct event *e)
{
    e->next = w->spare;
    w->spare = e;
}

struct event *later(struct world *w, uint64_t delay, const char *name,
                    void (*run)(struct world *w, struct event *e))
{
    struct event *e = make(w, w->now + delay, name, run);
    push(w, e);
    return e;
}

struct event *process_at(struct world *w, int process, uint32_t life, uint64_t at, const char *name,
                         void (*run)(struct world *w, struct event *e))
{
    struct event *e = make(w, at < w->now ? w->now : at, name, run);
    e->process = process;
    e->life = life;
    push(w, e);
    return e;
}

struct event *process_later(struct world *w, const struct process *p, uint64_t delay,
                            const char *name, void (*run)(struct world *w, struct event *e))
{
    return process_at(w, p->index, p->life, w->now + delay, name, run);
}

/* ---- processes that are stopped ---- */

void process_resume(struct world *w, struct process *r)
{
    struct event *e = r->held;
    r->paused = false;
    r->resumed_at = w->now;
    r->held = NULL;
    r->held_end = &r->held;
    for (struct event *next; e; e = next) { /* in their order, before anything new */
        next = e->next;
        e->at = w->now;
        push(w, e);
    }
}

/* The process was stopped in the middle of something: the rest of it comes first. */
struct event *process_event_held(struct world *w, struct process *r, const char *name,
                                 void (*run)(struct world *w, struct event *e))
{
    struct event *e = make(w, w->now, name, run);
    e->process = r->index;
    e->life = r->life;
    e->next = r->held;
    if (!r->held)
        r->held_end = &e->next;
    r->held = e;
    return e;
}

static void discard(struct world *w, struct event *e)
{
    if (e->drop)
        e->drop(e);
    retire(w, e);
}

void process_drop_held(struct world *w, struct process *r)
{
    struct event *e = r->held;
    r->held = NULL;
    r->held_end = &r->held;
    for (struct event *next; e; e = next) {
        next = e->next;
        discard(w, e);
    }
}

void queue_clear(struct world *w)
{
    for (size_t i = 0; i < w->heap_count; i++)
        discard(w, w->heap[i]);
    w->heap_count = 0;
}

bool world_step(struct world *w)
{
    if (!w->heap_count)
        return false;
    struct event *e = pop(w);
    struct process *r = NULL;
    w->now = e->at;
    loop_wall_set((w->now + (uint64_t)w->db.offset_us) / 1000);
    if (e->process >= 0) {
        r = &w->processes[e->process];
        if (!r->alive || r->life != e->life) {
            discard(w, e);
            return true;
        }
        if (r->paused) {
            e->next = NULL;
            *r->held_end = e;
            r->held_end = &e->next;
            return true;
        }
    }
    w->events++;
    if (w->tracing && e->process >= 0)
        note_line(w, "r%d.%u %s a%d %u %u", e->process, e->life, e->name, e->account, e->a, e->b);
    else if (w->tracing)
        note_line(w, "%s %u %u", e->name, e->a, e->b);
    memory_use(r ? r->memory : NULL);
    w->current = r;
    e->run(w, e);
    w->current = NULL;
    memory_use(NULL);
    retire(w, e);
    return true;
}

/* ---- local time ---- */

static int64_t local_us(const struct process *p, uint64_t now)
{
    return (int64_t)now + (int64_t)now * p->clock_ppm / 1000000 + p->clock_offset_us;
}

uint64_t local_ns(const struct world *w, const struct process *p)
{
    return (uint64_t)local_us(p, w->now) * 1000;
}

uint64_t world_time(const struct process *p, uint64_t local_ms)
{
    int64_t us = (int64_t)(local_ms * 1000) - p->clock_offset_us;
    us -= us * p->clock_ppm / 1000000;
    while (us < 0 || local_us(p, (uint64_t)us) / 1000 < (int64_t)local_ms)
        us += 500;
    return (uint64_t)us;
}

/* ---- chance ---- */

bool chance(struct world *w, unsigned percent)
{
    return percent && rng_below(&w->rng, 100) < percent;
}

uint64_t between(struct world *w, uint64_t lo, uint64_t hi)
{
    return rng_between(&w->rng, lo, hi);
}

/* Mostly short, sometimes ten times as long. */
uint64_t latency(struct world *w)
{
    uint64_t l = rng_between(&w->rng, w->plan.latency_us / 4 + 1, w->plan.latency_us);
    return rng_below(&w->rng, 16) ? l : l * 10;
}

/* ---- the trace ---- */

void note_line(struct world *w, const char *fmt, ...)
{
    char *line = w->trace[w->trace_count++ % TRACE_LINES];
    int n = snprintf(line, TRACE_LEN, "%8llu %10.4f  ", (unsigned long long)w->events,
                     (double)w->now / 1e6);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line + n, (size_t)(TRACE_LEN - n), fmt, ap);
    va_end(ap);
}
