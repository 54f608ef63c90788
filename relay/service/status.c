/* Fills relay/status.h from the service and its parts. */
#include "relay/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "service/service_internal.h"

const char *account_role_name(enum account_role role)
{
    static const char *const names[] = {
        [ACCOUNT_FOLLOWER] = "follower", [ACCOUNT_LEADER] = "leader"};
    PRE(role < ARRAY_LEN(names));
    return names[role];
}

const char *service_phase_name(enum service_phase phase)
{
    static const char *const names[] = {[SERVICE_STARTING] = "starting",
                                        [SERVICE_RUNNING] = "running",
                                        [SERVICE_DRAINING] = "draining",
                                        [SERVICE_CLOSING] = "closing"};
    PRE(phase < ARRAY_LEN(names));
    return names[phase];
}

/* The election has the accounts between start and end only. */
static bool elects(const struct service *s)
{
    return s->election && (s->phase == SERVICE_RUNNING || s->phase == SERVICE_DRAINING);
}

const char *service_leader_of(const struct service *s, const struct account *a,
                              const char **ret_address)
{
    return elects(s) ? election_leader(s->election, a->index, ret_address) : "";
}

static void fill_account(const struct service *s, const struct account *a,
                         struct account_status *ret)
{
    *ret = (struct account_status){.alias = a->alias,
                                   .address = a->address,
                                   .role = a->role,
                                   .epoch = a->epoch,
                                   .gate_open = account_gate(a),
                                   .leaving = a->leaving,
                                   .leader_address = "",
                                   .unstored = a->unsettled,
                                   .unanswered = account_unanswered(a),
                                   .refused_total = a->refused_total,
                                   .gated_total = a->gated_total,
                                   .counts = a->counts,
                                   .stages = a->stages,
                                   .balance_known = a->balance_known && a->role == ACCOUNT_LEADER,
                                   .balance = a->balance,
                                   .sampled = a->sampled,
                                   .sample = a->sample,
                                   .phase = manager_phase(a->manager),
                                   .manager = manager_view_of(a->manager),
                                   .progress = a->progress};
    bool blocked = obstacle_lasts(&a->obstacle);
    ret->obstacle = blocked ? obstacle_name(a->obstacle.now.code) : "";
    ret->obstacle_text = blocked ? a->obstacle.now.text : "";
    ret->obstacle_ms = blocked ? loop_now_ms(s->loop) - a->obstacle.since : 0;
    ret->leader = service_leader_of(s, a, &ret->leader_address);
    ret->elected = elects(s);
    if (ret->elected)
        election_stats(s->election, a->index, &ret->election);
}

void service_status(const struct service *s, struct service_status *ret)
{
    *ret = (struct service_status){.name = s->name,
                                   .holder = s->holder,
                                   .phase = s->phase,
                                   .standalone = s->standalone,
                                   .now_ms = loop_now_ms(s->loop),
                                   .chain_up = s->node_ready,
                                   .chain_error = s->node_error,
                                   .database_up = s->store_up,
                                   .database_error = s->store_error,
                                   .endpoint = "",
                                   .spec_name = "",
                                   .obstacle = "",
                                   .obstacle_text = "",
                                   .account_count = s->account_count};
    for (size_t i = 0; i < s->rooms_open; i++)
        if (s->rooms[i]->ops->status)
            s->rooms[i]->ops->status(s->rooms[i], ret);
    memcpy(ret->starting, s->starting, sizeof(ret->starting));
    ret->accounts = xcalloc(s->account_count, sizeof(*ret->accounts));
    for (size_t i = 0; i < s->account_count; i++)
        fill_account(s, &s->accounts[i], &ret->accounts[i]);
}

void service_status_progress(const struct service_status *status, char *ret, size_t size)
{
    struct progress_list list = {.text = ret, .size = size};
    ret[0] = 0;
    for (size_t i = 0; i < START_PARTS; i++)
        progress_list_add(&list, "", &status->starting[i], status->now_ms);
    for (size_t i = 0; i < status->account_count; i++)
        progress_list_add(&list, status->accounts[i].alias, &status->accounts[i].progress,
                          status->now_ms);
    progress_list_end(&list);
}

void service_status_done(struct service_status *status)
{
    free(status->accounts);
    free(status->feeds);
    *status = (struct service_status){0};
}
