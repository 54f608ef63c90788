#include "base/tx.h"

#include "base/check.h"

static const struct {
    const char *name;
    bool final;
} statuses[] = {
    [TX_FUTURE] = {"future", false},       [TX_READY] = {"ready", false},
    [TX_BROADCAST] = {"broadcast", false}, [TX_IN_BLOCK] = {"in_block", false},
    [TX_RETRACTED] = {"retracted", false}, [TX_FINALITY_TIMEOUT] = {"finality_timeout", true},
    [TX_FINALIZED] = {"finalized", true},  [TX_USURPED] = {"usurped", true},
    [TX_DROPPED] = {"dropped", true},      [TX_INVALID] = {"invalid", true},
};

const char *tx_status_name(enum tx_status s)
{
    PRE((size_t)s < ARRAY_LEN(statuses));
    return statuses[s].name;
}

bool tx_status_final(enum tx_status s)
{
    PRE((size_t)s < ARRAY_LEN(statuses));
    return statuses[s].final;
}
