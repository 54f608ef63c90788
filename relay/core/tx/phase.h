/* The phases of the manager, and the way back after a move that no table has. */
#ifndef RELAY_CORE_TX_PHASE_H
#define RELAY_CORE_TX_PHASE_H

#include "state.h"

void manager__phase(struct manager *m, enum manager_phase to);
/* since the last recovery a move was made that no table has */
static inline bool manager__illegal(const struct manager *m)
{
    return (m->phases.illegal | m->line.moves.illegal) != 0;
}
/* After a move that no table has: alerts, drops what this step decided, and loads everything
 * again. */
void manager__recover(struct manager *m);

#endif
