/* The wait after a failover that lost commits.
 *
 * What a lost commit has sent may be in no block and in no pool that is asked. Its hash is
 * lost too, so only its era shows that it is dead: no era is longer than the bound that
 * the table has, and none begins above the highest block that was known when it was signed. So all
 * final blocks up to that height and one such era more are read before anything is admitted, signed
 * or ended. What they hold of the account is adopted (reconcile.c); what they do not hold can never
 * get in.
 *
 * The height: a final block that was made after the claim which found the loss is above every block
 * that was known before, whatever node showed it. The best block that any relay has heard of stands
 * in for it on a chain that tells no time, and for clocks that differ. The claim's time is the
 * database's, unless its clock is proven to be ahead (clocks.c).
 *
 *   loaded --follow--> a final block made after the claim --HEARD--> until --read up to it--> probe
 *
 * The table has the claim's time and the height, so a successor goes on with the same wait. */
#include "base/heard.h"
#include "effects.h"
#include "phase.h"
#include "reconcile.h"

/* A clock that was set back since then had been ahead: the loss is no later than now. */
static int64_t since(const struct manager_event *ev)
{
    int64_t since_ms = ev->snapshot.lost_since_ms, now_ms = ev->snapshot.database_ms;
    return now_ms && since_ms > now_ms ? now_ms : since_ms;
}

void manager__era_wait_loaded(struct manager *m, const struct manager_event *ev)
{
    PRE(ev->snapshot.reconcile);
    bool known = ev->snapshot.lost_until >= 0;
    bool forgotten = PLANTED(WAIT_FORGOTTEN) && known;
    m->era_wait =
        (struct era_wait){.on = !m->config.lost_search && !forgotten,
                          .immortal = ev->snapshot.immortal,
                          .since_ms = since(ev),
                          .until = known ? (uint64_t)ev->snapshot.lost_until : UINT64_MAX};
    if (m->era_wait.immortal)
        manager__alert(m,
                       "commits may be lost, and this account's bytes may have no era: what they "
                       "have sent can take effect beside a new attempt at any time");
}

static bool waiting(const struct manager *m)
{
    return m->era_wait.on &&
           (m->era_wait.until == UINT64_MAX || m->era_wait.read < m->era_wait.until);
}

uint64_t manager__era_wait_left(const struct manager *m)
{
    bool known = waiting(m) && m->era_wait.until != UINT64_MAX;
    return known ? m->era_wait.until - m->era_wait.read : 0;
}

int64_t manager__era_wait_read(const struct manager *m)
{
    return m->era_wait.on ? (int64_t)m->era_wait.read : -1;
}

static uint64_t highest_known(const struct manager *m, const struct manager_block *block)
{
    if (PLANTED(WAIT_BEHIND))
        return m->load.max_submitted;
    uint64_t heights[] = {block->number, m->chain.finalized, m->chain.best, m->chain.best_known,
                          m->load.max_submitted};
    uint64_t highest = 0;
    for (size_t i = 0; i < ARRAY_LEN(heights); i++)
        highest = heights[i] > highest ? heights[i] : highest;
    return highest;
}

/* Once for each leader, when it knows how many blocks are left. */
static void alert_wait(struct manager *m)
{
    uint64_t left = manager__era_wait_left(m);
    if (m->era_wait.told || !left || m->final.processed < m->chain.finalized)
        return;
    m->era_wait.told = true;
    manager__alert(m,
                   "commits may be lost: nothing is admitted, signed or ended before block %llu is "
                   "final and read, which is %llu blocks from now",
                   (unsigned long long)m->era_wait.until, (unsigned long long)left);
}

void manager__era_wait_block(struct manager *m, const struct manager_block *block)
{
    struct era_wait *e = &m->era_wait;
    PRE(block->number == m->final.processed);
    if (block->number > e->read)
        e->read = block->number;
    alert_wait(m);
    manager__clocks_block(m, block);
    if (!e->on || e->until != UINT64_MAX || e->found)
        return;
    bool newest = block->number >= m->chain.finalized;
    int64_t ahead = newest ? manager__clock_ahead_ms(m) : 0; /* whose witness is the newest block */
    bool later = block->time_ms > 0 && block->time_ms + ahead > e->since_ms;
    bool timeless = block->time_ms < 0 && newest;
    if (!later && !timeless && !PLANTED(WAIT_BEHIND))
        return;
    uint64_t heard = highest_known(m, block);
    if (!heard_is_near(block->number, heard))
        return; /* the height is stored for good, so it must not be one that a node invented */
    e->heard = heard;
    e->found = e->wanted = true;
}

void manager__heard_stored(struct manager *m, const struct manager_event *ev)
{
    PRE(m->phase >= MANAGER_CHAIN_WAIT);
    m->era_wait.until = ev->stored.until;
    alert_wait(m);
}

void manager__era_wait_pump(struct manager *m)
{
    struct era_wait_view v = {.loaded = m->phase >= MANAGER_CHAIN_WAIT,
                              .unprobed = m->phase == MANAGER_CHAIN_WAIT,
                              .in_wait = m->phase == MANAGER_ERA_WAIT,
                              .waiting = waiting(m),
                              .unstored = m->era_wait.wanted,
                              .storing = m->writes.out[MANAGER_FX_STORE_HEARD]};
    switch (era_wait_next(&v)) {
    case ERA_WAIT_KEEP:
        return;
    case ERA_WAIT_BEGIN:
        manager__phase(m, MANAGER_ERA_WAIT);
        return;
    case ERA_WAIT_END:
        manager__phase(m, MANAGER_CHAIN_WAIT);
        manager__reconcile_patience(m); /* what is not final yet is waited for from here on */
        manager__alert(m, "the wait after lost commits is over: every block up to %llu was read",
                       (unsigned long long)m->era_wait.read);
        return;
    case ERA_WAIT_STORE:
        m->era_wait.wanted = false;
        manager__write(m, MANAGER_FX_STORE_HEARD)->number = m->era_wait.heard;
        return;
    }
    UNREACHABLE();
}
