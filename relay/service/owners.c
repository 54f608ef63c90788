/* Whose extrinsics a block holds. A node makes up how many a block has, and the relay may lead ten
 * thousand accounts, so no extrinsic is compared with each account: what the accounts have on
 * record is in one index by hash, made anew when a leader's rows may have changed and as many
 * questions came as it costs. */
#include "service/owners.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/plant.h"
#include "service/service_internal.h"

enum { INDEX_MIN = 64 };

struct owner_entry {
    uint32_t key;   /* of the hash */
    uint32_t owner; /* account + 1; 0: free */
};

static bool on_record(const struct account *a, const uint8_t hash[32])
{
    if (!a || a->role != ACCOUNT_LEADER)
        return false;
    return a->site ? service_sites_knows(a, hash) : manager_knows(a->manager, hash);
}

static struct account *signer_of(struct service *s, const struct node_included *x)
{
    struct account *a = NULL;
    if (x->signer_len)
        HASH_FIND(hh, s->by_id, x->signer, (unsigned)x->signer_len, a);
    return a;
}

/* ---- what is on record ---- */

static uint32_t key_of(const uint8_t hash[32])
{
    uint64_t bytes;
    memcpy(&bytes, hash, sizeof(bytes));
    return (uint32_t)(bytes * 0x9e3779b97f4a7c15u >> 32);
}

static void put(struct owners *o, struct owner_entry e)
{
    size_t i = e.key & (o->cap - 1);
    while (o->entries[i].owner)
        i = (i + 1) & (o->cap - 1);
    o->entries[i] = e;
}

struct adding {
    struct owners *owners;
    uint32_t owner;
};

static void add(void *arg, const uint8_t hash[32])
{
    const struct adding *to = arg;
    struct owners *o = to->owners;
    if ((o->count + 1) * 2 > o->cap) {
        struct owner_entry *old = o->entries;
        size_t old_cap = o->cap;
        o->cap = old_cap ? old_cap * 2 : INDEX_MIN;
        o->entries = xcalloc(o->cap, sizeof(*o->entries));
        for (size_t i = 0; i < old_cap; i++)
            if (old[i].owner)
                put(o, old[i]);
        free(old);
    }
    put(o, (struct owner_entry){key_of(hash), to->owner});
    o->count++;
}

/* Accounts with sites keep their own books: they are few. */
static void index_records(struct service *s)
{
    struct owners *o = &s->owners;
    if (o->cap)
        memset(o->entries, 0, o->cap * sizeof(*o->entries));
    o->count = o->sited_count = 0;
    o->sited = xrealloc(o->sited, (s->account_count + 1) * sizeof(*o->sited));
    for (size_t i = 0; i < s->account_count; i++) {
        const struct account *a = &s->accounts[i];
        if (a->role == ACCOUNT_LEADER && a->site)
            o->sited[o->sited_count++] = (uint32_t)i;
        else if (a->role == ACCOUNT_LEADER)
            manager_each_hash(a->manager, add, &(struct adding){o, (uint32_t)i + 1});
    }
    o->indexed_at = s->account_events;
    o->indexed = true;
}

static struct account *indexed(struct service *s, const uint8_t hash[32])
{
    const struct owners *o = &s->owners;
    uint32_t key = key_of(hash);
    for (size_t k = 0; k < o->sited_count; k++)
        if (on_record(&s->accounts[o->sited[k]], hash))
            return &s->accounts[o->sited[k]];
    for (size_t i = key & (o->cap - 1); o->cap && o->entries[i].owner; i = (i + 1) & (o->cap - 1))
        if (o->entries[i].key == key && on_record(&s->accounts[o->entries[i].owner - 1], hash))
            return &s->accounts[o->entries[i].owner - 1];
    return NULL;
}

static struct account *recorded_by(struct service *s, const uint8_t hash[32])
{
    struct owners *o = &s->owners;
    if (o->indexed && o->indexed_at == s->account_events)
        return indexed(s, hash);
    if (o->compared_at != s->account_events)
        o->compared = 0;
    o->compared_at = s->account_events;
    o->compared += s->account_count;
    if (o->compared > 4 * s->account_count + o->count) {
        index_records(s);
        return indexed(s, hash);
    }
    for (size_t i = 0; i < s->account_count; i++)
        if (on_record(&s->accounts[i], hash))
            return &s->accounts[i];
    return NULL;
}

struct account *owners_of(struct service *s, const struct node_included *x)
{
    struct account *signer = signer_of(s, x);
    if (PLANTED(DECODED_ONLY) || on_record(signer, x->tx.hash))
        return signer;
    struct account *a = recorded_by(s, x->tx.hash);
    return a ? a : signer;
}

/* ---- of one block ---- */

static bool is_same(const struct service *s, const struct node_block *b)
{
    const struct owners *o = &s->owners;
    return o->held == b ||
           (o->included && o->included == b->included && o->listed_at == s->account_events &&
            o->listed_count == b->included_count &&
            !memcmp(o->block, b->head.hash, sizeof(o->block)));
}

static void list(struct service *s, const struct node_block *b)
{
    struct owners *o = &s->owners;
    o->first = xrealloc(o->first, (s->account_count + 1) * sizeof(*o->first));
    o->next = xrealloc(o->next, (b->included_count + 1) * sizeof(*o->next));
    memset(o->first, 0, s->account_count * sizeof(*o->first));
    for (size_t j = b->included_count; j-- > 0;) {
        const struct account *a = owners_of(s, &b->included[j]);
        o->next[j] = a ? o->first[a->index] : 0;
        if (a)
            o->first[a->index] = (uint32_t)j + 1;
    }
    memcpy(o->block, b->head.hash, sizeof(o->block));
    o->listed_count = b->included_count;
    o->listed_at = s->account_events;
    o->included = b->included;
}

const struct node_included *owners_first(struct service *s, const struct account *a,
                                         const struct node_block *b)
{
    if (!b->included_count)
        return NULL;
    if (!is_same(s, b))
        list(s, b);
    uint32_t first = s->owners.first[a->index];
    return first ? &b->included[first - 1] : NULL;
}

const struct node_included *owners_next(const struct service *s, const struct node_block *b,
                                        const struct node_included *x)
{
    PRE(x >= b->included && (size_t)(x - b->included) < b->included_count);
    uint32_t next = s->owners.next[x - b->included];
    return next ? &b->included[next - 1] : NULL;
}

void owners_hold(struct service *s, const struct node_block *b)
{
    if (b && b->included_count && !is_same(s, b))
        list(s, b);
    s->owners.held = b;
}

void owners_done(struct owners *o)
{
    free(o->entries);
    free(o->sited);
    free(o->first);
    free(o->next);
    *o = (struct owners){0};
}
