/* Blocks of the best chain that are not final: which of them have granted bytes. They are read only
 * while there are such bytes, each block once, and whatever site has sent the bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "sites/sites.h"

enum { BEST_MOST = 256 }; /* the last ones alone are read of a chain that is not final for longer */

static void add_block(struct sites_best *b, const struct node_head *head)
{
    static const uint8_t unknown[32];
    b->nameless = b->nameless || !memcmp(head->hash, unknown, sizeof(unknown));
    if (b->count == b->room) {
        b->room = b->room ? b->room * 2 : 16;
        b->hashes = xrealloc(b->hashes, b->room * sizeof(*b->hashes));
    }
    memcpy(b->hashes[b->count++], head->hash, sizeof(*b->hashes));
}

static bool has(struct node_ask *a, const uint8_t parent[32])
{
    struct sites_best *b = CONTAINER_OF(a, struct sites_best, ask);
    if (site_tables_best_has(b->host->tables, parent))
        return true;
    add_block(b, &a->head);
    return false;
}

static void each(struct node_ask *a, const struct node_included *x)
{
    struct sites_best *b = CONTAINER_OF(a, struct sites_best, ask);
    if (!site_tables_id_of(b->host->tables, x->tx.hash))
        return;
    sites_taken(b->host, x->tx.nonce);
    if (b->seen_count == b->seen_room) {
        b->seen_room = b->seen_room ? b->seen_room * 2 : 16;
        b->seen = xrealloc(b->seen, b->seen_room * sizeof(*b->seen));
    }
    struct site_tables_seen *s = &b->seen[b->seen_count++];
    s->number = a->head.number;
    memcpy(s->block, a->head.hash, sizeof(s->block));
    memcpy(s->hash, x->tx.hash, sizeof(s->hash));
}

/* They came from the best one down. */
static void turn(struct sites_best *b)
{
    uint8_t kept[32];
    for (size_t i = 0, k = b->count - 1; i < k; i++, k--) {
        memcpy(kept, b->hashes[i], 32);
        memcpy(b->hashes[i], b->hashes[k], 32);
        memcpy(b->hashes[k], kept, 32);
    }
}

static void on_blocks(struct node_ask *a)
{
    struct sites_best *b = CONTAINER_OF(a, struct sites_best, ask);
    struct site_host *h = b->host;
    b->asking = false;
    buf_clear(&b->all);
    if (a->err.code || !a->head.number || h->phase != HOST_LED || b->epoch != h->epoch)
        return; /* the next block asks again */
    add_block(b, &a->head);
    if (b->nameless)
        return;
    turn(b);
    site_tables_best(h->tables,
                     &(struct site_tables_best){.first = a->head.number,
                                                .hashes = (const uint8_t(*)[32])b->hashes,
                                                .count = b->count,
                                                .seen = b->seen,
                                                .seen_count = b->seen_count});
    if (b->behind)
        sites_best(h);
}

void sites_best(struct site_host *h)
{
    struct sites_best *b = &h->best;
    struct node *node = h->room->room.service->node;
    const struct node_info *info = node_info(node);
    struct site_account_view v;
    site_account_view(h->site, &v);
    b->behind = b->asking;
    if (b->asking || !info || !h->read || !v.core.granted || info->best_number <= h->read ||
        site_tables_best_has(h->tables, info->best_hash))
        return;
    uint64_t most = info->best_number > BEST_MOST ? info->best_number - BEST_MOST : 0;
    b->host = h;
    b->epoch = h->epoch;
    b->asking = true;
    b->nameless = false;
    b->count = b->seen_count = 0;
    node_ask_above(node, &b->ask, h->read > most ? h->read : most, &b->all, each, on_blocks);
    b->ask.has = has;
}

void sites_best_free(struct site_host *h)
{
    buf_done(&h->best.all);
    free(h->best.hashes);
    free(h->best.seen);
}
