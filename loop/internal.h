/* Private to loop/. */
#ifndef LOOP_INTERNAL_H
#define LOOP_INTERNAL_H

#include <uv.h>

#include "loop/loop.h"

struct loop {
    uv_loop_t uv;
    uv_idle_t idle;   /* keeps the loop from blocking while tasks wait */
    uv_check_t check; /* runs the tasks, after I/O */
    struct list tasks;
    bool armed;   /* the set of events changed: the kernel learns of it only in the next round */
    size_t open;  /* handles that their owners have not closed */
    size_t works; /* unfinished work on the thread pool */
};

/* Every handle object starts with this: the uv handle is heap memory that outlives its owner. */
void loop__opened(struct loop *l);
void loop__close(struct loop *l, uv_handle_t *h, void *memory);

#endif
