/* Invariants over the whole state, for tests and the simulator: too slow for every step of a product. */
#include "manager_internal.h"

void manager_check(const struct manager *m)
{
    INVARIANT(!m->phases.illegal_ever &&
              !m->line.moves.illegal_ever); /* of a row or of the manager: see phase_table.c */
    line_check(&m->line);
    INVARIANT(m->send.window >= 1 && m->send.window <= m->config.window_max);
    INVARIANT(!m->admit.count || m->writes.out[MANAGER_WRITE_ADMIT]);
    INVARIANT(m->phase != MANAGER_IDLE || m->line.rows == 0);
}
