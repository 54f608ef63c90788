/* What endpoints lack, and which of them may have it. */
#ifndef CHAIN_NODE_NODE_LACK_H
#define CHAIN_NODE_NODE_LACK_H

#include "rpc_internal.h"

enum lack { LACK_BODY, LACK_STATE, LACK_POOL, LACK_SUBMIT, LACK_COUNT };

/* The search for the height up to which the present endpoint lacks blocks or states. */
struct reach {
    bool on;
    enum lack kind;
    uint64_t lacks, has, middle;
    bool of_hash; /* the call asks for the hash of `middle` */
    struct rpc_call call;
    struct err why;
};

/* The present endpoint lacks this. True: another one may have it, and the node leaves this one with
 * this reason. False: no endpoint is known to have it. */
bool lack_leave(struct node *n, enum lack kind, uint64_t number, const struct err *why);
/* May another endpoint have it? */
bool lack_elsewhere(const struct node *n, enum lack kind, uint64_t number);
/* Ask the present endpoint up to where it lacks blocks. True: blocks_reached follows. False: there
 * is nothing to find out. */
bool lack_search(struct node *n, enum lack kind, uint64_t number, const struct err *why);
/* "url: method of block 5: State already discarded (not this block)" */
void lack_refusal(const struct rpc_call *call, const char *url, const char *of, struct err *ret);
/* Wait for a while for an endpoint that is away and may have it. True: blocks_reached follows.
 * False: no such endpoint is away, or the wait is over and it did not come back. */
bool lack_wait(struct node *n, enum lack kind, uint64_t number);
void lack_back(struct node *n, size_t endpoint); /* its connection opened */
bool lack_may_return(const struct node *n, size_t endpoint);
void lack_stop(struct node *n); /* connection lost: nothing waits */
void lack_tick(void *arg);      /* timer */

#endif
