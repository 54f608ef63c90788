/* The room of the election: who leads which account, and what follows for the accounts. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "service/service_internal.h"

enum { NODE_GONE_MS = 10000 };

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

/* A leader without a usable endpoint can do nothing for its accounts. Where the heights of another
 * relay's node still rise, that one leads them better. */
static void give_up(struct service *s, uint64_t others_best)
{
    uint64_t now = loop_now_ms(s->loop);
    if (!s->node_gone_ms)
        return;
    if (!s->others_best)
        s->others_best = others_best;
    if (now < s->node_gone_ms + NODE_GONE_MS || others_best <= s->others_best)
        return;
    s->node_gone_ms = now; /* if no other relay takes them, again as much later */
    s->others_best = others_best;
    for (size_t i = 0; i < s->account_count; i++) {
        struct account *a = &s->accounts[i];
        if (a->role != ACCOUNT_LEADER || a->leaving)
            continue;
        log_warn(
            "leader.no_endpoint",
            "account=%s text=\"no endpoint of this relay is usable, and another relay's is: the "
            "account is given up\"",
            a->alias);
        election_rotate(s->election, a->index);
    }
}

/* Another relay's node has it: this one's may be behind. */
static void on_others_best(void *arg, uint64_t block)
{
    struct service *s = arg;
    node_expect_height(s->node, block);
    give_up(s, block);
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
