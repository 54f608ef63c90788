/* One seed: what it is like, the time of faults, the healing, and the end that everything must
 * come to. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "sim.h"
#include "sim_memory.h"

/* A hundred times what a seed takes; and what relays that poll without locks do while they wait for
 * the blocks of others. */
enum { EVENTS_MAX = 3000000, EVENTS_A_SECOND = 1000 };

static struct world *running;

static void on_abort(int signal)
{
    (void)signal;
    if (running)
        siglongjmp(running->broken, 2);
}

struct world *world_new(void)
{
    struct world *w = xcalloc(1, sizeof(*w));
    w->trace = xcalloc(TRACE_LINES, sizeof(*w->trace));
    struct sigaction sa = {.sa_handler = on_abort, .sa_flags = SA_NODEFER};
    sigaction(SIGABRT, &sa, NULL);
    return w;
}

static void draw_plan(struct world *w, const struct options *o)
{
    struct plan *p = &w->plan;
    memset(p, 0, sizeof(*p));
    p->relays = (int)between(w, 2, RELAYS);
    p->accounts = (int)between(w, 1, ACCOUNTS);
    p->nodes = (int)between(w, 1, NODES);
    p->followers = (int)between(w, 0, FOLLOWERS);
    p->use_lock = chance(w, 75);
    p->fat = chance(w, 30);
    p->deterministic = chance(w, 50);
    p->foreign = chance(w, 15);
    p->lossy = chance(w, 8);
    p->era = (uint32_t[]){16, 32, 64, 0}[rng_below(&w->rng, 4)];
    p->block_us = between(w, 800 * MS, 3 * SECOND);
    p->ban_us = (uint64_t[]){0, 10 * SECOND, 40 * SECOND}[rng_below(&w->rng, 3)];
    p->latency_us = chance(w, 70) ? between(w, 200, 4 * MS) : between(w, 4 * MS, 80 * MS);
    p->exec_us = chance(w, 80) ? between(w, 100, 4 * MS) : between(w, 4 * MS, 100 * MS);
    p->finality_lag = (uint32_t)between(w, 1, 4);
    p->fault_us = between(w, 300 * MS, 5 * SECOND);
    p->faults_end = between(w, 30 * SECOND, 120 * SECOND);
    p->transactions = (uint32_t)between(w, 10, 70);
    p->expiry_1_ms = 5000;
    p->expiry_2_ms = chance(w, 50) ? 5000 : 12000;
    p->blocked = p->accounts > 1 && chance(w, 15) ? 0 : -1;
    /* A refused call whose bytes may be out is given up when their era has ended; several may
     * follow each other. */
    p->limit = p->faults_end + 900 * SECOND + 12 * p->era * p->block_us;
    unsigned share = (unsigned)between(w, 10, 90); /* swarms: not every fault in every seed */
    for (int i = 0; fault_name(i); i++)
        if (o->fault < 0 ? i < PLAIN_FAULTS && chance(w, share) : o->fault == i)
            p->fault_mask |= 1u << i;
    p->feature_fault = o->fault;
    if (o->fault == fault_number("foreign"))
        p->foreign = true;
    if (chance(w, 3))
        p->fault_mask = 0;
    p->lossy |= o->lossy;
    p->era = o->era >= 0 ? (uint32_t)o->era : p->era;
    plan_features(w, o);
    p->lost_search &= !o->lossy;
}

static void start(struct world *w, uint64_t seed, const struct options *o)
{
    queue_clear(w);
    w->seed = seed;
    w->rng.state = seed * 0x2545f4914f6cdd1du + 1;
    w->now = w->seq = w->events = 0;
    w->until = o->until ? o->until : UINT64_MAX;
    w->healing = w->blocked_free = false;
    w->away_until = 0;
    w->tracing = o->tracing;
    w->trace_count = 0;
    w->violation[0] = 0;
    memset(&w->stats, 0, sizeof(w->stats));
    memset(w->effects, 0, sizeof(w->effects));
    memset(w->heads, 0, sizeof(w->heads));
    memset(w->account_moved, 0, sizeof(w->account_moved));
    memset(w->failures, 0, sizeof(w->failures));
    memset(w->inner, 0, sizeof(w->inner));
    memset(w->must_end, 0, sizeof(w->must_end));
    memset(w->was_failed_over, 0, sizeof(w->was_failed_over));
    memset(w->calls, 0, sizeof(w->calls));
    memset(w->processes, 0, sizeof(w->processes));
    memset(w->relays, 0, sizeof(w->relays));
    memset(w->followers, 0, sizeof(w->followers));
    w->current = NULL;
    w->next_id = 1;
    simulated = w;
    draw_plan(w, o);
    chain_start(w);
    db_start(w);
    w->chain.unpaid[0] = w->plan.blocked == 0;
    for (int i = 0; i < w->plan.relays; i++)
        relay_start(w, &w->relays[i]);
    for (int i = 0; i < w->plan.followers; i++)
        follower_start(w, &w->followers[i]);
    app_start(w);
    fault_start(w);
    lie_start(w);
    warp_start(w);
    away_start(w);
    operator_start(w);
    stranger_start(w);
    holder_start(w);
    stuck_start(w);
}

static void stop(struct world *w)
{
    for (int i = 0; i < w->plan.relays; i++)
        if (w->relays[i].process->alive)
            relay_kill(w, &w->relays[i], false);
    for (int i = 0; i < w->plan.followers; i++)
        follower_end(w, &w->followers[i]);
    queue_clear(w);
    app_database_lost(w);
    db_end(w);
    w->current = NULL;
}

/* ---- the end ---- */

static bool led(const struct world *w, int account)
{
    for (int i = 0; i < w->plan.relays; i++)
        if (leads(&w->relays[i], account) &&
            epoch_of(&w->relays[i], account) == db_account(w, account)->lead.epoch)
            return true;
    return false;
}

/* Transactions that have not ended; without the account that is kept from paying. */
static int64_t open_without(const struct world *w, int account)
{
    int64_t open = 0;
    for (int64_t id = 1; id < w->next_id; id++)
        open += w->must_end[id] && w->calls[id].account != account && !db_ended(w, id);
    return open;
}

static bool fillers_open(const struct world *w)
{
    for (int a = 0; a < w->plan.accounts; a++)
        if (db_account(w, a)->pending_count)
            return true;
    return false;
}

static bool over(struct world *w)
{
    if (!w->blocked_free &&
        !open_without(w, w->plan.blocked)) { /* I10: the others did not need it */
        w->blocked_free = true;
        if (w->plan.blocked >= 0)
            chain_pays(w, w->plan.blocked, false);
    }
    if (!w->blocked_free || open_without(w, -1) || fillers_open(w))
        return false;
    for (int a = 0; a < w->plan.accounts; a++)
        if (!led(w, a))
            return false;
    for (int i = 0; i < w->plan.followers; i++)
        if (!follower_quiet(&w->followers[i]))
            return false;
    return true;
}

static void still_open(struct world *w)
{
    for (int a = 0; a < w->plan.accounts; a++)
        HOLDS(w, led(w, a), "liveness", "account %d is not led", a);
    for (int64_t id = 1; id < w->next_id; id++) {
        const struct mem_row *r = mem_row_of(w->db.mem, id);
        HOLDS(w, !w->must_end[id] || db_ended(w, id), "liveness",
              "transaction %lld of account %d has not ended: table %d nonce %lld %s", (long long)id,
              w->calls[id].account, r ? (int)r->table : -1, r ? (long long)r->nonce : -1,
              r && r->table == MEM_PENDING ? mem_state_name(r->state) : "");
    }
    for (int i = 0; i < w->plan.followers; i++) {
        const struct follower *f = &w->followers[i];
        HOLDS(w, follower_quiet(f), "liveness",
              "follower %d does not come to rest: up %d, in flight %u", i, f->link.up,
              f->in_flight);
    }
    broken(w, "liveness", "fillers are open");
}

static void views(struct world *w)
{
    for (int i = 0; i < w->plan.followers; i++)
        if (follower_quiet(&w->followers[i]))
            check_view(w, &w->followers[i]);
}

static void run(struct world *w)
{
    uint64_t look_at = SECOND;
    while (w->events < w->until && world_step(w)) {
        HOLDS(w, w->events < EVENTS_MAX + w->now / SECOND * EVENTS_A_SECOND, "livelock",
              "%llu events, and time stands at %.3f s", (unsigned long long)w->events,
              (double)w->now / 1e6);
        if (w->now < look_at)
            continue;
        look_at = w->now + SECOND;
        views(w);
        silence_check(w);
        stuck_check(w);
        if (!w->healing && w->now >= w->plan.faults_end + 5 * SECOND)
            fault_heal(w);
        if (w->healing && w->now > w->healed_at + w->plan.price_us)
            w->chain.min_tip = 0;
        if (w->healing)
            duty_waits(w);
        if (w->healing && over(w)) {
            check_end(w);
            return;
        }
        if (w->now > w->plan.limit)
            still_open(w);
    }
}

bool world_run(struct world *w, uint64_t seed, const struct options *options)
{
    start(w, seed, options);
    running = w;
    int how = sigsetjmp(w->broken, 1);
    if (how == 0) {
        run(w);
        running = NULL;
        stop(w);
        return true;
    }
    running = NULL;
    if (how == 2)
        snprintf(w->violation, sizeof(w->violation),
                 "core: a check in the product failed (see above)");
    /* What the broken step had in its hands is lost: memory of a run that failed is not tidied. */
    memory_use(NULL);
    w->current = NULL;
    w->heap_count = 0;
    return false;
}

void world_free(struct world *w)
{
    for (struct event *e = w->spare, *next; e; e = next) {
        next = e->next;
        free(e);
    }
    free(w->heap);
    free(w->trace);
    free(w);
}
