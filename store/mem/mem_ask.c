/* What applications ask for later: cancel and bump of 10_cancel.sql. The leader hears of it. */
#include <stdlib.h>
#include <string.h>

#include "mem/mem.h"

/* Its row, NULL with the answer or the error. */
static struct mem_row *find(struct mem_session *s, struct store_ask *r)
{
    const struct mem_id *x = mem__id(&s->db->t, r->id);
    r->answer = "";
    if (x && x->row)
        return x->row;
    if (x)
        r->answer = "finished";
    else
        mem__fail(&r->req.err, "TR011", "id is %lld; there is no such transaction",
                  (long long)r->id);
    return NULL;
}

bool mem__cancelled(const struct mem_account *a, int64_t id)
{
    for (size_t i = 0; i < a->cancellation_count; i++)
        if (a->cancellations[i].id == id)
            return true;
    return false;
}

static void ask_cancel(struct mem_account *a, int64_t id)
{
    if (!mem__cancelled(a, id))
        MEM_PUSH(a->cancellations, a->cancellation_count, a->cancellation_cap,
                 ((struct mem_cancellation){.id = id}));
}

void mem__end_told(struct mem_db *db, struct mem_account *a, struct mem_row *row,
                   enum mem_outcome outcome, const char *error, int64_t epoch)
{
    int64_t id = row->id;
    ask_cancel(a, id);
    for (size_t i = 0; i < a->cancellation_count; i++)
        if (a->cancellations[i].id == id)
            a->cancellations[i] = (struct mem_cancellation){.id = id,
                                                            .ended = true,
                                                            .outcome = outcome,
                                                            .error = error,
                                                            .trace = mem__share(row->trace)};
    mem__outbox_end(db, a, row, outcome, error, epoch);
}

/* cancel_waits. */
static bool lost_may_have_sent(const struct mem_session *s, const struct mem_account *a)
{
    bool unclaimed = a->lead.timeline && a->lead.timeline != s->db->timeline;
    return (a->reconcile_from >= 0 || unclaimed) && !PLANTED(WAIT_CANCELLED);
}

void mem__cancel(struct mem_session *s, struct store_ask *r)
{
    struct mem_row *row = find(s, r);
    if (!row)
        return;
    struct mem_account *a = mem__account(s->db, row->account);
    if (row->table != MEM_PENDING && lost_may_have_sent(s, a)) {
        if (row->table == MEM_OUTBOX_SIGNED) {
            mem__fail(
                &r->req.err, "TR011",
                "id is %lld, which was signed elsewhere, and which lost commits may have sent",
                (long long)r->id);
            return;
        }
        ask_cancel(a, r->id);
        r->answer = "requested"; /* the leader polls once it is reconciled */
        return;
    }
    if (row->table != MEM_PENDING) {
        mem__end_told(s->db, a, row, MEM_CANCELLED, "cancelled on request", -1);
        r->answer = "cancelled";
        return;
    }
    if (row->presigned && a->watch_only) {
        mem__fail(&r->req.err, "TR011",
                  "id is %lld, which was signed elsewhere and may be in a pool; no relay has a key "
                  "to take its nonce with",
                  (long long)r->id);
        return;
    }
    ask_cancel(a, r->id);
    r->answer = "requested";
    mem__notify_wake(s->db, a);
}

/* ---- bump ---- */

static u128 percent_of(u128 v, uint32_t percent)
{
    u128 whole, most = ~(u128)0;
    if (__builtin_mul_overflow(v / 100, (u128)percent, &whole) ||
        most - whole < v % 100 * percent / 100)
        return most;
    return whole + v % 100 * percent / 100;
}

struct tips {
    bool has_cap;
    u128 current, cap;
};

static struct tips tips_of(const struct mem_account *a, const struct mem_row *row)
{
    const struct mem_policy *p = &a->policy;
    struct tips t = {.has_cap = p->has_tip_cap || row->has_max_tip};
    t.cap = p->has_tip_cap && (!row->has_max_tip || p->tip_cap < row->max_tip) ? p->tip_cap
                                                                               : row->max_tip;
    if (row->table == MEM_PENDING)
        t.current = mem__current(row)->tip;
    else
        t.current = row->has_tip ? row->tip : p->tip_start;
    if (row->table == MEM_OUTBOX && t.has_cap && t.current > t.cap)
        t.current = t.cap;
    return t;
}

/* bumped_tip: what is asked for or the next step of the policy, cut at the cap. */
static int bumped_tip(const struct store_ask *r, const struct mem_policy *p, const struct tips *t,
                      u128 *ret, struct err *err)
{
    u128 step = p->tip_step ? p->tip_step : 1, part = percent_of(t->current, p->tip_step_percent);
    char current[40], cap[40];
    bool over = __builtin_add_overflow(t->current, step > part ? step : part, ret);
    if (r->tip && !mem__amount(r->tip, ret))
        return mem__fail(err, strspn(r->tip, "0123456789") == strlen(r->tip) ? "TR011" : "22P02",
                         "tip is %.60s; it must be a whole number of 128 bits", r->tip);
    if (r->tip && *ret <= t->current)
        return mem__fail(err, "TR011", "tip is %.60s; it must be above the current one (%s)",
                         r->tip, u128_text(t->current, current));
    if (!r->tip && t->has_cap && t->current < t->cap) {
        *ret = over || *ret > t->cap ? t->cap : *ret;
        return 0;
    }
    over = over && !r->tip;
    if (over || (t->has_cap && *ret > t->cap))
        return mem__fail(
            err, "TR011", "tip is %.60s; it must not be above max_tip or the tip_cap (%s)",
            r->tip ? r->tip : "at its limit", t->has_cap ? u128_text(t->cap, cap) : "2^128 - 1");
    return 0;
}

/* The highest tip that was asked for stays. */
static void bump_ask(struct mem_account *a, int64_t id, u128 tip)
{
    for (size_t i = 0; i < a->bump_count; i++)
        if (a->bumps[i].id == id) {
            a->bumps[i].tip = tip > a->bumps[i].tip ? tip : a->bumps[i].tip;
            return;
        }
    MEM_PUSH(a->bumps, a->bump_count, a->bump_cap, ((struct mem_bump){.id = id, .tip = tip}));
}

/* Of a queued one too the wish is noted: an admission that is under way has read it with the lower
 * tip. */
void mem__bump(struct mem_session *s, struct store_ask *r)
{
    struct mem_row *row = find(s, r);
    u128 tip;
    if (!row)
        return;
    if (row->presigned) {
        mem__fail(&r->req.err, "TR011",
                  "id is %lld, which was signed elsewhere: its tip is signed with it",
                  (long long)r->id);
        return;
    }
    struct mem_account *a = mem__account(s->db, row->account);
    struct tips tips = tips_of(a, row);
    if (bumped_tip(r, &a->policy, &tips, &tip, &r->req.err))
        return;
    bump_ask(a, r->id, tip);
    if (row->table == MEM_OUTBOX) {
        row->has_tip = true;
        row->tip = tip;
        r->answer = "queued";
        return;
    }
    r->answer = "requested";
    mem__notify_wake(s->db, a);
}
