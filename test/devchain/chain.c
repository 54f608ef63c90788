/* See chain.h. There is no trie of the state: the state root is a hash over the parent's root and
 * the block's changes, enough for headers to differ when their states do. */
#include "chain.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "chain/codec/hash.h"
#include "chain/codec/trie.h"

enum { SIDE_KEEP_BLOCKS = 256 };

void chain_init(struct chain *c, size_t keep_bytes_max)
{
    *c = (struct chain){.keep_bytes_max = keep_bytes_max};
    state_init(&c->state);
    map_init(&c->by_hash, 32);
}

static size_t block_bytes(const struct block *b)
{
    size_t n = b->events.cap;
    for (size_t i = 0; i < b->tx_count; i++)
        n += b->txs[i]->len + sizeof *b->txs[i];
    return n;
}

static void drop_content(struct chain *c, struct block *b)
{
    c->kept_bytes -= block_bytes(b);
    for (size_t i = 0; i < b->tx_count; i++)
        tx_unref(b->txs[i]);
    free(b->txs);
    b->txs = NULL;
    b->tx_count = 0;
    buf_done(&b->events);
    b->pruned = true;
}

static void block_free(struct chain *c, struct block *b)
{
    drop_content(c, b);
    state_diff_done(&b->diff);
    free(b);
}

void chain_done(struct chain *c)
{
    size_t pos = 0;
    for (struct block *b; (b = map_next(&c->by_hash, &pos));)
        block_free(c, b);
    map_done(&c->by_hash);
    state_done(&c->state);
    free(c->canon);
    free(c->side);
}

/* One PreRuntime item (6) of engine "DEVC" that holds the salt. */
void chain_digest_scale(const struct block *b, struct buf *out)
{
    buf_put_u8(out, 6);
    buf_put(out, "DEVC", 4);
    scale_put_compact(out, 8);
    scale_put_u64(out, b->salt);
}

void chain_header_scale(const struct block *b, struct buf *out)
{
    static const uint8_t none[32];
    buf_put(out, b->parent ? b->parent->hash : none, 32);
    scale_put_compact(out, b->number);
    buf_put(out, b->state_root, 32);
    buf_put(out, b->extrinsics_root, 32);
    scale_put_compact(out, b->parent != NULL);
    if (b->parent)
        chain_digest_scale(b, out);
}

static void compute_roots(struct block *b)
{
    struct buf in = {0};
    struct trie_item *items = xcalloc(b->tx_count + 1, sizeof *items);
    for (size_t i = 0; i < b->tx_count; i++)
        items[i] = (struct trie_item){b->txs[i]->bytes, b->txs[i]->len};
    trie_ordered_root(TRIE_V0, items, b->tx_count, b->extrinsics_root);
    free(items);
    if (b->parent)
        buf_put(&in, b->parent->state_root, 32);
    for (size_t i = 0; i < b->diff.count; i++) {
        const struct state_change *ch = &b->diff.changes[i];
        buf_put(&in, ch->account->id, 32);
        scale_put_u128(&in, ch->rec.free);
        scale_put_u32(&in, ch->rec.nonce);
        scale_put_u32(&in, ch->rec.providers);
    }
    scale_put_u64(&in, b->timestamp_ms);
    scale_put_u32(&in, b->version.spec);
    hash_blake2b_256(in.data, in.len, b->state_root);
    buf_clear(&in);
    chain_header_scale(b, &in);
    hash_blake2b_256(in.data, in.len, b->hash);
    buf_done(&in);
}

static void push_block(struct block ***list, size_t *len, size_t *cap, struct block *b)
{
    if (*len == *cap) {
        *cap = *cap ? *cap * 2 : 64;
        *list = xrealloc(*list, *cap * sizeof **list);
    }
    (*list)[(*len)++] = b;
}

struct block *chain_seal(struct chain *c, struct tx **txs, size_t tx_count, struct buf *events,
                         uint32_t event_count, uint64_t timestamp_ms, struct chain_version version,
                         uint64_t salt)
{
    struct block *b = xcalloc(1, sizeof *b);
    b->parent = c->best;
    b->number = c->best ? c->best->number + 1 : 0;
    b->salt = salt;
    b->timestamp_ms = timestamp_ms;
    b->version = version;
    b->canonical = true;
    b->txs = xmalloc((tx_count + 1) * sizeof *b->txs);
    if (tx_count)
        memcpy(b->txs, txs, tx_count * sizeof *b->txs);
    b->tx_count = tx_count;
    buf_put(&b->events, events->data, events->len);
    b->event_count = event_count;
    buf_clear(events);
    state_seal(&c->state, b->number, &b->diff);
    compute_roots(b);
    INVARIANT(!map_get(&c->by_hash, b->hash));
    map_put(&c->by_hash, b->hash, b);
    push_block(&c->canon, &c->canon_len, &c->canon_cap, b);
    c->best = b;
    if (!c->finalized)
        c->finalized = b;
    c->kept_bytes += block_bytes(b);
    return b;
}

struct block *chain_retract(struct chain *c)
{
    struct block *b = c->best;
    PRE(b != c->finalized);
    state_unwind(&c->state, b->number, &b->diff);
    b->canonical = false;
    c->canon_len--;
    c->best = b->parent;
    push_block(&c->side, &c->side_len, &c->side_cap, b);
    return b;
}

/* Side blocks far below finality lose their content. Header and diff stay: other branches may hang
 * on them. */
static void prune_side(struct chain *c)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->side_len; i++) {
        struct block *b = c->side[i];
        if (b->number + SIDE_KEEP_BLOCKS < c->finalized->number)
            drop_content(c, b);
        else
            c->side[kept++] = b;
    }
    c->side_len = kept;
}

void chain_finalize(struct chain *c, uint64_t number)
{
    PRE(number < c->canon_len);
    if (number <= c->finalized->number)
        return;
    for (uint64_t n = c->finalized->number + 1; n <= number; n++)
        state_diff_done(&c->canon[n]->diff);
    c->finalized = c->canon[number];
    if (c->side_len)
        prune_side(c);
    while (c->kept_bytes > c->keep_bytes_max && c->pruned_to < number)
        drop_content(c, c->canon[c->pruned_to++]);
}

struct block *chain_block(const struct chain *c, const uint8_t hash[32])
{
    return map_get(&c->by_hash, hash);
}

struct block *chain_canonical(const struct chain *c, uint64_t number)
{
    return number < c->canon_len ? c->canon[number] : NULL;
}

struct account_rec chain_account_at(const struct chain *c, const struct block *b,
                                    const uint8_t id[32])
{
    const struct account *a = state_find(&c->state, id);
    if (!a)
        return (struct account_rec){0};
    for (; !b->canonical; b = b->parent)
        for (size_t i = 0; i < b->diff.count; i++)
            if (b->diff.changes[i].account == a)
                return b->diff.changes[i].rec;
    return state_at(a, b->number);
}
