/* The ban list: hashes that a submission is refused for, until they lapse. Lapsed ones are cleared
 * only when a block is handled. Its size is bounded; those that lapse first go first. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "pool_internal.h"

enum { BANS_EXPECTED_MIN = 2048 };

struct ban {
    struct list node;
    uint8_t hash[32];
    uint64_t until_ms;
};

bool pool_banned(const struct pool *p, const uint8_t hash[32])
{
    return map_get(&p->bans, hash) != NULL;
}

static void remove_ban(struct pool *p, struct ban *b)
{
    map_del(&p->bans, b->hash);
    list_remove(&b->node);
    free(b);
}

static struct ban *oldest(struct pool *p)
{
    return CONTAINER_OF(list_first(&p->ban_order), struct ban, node);
}

/* The first of the order that lapses later. Its length may have been changed (dev_set), so a new
 * ban is not always the last to lapse. */
static struct list *later_than(struct pool *p, uint64_t until_ms)
{
    struct list *at = &p->ban_order;
    while (at->prev != &p->ban_order &&
           CONTAINER_OF(at->prev, struct ban, node)->until_ms > until_ms)
        at = at->prev;
    return at;
}

void pool_ban(struct pool *p, uint64_t now_ms, const uint8_t hash[32])
{
    struct ban *b = map_get(&p->bans, hash);
    if (b) {
        list_remove(&b->node);
    } else {
        b = xcalloc(1, sizeof *b);
        memcpy(b->hash, hash, 32);
        map_put(&p->bans, hash, b);
    }
    b->until_ms = now_ms + p->config.ban_ms;
    list_append(later_than(p, b->until_ms), &b->node);
    size_t expected = p->config.ready_count_max + p->config.future_count_max;
    if (expected < BANS_EXPECTED_MIN)
        expected = BANS_EXPECTED_MIN;
    if (p->bans.count > 2 * expected)
        while (p->bans.count > expected)
            remove_ban(p, oldest(p));
}

void pool__bans_expire(struct pool *p, uint64_t now_ms)
{
    while (!list_empty(&p->ban_order) && oldest(p)->until_ms <= now_ms)
        remove_ban(p, oldest(p));
}

void pool_clear_bans(struct pool *p)
{
    while (!list_empty(&p->ban_order))
        remove_ban(p, oldest(p));
}

void pool__bans_done(struct pool *p)
{
    pool_clear_bans(p);
    map_done(&p->bans);
}
