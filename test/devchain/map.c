/* The map of map.h: linear probing with backward-shift deletion, so that there are no
 * tombstones. */
#include "map.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"

static uint64_t load64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static size_t slot_of(const struct map *m, const uint8_t *key)
{
    uint64_t h = load64(key);
    if (m->key_len > 8)
        h ^= load64(key + m->key_len - 8) * 0x9e3779b97f4a7c15u;
    h *= 0xff51afd7ed558ccdu;
    h ^= h >> 32;
    return (size_t)h & (m->cap - 1);
}

static const uint8_t *key_at(const struct map *m, size_t i)
{
    return m->keys + i * m->key_len;
}

void map_init(struct map *m, size_t key_len)
{
    PRE(key_len >= 8 && key_len <= MAP_KEY_MAX);
    *m = (struct map){.key_len = key_len};
}

void map_done(struct map *m)
{
    free(m->keys);
    free(m->values);
    map_init(m, m->key_len);
}

/* The slot that holds key, or the free slot where it belongs. */
static size_t find(const struct map *m, const uint8_t *key)
{
    size_t i = slot_of(m, key);
    while (m->values[i] && memcmp(key_at(m, i), key, m->key_len) != 0)
        i = (i + 1) & (m->cap - 1);
    return i;
}

void *map_get(const struct map *m, const void *key)
{
    return m->count ? m->values[find(m, key)] : NULL;
}

static void grow(struct map *m)
{
    struct map old = *m;
    m->cap = old.cap ? old.cap * 2 : 16;
    m->keys = xmalloc(m->cap * m->key_len);
    m->values = xcalloc(m->cap, sizeof *m->values);
    for (size_t i = 0; i < old.cap; i++) {
        if (!old.values[i])
            continue;
        size_t to = find(m, key_at(&old, i));
        memcpy(m->keys + to * m->key_len, key_at(&old, i), m->key_len);
        m->values[to] = old.values[i];
    }
    free(old.keys);
    free(old.values);
}

void map_put(struct map *m, const void *key, void *value)
{
    PRE(value);
    if ((m->count + 1) * 3 > m->cap * 2)
        grow(m);
    size_t i = find(m, key);
    if (!m->values[i]) {
        memcpy(m->keys + i * m->key_len, key, m->key_len);
        m->count++;
    }
    m->values[i] = value;
}

void *map_del(struct map *m, const void *key)
{
    if (!m->count)
        return NULL;
    size_t hole = find(m, key);
    void *value = m->values[hole];
    if (!value)
        return NULL;
    for (size_t i = (hole + 1) & (m->cap - 1); m->values[i]; i = (i + 1) & (m->cap - 1)) {
        size_t home = slot_of(m, key_at(m, i));
        if (((i - home) & (m->cap - 1)) < ((i - hole) & (m->cap - 1)))
            continue; /* it would move in front of its home */
        memcpy(m->keys + hole * m->key_len, key_at(m, i), m->key_len);
        m->values[hole] = m->values[i];
        hole = i;
    }
    m->values[hole] = NULL;
    m->count--;
    return value;
}

void map_clear(struct map *m)
{
    if (m->cap)
        memset(m->values, 0, m->cap * sizeof *m->values);
    m->count = 0;
}

void *map_next(const struct map *m, size_t *pos)
{
    while (*pos < m->cap) {
        void *v = m->values[(*pos)++];
        if (v)
            return v;
    }
    return NULL;
}
