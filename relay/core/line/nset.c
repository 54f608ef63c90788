/* A set of nonces as a bitmap with two summary levels, so that "the lowest unsent nonce" costs the
 * same with ten rows and with a million. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "line_internal.h"

void nset_init(struct nset *s, size_t bits)
{
    for (int i = 0; i < 3; i++) {
        bits = (bits + 63) / 64;
        s->words[i] = bits;
        s->level[i] = xcalloc(bits, sizeof(uint64_t));
    }
    s->count = 0;
}

void nset_done(struct nset *s)
{
    for (int i = 0; i < 3; i++)
        free(s->level[i]);
    memset(s, 0, sizeof(*s));
}

/* Climb until a level shows one to the right, descend. */
size_t nset_from(const struct nset *s, size_t i)
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
