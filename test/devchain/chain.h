/* The block tree: headers, bodies, events, the best chain by height, finality. Pure: time comes in,
 * nothing goes out. Blocks of the best chain are kept for ever as headers; bodies and events of old
 * finalized blocks are dropped when they exceed a memory budget. */
#ifndef DEVCHAIN_CHAIN_H
#define DEVCHAIN_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "state.h"
#include "tx.h"

struct chain_version {
    uint32_t spec, tx;
};

struct block {
    uint8_t hash[32];
    uint8_t state_root[32];
    uint8_t extrinsics_root[32];
    struct block *parent; /* NULL for genesis */
    uint64_t number;
    uint64_t salt; /* in the digest: tells two blocks of the same content apart */
    uint64_t timestamp_ms;
    struct chain_version version; /* after this block: what the next block runs under */
    bool canonical;               /* on the best chain */
    bool pruned;                  /* body and events are gone */
    struct tx **txs;              /* owned references */
    size_t tx_count;
    struct buf events; /* SCALE records, without the count */
    uint32_t event_count;
    struct state_diff diff; /* until it is final */
};

struct chain {
    struct state state; /* at the best block */
    struct map by_hash;
    struct block **canon; /* by number, 0..best->number */
    size_t canon_len, canon_cap;
    struct block *best, *finalized;
    struct block **side; /* blocks off the best chain */
    size_t side_len, side_cap;
    size_t kept_bytes, keep_bytes_max;
    uint64_t pruned_to; /* bodies and events below this number are gone */
};

void chain_init(struct chain *c, size_t keep_bytes_max);
void chain_done(struct chain *c);

/* Close the block that was executed on top of best: takes txs (references) and the contents of
 * *events, seals the state. The block becomes best. The first one is genesis. */
struct block *chain_seal(struct chain *c, struct tx **txs, size_t tx_count, struct buf *events,
                         uint32_t event_count, uint64_t timestamp_ms, struct chain_version version,
                         uint64_t salt);

/* Take the best block off the best chain (it must not be final); it stays known by its hash. */
struct block *chain_retract(struct chain *c);

void chain_finalize(struct chain *c, uint64_t number); /* at most best's number; never goes back */

struct block *chain_block(const struct chain *c, const uint8_t hash[32]);
struct block *chain_canonical(const struct chain *c, uint64_t number); /* NULL: above best */

/* The account at the end of a block, on whatever branch it is. */
struct account_rec chain_account_at(const struct chain *c, const struct block *b,
                                    const uint8_t id[32]);

void chain_header_scale(const struct block *b, struct buf *out);
void chain_digest_scale(const struct block *b, struct buf *out); /* its one item */

#endif
