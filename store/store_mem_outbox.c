/* Transactions without a nonce, in memory: schema/migrations/0002_app.sql and the first half of
 * 0004_pending.sql are the text that this follows. A batch is checked as a whole before anything changes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "store_mem.h"

enum { CALL_MAX = 1 << 20, KEYS_MAX = 100000, RETRIES_MAX = 100 };

/* ---- rows ---- */

void mem__row_attempts_free(struct mem_row *row)
{
    for (size_t i = 0; i < row->attempt_count; i++) {
        free((void *)row->attempts[i].extrinsic.data);
        free(row->attempts[i].tip);
    }
    free(row->attempts);
    row->attempts = NULL;
    row->attempt_count = 0;
}

void mem__row_free(struct mem_row *row)
{
    char *texts[] = {row->creator, row->key,          row->tip,         row->max_tip,
                     row->bump,    row->stop_outcome, row->stop_reason, row->refusal};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        free(texts[i]);
    free((void *)row->call.data);
    mem__row_attempts_free(row);
    free(row);
}

void mem__rows_free(struct mem_account *a)
{
    struct mem_row *row, *next;
    HASH_ITER(hh, a->by_id, row, next)
    {
        HASH_DELETE(hh, a->by_id, row);
        mem__row_free(row);
    }
    for (size_t i = 0; i < a->pending_count; i++)
        mem__row_free(a->pending[i]);
    free(a->pending);
}

struct mem_row *mem__queued(struct mem_account *a, int64_t id)
{
    struct mem_row *row;
    HASH_FIND(hh, a->by_id, &id, sizeof(id), row);
    return row;
}

/* Higher priority first, then the order of arrival: most rows go to the end. */
void mem__outbox_insert(struct mem_account *a, struct mem_row *row)
{
    struct list *at = &a->outbox;
    while (at->prev != &a->outbox) {
        const struct mem_row *before = CONTAINER_OF(at->prev, struct mem_row, node);
        if (before->priority > row->priority || (before->priority == row->priority && before->id < row->id))
            break;
        at = at->prev;
    }
    list_append(at, &row->node);
    HASH_ADD(hh, a->by_id, id, sizeof(row->id), row);
}

static void outbox_remove(struct mem_account *a, struct mem_row *row)
{
    list_remove(&row->node);
    HASH_DELETE(hh, a->by_id, row);
}

void mem__outbox_end(struct store_mem *s, struct mem_account *a, struct mem_row *row, const char *outcome,
                     const char *error)
{
    outbox_remove(a, row);
    mem__tell(s, "finished", a, row, outcome, error);
    mem__row_free(row);
}

/* ---- enqueue ---- */

/* The entry of the key, NULL with a new one made for `id`. */
static const struct mem_key *use_key(struct store_mem *s, const struct mem_account *a,
                                     const struct store_enqueue *r, int64_t id)
{
    size_t len = strlen(r->key) + 16;
    struct mem_key *k = xcalloc(1, sizeof(*k) + len), *known;
    snprintf(k->name, len, "%d:%s", a->number, r->key);
    HASH_FIND_STR(s->keys, k->name, known);
    if (known) {
        free(k);
        return known;
    }
    k->id = id;
    k->call = mem__copy_bytes(r->call.data, r->call.len);
    HASH_ADD_STR(s->keys, name, k);
    if (HASH_COUNT(s->keys) > KEYS_MAX) {
        struct mem_key *oldest = s->keys;
        HASH_DELETE(hh, s->keys, oldest);
        free((void *)oldest->call.data);
        free(oldest);
    }
    return NULL;
}

static int check_tips(const struct store_enqueue *r, struct err *err)
{
    mem_amount tip = 0, cap;
    if (r->tip && !mem__amount(r->tip, &tip))
        return err_set(err, ERR_ARGUMENT, "tip is %.60s; it must be a number of at most 128 bits, in planck",
                       r->tip);
    if (r->max_tip && !mem__amount(r->max_tip, &cap))
        return err_set(err, ERR_ARGUMENT,
                       "max_tip is %.60s; it must be a number of at most 128 bits, in planck", r->max_tip);
    if (r->max_tip && tip > cap)
        return err_set(err, ERR_ARGUMENT, "tip is %.60s; it must not be above max_tip (%.60s)", r->tip,
                       r->max_tip);
    return 0;
}

static int check_times(const struct store_enqueue *r, struct err *err)
{
    int64_t now = (int64_t)loop_wall_ms();
    if (r->deadline_ms && (r->deadline_ms <= now || r->deadline_ms <= r->not_before_ms))
        return err_set(err, ERR_ARGUMENT,
                       "deadline is %lld ms; it must be later than now (%lld) and than not_before (%lld)",
                       (long long)r->deadline_ms, (long long)now, (long long)r->not_before_ms);
    if (r->deadline_block < 0)
        return err_set(err, ERR_ARGUMENT, "deadline_block is %lld; it must be positive",
                       (long long)r->deadline_block);
    return 0;
}

static int check_enqueue(const struct store_enqueue *r, const struct mem_account *a, struct err *err)
{
    if (!a)
        return err_set(err, ERR_ARGUMENT, "no such account: \"%.80s\"", r->account);
    if (!r->call.data || r->call.len < 1 || r->call.len > CALL_MAX)
        return err_set(err, ERR_ARGUMENT, "call has %zu bytes; it must have 1 to %d bytes", r->call.len,
                       CALL_MAX);
    if (r->key && (!*r->key || strlen(r->key) > 200))
        return err_set(err, ERR_ARGUMENT, "key has %zu bytes; it must have 1 to 200", strlen(r->key));
    if (r->priority < -1000 || r->priority > 1000)
        return err_set(err, ERR_ARGUMENT, "priority is %d; it must be -1000 to 1000", r->priority);
    if (r->retries > RETRIES_MAX)
        return err_set(err, ERR_ARGUMENT, "retries is %u; it must be 0 to %d", r->retries, RETRIES_MAX);
    if (check_tips(r, err))
        return err->code;
    return check_times(r, err);
}

/* A time of the wall clock on the loop's: a step of the wall clock moves nothing that was accepted. */
static uint64_t on_loop(const struct store_mem *s, int64_t wall_ms)
{
    uint64_t now = loop_now_ms(s->base.loop);
    int64_t left = wall_ms - (int64_t)loop_wall_ms();
    if (!wall_ms)
        return 0;
    return left > 0 ? now + (uint64_t)left : now;
}

static struct mem_row *new_row(const struct store_mem *s, const struct store_enqueue *r, int64_t id)
{
    struct mem_row *row = xcalloc(1, sizeof(*row));
    row->id = id;
    row->call = mem__copy_bytes(r->call.data, r->call.len);
    row->creator = mem__copy(r->creator ? r->creator : "");
    row->key = mem__copy(r->key);
    row->priority = r->priority;
    row->not_before = on_loop(s, r->not_before_ms);
    row->deadline = on_loop(s, r->deadline_ms);
    row->guard = r->guard;
    row->retries = r->retries;
    row->tip = mem__copy(r->tip);
    row->max_tip = mem__copy(r->max_tip);
    row->deadline_block = r->deadline_block ? r->deadline_block : -1;
    row->block_number = row->nonce = -1;
    return row;
}

void mem__enqueue(struct store_mem *s, struct store_enqueue *r)
{
    struct mem_account *a = mem__find(s, r->account);
    if (check_enqueue(r, a, &r->req.err))
        return;
    int64_t id = s->last_id + 1;
    const struct mem_key *known = r->key ? use_key(s, a, r, id) : NULL;
    if (known) {
        r->id = known->id;
        if (known->call.len != r->call.len || memcmp(known->call.data, r->call.data, r->call.len) != 0)
            err_set(&r->req.err, ERR_ARGUMENT,
                    "idempotency key \"%.80s\" was used before with another call, for transaction %lld",
                    r->key, (long long)known->id);
        return;
    }
    struct mem_row *row = new_row(s, r, id);
    r->id = s->last_id = id;
    a->timed |= row->not_before || row->deadline;
    mem__outbox_insert(a, row);
    if (s->config.on_wake)
        s->config.on_wake(s->config.arg, a->number);
}

/* ---- admission, rejection ---- */

/* Every id is in the outbox, none twice. Marks the rows; the caller unmarks on failure. */
static size_t mark(struct mem_account *a, size_t count, int64_t (*id_of)(const void *rows, size_t i),
                   const void *rows, bool *ret_twice)
{
    size_t found = 0;
    *ret_twice = false;
    for (size_t i = 0; i < count; i++) {
        struct mem_row *row = mem__queued(a, id_of(rows, i));
        if (!row)
            continue;
        *ret_twice |= row->leaving;
        found += !row->leaving;
        row->leaving = true;
    }
    return found;
}

static void unmark(struct mem_account *a, size_t count, int64_t (*id_of)(const void *rows, size_t i),
                   const void *rows)
{
    for (size_t i = 0; i < count; i++) {
        struct mem_row *row = mem__queued(a, id_of(rows, i));
        if (row)
            row->leaving = false;
    }
}

static int64_t attempt_id(const void *rows, size_t i)
{
    return ((const struct store_attempt_row *)rows)[i].id;
}

static int64_t finish_id(const void *rows, size_t i)
{
    return ((const struct store_finish_row *)rows)[i].id;
}

int64_t mem__next_nonce(const struct mem_account *a)
{
    if (a->next_nonce >= 0)
        return a->next_nonce;
    return a->pending_count ? a->pending[a->pending_count - 1]->nonce + 1 : -1;
}

/* Every id is there and its deadline has not passed. */
static int check_ids(struct store_mem *s, struct mem_account *a, const struct store_attempts *r,
                     struct err *err)
{
    bool twice;
    size_t found = mark(a, r->count, attempt_id, r->rows, &twice);
    unmark(a, r->count, attempt_id, r->rows);
    if (twice)
        return err_set(err, ERR_BUG, "an id is given more than once");
    for (size_t i = 0; i < r->count; i++) {
        const struct mem_row *row = mem__queued(a, r->rows[i].id);
        found -= row && row->deadline && row->deadline <= loop_now_ms(s->base.loop);
    }
    if (found != r->count)
        return err_set(err, ERR_DB_CONFLICT, "%zu of %zu rows are still in the outbox", found, r->count);
    return 0;
}

static int check_admit(struct store_mem *s, struct mem_account *a, const struct store_attempts *r,
                       struct err *err)
{
    int64_t due = mem__next_nonce(a);
    for (size_t i = 0; i < r->count; i++)
        if (r->rows[i].nonce < 0 || r->rows[i].nonce != r->rows[0].nonce + (int64_t)i)
            return err_set(err, ERR_BUG, "nonce %lld in place %zu: nonces must go up by one from %lld",
                           (long long)r->rows[i].nonce, i, (long long)r->rows[0].nonce);
    if (due >= 0 && r->rows[0].nonce != due)
        return err_set(err, ERR_BUG, "first nonce is %lld, next nonce of account %s is %lld",
                       (long long)r->rows[0].nonce, a->alias, (long long)due);
    if (a->paused)
        return err_set(err, ERR_DB_CONFLICT, "account %s is paused", a->alias);
    if (a->transaction_version && a->transaction_version != r->transaction_version)
        return err_set(err, ERR_DB_CONFLICT, "account %s signs under transaction version %u, not %u",
                       a->alias, a->transaction_version, r->transaction_version);
    return check_ids(s, a, r, err);
}

void mem__admit(struct store_mem *s, struct store_attempts *r)
{
    struct mem_account *a = mem__fence(s, r->account, r->epoch, &r->req.err);
    if (!a)
        return;
    r->next_nonce = a->next_nonce;
    if (!r->count || check_admit(s, a, r, &r->req.err))
        return;
    for (size_t i = 0; i < r->count; i++) {
        const struct store_attempt_row *in = &r->rows[i];
        struct mem_row *row = mem__queued(a, in->id);
        outbox_remove(a, row);
        row->nonce = in->nonce;
        a->timed |= row->deadline || row->cancelled || row->bump;
        mem__row_attempt(row, r, in);
        mem__pending_insert(a, row);
        mem__tell(s, "new", a, row, NULL, NULL);
    }
    a->transaction_version = r->transaction_version;
    r->next_nonce = a->next_nonce = r->rows[0].nonce + (int64_t)r->count;
}

/* A standalone relay takes calls only. */
void mem__admit_signed(struct store_mem *s, struct store_attempts *r)
{
    if (mem__fence(s, r->account, r->epoch, &r->req.err))
        err_set(&r->req.err, ERR_BUG, "a memory store holds nothing that was signed elsewhere");
}

void mem__note(struct store_mem *s, struct store_note *r)
{
    if (mem__fence(s, r->account, r->epoch, &r->req.err))
        err_set(&r->req.err, ERR_BUG, "a memory store holds nothing that was signed elsewhere");
}

void mem__reject(struct store_mem *s, struct store_finish *r)
{
    struct mem_account *a = mem__fence(s, r->account, r->epoch, &r->req.err);
    if (!a)
        return;
    for (size_t i = 0; i < r->count; i++) {
        if (!mem__ends(r->rows[i].outcome)) {
            err_set(&r->req.err, ERR_BUG, "a transaction without a nonce cannot end as %s",
                    r->rows[i].outcome ? r->rows[i].outcome : "NULL");
            return;
        }
    }
    bool twice;
    size_t found = mark(a, r->count, finish_id, r->rows, &twice);
    if (found != r->count) {
        unmark(a, r->count, finish_id, r->rows);
        err_set(&r->req.err, ERR_DB_CONFLICT, "%zu of %zu rows are still in the outbox", found, r->count);
        return;
    }
    for (size_t i = 0; i < r->count; i++) {
        struct mem_row *row = mem__queued(a, r->rows[i].id);
        mem__outbox_end(s, a, row, r->rows[i].outcome, r->rows[i].error);
    }
}
