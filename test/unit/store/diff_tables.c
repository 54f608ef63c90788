/* All tables of the memory database as lines of text, as diff_tables.sql writes those of
 * Postgres. */
#include "diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hex.h"
#include "embedded.h"

extern const struct embedded_file diff_sql_files[];

const char *diff_tables_sql(void)
{
    return diff_sql_files[0].text;
}

/* ---- columns ---- */

static void put_number(struct buf *b, int64_t v, bool is_null)
{
    if (is_null)
        buf_puts(b, "|NULL");
    else
        buf_printf(b, "|%lld", (long long)v);
}

static void put_opt(struct buf *b, int64_t v)
{
    put_number(b, v, v < 0);
}

static void put_text(struct buf *b, const char *text)
{
    buf_printf(b, "|%s", text ? text : "NULL");
}

static void put_hash(struct buf *b, const uint8_t *hash)
{
    buf_puts(b, "|");
    if (hash)
        hex_put(b, hash, 32);
    else
        buf_puts(b, "NULL");
}

static void put_block(struct buf *b, const struct mem_block *in)
{
    put_hash(b, in->known ? in->hash : NULL);
}

static void put_bytes(struct buf *b, struct store_bytes x)
{
    buf_puts(b, "|");
    if (x.data)
        hex_put(b, x.data, x.len);
    else
        buf_puts(b, "NULL");
}

static void put_amount(struct buf *b, bool has, u128 v)
{
    char text[40];
    put_text(b, has ? u128_text(v, text) : NULL);
}

static void line(struct buf *b, const char *name)
{
    buf_printf(b, "%s%s ", b->len ? "\n" : "", name);
}

static void put_account(struct buf *b, const struct mem_account *a)
{
    line(b, "account");
    buf_printf(b, "%d|%s|%d", a->number, a->alias, a->watch_only);
    put_text(b, a->lead.holder);
    put_text(b, a->lead.holder_address);
    buf_printf(b, "|%d|%lld", a->lead.lock_held, (long long)a->lead.epoch);
    put_opt(b, a->next_nonce);
    put_opt(b, a->used_nonce);
    put_opt(b, a->used_block);
    put_opt(b, a->seen_block);
    put_opt(b, a->reconcile_from);
    buf_printf(b, "|%d", a->lost_since_us != 0);
    put_opt(b, a->lost_heard);
    buf_printf(b, "|%u|%d", a->era_longest, a->era_immortal);
    buf_printf(b, "|%d|%d", a->life_since_us != 0, a->reborn);
    put_number(b, a->transaction_version, !a->transaction_version);
    buf_printf(b, "|%d|%d|%s", a->paused, a->paused_by_operator, a->suspension);
    put_amount(b, true, a->policy.tip_start);
    put_amount(b, true, a->policy.tip_step);
    put_amount(b, a->policy.has_tip_cap, a->policy.tip_cap);
    buf_printf(b, "|%u", a->policy.tip_step_percent);
}

static void put_call(struct buf *b, const struct mem_row *r)
{
    line(b, "outbox");
    buf_printf(b, "%lld|%d", (long long)r->id, r->account);
    put_bytes(b, r->call);
    put_text(b, r->key);
    put_text(b, r->creator);
    buf_printf(b, "|%d|%d|%d|%u", r->priority, r->not_before_us != 0, r->deadline_us != 0,
               r->guard);
    put_amount(b, r->has_tip, r->tip);
    put_amount(b, r->has_max_tip, r->max_tip);
    put_opt(b, r->deadline_block);
    buf_printf(b, "|%u|%u", r->retries, r->attempts);
}

static void put_signed(struct buf *b, const struct mem_row *r)
{
    line(b, "signed");
    buf_printf(b, "%lld|%d", (long long)r->id, r->account);
    put_bytes(b, r->call);
    put_text(b, r->key);
    put_text(b, r->creator);
    put_opt(b, r->nonce);
    put_hash(b, r->has_hash ? r->hash : NULL);
    put_opt(b, r->era_death);
    put_opt(b, r->wait_block);
    put_text(b, r->waits);
}

static void put_pending(struct buf *b, const struct mem_row *r)
{
    line(b, "pending");
    buf_printf(b, "%d|%lld|%lld", r->account, (long long)r->nonce, (long long)r->id);
    put_bytes(b, r->call);
    put_hash(b, r->hash);
    buf_printf(b, "|%zu|%u|%s|%d", r->at->count, r->attempts, mem_state_name(r->state), r->unknown);
    put_block(b, &r->in);
    put_opt(b, r->block_number);
    put_text(b, r->error);
    buf_printf(b, "|%lld", (long long)r->epoch);
    put_text(b, r->key);
    put_text(b, r->id ? r->creator : NULL);
    buf_printf(b, "|%d|%d|%u", r->priority, r->deadline_us != 0, r->guard);
    put_amount(b, r->has_tip, r->tip);
    put_amount(b, r->has_max_tip, r->max_tip);
    put_opt(b, r->deadline_block);
    buf_printf(b, "|%u", r->retries);
    put_text(b, mem_outcome_name(r->stop_outcome));
    put_text(b, r->stop_reason);
    buf_printf(b, "|%d|%d|%d", r->presigned, r->blocked, r->in_block_us != 0);
}

static void put_attempt(struct buf *b, int32_t account, const struct mem_nonce *n, size_t i)
{
    const struct mem_attempt *t = &n->attempts[i];
    line(b, "attempt");
    buf_printf(b, "%d|%lld|%zu|%lld", account, (long long)n->nonce, i + 1, (long long)t->id);
    put_hash(b, t->hash);
    put_bytes(b, t->extrinsic);
    put_amount(b, true, t->tip);
    put_opt(b, t->era_birth);
    put_opt(b, t->era_death);
    buf_printf(b, "|%u|%u|%lld|%u|%lld|%s", t->spec_version, t->transaction_version,
               (long long)t->block, t->filler_len, (long long)t->epoch,
               mem_attempt_outcome_name(t->outcome));
    put_text(b, mem_state_name(t->state));
    put_block(b, &t->in);
    put_opt(b, t->block_number);
    put_text(b, t->reason);
    put_text(b, t->error);
}

static const char *kind_of(const char *text)
{
    if (text && !strncmp(text, "cancelled on", 12))
        return "cancelled";
    return text && !strncmp(text, "the deadline", 12) ? "deadline" : text;
}

static void put_options(struct buf *b, const struct mem_options *o)
{
    char tip[40], max_tip[40];
    buf_printf(b, "|%d/%d/%d/%u/%s/%s/%lld/%u/%d", o->priority, o->not_before_us != 0,
               o->deadline_us != 0, o->guard, o->has_tip ? u128_text(o->tip, tip) : "-",
               o->has_max_tip ? u128_text(o->max_tip, max_tip) : "-",
               (long long)(o->deadline_block > 0 ? o->deadline_block : 0), o->retries,
               o->presigned);
}

static void put_finished(struct buf *b, const struct mem_finished *f)
{
    line(b, "finished");
    buf_printf(b, "%lld|%lld|%d", (long long)f->id, (long long)f->requeued, f->account);
    put_opt(b, f->nonce);
    put_hash(b, f->has_hash ? f->hash : NULL);
    put_block(b, &f->in);
    put_opt(b, f->block_number);
    put_number(b, f->index, f->index == INT32_MIN);
    put_text(b, mem_state_name(f->state));
    put_text(b, mem_outcome_name(f->outcome));
    put_text(b, kind_of(f->error));
    put_amount(b, f->has_fee, f->fee);
    buf_printf(b, "|%u", f->attempts);
    put_opt(b, f->epoch);
    put_text(b, f->key);
    put_text(b, f->creator);
    put_bytes(b, f->call);
    put_options(b, &f->options);
    buf_printf(b, "|%lld|%d", (long long)f->retried, f->in_block_us != 0);
}

/* ---- in the order of the statements ---- */

static int by_id(const void *x, const void *y)
{
    const struct mem_row *a = *(const struct mem_row *const *)x,
                         *b = *(const struct mem_row *const *)y;
    return (a->id > b->id) - (a->id < b->id);
}

static void put_waiting(struct buf *b, const struct diff *d, bool presigned)
{
    const struct mem_row *rows[2000];
    size_t n = 0;
    for (size_t i = 0; i < mem_account_count(d->db); i++) {
        const struct mem_account *a = mem_account_at(d->db, (int32_t)i + 1);
        LIST_EACH (p, presigned ? &a->signed_rows : &a->outbox) {
            assert_true(n < ARRAY_LEN(rows));
            rows[n++] = CONTAINER_OF(p, struct mem_row, node);
        }
    }
    qsort(rows, n, sizeof(rows[0]), by_id);
    for (size_t i = 0; i < n; i++)
        presigned ? put_signed(b, rows[i]) : put_call(b, rows[i]);
}

static int by_error(const void *x, const void *y)
{
    return strcmp(((const struct mem_refusal *)x)->error, ((const struct mem_refusal *)y)->error);
}

static void put_nonces(struct buf *b, const struct mem_account *a, bool refusals)
{
    for (size_t i = 0; i < a->nonce_count; i++)
        for (size_t k = 0; k < a->nonces[i]->count; k++) {
            struct mem_attempt *t = &a->nonces[i]->attempts[k];
            if (!refusals)
                put_attempt(b, a->number, a->nonces[i], k);
            else if (t->refusal_count)
                qsort(t->refusals, t->refusal_count, sizeof(*t->refusals), by_error);
            for (size_t m = 0; refusals && m < t->refusal_count; m++) {
                line(b, "refusal");
                buf_printf(b, "%d|%lld|%zu|%s|%u", a->number, (long long)a->nonces[i]->nonce, k + 1,
                           t->refusals[m].error, t->refusals[m].count);
            }
        }
}

static int by_place(const void *x, const void *y)
{
    const struct mem_finished *a = *(const struct mem_finished *const *)x;
    const struct mem_finished *b = *(const struct mem_finished *const *)y;
    int hashes = memcmp(a->hash, b->hash, 32);
    const int64_t keys[][2] = {
        {a->account, b->account},
        {a->nonce, b->nonce},
        {a->id, b->id},
        {a->requeued, b->requeued},
        {a->attempts, b->attempts},
        {hashes, 0},
        {a->block_number, b->block_number},
        {a->index == INT32_MIN ? -9 : a->index, b->index == INT32_MIN ? -9 : b->index},
        {a->outcome, b->outcome}};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

static void put_ends(struct buf *b, const struct diff *d)
{
    size_t n = mem_finished_count(d->db);
    const struct mem_finished **rows = xcalloc(n + 1, sizeof(struct mem_finished *));
    for (size_t i = 0; i < n; i++)
        rows[i] = mem_finished_at(d->db, i);
    qsort(rows, n, sizeof(struct mem_finished *), by_place);
    for (size_t i = 0; i < n; i++)
        put_finished(b, rows[i]);
    free(rows);
}

static int by_name(const void *x, const void *y)
{
    const struct mem_key *a = *(const struct mem_key *const *)x,
                         *b = *(const struct mem_key *const *)y;
    return strcmp(a->name, b->name);
}

static void put_keys(struct buf *b, const struct diff *d)
{
    const struct mem_key *keys[2000];
    size_t n = 0;
    for (const struct mem_key *k = d->db->t.keys; k; k = k->hh.next)
        if (!k->open && n < ARRAY_LEN(keys))
            keys[n++] = k;
    qsort(keys, n, sizeof(keys[0]), by_name);
    for (size_t i = 0; i < n; i++) {
        line(b, "key");
        const char *colon = strchr(keys[i]->name, ':');
        buf_printf(b, "%.*s|%s|%lld", (int)(colon - keys[i]->name), keys[i]->name, colon + 1,
                   (long long)keys[i]->id);
    }
}

/* Of all accounts, by id. */
static void put_asks(struct buf *b, const struct diff *d, bool bumps)
{
    for (int64_t id = 1; id <= mem_last_id(d->db); id++)
        for (size_t i = 0; i < mem_account_count(d->db); i++) {
            const struct mem_account *a = mem_account_at(d->db, (int32_t)i + 1);
            for (size_t k = 0; bumps && k < a->bump_count; k++)
                if (a->bumps[k].id == id) {
                    line(b, "bump");
                    buf_printf(b, "%lld|%d", (long long)id, a->number);
                    put_amount(b, true, a->bumps[k].tip);
                }
            if (!bumps && mem__cancelled(a, id)) {
                line(b, "cancellation");
                buf_printf(b, "%lld|%d", (long long)id, a->number);
            }
        }
}

void diff_tables_mem(const struct diff *d, struct buf *b)
{
    size_t count = mem_account_count(d->db);
    const struct mem_tables *t = &d->db->t;
    for (size_t i = 0; i < count; i++)
        put_account(b, t->accounts[i]);
    put_waiting(b, d, false);
    put_waiting(b, d, true);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < t->accounts[i]->pending_count; k++)
            put_pending(b, t->accounts[i]->pending[k]);
    for (size_t i = 0; i < count; i++)
        put_nonces(b, t->accounts[i], false);
    for (size_t i = 0; i < count; i++)
        put_nonces(b, t->accounts[i], true);
    put_ends(b, d);
    put_keys(b, d);
    put_asks(b, d, false);
    put_asks(b, d, true);
    for (size_t i = 0; i < t->member_count; i++) {
        line(b, "member");
        buf_printf(b, "%s|%lld", t->members[i].holder, (long long)t->members[i].serves);
        put_opt(b, t->members[i].best);
        buf_printf(b, "|%d", t->members[i].pid != 0);
        buf_printf(b, "|%s|%s", t->members[i].obstacle, t->members[i].obstacle_text);
    }
    for (size_t i = 0; i < count; i++) {
        const struct mem_account *a = t->accounts[i];
        if (!*a->obstacle)
            continue;
        line(b, "obstacle");
        buf_printf(b, "%d|%lld|%s|%s", a->number, (long long)a->obstacle_epoch, a->obstacle,
                   a->obstacle_text);
    }
}
