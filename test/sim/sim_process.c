/* Processes: how they begin, are stopped, go on, and end. A kill takes the process's memory and
 * its ends of all connections, and runs none of its code. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"
#include "sim_memory.h"

void process_start(struct world *w, struct process *p)
{
    int index = (int)(p - w->processes);
    uint32_t life = p->life + 1;
    *p = (struct process){.index = index, .life = life, .alive = true, .memory = memory_of(index)};
    p->held_end = &p->held;
    list_init(&p->borrowed);
    p->clock_offset_us = (int64_t)between(w, SECOND, 1000000 * SECOND);
    p->clock_ppm = (int64_t)between(w, 0, 400) - 200;
    memory_wipe(p->memory);
    struct memory *before = memory_use(p->memory);
    p->loop = sim_loop_new(w, p);
    memory_use(before);
}

void process_end(struct world *w, struct process *p)
{
    process_drop_held(w, p);
    for (struct list *n = list_first(&p->borrowed); n; n = list_first(&p->borrowed)) {
        list_remove(n);
        message_unref(CONTAINER_OF(n, struct message, borrowed));
    }
    p->alive = p->paused = false;
    p->loop = NULL;
    memory_wipe(p->memory);
}

static void goes_on(struct world *w, struct event *e)
{
    struct process *p = &w->processes[e->a];
    if (p->alive && p->paused && p->life == e->b)
        process_resume(w, p);
}

/* SIGSTOP for so long: its events wait, the time does not. */
void process_stop(struct world *w, struct process *p, uint64_t us)
{
    if (p->paused)
        return;
    note(w, "r%d is stopped for %llu ms", p->index, (unsigned long long)(us / MS));
    p->paused = true;
    w->stats.pauses++;
    struct event *e = later(w, us, "goes on", goes_on);
    e->a = (uint32_t)p->index;
    e->b = p->life;
}

struct link *process_link(struct world *w, const struct process *p, int kind)
{
    return p->index < RELAYS ? &w->relays[p->index].links[kind]
                             : &w->followers[p->index - RELAYS].link;
}

/* The connection strings of a simulated process name the sort of connection; retention has the
 * work session's, and the relay's own name. */
int link_kind(const char *dsn, const char *name)
{
    size_t len = strlen(name);
    if (!strcmp(dsn, "control"))
        return LINK_CONTROL;
    if (strcmp(dsn, "work") != 0)
        return LINK_LISTEN;
    return len > 5 && !strcmp(name + len - 5, " work") ? LINK_WORK : LINK_RETENTION;
}
