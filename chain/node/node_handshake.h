/* The steps that make a fresh connection READY. */
#ifndef CHAIN_NODE_NODE_HANDSHAKE_H
#define CHAIN_NODE_NODE_HANDSHAKE_H

#include "chain/node/node.h"

enum handshake_step {
    HS_IDLE,
    HS_VERSION_WAIT,
    HS_GENESIS_WAIT,
    HS_BEST_WAIT,
    HS_BEST_HEADER_WAIT,
    HS_RUNTIME_WAIT,
    HS_FINALIZED_WAIT,
    HS_FINALIZED_HEADER_WAIT,
    HS_NEW_HEADS_WAIT,
    HS_FINALIZED_HEADS_WAIT,
    HS_RUNTIME_VERSION_WAIT,
    HS_FINAL_ITEM_WAIT,
};
/* Make this connection READY, or leave the endpoint. Must be called in NODE_HANDSHAKE_WAIT. */
void handshake_start(struct node *n);
/* node_subscribe.c: make the subscription of this step. handshake_failed_call or, after the last
 * one, handshake_subscribed follows. */
void handshake_subscribe(struct node *n);
void handshake_subscribed(struct node *n);
void handshake_failed_call(struct node *n, const struct rpc_call *call);
/* A finalized head was notified, or nothing was for a while. HS_FINAL_ITEM_WAIT ends. */
void handshake_final_head(struct node *n);
void handshake_silent(struct node *n);

#endif
