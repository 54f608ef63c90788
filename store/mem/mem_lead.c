/* Who leads: leader_claim, leader_release, leader_evict and leader_scan of 11_leadership.sql.
 * mem_lease.c has leader_renew. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "mem/mem.h"

enum { DAY_MS = 86400000, HOLDER_MAX = 500, ADDRESS_MAX = 300, IDLE_US = 5000000 };

int mem__check_expiry(uint32_t expiry_1_ms, uint32_t expiry_2_ms, struct err *err)
{
    if (expiry_1_ms < 1 || expiry_1_ms > DAY_MS)
        return mem__fail(err, "TR011", "expiry_1_ms is %u; it must be 1 to %d", expiry_1_ms,
                         DAY_MS);
    if (expiry_2_ms < expiry_1_ms || expiry_2_ms > DAY_MS)
        return mem__fail(err, "TR011", "expiry_2_ms is %u; it must be expiry_1_ms (%u) to %d",
                         expiry_2_ms, expiry_1_ms, DAY_MS);
    return 0;
}

int mem__check_relay(const char *holder, const char *address, struct err *err)
{
    size_t n = holder ? strlen(holder) : 0, m = address ? strlen(address) : 0;
    if (n < 1 || n > HOLDER_MAX)
        return mem__fail(err, "TR011", "holder has %zu bytes; it must have 1 to %d", n, HOLDER_MAX);
    if (m > ADDRESS_MAX)
        return mem__fail(err, "TR011", "address has %zu bytes; at most %d", m, ADDRESS_MAX);
    return 0;
}

/* As a number of milliseconds is made from an interval: the nearest one. */
static int64_t left_ms(int64_t at_us, int64_t now_us)
{
    int64_t us = at_us - now_us;
    return at_us ? (us + (us < 0 ? -500 : 500)) / 1000 : 0;
}

/* ---- claims ---- */

static bool grants(const struct mem_session *s, const struct mem_account *a,
                   const struct store_claim *r, int64_t now)
{
    const struct mem_session *owner = mem__lock_owner(s->db, MEM_LOCK_ACCOUNT, a->lead.lock_key);
    bool may_lock = r->have_lock || !owner || owner == s ||
                    (owner->foreign && !PLANTED(LOCK_ANYBODYS)); /* no_relay_has */
    if (PLANTED(CLAIM_ALWAYS))
        return true;
    if (a->lead.holder &&
        (!strcmp(a->lead.holder, r->holder) || (a->lead.lock_held && r->have_lock)))
        return true;
    if (!a->lead.holder || a->lead.expiry_2_us <= now)
        return may_lock;
    return a->lead.expiry_1_us <= now && !mem__mid_submission(a) && may_lock;
}

static void grant(struct mem_session *s, struct mem_account *a, const struct store_claim *r,
                  int64_t now)
{
    mem__replace(&a->lead.holder, r->holder);
    mem__replace(&a->lead.holder_address, r->address);
    a->lead.lock_held = r->have_lock;
    a->lead.lock_pid = r->have_lock ? s->pid : 0;
    a->lead.epoch++;
    if (PLANTED(ADOPTED_MEMORY) && a->lost_since_us < 0) {
        a->reconcile_from = a->lost_heard = -1;
        a->lost_since_us = 0;
    }
    if (a->lead.timeline && a->lead.timeline != s->db->timeline) {
        if (a->reconcile_from < 0)
            a->reconcile_from = mem__max(mem__max(a->seen_block, a->used_block), 0);
        a->lost_since_us = now;
        a->lost_heard = -1;
    }
    a->lead.timeline = s->db->timeline;
    a->lead.claimed_us = now;
    a->lead.expiry_1_us = now + (int64_t)r->expiry_1_ms * 1000;
    a->lead.expiry_2_us = now + (int64_t)r->expiry_2_ms * 1000;
    mem__lease_join(s->db, a, now);
    mem__notify_leader(s->db, a);
}

static int check_claim(const struct mem_session *s, const struct store_claim *r, struct err *err)
{
    if (mem__check_expiry(r->expiry_1_ms, r->expiry_2_ms, err) ||
        mem__check_relay(r->holder, r->address, err))
        return err->code;
    const struct mem_account *a = mem__account(s->db, r->account);
    if (!a)
        return mem__fail(err, "TR010", "no such account: number %d", r->account);
    if (r->have_lock && !mem__lock_free_for(s, MEM_LOCK_ACCOUNT, a->lead.lock_key))
        return mem__fail(err, "TR011", "have_lock is true, and another session has the lock of %s",
                         a->alias);
    return 0;
}

void mem__claim(struct mem_session *s, struct store_claim *r)
{
    r->granted = false;
    r->current_holder = r->current_address = "";
    if (check_claim(s, r, &r->req.err))
        return;
    struct mem_account *a = mem__account(s->db, r->account);
    int64_t now = mem_db_now_us(s->db);
    struct mem_answer *answer = mem__answer(&r->req);
    r->granted = !mem__lead_held(s, a) && grants(s, a, r, now);
    if (r->granted)
        grant(s, a, r, now);
    r->epoch = a->lead.epoch;
    r->lock_held = a->lead.lock_held;
    r->current_holder = a->lead.holder ? mem__put_text(answer, a->lead.holder) : "";
    r->current_address =
        a->lead.holder_address ? mem__put_text(answer, a->lead.holder_address) : "";
    r->expiry_1_left_ms = left_ms(a->lead.expiry_1_us, now);
    r->expiry_2_left_ms = left_ms(a->lead.expiry_2_us, now);
    r->mid_submission =
        !r->granted && a->lead.expiry_1_us && r->expiry_1_left_ms <= 0 && mem__mid_submission(a);
}

/* ---- release, eviction ---- */

void mem__release(struct mem_session *s, struct store_release *r)
{
    struct mem_account *a = mem__account(s->db, r->account);
    r->released =
        a && a->lead.holder && a->lead.epoch == r->epoch && !strcmp(a->lead.holder, r->holder);
    if (r->released && mem__lead_held(s, a)) {
        r->released = false;
        mem__fail(&r->req.err, "55P03", "canceling statement due to lock timeout");
    }
    if (!r->released)
        return;
    mem__replace(&a->lead.holder, NULL);
    mem__replace(&a->lead.holder_address, NULL);
    a->lead.lock_held = a->lead.leased = false;
    a->lead.lock_pid = 0;
    a->lead.expiry_1_us = a->lead.expiry_2_us = 0;
    mem__notify_leader(s->db, a);
}

static struct mem_account *by_lock_key(const struct mem_db *db, int64_t key)
{
    for (size_t i = 0; i < db->t.account_count; i++)
        if (db->t.accounts[i]->lead.lock_key == key)
            return db->t.accounts[i];
    return NULL;
}

/* The session that may be ended: the claimant's, whose claim has expired, one that idles with the
 * lock, or one that is no relay's. */
static struct mem_session *evicted(const struct mem_session *s, const struct mem_account *a,
                                   int64_t now)
{
    struct mem_session *owner = mem__lock_owner(s->db, MEM_LOCK_ACCOUNT, a->lead.lock_key);
    bool in_force =
        a->lead.expiry_1_us > now || (a->lead.expiry_2_us > now && mem__mid_submission(a));
    if ((in_force && !PLANTED(EVICT_HEALTHY)) || !owner || owner == s)
        return NULL;
    bool claims = a->lead.holder && a->lead.lock_pid == owner->pid;
    bool idle = owner->changed_us < now - IDLE_US;
    bool foreign = owner->foreign && !PLANTED(LOCK_ANYBODYS);
    return claims || idle || foreign ? owner : NULL;
}

/* lock_holder: who has the lock without the claim. */
static const char *holder_text(const struct mem_session *s, const struct mem_account *a,
                               struct mem_answer *answer)
{
    const struct mem_session *owner = mem__lock_owner(s->db, MEM_LOCK_ACCOUNT, a->lead.lock_key);
    char text[40];
    if (!owner || owner->pid == a->lead.lock_pid)
        return "";
    snprintf(text, sizeof(text), "backend %u", owner->pid);
    return mem__put_text(answer, text);
}

void mem__evict(struct mem_session *s, struct store_evict *r)
{
    struct mem_account *a = by_lock_key(s->db, r->lock_key);
    r->terminated = false;
    r->current_holder = r->current_address = r->lock_holder = "";
    r->epoch = r->expiry_1_left_ms = 0;
    if (!a)
        return;
    int64_t now = mem_db_now_us(s->db);
    struct mem_answer *answer = mem__answer(&r->req);
    r->current_holder = a->lead.holder ? mem__put_text(answer, a->lead.holder) : "";
    r->current_address =
        a->lead.holder_address ? mem__put_text(answer, a->lead.holder_address) : "";
    r->epoch = a->lead.epoch;
    r->expiry_1_left_ms = left_ms(a->lead.expiry_1_us, now);
    r->lock_holder = holder_text(s, a, answer);
    struct mem_session *other = evicted(s, a, now);
    if (!other)
        return;
    r->terminated = true;
    if (s->db->config.on_session_end)
        s->db->config.on_session_end(s->db->config.arg, other);
    mem_session_end(other);
}

/* ---- what followers bid by ---- */

static bool says_nothing_new(const struct mem_account *a, bool taken, int64_t now, int64_t known)
{
    bool in_force = a->lead.holder && a->lead.expiry_1_us > now && (taken || !a->lead.lock_held);
    return in_force && a->lead.epoch == known;
}

void mem__scan(struct mem_session *s, struct store_scan *r)
{
    int64_t now = mem_db_now_us(s->db);
    struct mem_answer *answer = mem__answer(&r->req);
    struct store_lock_view *seen = mem__put(answer, NULL, r->count * sizeof(*seen));
    r->seen = seen;
    r->view_count = 0;
    for (size_t i = 0; i < r->count; i++) {
        const struct mem_account *a = mem__account(s->db, r->accounts[i]);
        bool taken = a && mem__lock_owner(s->db, MEM_LOCK_ACCOUNT, a->lead.lock_key);
        if (!a || says_nothing_new(a, taken, now, r->epochs[i]))
            continue;
        seen[r->view_count++] = (struct store_lock_view){
            .index = i,
            .taken = taken,
            .lock_held = a->lead.lock_held,
            .holder = a->lead.holder ? mem__put_text(answer, a->lead.holder) : "",
            .address = a->lead.holder_address ? mem__put_text(answer, a->lead.holder_address) : "",
            .epoch = a->lead.epoch,
            .expiry_1_left_ms = left_ms(a->lead.expiry_1_us, now),
            .expiry_2_left_ms = left_ms(a->lead.expiry_2_us, now),
        };
    }
}

/* ---- what keeps accounts from going on: leader_obstacles of 19_obstacles.sql ---- */

void mem__obstacles(struct mem_session *s, struct store_obstacles *r)
{
    for (size_t i = 0; i < r->count; i++) {
        const struct store_obstacle *o = &r->rows[i];
        struct err ignored;
        struct mem_account *a = mem__fence(s->db, o->account, o->epoch, &ignored);
        if (!a || a->obstacle_epoch > o->epoch)
            continue;
        a->obstacle_epoch = o->epoch;
        snprintf(a->obstacle, sizeof(a->obstacle), "%s", o->code ? o->code : "");
        snprintf(a->obstacle_text, sizeof(a->obstacle_text), "%s", o->code ? o->text : "");
    }
}
