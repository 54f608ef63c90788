/* A hash map from fixed-length binary keys to pointers: open addressing, keys copied. Made for keys
 * whose bytes are already well spread (hashes, account ids, counters mixed in). */
#ifndef DEVCHAIN_MAP_H
#define DEVCHAIN_MAP_H

#include <stddef.h>
#include <stdint.h>

enum { MAP_KEY_MAX = 40 };

struct map {
    size_t key_len;
    size_t count;
    size_t cap; /* power of two, or 0 */
    uint8_t *keys;
    void **values; /* NULL marks a free slot */
};

void map_init(struct map *m, size_t key_len);
void map_done(struct map *m);
void *map_get(const struct map *m, const void *key);
void map_put(struct map *m, const void *key, void *value); /* value not NULL; replaces */
void *map_del(struct map *m, const void *key);             /* the removed value or NULL */
void map_clear(struct map *m);                             /* forgets all, keeps the memory */
/* Iterate: start with *pos = 0; NULL at the end. No change of the map in between. */
void *map_next(const struct map *m, size_t *pos);

#endif
