/* Private to rpc_follow*.c: the blocks that chainHead_v1_follow has announced and that are pinned.
 * Pure: events come in, hashes to unpin go out. */
#ifndef CHAIN_NODE_RPC_WINDOW_H
#define CHAIN_NODE_RPC_WINDOW_H

#include "chain/node/json_view.h"

enum {
    /* polkadot-sdk pins at most 512 blocks for all of its clients, and ends subscriptions above. */
    WINDOW_FINAL_MAX = 128,
    WINDOW_MAX = 1024, /* more blocks than any server pins */
};

struct window_block {
    uint8_t hash[32], parent[32];
    int64_t height; /* of the last final block in "initialized": 0 */
    bool final;
    char *runtime; /* the version in JSON, if this block changed it; owned */
};

struct window {
    struct window_block *blocks; /* a parent comes before its children */
    size_t count, cap;
    uint8_t best[32], finalized[32];
    char *runtime; /* the version before the oldest block of the window; NULL: not known */
};

void window_done(struct window *w);
const struct window_block *window_find(const struct window *w, const uint8_t hash[32]);
/* The block at a height on the chain of the best block. NULL: it is not in the window. */
const struct window_block *window_at(const struct window *w, int64_t height);
/* The version of the runtime of the best block. NULL: it is not known. */
const char *window_runtime(const struct window *w);

/* Take an event of the subscription: initialized, newBlock, bestBlockChanged, finalized; others
 * change nothing. Append the hashes of the blocks to unpin. False: it contradicts what came before,
 * or does not parse. */
bool window_take(struct window *w, const struct jv *event, struct buf *ret_unpin);

#endif
