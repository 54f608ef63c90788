/* The enumerations of schema/migrations/0001_init.sql as texts, and what Postgres raises. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "mem/mem.h"
#include "store/conn.h"

static const char *const states[] = {
    "signed",           "future",    "ready",   "broadcast", "in_block", "retracted",
    "finality_timeout", "finalized", "usurped", "dropped",   "invalid"};
static const char *const outcomes[] = {"ok",     "dispatch_error", "expired", "cancelled",
                                       "failed", "usurped",        "unknown"};
static const char *const attempt_outcomes[] = {"live",    "unknown", "included", "replaced",
                                               "dropped", "invalid", "usurped",  "superseded"};

const char *mem_state_name(enum mem_state state)
{
    return state == MEM_STATE_NONE ? NULL : states[state];
}

const char *mem_outcome_name(enum mem_outcome outcome)
{
    return outcome == MEM_OUTCOME_NONE ? NULL : outcomes[outcome];
}

const char *mem_attempt_outcome_name(enum mem_attempt_outcome outcome)
{
    return attempt_outcomes[outcome];
}

static int find(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; name && i < count; i++)
        if (!strcmp(names[i], name))
            return (int)i;
    return -1;
}

bool mem__state_of(const char *name, enum mem_state *ret)
{
    *ret = (enum mem_state)find(states, ARRAY_LEN(states), name);
    return *ret != MEM_STATE_NONE;
}

bool mem__outcome_of(const char *name, enum mem_outcome *ret)
{
    *ret = (enum mem_outcome)find(outcomes, ARRAY_LEN(outcomes), name);
    return *ret != MEM_OUTCOME_NONE;
}

bool mem__names_block(enum mem_state state)
{
    return state == MEM_IN_BLOCK || state == MEM_RETRACTED || state == MEM_FINALITY_TIMEOUT ||
           state == MEM_FINALIZED;
}

bool mem__amount(const char *text, u128 *ret)
{
    return text && u128_parse(text, ret);
}

int mem__fail(struct err *err, const char *sqlstate, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    err->code = conn_map_sqlstate(sqlstate);
    vsnprintf(err->text, sizeof(err->text), fmt, ap);
    va_end(ap);
    snprintf(err->sqlstate, sizeof(err->sqlstate), "%s", sqlstate);
    return err->code;
}
