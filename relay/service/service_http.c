/* The rooms of the HTTP interface and of webhooks. The relay opens, drains and closes them; what
 * they do and how is their own affair. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "base/log.h"
#include "service/entry.h"
#include "service/service_internal.h"

struct guest {
    struct room room;
    struct entry entry;
    const struct service_http *door;
};

static struct guest *guest_of(struct room *r)
{
    return CONTAINER_OF(r, struct guest, room);
}

static int try_door(struct entry *e, struct err *err)
{
    const struct service_http *door = CONTAINER_OF(e, struct guest, entry)->door;
    return door->open(door->arg, e->service->loop, e->service, err);
}

static void guest_open(struct room *r)
{
    struct guest *k = guest_of(r);
    k->entry = (struct entry){.name = r->ops->name, .service = r->service, .open = try_door};
    entry_begin(&k->entry);
}

static void guest_drain(struct room *r)
{
    struct guest *k = guest_of(r);
    if (entry_is_open(&k->entry))
        k->door->drain(k->door->arg);
    else
        entry_end(&k->entry);
    room_ended(r);
}

static void on_closed(void *arg)
{
    room_ended(arg);
}

static void guest_close(struct room *r)
{
    struct guest *k = guest_of(r);
    bool open = entry_is_open(&k->entry);
    entry_end(&k->entry);
    if (open)
        k->door->close(k->door->arg, on_closed, r);
    else
        room_ended(r);
}

static void guest_free(struct room *r)
{
    free(guest_of(r));
}

static struct room *guest_new(struct service *s, const struct room_ops *ops,
                              const struct service_http *door)
{
    if (s->standalone || !door->open)
        return NULL;
    struct guest *k = xcalloc(1, sizeof(*k));
    k->room = (struct room){.ops = ops, .service = s};
    k->door = door;
    return &k->room;
}

struct room *service_http(struct service *s, struct err *err)
{
    static const struct room_ops ops = {.name = "http",
                                        .open = guest_open,
                                        .drain = guest_drain,
                                        .close = guest_close,
                                        .free = guest_free};
    (void)err;
    return guest_new(s, &ops, &s->config.http);
}

struct room *service_webhooks(struct service *s, struct err *err)
{
    static const struct room_ops ops = {.name = "webhooks",
                                        .open = guest_open,
                                        .drain = guest_drain,
                                        .close = guest_close,
                                        .free = guest_free};
    (void)err;
    return guest_new(s, &ops, &s->config.webhooks);
}

void service_guests_metrics(const struct service *s, struct buf *out)
{
    if (s->config.http.metrics)
        s->config.http.metrics(s->config.http.arg, out);
    if (s->config.webhooks.metrics)
        s->config.webhooks.metrics(s->config.webhooks.arg, out);
}

bool service_account_now(struct service *s, const char *name, struct service_account_now *ret)
{
    const struct account *a = service_account_by_name(s, name);
    if (!a || a->role != ACCOUNT_LEADER)
        return false;
    *ret = (struct service_account_now){.window = manager_view_of(a->manager).window,
                                        .has_balance = a->balance_known,
                                        .balance = a->balance};
    return true;
}

const char *service_holder(const struct service *s)
{
    return s->holder;
}

void service_ask_drain(struct service *s)
{
    log_info("relay.drain_requested", "relay=%s", s->name);
    if (s->config.on_drain && s->phase != SERVICE_DRAINING && s->phase != SERVICE_CLOSING)
        s->config.on_drain(s->config.arg);
}

bool service_enrolment_of(const struct service *s, const uint8_t *account_id, size_t len,
                          struct service_enrolment *ret)
{
    const struct node_info *info = s->node ? node_info(s->node) : NULL;
    if (!info)
        return false;
    *ret = (struct service_enrolment){
        .lock_key = election_lock_key(info->genesis, account_id, len),
        .era_longest = manager_era_longest(s->config.manager.era_period),
        .era_immortal = !s->config.manager.era_period,
    };
    memcpy(ret->genesis, info->genesis, sizeof(ret->genesis));
    if (len == ACCOUNT_ID_MAX)
        ss58_encode(account_id, info->ss58_prefix, ret->address);
    else
        snprintf(ret->address, sizeof(ret->address), "%s", hex_log(account_id, len));
    return true;
}

const struct metadata *service_metadata(const struct service *s)
{
    const struct node_info *info = s->node ? node_info(s->node) : NULL;
    return info ? info->metadata : NULL;
}
