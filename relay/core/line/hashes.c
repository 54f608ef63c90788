/* Which row has made this extrinsic? The table of all hashes, open addressing on their first
 * bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "line_internal.h"

/* Of the first eight bytes. A hash is random already; the product spreads what a test makes up. */
static uint32_t key_of(const uint8_t hash[32])
{
    uint64_t bytes;
    memcpy(&bytes, hash, sizeof(bytes));
    uint32_t key = (uint32_t)(bytes * 0x9e3779b97f4a7c15u >> 32);
    return key ? key : 1;
}

static size_t home(const struct line *line, uint32_t key)
{
    return key & (line->table_cap - 1);
}

static void table_put(struct line *line, struct hash_entry e)
{
    size_t i = home(line, e.key);
    while (line->table[i].key)
        i = (i + 1) & (line->table_cap - 1);
    line->table[i] = e;
}

void line__hash_add(struct line *line, const uint8_t hash[32], uint64_t nonce)
{
    if ((line->table_count + 1) * 4 > line->table_cap * 3) {
        struct hash_entry *old = line->table;
        size_t old_cap = line->table_cap;
        line->table_cap = old_cap ? old_cap * 2 : 1024;
        line->table = xcalloc(line->table_cap, sizeof(*line->table));
        for (size_t i = 0; i < old_cap; i++)
            if (old[i].key)
                table_put(line, old[i]);
        free(old);
    }
    line->table_count++;
    table_put(line, (struct hash_entry){key_of(hash), (uint32_t)nonce});
}

/* Linear probing without tombstones: what follows the gap moves into it when its home allows. */
void line__hash_remove(struct line *line, const uint8_t hash[32], uint64_t nonce)
{
    PRE(line->table_count > 0);
    size_t mask = line->table_cap - 1;
    uint32_t key = key_of(hash);
    size_t i = home(line, key);
    while (line->table[i].key != key || line->table[i].nonce != (uint32_t)nonce) {
        INVARIANT(line->table[i].key);
        i = (i + 1) & mask;
    }
    for (size_t k = (i + 1) & mask; line->table[k].key; k = (k + 1) & mask) {
        size_t want = home(line, line->table[k].key);
        if (((k - want) & mask) >= ((k - i) & mask)) {
            line->table[i] = line->table[k];
            i = k;
        }
    }
    line->table[i].key = 0;
    line->table_count--;
}

struct row *line_by_hash(const struct line *line, const uint8_t hash[32])
{
    uint32_t key = key_of(hash);
    if (!line->table_cap)
        return NULL;
    for (size_t i = home(line, key); line->table[i].key; i = (i + 1) & (line->table_cap - 1)) {
        if (line->table[i].key != key)
            continue;
        struct row *row = line->slots[line->table[i].nonce & (line->cap - 1)];
        if (row && row_knows(row, hash, NULL))
            return row;
    }
    return NULL;
}
