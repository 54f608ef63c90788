/* uthash with a hash function of ours: its own one falls through switch labels, which our warnings refuse,
 * and is not made for the short keys that we have. Private to listen/. */
#ifndef LISTEN_HASH_H
#define LISTEN_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Eight bytes a step, each mixed by splitmix64's finisher. Account ids and numbers are not an attacker's to
 * choose: the database gives the numbers, and an id takes a registration. */
static inline unsigned listen__hash(const void *key, size_t len)
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
    return (unsigned)(h ^ (h >> 32));
}

#define HASH_FUNCTION(key, len, hash) ((hash) = listen__hash((key), (len)))

#include <uthash.h>

#endif
