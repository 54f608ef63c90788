/* The room of the HTTP interface. The relay opens, drains and closes it; what it answers and how is
 * its own affair. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "service/entry.h"
#include "service/service_internal.h"

struct service_http_room {
    struct room room;
    struct entry entry;
};

static int try_door(struct entry *e, struct err *err)
{
    const struct service_http *door = &e->service->config.http;
    return door->open(door->arg, e->service->loop, e->service, err);
}

static void http_open(struct room *r)
{
    struct service_http_room *k = CONTAINER_OF(r, struct service_http_room, room);
    k->entry = (struct entry){.name = "http", .service = r->service, .open = try_door};
    entry_begin(&k->entry);
}

static void http_drain(struct room *r)
{
    struct service_http_room *k = CONTAINER_OF(r, struct service_http_room, room);
    const struct service_http *door = &r->service->config.http;
    if (entry_is_open(&k->entry))
        door->drain(door->arg);
    else
        entry_end(&k->entry);
    room_ended(r);
}

static void on_closed(void *arg)
{
    room_ended(arg);
}

static void http_close(struct room *r)
{
    struct service_http_room *k = CONTAINER_OF(r, struct service_http_room, room);
    const struct service_http *door = &r->service->config.http;
    bool open = entry_is_open(&k->entry);
    entry_end(&k->entry);
    if (open)
        door->close(door->arg, on_closed, r);
    else
        room_ended(r);
}

static void http_free(struct room *r)
{
    free(CONTAINER_OF(r, struct service_http_room, room));
}

static const struct room_ops ops = {
    .name = "http", .open = http_open, .drain = http_drain, .close = http_close, .free = http_free};

struct room *service_http(struct service *s, struct err *err)
{
    (void)err;
    if (s->standalone || !s->config.http.open)
        return NULL;
    struct service_http_room *k = xcalloc(1, sizeof(*k));
    k->room = (struct room){.ops = &ops, .service = s};
    return &k->room;
}

const struct metadata *service_metadata(const struct service *s)
{
    const struct node_info *info = s->node ? node_info(s->node) : NULL;
    return info ? info->metadata : NULL;
}
