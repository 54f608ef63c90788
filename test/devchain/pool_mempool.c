/* See pool_mempool.h. */
#include "pool_mempool.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"

struct mempool *mempool_new(void)
{
    struct mempool *m = xcalloc(1, sizeof *m);
    map_init(&m->by_hash, 32);
    list_init(&m->order);
    return m;
}

static struct mem_tx *entry(const struct list *n)
{
    return CONTAINER_OF(n, struct mem_tx, node);
}

void mempool_free(struct mempool *m)
{
    while (!list_empty(&m->order))
        mempool_remove(m, entry(list_first(&m->order)));
    map_done(&m->by_hash);
    free(m);
}

struct mem_tx *mempool_find(const struct mempool *m, const uint8_t hash[32])
{
    return map_get(&m->by_hash, hash);
}

struct mem_tx *mempool_add(struct mempool *m, struct tx *tx)
{
    struct mem_tx *e = xcalloc(1, sizeof *e);
    e->tx = tx_ref(tx);
    e->validated_at = m->finalized;
    e->in_view_since = m->best;
    map_put(&m->by_hash, tx->hash, e);
    list_append(&m->order, &e->node);
    m->bytes += tx->len;
    return e;
}

void mempool_remove(struct mempool *m, struct mem_tx *e)
{
    map_del(&m->by_hash, e->tx->hash);
    list_remove(&e->node);
    m->bytes -= e->tx->len;
    tx_unref(e->tx);
    free(e);
}

void mempool_hashes(const struct mempool *m, struct buf *ret_hashes)
{
    LIST_EACH (n, &m->order)
        buf_put(ret_hashes, entry(n)->tx->hash, 32);
}

/* The next victim after `last` in the order of priority and age; NULL: there is none. `last` NULL:
 * the first. */
static const struct mem_tx *next_victim(const struct mempool *m, uint64_t below,
                                        const struct mem_tx *last)
{
    const struct mem_tx *found = NULL;
    bool passed = last == NULL;
    LIST_EACH (n, &m->order) {
        const struct mem_tx *e = entry(n);
        bool after =
            !last || e->priority > last->priority || (e->priority == last->priority && passed);
        if (after && e->priority < below && (!found || e->priority < found->priority))
            found = e;
        passed = passed || e == last;
    }
    return found;
}

bool mempool_room(const struct mempool *m, size_t count_max, size_t bytes_max, uint64_t priority,
                  size_t len, struct buf *ret_victims)
{
    size_t count = m->by_hash.count + 1, bytes = m->bytes + len;
    const struct mem_tx *e = NULL;
    while (count > count_max || bytes > bytes_max) {
        e = next_victim(m, priority, e);
        if (!e)
            return false;
        buf_put(ret_victims, e->tx->hash, 32);
        count--;
        bytes -= e->tx->len;
    }
    return true;
}
