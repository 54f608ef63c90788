#include "relay/core/poll/turn.h"

#include "base/check.h"

bool turn_block(struct turn *t, uint64_t number, uint64_t head, uint32_t blocks)
{
    PRE(blocks > 0);
    if (!t->begun) {
        *t = (struct turn){.begun = number >= head, .from = number};
        return false;
    }
    if (number < t->from + blocks)
        return false;
    t->from = number;
    return true;
}
