#include "base/sm.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/check.h"

int sm_find(const struct sm *sm, unsigned from, unsigned to)
{
    for (size_t i = 0; i < sm->count; i++)
        if (sm->moves[i].from == from && sm->moves[i].to == to)
            return (int)i;
    return -1;
}

bool sm_take(const struct sm *sm, struct sm_trace *trace, unsigned from, unsigned to)
{
    int i = sm_find(sm, from, to);
    if (i >= 0) {
        trace->made |= UINT64_C(1) << i;
        return true;
    }
    trace->illegal_ever++;
    if (!trace->illegal++) {
        trace->from = (uint8_t)from;
        trace->to = (uint8_t)to;
    }
    return false;
}

bool sm_bug(const struct sm *sm, struct sm_trace *trace, char ret_text[SM_BUG_MAX])
{
    if (!trace->illegal)
        return false;
    trace->illegal = 0;
    snprintf(ret_text, SM_BUG_MAX, "%s -> %s is not in the table of moves",
             sm_name(sm, trace->from), sm_name(sm, trace->to));
    return true;
}

void sm_check(const struct sm_trace *trace)
{
    INVARIANT(!trace->illegal_ever);
}

const char *sm_name(const struct sm *sm, unsigned state)
{
    PRE(state < sm->states || state == SM_OUTSIDE);
    return state == SM_OUTSIDE ? "[*]" : sm->names[state];
}

static void put(const struct sm *sm, const struct sm_move *move, const char *indent,
                struct buf *out)
{
    buf_printf(out, "%s%s --> %s: %s\n", indent, sm_name(sm, move->from), sm_name(sm, move->to),
               move->why);
}

void sm_dump(const struct sm *sm, struct buf *out)
{
    buf_puts(out, "stateDiagram-v2\n");
    if (sm->initial != SM_OUTSIDE)
        buf_printf(out, "    [*] --> %s\n", sm_name(sm, sm->initial));
    for (size_t i = 0; i < sm->count; i++)
        put(sm, &sm->moves[i], "    ", out);
}

void sm_missing(const struct sm *sm, uint64_t made, struct buf *out)
{
    PRE(sm->count <= SM_MOVES_MAX);
    for (size_t i = 0; i < sm->count; i++)
        if (!(made >> i & 1))
            put(sm, &sm->moves[i], "", out);
}
