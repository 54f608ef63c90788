/* Transactions without a nonce come in: enqueue, enqueue_searching and check_options of
 * 07_enqueue.sql. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "mem/mem.h"

enum { PRIORITY_MAX = 1000, RETRIES_MAX = 100 };
static const int64_t SPAN_MOST_MS = 31536000000000; /* a thousand years */

int64_t mem__new_id(struct mem_db *db)
{
    return ++db->t.last_id;
}

static void note_wake(struct mem_staged *g, int32_t account)
{
    for (size_t i = 0; i < g->wake_count; i++)
        if (g->wakes[i] == account)
            return;
    g->wakes = xrealloc(g->wakes, (g->wake_count + 1) * sizeof(*g->wakes));
    g->wakes[g->wake_count++] = account;
}

/* The doorbell: a leader that is awake finds the row, and stays awake until this transaction has
 * ended. */
void mem__enqueued(struct mem_session *s, struct mem_account *a, struct mem_row *row)
{
    struct mem_staged *g = &s->staged;
    row->silent = mem__lock_share(s, MEM_LOCK_DOORBELL, a->number);
    if (!row->silent || s->db->config.always_wake)
        note_wake(g, a->number);
    g->rows = xrealloc(g->rows, (g->row_count + 1) * sizeof(struct mem_row *));
    g->rows[g->row_count++] = row;
}

/* ---- checks ---- */

static int check_amount(const char *name, const char *text, u128 *ret, struct err *err)
{
    *ret = 0;
    if (!text || mem__amount(text, ret))
        return 0;
    if (*text && strspn(text, "0123456789") == strlen(text))
        return mem__fail(err, "TR011",
                         "%s is %.60s; it must be a whole number from 0 to "
                         "340282366920938463463374607431768211455",
                         name, text);
    return mem__fail(err, "22P02", "invalid input syntax for type numeric: \"%.60s\"", text);
}

static int64_t not_before_us(struct mem_db *db, const struct store_enqueue *r)
{
    return r->delay_ms ? mem_db_now_us(db) + r->delay_ms * 1000
                       : mem__from_wall(db, r->not_before_ms);
}

static int64_t deadline_us(struct mem_db *db, const struct store_enqueue *r)
{
    return r->expires_in_ms ? mem_db_now_us(db) + r->expires_in_ms * 1000
                            : mem__from_wall(db, r->deadline_ms);
}

/* A span in place of a time. */
static int check_span(const char *name, int64_t span_ms, const char *other, int64_t time_ms,
                      struct err *err)
{
    if (span_ms && time_ms)
        return mem__fail(err, "TR011", "%s is %lld ms, and %s is given too", name,
                         (long long)span_ms, other);
    if (span_ms < 0 || span_ms > SPAN_MOST_MS)
        return mem__fail(err, "TR011", "%s is %lld ms; it must be above 0 and at most 1000 years",
                         name, (long long)span_ms);
    return 0;
}

static int check_options(struct mem_db *db, const struct store_enqueue *r, struct err *err)
{
    u128 tip, max_tip;
    int64_t now = mem_db_now_us(db), deadline = deadline_us(db, r);
    int64_t not_before = not_before_us(db, r);
    if (check_span("expires_in", r->expires_in_ms, "deadline", r->deadline_ms, err) ||
        check_span("delay", r->delay_ms, "not_before", r->not_before_ms, err))
        return err->code;
    if (r->priority < -PRIORITY_MAX || r->priority > PRIORITY_MAX)
        return mem__fail(err, "TR011", "priority is %d; it must be -%d to %d", r->priority,
                         PRIORITY_MAX, PRIORITY_MAX);
    if (r->creator && strlen(r->creator) > MEM_CREATOR_MAX)
        return mem__fail(err, "TR011", "creator has %zu bytes; at most %d", strlen(r->creator),
                         MEM_CREATOR_MAX);
    if (check_amount("tip", r->tip, &tip, err) ||
        check_amount("max_tip", r->max_tip, &max_tip, err))
        return err->code;
    if (deadline && (deadline <= now || deadline <= not_before))
        return mem__fail(
            err, "TR011",
            "deadline is %lld ms; it must be later than now (%lld) and than not_before (%lld)",
            (long long)r->deadline_ms, (long long)(now / 1000), (long long)r->not_before_ms);
    if (r->tip && r->max_tip && tip > max_tip)
        return mem__fail(err, "TR011", "tip is %.60s; it must not be above max_tip (%.60s)", r->tip,
                         r->max_tip);
    if (r->deadline_block < 0)
        return mem__fail(err, "TR011", "deadline_block is %lld; it must be above 0",
                         (long long)r->deadline_block);
    if (r->traceparent && !tx_trace_is_valid(r->traceparent))
        return mem__fail(err, "TR011",
                         "traceparent is '%.80s'; it must be like "
                         "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                         r->traceparent);
    if (r->retries > RETRIES_MAX)
        return mem__fail(err, "TR011", "retries is %u; it must be 0 to %d", r->retries,
                         RETRIES_MAX);
    return 0;
}

static int check_call(const struct store_enqueue *r, struct err *err)
{
    size_t key = r->key ? strlen(r->key) : 1;
    if (!r->call.len || r->call.len > MEM_CALL_MAX)
        return mem__fail(err, "TR011", "call has %zu bytes; it must have 1 to %d bytes",
                         r->call.len, MEM_CALL_MAX);
    if (key < 1 || key > MEM_KEY_MAX)
        return mem__fail(err, "TR011", "key has %zu bytes; it must have 1 to %d", key, MEM_KEY_MAX);
    return 0;
}

/* A relay has its key, and where the account keeps a strict order the row keeps it too. */
static int check_account(struct mem_session *s, const struct mem_account *a,
                         const struct store_enqueue *r, struct err *err)
{
    if (a->watch_only)
        return mem__fail(err, "TR011", "account is \"%.80s\", whose key no relay has", r->account);
    if (!a->policy.strict)
        return 0;
    if (r->priority)
        return mem__fail(err, "TR011", "priority is %d, and account %s keeps the order of commits",
                         r->priority, a->alias);
    if (r->not_before_ms || r->delay_ms)
        return mem__fail(err, "TR011",
                         "not_before is %lld ms, and account %s keeps the order of commits",
                         (long long)r->not_before_ms, a->alias);
    if (!mem__lock_share(s, MEM_LOCK_STRICT, a->number))
        return mem__fail(err, "55P03",
                         "account %s keeps the order of commits, and another transaction that "
                         "enqueued for it is still open",
                         a->alias);
    return 0;
}

/* ---- the row ---- */

static struct mem_row *row_of(struct mem_db *db, const struct mem_account *a,
                              const struct store_enqueue *r, int64_t id)
{
    struct mem_row *row = mem__row_new(a->number, id);
    row->call = mem__bytes(r->call);
    row->key = mem__text(r->key);
    row->trace = mem__text(r->traceparent);
    row->creator = mem__text(r->creator ? r->creator : "");
    row->priority = r->priority;
    row->not_before_us = not_before_us(db, r);
    row->deadline_us = deadline_us(db, r);
    row->created_us = mem__stamp(db);
    row->guard = r->guard;
    row->retries = r->retries;
    row->has_tip = r->tip != NULL;
    row->has_max_tip = r->max_tip != NULL;
    mem__amount(r->tip, &row->tip);
    mem__amount(r->max_tip, &row->max_tip);
    row->deadline_block = r->deadline_block ? r->deadline_block : -1;
    return row;
}

static int enqueue(struct mem_session *s, struct store_enqueue *r, struct err *err)
{
    uint8_t sha[MEM_SHA_LEN];
    if (check_options(s->db, r, err) || check_call(r, err))
        return err->code;
    struct mem_account *a = mem__account_of(s->db, r->account, err);
    if (!a || check_account(s, a, r, err))
        return err->code;
    int64_t id = r->id = mem__new_id(s->db);
    if (r->key) {
        mem__sha(r->call, sha);
        if (mem__key_use(s, a, r->key, sha, &r->id, err))
            return err->code;
    }
    if (r->id == id)
        mem__enqueued(s, a, row_of(s->db, a, r, id));
    return 0;
}

void mem__enqueue(struct mem_session *s, struct store_enqueue *r)
{
    bool alone = !s->open;
    if (alone)
        mem_begin(s);
    int rc = enqueue(s, r, &r->req.err);
    if (!alone)
        return;
    if (rc) {
        mem_rollback(s);
        return;
    }
    mem_commit(s);
    mem_release(s);
}
