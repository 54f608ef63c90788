/* How many transactions of each account wait, and for how long. Every relay with a metrics endpoint
 * reads it for all of its accounts, so an account without a leader is seen too. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "service/service_internal.h"
#include "store/sample.h"

enum { EVERY_MS = 5000 };

struct service_sample {
    struct room room;
    struct store_sampler *sampler;
};

static void on_sample(void *arg, const struct store_sample *row)
{
    struct service_sample *k = arg;
    struct account *a = service_account_by_row(k->room.service, row->account);
    if (!a)
        return;
    a->sample = *row;
    a->sampled = true;
}

static void sample_run(struct room *r)
{
    struct service_sample *k = CONTAINER_OF(r, struct service_sample, room);
    const struct service *s = r->service;
    int32_t *accounts = xcalloc(s->account_count, sizeof(*accounts));
    for (size_t i = 0; i < s->account_count; i++)
        accounts[i] = s->accounts[i].store_account;
    k->sampler =
        store_sampler_new(s->loop, s->config.work_dsn ? s->config.work_dsn : s->config.control_dsn,
                          s->holder, EVERY_MS, accounts, s->account_count, on_sample, k);
    free(accounts);
}

static void on_closed(void *arg)
{
    struct service_sample *k = arg;
    k->sampler = NULL;
    room_ended(&k->room);
}

static void sample_close(struct room *r)
{
    struct service_sample *k = CONTAINER_OF(r, struct service_sample, room);
    if (k->sampler)
        store_sampler_close(k->sampler, on_closed, k);
    else
        room_ended(r);
}

static void sample_free(struct room *r)
{
    struct service_sample *k = CONTAINER_OF(r, struct service_sample, room);
    INVARIANT(!k->sampler);
    free(k);
}

static const struct room_ops ops = {
    .name = "sample", .run = sample_run, .close = sample_close, .free = sample_free};

struct room *service_sample(struct service *s, struct err *err)
{
    (void)err;
    if (s->standalone || !s->config.metrics_address)
        return NULL;
    struct service_sample *k = xcalloc(1, sizeof(*k));
    k->room = (struct room){.ops = &ops, .service = s};
    return &k->room;
}
