/* What the files of the line call of each other. */
#ifndef RELAY_LINE_INTERNAL_H
#define RELAY_LINE_INTERNAL_H

#include "base/check.h"
#include "base/plant.h"
#include "relay/core/line/line.h"

struct hash_entry {
    uint32_t key;   /* of the hash; 0: free */
    uint32_t nonce; /* its low bits: there are never that many rows */
};

/* nset.c */
void nset_init(struct nset *s, size_t bits);
void nset_done(struct nset *s);
size_t nset_from(const struct nset *s,
                 size_t i); /* the first member at or above i; SIZE_MAX: none */

static inline bool nset_has(const struct nset *s, size_t i)
{
    return s->level[0][i >> 6] >> (i & 63) & 1;
}

static inline void nset_add(struct nset *s, size_t i)
{
    s->count++;
    for (int k = 0; k < 3; k++, i >>= 6)
        s->level[k][i >> 6] |= (uint64_t)1 << (i & 63);
}

static inline void nset_remove(struct nset *s, size_t i)
{
    s->count--;
    for (int k = 0; k < 3; k++, i >>= 6) {
        s->level[k][i >> 6] &= ~((uint64_t)1 << (i & 63));
        if (s->level[k][i >> 6])
            return;
    }
}

/* line.c */
static inline bool line__has(const struct line *line, unsigned set, const struct row *row)
{
    return nset_has(&line->sets[set], row->nonce & (line->cap - 1));
}
void line__change(struct line *line, unsigned set, const struct row *row, bool member);
static inline void line__put(struct line *line, unsigned set, const struct row *row, bool member)
{
    if (line__has(line, set, row) != member)
        line__change(line, set, row, member);
}

/* hashes.c */
void line__hash_add(struct line *line, const uint8_t hash[32], uint64_t nonce);
void line__hash_remove(struct line *line, const uint8_t hash[32], uint64_t nonce);

/* eras.c */
void line__era_put(struct line *line, uint64_t death, uint64_t nonce);

/* row.c */
bool row__held(const struct row *row);
void line__row_free(struct row *row);

/* row_table.c: a row's change of state, as the table has it or not */
void line__moves(struct line *line, uint64_t nonce, unsigned from, unsigned to);

#endif
