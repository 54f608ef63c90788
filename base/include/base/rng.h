/* A small seeded generator (splitmix64) for jitter and for the simulator. Never for keys. */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdint.h>

struct rng {
    uint64_t state;
};

uint64_t rng_next(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t n);                 /* 0 .. n-1, n > 0 */
uint64_t rng_between(struct rng *r, uint64_t lo, uint64_t hi); /* lo .. hi */

#endif
