/* The frames of a client on their way to the socket.
 *
 *   queued -> gate asked -> written            WRITTEN
 *      \             \----> gate shut          REFUSED
 *       \-----------------> connection ended   UNSENT       canceled: freed, nothing is reported */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "ws_internal.h"

void ws__frames_init(struct ws_client *c)
{
    list_init(&c->frames);
    list_init(&c->unsent);
}

void ws__frames_done(struct ws_client *c)
{
    INVARIANT(list_empty(&c->frames) && list_empty(&c->unsent));
}

struct ws_frame *ws_frame_new(size_t len)
{
    struct ws_frame *f = xmalloc(sizeof(*f) + WS_FRAME_HEADROOM + len);
    *f = (struct ws_frame){.len = len};
    return f;
}

char *ws_frame_text(struct ws_frame *f)
{
    return (char *)f->data + WS_FRAME_HEADROOM;
}

void ws_frame_cancel(struct ws_frame *f)
{
    PRE(list_linked(&f->node));
    list_remove(&f->node);
    free(f);
}

/* The callback comes last: it may end the connection, or cancel frames that wait. */
static void frame_end(struct ws_frame *f, enum ws_frame_end end)
{
    void (*cb)(void *arg, enum ws_frame_end end) = f->cb;
    void *arg = f->cb_arg;
    ws_frame_cancel(f);
    if (cb)
        cb(arg, end);
}

static struct ws_frame *frame_first(const struct list *frames)
{
    struct list *n = list_first(frames);
    return n ? CONTAINER_OF(n, struct ws_frame, node) : NULL;
}

static void report_unsent(struct loop_task *task)
{
    struct ws_client *c = CONTAINER_OF(task, struct ws_client, unsent_task);
    for (struct ws_frame *f = frame_first(&c->unsent); f; f = frame_first(&c->unsent))
        frame_end(f, WS_FRAME_UNSENT);
}

static void add_unsent(struct ws_client *c, struct ws_frame *f)
{
    list_append(&c->unsent, &f->node);
    if (!list_linked(&c->unsent_task.node))
        loop_post(c->loop, &c->unsent_task, report_unsent);
}

void ws_client_send(struct ws_client *c, struct ws_frame *f, bool (*gate)(void *arg),
                    void *gate_arg, void (*cb)(void *arg, enum ws_frame_end end), void *cb_arg)
{
    PRE(!list_linked(&f->node));
    PRE(c->phase != WS_CLOSING);
    f->gate = gate;
    f->gate_arg = gate_arg;
    f->cb = cb;
    f->cb_arg = cb_arg;
    if (c->phase != WS_OPEN) {
        add_unsent(c, f);
        return;
    }
    list_append(&c->frames, &f->node);
    ws__conn_want_write(c->conn);
}

void ws__frames_write(struct ws_client *c)
{
    for (;;) {
        struct ws_frame *f = frame_first(&c->frames);
        if (!f || c->phase != WS_OPEN)
            return;
        if (!ws__conn_can_write(c->conn))
            break;
        if (f->gate && !f->gate(f->gate_arg)) {
            frame_end(f, WS_FRAME_REFUSED);
            continue;
        }
        ws__conn_write(c->conn, f);
        frame_end(f, WS_FRAME_WRITTEN);
    }
    ws__conn_want_write(c->conn);
}

void ws__frames_end(struct ws_client *c)
{
    for (struct ws_frame *f = frame_first(&c->frames); f; f = frame_first(&c->frames)) {
        list_remove(&f->node);
        add_unsent(c, f);
    }
}
