/* The lease of a relay: leader_renew of 11_leadership.sql, and the part of leader_claim that joins
 * it. In place of a row that its accounts refer to, its times and its block are written to each of
 * them. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "mem/mem.h"

int64_t mem__max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

bool mem__lead_held(const struct mem_session *s, const struct mem_account *a)
{
    const struct mem_db_config *config = &s->db->config;
    return config->lead_held && config->lead_held(config->arg, s, a->number);
}

static struct mem_lease *lease_of(struct mem_tables *t, const char *holder)
{
    for (size_t i = 0; i < t->lease_count; i++)
        if (!strcmp(t->leases[i].holder, holder))
            return &t->leases[i];
    return NULL;
}

static struct mem_lease *lease_new(struct mem_tables *t, const char *holder)
{
    t->leases = xrealloc(t->leases, (t->lease_count + 1) * sizeof(*t->leases));
    t->leases[t->lease_count] = (struct mem_lease){.holder = mem__text(holder), .seen_block = -1};
    return &t->leases[t->lease_count++];
}

static bool is_of(const struct mem_account *a, const char *holder)
{
    return a->lead.holder && !strcmp(a->lead.holder, holder);
}

/* Its accounts have what it has. */
static void spread(struct mem_tables *t, const struct mem_lease *l)
{
    for (size_t i = 0; i < t->account_count; i++) {
        struct mem_account *a = t->accounts[i];
        if (!a->lead.leased || !is_of(a, l->holder))
            continue;
        a->lead.expiry_1_us = l->expiry_1_us;
        a->lead.expiry_2_us = l->expiry_2_us;
        a->seen_block = mem__max(a->seen_block, l->seen_block);
    }
}

void mem__lease_join(struct mem_db *db, struct mem_account *a, int64_t now)
{
    struct mem_lease *l = lease_of(&db->t, a->lead.holder);
    if (!l)
        l = lease_new(&db->t, a->lead.holder);
    if (l->expiry_1_us <= now)
        l->heartbeat_us = now;
    l->expiry_1_us = mem__max(l->expiry_1_us, a->lead.expiry_1_us);
    l->expiry_2_us = mem__max(l->expiry_2_us, a->lead.expiry_2_us);
    a->lead.leased = !PLANTED(LEASE_LATE);
    spread(&db->t, l);
}

/* ---- renewal ---- */

static bool leads_any(const struct mem_tables *t, const char *holder)
{
    for (size_t i = 0; i < t->account_count; i++)
        if (is_of(t->accounts[i], holder))
            return true;
    return false;
}

static void drop_leases(struct mem_tables *t, const char *but, int64_t now)
{
    size_t n = 0;
    for (size_t i = 0; i < t->lease_count; i++) {
        struct mem_lease *l = &t->leases[i];
        if (l->expiry_2_us <= now && strcmp(l->holder, but) != 0 && !leads_any(t, l->holder))
            mem__drop(l->holder);
        else
            t->leases[n++] = *l;
    }
    t->lease_count = n;
}

/* The session has the account's lock, or none is used. Of all others the renewal does not even
 * ask. */
static bool has_lock(const struct mem_session *s, const struct store_renew *r, size_t i)
{
    return !r->lock_keys || !s->use_lock || mem__lock_held(s, MEM_LOCK_ACCOUNT, r->lock_keys[i]);
}

static bool is_named(const struct mem_session *s, const struct mem_account *a,
                     const struct store_renew *r)
{
    bool named = false;
    for (size_t i = 0; i < r->count; i++)
        named |= r->accounts[i] == a->number && has_lock(s, r, i) &&
                 (a->lead.epoch == r->epochs[i] || PLANTED(RENEW_ANY));
    return named &&
           ((is_of(a, r->holder) && a->lead.timeline == s->db->timeline) || PLANTED(RENEW_ANY));
}

/* What is not named leaves, unless it was claimed since the last renewal, at `before`, on this
 * timeline. */
static void turn(const struct mem_session *s, struct mem_account *a, bool named, int64_t before)
{
    bool stays =
        a->lead.leased && a->lead.claimed_us >= before && a->lead.timeline == s->db->timeline;
    if (a->lead.leased != named && !stays && !mem__lead_held(s, a))
        a->lead.leased = named;
}

static void renew(struct mem_session *s, struct store_renew *r)
{
    struct mem_tables *t = &s->db->t;
    int64_t now = mem_db_now_us(s->db);
    struct mem_lease *l = lease_of(t, r->holder);
    int64_t before = l ? l->heartbeat_us : INT64_MIN;
    for (size_t i = 0; i < t->account_count; i++)
        if (is_of(t->accounts[i], r->holder))
            turn(s, t->accounts[i], is_named(s, t->accounts[i], r), before);
    if (!l)
        l = lease_new(t, r->holder);
    l->seen_block = mem__max(l->seen_block, r->block);
    l->heartbeat_us = now;
    l->expiry_1_us = now + (int64_t)r->expiry_1_ms * 1000;
    l->expiry_2_us = now + (int64_t)r->expiry_2_ms * 1000;
    spread(t, l);
    for (size_t i = 0; i < r->count; i++) {
        const struct mem_account *a = mem__account(s->db, r->accounts[i]);
        r->renewed[i] = a && is_named(s, a, r) && (a->lead.leased || PLANTED(RENEW_ANY));
    }
    drop_leases(t, r->holder, now);
}

void mem__renew(struct mem_session *s, struct store_renew *r)
{
    bool any = false;
    for (size_t i = 0; i < r->count; i++) {
        r->renewed[i] = false;
        any |= has_lock(s, r, i);
    }
    if (any && !mem__check_expiry(r->expiry_1_ms, r->expiry_2_ms, &r->req.err))
        renew(s, r);
}
