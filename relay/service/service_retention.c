/* Retention: the adapter of relay/core/poll/retention_plan.h. Each run takes the accounts that
 * are led at that moment. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "relay/core/poll/retention_plan.h"
#include "service/service_internal.h"
#include "store/retention.h"

enum { DAYS = 30, INTERVAL_MS = 3600000, ROWS = 1000 };

struct service_retention {
    struct room room;
    bool closing;
    struct retention_plan plan;
    struct loop_timer *timer;
    struct store_retention run;
    struct store_retention_account *accounts; /* of the run */
};

static void arm(struct service_retention *k)
{
    uint64_t next = retention_plan_next(&k->plan);
    if (k->timer && next != UINT64_MAX)
        loop_timer_at(k->timer, next);
}

static void report(const struct store_retention *r)
{
    if (r->err.code && r->err.code != ERR_CANCELED)
        log_warn("retention.failed", "code=%s text=\"%s\"", err_name(r->err.code), r->err.text);
    if (r->made || r->dropped || r->removed)
        log_info("retention.done", "made=%lld dropped=%lld removed=%lld", (long long)r->made,
                 (long long)r->dropped, (long long)r->removed);
}

static void ended(struct store_retention *r)
{
    struct service_retention *k = CONTAINER_OF(r, struct service_retention, run);
    struct service *s = k->room.service;
    report(r);
    free(k->accounts);
    k->accounts = NULL;
    retention_plan_ended(&k->plan, loop_now_ms(s->loop),
                         r->err.code ? RETENTION_FAILED
                         : r->more   ? RETENTION_MORE
                                     : RETENTION_DONE);
    arm(k);
    if (k->closing)
        room_ended(&k->room);
}

static size_t led(const struct service *s, struct store_retention_account *ret)
{
    size_t count = 0;
    for (size_t i = 0; i < s->account_count; i++) {
        const struct account *a = &s->accounts[i];
        if (a->role != ACCOUNT_LEADER)
            continue;
        if (ret)
            ret[count] =
                (struct store_retention_account){.account = a->store_account, .epoch = a->epoch};
        count++;
    }
    return count;
}

static void begin(struct service_retention *k)
{
    struct service *s = k->room.service;
    const struct service_config *c = &s->config;
    k->accounts = xcalloc(s->account_count, sizeof(*k->accounts));
    k->run = (struct store_retention){.days = c->retention_days ? c->retention_days : DAYS,
                                      .rows = ROWS,
                                      .count = led(s, k->accounts),
                                      .accounts = k->accounts};
    store_retention_start(s->loop, &k->run, c->work_dsn ? c->work_dsn : c->control_dsn, s->holder,
                          ended);
}

static void on_timer(void *arg)
{
    struct service_retention *k = arg;
    struct service *s = k->room.service;
    bool may = s->phase == SERVICE_RUNNING && s->store_up && led(s, NULL) > 0;
    if (retention_plan_begin(&k->plan, loop_now_ms(s->loop), may))
        begin(k);
    arm(k);
}

/* ---- the room ---- */

/* Nothing begins any more; what runs ends soon. */
static void retention_close(struct room *r)
{
    struct service_retention *k = CONTAINER_OF(r, struct service_retention, room);
    k->timer = loop_timer_close(k->timer);
    k->closing = true;
    if (k->plan.running)
        store_retention_cancel(&k->run);
    else
        room_ended(r);
}

static void retention_free(struct room *r)
{
    struct service_retention *k = CONTAINER_OF(r, struct service_retention, room);
    INVARIANT(!k->plan.running);
    k->timer = loop_timer_close(k->timer);
    free(k);
}

static const struct room_ops ops = {
    .name = "retention", .close = retention_close, .free = retention_free};

struct room *service_retention(struct service *s, struct err *err)
{
    (void)err;
    if (s->standalone)
        return NULL;
    struct service_retention *k = xcalloc(1, sizeof(*k));
    k->room = (struct room){.ops = &ops, .service = s};
    retention_plan_init(
        &k->plan, s->config.retention_interval_ms ? s->config.retention_interval_ms : INTERVAL_MS,
        loop_now_ms(s->loop), loop_seed(s->loop));
    k->timer = loop_timer_new(s->loop, on_timer, k);
    arm(k);
    return &k->room;
}
