/* Fills relay/status.h from the service and its parts. */
#include "relay/status.h"

#include <stdlib.h>

#include "base/check.h"
#include "service/service_internal.h"

const char *account_role_name(enum account_role role)
{
    static const char *const names[] = {[ACCOUNT_FOLLOWER] = "follower", [ACCOUNT_LEADER] = "leader"};
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

const char *service_leader_of(const struct service *s, const struct account *a, const char **ret_address)
{
    return elects(s) ? election_leader(s->election, a->index, ret_address) : "";
}

static void fill_account(const struct service *s, const struct account *a, struct account_status *ret)
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
                                   .phase = manager_phase(a->manager),
                                   .manager = manager_look(a->manager)};
    ret->leader = service_leader_of(s, a, &ret->leader_address);
    ret->elected = elects(s);
    if (ret->elected)
        election_stats(s->election, a->index, &ret->election);
}

static void fill_chain(const struct service *s, struct service_status *ret)
{
    const struct node_info *info = node_info(s->node);
    ret->chain_up = s->node_ready;
    ret->endpoint = node_endpoint(s->node);
    if (!info)
        return;
    ret->spec_name = info->spec_name;
    ret->spec_version = info->spec_version;
    ret->transaction_version = info->transaction_version;
    ret->best = info->best_number;
    ret->finalized = info->finalized_number;
    ret->best_known = info->best_known;
}

static void fill_parts(const struct service *s, struct service_status *ret)
{
    ret->store = store_status(s->store);
    ret->listens = s->listen != NULL;
    if (ret->listens)
        ret->listen = listen_status(s->listen);
    fill_chain(s, ret);
}

void service_status(const struct service *s, struct service_status *ret)
{
    *ret = (struct service_status){.name = s->name,
                                   .holder = s->holder,
                                   .phase = s->phase,
                                   .standalone = s->standalone,
                                   .members = elects(s) ? election_members(s->election) : 0,
                                   .database_up = s->store_up,
                                   .endpoint = "",
                                   .spec_name = "",
                                   .account_count = s->account_count};
    if (!s->store_up && !s->standalone)
        ret->stale_ms = loop_now_ms(s->loop) - s->stale_since_ms;
    if (s->phase != SERVICE_CLOSING) /* else they may be gone */
        fill_parts(s, ret);
    ret->accounts = xcalloc(s->account_count, sizeof(*ret->accounts));
    for (size_t i = 0; i < s->account_count; i++)
        fill_account(s, &s->accounts[i], &ret->accounts[i]);
}

void service_status_done(struct service_status *status)
{
    free(status->accounts);
    *status = (struct service_status){0};
}
