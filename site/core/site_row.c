/* The rows of a sender: each transaction of this site, the bytes that were granted for it, and
 * which of these can still be included. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/plant.h"
#include "site_internal.h"

struct site_tx *site__tx(struct site_core *c, uint64_t id)
{
    struct site_tx *t;
    HASH_FIND(hh, c->txs, &id, sizeof(id), t);
    return t;
}

static struct site_tx *add(struct site_core *c, uint64_t id, enum site_tx_state state)
{
    struct site_tx *t = xcalloc(1, sizeof(*t));
    t->id = id;
    t->state = state;
    t->delegate = SITE_NOBODY;
    site__tx_begins(c, state);
    HASH_ADD(hh, c->txs, id, sizeof(t->id), t);
    return t;
}

struct site_tx *site__add_tx(struct site_core *c, uint64_t id)
{
    struct site_tx *t = site__tx(c, id);
    return t ? t : add(c, id, SITE_TX_WAITING);
}

struct site_grant *site__add_grant(struct site_tx *t, const struct site_bytes *bytes,
                                   uint32_t delegate)
{
    if (t->grant_count == t->grant_cap) {
        t->grant_cap = t->grant_cap ? t->grant_cap * 2 : 2;
        t->grants = xrealloc(t->grants, t->grant_cap * sizeof(*t->grants));
    }
    struct site_grant *g = &t->grants[t->grant_count++];
    *g = (struct site_grant){.bytes = *bytes, .delegate = delegate};
    return g;
}

void site__remove_tx(struct site_core *c, struct site_tx *t)
{
    HASH_DEL(c->txs, t);
    free(t->grants);
    free(t);
}

void site__free_txs(struct site_core *c)
{
    struct site_tx *t, *next;
    HASH_ITER(hh, c->txs, t, next)
    {
        site__remove_tx(c, t);
    }
}

size_t site__open_rows(const struct site_core *c)
{
    return HASH_COUNT(c->txs);
}

/* ---- what can still be included ---- */

bool site__dead(const struct site_core *c, const struct site_bytes *bytes)
{
    uint64_t read = PLANTED(SITE_UNFINAL) ? c->height : c->final;
    return bytes->death <= read || bytes->nonce < c->final_next[bytes->key];
}

struct site_grant *site__grant_of(struct site_tx *t, const struct site_hash *hash)
{
    for (size_t i = 0; i < t->grant_count; i++)
        if (site__same(&t->grants[i].bytes.hash, hash))
            return &t->grants[i];
    return NULL;
}

/* The newest bytes that may be included and are stored; NULL: none. */
struct site_grant *site__live_grant(const struct site_core *c, const struct site_tx *t)
{
    for (size_t i = t->grant_count; i > 0; i--)
        if (t->grants[i - 1].stored && !site__dead(c, &t->grants[i - 1].bytes))
            return &t->grants[i - 1];
    return NULL;
}

void site__load_row(struct site_core *c, const struct site_row *row)
{
    size_t count = PLANTED(SITE_FORGETFUL) ? 0 : row->count;
    bool live = false;
    for (size_t i = 0; i < count; i++)
        live |= !site__dead(c, &row->attempts[i]);
    struct site_tx *t = add(c, row->id, live ? SITE_TX_GRANTED : SITE_TX_WAITING);
    for (size_t i = 0; i < count; i++)
        site__add_grant(t, &row->attempts[i], c->config.self)->stored = true;
    t->cancel = row->cancel;
}
