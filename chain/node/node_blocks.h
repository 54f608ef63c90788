/* Finalized blocks: every height once and in order. */
#ifndef CHAIN_NODE_NODE_BLOCKS_H
#define CHAIN_NODE_NODE_BLOCKS_H

#include "node_slot.h"

enum { NODE_PIPELINE = 8, NODE_BIRTHS = 64, NODE_ATTEMPTS = 3 };

struct account {
    char *key;          /* storage key, as text */
    uint64_t reported;  /* the last nonce; UINT64_MAX: none */
    char *contradicted; /* what endpoints say of a later one; NULL: they agree */
};

/* The hash of a finalized block on which eras begin. */
struct birth {
    bool known;
    uint64_t number;
    uint8_t hash[32];
};

/* Fill ret from an extrinsic in a block of this height. False: it does not decode with this
 * metadata; only bytes and hash are set. */
bool node__included(const struct metadata *md, const uint8_t *bytes, size_t len, uint64_t number,
                    struct node_included *ret);
void blocks_init(struct node *n);
void blocks_done(struct node *n);
void blocks_reset(struct node *n);   /* connection lost */
void blocks_reached(struct node *n); /* lack_search or lack_wait has ended */
void blocks_kick(struct node *n);    /* report blocks that are done, start to read further ones */

#endif
