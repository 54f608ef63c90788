/* The transactions that the room knows, and the bytes that they were granted. */
#include <stdlib.h>

#include "base/alloc.h"
#include "tables_internal.h"

struct known *knowledge_of(const struct knowledge *k, uint64_t id)
{
    struct known *one;
    HASH_FIND(hh, k->known, &id, sizeof(id), one);
    return one;
}

bool knowledge_add(struct knowledge *k, uint64_t id, uint32_t guard, const struct site_terms *terms)
{
    struct known *one = knowledge_of(k, id);
    if (one) {
        one->terms = *terms;
        return false;
    }
    one = xcalloc(1, sizeof(*one));
    *one = (struct known){.id = id, .guard = guard, .terms = *terms};
    HASH_ADD(hh, k->known, id, sizeof(one->id), one);
    return true;
}

struct granted *knowledge_bytes(const struct knowledge *k, const void *hash)
{
    struct granted *g;
    HASH_FIND(hh, k->granted, hash, sizeof(g->hash), g);
    return g;
}

void knowledge_grant(struct knowledge *k, uint64_t id, const struct site_hash *hash)
{
    struct known *one = knowledge_of(k, id);
    if (!one || knowledge_bytes(k, hash))
        return;
    struct granted *g = xcalloc(1, sizeof(*g));
    *g = (struct granted){.hash = *hash, .known = one, .before = one->granted};
    one->granted = g;
    HASH_ADD(hh, k->granted, hash, sizeof(g->hash), g);
}

void knowledge_forget(struct knowledge *k, struct known *one)
{
    for (struct granted *g = one->granted, *before; g; g = before) {
        before = g->before;
        HASH_DELETE(hh, k->granted, g);
        free(g);
    }
    HASH_DELETE(hh, k->known, one);
    free(one);
}

void knowledge_forget_all(struct knowledge *k)
{
    struct known *one, *next;
    HASH_ITER(hh, k->known, one, next)
    knowledge_forget(k, one);
}

uint64_t knowledge_granted(const struct knowledge *k, const void *hash)
{
    const struct granted *g = knowledge_bytes(k, hash);
    return g ? g->known->id : 0;
}
