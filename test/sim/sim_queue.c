/* One queue for everything that happens. Events of one moment keep the order in which they were made. An
 * event that belongs to a process is dropped when that process (its life) is gone, and held back while it is
 * stopped: time goes on, it does not. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static bool before(const struct event *a, const struct event *b)
{
    return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void push(struct world *w, struct event *e)
{
    if (w->heap_count == w->heap_cap) {
        w->heap_cap = w->heap_cap ? w->heap_cap * 2 : 1024;
        w->heap = xrealloc(w->heap, w->heap_cap * sizeof(struct event *));
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
        e = xmalloc(sizeof(*e));
    *e = (struct event){.at = at, .seq = w->seq++, .name = name, .run = run, .relay = -1};
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

struct event *relay_at(struct world *w, int relay, uint32_t life, uint64_t at, const char *name,
                       void (*run)(struct world *w, struct event *e))
{
    struct event *e = make(w, at < w->now ? w->now : at, name, run);
    e->relay = relay;
    e->life = life;
    push(w, e);
    return e;
}

struct event *relay_later(struct world *w, const struct relay *r, uint64_t delay, const char *name,
                          void (*run)(struct world *w, struct event *e))
{
    return relay_at(w, r->index, r->life, w->now + delay, name, run);
}

/* ---- processes that are stopped ---- */

void relay_resume(struct world *w, struct relay *r)
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
struct event *relay_event_held(struct world *w, struct relay *r, const char *name,
                               void (*run)(struct world *w, struct event *e))
{
    struct event *e = make(w, w->now, name, run);
    e->relay = r->index;
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

void relay_drop_held(struct world *w, struct relay *r)
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
    w->now = e->at;
    if (e->relay >= 0) {
        struct relay *r = &w->relays[e->relay];
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
    if (w->tracing && e->relay >= 0)
        note_line(w, "r%d.%u %s a%d %u %u", e->relay, e->life, e->name, e->account, e->a, e->b);
    else if (w->tracing)
        note_line(w, "%s %u %u", e->name, e->a, e->b);
    e->run(w, e);
    retire(w, e);
    return true;
}

/* ---- local time ---- */

static int64_t local_us(const struct relay *r, uint64_t now)
{
    return (int64_t)now + (int64_t)now * r->clock_ppm / 1000000 + r->clock_offset_us;
}

uint64_t local_ms(const struct world *w, const struct relay *r)
{
    return (uint64_t)(local_us(r, w->now) / 1000);
}

static uint64_t world_time(const struct relay *r, uint64_t local)
{
    int64_t us = (int64_t)(local * 1000) - r->clock_offset_us;
    us -= us * r->clock_ppm / 1000000;
    while (us < 0 || local_us(r, (uint64_t)us) / 1000 < (int64_t)local)
        us += 500;
    return (uint64_t)us;
}

void timer_set(struct world *w, struct relay *r, struct timer *t, uint64_t local, int account,
               const char *name, void (*run)(struct world *w, struct event *e))
{
    if (t->at == local)
        return;
    t->at = local;
    t->token++;
    if (local == NEVER)
        return;
    struct event *e = relay_at(w, r->index, r->life, world_time(r, local), name, run);
    e->account = account;
    e->a = t->token;
}

bool timer_fired(struct timer *t, const struct event *e)
{
    if (t->at == NEVER || t->token != e->a)
        return false;
    t->at = NEVER;
    return true;
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
    int n = snprintf(line, TRACE_LEN, "%8llu %10.4f  ", (unsigned long long)w->events, (double)w->now / 1e6);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line + n, (size_t)(TRACE_LEN - n), fmt, ap);
    va_end(ap);
}
