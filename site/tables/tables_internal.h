/* Private to site/tables.
 *
 *   tables.c     requests, and what becomes of their answers
 *   knowledge.c  what the room knows
 *   best.c       hashes of the best chain
 *   states.c     what nodes and their blocks show of granted bytes
 *   limits.c     under which runtime, and until when, a transaction may be included */
#ifndef SITE_TABLES_INTERNAL_H
#define SITE_TABLES_INTERNAL_H

#include "base/table.h"
#include "site/tables/tables.h"

/* A transaction that the room has. */
struct known {
    uint64_t id;
    char outcome[16], error[200]; /* of a stop; "": nobody asked for one */
    uint32_t guard;               /* as in struct store_site_tx */
    struct site_terms terms;
    struct granted *granted; /* its bytes, the last ones first */
    UT_hash_handle hh;
};

/* Bytes that it was granted. */
struct granted {
    struct site_hash hash;
    struct known *known;
    struct granted *before;
    uint64_t number; /* the block of the best chain that has them, as of `round`; 0: none */
    uint8_t block[32];
    uint64_t round;
    UT_hash_handle hh;
};

/* All of an account's, by their ids; their bytes, by their hashes. */
struct knowledge {
    struct known *known;
    struct granted *granted;
};

struct known *knowledge_of(const struct knowledge *k, uint64_t id); /* NULL: it is not known */
bool knowledge_add(struct knowledge *k, uint64_t id, uint32_t guard,
                   const struct site_terms *terms);
void knowledge_grant(struct knowledge *k, uint64_t id, const struct site_hash *hash);
void knowledge_forget(struct knowledge *k, struct known *one);
void knowledge_forget_all(struct knowledge *k);
uint64_t knowledge_granted(const struct knowledge *k, const void *hash); /* to whom; 0: nobody */

struct granted *knowledge_bytes(const struct knowledge *k, const void *hash); /* NULL: nobody's */

/* Hashes of the blocks from `first` on. */
struct best {
    uint64_t first;
    size_t count, room;
    uint8_t (*hashes)[32];
};

bool best_has(const struct best *b, const uint8_t hash[32]);
/* These follow the block before `first`, and nothing follows them. */
void best_take(struct best *b, uint64_t first, const uint8_t (*hashes)[32], size_t count);
void best_final(struct best *b, uint64_t number); /* up to there no fork comes any more */
void best_clear(struct best *b);

struct site_tables {
    struct site_tables_config config;
    int64_t epoch;       /* 0: it is not led */
    uint64_t generation; /* answers to older requests are ignored */
    bool loaded, polling;
    struct knowledge knowledge;
    const struct site_tables_block *block; /* the block whose effects the room receives now */
    struct best best;
    uint64_t rounds;
};

void tables_forget_best(struct site_tables *t);

#endif
