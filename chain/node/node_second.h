/* What other endpoints say of the runtime. */
#ifndef CHAIN_NODE_NODE_SECOND_H
#define CHAIN_NODE_NODE_SECOND_H

#include "loop/loop.h"
#include "node_peer.h"

struct second {
    bool on;
    uint64_t round;
    struct runtime *runtime; /* a reference */
    uint8_t at[32];          /* the block in whose state it is */
    bool of_block;           /* a block that is to be reported; else a recent one */
    uint64_t began_at, told_at, at_ms;
    bool alone; /* no other endpoint answered, on this connection */
    struct loop_timer *timer;
};

/* Have other endpoints said that this is the runtime in the state of this block (NULL: at present)
 * and that this is its metadata? If not they are asked; on_runtime and blocks_kick follow. Without
 * a quorum it is agreed as well where none of them answers, or where there is none. */
bool second_agrees(struct node *n, struct runtime *r, const uint8_t *at);
void second_opinion(struct peer *p, enum opinion opinion);
void second_stop(struct node *n);
void second_tick(void *arg);

#endif
