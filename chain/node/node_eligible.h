/* May the present endpoint be used? */
#ifndef CHAIN_NODE_NODE_ELIGIBLE_H
#define CHAIN_NODE_NODE_ELIGIBLE_H

#include "chain/node/node.h"

/* Is this the genesis of the node's chain? If not, the error names both: ERR_GENESIS if all
 * endpoints are of another chain, else ERR_PROTOCOL. */
bool eligible_chain(struct node *n, const uint8_t genesis[32], struct err *ret_why);
/* Should this endpoint be left because it lags? Not if it is the only one, or if all of them
 * lag. */
bool eligible_lags(struct node *n);
void eligible_leave_lagging(struct node *n);

#endif
