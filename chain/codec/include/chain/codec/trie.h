/* The root hash by which a Substrate block's header commits to the block's extrinsics. */
#ifndef CHAIN_CODEC_TRIE_H
#define CHAIN_CODEC_TRIE_H

#include <stddef.h>
#include <stdint.h>

/* The layouts of sp-trie. In V1 a value of 33 bytes or more is replaced by its hash. */
enum trie_layout { TRIE_V0, TRIE_V1 };

struct trie_item {
    const uint8_t *data;
    size_t len;
};

/* The root of the trie whose keys are the SCALE compact indices of the items, with blake2b-256. No
 * list has the root of another list, in the same layout or in the other one. PRE: count is below
 * 2^30. */
void trie_ordered_root(enum trie_layout layout, const struct trie_item *items, size_t count,
                       uint8_t ret_root[32]);

#endif
