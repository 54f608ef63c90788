#include "base/tx.h"

#include <string.h>

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

/* ---- trace context ---- */

/* Lower-case hexadecimal digits, `count` of them; *ret_zero: all are 0. */
static bool are_digits(const char *at, size_t count, bool *ret_zero)
{
    *ret_zero = strspn(at, "0") >= count;
    return strspn(at, "0123456789abcdef") >= count;
}

bool tx_trace_is_valid(const char *text)
{
    enum { VERSION = 0, TRACE = 3, PARENT = 36, FLAGS = 53 };
    bool any, no_trace, no_parent;
    return strlen(text) == TX_TRACE_SIZE - 1 && text[TRACE - 1] == '-' && text[PARENT - 1] == '-' &&
           text[FLAGS - 1] == '-' && are_digits(text + VERSION, 2, &any) &&
           are_digits(text + TRACE, 32, &no_trace) && are_digits(text + PARENT, 16, &no_parent) &&
           are_digits(text + FLAGS, 2, &any) && strncmp(text, "ff", 2) != 0 && !no_trace &&
           !no_parent;
}
