/* Rules that the manager's adapters apply between two of its steps. They stand here because they
 * decide; the adapters call them. */
#include "base/plant.h"
#include <string.h>

#include "base/error.h"
#include "state.h"

uint32_t manager_era_fit(uint32_t period, uint64_t from, uint64_t last)
{
    while (period >= ERA_PERIOD_MIN && from + period > last + 1)
        period /= 2;
    return period >= ERA_PERIOD_MIN ? period : 0;
}

uint32_t manager_era_longest(uint32_t period)
{
    return period ? period : ERA_PERIOD_MAX; /* of a deadline, or of what is signed anew */
}

enum manager_attempt manager_attempt_of(const struct manager *m, const uint8_t current[32],
                                        const uint8_t hash[32])
{
    if (!memcmp(current, hash, 32))
        return MANAGER_ATTEMPT_CURRENT;
    return line_by_hash(&m->line, hash) ? MANAGER_ATTEMPT_FORMER : MANAGER_ATTEMPT_NEW;
}

uint32_t manager_era_anew(enum manager_attempt attempt, bool banned, uint32_t period)
{
    bool same = attempt == MANAGER_ATTEMPT_FORMER ||
                (attempt == MANAGER_ATTEMPT_CURRENT && banned && !PLANTED(BAN_KEPT));
    return same && !period ? ERA_PERIOD_MAX : period;
}

bool manager_write_doubtful(enum manager_effect_type write, int code)
{
    bool trusted = PLANTED(GHOST_WRITE) || PLANTED(UNKNOWN_FAILED);
    return code == ERR_DB_UNKNOWN_OUTCOME && write < MANAGER_WRITE_COUNT && !trusted;
}

bool manager_settled(const struct manager *m, size_t unstored, size_t unanswered)
{
    if (m->phase != MANAGER_LEADING)
        return true;
    return line_count(&m->line, ROW_UNSENT) == 0 && unstored == 0 && unanswered == 0;
}
