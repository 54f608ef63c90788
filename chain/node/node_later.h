/* Blocks near the head that an endpoint names and does not have yet. */
#ifndef CHAIN_NODE_NODE_LATER_H
#define CHAIN_NODE_NODE_LATER_H

#include "loop/loop.h"

struct node;
struct slot;

struct later {
    struct loop_timer *timer;
    uint64_t in_vain_at; /* a block waited to the end and did not come; 0: never */
};

/* The endpoint says that it lacks this height, or its state. True: the slot waits, and is read
 * again. False: it is no block that may come, or it did not come. */
bool later_wait(struct slot *s);
void later_tick(void *arg);
void later_stop(struct node *n); /* connection lost */

#endif
