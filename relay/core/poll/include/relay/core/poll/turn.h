/* The turn of an account that rotates over the relays after N finalized blocks: a pure core. A
 * leader that comes in reads old blocks first, those since its oldest transaction; they are none
 * of its turn. Counted as such they end it before anything was done, and so does the next
 * leader's: no leader gets past them. */
#ifndef RELAY_CORE_POLL_TURN_H
#define RELAY_CORE_POLL_TURN_H

#include <stdbool.h>
#include <stdint.h>

struct turn {
    bool begun;
    uint64_t from; /* the turn counts the blocks above this one */
};

/* A finalized block was followed, while `head` was the newest one. A new turn (zeroed) begins with
 * the first block that was the newest one: reading the old ones may take longer than a turn. true:
 * the turn of `blocks` blocks is over, and the next one begins. */
bool turn_block(struct turn *t, uint64_t number, uint64_t head, uint32_t blocks);

#endif
