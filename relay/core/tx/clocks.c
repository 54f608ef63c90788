/* Is the database's clock ahead?
 *
 * After a failover the clock is another server's. A wrong one spoils two things that are counted by
 * it: which blocks were made after the loss was found (era_wait.c), and which rows were there when
 * a block was made (leader_adopt). Three clocks are known: the database's, this relay's own, and
 * the chain's, which blocks tell. The database's is believed unless the other two agree that it is
 * ahead by more than clocks may differ.
 *
 * A relay whose own clock is behind by more than its newest blocks are old sees blocks of its
 * future. Then it is no witness. One whose clock is behind by as much as its node is cannot know;
 * both would have to be wrong at once, by the same time. */
#include "reconcile.h"

enum {
    CLOCKS_MS = 60000, /* by which clocks may differ, as in leader_adopt */
    BLOCK_MS = 1000,   /* by which an author's may be ahead of a relay's that is right */
};

void manager__clocks_loaded(struct manager *m, const struct manager_event *ev)
{
    m->clocks = (struct clocks){.ahead_ms = ev->snapshot.database_ms - ev->snapshot.here_ms,
                                .here_ms = ev->snapshot.here_ms,
                                .at = m->now};
}

void manager__clocks_block(struct manager *m, const struct manager_block *block)
{
    int64_t now = m->clocks.here_ms + (int64_t)(m->now - m->clocks.at);
    m->clocks.late = m->clocks.late || block->time_ms > now + BLOCK_MS;
}

int64_t manager__clock_ahead_ms(const struct manager *m)
{
    bool ahead = m->clocks.ahead_ms > CLOCKS_MS && !m->clocks.late;
    return ahead ? m->clocks.ahead_ms : 0;
}
