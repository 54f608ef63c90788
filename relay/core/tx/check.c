/* Invariants over the whole state, for tests and the simulator: too slow for every step of a
 * product. */
#include "state.h"

/* What a row's state says of the members that the manager writes. */
static void check_row(const struct row *row)
{
    INVARIANT(row->state != ROW_SUBMITTED || row->watched);
    INVARIANT(!row->stop || row->id);
    INVARIANT(row->state != ROW_FILL || row->reason != REASON_STOP || row->stop);
    INVARIANT(row->state != ROW_ENDING || row->end);
    INVARIANT(row->state != ROW_FINISHING || row->end);
}

void manager_check(const struct manager *m)
{
    INVARIANT(!m->phases.illegal_ever &&
              !m->line.moves.illegal_ever); /* of a row or of the manager: see phase_table.c */
    line_check(&m->line);
    for (uint64_t nonce = m->line.low; nonce < m->line.next; nonce++) {
        const struct row *row = line_at(&m->line, nonce);
        if (row)
            check_row(row);
    }
    INVARIANT(m->send.window >= 1 && m->send.window <= m->config.window_max);
    INVARIANT(!m->admit.count || m->writes.out[MANAGER_FX_ADMIT]);
    INVARIANT(m->phase != MANAGER_IDLE || m->line.rows == 0);
}
