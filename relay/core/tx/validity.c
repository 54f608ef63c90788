/* For how long bytes can be included: eras, deadlines, runtimes. */
#include <stdio.h>

#include "base/heard.h"
#include "effects.h"
#include "ends.h"
#include "sign.h"

bool manager__guarded(const struct manager *m, uint32_t guard, char *reason, size_t size)
{
    if (!guard || guard == m->chain.spec_version)
        return false;
    snprintf(reason, size, "it may be signed under runtime spec version %u only; the chain's is %u",
             guard, m->chain.spec_version);
    return true;
}

uint64_t manager__plausible_best(const struct manager *m)
{
    if (heard_is_near(m->final.read, m->chain.best) || PLANTED(HEIGHT_TRUSTED))
        return m->chain.best;
    return heard_is_near(m->final.read, m->chain.finalized) ? m->chain.finalized : m->final.read;
}

/* A pool keeps bytes without an era for ever. Where it has lost the first of ours and later ones
 * fill it, only what pays more gets in, and no tip may be allowed. So without an era is signed only
 * what no other can be missing below: eras end all other waits. */
uint32_t manager__period(const struct manager *m, uint64_t nonce)
{
    bool first = m->final.known && nonce <= m->final.nonce;
    first = first || PLANTED(LATER_IMMORTAL);
    first = first || PLANTED(HEAD_KEPT_OUT);
    if (first || PLANTED(BAN_KEPT))
        return m->config.era_period;
    return manager_era_longest(m->config.era_period);
}

static uint32_t fitting(const struct manager *m, uint64_t deadline_block)
{
    uint32_t longest = manager_era_longest(m->config.era_period);
    uint32_t period = manager_era_fit(longest, m->chain.finalized, deadline_block);
    return m->chain.finalized + period > m->chain.best + 2 ? period : 0;
}

/* The longest era (in blocks, at most the configured one) that ends with the block of the deadline,
 * and that is not over before it can be used. The chain itself then keeps the deadline. */
uint32_t manager__era_period(const struct manager *m, uint64_t nonce, uint64_t deadline_block)
{
    bool any = deadline_block == UINT64_MAX || PLANTED(DEADLINE_LONG);
    return any ? manager__period(m, nonce) : fitting(m, deadline_block);
}

bool manager__era_late(const struct manager *m, uint64_t deadline_block)
{
    return deadline_block != UINT64_MAX &&
           manager__plausible_best(m) + ERA_PERIOD_MIN > deadline_block + 1 &&
           !PLANTED(DEADLINE_LONG);
}

bool manager__era_waits(const struct manager *m, uint64_t deadline_block)
{
    return deadline_block != UINT64_MAX && !manager__era_late(m, deadline_block) &&
           !fitting(m, deadline_block) && !PLANTED(DEADLINE_LONG);
}

bool manager__live(const struct manager *m, const struct row *row)
{
    return row->was_out &&
           (row->out_death == INT64_MAX || manager__searched(m) < (uint64_t)row->out_death);
}

/* Bytes whose era begins at a block that does not exist would never be included and never die, and
 * transactions would end before the block of their deadline. */
static bool is_unread(const struct manager *m)
{
    return m->final.following &&
           (m->final.processed > m->final.read ||
            !heard_is_near(m->final.read, m->chain.finalized)) &&
           !PLANTED(HEIGHT_TRUSTED);
}

/* An era is born at a finalized block: while finality lags by a whole period, new bytes would be
 * dead at birth. They are not signed until it has caught up. */
bool manager__unborn(const struct manager *m, uint64_t nonce)
{
    uint32_t period = manager__period(m, nonce);
    return is_unread(m) || (period && m->chain.finalized + period <= m->chain.best + 2);
}

bool manager__stillborn(struct manager *m)
{
    if (is_unread(m)) {
        if (m->final.read && !heard_is_near(m->final.read, m->chain.finalized))
            manager__alert_once(m, ALERT_FINALITY,
                                "block %llu is said to be final, and the last one that was read is "
                                "%llu: nothing is signed before that one",
                                (unsigned long long)m->chain.finalized,
                                (unsigned long long)m->final.read);
        return true;
    }
    if (!manager__unborn(m, UINT64_MAX)) {
        manager__alert_over(m, ALERT_FINALITY);
        return false;
    }
    manager__alert_once(
        m, ALERT_FINALITY,
        "finality lags: block %llu is finalized, %llu is best, and an era is %u blocks",
        (unsigned long long)m->chain.finalized, (unsigned long long)m->chain.best,
        manager_era_longest(m->config.era_period));
    return manager__unborn(m, m->final.nonce);
}

bool manager__dead(const struct manager *m, const struct row *row)
{
    return PLANTED(LIFE_EARLY) || !manager__live(m, row);
}

bool manager_wants_runtime(const struct manager *m)
{
    const struct row *row;
    for (uint64_t at = 0; m->line.presigned_rows && (row = line_first(&m->line, SET_LIVE, at));
         at = row->nonce + 1)
        if (manager__presigned(row) && row->spec_version < m->chain.spec_version)
            return true;
    return false;
}
