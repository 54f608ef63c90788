/* Advisory locks of sessions, as Postgres has them: exclusive ones stack, and go with their
 * session; shared ones belong to an open transaction. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "mem/mem.h"

static struct mem_lock *find(const struct mem_db *db, enum mem_lock_kind kind, int64_t key)
{
    struct mem_lock_key k = {.kind = kind, .key = key};
    struct mem_lock *l;
    HASH_FIND(hh, db->locks, &k, sizeof(k), l);
    return l;
}

static struct mem_lock *make(struct mem_db *db, enum mem_lock_kind kind, int64_t key)
{
    struct mem_lock *l = find(db, kind, key);
    if (l)
        return l;
    l = xcalloc(1, sizeof(*l));
    l->key = (struct mem_lock_key){.kind = kind, .key = key};
    HASH_ADD(hh, db->locks, key, sizeof(l->key), l);
    return l;
}

static void drop_if_free(struct mem_db *db, struct mem_lock *l)
{
    if (l->owner || l->shared)
        return;
    HASH_DELETE(hh, db->locks, l);
    free(l);
}

bool mem__lock_free_for(const struct mem_session *s, enum mem_lock_kind kind, int64_t key)
{
    const struct mem_lock *l = find(s->db, kind, key);
    return !l || ((!l->owner || l->owner == s) && !l->shared);
}

bool mem__lock_take(struct mem_session *s, enum mem_lock_kind kind, int64_t key)
{
    if (!mem__lock_free_for(s, kind, key))
        return false;
    struct mem_lock *l = make(s->db, kind, key);
    l->owner = s;
    l->count++;
    return true;
}

bool mem__lock_drop(struct mem_session *s, enum mem_lock_kind kind, int64_t key)
{
    struct mem_lock *l = find(s->db, kind, key);
    if (!l || l->owner != s)
        return false;
    if (!--l->count)
        l->owner = NULL;
    drop_if_free(s->db, l);
    return true;
}

struct mem_session *mem__lock_owner(const struct mem_db *db, enum mem_lock_kind kind, int64_t key)
{
    const struct mem_lock *l = find(db, kind, key);
    return l ? l->owner : NULL;
}

bool mem__lock_held(const struct mem_session *s, enum mem_lock_kind kind, int64_t key)
{
    return mem__lock_owner(s->db, kind, key) == s;
}

bool mem__lock_share(struct mem_session *s, enum mem_lock_kind kind, int64_t key)
{
    struct mem_staged *g = &s->staged;
    for (size_t i = 0; i < g->lock_count; i++)
        if (g->locks[i].kind == (int64_t)kind && g->locks[i].key == key)
            return true;
    if (mem__lock_owner(s->db, kind, key))
        return false;
    if (kind == MEM_LOCK_STRICT && find(s->db, kind, key))
        return false; /* its turn comes when the other transaction has ended */
    make(s->db, kind, key)->shared++;
    g->locks = xrealloc(g->locks, (g->lock_count + 1) * sizeof(*g->locks));
    g->locks[g->lock_count++] = (struct mem_lock_key){.kind = kind, .key = key};
    return true;
}

void mem__locks_release(struct mem_session *s)
{
    struct mem_staged *g = &s->staged;
    for (size_t i = 0; i < g->lock_count; i++) {
        struct mem_lock *l = find(s->db, (enum mem_lock_kind)g->locks[i].kind, g->locks[i].key);
        INVARIANT(l && l->shared);
        l->shared--;
        drop_if_free(s->db, l);
    }
    free(g->locks);
    g->locks = NULL;
    g->lock_count = 0;
}

void mem__locks_end(struct mem_session *s)
{
    struct mem_lock *l, *next;
    mem__locks_release(s);
    HASH_ITER(hh, s->db->locks, l, next)
    {
        if (l->owner != s)
            continue;
        l->owner = NULL;
        l->count = 0;
        drop_if_free(s->db, l);
    }
}

/* ---- requests ---- */

void mem__lock(struct mem_session *s, struct store_lock *r)
{
    r->got = s->use_lock && mem__lock_take(s, MEM_LOCK_ACCOUNT, r->lock_key);
}

void mem__unlock(struct mem_session *s, struct store_lock *r)
{
    mem__lock_drop(s, MEM_LOCK_ACCOUNT, r->lock_key);
    r->got = false;
}

void mem__doorbell_arm(struct mem_session *s, struct store_doorbell *r)
{
    r->armed = s->use_lock && mem__lock_take(s, MEM_LOCK_DOORBELL, r->account);
}

void mem__doorbell_disarm(struct mem_session *s, struct store_doorbell *r)
{
    mem__lock_drop(s, MEM_LOCK_DOORBELL, r->account);
    r->armed = false;
}

struct mem_session *mem_lock_owner(const struct mem_db *db, int64_t lock_key)
{
    return mem__lock_owner(db, MEM_LOCK_ACCOUNT, lock_key);
}

struct mem_session *mem_doorbell_owner(const struct mem_db *db, int32_t account)
{
    return mem__lock_owner(db, MEM_LOCK_DOORBELL, account);
}
