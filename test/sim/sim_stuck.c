/* One relay's endpoint is usable and serves nothing: for a while no head comes, and submissions are
 * refused. A leader gives its accounts up then, if another relay can act. */
#include "sim_node.h"
#include "sim_relay.h"

enum { STUCK_US = 200000000, HAND_OVER_MS = 15000 };

bool is_stuck(const struct world *w, const struct relay *r)
{
    return !w->healing && w->now < r->stuck_until;
}

/* Rather one that leads. */
static void begins(struct world *w, struct event *e)
{
    struct relay *r = &w->relays[0];
    (void)e;
    for (int i = 0; i < w->plan.relays; i++)
        if (leads(&w->relays[i], 0))
            r = &w->relays[i];
    r->stuck_until = w->now + STUCK_US;
    w->stats.stuck++;
}

void stuck_start(struct world *w)
{
    if (has(w, FEATURE_STUCK))
        later(w, 20 * SECOND, "an endpoint is stuck", begins);
}

static bool acts(const struct world *w, const struct relay *r)
{
    return r->process->alive && !r->process->paused && !r->draining && store_is_up(r) && r->node &&
           r->wire.open && r->node->ready && w->now >= r->wire.stall_until;
}

/* Its node goes on, and is ahead of this one. */
static bool another_can(const struct world *w, const struct relay *r)
{
    for (int i = 0; i < w->plan.relays; i++) {
        const struct relay *q = &w->relays[i];
        if (q != r && acts(w, q) && !is_stuck(w, q) &&
            q->node->info.best_number > r->node->info.best_number + 2)
            return true;
    }
    return false;
}

/* The relay's patience doubles; what it lacks may begin anew within it. */
static uint64_t most_us(const struct relay *r)
{
    uint64_t ms = r->service->ability.patience_ms;
    return (2 * (ms ? ms : ABILITY_FIRST_MS) + HAND_OVER_MS) * MS;
}

void stuck_check(struct world *w)
{
    for (int account = 0; account < w->plan.accounts; account++) {
        const struct relay *r = leader_of(w, account);
        struct kept *k = &w->kept[account];
        int64_t epoch = db_account(w, account)->lead.epoch;
        bool lasts = r && acts(w, r) && is_stuck(w, r) && another_can(w, r);
        if (!lasts || k->epoch != epoch) {
            *k = (struct kept){epoch, w->now};
            continue;
        }
        HOLDS(w, w->now < k->since + most_us(r), "stuck",
              "r%d leads account %d for %llu s although its endpoint serves nothing and another "
              "relay's does",
              r->index, account, (unsigned long long)((w->now - k->since) / SECOND));
    }
}
