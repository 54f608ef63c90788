/* The storage keys of devchain's pallets, answered from the chain's own structures at any known
 * block. */
#include <string.h>

#include "chain/codec/hash.h"
#include "subs.h"

enum item {
    ITEM_ACCOUNT,
    ITEM_EXTRINSIC_COUNT,
    ITEM_BLOCK_HASH,
    ITEM_NUMBER,
    ITEM_PARENT_HASH,
    ITEM_EVENTS,
    ITEM_EVENT_COUNT,
    ITEM_NOW,
    ITEM_TOTAL_ISSUANCE,
    ITEM_MULTIPLIER,
    ITEM_SUDO_KEY,
    ITEM_COUNT,
};

static const struct {
    const char *pallet, *name;
} ITEMS[ITEM_COUNT] = {
    {"System", "Account"},
    {"System", "ExtrinsicCount"},
    {"System", "BlockHash"},
    {"System", "Number"},
    {"System", "ParentHash"},
    {"System", "Events"},
    {"System", "EventCount"},
    {"Timestamp", "Now"},
    {"Balances", "TotalIssuance"},
    {"TransactionPayment", "NextFeeMultiplier"},
    {"Sudo", "Key"},
};

static const uint8_t *prefix_of(enum item item)
{
    static uint8_t prefixes[ITEM_COUNT][32];
    static bool made;
    for (unsigned i = 0; !made && i < ITEM_COUNT; i++) {
        hash_twox_128(ITEMS[i].pallet, strlen(ITEMS[i].pallet), prefixes[i]);
        hash_twox_128(ITEMS[i].name, strlen(ITEMS[i].name), prefixes[i] + 16);
    }
    made = true;
    return prefixes[item];
}

static bool get_account(const struct core *c, const struct block *b, const uint8_t *tail,
                        size_t len, struct buf *out)
{
    uint8_t check[16];
    if (len != 48)
        return false;
    hash_blake2b_128(tail + 16, 32, check);
    if (memcmp(check, tail, 16) != 0)
        return false;
    struct account_rec rec = chain_account_at(&c->chain, b, tail + 16);
    if (!rec.providers)
        return false;
    scale_put_u32(out, rec.nonce);
    scale_put_u32(out, 0);
    scale_put_u32(out, rec.providers);
    scale_put_u32(out, 0);
    scale_put_u128(out, rec.free);
    scale_put_u128(out, 0);
    scale_put_u128(out, 0);
    scale_put_u128(out, (u128)1 << 127); /* flags: the new logic */
    return true;
}

/* The hashes of ancestors that the runtime knows at this block; its own is not among them. */
static bool get_block_hash(const struct core *c, const struct block *b, const uint8_t *tail,
                           size_t len, struct buf *out)
{
    if (len != 12)
        return false;
    struct scale_in in = scale_in_of(tail + 8, 4);
    uint32_t number = scale_get_u32(&in);
    if (number >= b->number || number + c->rt.block_hash_count < b->number)
        return false;
    for (; !b->canonical; b = b->parent)
        if (b->number == number)
            break;
    const struct block *want = b->number == number ? b : chain_canonical(&c->chain, number);
    buf_put(out, want->hash, 32);
    return true;
}

static u128 issuance(const struct core *c, const struct block *b)
{
    u128 sum = 0;
    size_t pos = 0;
    for (const struct account *a; (a = map_next(&c->chain.state.accounts, &pos));)
        sum += chain_account_at(&c->chain, b, a->id).free;
    return sum;
}

static bool get_plain(const struct core *c, const struct block *b, enum item item, struct buf *out)
{
    static const uint8_t none[32];
    switch (item) {
    case ITEM_EXTRINSIC_COUNT:
        scale_put_u32(out, (uint32_t)b->tx_count);
        return b->number > 0;
    case ITEM_NUMBER:
        scale_put_u32(out, (uint32_t)b->number);
        return true;
    case ITEM_PARENT_HASH:
        buf_put(out, b->parent ? b->parent->hash : none, 32);
        return true;
    case ITEM_EVENTS:
        if (b->pruned || !b->number)
            return false;
        scale_put_compact(out, b->event_count);
        buf_put(out, b->events.data, b->events.len);
        return true;
    case ITEM_EVENT_COUNT:
        scale_put_u32(out, b->event_count);
        return b->number > 0;
    case ITEM_NOW:
        scale_put_u64(out, b->timestamp_ms);
        return true;
    case ITEM_TOTAL_ISSUANCE:
        scale_put_u128(out, issuance(c, b));
        return true;
    case ITEM_MULTIPLIER:
        scale_put_u128(out, 1000000000000000000u);
        return true;
    case ITEM_SUDO_KEY:
        buf_put(out, c->rt.sudo_key, 32);
        return true;
    case ITEM_ACCOUNT:
    case ITEM_BLOCK_HASH:
    case ITEM_COUNT:
    default:
        return false;
    }
}

bool storage_get(const struct core *c, const struct block *b, const uint8_t *key, size_t len,
                 struct buf *out)
{
    static const char CODE[] = ":code";
    if (len == sizeof CODE - 1 && memcmp(key, CODE, len) == 0) {
        buf_puts(out, "devchain has no code: its runtime is native");
        return true;
    }
    for (unsigned i = 0; len >= 32 && i < ITEM_COUNT; i++) {
        if (memcmp(key, prefix_of((enum item)i), 32) != 0)
            continue;
        if (i == ITEM_ACCOUNT)
            return get_account(c, b, key + 32, len - 32, out);
        if (i == ITEM_BLOCK_HASH)
            return get_block_hash(c, b, key + 32, len - 32, out);
        return len == 32 && get_plain(c, b, (enum item)i, out);
    }
    return false;
}

/* Keys that exist at the block, each with a u8 length in front, unsorted. */
void storage_keys(const struct core *c, const struct block *b, struct buf *ret_keys,
                  size_t *ret_count)
{
    struct buf value = {0};
    size_t pos = 0;
    *ret_count = 0;
    for (unsigned i = 0; i < ITEM_COUNT; i++) {
        buf_clear(&value);
        if (!get_plain(c, b, (enum item)i, &value))
            continue;
        buf_put_u8(ret_keys, 32);
        buf_put(ret_keys, prefix_of((enum item)i), 32);
        ++*ret_count;
    }
    buf_done(&value);
    for (const struct account *a; (a = map_next(&c->chain.state.accounts, &pos));) {
        uint8_t check[16];
        if (!chain_account_at(&c->chain, b, a->id).providers)
            continue;
        hash_blake2b_128(a->id, 32, check);
        buf_put_u8(ret_keys, 80);
        buf_put(ret_keys, prefix_of(ITEM_ACCOUNT), 32);
        buf_put(ret_keys, check, 16);
        buf_put(ret_keys, a->id, 32);
        ++*ret_count;
    }
}
