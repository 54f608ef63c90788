/* The phases of the manager as a table of moves, and what follows from a move that no table has.
 *
 * manager__phase is the only function that sets a phase. docs/design.md shows the diagram that the
 * table prints. From CHAIN_WAIT on the rows are in memory; only LEADING submits, signs and
 * admits. */
#include "base/buf.h"
#include "effects.h"
#include "load.h"
#include "phase.h"
#include "suspend.h"

enum { PHASES = MANAGER_LEADING + 1 };

static const char *const names[PHASES] = {
    [MANAGER_IDLE] = "IDLE",
    [MANAGER_LOAD_WAIT] = "LOAD_WAIT",
    [MANAGER_CHAIN_WAIT] = "CHAIN_WAIT",
    [MANAGER_ERA_WAIT] = "ERA_WAIT",
    [MANAGER_PROBE_POOL_WAIT] = "PROBE_POOL_WAIT",
    [MANAGER_PROBE_NONCE_WAIT] = "PROBE_NONCE_WAIT",
    [MANAGER_LEADING] = "LEADING",
};

static const struct sm_move moves[] = {
    {MANAGER_IDLE, MANAGER_LOAD_WAIT, "promoted"},
    {MANAGER_LOAD_WAIT, MANAGER_CHAIN_WAIT, "every pending row is loaded"},
    {MANAGER_CHAIN_WAIT, MANAGER_PROBE_POOL_WAIT, "a node is up and every final block was read"},
    {MANAGER_CHAIN_WAIT, MANAGER_ERA_WAIT, "commits may be lost"},
    {MANAGER_ERA_WAIT, MANAGER_CHAIN_WAIT, "every final block of the wait was read"},
    {MANAGER_PROBE_POOL_WAIT, MANAGER_PROBE_NONCE_WAIT, "the pool is known"},
    {MANAGER_PROBE_NONCE_WAIT, MANAGER_LEADING, "the account's nonce is known"},
    {MANAGER_PROBE_POOL_WAIT, MANAGER_CHAIN_WAIT, "no answer, or the node is down"},
    {MANAGER_PROBE_NONCE_WAIT, MANAGER_CHAIN_WAIT,
     "no answer, a nonce that cannot be, or the node is down"},

    {MANAGER_CHAIN_WAIT, MANAGER_LOAD_WAIT,
     "a write has no known outcome, or lost commits were adopted"},
    {MANAGER_ERA_WAIT, MANAGER_LOAD_WAIT, "a write has no known outcome, or the database was away"},
    {MANAGER_PROBE_POOL_WAIT, MANAGER_LOAD_WAIT,
     "a write has no known outcome, or the database was away"},
    {MANAGER_PROBE_NONCE_WAIT, MANAGER_LOAD_WAIT,
     "a write has no known outcome, or the database was away"},
    {MANAGER_LEADING, MANAGER_LOAD_WAIT, "a write has no known outcome, or the database was away"},

    {MANAGER_LOAD_WAIT, MANAGER_IDLE, "demoted"},
    {MANAGER_CHAIN_WAIT, MANAGER_IDLE, "demoted"},
    {MANAGER_ERA_WAIT, MANAGER_IDLE, "demoted"},
    {MANAGER_PROBE_POOL_WAIT, MANAGER_IDLE, "demoted"},
    {MANAGER_PROBE_NONCE_WAIT, MANAGER_IDLE, "demoted"},
    {MANAGER_LEADING, MANAGER_IDLE, "demoted"},
};

static const struct sm table = {names, PHASES, MANAGER_IDLE, moves, ARRAY_LEN(moves)};

void manager__phase(struct manager *m, enum manager_phase to)
{
    PRE(to <= MANAGER_LEADING);
    _Static_assert(ARRAY_LEN(moves) <= SM_MOVES_MAX, "a bit for each");
    if (m->phase == to)
        return;
    sm_take(&table, &m->phases, m->phase,
            to); /* also when it is illegal: what follows presumes the new phase */
    m->phase = to;
}

const char *manager_phase_name(enum manager_phase phase)
{
    PRE(phase <= MANAGER_LEADING);
    return names[phase];
}

void manager_phases_dump(struct buf *out)
{
    sm_dump(&table, out);
}

void manager_phases_missing(uint64_t made, struct buf *out)
{
    sm_missing(&table, made, out);
}

/* ---- a move that no table has ---- */

/* Nothing of this step reaches a node or the database: what was decided on a wrong state may be
 * wrong. The questions that it asks stay, since an answer to one that is no longer open is
 * dropped. */
static void drop_decisions(struct manager *m)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->fx.count; i++) {
        enum manager_effect_type type = m->fx.list[i].type;
        bool write = type < MANAGER_WRITE_COUNT;
        if (write)
            m->writes.out[type] = false;
        manager__suspension_unstored(m, type);
        if (type == MANAGER_FX_LOAD)
            manager__load_drop(m);
        if (!write && type != MANAGER_FX_LOAD && type != MANAGER_FX_SUBMIT &&
            type != MANAGER_FX_READY)
            m->fx.list[kept++] = m->fx.list[i];
    }
    m->fx.count = kept;
}

void manager__recover(struct manager *m)
{
    const struct sm_trace *p = &m->phases, *r = &m->line.moves;
    PRE(manager__illegal(m) && m->phase != MANAGER_IDLE);
    drop_decisions(m);
    if (p->illegal)
        manager__alert(m, "the manager went from %s to %s, which is a bug: reading the table again",
                       sm_name(&table, p->from), sm_name(&table, p->to));
    if (r->illegal)
        manager__alert(m, "nonce %llu went from %s to %s, which is a bug: reading the table again",
                       (unsigned long long)m->line.illegal_nonce,
                       row_state_name((enum row_state)r->from),
                       row_state_name((enum row_state)r->to));
    m->phases.illegal = m->line.moves.illegal = 0;
    manager__reload(m, false);
}
