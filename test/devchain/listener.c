/* See listener.h. */
#include "listener.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"

struct entry {
    struct list watches;
};

struct finality_entry {
    struct list node; /* in block_order */
    uint8_t block[32];
    uint8_t (*txs)[32];
    size_t count, cap;
};

static const struct {
    const char *name;
    bool final;
} STATUS[] = {
    [STATUS_FUTURE] = {"future", false},
    [STATUS_READY] = {"ready", false},
    [STATUS_BROADCAST] = {"broadcast", false},
    [STATUS_IN_BLOCK] = {"inBlock", false},
    [STATUS_RETRACTED] = {"retracted", false},
    [STATUS_FINALITY_TIMEOUT] = {"finalityTimeout", true},
    [STATUS_FINALIZED] = {"finalized", true},
    [STATUS_USURPED] = {"usurped", true},
    [STATUS_DROPPED] = {"dropped", true},
    [STATUS_INVALID] = {"invalid", true},
};

bool pool_status_final(enum pool_status s)
{
    return STATUS[s].final;
}

const char *pool_status_name(enum pool_status s)
{
    return STATUS[s].name;
}

void listener_init(struct listener *l, size_t max_finality_blocks, listener_cb cb, void *arg)
{
    *l = (struct listener){.max_blocks = max_finality_blocks, .cb = cb, .arg = arg};
    map_init(&l->entries, 32);
    map_init(&l->blocks, 32);
    list_init(&l->block_order);
}

static void forget_block(struct listener *l, struct finality_entry *f)
{
    map_del(&l->blocks, f->block);
    list_remove(&f->node);
    free(f->txs);
    free(f);
}

void listener_done(struct listener *l)
{
    size_t pos = 0;
    for (struct entry *e; (e = map_next(&l->entries, &pos));)
        free(e);
    map_done(&l->entries);
    while (!list_empty(&l->block_order))
        forget_block(l, CONTAINER_OF(list_first(&l->block_order), struct finality_entry, node));
    map_done(&l->blocks);
}

void listener_watch(struct listener *l, struct watch *w, const uint8_t hash[32])
{
    struct entry *e = map_get(&l->entries, hash);
    if (!e) {
        e = xmalloc(sizeof *e);
        list_init(&e->watches);
        map_put(&l->entries, hash, e);
    }
    memcpy(w->hash, hash, 32);
    list_append(&e->watches, &w->node);
}

void listener_unwatch(struct listener *l, struct watch *w)
{
    if (!list_linked(&w->node))
        return;
    list_remove(&w->node);
    struct entry *e = map_get(&l->entries, w->hash);
    if (e && list_empty(&e->watches)) {
        map_del(&l->entries, w->hash);
        free(e);
    }
}

bool listener_watched(const struct listener *l, const uint8_t hash[32])
{
    return map_get(&l->entries, hash) != NULL;
}

void listener_tell(struct listener *l, const uint8_t tx[32], enum pool_status status,
                   const uint8_t *hash)
{
    struct entry *e = map_get(&l->entries, tx);
    if (!e)
        return;
    if (!STATUS[status].final) {
        LIST_EACH (n, &e->watches)
            l->cb(l->arg, CONTAINER_OF(n, struct watch, node), status, hash);
        return;
    }
    map_del(&l->entries, tx);
    while (!list_empty(&e->watches)) {
        struct list *n = list_first(&e->watches);
        list_remove(n);
        l->cb(l->arg, CONTAINER_OF(n, struct watch, node), status, hash);
    }
    free(e);
}

static struct finality_entry *finality_entry(struct listener *l, const uint8_t block[32])
{
    struct finality_entry *f = map_get(&l->blocks, block);
    if (f)
        return f;
    f = xcalloc(1, sizeof *f);
    memcpy(f->block, block, 32);
    map_put(&l->blocks, block, f);
    list_append(&l->block_order, &f->node);
    if (l->blocks.count > l->max_blocks) {
        struct finality_entry *oldest =
            CONTAINER_OF(list_first(&l->block_order), struct finality_entry, node);
        for (size_t i = 0; i < oldest->count; i++)
            listener_tell(l, oldest->txs[i], STATUS_FINALITY_TIMEOUT, oldest->block);
        forget_block(l, oldest);
    }
    return f;
}

void listener_in_block(struct listener *l, const uint8_t tx[32], const uint8_t block[32])
{
    if (!listener_watched(l, tx))
        return;
    listener_tell(l, tx, STATUS_IN_BLOCK, block);
    struct finality_entry *f = finality_entry(l, block);
    if (f->count == f->cap) {
        f->cap = f->cap ? f->cap * 2 : 8;
        f->txs = xrealloc(f->txs, f->cap * sizeof *f->txs);
    }
    memcpy(f->txs[f->count++], tx, 32);
}

void listener_retracted(struct listener *l, const uint8_t block[32])
{
    struct finality_entry *f = map_get(&l->blocks, block);
    if (!f)
        return;
    for (size_t i = 0; i < f->count; i++)
        listener_tell(l, f->txs[i], STATUS_RETRACTED, block);
    forget_block(l, f);
}

void listener_finalized(struct listener *l, const uint8_t block[32])
{
    struct finality_entry *f = map_get(&l->blocks, block);
    if (!f)
        return;
    for (size_t i = 0; i < f->count; i++)
        listener_tell(l, f->txs[i], STATUS_FINALIZED, block);
    forget_block(l, f);
}
