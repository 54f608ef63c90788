/* Transactions without a nonce, in memory, and the two reads: schema/migrations/0002_app.sql and the first
 * half of 0004_pending.sql are the text that this follows. A batch is checked as a whole before anything
 * changes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "store_mem.h"

enum { CALL_MAX = 1 << 20, KEYS_MAX = 100000 };

/* ---- rows ---- */

void mem__row_free(struct mem_row *row)
{
    free((void *)row->call.data);
    free(row->creator);
    free(row->key);
    for (size_t i = 0; i < row->attempt_count; i++) {
        free((void *)row->attempts[i].extrinsic.data);
        free(row->attempts[i].tip);
    }
    free(row->attempts);
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

static struct mem_row *by_id(struct mem_account *a, int64_t id)
{
    struct mem_row *row;
    HASH_FIND(hh, a->by_id, &id, sizeof(id), row);
    return row;
}

/* Higher priority first, then the order of arrival: most rows go to the end. */
static void outbox_insert(struct mem_account *a, struct mem_row *row)
{
    struct list *at = &a->outbox;
    while (at->prev != &a->outbox && CONTAINER_OF(at->prev, struct mem_row, node)->priority < row->priority)
        at = at->prev;
    list_append(at, &row->node);
    HASH_ADD(hh, a->by_id, id, sizeof(row->id), row);
}

static void outbox_remove(struct mem_account *a, struct mem_row *row)
{
    list_remove(&row->node);
    HASH_DELETE(hh, a->by_id, row);
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
    return 0;
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
    struct mem_row *row = xcalloc(1, sizeof(*row));
    row->id = r->id = s->last_id = id;
    row->call = mem__copy_bytes(r->call.data, r->call.len);
    row->creator = mem__copy(r->creator ? r->creator : "");
    row->key = mem__copy(r->key);
    row->priority = r->priority;
    row->block_number = row->nonce = -1;
    outbox_insert(a, row);
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
        struct mem_row *row = by_id(a, id_of(rows, i));
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
        struct mem_row *row = by_id(a, id_of(rows, i));
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

static int check_admit(struct mem_account *a, const struct store_attempts *r, struct err *err)
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
    bool twice;
    size_t found = mark(a, r->count, attempt_id, r->rows, &twice);
    unmark(a, r->count, attempt_id, r->rows);
    if (twice)
        return err_set(err, ERR_BUG, "an id is given more than once");
    if (found != r->count)
        return err_set(err, ERR_DB_CONFLICT, "%zu of %zu rows are still in the outbox", found, r->count);
    return 0;
}

void mem__admit(struct store_mem *s, struct store_attempts *r)
{
    struct mem_account *a = mem__fence(s, r->account, r->epoch, &r->req.err);
    if (!a)
        return;
    r->next_nonce = a->next_nonce;
    if (!r->count || check_admit(a, r, &r->req.err))
        return;
    for (size_t i = 0; i < r->count; i++) {
        const struct store_attempt_row *in = &r->rows[i];
        struct mem_row *row = by_id(a, in->id);
        outbox_remove(a, row);
        row->nonce = in->nonce;
        mem__row_attempt(row, r, in);
        mem__pending_insert(a, row);
        mem__tell(s, "new", a, row, NULL, NULL);
    }
    r->next_nonce = a->next_nonce = r->rows[0].nonce + (int64_t)r->count;
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
        struct mem_row *row = by_id(a, r->rows[i].id);
        outbox_remove(a, row);
        mem__tell(s, "finished", a, row, r->rows[i].outcome, r->rows[i].error);
        mem__row_free(row);
    }
}

/* ---- reads: copies, for the rows change while the caller holds them ---- */

static const uint8_t *keep(uint8_t **at, const void *data, size_t n)
{
    uint8_t *out = *at;
    if (n)
        memcpy(out, data, n);
    *at += n;
    return out;
}

static struct store_bytes keep_bytes(uint8_t **at, struct store_bytes b)
{
    return (struct store_bytes){.data = keep(at, b.data, b.len), .len = b.len};
}

static const char *keep_text(uint8_t **at, const char *s)
{
    return (const char *)keep(at, s, strlen(s) + 1);
}

void mem__outbox(struct store_mem *s, struct store_outbox *r)
{
    r->count = 0;
    r->rows = NULL;
    struct mem_account *a = mem__fence(s, r->account, r->epoch, &r->req.err);
    if (!a || a->paused)
        return;
    size_t n = 0, bytes = 0;
    for (struct list *p = a->outbox.next; p != &a->outbox && n < r->limit; p = p->next, n++) {
        const struct mem_row *row = CONTAINER_OF(p, struct mem_row, node);
        bytes += row->call.len + strlen(row->creator) + 1;
    }
    struct store_outbox_row *out = store__arena(&r->req, n * sizeof(*out) + bytes, NULL, NULL);
    uint8_t *at = (uint8_t *)(out + n);
    struct list *p = a->outbox.next;
    for (size_t i = 0; i < n; i++, p = p->next) {
        const struct mem_row *row = CONTAINER_OF(p, struct mem_row, node);
        out[i] = (struct store_outbox_row){.id = row->id, .priority = row->priority, .deadline_ms = -1};
        out[i].call = keep_bytes(&at, row->call);
        out[i].creator = keep_text(&at, row->creator);
    }
    r->count = n;
    r->rows = out;
}

/* A memory store knows no deadlines and its transactions are not cancelled: there is nothing to stop. */
void mem__look(struct store_mem *s, struct store_look *r)
{
    r->count = 0;
    r->stops = NULL;
    r->ripe = false;
    r->next_ms = -1;
    mem__fence(s, r->account, r->epoch, &r->req.err);
}

static size_t row_bytes(const struct mem_row *row)
{
    const struct mem_attempt *now = &row->attempts[row->attempt_count - 1];
    return now->extrinsic.len + row->call.len + strlen(now->tip) + 1 + strlen(row->state) + 1 + 32 +
           32 * (row->attempt_count - 1);
}

static void copy_row(struct store_pending_row *out, const struct mem_row *row, uint8_t **at)
{
    const struct mem_attempt *now = &row->attempts[row->attempt_count - 1];
    out->nonce = row->nonce;
    out->id = row->id;
    out->state = keep_text(at, row->state);
    memcpy(out->hash, now->hash, 32);
    out->attempt = (int32_t)row->attempt_count;
    out->extrinsic = keep_bytes(at, now->extrinsic);
    out->call = keep_bytes(at, row->call);
    if (row->has_block)
        out->block_hash = (struct store_bytes){.data = keep(at, row->block_hash, 32), .len = 32};
    out->block_number = row->has_block ? row->block_number : -1;
    out->era_birth = now->era_birth;
    out->era_death = now->era_death;
    out->spec_version = now->spec_version;
    out->tip = keep_text(at, now->tip);
    out->submitted_block = now->block;
    out->earlier_count = row->attempt_count - 1;
    if (out->earlier_count)
        out->earlier = (const uint8_t(*)[32])(const void *)*at;
    for (size_t i = 0; i + 1 < row->attempt_count; i++)
        keep(at, row->attempts[i].hash, 32);
}

void mem__snapshot(struct store_mem *s, struct store_snapshot *r)
{
    r->count = 0;
    r->rows = NULL;
    struct mem_account *a = mem__fence(s, r->account, r->epoch, &r->req.err);
    if (!a)
        return;
    size_t first = mem__lower_bound(a, r->after_nonce + 1);
    size_t n = a->pending_count - first, bytes = 0;
    if (n > r->limit)
        n = r->limit;
    for (size_t i = 0; i < n; i++)
        bytes += row_bytes(a->pending[first + i]);
    struct store_pending_row *out = store__arena(&r->req, n * sizeof(*out) + bytes, NULL, NULL);
    uint8_t *at = (uint8_t *)(out + n);
    for (size_t i = 0; i < n; i++)
        copy_row(&out[i], a->pending[first + i], &at);
    r->count = n;
    r->rows = out;
    r->next_nonce = a->next_nonce;
    r->facts.paused = a->paused;
}
