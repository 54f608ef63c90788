/* The hash table of the rpc: chains of intrusive list nodes. It doubles when its load exceeds
 * one. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "rpc_internal.h"

enum { FIRST_BUCKETS = 16 };

static struct list *buckets_new(size_t count)
{
    struct list *buckets = xcalloc(count, sizeof(*buckets));
    for (size_t i = 0; i < count; i++)
        list_init(&buckets[i]);
    return buckets;
}

void rpc__table_init(struct rpc_table *t)
{
    *t = (struct rpc_table){.buckets = buckets_new(FIRST_BUCKETS), .bucket_count = FIRST_BUCKETS};
}

void rpc__table_done(struct rpc_table *t)
{
    INVARIANT(t->count == 0);
    free(t->buckets);
    *t = (struct rpc_table){0};
}

struct list *rpc__table_bucket(const struct rpc_table *t, uint64_t hash)
{
    PRE(t->bucket_count > 0);
    return &t->buckets[hash & (t->bucket_count - 1)];
}

static void table_grow(struct rpc_table *t, uint64_t (*hash_of)(struct list *))
{
    struct rpc_table old = *t;
    t->bucket_count *= 2;
    t->buckets = buckets_new(t->bucket_count);
    for (size_t i = 0; i < old.bucket_count; i++) {
        for (struct list *n = list_first(&old.buckets[i]); n; n = list_first(&old.buckets[i])) {
            list_remove(n);
            list_append(rpc__table_bucket(t, hash_of(n)), n);
        }
    }
    free(old.buckets);
}

void rpc__table_add(struct rpc_table *t, struct list *node, uint64_t hash,
                    uint64_t (*hash_of)(struct list *))
{
    PRE(!list_linked(node));
    if (t->count >= t->bucket_count)
        table_grow(t, hash_of);
    list_append(rpc__table_bucket(t, hash), node);
    t->count++;
}

void rpc__table_remove(struct rpc_table *t, struct list *node)
{
    if (!list_linked(node))
        return;
    PRE(t->count > 0);
    list_remove(node);
    t->count--;
}
