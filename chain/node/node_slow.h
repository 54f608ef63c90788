/* Does the present endpoint let final blocks be read as fast as they come? */
#ifndef CHAIN_NODE_NODE_SLOW_H
#define CHAIN_NODE_NODE_SLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct node;
struct endpoint;

struct slow {
    uint64_t since; /* the lag is compared with that of then; 0: there is none to compare */
    uint64_t lag;   /* then: final blocks that were not read */
    uint64_t told_at;
    size_t left;    /* that endpoint + 1 was left for a faster one, and none was READY since */
    bool on;        /* it did not shrink, and no other endpoint is known to be faster */
    char text[200]; /* if on */
};

bool slow_lately(const struct endpoint *e, uint64_t now); /* it fell behind, or lagged */
void slow_ready(struct node *n);
void slow_check(struct node *n); /* a block is final, or it is READY */
/* The stream of blocks starts over, or waits for something else than this endpoint. */
void slow_forget(struct node *n);

#endif
