/* The Merkle trie of sp-trie, as far as an ordered list needs it. The keys are compact integers, of
 * which none is a prefix of another one. So only leaves have values, and a branch has none.
 *
 *   leaf     01|length of the key's rest     the rest, two nibbles a byte   length, value
 *            001|length (V1, long values)    the rest                       hash of the value
 *   branch   10|length of the common part    the common part                bitmap of 16, children
 *
 * A child is its encoding if that is shorter than a hash, otherwise the hash of it; both with their
 * length before them. */
#include "chain/codec/trie.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "chain/codec/hash.h"
#include "chain/codec/scale.h"

enum {
    KEY_MAX = 4, /* bytes of a compact index */
    HASHED_FROM = 33,
    LEAF = 0x40,
    LEAF_HASHED = 0x20,
    BRANCH = 0x80,
    COUNT_MAX = 1 << 30,
};

struct entry {
    uint8_t key[KEY_MAX];
    uint8_t nibbles; /* of the key */
    const struct trie_item *item;
};

struct trie {
    enum trie_layout layout;
    struct buf out;
};

static unsigned nibble(const struct entry *e, unsigned at)
{
    PRE(at < e->nibbles);
    return at % 2 ? e->key[at / 2] & 15u : e->key[at / 2] >> 4;
}

/* An odd first nibble has a byte of its own. */
static void put_nibbles(struct trie *t, const struct entry *e, unsigned from, unsigned to)
{
    PRE(from <= to && to <= e->nibbles);
    if ((to - from) % 2)
        buf_put_u8(&t->out, (uint8_t)nibble(e, from++));
    for (; from < to; from += 2)
        buf_put_u8(&t->out, (uint8_t)(nibble(e, from) << 4 | nibble(e, from + 1)));
}

static void put_leaf(struct trie *t, const struct entry *e, unsigned depth)
{
    const struct trie_item *item = e->item;
    bool hashed = t->layout == TRIE_V1 && item->len >= HASHED_FROM;
    uint8_t hash[HASH_LEN];
    buf_put_u8(&t->out, (uint8_t)((hashed ? LEAF_HASHED : LEAF) | (e->nibbles - depth)));
    put_nibbles(t, e, depth, e->nibbles);
    if (hashed) {
        hash_blake2b_256(item->data, item->len, hash);
        buf_put(&t->out, hash, sizeof(hash));
    } else {
        scale_put_bytes(&t->out, item->data, item->len);
    }
}

static void put_node(struct trie *t, const struct entry *entries, size_t count, unsigned depth);

/* The encoding is made at the end of the buffer, then replaced by what stands for it. */
static void put_child(struct trie *t, const struct entry *entries, size_t count, unsigned depth)
{
    struct buf *out = &t->out;
    size_t start = out->len;
    uint8_t child[HASH_LEN];
    put_node(t, entries, count, depth);
    size_t len = out->len - start;
    if (len < HASH_LEN) {
        memcpy(child, out->data + start, len);
    } else {
        hash_blake2b_256(out->data + start, len, child);
        len = HASH_LEN;
    }
    out->len = start;
    scale_put_bytes(out, child, len);
}

static size_t same_nibble(const struct entry *entries, size_t count, unsigned at)
{
    size_t n = 1;
    while (n < count && nibble(&entries[n], at) == nibble(entries, at))
        n++;
    return n;
}

static void put_node(struct trie *t, const struct entry *entries, size_t count, unsigned depth)
{
    PRE(count > 0 && depth < 2 * KEY_MAX);
    if (count == 1) {
        put_leaf(t, entries, depth);
        return;
    }
    const struct entry *last =
        &entries[count - 1]; /* sorted: what it shares with the first, all share */
    unsigned at = depth;
    uint16_t children = 0;
    while (nibble(entries, at) == nibble(last, at))
        at++;
    buf_put_u8(&t->out, (uint8_t)(BRANCH | (at - depth)));
    put_nibbles(t, entries, depth, at);
    for (size_t i = 0; i < count; i += same_nibble(entries + i, count - i, at))
        children |= (uint16_t)(1u << nibble(&entries[i], at));
    scale_put_u16(&t->out, children);
    for (size_t i = 0, n; i < count; i += n) {
        n = same_nibble(entries + i, count - i, at);
        put_child(t, entries + i, n, at + 1);
    }
}

static int by_key(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return memcmp(x->key, y->key, KEY_MAX);
}

void trie_ordered_root(enum trie_layout layout, const struct trie_item *items, size_t count,
                       uint8_t ret_root[32])
{
    static const uint8_t empty[1];
    PRE(count < COUNT_MAX);
    if (count == 0) {
        hash_blake2b_256(empty, sizeof(empty), ret_root);
        return;
    }
    struct trie t = {.layout = layout};
    struct entry *entries = xcalloc(count, sizeof(*entries));
    for (size_t i = 0; i < count; i++) {
        struct buf key = {.data = entries[i].key, .cap = KEY_MAX};
        scale_put_compact(&key, i);
        entries[i].nibbles = (uint8_t)(2 * key.len);
        entries[i].item = &items[i];
    }
    qsort(entries, count, sizeof(*entries), by_key);
    put_node(&t, entries, count, 0);
    hash_blake2b_256(t.out.data, t.out.len, ret_root);
    buf_done(&t.out);
    free(entries);
}
