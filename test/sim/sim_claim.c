/* Advisory locks, claims, renewals, releases, evictions and the fence: schema/functions/11_leadership.sql.
 * What must hold is checked here in other words than the rule itself. */
#include <string.h>

#include "sim.h"

/* ---- locks ---- */

void sql_lock(struct world *w, struct session *s, struct stmt *q)
{
    bool bell = q->op == OP_ARM || q->op == OP_DISARM;
    uint32_t *mine = bell ? &s->bell[q->account] : &s->lock[q->account];
    if (q->op == OP_UNLOCK || q->op == OP_DISARM) {
        q->ok = *mine > 0;
        *mine -= *mine > 0;
        return;
    }
    struct session *owner = lock_owner(w, bell ? KIND_BELL : KIND_ACCOUNT, q->account);
    q->ok = (!owner || owner == s) && !(bell && w->db.bell_shared[q->account]);
    *mine += q->ok;
    HOLDS(w, *mine <= 1, "locks", "r%d has the %s of account %d %u times: one unlock would not free it",
          q->relay, bell ? "doorbell" : "lock", q->account, *mine);
}

/* ---- the fence ---- */

bool sql_fence(struct world *w, struct stmt *q)
{
    const struct account_row *a = &w->db.t.accounts[q->account];
    bool good = a->holder && a->epoch == q->epoch && a->timeline == w->db.timeline;
    if (!good)
        q->code = ERR_LOST_LEADERSHIP;
    return good;
}

bool mid_submission(const struct world *w, int account)
{
    const struct tables *t = &w->db.t;
    for (uint64_t n = t->pending_low[account]; n < t->pending_high[account]; n++)
        if (t->pending[account][n].used && !strcmp(t->pending[account][n].state, "signed"))
            return true;
    return false;
}

/* ---- claim ---- */

static int64_t left_ms(int64_t at, int64_t now)
{
    return (at - now) / 1000;
}

static bool expired(const struct world *w, const struct account_row *a, int account, int64_t now)
{
    if (a->expiry_2_us <= now)
        return true;
    return a->expiry_1_us <= now && !mid_submission(w, account);
}

static bool grants(struct world *w, struct session *s, const struct stmt *q, int64_t now)
{
    const struct account_row *a = &w->db.t.accounts[q->account];
    const struct session *owner = lock_owner(w, KIND_ACCOUNT, q->account);
    bool may_lock = q->have_lock || !owner || owner == s;
    if (PLANTED(CLAIM_ALWAYS))
        return true;
    if (a->holder == q->holder || (a->lock_held && q->have_lock))
        return true;
    if (!a->holder)
        return may_lock;
    return expired(w, a, q->account, now) && may_lock;
}

/* Somebody else's claim may be taken when its time is over, or when it stood on a lock that is ours now. */
static void check_claim(struct world *w, const struct session *s, const struct stmt *q, int64_t now)
{
    const struct account_row *a = &w->db.t.accounts[q->account];
    const struct session *owner = lock_owner(w, KIND_ACCOUNT, q->account);
    HOLDS(w, !owner || owner == s, "leadership", "r%d takes account %d while another session has its lock",
          q->relay, q->account);
    bool free_account = !a->holder || a->holder == q->holder;
    bool lock_moved = a->lock_held && owner == s && q->have_lock;
    HOLDS(w, free_account || lock_moved || a->expiry_1_us <= now, "leadership",
          "r%d takes account %d from a claim that has %lld ms left", q->relay, q->account,
          (long long)left_ms(a->expiry_1_us, now));
}

void sql_claim(struct world *w, struct session *s, struct stmt *q)
{
    struct account_row *a = &w->db.t.accounts[q->account];
    const struct session *owner = lock_owner(w, KIND_ACCOUNT, q->account);
    int64_t now = db_now_us(w);
    if (q->have_lock && owner && owner != s) {
        q->code = ERR_ARGUMENT;
        return;
    }
    q->ok = grants(w, s, q, now);
    if (q->ok) {
        check_claim(w, s, q, now);
        a->holder = q->holder;
        a->lock_held = q->have_lock;
        a->lock_pid = q->have_lock ? s->serial : 0;
        a->epoch++;
        if (a->timeline && a->timeline != w->db.timeline && !a->reconcile) {
            a->reconcile = true;
            a->reconcile_from = a->seen_block;
        }
        a->timeline = w->db.timeline;
        a->expiry_1_us = now + (int64_t)w->plan.expiry_1_ms * 1000;
        a->expiry_2_us = now + (int64_t)w->plan.expiry_2_ms * 1000;
        w->stats.claims++;
        notify_signal(w, "leader_change", q->account);
    }
    q->next_nonce = a->epoch;
    q->holder = a->holder;
    q->lock_held = a->lock_held;
    q->expiry_1_left_ms = a->holder ? left_ms(a->expiry_1_us, now) : 0;
    q->expiry_2_left_ms = a->holder ? left_ms(a->expiry_2_us, now) : 0;
    q->mid_submission = !q->ok && a->expiry_1_us <= now && mid_submission(w, q->account);
}

/* ---- renewal, release, eviction ---- */

void sql_renew(struct world *w, struct session *s, struct stmt *q)
{
    int64_t now = db_now_us(w);
    for (size_t i = 0; i < q->count; i++) {
        struct account_row *a = &w->db.t.accounts[q->accounts[i]];
        bool lock = !w->plan.use_lock || s->lock[q->accounts[i]];
        q->renewed[i] =
            lock && a->holder == q->holder && a->epoch == q->epochs[i] && a->timeline == w->db.timeline;
        if (PLANTED(RENEW_ANY))
            q->renewed[i] = true;
        if (!q->renewed[i])
            continue;
        HOLDS(w, a->holder == q->holder && a->epoch == q->epochs[i], "I4",
              "r%d renews account %d under epoch %lld, which is at %lld", q->relay, q->accounts[i],
              (long long)q->epochs[i], (long long)a->epoch);
        a->expiry_1_us = now + (int64_t)w->plan.expiry_1_ms * 1000;
        a->expiry_2_us = now + (int64_t)w->plan.expiry_2_ms * 1000;
        if (q->seen_block > a->seen_block)
            a->seen_block = q->seen_block;
    }
}

void sql_release(struct world *w, struct session *s, struct stmt *q)
{
    struct account_row *a = &w->db.t.accounts[q->account];
    (void)s;
    if (a->holder != q->holder || a->epoch != q->epoch)
        return;
    a->holder = 0;
    a->lock_held = false;
    a->lock_pid = 0;
    a->expiry_1_us = a->expiry_2_us = 0;
    q->ok = true;
    notify_signal(w, "leader_change", q->account);
}

void sql_evict(struct world *w, struct session *s, struct stmt *q)
{
    struct account_row *a = &w->db.t.accounts[q->account];
    struct session *owner = lock_owner(w, KIND_ACCOUNT, q->account);
    int64_t now = db_now_us(w);
    q->holder = a->holder;
    q->next_nonce = a->epoch;
    q->expiry_1_left_ms = a->holder ? left_ms(a->expiry_1_us, now) : 0;
    bool in_force = a->holder && !expired(w, a, q->account, now);
    if ((in_force && !PLANTED(EVICT_HEALTHY)) || !owner || owner == s)
        return;
    bool claims = a->holder && a->lock_pid == owner->serial;
    bool idle = !owner->busy && owner->idle_since + 5 * SECOND < w->now;
    if (!claims && !idle)
        return;
    HOLDS(w, !a->holder || a->expiry_1_us <= now, "leadership",
          "r%d ends the session of account %d whose claim has %lld ms left", q->relay, q->account,
          (long long)left_ms(a->expiry_1_us, now));
    q->ok = true;
    session_end(w, owner, true, w->now + latency(w));
}

void sql_scan(struct world *w, struct session *s, struct stmt *q)
{
    int64_t now = db_now_us(w);
    size_t count = 0;
    (void)s;
    for (size_t i = 0; i < q->count; i++) {
        int account = q->accounts[i];
        const struct account_row *a = &w->db.t.accounts[account];
        bool taken = lock_owner(w, KIND_ACCOUNT, account) != NULL;
        bool in_force = a->holder && a->expiry_1_us > now && (taken || !a->lock_held);
        if (in_force && a->epoch == q->epochs[i])
            continue;
        q->accounts[count] = account;
        q->holders[count] = a->holder;
        q->seen[count++] =
            (struct elector_seen){.taken = taken,
                                  .mine = a->holder == q->holder,
                                  .lock_held = a->lock_held,
                                  .epoch = a->epoch,
                                  .expiry_1_left_ms = a->holder ? left_ms(a->expiry_1_us, now) : 0,
                                  .expiry_2_left_ms = a->holder ? left_ms(a->expiry_2_us, now) : 0};
    }
    q->count = count;
}
