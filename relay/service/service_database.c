/* The room of the database: two sessions, what the relay says while they are away, and the
 * listener's and the election's state that hangs on them. A standalone relay has a memory store in
 * its place (standalone.c). */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "service/service_internal.h"

enum { HEALTH_MS = 10000 };

struct database {
    struct room room;
    struct loop_timer *health; /* repeats the loud line while the database is away */
    bool was_up;
    int down_code; /* the reason that was reported last, while it is down */
};

static void stale_line(const struct database *d)
{
    const struct service *s = d->room.service;
    bool is_permanent = d->down_code && err_class(d->down_code) == ERR_CLASS_PERMANENT;
    log_error("database.unreachable",
              "relay=%s role=follower sending=never view=stale since_s=%llu text=\"no transaction "
              "is sent until %s\"",
              s->name, (unsigned long long)((loop_now_ms(s->loop) - s->stale_since_ms) / 1000),
              is_permanent ? "the reason in the last database.down is mended"
                           : "the database is back");
}

static void repeat_later(struct database *d)
{
    struct loop *l = d->room.service->loop;
    loop_timer_at(d->health, loop_now_ms(l) + HEALTH_MS);
}

static void on_health(void *arg)
{
    struct database *d = arg;
    if (d->room.service->store_up)
        return;
    stale_line(d);
    repeat_later(d);
}

/* The store says what is new. At the start nothing was up before it; later a server that was away
 * may be back as a standby. */
static void log_reason(struct database *d, const struct err *err)
{
    d->down_code = err->code;
    log_warn("database.down", "code=%s text=\"%s\"", err_name(err->code), err->text);
}

static void came_up(struct database *d)
{
    d->was_up = true;
    d->room.service->store_error[0] = 0;
    log_info("database.up", "relay=%s", d->room.service->name);
    loop_timer_stop(d->health);
}

static void went_down(struct database *d, const struct err *err)
{
    struct service *s = d->room.service;
    s->stale_since_ms = loop_now_ms(s->loop);
    if (err)
        log_reason(d, err);
    stale_line(d);
    repeat_later(d);
}

/* Without locks an account is still led: its tenure outlives the sessions, and what is there now
 * may be a standby. With locks it was demoted with the control session. */
static void reload_leaders(struct service *s)
{
    for (size_t i = 0; i < s->account_count; i++)
        if (account_is_managed(&s->accounts[i]))
            account_event(&s->accounts[i], &(struct manager_event){.type = MANAGER_EV_STORE_BACK});
}

static void on_store_state(void *arg, enum store_state state, const struct err *err)
{
    struct database *d = arg;
    struct service *s = d->room.service;
    bool up = state == STORE_UP;
    bool permanent = err && err_class(err->code) == ERR_CLASS_PERMANENT;
    if (err)
        snprintf(s->store_error, sizeof(s->store_error), "%.299s", err->text);
    if (up == s->store_up && !permanent) {
        if (!up && err && err->code != d->down_code)
            log_reason(d, err);
        return;
    }
    s->store_up = up;
    service_poll_event(s, &(struct poll_event){.type = up ? POLL_EV_STORE_UP : POLL_EV_STORE_DOWN});
    d->down_code = 0;
    /* A login, right or schema that is refused at the start will not mend itself. */
    bool hopeless = permanent && !d->was_up && s->phase == SERVICE_STARTING;
    if (up)
        came_up(d);
    else if (!hopeless)
        went_down(d, err);
    /* Also while it drains: what is led then is led on, and its gate must shut. */
    if (s->registered && s->election)
        election_store_state(s->election, state);
    if (up && !s->config.elector.use_lock)
        reload_leaders(s);
    if (hopeless) {
        service_fail(s, err);
        return;
    }
    service_register(s);
}

static void on_control_lost(void *arg)
{
    struct database *d = arg;
    struct service *s = d->room.service;
    service_poll_event(s, &(struct poll_event){.type = POLL_EV_CONTROL_LOST});
    if (s->registered && s->election)
        election_control_lost(s->election);
}

/* ---- the room ---- */

static void database_open(struct room *r)
{
    struct database *d = CONTAINER_OF(r, struct database, room);
    repeat_later(d);
    store_open(r->service->store);
}

static void closed(void *arg)
{
    struct database *d = arg;
    d->room.service->store = NULL;
    d->health = loop_timer_close(d->health);
    room_ended(&d->room);
}

static void database_close(struct room *r)
{
    store_close(r->service->store, closed, r);
}

static void database_free(struct room *r)
{
    INVARIANT(!r->service->store);
    free(r);
}

static void database_status(const struct room *r, struct service_status *ret)
{
    const struct service *s = r->service;
    ret->store = store_status(s->store);
    if (!s->store_up)
        ret->stale_ms = loop_now_ms(s->loop) - s->stale_since_ms;
}

static const struct room_ops ops = {.name = "database",
                                    .open = database_open,
                                    .close = database_close,
                                    .free = database_free,
                                    .status = database_status};

struct room *service_database(struct service *s, struct err *err)
{
    const struct service_config *c = &s->config;
    (void)err;
    if (s->standalone)
        return NULL;
    struct database *d = xcalloc(1, sizeof(*d));
    d->room = (struct room){.ops = &ops, .service = s};
    d->health = loop_timer_new(s->loop, on_health, d);
    s->stale_since_ms = loop_now_ms(s->loop);
    s->store = store_pg_new(
        s->loop, &(struct store_pg_config){
                     .control_dsn = c->control_dsn,
                     .work_dsn = c->work_dsn,
                     .application_name = s->holder,
                     .use_lock = c->elector.use_lock,
                     /* An answer that comes later is of no use to a claim, and a session
                                          * that gives none cannot be led by. */
                     .control_answer_ms = elector_config_defaults(&c->elector).expiry_1_ms,
                     .on_state = on_store_state,
                     .on_control_lost = on_control_lost,
                     .arg = d,
                 });
    return &d->room;
}
