/* leader_poll_requests of 13_due.sql: what the clock, the applications and the operators say. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "mem/mem.h"

enum { EXPIRED_MOST = 1000, SECOND_US = 1000000 };

struct times {
    int64_t now;
    bool has_rows;
    int64_t next;         /* of all deadlines and what is not ripe; 0: none */
    int64_t next_outbox;  /* of the outbox alone */
    int64_t next_ahead;   /* of the outbox, without deadlines that have passed */
    int64_t next_pending; /* of pending rows, those alone that have not passed */
};

static void sooner(int64_t *at, int64_t us)
{
    if (us && (!*at || us < *at))
        *at = us;
}

/* request_times. */
static struct times times_of(const struct mem_account *a, int64_t now)
{
    struct times t = {.now = now};
    if (!a->timed)
        return t;
    LIST_EACH (p, &a->outbox) {
        const struct mem_row *row = CONTAINER_OF(p, struct mem_row, node);
        bool late = row->deadline_us && row->deadline_us <= now;
        t.has_rows |= row->not_before_us && row->not_before_us <= now && !late;
        sooner(&t.next_outbox, row->deadline_us);
        sooner(&t.next_ahead, late ? 0 : row->deadline_us);
        sooner(&t.next_ahead, row->not_before_us > now ? row->not_before_us : 0);
        sooner(&t.next_outbox, t.next_ahead);
    }
    t.next = t.next_outbox;
    for (size_t i = 0; i < a->pending_count; i++) {
        int64_t at = a->pending[i]->deadline_us;
        sooner(&t.next, at);
        sooner(&t.next_pending, at > now ? at : 0);
    }
    return t;
}

/* Rounded up: it is over when it has come. */
static int64_t left_ms(int64_t at, int64_t now)
{
    if (!at)
        return -1;
    return at > now ? (at - now + 999) / 1000 : 0;
}

/* ---- what ends here ---- */

static int by_deadline(const void *x, const void *y)
{
    const struct mem_row *a = *(const struct mem_row *const *)x,
                         *b = *(const struct mem_row *const *)y;
    return (a->deadline_us > b->deadline_us) - (a->deadline_us < b->deadline_us);
}

/* Cancelled rows that came back from a nonce that was lost, and those whose deadline has passed,
 * but for those that an application holds. True: there may be more than it ends at once. */
static bool end_queued(struct mem_db *db, struct mem_account *a, int64_t now)
{
    struct mem_row **late = NULL;
    size_t count = 0, cap = 0, cancelled = 0;
    for (struct list *p = a->outbox.next, *next; p != &a->outbox; p = next) {
        struct mem_row *row = CONTAINER_OF(p, struct mem_row, node);
        next = p->next;
        if (row->held)
            continue;
        if (mem__cancelled(a, row->id)) {
            mem__end_told(db, a, row, MEM_CANCELLED, "cancelled on request", a->lead.epoch);
            cancelled++;
        } else if (row->deadline_us && row->deadline_us <= now)
            MEM_PUSH(late, count, cap, row);
    }
    if (count)
        qsort(late, count, sizeof(struct mem_row *), by_deadline);
    for (size_t i = 0; i < count && i < EXPIRED_MOST; i++)
        mem__end_told(db, a, late[i], MEM_EXPIRED, "the deadline passed before it was sent",
                      a->lead.epoch);
    free(late);
    return cancelled + (count < EXPIRED_MOST ? count : EXPIRED_MOST) >= EXPIRED_MOST;
}

static struct mem_row *row_of(const struct mem_db *db, int64_t id)
{
    const struct mem_id *x = mem__id(&db->t, id);
    return x ? x->row : NULL;
}

static bool is_pending(const struct mem_row *row)
{
    return row && row->table == MEM_PENDING;
}

static void drop_cancellations(const struct mem_db *db, struct mem_account *a)
{
    size_t n = 0;
    for (size_t i = 0; i < a->cancellation_count; i++) {
        const struct mem_row *row = row_of(db, a->cancellations[i].id);
        if (is_pending(row) || (row && row->table == MEM_OUTBOX))
            a->cancellations[n++] = a->cancellations[i];
        else
            mem__drop(a->cancellations[i].trace);
    }
    a->cancellation_count = n;
}

/* What a bump comes to, as far as the caps let it. */
static u128 bump_tip(const struct mem_account *a, const struct mem_row *row, u128 tip)
{
    if (row->has_max_tip && row->max_tip < tip)
        tip = row->max_tip;
    if (a->policy.has_tip_cap && a->policy.tip_cap < tip)
        tip = a->policy.tip_cap;
    return tip;
}

/* A bump is done with when it is paid, or when its transaction has ended. */
static void drop_bumps(const struct mem_db *db, struct mem_account *a)
{
    size_t n = 0;
    for (size_t i = 0; i < a->bump_count; i++) {
        const struct mem_bump *b = &a->bumps[i];
        const struct mem_row *row = row_of(db, b->id);
        bool keep = is_pending(row) ? mem__current(row)->tip < bump_tip(a, row, b->tip)
                                    : row && row->table == MEM_OUTBOX;
        if (keep)
            a->bumps[n++] = *b;
    }
    a->bump_count = n;
}

/* ---- what has ended ---- */

static int by_id(const void *x, const void *y)
{
    const struct store_ended *a = x, *b = y;
    int order = strcmp(a->outcome, b->outcome);
    return order ? order : (a->id > b->id) - (a->id < b->id);
}

static void collect_ended(const struct mem_account *a, struct mem_answer *answer,
                          struct store_poll_requests *r)
{
    struct store_ended *out = mem__put(answer, NULL, a->cancellation_count * sizeof(*out));
    for (size_t i = 0; i < a->cancellation_count; i++) {
        const struct mem_cancellation *c = &a->cancellations[i];
        if (!c->ended)
            continue;
        const char *trace = mem__put_text(answer, c->trace);
        out[r->ended_count++] = (struct store_ended){.id = c->id,
                                                     .outcome = mem_outcome_name(c->outcome),
                                                     .error = c->error,
                                                     .trace = trace ? trace : ""};
    }
    r->ended = out;
    qsort(out, r->ended_count, sizeof(*out), by_id);
}

/* ---- what is to be stopped or bumped ---- */

static int by_nonce(const void *x, const void *y)
{
    const struct tx_stop *a = x, *b = y;
    if (a->nonce != b->nonce)
        return a->nonce < b->nonce ? -1 : 1;
    if (!a->outcome || !b->outcome)
        return (a->outcome == NULL) - (b->outcome == NULL);
    return strcmp(a->outcome, b->outcome);
}

static void collect(const struct mem_db *db, const struct mem_account *a, int64_t now,
                    struct mem_answer *answer, struct store_poll_requests *r)
{
    size_t most = a->cancellation_count + a->bump_count + (a->timed ? a->pending_count : 0);
    struct tx_stop *out = mem__put(answer, NULL, most * sizeof(*out));
    r->stops = out;
    for (size_t i = 0; i < a->cancellation_count; i++) {
        const struct mem_row *row = row_of(db, a->cancellations[i].id);
        if (is_pending(row))
            out[r->count++] = (struct tx_stop){.nonce = (uint64_t)row->nonce,
                                               .id = row->id,
                                               .outcome = "cancelled",
                                               .reason = "cancelled on request"};
    }
    for (size_t i = 0; a->timed && i < a->pending_count; i++) {
        const struct mem_row *row = a->pending[i];
        if (row->id && row->deadline_us && row->deadline_us <= now && !mem__cancelled(a, row->id))
            out[r->count++] =
                (struct tx_stop){.nonce = (uint64_t)row->nonce,
                                 .id = row->id,
                                 .outcome = "expired",
                                 .reason = "the deadline passed before it was included"};
    }
    for (size_t i = 0; i < a->bump_count; i++) {
        const struct mem_row *row = row_of(db, a->bumps[i].id);
        u128 tip = is_pending(row) ? bump_tip(a, row, a->bumps[i].tip) : 0;
        if (is_pending(row) && mem__current(row)->tip < tip)
            out[r->count++] =
                (struct tx_stop){.nonce = (uint64_t)row->nonce, .id = row->id, .tip = tip};
    }
    qsort(out, r->count, sizeof(*out), by_nonce);
}

void mem__poll_requests(struct mem_session *s, struct store_poll_requests *r)
{
    r->count = r->ended_count = 0;
    r->stops = NULL;
    r->ended = NULL;
    struct mem_account *a = mem__fence(s->db, r->account, r->epoch, &r->req.err);
    if (!a)
        return;
    int64_t now = mem_db_now_us(s->db);
    struct mem_answer *answer = mem__answer(&r->req);
    struct times t = times_of(a, now);
    bool asked = a->cancellation_count || a->bump_count;
    if (asked || (t.next && t.next <= now)) {
        bool more = a->reconcile_from >= 0;
        if (a->reconcile_from < 0 || PLANTED(WAIT_EXPIRED))
            more = end_queued(s->db, a, now);
        collect_ended(a, answer, r);
        drop_cancellations(s->db, a);
        drop_bumps(s->db, a);
        t = times_of(a, now);
        t.next = more ? t.next_outbox : t.next_ahead;
        sooner(&t.next, t.next_pending);
        if (a->reconcile_from >= 0 && t.next && t.next < now + SECOND_US)
            t.next = now + SECOND_US;
        collect(s->db, a, now, answer, r);
    }
    r->has_rows = t.has_rows && !a->paused;
    r->next_ms = left_ms(t.next, now);
    r->fingerprint = mem__fingerprint(a);
    mem__facts(a, answer, &r->facts);
}
