/* What all rooms share: their callbacks come from the loop, also where there is nothing to wait
 * for. */
#include "service/room.h"

#include "base/check.h"
#include "base/log.h"
#include "service/service_internal.h"

static void call_back(struct loop_task *task)
{
    struct room *r = CONTAINER_OF(task, struct room, task);
    room_cb cb = r->cb;
    r->cb = NULL;
    cb(r);
}

void room_ended(struct room *r)
{
    PRE(r->cb);
    loop_post(r->service->loop, &r->task, call_back);
}

static void start(struct room *r, void (*op)(struct room *r), room_cb cb)
{
    PRE(!r->cb);
    r->cb = cb;
    if (op)
        op(r);
    else
        room_ended(r);
}

void room_open(struct room *r)
{
    if (r->ops->open)
        r->ops->open(r);
}

void room_run(struct room *r)
{
    if (r->ops->run)
        r->ops->run(r);
}

void room_drain(struct room *r, room_cb cb)
{
    start(r, r->ops->drain, cb);
}

void room_close(struct room *r, room_cb cb)
{
    log_debug("room.close", "room=%s", r->ops->name);
    start(r, r->ops->close, cb);
}
