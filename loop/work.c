/* Work on the thread pool. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "internal.h"

struct working {
    uv_work_t uv;
    struct loop *loop;
    struct loop_work *owner;
};

static void run(uv_work_t *req)
{
    struct loop_work *w = CONTAINER_OF(req, struct working, uv)->owner;
    w->run(w);
}

static void done(uv_work_t *req, int status)
{
    struct working *x = CONTAINER_OF(req, struct working, uv);
    struct loop_work *w = x->owner;
    INVARIANT(status == 0); /* nothing cancels it */
    x->loop->works--;
    free(x);
    w->uv = NULL;
    w->done(w);
}

void loop_work_start(struct loop *l, struct loop_work *w, void (*run_cb)(struct loop_work *w),
                     void (*done_cb)(struct loop_work *w))
{
    struct working *x = xcalloc(1, sizeof(*x));
    x->loop = l;
    x->owner = w;
    *w = (struct loop_work){.run = run_cb, .done = done_cb, .uv = x};
    l->works++;
    INVARIANT(uv_queue_work(&l->uv, &x->uv, run, done) == 0);
}
