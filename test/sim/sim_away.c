/* Times without a relay: the machines are restarted, or the database is brought back from a copy
 * and with it the relays, which remember nothing of what that lacks. The chain goes on. */
#include "sim.h"

static void leave(struct world *w)
{
    uint64_t us = chance(w, 50) ? between(w, 1, 20) * w->plan.block_us
                                : between(w, 20, 100) * w->plan.block_us;
    w->away_until = w->now + us;
    w->stats.away++;
    note(w, "no relay for %llu s", (unsigned long long)(us / SECOND));
    for (int i = 0; i < w->plan.relays; i++) {
        struct relay *r = &w->relays[i];
        if (!r->process->alive)
            continue;
        relay_kill(w, r, chance(w, 25));
        relay_start_later(w, r, us + between(w, 1, 5 * SECOND));
    }
}

static void restore(struct world *w, struct event *e)
{
    (void)e;
    leave(w);
    if (w->db.standby_behind)
        db_failover(w, true);
}

static void begin(struct world *w, struct event *e)
{
    (void)e;
    if (w->now >= w->plan.faults_end)
        return;
    later(w, between(w, 20 * SECOND, 120 * SECOND), "no relay", begin);
    if (w->now < w->away_until)
        return;
    if (!w->plan.lossy || w->db.standby_behind || !w->db.up) {
        leave(w);
        return;
    }
    db_fall_behind(w);
    later(w, between(w, 5 * MS, w->plan.behind_us), "the database comes back from a copy", restore);
}

void away_start(struct world *w)
{
    if (has(w, FEATURE_AWAY))
        later(w, between(w, 10 * SECOND, 60 * SECOND), "no relay", begin);
}
