#include "base/rng.h"

#include "base/check.h"

uint64_t rng_next(struct rng *r)
{
    uint64_t z = (r->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
    PRE(n > 0);
    return rng_next(r) % n;
}

uint64_t rng_between(struct rng *r, uint64_t lo, uint64_t hi)
{
    PRE(lo <= hi);
    return lo + rng_below(r, hi - lo + 1);
}
