/* The adapter of relay/core/poll/: one timer for all accounts, the queries about many accounts
 * at once, and the way of each effect to who carries it out. Why a query was sent is in the log
 * (debug: poll.sent). */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "service/service_internal.h"

struct service_poll {
    struct room room;
    struct poll *core;
    struct loop_timer *timer; /* NULL: closed */
};

/* ---- queries about many accounts ---- */

struct batch {
    struct store_due run;
    struct service *service;
    enum poll_event_type answer;
    uint64_t question;
    int32_t *accounts; /* the arrays of the run */
    int64_t *epochs, *fingerprints;
};

static void batch_free(struct batch *b)
{
    free(b->accounts);
    free(b->epochs);
    free(b->fingerprints);
    free(b);
}

static void report_failure(const struct batch *b)
{
    const struct err *err = &b->run.req.err;
    if (err_is_refused(err->code))
        log_error("store.refused", "write=sweep code=%s sqlstate=%s text=\"%s\"",
                  err_name(err->code), err->sqlstate, err->text);
}

static void answered(struct store_req *req)
{
    struct batch *b = CONTAINER_OF(req, struct batch, run.req);
    struct service *s = b->service;
    struct poll_found *found = xcalloc(b->run.want_count + 1, sizeof(*found));
    report_failure(b);
    for (size_t i = 0; i < b->run.want_count; i++) {
        const struct store_want *w = &b->run.wants[i];
        found[i] = (struct poll_found){w->index, w->lost, w->has_requests, w->has_rows, w->next_ms};
    }
    struct poll_event ev = {
        .type = b->answer,
        .question = b->question,
        .swept = {.failed = req->err.code != 0, .found = found, .count = b->run.want_count},
    };
    service_poll_event(s, &ev);
    free(found);
    store_req_done(req);
    batch_free(b);
    service_op_done(s);
}

static void ask_batch(struct service *s, const struct poll_effect *fx)
{
    struct batch *b = xcalloc(1, sizeof(*b));
    b->service = s;
    b->answer = fx->query == POLL_QUERY_SWEEP ? POLL_EV_SWEPT : POLL_EV_MERGED;
    b->question = fx->question;
    b->accounts = xcalloc(fx->count, sizeof(*b->accounts));
    b->epochs = xcalloc(fx->count, sizeof(*b->epochs));
    b->fingerprints = xcalloc(fx->count, sizeof(*b->fingerprints));
    for (size_t i = 0; i < fx->count; i++) {
        const struct account *a = &s->accounts[fx->accounts[i]];
        b->accounts[i] = a->store_account;
        b->epochs[i] = a->epoch;
        /* The settings of an account with sites are read with its rows. */
        b->fingerprints[i] = a->site ? -1 : fx->fingerprints[i];
    }
    b->run = (struct store_due){.count = fx->count,
                                .accounts = b->accounts,
                                .epochs = b->epochs,
                                .fingerprints = b->fingerprints,
                                .ahead_ms = fx->ahead_ms};
    s->ops++;
    store_due_start(s->store, &b->run, answered);
}

/* ---- effects ---- */

/* Its polls are dropped, so it is loaded again under its epoch. With sites the room has the rows,
 * and the account is led anew. */
static void load_again(struct account *a, const char *bug)
{
    log_error("internal.bug", "part=poll account=%s text=\"%s: the account is loaded again\"",
              a->alias, bug);
    if (account_is_managed(a))
        account_event(a, &(struct manager_event){.type = MANAGER_EV_STORE_BACK});
    else
        account_lost(a, ERR_LOST_LEADERSHIP);
}

static void carry_out(struct service *s, const struct poll_effect *fx)
{
    struct account *a = &s->accounts[fx->account];
    if (fx->bug) {
        load_again(a, fx->bug);
        return;
    }
    if (fx->lost) {
        account_lost(a, ERR_LOST_LEADERSHIP);
        return;
    }
    log_debug("poll.sent", "account=%s query=%s reason=%s count=%zu", fx->accounts ? "*" : a->alias,
              poll_query_name(fx->query), poll_reason_name(fx->why), fx->accounts ? fx->count : 1);
    switch (fx->query) {
    case POLL_QUERY_OUTBOX:
        if (a->site)
            service_sites_poll(a, fx);
        else
            account_fetch(a, fx);
        return;
    case POLL_QUERY_REQUESTS:
        if (a->site)
            service_sites_poll(a, fx);
        else
            account_poll_requests(a, fx);
        return;
    case POLL_QUERY_ARM:
        account_arm(a, fx);
        return;
    case POLL_QUERY_DISARM:
        account_disarm(a);
        return;
    case POLL_QUERY_SWEEP:
    case POLL_QUERY_MERGED:
        ask_batch(s, fx);
        return;
    case POLL_QUERIES:
        break;
    }
    UNREACHABLE();
}

static void rearm(struct service_poll *p)
{
    uint64_t next = poll_deadline(p->core);
    if (!p->timer)
        return;
    if (next == UINT64_MAX)
        loop_timer_stop(p->timer);
    else
        loop_timer_at(p->timer, next);
}

bool service_poll_event(struct service *s, const struct poll_event *ev)
{
    struct service_poll *p = s->poll;
    struct poll_effect fx;
    bool waited = poll_step(p->core, loop_now_ms(s->loop), ev);
    while (poll_take(p->core, &fx))
        carry_out(s, &fx);
    rearm(p);
    return waited;
}

static void on_timer(void *arg)
{
    struct service_poll *p = arg;
    service_poll_event(p->room.service, &(struct poll_event){.type = POLL_EV_TICK});
}

/* ---- the room ---- */

static void poll_close(struct room *r)
{
    struct service_poll *p = r->service->poll;
    p->timer = loop_timer_close(p->timer);
    room_ended(r);
}

static void poll_room_free(struct room *r)
{
    struct service_poll *p = r->service->poll;
    loop_timer_close(p->timer);
    poll_free(p->core);
    r->service->poll = NULL;
    free(p);
}

static const struct room_ops ops = {.name = "poll", .close = poll_close, .free = poll_room_free};

struct room *service_poll(struct service *s, struct err *err)
{
    (void)err;
    struct service_poll *p = xcalloc(1, sizeof(*p));
    struct poll_config config = {
        .accounts = s->account_count,
        .seed = loop_seed(s->loop),
        .doorbells = s->standalone || s->config.elector.use_lock,
        .sweeps = !s->standalone,
    };
    p->room = (struct room){.ops = &ops, .service = s};
    p->core = poll_new(&config, loop_now_ms(s->loop));
    p->timer = loop_timer_new(s->loop, on_timer, p);
    s->poll = p;
    rearm(p);
    return &p->room;
}
