/* What a seed may have beside the plain life of transactions. Drawn from a generator of its own:
 * a seed whose features are switched off is the seed that it was without them. */
#include <string.h>

#include "sim.h"

static const char *const names[] = {
#define X(NAME, name) name,
    FEATURE_TABLE(X)
#undef X
};

int feature_number(const char *name)
{
    for (int i = 0; i < FEATURE_COUNT; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

const char *feature_name(int number)
{
    return number < FEATURE_COUNT ? names[number] : NULL;
}

bool has(const struct world *w, enum feature f)
{
    return w->plan.features >> f & 1;
}

static bool odds(struct rng *r, unsigned percent)
{
    return rng_below(r, 100) < percent;
}

static struct policy draw_policy(struct rng *r)
{
    struct policy p = {.tip_start = odds(r, 50) ? rng_between(r, 0, 20) : 0,
                       .tip_step = rng_between(r, 0, 6),
                       .tip_step_percent = (uint32_t[]){0, 10, 50, 200}[rng_below(r, 4)],
                       .tip_cap = odds(r, 70) ? (int64_t)rng_between(r, 5, 300) : -1};
    uint32_t after = odds(r, 70) ? (uint32_t)rng_between(r, 1, 8) : 0;
    p.tip_after_blocks = p.tip_cap >= 0 ? after : 0; /* a ladder needs a cap */
    int64_t far = (int64_t)(p.tip_start + 30 * (p.tip_step ? p.tip_step : 1));
    if (p.tip_cap > far && p.tip_step_percent < 50)
        p.tip_cap = far; /* a nonce is not signed for hundreds of times */
    if (p.tip_cap >= 0 && (int64_t)p.tip_start > p.tip_cap)
        p.tip_start = (uint64_t)p.tip_cap; /* account_policy refuses more */
    p.skip_after_blocks = (uint32_t)rng_between(r, 4, 24);
    p.requeue_usurped = odds(r, 80);
    return p;
}

static void policies(struct world *w, struct rng *r)
{
    struct plan *p = &w->plan;
    for (int a = 0; a < ACCOUNTS; a++) {
        struct policy x = draw_policy(r), none = {.tip_cap = -1};
        bool skips = odds(r, 80);
        if (!has(w, FEATURE_TIPS))
            p->policy[a] = none;
        else
            p->policy[a] = x;
        p->policy[a].skip_after_blocks = has(w, FEATURE_SKIP) && skips ? x.skip_after_blocks : 0;
        p->policy[a].requeue_usurped = has(w, FEATURE_REQUEUE) && x.requeue_usurped;
    }
}

/* From a generator of its own: the others are as they were without it. */
static void draw_signed(struct world *w)
{
    struct rng rng = {.state = w->seed * 0x9e3779b97f4a7c15u + 11}, *r = &rng;
    if (odds(r, 35))
        w->plan.features |= 1u << FEATURE_SIGNED;
    for (int a = 0; a < ACCOUNTS; a++)
        w->plan.keyless[a] = odds(r, 40);
}

/* How accounts move between the relays. From a generator of its own, too. */
static void draw_placement(struct world *w)
{
    struct rng rng = {.state = w->seed * 0x9e3779b97f4a7c15u + 13}, *r = &rng;
    w->plan.ring = odds(r, 35);
    bool rotates = odds(r, 20);
    uint32_t blocks = (uint32_t)rng_between(r, 4, 20);
    w->plan.rotate_blocks = rotates && !w->plan.ring ? blocks : 0;
    w->plan.features |= (uint32_t)(w->plan.ring || w->plan.rotate_blocks) << FEATURE_PLACEMENT;
}

/* Whether an era is waited for after a failover: mostly where commits are lost. */
static void draw_lost(struct world *w)
{
    struct rng rng = {.state = w->seed * 0x9e3779b97f4a7c15u + 17}, *r = &rng;
    w->plan.lost_search = odds(r, w->plan.lossy ? 20 : 60);
    w->plan.dies_between = odds(r, 60);
    w->plan.behind_us = odds(r, 30) ? 40 * SECOND : 2 * SECOND;
    w->plan.limit += 6 * (w->plan.era ? w->plan.era : 64) * w->plan.block_us;
}

/* A failover to a server whose clock is ahead by more than clocks may differ: where it loses
 * commits, which are looked for by their times. */
static void draw_clock(struct world *w)
{
    struct rng rng = {.state = w->seed * 0x9e3779b97f4a7c15u + 47}, *r = &rng;
    bool steps = odds(r, 30) && w->plan.lossy;
    uint64_t seconds = rng_between(r, 61, 900);
    w->plan.step_us = steps ? (int64_t)(seconds * SECOND) : 0;
}

/* Answers that prove nothing. From a generator of its own. */
static void draw_answers(struct world *w)
{
    struct rng rng = {.state = w->seed * 0x9e3779b97f4a7c15u + 19}, *r = &rng;
    w->plan.answer_percent = (uint32_t[]){2, 5, 15, 40}[rng_below(r, 4)];
    w->plan.features |= (uint32_t)odds(r, 30) << FEATURE_ANSWERS;
}

static void draw_lies(struct world *w)
{
    struct rng rng = {.state = w->seed * 0x9e3779b97f4a7c15u + 23}, *r = &rng;
    if (odds(r, 25))
        w->plan.features |= 1u << FEATURE_LIES;
}

static void draw_nonces(struct world *w)
{
    struct rng rng = {.state = w->seed * 0x9e3779b97f4a7c15u + 41}, *r = &rng;
    if (odds(r, 20))
        w->plan.features |= 1u << FEATURE_NONCES;
}

static void draw_holders(struct world *w)
{
    struct rng rng = {.state = w->seed * 0x9e3779b97f4a7c15u + 29}, *r = &rng;
    if (odds(r, 25))
        w->plan.features |= 1u << FEATURE_HOLDERS;
}

/* Not where commits are lost: what is adopted then is found by its call. */
static void draw_unreadable(struct world *w)
{
    struct rng rng = {.state = w->seed * 0x9e3779b97f4a7c15u + 31}, *r = &rng;
    w->plan.features |= (uint32_t)(odds(r, 25) && !w->plan.lossy) << FEATURE_UNREADABLE;
}

/* Not where accounts are reaped: what a block that nobody has held is not known then. Nor where an
 * era is waited for after a failover, which such a block holds up for ever. */
static void draw_abilities(struct world *w)
{
    struct rng rng = {.state = w->seed * 0x9e3779b97f4a7c15u + 41}, *r = &rng;
    bool on = odds(r, 25) && !w->plan.lossy && w->plan.lost_search;
    bool reaps = w->plan.features & (1u << FEATURE_REAP | 1u << FEATURE_REAP_UNFINAL);
    w->plan.features |= (uint32_t)(on && !reaps) << FEATURE_ABILITIES;
}

/* Heights are the same for all nodes: what one lacks and another has is the real door's to find. */
bool unread(const struct world *w, uint64_t number)
{
    struct rng rng = {.state = w->seed * 0x9e3779b97f4a7c15u + number};
    return has(w, FEATURE_ABILITIES) && number && rng_below(&rng, 100) < 6;
}

static void draw_unsignable(struct world *w)
{
    struct rng rng = {.state = w->seed * 0x9e3779b97f4a7c15u + 37}, *r = &rng;
    w->plan.features |= (uint32_t)odds(r, 25) << FEATURE_UNSIGNABLE;
}

/* What waits for the end of an era or for a later block: a new life, bytes signed elsewhere that a
 * node refuses, tips that may not rise, blocks that no node has or whose runtime it has left (what
 * used a nonce there cannot be read, and the row at it may not be given up before its era ends),
 * the next runtime. On a chain that makes blocks on demand others bring one, now and then. */
static bool waits_for_blocks(const struct world *w)
{
    uint32_t waits = 1u << FEATURE_REAP | 1u << FEATURE_REAP_UNFINAL | 1u << FEATURE_SIGNED |
                     1u << FEATURE_ABILITIES | 1u << FEATURE_UNREADABLE | 1u << FEATURE_SKIP |
                     1u << FEATURE_UNSIGNABLE | 1u << FEATURE_TIPS;
    return w->plan.features & waits;
}

/* Not after lost commits, where each failover waits for an era, nor beside an endpoint that lacks
 * the blocks of others. */
static void draw_demand(struct world *w)
{
    struct rng rng = {.state = w->seed * 0x9e3779b97f4a7c15u + 53}, *r = &rng;
    bool on = odds(r, 60), rare = odds(r, 80);
    if (w->plan.lossy || (w->plan.features & 1u << FEATURE_STUCK) || (waits_for_blocks(w) && rare))
        on = false;
    w->plan.others_us = rng_between(r, 20, 90) * SECOND; /* see apply_absences */
    w->plan.features |= (uint32_t)on << FEATURE_DEMAND;
}

/* Where no relay is there for a while, faults go on for longer. */
static void draw_absences(struct world *w)
{
    struct rng rng = {.state = w->seed * 0x9e3779b97f4a7c15u + 59}, *r = &rng;
    w->plan.features |= (uint32_t)odds(r, 20) << FEATURE_REPEATS;
    w->plan.features |= (uint32_t)odds(r, 20) << FEATURE_WARP;
    w->plan.features |= (uint32_t)odds(r, 15) << FEATURE_AWAY;
    w->plan.features |= (uint32_t)(odds(r, 50) && w->plan.lossy) << FEATURE_ADOPTER;
    w->plan.features |= (uint32_t)odds(r, 15) << FEATURE_PACED;
    w->plan.pace_us = rng_between(r, w->plan.block_us / 20, w->plan.block_us / 6);
}

static void apply_absences(struct world *w)
{
    struct plan *p = &w->plan;
    if (!has(w, FEATURE_DEMAND) || !waits_for_blocks(w))
        p->others_us = 0;
    if (has(w, FEATURE_DEMAND)) {
        p->lost_search = true;
        p->finality_lag = 0;
        if (!p->ban_us) /* no block lifts a ban, as a node's clock does */
            p->ban_us = 40 * SECOND;
        p->limit += 12 * manager_era_longest(p->era) * p->others_us;
    }
    p->dies_adopting = has(w, FEATURE_ADOPTER);
    if (has(w, FEATURE_WARP))
        p->limit += 200 * SECOND;
    if (has(w, FEATURE_SIGNED)) /* for one without an era 1024 blocks are read */
        p->features &= ~(1u << FEATURE_PACED);
    if (!has(w, FEATURE_PACED))
        p->pace_us = 0;
    if (has(w, FEATURE_STUCK)) {
        p->faults_end += 150 * SECOND;
        p->limit += 150 * SECOND;
    }
    if (has(w, FEATURE_AWAY)) {
        p->faults_end += 150 * SECOND;
        p->limit += 150 * SECOND;
    }
}

static void draw_slow_work(struct world *w)
{
    struct rng rng = {.state = w->seed * 0x9e3779b97f4a7c15u + 61}, *r = &rng;
    w->plan.features |= (uint32_t)odds(r, 15) << FEATURE_SLOW_WORK;
    w->plan.work_delay_us = rng_between(r, 0, SECOND);
}

/* Not where heights are invented: who hears of them gives up. */
static void draw_stuck(struct world *w)
{
    struct rng rng = {.state = w->seed * 0x9e3779b97f4a7c15u + 67}, *r = &rng;
    uint32_t heights = 1u << FEATURE_LIES | 1u << FEATURE_WARP;
    bool on = odds(r, 15) && !(w->plan.features & heights);
    w->plan.features |= (uint32_t)on << FEATURE_STUCK;
}

static void draw_pool(struct world *w, int limit)
{
    struct rng rng = {.state = w->seed * 0x9e3779b97f4a7c15u + 43}, *r = &rng;
    /* A pool that later nonces fill has room for the first one when their eras end. */
    bool small = (odds(r, 25) && !has(w, FEATURE_DEMAND)) || limit >= 0;
    uint32_t size = (uint32_t)rng_between(r, 4, 24);
    w->plan.pool_limit = limit >= 0 ? (uint32_t)limit : small ? size : 60;
    if (small && !w->plan.era) /* what is behind the first one has eras all the same */
        w->plan.limit += 12 * manager_era_longest(0) * w->plan.block_us;
}

void plan_features(struct world *w, const struct options *o)
{
    struct plan *p = &w->plan;
    struct rng rng = {.state = w->seed * 0x9e3779b97f4a7c15u + 7}, *r = &rng;
    unsigned share = (unsigned)rng_between(r, 10, 80);
    for (int f = 0; f < FEATURE_SIGNED; f++)
        if (odds(r, share) || f == FEATURE_DUTIES)
            p->features |= 1u << f;
    draw_signed(w);
    draw_placement(w);
    draw_lost(w);
    draw_clock(w);
    draw_answers(w);
    draw_lies(w);
    draw_nonces(w);
    draw_holders(w);
    draw_unreadable(w);
    draw_unsignable(w);
    draw_abilities(w);
    draw_absences(w);
    draw_slow_work(w);
    draw_stuck(w);
    bool raised = p->features & (1u << FEATURE_TIPS | 1u << FEATURE_BUMPS |
                                 1u << FEATURE_FOREIGN_POOL | 1u << FEATURE_SIGNED);
    if (p->features >> FEATURE_REAP & 1 && !raised && !p->foreign)
        p->features |= 1u << FEATURE_REAP_UNFINAL; /* no draw: older seeds stay what they were */
    draw_demand(w);
    p->features = (p->features & o->features) | o->must;
    apply_absences(w);
    if (has(w, FEATURE_ANSWERS)) /* what may be out waits for the ends of eras */
        p->limit += 300 * SECOND + 12 * p->era * p->block_us;
    if (!has(w, FEATURE_PLACEMENT)) {
        p->ring = false;
        p->rotate_blocks = 0;
    }
    if (!p->era) /* what was signed for ever can be included in the next life too: nothing of it
                    ends */
        p->features &= ~(1u << FEATURE_REAP | 1u << FEATURE_SIGNED);
    if (has(w, FEATURE_SIGNED)) /* SQL refuses it once an account was reaped (0007) */
        p->features &= ~(1u << FEATURE_REAP | 1u << FEATURE_REAP_UNFINAL);
    for (int a = 0; a < ACCOUNTS; a++)
        p->keyless[a] = p->keyless[a] && has(w, FEATURE_SIGNED);
    if (has(w, FEATURE_SIGNED)) /* what is in the way of others is there to the end of its era */
        p->limit += 300 * SECOND + 12 * p->era * p->block_us;
    policies(w, r);
    draw_pool(w, o->pool);
    bool flat = odds(r, 50), price = odds(r, 60);
    uint32_t room = (uint32_t)rng_between(r, 1, 4);
    uint64_t last = odds(r, 70) ? rng_between(r, 1, 60) : rng_between(r, 60, 2000),
             seconds = rng_between(r, 40, 160);
    p->flat = has(w, FEATURE_TIPS) && flat;
    p->block_txs = has(w, FEATURE_SIZE) ? room : BLOCK_TXS;
    p->last_min_tip = has(w, FEATURE_TIPS) && price ? last : 0;
    p->price_us = p->last_min_tip ? seconds * SECOND : 0;
    if (has(w, FEATURE_SKIP) && p->last_min_tip && p->era &&
        p->era <= 16) { /* heads stay where they are */
        p->last_min_tip = 1000000;
        p->price_us = (24 + 3 * p->era + 40) * p->block_us * 3 / 2 + 60 * SECOND;
    }
    p->limit += 2 * p->price_us;
    if (has(w, FEATURE_REAP) || has(w, FEATURE_SIZE) || has(w, FEATURE_RETRIES) ||
        has(w, FEATURE_REQUEUE))
        p->limit += 300 * SECOND + 8 * p->era * p->block_us; /* what comes back begins anew */
}

uint64_t tip_limit(const struct world *w, int64_t id, int account)
{
    int64_t cap = w->plan.policy[account].tip_cap, own = id > 0 ? w->calls[id].max_tip : -1;
    uint64_t limit = cap >= 0 ? (uint64_t)cap : UINT64_MAX;
    return own >= 0 && (uint64_t)own < limit ? (uint64_t)own : limit;
}
