/* The room of the listener: doorbells that ring, and claims that other relays make. */
#include "listen/listen.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "service/service_internal.h"

struct listening {
    struct room room;
    struct listen *listen;
};

static void on_wake(void *arg, int32_t store_account)
{
    struct account *a = service_account_by_row(arg, store_account);
    if (a)
        account_poll(a, (struct poll_event){.type = POLL_EV_RANG});
}

static void on_leader_change(void *arg, const struct listen_leader *change)
{
    struct service *s = arg;
    if (s->phase == SERVICE_RUNNING)
        election_leader_change(s->election, change->account, change->holder, change->address,
                               change->epoch);
}

/* ---- the room ---- */

static void listening_open(struct room *r)
{
    listen_open(CONTAINER_OF(r, struct listening, room)->listen);
}

static void closed(void *arg)
{
    struct listening *l = arg;
    l->listen = NULL;
    room_ended(&l->room);
}

static void listening_close(struct room *r)
{
    struct listening *l = CONTAINER_OF(r, struct listening, room);
    listen_close(l->listen, closed, l);
}

static void listening_free(struct room *r)
{
    INVARIANT(!CONTAINER_OF(r, struct listening, room)->listen);
    r->service->listening = NULL;
    free(r);
}

bool service_listen_status(const struct service *s, struct listen_status *ret)
{
    if (!s->listening || !s->listening->listen)
        return false;
    *ret = listen_status(s->listening->listen);
    return true;
}

static void listening_status(const struct room *r, struct service_status *ret)
{
    const struct listening *l = (const struct listening *)(const void *)r;
    ret->listens = true;
    ret->listen = listen_status(l->listen);
}

static const struct room_ops ops = {.name = "listen",
                                    .open = listening_open,
                                    .close = listening_close,
                                    .free = listening_free,
                                    .status = listening_status};

struct room *service_listen(struct service *s, struct err *err)
{
    const struct service_config *c = &s->config;
    (void)err;
    if (s->standalone)
        return NULL;
    struct listening *l = xcalloc(1, sizeof(*l));
    l->room = (struct room){.ops = &ops, .service = s};
    s->listening = l;
    l->listen = listen_new(s->loop, &(struct listen_config){
                                        .dsn = c->listen_dsn ? c->listen_dsn : c->control_dsn,
                                        .name = s->holder,
                                        .signals_only = true,
                                        .on_wake = on_wake,
                                        .on_leader_change = on_leader_change,
                                        .arg = s,
                                    });
    return &l->room;
}
