/* The room of the election: who leads which account, and what follows for the accounts. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "service/service_internal.h"

static void on_promote(void *arg, int index, int64_t epoch)
{
    struct service *s = arg;
    account_promote(&s->accounts[index], epoch);
    service_feeds_lead(s, &s->accounts[index], epoch);
}

static void on_demote(void *arg, int index, const char *reason)
{
    struct service *s = arg;
    service_feeds_lead(s, &s->accounts[index], 0);
    account_demote(&s->accounts[index], reason);
}

static void on_gate(void *arg, int index, bool open, const char *reason)
{
    struct service *s = arg;
    struct account *a = &s->accounts[index];
    log_info(open ? "gate.open" : "gate.shut",
             "account=%s scope=%lld holder=%s epoch=%lld reason=\"%s\"", a->alias,
             (long long)a->lock_key, s->holder, (long long)a->epoch, reason);
    if (open && account_is_managed(a))
        account_event(a, &(struct manager_event){.type = MANAGER_EV_GATE_OPEN});
}

static void on_leave(void *arg, int index, const char *reason)
{
    struct service *s = arg;
    service_leave(s, &s->accounts[index], reason);
}

/* A pool's own codes: the endpoint took the submission to it. */
static bool is_of_pool(int64_t rpc_code)
{
    enum { POOL_FIRST = 1000, POOL_LAST = 1999 };
    return rpc_code >= POOL_FIRST && rpc_code <= POOL_LAST;
}

/* The relay's own gate and its end, and a connection that was not there. An endpoint that has no
 * room for another broadcast has taken those before. */
static bool says_nothing(const struct node_submit *submit)
{
    const struct rpc_call *call = &submit->sub.call;
    int code = call->err.code;
    return code == ERR_NOT_LEADER || code == ERR_CANCELED || (code == ERR_NET && !call->written) ||
           (code == ERR_RPC && !call->rpc_code && submit->way == SUBMIT_BROADCAST);
}

void service_submitted(struct service *s, const struct node_submit *submit)
{
    const struct rpc_call *call = &submit->sub.call;
    int code = call->err.code;
    if (!says_nothing(submit))
        ability_answer(&s->ability, !code || (code == ERR_RPC && is_of_pool(call->rpc_code)));
}

static bool is_concerned(const struct account *a, enum ability_lack lack)
{
    bool waits = a->obstacle.since && a->obstacle.now.code == OBSTACLE_BEHIND;
    return a->role == ACCOUNT_LEADER && !a->leaving && (lack != ABILITY_LACKS_BEHIND || waits);
}

static void give_up(struct service *s, enum ability_lack lack)
{
    for (size_t i = 0; i < s->account_count; i++) {
        struct account *a = &s->accounts[i];
        if (!is_concerned(a, lack))
            continue;
        log_warn("leader.unable", "account=%s lacks=%s text=\"%s: the account is given up\"",
                 a->alias, ability_name(lack), ability_text(lack));
        election_rotate(s->election, a->index);
    }
}

/* Another relay's node has it: this one's may be behind. */
static void on_others_best(void *arg, uint64_t block)
{
    struct service *s = arg;
    node_expect_height(s->node, block);
    const struct node_info *info = node_info(s->node);
    struct ability_seen seen = {.leads = service_leads(s),
                                .ready = info != NULL,
                                .waits = service_waits_for_block(s),
                                .best = info ? info->best_number : 0,
                                .others_best = block,
                                .members = election_members(s->election)};
    enum ability_lack lack = ability_step(&s->ability, loop_now_ms(s->loop), &seen);
    if (lack != ABILITY_LACKS_NOTHING)
        give_up(s, lack);
}

/* ---- the room ---- */

static void election_room_run(struct room *r)
{
    struct service *s = r->service;
    for (size_t i = 0; i < s->account_count; i++) {
        struct account *a = &s->accounts[i];
        int index = election_add(s->election, a->store_account, a->lock_key, a->alias);
        INVARIANT(index == a->index);
        election_place(s->election, index,
                       (uint64_t)election_lock_key(s->genesis, a->id, a->id_len));
    }
    election_store_state(s->election, STORE_UP);
}

static void closed(void *arg)
{
    struct room *r = arg;
    r->service->election = NULL;
    room_ended(r);
}

static void election_room_close(struct room *r)
{
    election_close(r->service->election, closed, r);
}

static void election_room_free(struct room *r)
{
    INVARIANT(!r->service->election);
    free(r);
}

static void election_room_status(const struct room *r, struct service_status *ret)
{
    ret->members = election_members(r->service->election);
}

static const struct room_ops ops = {.name = "election",
                                    .run = election_room_run,
                                    .close = election_room_close,
                                    .free = election_room_free,
                                    .status = election_room_status};

struct room *service_election(struct service *s, struct err *err)
{
    (void)err;
    if (s->standalone)
        return NULL;
    struct room *r = xcalloc(1, sizeof(*r));
    *r = (struct room){.ops = &ops, .service = s};
    s->election = election_new(s->loop, s->store,
                               &(struct election_config){
                                   .core = s->config.elector,
                                   .holder = s->holder,
                                   .address = s->control_address ? s->control_address : "",
                                   .on_promote = on_promote,
                                   .on_demote = on_demote,
                                   .on_gate = on_gate,
                                   .on_leave = on_leave,
                                   .on_best = on_others_best,
                                   .arg = s,
                               });
    return r;
}
