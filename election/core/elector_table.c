/* The table of transitions. elector_dump prints it as a mermaid diagram, and every change of a
 * state is checked against it. */
#include "base/buf.h"
#include "base/check.h"
#include "base/sm.h"
#include "elector_internal.h"

#define STATE_COUNT (ELECTOR_RELEASE_WAIT + 1)

static const char *const names[STATE_COUNT] = {
    [ELECTOR_FOLLOWER] = "FOLLOWER",     [ELECTOR_LOCK_WAIT] = "LOCK_WAIT",
    [ELECTOR_CLAIM_WAIT] = "CLAIM_WAIT", [ELECTOR_EVICT_WAIT] = "EVICT_WAIT",
    [ELECTOR_LEADER] = "LEADER",         [ELECTOR_RELEASE_WAIT] = "RELEASE_WAIT",
};

static const struct sm_move moves[] = {
    {ELECTOR_FOLLOWER, ELECTOR_LOCK_WAIT, "bid"},
    {ELECTOR_FOLLOWER, ELECTOR_CLAIM_WAIT, "bid without use_lock"},
    {ELECTOR_FOLLOWER, ELECTOR_EVICT_WAIT,
     "its lock is taken and its claim has expired: its holder may hang"},
    {ELECTOR_FOLLOWER, ELECTOR_RELEASE_WAIT, "the store is back and a claim of ours remains"},
    {ELECTOR_LOCK_WAIT, ELECTOR_CLAIM_WAIT, "got the lock"},
    {ELECTOR_LOCK_WAIT, ELECTOR_FOLLOWER, "taken, failed or no longer wanted"},
    {ELECTOR_EVICT_WAIT, ELECTOR_LOCK_WAIT, "the hung session was ended"},
    {ELECTOR_EVICT_WAIT, ELECTOR_FOLLOWER, "its holder is healthy, failed or no longer wanted"},
    {ELECTOR_CLAIM_WAIT, ELECTOR_LEADER, "granted"},
    {ELECTOR_CLAIM_WAIT, ELECTOR_RELEASE_WAIT, "granted too late, or no longer wanted"},
    {ELECTOR_CLAIM_WAIT, ELECTOR_FOLLOWER, "denied or failed"},
    {ELECTOR_LEADER, ELECTOR_CLAIM_WAIT, "the outcome of a write is unknown"},
    {ELECTOR_LEADER, ELECTOR_RELEASE_WAIT, "renewal refused or late, or drain"},
    {ELECTOR_LEADER, ELECTOR_FOLLOWER, "control session lost, or a write refused as stale"},
    {ELECTOR_RELEASE_WAIT, ELECTOR_FOLLOWER, "released"},
};

static const struct sm table = {names, STATE_COUNT, ELECTOR_FOLLOWER, moves, ARRAY_LEN(moves)};

void elector__move(struct elector *e, struct elector_account *a, enum elector_state to)
{
    enum elector_state from = a->state;
    if (from == to)
        return;
    a->bug |= !sm_take(&table, &e->trace, from, to); /* what follows presumes the new state */
    a->state = to;
    e->busy += (size_t)(from == ELECTOR_FOLLOWER);
    e->busy -= (size_t)(to == ELECTOR_FOLLOWER);
    e->leaders += (size_t)(to == ELECTOR_LEADER);
    e->leaders -= (size_t)(from == ELECTOR_LEADER);
    e->bids += (size_t)(to == ELECTOR_LOCK_WAIT || to == ELECTOR_CLAIM_WAIT);
    e->bids -= (size_t)(from == ELECTOR_LOCK_WAIT || from == ELECTOR_CLAIM_WAIT);
}

void elector__recover(struct elector *e, uint64_t now)
{
    e->bug[0] = 0;
    if (!sm_bug(&table, &e->trace, e->bug))
        return;
    for (size_t i = 0; i < e->count; i++) {
        struct elector_account *a = &e->accounts[i];
        if (a->bug)
            elector__give_up(e, a, now);
        a->bug = false;
    }
    e->trace.illegal = 0;
}

const char *elector_bug(const struct elector *e)
{
    return e->bug[0] ? e->bug : NULL;
}

void elector_check(const struct elector *e)
{
    sm_check(&e->trace);
}

uint32_t elector_moved(const struct elector *e)
{
    return (uint32_t)e->trace.made;
}

void elector_moves_missing(uint32_t moved, struct buf *out)
{
    _Static_assert(ARRAY_LEN(moves) <= 32, "one bit each in elector_moved");
    sm_missing(&table, moved, out);
}

const char *elector_state_name(enum elector_state state)
{
    return sm_name(&table, state);
}

void elector_dump(struct buf *out)
{
    sm_dump(&table, out);
}
