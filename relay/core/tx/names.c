/* What operators read in place of the manager's numbers: one table beside each enum of
 * manager.h. */
#include <string.h>

#include "base/check.h"
#include "relay/core/tx/manager.h"

static const char *const phases[] = {
    [MANAGER_IDLE] = "idle",
    [MANAGER_LOAD_WAIT] = "load_wait",
    [MANAGER_CHAIN_WAIT] = "chain_wait",
    [MANAGER_ERA_WAIT] = "era_wait",
    [MANAGER_PROBE_POOL_WAIT] = "probe_pool_wait",
    [MANAGER_PROBE_NONCE_WAIT] = "probe_nonce_wait",
    [MANAGER_LEADING] = "leading",
};

static const char *const holds[] = {
    [MANAGER_SUSPENSION_NONE] = "",
    [MANAGER_SUSPENSION_PAYMENT] = "payment",
    [MANAGER_SUSPENSION_REAPED] = "reaped",
    [MANAGER_SUSPENSION_TRANSACTION_VERSION] = "transaction_version",
};

static const char *const writes[] = {
    [MANAGER_WRITE_ADMIT] = "admit",   [MANAGER_WRITE_RESIGN] = "resign",
    [MANAGER_WRITE_FILL] = "fill",     [MANAGER_WRITE_STATES] = "states",
    [MANAGER_WRITE_FINISH] = "finish", [MANAGER_WRITE_REJECT] = "reject",
    [MANAGER_WRITE_NONCE] = "nonce",   [MANAGER_WRITE_REQUEUE] = "requeue",
    [MANAGER_WRITE_PAUSE] = "pause",   [MANAGER_WRITE_ADOPT] = "adopt",
    [MANAGER_WRITE_HEARD] = "heard",   [MANAGER_WRITE_NOTE] = "note",
    [MANAGER_WRITE_LOAD] = "load",
};

const char *manager_phase_name(enum manager_phase phase)
{
    PRE(phase < ARRAY_LEN(phases));
    return phases[phase];
}

const char *manager_suspension_name(enum manager_suspension suspension)
{
    PRE(suspension < ARRAY_LEN(holds));
    return holds[suspension];
}

enum manager_suspension manager_suspension_of(const char *name)
{
    for (size_t i = 0; name && i < ARRAY_LEN(holds); i++)
        if (!strcmp(name, holds[i]))
            return (enum manager_suspension)i;
    return MANAGER_SUSPENSION_NONE;
}

const char *manager_write_name(enum manager_write write)
{
    PRE(write < ARRAY_LEN(writes));
    return writes[write];
}
