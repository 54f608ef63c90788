/* A relay's process: the product's service with a configuration of the world's, its end by a
 * kill, and by a drain (service_stop). */
#include "sim_relay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_memory.h"
#include "sim_node.h"

bool leads(const struct relay *r, int account)
{
    return r->service && r->service->accounts[account].role == ACCOUNT_LEADER;
}

int64_t epoch_of(const struct relay *r, int account)
{
    return r->service ? r->service->accounts[account].epoch : 0;
}

const struct manager *manager_of(const struct relay *r, int account)
{
    return r->service->accounts[account].manager;
}

bool store_is_up(const struct relay *r)
{
    return r->service && r->service->store_up;
}

uint32_t spec_of(const struct relay *r)
{
    return r->node ? r->node->info.spec_version : 0;
}

/* ---- the beginning ---- */

static void on_exit_of_service(void *arg, const struct err *err)
{
    struct relay *r = arg;
    broken(r->world, "exit", "r%d gives up: %s", r->index, err->text);
}

static void configure(struct world *w, struct relay *r, struct service_account *accounts,
                      struct service_config *c)
{
    static const char *const endpoints[] = {"ws://node"};
    for (int a = 0; a < w->plan.accounts; a++) {
        accounts[a] = (struct service_account){.alias = account_alias(a),
                                               .key = w->plan.keyless[a] ? NULL : account_key(a),
                                               .scheme = KEY_SR25519,
                                               .id_len = 32};
        account_id(a, accounts[a].id);
    }
    *c = (struct service_config){.name = r->name,
                                 .holder = r->name,
                                 .control_dsn = "control",
                                 .work_dsn = "work",
                                 .listen_dsn = "listen",
                                 .endpoints = endpoints,
                                 .endpoint_count = 1,
                                 .accounts = accounts,
                                 .account_count = (size_t)w->plan.accounts,
                                 .elector = {.use_lock = w->plan.use_lock,
                                             .expiry_1_ms = w->plan.expiry_1_ms,
                                             .expiry_2_ms = w->plan.expiry_2_ms,
                                             .bid_min_ms = 250,
                                             .bid_max_ms = 750,
                                             .ring = w->plan.ring,
                                             .rotate = w->plan.rotate_blocks > 0},
                                 .manager = {.window_max = 16,
                                             .batch_max = 6,
                                             .unanswered_max = 6,
                                             .era_period = w->plan.era,
                                             .reprobe_blocks = 5,
                                             .lost_search = w->plan.lost_search,
                                             .state_batch_max = 8},
                                 .rotate_blocks = w->plan.rotate_blocks,
                                 .snapshot_rows = 6,
                                 .on_exit = on_exit_of_service,
                                 .arg = r};
}

void relay_start(struct world *w, struct relay *r)
{
    struct service_account accounts[ACCOUNTS];
    struct service_config config;
    struct err err;
    int index = (int)(r - w->relays);
    struct process *p = &w->processes[index];
    uint32_t number = r->wire.number, sub = r->wire.next_sub, links[LINKS];
    for (int k = 0; k < LINKS; k++)
        links[k] = r->links[k].number;
    process_start(w, p);
    *r = (struct relay){
        .world = w, .index = index, .process = p, .wire = {.number = number, .next_sub = sub}};
    for (int k = 0; k < LINKS; k++) { /* numbers go on */
        r->links[k].number = links[k];
        list_init(&r->links[k].sent);
    }
    r->holder = (index + 1) * 100000 + (int)p->life;
    snprintf(r->name, sizeof(r->name), "relay-%d-%u", index + 1, p->life);
    configure(w, r, accounts, &config);
    memory_use(p->memory);
    w->current = p;
    r->service = service_new(p->loop, &config, &err);
    INVARIANT(r->service);
    service_open(r->service);
    w->current = NULL;
    memory_use(NULL);
}

static void start_again(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->a];
    if (w->now < w->away_until)
        relay_start_later(w, r, w->away_until - w->now + 1);
    else if (!r->process->alive)
        relay_start(w, r);
}

void relay_start_later(struct world *w, struct relay *r, uint64_t us)
{
    later(w, us, "starts again", start_again)->a = (uint32_t)r->index;
}

/* ---- the end ---- */

static void leave(struct world *w, struct relay *r, bool host)
{
    for (int k = 0; k < LINKS; k++)
        link_close(w, &r->links[k], host);
    wire_close(w, r);
    r->service = NULL;
    r->node = NULL;
    process_end(w, r->process);
}

/* kill -9, or the loss of its host: the peers find out at once, or after a while. */
void relay_kill(struct world *w, struct relay *r, bool host)
{
    note(w, "r%d dies%s", r->index, host ? " with its host" : "");
    w->stats.crashes++;
    leave(w, r, host);
}

static void end_of_process(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->a];
    if (!r->process->alive || r->process->life != e->b)
        return;
    size_t blocks = memory_live(r->process->memory), own = loop_blocks(r->process->loop);
    HOLDS(w, !loop_open_handles(r->process->loop), "handles",
          "r%d has ended and left %zu handles open", r->index, loop_open_handles(r->process->loop));
    HOLDS(w, blocks == own, "memory", "r%d has ended and left %zu blocks of memory", r->index,
          blocks - own);
    w->stats.drains++;
    leave(w, r, false);
    relay_start_later(w, r, between(w, 100 * MS, 15 * SECOND));
}

static void stopped(void *arg)
{
    struct relay *r = arg;
    struct world *w = r->world;
    r->service = NULL;
    struct event *e = later(w, 0, "end of process", end_of_process);
    e->a = (uint32_t)r->index;
    e->b = r->process->life;
}

/* SIGTERM. */
void relay_drain(struct world *w, struct relay *r)
{
    if (r->draining || !r->service)
        return;
    r->draining = true;
    note(w, "r%d drains", r->index);
    memory_use(r->process->memory);
    w->current = r->process;
    service_stop(r->service, stopped, r);
    w->current = NULL;
    memory_use(NULL);
}

void relay_stop(struct world *w, struct relay *r, uint64_t us)
{
    process_stop(w, r->process, us);
}
