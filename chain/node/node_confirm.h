/* What one answer does not prove is asked again before its block is reported. */
#ifndef CHAIN_NODE_NODE_CONFIRM_H
#define CHAIN_NODE_NODE_CONFIRM_H

#include "loop/loop.h"
#include "node_peer.h"
#include "node_slot.h"

/* The block that waits to be reported. */
struct confirm {
    bool on;
    bool doubted;   /* some of `nonces` is */
    bool twice;     /* some of them is wanted once more */
    uint64_t round; /* counts; an answer of a former one is ignored */
    uint64_t number;
    uint8_t hash[32];
    bool has_events; /* they are compared */
    uint8_t events[32];
    struct confirm_nonce {
        size_t account;
        uint64_t nonce;
        bool doubted;
    } * nonces; /* that are asked for again */
    size_t nonce_count;
    unsigned again; /* times that the endpoint in use has said the same again */
    uint64_t again_at, began_at, told_at;
    struct loop_timer *timer;
};

void confirm_init(struct node *n, const char *const *urls);
void confirm_done(struct node *n);
void confirm_stop(struct node *n); /* the block is not waited for any more */
void confirm_opinion(struct peer *p, enum opinion opinion);
/* May the block be reported now? If not, it is being confirmed: blocks_kick or slot_failed
 * follows. */
bool confirm_passed(struct node *n, struct slot *s, const struct node_block *block);

#endif
