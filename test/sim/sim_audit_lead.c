/* The auditor of leadership: locks, claims, renewals, evictions. */
#include <string.h>

#include "sim_audit.h"

static int64_t left_ms(const struct world *w, int64_t at)
{
    return (at - db_now_us(w)) / 1000;
}

/* Somebody else's claim may be taken when its time is over, or when it stood on a lock that is
 * ours now. */
static void check_claim(struct world *w, const struct session *s, const struct store_claim *c,
                        const struct mem_account *was, bool same_holder)
{
    const struct mem_session *owner = mem_lock_owner(w->db.mem, was->lead.lock_key);
    bool lock_moved = was->lead.lock_held && owner == s->mem && c->have_lock;
    bool taken = was->lead.holder && !same_holder;
    bool strangers = owner && owner == w->holder.locker && !c->have_lock;
    HOLDS(w, !owner || owner == s->mem || strangers, "leadership",
          "r%d takes account %d while another relay has its lock", s->process, c->account - 1);
    HOLDS(w, !taken || lock_moved || was->lead.expiry_1_us <= db_now_us(w), "leadership",
          "r%d takes account %d from a claim that has %lld ms left", s->process, c->account - 1,
          (long long)left_ms(w, was->lead.expiry_1_us));
    HOLDS(w, was->reconcile_from < 0 || db_account(w, c->account - 1)->reconcile_from >= 0,
          "lost commits",
          "r%d claims account %d, and the search for what lost commits have sent is forgotten",
          s->process, c->account - 1);
    w->stats.claims++;
}

static void check_lock(struct world *w, const struct session *s, const struct mem_session *owner,
                       const char *what)
{
    HOLDS(w, owner != s->mem, "locks",
          "r%d asks for a %s that it has: one unlock would not free it", s->process, what);
}

void db_run(struct world *w, struct session *s, enum mem_request what, struct store_req *req)
{
    struct mem_account was = {0};
    struct store_claim *c = CONTAINER_OF(req, struct store_claim, req);
    bool same_holder = false;
    if (what == MEM_REQUEST_claim) {
        was = *db_account(w, c->account - 1);
        same_holder = was.lead.holder && !strcmp(was.lead.holder, c->holder);
    } else if (what == MEM_REQUEST_lock) {
        check_lock(w, s,
                   mem_lock_owner(w->db.mem, CONTAINER_OF(req, struct store_lock, req)->lock_key),
                   "lock");
    } else if (what == MEM_REQUEST_doorbell_arm) {
        check_lock(
            w, s,
            mem_doorbell_owner(w->db.mem, CONTAINER_OF(req, struct store_doorbell, req)->account),
            "doorbell");
    }
    mem_session_run(s->mem, what, req);
    if (what == MEM_REQUEST_claim && !req->err.code && c->granted)
        check_claim(w, s, c, &was, same_holder);
}

void audit_renewed(const struct audit *t)
{
    struct world *w = t->w;
    const struct store_renew *r = &t->x->u.renew;
    for (size_t i = 0; i < r->count; i++) {
        const struct mem_account *a = mem_account_at(w->db.mem, r->accounts[i]);
        bool own =
            a->lead.holder && !strcmp(a->lead.holder, r->holder) && a->lead.epoch == r->epochs[i];
        HOLDS(w, !r->renewed[i] || own, "I4",
              "r%d renews account %d under epoch %lld, which is at %lld", t->process,
              r->accounts[i] - 1, (long long)r->epochs[i], (long long)a->lead.epoch);
        bool locked = !w->plan.use_lock || mem_lock_owner(w->db.mem, a->lead.lock_key) == t->by;
        bool healthy = own && locked && a->lead.timeline == mem_db_timeline(w->db.mem);
        HOLDS(w, r->renewed[i] || !healthy || t->x->u.req.err.code, "leadership",
              "r%d is refused the renewal of account %d, which it leads", t->process,
              r->accounts[i] - 1);
    }
}

void audit_evicted(const struct audit *t)
{
    struct world *w = t->w;
    for (int a = 0; t->x->u.evict.terminated && a < w->plan.accounts; a++) {
        const struct mem_account *x = db_account(w, a);
        HOLDS(w,
              x->lead.lock_key != t->x->u.evict.lock_key || !x->lead.holder ||
                  x->lead.expiry_1_us <= db_now_us(w),
              "leadership", "r%d ends the session of account %d whose claim has %lld ms left",
              t->process, a, (long long)left_ms(w, x->lead.expiry_1_us));
    }
}
