/* Whose extrinsics a block holds: owners.c. */
#ifndef RELAY_SERVICE_OWNERS_H
#define RELAY_SERVICE_OWNERS_H

#include "chain/node/node.h"

struct account;
struct service;
struct owner_entry;

struct owners {
    /* what the led accounts have on record, as it was at this event of theirs */
    struct owner_entry *entries;
    size_t cap, count;
    uint32_t *sited; /* accounts with sites */
    size_t sited_count;
    bool indexed;
    uint64_t indexed_at;
    /* accounts that were compared with an extrinsic since this event */
    uint64_t compared_at, compared;
    /* of one block: by account and by extrinsic, the place of the first and the next one + 1 */
    uint32_t *first, *next;
    const struct node_included *included; /* NULL: none */
    uint64_t listed_at;
    size_t listed_count;
    uint8_t block[32];
    const struct node_block *held;
};

/* The account that an extrinsic belongs to. Its hash decides, if an attempt with that hash is on
 * record: a node that has pruned the state of a block decodes it by a later runtime, and with
 * another layout of the extensions the signer or the nonce is not known, or is a wrong one.
 * NULL: it is none of ours. */
struct account *owners_of(struct service *s, const struct node_included *x);

/* The account's extrinsics of a block, in their order; NULL: there is none more. */
const struct node_included *owners_first(struct service *s, const struct account *a,
                                         const struct node_block *b);
const struct node_included *owners_next(const struct service *s, const struct node_block *b,
                                        const struct node_included *x);
/* Whose they are is not asked again while accounts read the block. NULL: they have. */
void owners_hold(struct service *s, const struct node_block *b);

void owners_done(struct owners *o);

#endif
