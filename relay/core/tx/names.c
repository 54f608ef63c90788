/* What operators read in place of the manager's numbers: one table beside each enum of
 * manager.h. */
#include <string.h>

#include "base/check.h"
#include "relay/core/tx/manager.h"

static const char *const suspensions[] = {
    [MANAGER_SUSPENSION_NONE] = "",
    [MANAGER_SUSPENSION_PAYMENT] = "payment",
    [MANAGER_SUSPENSION_REAPED] = "reaped",
    [MANAGER_SUSPENSION_TRANSACTION_VERSION] = "transaction_version",
    [MANAGER_SUSPENSION_SIGNING] = "signing",
};

static const char *const writes[] = {
#define X(effect, name) [effect] = name,
    MANAGER_WRITES(X)
#undef X
        [MANAGER_FX_LOAD] = "load",
};

const char *manager_suspension_name(enum manager_suspension suspension)
{
    PRE(suspension < ARRAY_LEN(suspensions));
    return suspensions[suspension];
}

enum manager_suspension manager_suspension_of(const char *name)
{
    for (size_t i = 0; name && i < ARRAY_LEN(suspensions); i++)
        if (!strcmp(name, suspensions[i]))
            return (enum manager_suspension)i;
    return MANAGER_SUSPENSION_NONE;
}

const char *manager_write_name(enum manager_effect_type write)
{
    PRE(write < ARRAY_LEN(writes));
    return writes[write];
}
