/* Which relays live: member_heartbeat of 11_leadership.sql. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "mem/mem.h"

enum { HEIGHT_KEPT_US = 60 * 1000000 };

static bool lives(const struct mem_db *db, uint32_t pid)
{
    LIST_EACH (p, &db->sessions)
        if (CONTAINER_OF(p, struct mem_session, node)->pid == pid)
            return true;
    return !pid;
}

/* The member of this name, or where it would be. */
static size_t member_at(const struct mem_tables *t, const char *holder)
{
    size_t at = 0;
    while (at < t->member_count && strcmp(t->members[at].holder, holder) < 0)
        at++;
    return at;
}

static void member_heartbeat(struct mem_session *s, const struct store_member *r, int64_t now)
{
    struct mem_tables *t = &s->db->t;
    size_t at = member_at(t, r->holder);
    if (at == t->member_count || strcmp(t->members[at].holder, r->holder) != 0) {
        t->members = xrealloc(t->members, (t->member_count + 1) * sizeof(*t->members));
        memmove(&t->members[at + 1], &t->members[at], (t->member_count - at) * sizeof(*t->members));
        t->member_count++;
        t->members[at] = (struct mem_member){.holder = mem__text(r->holder)};
    }
    struct mem_member *m = &t->members[at];
    mem__replace(&m->address, r->address);
    m->serves = r->serves;
    m->best = r->best;
    m->pid = s->use_lock ? s->pid : 0;
    m->heartbeat_us = now;
}

/* Its height is still of use. */
static void member_leaves(struct mem_tables *t, const char *holder)
{
    size_t at = member_at(t, holder);
    if (at < t->member_count && !strcmp(t->members[at].holder, holder))
        t->members[at].pid = UINT32_MAX;
}

static void members_drop(struct mem_tables *t, int64_t before_us)
{
    size_t n = 0;
    for (size_t i = 0; i < t->member_count; i++) {
        struct mem_member *m = &t->members[i];
        if (m->heartbeat_us > before_us) {
            t->members[n++] = *m;
            continue;
        }
        mem__drop(m->holder);
        mem__drop(m->address);
    }
    t->member_count = n;
}

void mem__relay_obstacle(struct mem_session *s, struct store_relay_obstacle *r)
{
    struct mem_tables *t = &s->db->t;
    size_t at = member_at(t, r->holder);
    if (at == t->member_count || strcmp(t->members[at].holder, r->holder) != 0)
        return;
    snprintf(t->members[at].obstacle, sizeof(t->members[at].obstacle), "%s",
             r->code ? r->code : "");
    snprintf(t->members[at].obstacle_text, sizeof(t->members[at].obstacle_text), "%s",
             r->code ? r->text : "");
}

void mem__member(struct mem_session *s, struct store_member *r)
{
    struct mem_tables *t = &s->db->t;
    int64_t now = mem_db_now_us(s->db), ttl_us = (int64_t)r->ttl_ms * 1000, best = -1;
    r->count = 0;
    r->holders = NULL;
    r->best_known = -1;
    if (mem__check_expiry(r->ttl_ms, r->ttl_ms, &r->req.err) ||
        mem__check_relay(r->holder, r->address, &r->req.err))
        return;
    if (r->leave)
        member_leaves(t, r->holder);
    else
        member_heartbeat(s, r, now);
    members_drop(t, now - (2 * ttl_us > HEIGHT_KEPT_US ? 2 * ttl_us : HEIGHT_KEPT_US));
    struct mem_answer *answer = mem__answer(&r->req);
    const char **holders = mem__put(answer, NULL, (t->member_count + 1) * sizeof(*holders));
    r->holders = holders;
    for (size_t i = 0; i < t->member_count; i++) {
        const struct mem_member *m = &t->members[i];
        if (m->serves == r->serves && m->best > best)
            best = m->best;
        if (m->heartbeat_us <= now - ttl_us || m->serves != r->serves || !lives(s->db, m->pid))
            continue;
        holders[r->count++] = mem__put_text(answer, m->holder);
    }
    r->best_known = r->count ? best : -1;
}
