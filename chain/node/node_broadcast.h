/* Private to node*.c: what transaction_v1_broadcast has begun. */
#ifndef CHAIN_NODE_NODE_BROADCAST_H
#define CHAIN_NODE_NODE_BROADCAST_H

#include "chain/node/node.h"

/* The answer of this submission names a broadcast. */
void broadcast_add(struct node_submit *s);
/* No answer yet, and its owner does not wait for it any more. */
void broadcast_add_late(struct node_submit *s);
/* This final block was reported: stop what no later one can hold. */
void broadcasts_stop_dead(struct node *n, const struct node_block *block);
/* The connection is lost, and they with it. */
void broadcasts_reset(struct node *n);

#endif
