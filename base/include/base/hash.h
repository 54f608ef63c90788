/* A hash of bytes for tables in memory. The layers that use uthash give it as HASH_FUNCTION:
 * uthash's own falls through switch labels, which our warnings refuse. Not for keys that an
 * attacker may choose. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Eight bytes a step, each mixed by splitmix64's finisher. */
static inline uint32_t hash_bytes(const void *key, size_t len)
{
    uint64_t h = len;
    for (const uint8_t *at = key; len > 0;) {
        uint64_t word = 0;
        size_t n = len < 8 ? len : 8;
        memcpy(&word, at, n);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
        h ^= h >> 27;
        at += n;
        len -= n;
    }
    return (uint32_t)(h ^ (h >> 32));
}

#endif
