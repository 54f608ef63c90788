/* uthash with a hash of ours: its own one falls through switch labels, which our warnings refuse. Keys are
 * ids and names that our own users chose. Private to store/. */
#ifndef STORE_HASH_H
#define STORE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a, folded once so that the low bits, which uthash takes, depend on all. */
static inline uint32_t hash__bytes(const void *data, size_t n)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (const uint8_t *p = data; n; n--)
        h = (h ^ *p++) * UINT64_C(1099511628211);
    return (uint32_t)(h ^ h >> 32);
}

#define HASH_FUNCTION(key, len, hash) ((hash) = hash__bytes((key), (len)))
#include <uthash.h>

#endif
