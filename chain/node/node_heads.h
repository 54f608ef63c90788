/* The best and the finalized head. */
#ifndef CHAIN_NODE_NODE_HEADS_H
#define CHAIN_NODE_NODE_HEADS_H

#include "rpc_internal.h"

struct head_watch {
    struct node *node;
    bool finalized;
    struct rpc_sub sub;
    struct rpc_call call; /* the hash of `next` */
    bool asking;          /* call is in flight for `asked` */
    struct node_head asked;
    bool waiting; /* `next` waits; a newer head replaces it */
    struct node_head next;
    bool notified;     /* since the last poll */
    uint64_t heard_ms; /* the last notification, or a new subscription */
    bool renewed;      /* the subscription was made anew, and has not notified yet */
    unsigned strikes; /* polls in a row that found a head which the subscription had not reported */
};
void heads_item(struct rpc_sub *sub, const struct jv *item);
void heads_apply(struct head_watch *w, const struct node_head *head);
/* Record that a block of this height exists somewhere. False: a higher one was known already. */
bool heads_raise_best_known(struct node *n, uint64_t height, bool told);
void heads_reset(struct node *n);           /* connection lost */
void heads_renew_finalized(struct node *n); /* node_subscribe.c: subscribe anew */
void heads_poll(void *arg);                 /* timer */
void heads_poll_later(struct node *n);

#endif
