/* The cursor's memory: pending rows by place (account, nonce) and by id, look-ups of ended rows,
 * and the delivered ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "cursor_internal.h"

static struct place place_of(int32_t account, int64_t nonce)
{
    return (struct place){.account = account, .nonce = nonce};
}

/* ---- pending rows ---- */

struct known *cursor__at(struct cursor *c, int32_t account, int64_t nonce)
{
    struct place p = place_of(account, nonce);
    struct known *k;
    HASH_FIND(by_place, c->places, &p, sizeof(p), k);
    return k;
}

struct known *cursor__with_id(struct cursor *c, int64_t id)
{
    struct known *k = NULL;
    if (id)
        HASH_FIND(by_id, c->ids, &id, sizeof(id), k);
    return k;
}

static void fill(struct known *k, const struct listen_event *row)
{
    k->updated_us = row->updated_at_us;
    k->has_block = row->has_block;
    k->block_number = row->block_number;
    memcpy(k->hash, row->hash, sizeof(k->hash));
    memset(k->block_hash, 0, sizeof(k->block_hash));
    if (row->has_block)
        memcpy(k->block_hash, row->block_hash, sizeof(k->block_hash));
    snprintf(k->state, sizeof(k->state), "%s", row->state ? row->state : "");
    snprintf(k->trace, sizeof(k->trace), "%s", row->trace ? row->trace : "");
}

struct known *cursor__learn(struct cursor *c, const struct listen_event *row, bool confirmed)
{
    PRE(!cursor__at(c, row->account, row->nonce));
    struct known *k = xcalloc(1, sizeof(*k));
    k->place = place_of(row->account, row->nonce);
    k->id = row->id;
    k->mark = c->mark;
    k->confirmed = confirmed;
    c->unconfirmed += !confirmed;
    fill(k, row);
    HASH_ADD(by_place, c->places, place, sizeof(k->place), k);
    if (k->id)
        HASH_ADD(by_id, c->ids, id, sizeof(k->id), k);
    c->count++;
    return k;
}

void cursor__confirm(struct cursor *c, struct known *k)
{
    c->unconfirmed -= !k->confirmed;
    k->confirmed = true;
}

void cursor__update(struct known *k, const struct listen_event *row)
{
    fill(k, row);
}

bool cursor__same(const struct known *k, const struct listen_event *row)
{
    return k->has_block == row->has_block && !memcmp(k->hash, row->hash, sizeof(k->hash)) &&
           (!row->has_block || !memcmp(k->block_hash, row->block_hash, sizeof(k->block_hash))) &&
           !strcmp(k->state, row->state ? row->state : "");
}

static void unlink_known(struct cursor *c, struct known *k)
{
    cursor__confirm(c, k); /* it is not counted any more */
    HASH_DELETE(by_place, c->places, k);
    if (k->id)
        HASH_DELETE(by_id, c->ids, k);
    c->count--;
}

void cursor__forget(struct cursor *c, struct known *k)
{
    unlink_known(c, k);
    free(k);
}

struct listen_event cursor__event_of(const struct known *k, enum listen_kind kind)
{
    struct listen_event ev = {
        .kind = kind,
        .account = k->place.account,
        .id = k->id,
        .nonce = k->place.nonce,
        .has_hash = true,
        .has_block = k->has_block,
        .block_number = k->block_number,
        .state = k->state,
        .updated_at_us = k->updated_us,
        .alias = "",
        .outcome = "",
        .error = "",
        .creator = "",
        .trace = k->trace,
    };
    memcpy(ev.hash, k->hash, sizeof(ev.hash));
    memcpy(ev.block_hash, k->block_hash, sizeof(ev.block_hash));
    return ev;
}

/* ---- questions ---- */

/* Accounts count from one, so a transaction's key never equals a filler's. */
static struct place end_key(int32_t account, int64_t nonce, int64_t id)
{
    return id ? place_of(0, id) : place_of(account, nonce);
}

struct lookup *cursor__lookup_of(struct cursor *c, int32_t account, int64_t nonce, int64_t id)
{
    struct place p = end_key(account, nonce, id);
    struct lookup *l;
    HASH_FIND(hh, c->lookup_keys, &p, sizeof(p), l);
    return l;
}

void cursor__ask(struct cursor *c, struct known *k, const struct listen_event *row)
{
    int32_t account = k ? k->place.account : row->account;
    int64_t nonce = k ? k->place.nonce : row->nonce, id = k ? k->id : row->id;
    struct lookup *l = cursor__lookup_of(c, account, nonce, id);
    if (!l) {
        l = xcalloc(1, sizeof(*l));
        l->row = (struct known){.place = place_of(account, nonce), .id = id, .block_number = -1};
        l->key = end_key(account, nonce, id);
        list_append(&c->lookups, &l->node);
        HASH_ADD(hh, c->lookup_keys, key, sizeof(l->key), l);
    }
    if (k) {
        unlink_known(c, k);
        if (l->hint) { /* a scan gives the reason now: what the hint said of it does not count */
            l->hint = false;
            c->hint_count--;
            l->outcome[0] = 0;
        }
        l->told = true;
        l->row.place = k->place;
        l->row.updated_us = k->updated_us;
        l->row.has_block = k->has_block;
        l->row.block_number = k->block_number;
        memcpy(l->row.hash, k->hash, sizeof(k->hash));
        memcpy(l->row.block_hash, k->block_hash, sizeof(k->block_hash));
        memcpy(l->row.state, k->state, sizeof(k->state));
        memcpy(l->row.trace, k->trace, sizeof(k->trace));
        free(k);
    }
    if (!row || !row->outcome || !row->outcome[0])
        return;
    snprintf(l->outcome, sizeof(l->outcome), "%s", row->outcome);
    if (l->asked) { /* the answer in flight may be older than this end */
        l->asked = false;
        list_remove(&l->node);
        list_append(&c->lookups, &l->node);
    }
}

void cursor__ask_hint(struct cursor *c, const struct listen_event *row)
{
    PRE(row->id && row->outcome[0] && !cursor__lookup_of(c, row->account, row->nonce, row->id));
    cursor__ask(c, NULL, row);
    cursor__lookup_of(c, row->account, row->nonce, row->id)->hint = true;
    c->hint_count++;
}

void cursor__lookup_drop(struct cursor *c, struct lookup *l)
{
    c->hint_count -= l->hint;
    list_remove(&l->node);
    HASH_DELETE(hh, c->lookup_keys, l);
    list_append(&c->spent, &l->node);
}

void cursor__free_spent(struct cursor *c)
{
    for (struct list *n = list_first(&c->spent); n; n = list_first(&c->spent)) {
        list_remove(n);
        free(CONTAINER_OF(n, struct lookup, node));
    }
}

/* ---- delivered ends ---- */

static struct told *delivered_of(struct cursor *c, const struct listen_event *row)
{
    struct place p = end_key(row->account, row->nonce, row->id);
    struct told *t;
    HASH_FIND(hh, c->told, &p, sizeof(p), t);
    return t;
}

bool cursor__was_delivered(struct cursor *c, const struct listen_event *row)
{
    struct told *t = delivered_of(c, row);
    /* A nonce can end more than once as a filler, a transaction only once. */
    return t && !t->removed && (row->id || t->at_us >= row->updated_at_us);
}

bool cursor__is_past(struct cursor *c, const struct listen_event *row)
{
    struct told *t = delivered_of(c, row);
    return t && t->removed ? row->updated_at_us < t->at_us : cursor__was_delivered(c, row);
}

static void drop_delivered(struct cursor *c, struct told *t)
{
    list_remove(&t->node);
    HASH_DELETE(hh, c->told, t);
    free(t);
    c->delivered_count--;
}

void cursor__remember(struct cursor *c, const struct listen_event *row, bool removed)
{
    struct told *t = delivered_of(c, row);
    if (t)
        drop_delivered(c, t);
    t = xcalloc(1, sizeof(*t));
    t->place = end_key(row->account, row->nonce, row->id);
    t->at_us = row->updated_at_us;
    t->removed = removed;
    HASH_ADD(hh, c->told, place, sizeof(t->place), t);
    list_append(&c->delivered_order, &t->node);
    c->delivered_count++;
    if (c->delivered_count > c->config.remembered_max)
        drop_delivered(c, CONTAINER_OF(list_first(&c->delivered_order), struct told, node));
}

void cursor__forget_delivered(struct cursor *c, int64_t before_us)
{
    for (struct list *n = list_first(&c->delivered_order); n; n = list_first(&c->delivered_order)) {
        struct told *t = CONTAINER_OF(n, struct told, node);
        if (t->at_us >= before_us)
            return;
        drop_delivered(c, t);
    }
}
