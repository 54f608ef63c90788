/* What goes wrong, when and how badly: every seed has its own selection and pace. At the end all
 * of it is mended, and everything must come to its end. */
#include <string.h>

#include "sim.h"

static struct relay *some_relay(struct world *w)
{
    struct relay *r = &w->relays[rng_below(&w->rng, (uint64_t)w->plan.relays)];
    if (r->process->alive && chance(w, 50)) /* rather one that leads */
        for (int a = 0; a < w->plan.accounts; a++)
            for (int i = 0; i < w->plan.relays; i++)
                if (leads(&w->relays[i], a))
                    return &w->relays[i];
    return r->process->alive ? r : NULL;
}

static int some_node(struct world *w)
{
    return (int)rng_below(&w->rng, (uint64_t)w->plan.nodes);
}

static void crash(struct world *w)
{
    struct relay *r = some_relay(w);
    if (!r)
        return;
    relay_kill(w, r, chance(w, 25));
    relay_start_later(w, r, between(w, 100 * MS, 15 * SECOND));
}

static void drain(struct world *w)
{
    struct relay *r = some_relay(w);
    if (!r || r->process->paused || r->draining)
        return;
    relay_drain(w, r);
}

static void pause(struct world *w)
{
    struct relay *r = some_relay(w);
    if (r)
        relay_stop(w, r,
                   chance(w, 50) ? between(w, 10 * MS, 3 * SECOND)
                                 : between(w, 3 * SECOND, 30 * SECOND));
}

static void db_restart(struct world *w)
{
    if (w->db.up)
        db_stop(w, between(w, 200 * MS, 15 * SECOND));
}

static void standby_behind(struct world *w, struct event *e)
{
    (void)e;
    db_failover(w, true);
}

static void failover(struct world *w)
{
    if (!w->db.up)
        return;
    if (!w->plan.lossy) {
        db_failover(w, false);
        return;
    }
    if (w->db.standby_behind)
        return;
    db_fall_behind(w);
    later(w, between(w, 5 * MS, w->plan.behind_us), "failover", standby_behind);
}

static void session_loss(struct world *w)
{
    struct relay *r = some_relay(w);
    if (r)
        link_cut(w, &r->links[rng_below(&w->rng, LINKS)], chance(w, 50));
}

static void follower_loss(struct world *w)
{
    if (w->plan.followers)
        link_cut(w, &w->followers[rng_below(&w->rng, (uint64_t)w->plan.followers)].link,
                 chance(w, 50));
}

static void partition(struct world *w)
{
    struct relay *r = some_relay(w);
    uint64_t us =
        chance(w, 50) ? between(w, 50 * MS, 4 * SECOND) : between(w, 4 * SECOND, 40 * SECOND);
    if (!r)
        return;
    int first = (int)rng_below(&w->rng, LINKS), last = chance(w, 60) ? LINKS - 1 : first;
    for (int k = last == first ? first : 0; k <= last; k++)
        link_stall(w, &r->links[k], us);
}

static void slow_db(struct world *w)
{
    w->db.slow_until = w->now + between(w, 200 * MS, 5 * SECOND);
}

static void node_loss(struct world *w)
{
    struct relay *r = some_relay(w);
    if (r)
        wire_cut(w, r);
}

static void node_stall(struct world *w)
{
    struct relay *r = some_relay(w);
    if (r)
        wire_stall(w, r, between(w, 100 * MS, 25 * SECOND));
}

static void restart_node(struct world *w)
{
    node_restart(w, some_node(w), between(w, 100 * MS, 6 * SECOND));
}

static void evict(struct world *w)
{
    for (uint64_t n = between(w, 1, 3); n > 0; n--)
        pool_evict(w, some_node(w), chance(w, 50));
}

static void fork_chain(struct world *w)
{
    chain_fork(w, (uint32_t)between(w, 1, 4));
}

static void stall_finality(struct world *w)
{
    w->chain.stall_until = w->now + between(w, 2 * w->plan.block_us, 30 * w->plan.block_us);
}

static void upgrade(struct world *w)
{
    struct chain *c = &w->chain;
    if (!chance(w, 40))
        return;
    c->spec++;
    for (size_t i = 0; has(w, FEATURE_VERSION) && i < ARRAY_LEN(c->version_from); i++)
        if (!c->version_from[i]) {
            c->version_from[i] = chance(w, 50) ? c->spec : 0;
            return;
        }
}

static void unpaid(struct world *w)
{
    int a = (int)rng_below(&w->rng, (uint64_t)w->plan.accounts);
    if (a != w->plan.blocked)
        chain_pays(w, a, !w->chain.unpaid[a]);
}

static void pool_limit(struct world *w)
{
    w->chain.nodes[some_node(w)].pool_limit = (uint32_t)between(w, 1, 20);
}

static void lose_watch(struct world *w)
{
    pool_lose_watch(w, some_node(w));
}

static void false_in_block(struct world *w)
{
    pool_false_in_block(w, some_node(w));
}

static void node_lag(struct world *w)
{
    if (w->plan.nodes > 1)
        w->chain.nodes[some_node(w)].lag_until =
            w->now + between(w, w->plan.block_us, 20 * w->plan.block_us);
}

/* The runtime traps on what is submitted, at this node and for a while. */
static void trap(struct world *w)
{
    w->chain.nodes[some_node(w)].trap_until = w->now + between(w, 100 * MS, 8 * SECOND);
}

static void foreign(struct world *w)
{
    if (w->plan.foreign && chance(w, 30))
        chain_foreign(w, (int)rng_below(&w->rng, (uint64_t)w->plan.accounts));
}

static int some_account(struct world *w)
{
    return (int)rng_below(&w->rng, (uint64_t)w->plan.accounts);
}

static void foreign_in_pool(struct world *w)
{
    if (has(w, FEATURE_FOREIGN_POOL) && chance(w, 40))
        chain_foreign_in_pool(w, some_account(w));
}

/* Used, reaped and paid for again before any of it is final, by an application of ours. Bytes of
 * others, or higher tips, in such a stretch may be taken for what they are not: docs/design.md
 * names that. */
static void reap_in_stall(struct world *w, struct event *e)
{
    const struct chain *c = &w->chain;
    const struct block *best = &c->blocks[c->nodes[0].best];
    if (!w->healing && best->nonce[e->account] > c->blocks[c->final].nonce[e->account])
        chain_reap(w, e->account);
}

/* Twice at most: the way back takes an operator each time. It may have to wait for money too.
 * Not at the very first nonces: that is for REAP_UNFINAL, where nothing of the former life may
 * be final yet. */
static void reap(struct world *w)
{
    int a = some_account(w);
    bool unfinal = has(w, FEATURE_REAP_UNFINAL);
    if (!has(w, FEATURE_REAP) || w->stats.reaped >= 2 || a == w->plan.blocked || !chance(w, 40) ||
        (!unfinal && w->chain.blocks[w->chain.final].nonce[a] < 6))
        return;
    if (unfinal) {
        w->chain.stall_until = w->now + 30 * w->plan.block_us;
        later(w, between(w, 1, 10) * w->plan.block_us, "reap in a stall", reap_in_stall)->account =
            a;
        return;
    }
    chain_reap(w, a);
    w->chain.unpaid[a] = chance(w, 60);
}

/* Others bid for the room in blocks. */
static void price(struct world *w)
{
    if (has(w, FEATURE_TIPS))
        w->chain.min_tip = chance(w, 40) ? 0 : between(w, 1, chance(w, 80) ? 60 : 2000);
}

static void operator_acts(struct world *w)
{
    if (has(w, FEATURE_PAUSES) && chance(w, 40))
        operator_pauses(w);
}

static void die_between(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[e->a];
    if (!r->process->alive || r->process->life != e->b)
        return;
    w->stats.between++;
    relay_kill(w, r, false);
    relay_start_later(w, r, 5 * SECOND);
}

static void dies(struct world *w, int relay, bool *first, const char *name)
{
    if (!*first || w->healing)
        return;
    *first = false;
    struct event *e = later(w, 0, name, die_between);
    e->a = (uint32_t)relay;
    e->b = w->relays[relay].process->life;
}

/* In a wait after lost commits it has stored that nonces of ours are used, and dies before it
 * adopts what used them: the first one of a seed. It draws nothing. */
void fault_between(struct world *w, int relay)
{
    dies(w, relay, &w->plan.dies_between, "dies before an adoption");
}

/* It has adopted something, and dies before it looks for more. */
void fault_adopted(struct world *w, int relay)
{
    dies(w, relay, &w->plan.dies_adopting, "dies between two adoptions");
}

static const struct {
    const char *name;
    void (*strike)(struct world *w);
} faults[] = {
    {"crash", crash},
    {"drain", drain},
    {"pause", pause},
    {"db-restart", db_restart},
    {"failover", failover},
    {"session-loss", session_loss},
    {"follower-loss", follower_loss},
    {"partition", partition},
    {"slow-db", slow_db},
    {"node-loss", node_loss},
    {"node-stall", node_stall},
    {"node-restart", restart_node},
    {"evict", evict},
    {"fork", fork_chain},
    {"finality-stall", stall_finality},
    {"upgrade", upgrade},
    {"unpaid", unpaid},
    {"pool-limit", pool_limit},
    {"lose-watch", lose_watch},
    {"false-in-block", false_in_block},
    {"node-lag", node_lag},
    {"trap", trap},
    {"foreign", foreign},
    /* Those of features: strike_feature. */
    {"foreign-in-pool", foreign_in_pool},
    {"reap", reap},
    {"price", price},
    {"operator", operator_acts},
};

int fault_number(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(faults); i++)
        if (!strcmp(faults[i].name, name))
            return (int)i;
    return -1;
}

const char *fault_name(int number)
{
    return (size_t)number < ARRAY_LEN(faults) ? faults[number].name : NULL;
}

static void strike(struct world *w, struct event *e)
{
    (void)e;
    if (w->now >= w->plan.faults_end)
        return;
    uint32_t i = (uint32_t)rng_below(&w->rng, PLAIN_FAULTS);
    for (size_t k = 0; k < PLAIN_FAULTS; k++, i = (i + 1) % PLAIN_FAULTS)
        if (w->plan.fault_mask >> i & 1)
            break;
    if (w->plan.fault_mask) {
        note(w, "fault %s", faults[i].name);
        w->stats.faults++;
        faults[i].strike(w);
    }
    later(w, between(w, 1, 2 * w->plan.fault_us), "fault", strike);
}

/* Beside the others, so that a seed without features is what it was before there were any. */
static void strike_feature(struct world *w, struct event *e)
{
    (void)e;
    if (w->now >= w->plan.faults_end)
        return;
    uint32_t i = PLAIN_FAULTS + (uint32_t)rng_below(&w->rng, ARRAY_LEN(faults) - PLAIN_FAULTS);
    if (w->plan.feature_fault < 0 || w->plan.feature_fault == (int)i)
        faults[i].strike(w);
    later(w, between(w, 1, 2 * w->plan.fault_us), "fault of a feature", strike_feature);
}

void fault_start(struct world *w)
{
    if (w->plan.features & ~(1u << FEATURE_DUTIES))
        later(w, between(w, 0, 2 * w->plan.fault_us), "fault of a feature", strike_feature);
    later(w, between(w, 0, 2 * w->plan.fault_us), "fault", strike);
}

void fault_heal(struct world *w)
{
    w->healing = true;
    if (takes_no_signature(w, w->chain.spec))
        w->chain.spec++;
    w->healed_at = w->now;
    w->chain.min_tip = w->plan.last_min_tip;
    w->db.slow_until = 0;
    w->chain.stall_until = 0;
    for (int a = 0; a < ACCOUNTS; a++)
        chain_pays(w, a, a == w->plan.blocked && !w->blocked_free);
    for (int k = 0; k < NODES; k++) {
        w->chain.nodes[k].pool_limit = w->plan.pool_limit;
        w->chain.nodes[k].trap_until = w->chain.nodes[k].lag_until = 0;
        w->chain.nodes[k].lie_until = 0;
    }
    warp_end(w);
    w->away_until = 0;
    for (int i = 0; i < w->plan.relays; i++) {
        struct relay *r = &w->relays[i];
        if (r->process->paused)
            process_resume(w, r->process);
        if (!r->process->alive)
            relay_start(w, r);
    }
}
