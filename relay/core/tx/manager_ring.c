/* Rows by nonce in a ring, sets of nonces as bitmaps with two summary levels (so that "the lowest unsent
 * nonce" costs the same with ten rows and with a million), and the table of all hashes, open addressing
 * on their first bytes. Everything is O(1) amortised for each row. */
#include <stdlib.h>
#include <string.h>

#include "manager_internal.h"

/* ---- sets ---- */

static void nset_init(struct nset *s, size_t bits)
{
    for (int i = 0; i < 3; i++) {
        bits = (bits + 63) / 64;
        s->words[i] = bits;
        s->level[i] = xcalloc(bits, sizeof(uint64_t));
    }
    s->count = 0;
}

static void nset_done(struct nset *s)
{
    for (int i = 0; i < 3; i++)
        free(s->level[i]);
    memset(s, 0, sizeof(*s));
}

static bool nset_has(const struct nset *s, size_t i)
{
    return s->level[0][i >> 6] >> (i & 63) & 1;
}

static void nset_add(struct nset *s, size_t i)
{
    s->count++;
    for (int k = 0; k < 3; k++, i >>= 6)
        s->level[k][i >> 6] |= (uint64_t)1 << (i & 63);
}

static void nset_remove(struct nset *s, size_t i)
{
    s->count--;
    for (int k = 0; k < 3; k++, i >>= 6) {
        s->level[k][i >> 6] &= ~((uint64_t)1 << (i & 63));
        if (s->level[k][i >> 6])
            return;
    }
}

/* The first member at or above i; SIZE_MAX: none. Climb until a level shows one to the right, descend. */
static size_t nset_from(const struct nset *s, size_t i)
{
    for (int k = 0; k < 3; k++) {
        size_t word = i >> 6;
        uint64_t bits = word < s->words[k] ? s->level[k][word] & ~(uint64_t)0 << (i & 63) : 0;
        while (!bits && k == 2 && ++word < s->words[k])
            bits = s->level[k][word];
        if (bits) {
            i = word * 64 + (size_t)__builtin_ctzll(bits);
            while (k--)
                i = i * 64 + (size_t)__builtin_ctzll(s->level[k][i]);
            return i;
        }
        i = word + 1;
    }
    return SIZE_MAX;
}

void manager__set_put(struct manager *m, unsigned set, const struct row *row, bool member)
{
    size_t i = row->nonce & (m->cap - 1);
    if (nset_has(&m->sets[set], i) == member)
        return;
    if (member)
        nset_add(&m->sets[set], i);
    else
        nset_remove(&m->sets[set], i);
}

bool manager__set_has(const struct manager *m, unsigned set, const struct row *row)
{
    return nset_has(&m->sets[set], row->nonce & (m->cap - 1));
}

struct row *manager__first(const struct manager *m, unsigned set, uint64_t from)
{
    const struct nset *s = &m->sets[set];
    if (!s->count || from >= m->next)
        return NULL;
    if (from < m->low)
        from = m->low;
    size_t mask = m->cap - 1, start = from & mask;
    size_t i = nset_from(s, start);
    if (i == SIZE_MAX)
        i = nset_from(s, 0);
    uint64_t nonce = from + ((i - start) & mask);
    return i == SIZE_MAX || nonce >= m->next ? NULL : m->slots[i];
}

/* ---- the ring ---- */

static void rebuild(struct manager *m, size_t cap)
{
    struct row **old = m->slots;
    struct nset sets[SET_COUNT];
    size_t old_cap = m->cap;
    memcpy(sets, m->sets, sizeof(sets));
    m->slots = xcalloc(cap, sizeof(struct row *));
    m->cap = cap;
    for (unsigned k = 0; k < SET_COUNT; k++)
        nset_init(&m->sets[k], cap);
    for (size_t i = 0; i < old_cap; i++) {
        if (!old[i])
            continue;
        m->slots[old[i]->nonce & (cap - 1)] = old[i];
        for (unsigned k = 0; k < SET_COUNT; k++)
            if (nset_has(&sets[k], i))
                nset_add(&m->sets[k], old[i]->nonce & (cap - 1));
    }
    for (unsigned k = 0; old_cap && k < SET_COUNT; k++)
        nset_done(&sets[k]);
    free(old);
}

void manager__ring_cover(struct manager *m, uint64_t low, uint64_t next)
{
    INVARIANT(low <= next && next - low <= SPAN_MAX);
    size_t cap = m->cap ? m->cap : 1024;
    while (cap < next - low)
        cap *= 2;
    if (cap != m->cap)
        rebuild(m, cap);
    m->low = low;
    m->next = next;
}

void manager__ring_clear(struct manager *m)
{
    for (size_t i = 0; i < m->cap && m->rows; i++)
        if (m->slots[i]) {
            manager__row_free(m->slots[i]);
            m->rows--;
        }
    for (unsigned k = 0; m->cap && k < SET_COUNT; k++)
        nset_done(&m->sets[k]);
    free(m->slots);
    free(m->table);
    free(m->eras);
    m->slots = NULL;
    m->table = NULL;
    m->eras = NULL;
    m->cap = m->table_cap = m->table_count = m->era_count = m->era_cap = 0;
    m->low = m->next = m->fixed_rows = 0;
    list_init(&m->news);
    manager__ring_cover(m, 0, 0);
}

void manager__ring_free(struct manager *m)
{
    manager__ring_clear(m);
    for (unsigned k = 0; k < SET_COUNT; k++)
        nset_done(&m->sets[k]);
    free(m->slots);
    m->slots = NULL;
    m->cap = 0;
}

struct row *manager__at(const struct manager *m, uint64_t nonce)
{
    if (nonce < m->low || nonce >= m->next)
        return NULL;
    return m->slots[nonce & (m->cap - 1)];
}

/* ---- hashes ---- */

/* Of the first eight bytes. A hash is random already; the product spreads what a test makes up. */
static uint32_t key_of(const uint8_t hash[32])
{
    uint64_t bytes;
    memcpy(&bytes, hash, sizeof(bytes));
    uint32_t key = (uint32_t)(bytes * 0x9e3779b97f4a7c15u >> 32);
    return key ? key : 1;
}

static size_t home(const struct manager *m, uint32_t key)
{
    return key & (m->table_cap - 1);
}

static void table_put(struct manager *m, struct hash_entry e)
{
    size_t i = home(m, e.key);
    while (m->table[i].key)
        i = (i + 1) & (m->table_cap - 1);
    m->table[i] = e;
}

void manager__hash_add(struct manager *m, const uint8_t hash[32], uint64_t nonce)
{
    if ((m->table_count + 1) * 4 > m->table_cap * 3) {
        struct hash_entry *old = m->table;
        size_t old_cap = m->table_cap;
        m->table_cap = old_cap ? old_cap * 2 : 1024;
        m->table = xcalloc(m->table_cap, sizeof(*m->table));
        for (size_t i = 0; i < old_cap; i++)
            if (old[i].key)
                table_put(m, old[i]);
        free(old);
    }
    m->table_count++;
    table_put(m, (struct hash_entry){key_of(hash), (uint32_t)nonce});
}

/* Linear probing without tombstones: what follows the gap moves into it when its home allows. */
void manager__hash_remove(struct manager *m, const uint8_t hash[32], uint64_t nonce)
{
    size_t mask = m->table_cap - 1;
    uint32_t key = key_of(hash);
    size_t i = home(m, key);
    while (m->table[i].key != key || m->table[i].nonce != (uint32_t)nonce) {
        INVARIANT(m->table[i].key);
        i = (i + 1) & mask;
    }
    for (size_t k = (i + 1) & mask; m->table[k].key; k = (k + 1) & mask) {
        size_t want = home(m, m->table[k].key);
        if (((k - want) & mask) >= ((k - i) & mask)) {
            m->table[i] = m->table[k];
            i = k;
        }
    }
    m->table[i].key = 0;
    m->table_count--;
}

struct row *manager__by_hash(const struct manager *m, const uint8_t hash[32])
{
    uint32_t key = key_of(hash);
    if (!m->table_cap)
        return NULL;
    for (size_t i = home(m, key); m->table[i].key; i = (i + 1) & (m->table_cap - 1)) {
        if (m->table[i].key != key)
            continue;
        struct row *row = m->slots[m->table[i].nonce & (m->cap - 1)];
        if (row && manager__row_knows(row, hash, NULL))
            return row;
    }
    return NULL;
}

void manager__batch_put(struct batch *b, uint64_t nonce)
{
    if (b->count == b->cap) {
        b->cap = b->cap ? b->cap * 2 : 64;
        b->nonces = xrealloc(b->nonces, b->cap * sizeof(*b->nonces));
    }
    b->nonces[b->count++] = nonce;
}
