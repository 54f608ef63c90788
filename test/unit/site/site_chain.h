/* The chain of the sites' simulation, and all bytes that were ever signed: what may be in the world
 * is known here, whatever the sites' databases say. */
#ifndef TEST_SITE_CHAIN_H
#define TEST_SITE_CHAIN_H

#include "base/rng.h"
#include "site/core/site.h"

enum { CHAIN_SITES = 5, CHAIN_HEIGHTS = 4096, CHAIN_FINALITY = 2, CHAIN_BLOCK_MAX = 6 };

/* Signed bytes; the hash is their number. */
struct signed_bytes {
    uint32_t number;
    int sender; /* -1: somebody else's */
    uint64_t id;
    struct site_bytes bytes;
    bool pooled;
    uint64_t block;      /* that has it; 0: none */
    bool granted;        /* it was once committed at the sender */
    uint32_t dispatched; /* sites where it was once committed as dispatched */
};

struct chain {
    struct rng *rng;
    struct signed_bytes *all;
    size_t count, cap;
    uint64_t best, final;
    uint64_t next[CHAIN_HEIGHTS][CHAIN_SITES]; /* of each key after each block */
};

void chain_begin(struct chain *ch, struct rng *rng);
void chain_done(struct chain *ch);

struct signed_bytes *chain_sign(struct chain *ch, int sender, uint64_t id, uint32_t key,
                                uint64_t nonce, uint64_t death);
/* NULL: no such bytes. */
struct signed_bytes *chain_find(struct chain *ch, const struct site_hash *hash);

/* A block with some of what the pool has. */
void chain_build(struct chain *ch);
/* Blocks that are not final are lost; what they had is in the pool again. */
void chain_reorganise(struct chain *ch);
/* A block of somebody else's extrinsic with this key. */
void chain_stranger(struct chain *ch, uint32_t key);

/* By the finalized chain: these bytes can not be included any more, and were not. */
bool chain_dead(const struct chain *ch, const struct signed_bytes *b);
bool chain_has(const struct signed_bytes *b, uint64_t height); /* up to this height */

#endif
