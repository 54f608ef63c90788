/* Blocks near the head that an endpoint names and does not have yet. */
#ifndef CHAIN_NODE_NODE_LATER_H
#define CHAIN_NODE_NODE_LATER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "loop/loop.h"

struct node;
struct slot;

struct later {
    struct loop_timer *timer;
    uint64_t in_vain_at; /* a block waited to the end and did not come; 0: never */
    uint64_t read_at;    /* a block was read whole on this connection; 0: none */
};

/* The endpoint says that it lacks this height, or its state. True: the slot waits, and is read
 * again. False: it is no block that may come, or it did not come. */
bool later_wait(struct slot *s);
/* The endpoint answers this height by an error of no known meaning, or by a state that does not
 * decode: the slot waits, and is read again. After a while it is given up: its errors then count as
 * a lack. */
void later_broken(struct slot *s, const struct err *why);
/* Another refusal of a height that waits so: true: it waits on. */
bool later_goes_on(struct slot *s, const struct err *why);
/* The next block to be reported, if it has waited so for `ms`: its `why` tells the error. */
const struct slot *later_is_broken(const struct node *n, uint64_t ms);
void later_tick(void *arg);
void later_stop(struct node *n); /* connection lost */

#endif
