/* The door of relay/core/poll/rounds.h: asks the store about the accounts that are led, and tells each what was found.
 * The accounts take turns in the order of the configuration. */
#include <stdlib.h>

#include "base/check.h"
#include "base/log.h"
#include "service/service_internal.h"

struct asked {
    struct account *account;
    uint64_t generation;
};

struct service_rounds {
    struct room room;
    struct rounds plan;
    struct loop_timer *timer;
    size_t turn; /* where the next slice begins, in service->accounts */
    struct store_due run;
    struct asked *asked; /* of the run, as are the arrays in it */
    int32_t *accounts;
    int64_t *epochs, *marks;
};

static void arm(struct service_rounds *r)
{
    uint64_t next = rounds_next(&r->plan);
    if (r->timer && next != UINT64_MAX)
        loop_timer_at(r->timer, next);
}

/* ---- what was found ---- */

static void tell(struct account *a, uint64_t asked_at, const struct store_want *want)
{
    if (want && want->lost) {
        account_lost(a, ERR_LOST_LEADERSHIP);
        return;
    }
    unsigned fx = calm_round(&a->calm, asked_at, loop_now_ms(a->service->loop), want && want->look,
                             want && want->ripe, want ? want->next_ms : -1);
    if (fx & CALM_FX_LOOK)
        account_event(a, &(struct manager_event){.type = MANAGER_EV_LOOK});
    if (fx & CALM_FX_RING && a->wake.state == WAKE_ASLEEP) /* else it is about to ask, or wants none */
        account_wake(a, WAKE_EV_RING);
    if (calm_deadline(&a->calm) != UINT64_MAX)
        account_rearm(a);
}

static void answered(struct store_req *req)
{
    struct service_rounds *r = CONTAINER_OF(req, struct service_rounds, run.req);
    struct service *s = r->room.service;
    enum err_class class = err_class(req->err.code);
    if (req->err.code && (class == ERR_CLASS_BUG || class == ERR_CLASS_PERMANENT))
        log_error("store.refused", "write=round code=%s sqlstate=%s text=\"%s\"", err_name(req->err.code),
                  req->err.sqlstate, req->err.text);
    size_t at = 0; /* in wants, which is NULL after an error */
    for (size_t i = 0; i < r->run.count; i++) {
        bool wants = at < r->run.want_count && r->run.wants[at].index == i;
        struct account *a = r->asked[i].account;
        if (r->asked[i].generation == a->generation) {
            if (req->err.code)
                calm_round_failed(&a->calm);
            else
                tell(a, r->plan.begun_ms, wants ? &r->run.wants[at] : NULL);
        }
        at += wants;
    }
    store_req_done(req);
    rounds_ended(&r->plan, loop_now_ms(s->loop));
    arm(r);
    service_op_done(s);
}

/* ---- the question ---- */

static size_t led(const struct service *s)
{
    size_t count = 0;
    for (size_t i = 0; i < s->account_count; i++)
        count += s->accounts[i].role == ACCOUNT_LEADER;
    return count;
}

static void ask(struct service_rounds *r, size_t most)
{
    struct service *s = r->room.service;
    size_t n = 0;
    for (size_t seen = 0; seen < s->account_count && n < most; seen++) {
        struct account *a = &s->accounts[r->turn];
        r->turn = (r->turn + 1) % s->account_count;
        if (a->role != ACCOUNT_LEADER)
            continue;
        r->asked[n] = (struct asked){.account = a, .generation = a->generation};
        r->accounts[n] = a->store_account;
        r->epochs[n] = a->epoch;
        r->marks[n] = a->calm.mark;
        calm_asked(&a->calm, r->plan.begun_ms);
        n++;
    }
    r->run = (struct store_due){.count = n,
                                .accounts = r->accounts,
                                .epochs = r->epochs,
                                .marks = r->marks,
                                .ahead_ms = ROUND_AHEAD_MS};
    s->ops++;
    store_due_start(s->store, &r->run, answered);
}

static void on_timer(void *arg)
{
    struct service_rounds *r = arg;
    struct service *s = r->room.service;
    size_t most = rounds_begin(&r->plan, loop_now_ms(s->loop), s->store_up ? led(s) : 0);
    if (most)
        ask(r, most);
    arm(r);
}

/* ---- the room ---- */

static void rounds_close(struct room *r)
{
    struct service_rounds *x = r->service->rounds;
    x->timer = loop_timer_close(x->timer);
    room_ended(r);
}

static void rounds_free(struct room *r)
{
    struct service_rounds *x = r->service->rounds;
    INVARIANT(!x->plan.out);
    loop_timer_close(x->timer);
    free(x->asked);
    free(x->accounts);
    free(x->epochs);
    free(x->marks);
    r->service->rounds = NULL;
    free(x);
}

static const struct room_ops ops = {.name = "rounds", .close = rounds_close, .free = rounds_free};

struct room *service_rounds(struct service *s, struct err *err)
{
    (void)err;
    if (s->standalone)
        return NULL;
    struct service_rounds *r = xcalloc(1, sizeof(*r));
    r->room = (struct room){.ops = &ops, .service = s};
    r->asked = xcalloc(s->account_count, sizeof(*r->asked));
    r->accounts = xcalloc(s->account_count, sizeof(*r->accounts));
    r->epochs = xcalloc(s->account_count, sizeof(*r->epochs));
    r->marks = xcalloc(s->account_count, sizeof(*r->marks));
    rounds_init(&r->plan, loop_now_ms(s->loop), loop_seed(s->loop));
    r->timer = loop_timer_new(s->loop, on_timer, r);
    s->rounds = r;
    arm(r);
    return &r->room;
}
