/* Without locks no doorbell is armed, and every account polls its outbox each 20 ms for as long as nothing
 * comes. Those polls are asked for all accounts at once, one question at a time: the accounts whose time
 * comes meanwhile are the next one. A row that is found is fetched by the account. One that just had
 * something asks by itself. */
#include <stdlib.h>

#include "base/check.h"
#include "service/service_internal.h"

struct asked {
    struct account *account;
    uint64_t generation;
};

struct service_polls {
    struct room room;
    struct loop_task task;
    bool posted, out, more; /* more accounts wait than one question may have */
    size_t turn;            /* where the next question begins, in service->accounts */
    struct store_due run;
    struct asked asked[ROUND_SLICE]; /* of the run, as are the arrays */
    int32_t accounts[ROUND_SLICE];
    int64_t epochs[ROUND_SLICE], marks[ROUND_SLICE];
};

static void post(struct service_polls *p);

static void tell(struct account *a, int code, const struct store_want *want)
{
    if (want && want->lost)
        account_lost(a, ERR_LOST_LEADERSHIP);
    else if (!want || !want->ripe)
        account_wake(a, code ? WAKE_EV_FAILED : WAKE_EV_NONE);
    else if (!a->leaving) /* as in account_wake */
        account_fetch(a);
}

static void answered(struct store_req *req)
{
    struct service_polls *p = CONTAINER_OF(req, struct service_polls, run.req);
    const struct store_want *want = p->run.wants, *end = want + p->run.want_count;
    for (size_t i = 0; i < p->run.count; i++) {
        bool wants = want != end && want->index == i;
        struct account *a = p->asked[i].account;
        if (p->asked[i].generation == a->generation)
            tell(a, req->err.code, wants ? want : NULL);
        want += wants;
    }
    store_req_done(req);
    p->out = false;
    post(p);
    service_op_done(p->room.service);
}

/* One whose time comes soon comes along, and from then on its times are the others'. */
static bool joins(struct account *a, uint64_t now)
{
    struct wake *w = &a->wake;
    if (a->role != ACCOUNT_LEADER || a->leaving || w->state != WAKE_POLL || w->poll_ms != WAKE_POLL_MAX_MS ||
        w->deadline_ms > now + WAKE_POLL_MAX_MS)
        return false;
    unsigned fx = wake_step(w, w->deadline_ms, WAKE_EV_TICK);
    INVARIANT(fx == WAKE_FX_FETCH);
    return true;
}

static size_t collect(struct service_polls *p)
{
    struct service *s = p->room.service;
    size_t n = 0, seen = 0;
    uint64_t now = loop_now_ms(s->loop);
    for (; seen < s->account_count && n < ROUND_SLICE; seen++) {
        struct account *a = &s->accounts[p->turn];
        p->turn = (p->turn + 1) % s->account_count;
        if (!a->polls && !joins(a, now))
            continue;
        a->polls = false;
        p->asked[n] = (struct asked){.account = a, .generation = a->generation};
        p->accounts[n] = a->store_account;
        p->epochs[n] = a->epoch;
        p->marks[n] = -1;
        n++;
    }
    p->more = seen < s->account_count;
    return n;
}

static void ask(struct loop_task *task)
{
    struct service_polls *p = CONTAINER_OF(task, struct service_polls, task);
    p->posted = false;
    size_t n = collect(p);
    if (!n)
        return;
    p->run = (struct store_due){.count = n, .accounts = p->accounts, .epochs = p->epochs, .marks = p->marks};
    p->out = true;
    p->room.service->ops++;
    store_due_start(p->room.service->store, &p->run, answered);
}

/* Accounts whose time comes together are one question: it leaves when all of them were heard. */
static void post(struct service_polls *p)
{
    if (p->out || p->posted || !p->more || p->room.service->phase == SERVICE_CLOSING)
        return;
    p->posted = true;
    loop_post(p->room.service->loop, &p->task, ask);
}

bool service_poll(struct service *s, struct account *a)
{
    struct service_polls *p = s->polls;
    if (!p)
        return false;
    a->polls = p->more = true;
    post(p);
    return true;
}

/* ---- the room ---- */

static void polls_close(struct room *r)
{
    loop_task_cancel(&r->service->polls->task);
    room_ended(r);
}

static void polls_free(struct room *r)
{
    INVARIANT(!r->service->polls->out);
    free(r->service->polls);
    r->service->polls = NULL;
}

static const struct room_ops ops = {.name = "polls", .close = polls_close, .free = polls_free};

struct room *service_polls(struct service *s, struct err *err)
{
    (void)err;
    if (s->standalone || s->config.elector.use_lock || s->account_count < 2)
        return NULL;
    s->polls = xcalloc(1, sizeof(*s->polls));
    s->polls->room = (struct room){.ops = &ops, .service = s};
    return &s->polls->room;
}
