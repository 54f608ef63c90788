/* What operators read in place of the manager's numbers: one table beside each enum of manager.h. */
#include <string.h>

#include "base/check.h"
#include "relay/core/tx/manager.h"

static const char *const phases[] = {
    [MANAGER_IDLE] = "idle",
    [MANAGER_LOAD_WAIT] = "load_wait",
    [MANAGER_CHAIN_WAIT] = "chain_wait",
    [MANAGER_PROBE_POOL_WAIT] = "probe_pool_wait",
    [MANAGER_PROBE_NONCE_WAIT] = "probe_nonce_wait",
    [MANAGER_LEADING] = "leading",
};

static const char *const holds[] = {
    [MANAGER_HOLD_NONE] = "",
    [MANAGER_HOLD_PAYMENT] = "payment",
    [MANAGER_HOLD_REAPED] = "reaped",
    [MANAGER_HOLD_TRANSACTION_VERSION] = "transaction_version",
};

static const char *const writes[] = {
    [MANAGER_WRITE_ADMIT] = "admit",   [MANAGER_WRITE_RESIGN] = "resign",   [MANAGER_WRITE_FILL] = "fill",
    [MANAGER_WRITE_STATES] = "states", [MANAGER_WRITE_FINISH] = "finish",   [MANAGER_WRITE_REJECT] = "reject",
    [MANAGER_WRITE_NONCE] = "nonce",   [MANAGER_WRITE_REQUEUE] = "requeue", [MANAGER_WRITE_PAUSE] = "pause",
    [MANAGER_WRITE_ADOPT] = "adopt",   [MANAGER_WRITE_NOTE] = "note",       [MANAGER_WRITE_LOAD] = "load",
};

const char *manager_phase_name(enum manager_phase phase)
{
    PRE(phase < ARRAY_LEN(phases));
    return phases[phase];
}

const char *manager_hold_name(enum manager_hold hold)
{
    PRE(hold < ARRAY_LEN(holds));
    return holds[hold];
}

enum manager_hold manager_hold_of(const char *name)
{
    for (size_t i = 0; name && i < ARRAY_LEN(holds); i++)
        if (!strcmp(name, holds[i]))
            return (enum manager_hold)i;
    return MANAGER_HOLD_NONE;
}

const char *manager_write_name(enum manager_write write)
{
    PRE(write < ARRAY_LEN(writes));
    return writes[write];
}
