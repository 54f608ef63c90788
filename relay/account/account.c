/* One account: steps its manager and carries the effects out. */
#include <stdlib.h>
#include <string.h>

#include "account/account.h"
#include "account/tally.h"
#include "base/alloc.h"
#include "base/check.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "service/service_internal.h"

static void rearm(struct account *a)
{
    uint64_t next = manager_deadline(a->manager);
    if (next == UINT64_MAX)
        loop_timer_stop(a->timer);
    else
        loop_timer_at(a->timer, next);
}

static void on_timer(void *arg)
{
    struct account *a = arg;
    if (manager_deadline(a->manager) <= loop_now_ms(a->service->loop))
        account_event(a, &(struct manager_event){.type = MANAGER_EV_TICK});
    rearm(a); /* a timer that fired is not armed, and maybe nothing was due yet */
}

void account_init(struct account *a, struct service *s, int index,
                  const struct service_account *config)
{
    *a = (struct account){.service = s, .index = index, .key = config->key};
    a->alias = xstrdup(config->alias);
    a->has_prefix = config->has_prefix;
    a->prefix = config->prefix;
    a->has_lock_key = config->has_lock_key;
    a->lock_key = config->lock_key;
    size_t len = config->id_len;
    const uint8_t *id = a->key ? keypair_account_id(a->key, &len) : config->id;
    memcpy(a->id, id, len);
    a->id_len = len;
    a->scheme = a->key ? keypair_scheme(a->key) : config->scheme;
    struct manager_config manager = s->config.manager;
    manager.keyless = !a->key;
    a->manager = manager_new(&manager);
    a->timer = loop_timer_new(s->loop, on_timer, a);
    HASH_ADD_KEYPTR(hh, s->by_id, a->id, (unsigned)a->id_len, a);
}

void account_done(struct account *a)
{
    account_unwatch_all(a);
    tally_forget(a);
    HASH_DELETE(hh, a->service->by_id, a);
    a->manager = manager_free(a->manager);
    a->key = keypair_free(a->key);
    a->timer = loop_timer_close(a->timer);
    free(a->alias);
}

bool account_gate(const struct account *a)
{
    struct service *s = a->service;
    if (a->role != ACCOUNT_LEADER)
        return false;
    return s->standalone || election_gate(s->election, a->index);
}

bool account_is_managed(const struct account *a)
{
    return a->role == ACCOUNT_LEADER && !a->site;
}

static void effect(struct account *a, const struct manager_effect *fx)
{
    switch (fx->type) {
#define X(write, name) case write:
        MANAGER_WRITES(X)
#undef X
    case MANAGER_FX_LOAD:
        account_store_effect(a, fx);
        return;
    case MANAGER_FX_WANT_OUTBOX:
        account_poll(a, (struct poll_event){.type = POLL_EV_WANT_ROWS, .limit = fx->limit});
        return;
    case MANAGER_FX_SUBMIT:
        account_submit(a, fx);
        return;
    case MANAGER_FX_UNWATCH:
        account_unwatch(a, fx->unwatch.hash);
        return;
    case MANAGER_FX_UNWATCH_ALL:
        account_unwatch_all(a);
        return;
    case MANAGER_FX_ASK_POOL:
    case MANAGER_FX_ASK_NONCE:
    case MANAGER_FX_ASK_UNFINAL:
        account_ask(a, fx);
        return;
    case MANAGER_FX_FOLLOW:
        service_follow(a->service, fx->number);
        return;
    case MANAGER_FX_RECHECK_RUNTIME:
        node_recheck_runtime(a->service->node);
        return;
    case MANAGER_FX_NODE_BEHIND:
        node_expect_height(a->service->node, fx->number);
        return;
    case MANAGER_FX_READY:
        log_info("account.ready", "account=%s epoch=%lld next_nonce=%llu open=%zu", a->alias,
                 (long long)a->epoch, (unsigned long long)manager_view_of(a->manager).next_nonce,
                 manager_view_of(a->manager).open);
        return;
    case MANAGER_FX_ALERT:
        log_warn("account.alert", "account=%s address=%s epoch=%lld text=\"%s\"", a->alias,
                 a->address, (long long)a->epoch, fx->text);
        return;
    case MANAGER_FX_POLL_REQUESTS:
        account_poll(a, (struct poll_event){.type = POLL_EV_WANT_REQUESTS, .serial = fx->number});
        return;
    }
    UNREACHABLE();
}

/* Effects only start things (their answers come from the loop), so the list stays valid while it is
 * walked. */
void account_event(struct account *a, const struct manager_event *ev)
{
    const struct manager_effect *fx;
    size_t count;
    a->service->account_events++;
    manager_step(a->manager, loop_now_ms(a->service->loop), ev, &fx, &count);
    for (size_t i = 0; i < count; i++)
        effect(a, &fx[i]);
    rearm(a);
}

bool account_poll(struct account *a, struct poll_event ev)
{
    ev.account = (size_t)a->index;
    return service_poll_event(a->service, &ev);
}

void account_promote(struct account *a, int64_t epoch)
{
    FAILPOINT("after_promote");
    a->generation++;
    a->role = ACCOUNT_LEADER;
    a->service->account_events++;
    a->epoch = epoch;
    a->turn = (struct turn){0};
    a->read_error[0] = 0;
    a->held = (struct account_held){0};
    service_obstacle_over(a);
    log_info("leader.acquired", "account=%s scope=%lld holder=%s epoch=%lld", a->alias,
             (long long)a->lock_key, a->service->holder, (long long)epoch);
    account_poll(a, (struct poll_event){.type = POLL_EV_LED});
    if (a->site) {
        service_sites_lead(a, epoch);
        return;
    }
    account_event(a, &(struct manager_event){.type = MANAGER_EV_PROMOTED, .epoch = epoch});
    const struct node_info *info = node_info(a->service->node);
    if (!info)
        return;
    service_send_chain_event(a, MANAGER_EV_CHAIN_UP, info);
}

void account_demote(struct account *a, const char *reason)
{
    if (a->role != ACCOUNT_LEADER)
        return;
    log_warn("leader.lost", "account=%s scope=%lld holder=%s epoch=%lld reason=\"%s\"", a->alias,
             (long long)a->lock_key, a->service->holder, (long long)a->epoch, reason);
    a->generation++;
    a->role = ACCOUNT_FOLLOWER;
    a->service->account_events++;
    obstacle_forget(&a->obstacle);
    account_ahead_drop(a);
    a->leaving = false;
    a->epoch = 0;
    if (a->site)
        service_sites_lead(a, 0);
    else
        account_event(a, &(struct manager_event){.type = MANAGER_EV_DEMOTED});
    account_unwatch_all(a);
    tally_forget(a);
    account_poll(a, (struct poll_event){.type = POLL_EV_NOT_LED});
}

void account_lost(struct account *a, int code)
{
    if (err_class(code) == ERR_CLASS_LOST_LEADERSHIP && !a->service->standalone)
        election_stale(a->service->election, a->index);
}
