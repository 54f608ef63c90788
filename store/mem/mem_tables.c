/* The tables: how rows are put in, taken out and found. No rule is kept here. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "mem/mem.h"

/* ---- rows ---- */

struct mem_row *mem__row_new(int32_t account, int64_t id)
{
    struct mem_row *row = xcalloc(1, sizeof(*row));
    row->account = account;
    row->id = id;
    row->nonce = row->block_number = row->era_death = row->wait_block = row->deadline_block = -1;
    row->state = MEM_STATE_NONE;
    row->stop_outcome = MEM_OUTCOME_NONE;
    return row;
}

void mem__row_free(struct mem_row *row)
{
    const char *texts[] = {row->key,   row->creator, row->trace,
                           row->waits, row->error,   row->stop_reason};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        mem__drop(texts[i]);
    mem__drop_bytes(row->call);
    free(row);
}

void mem__attempt_done(struct mem_attempt *t)
{
    mem__drop_bytes(t->extrinsic);
    mem__drop(t->reason);
    mem__drop(t->error);
    for (size_t i = 0; i < t->refusal_count; i++)
        mem__drop(t->refusals[i].error);
    free(t->refusals);
}

void mem__nonce_free(struct mem_nonce *n)
{
    for (size_t i = 0; i < n->count; i++)
        mem__attempt_done(&n->attempts[i]);
    free(n->attempts);
    free(n);
}

/* ---- pending rows and nonces ---- */

size_t mem__pending_from(const struct mem_account *a, int64_t nonce)
{
    size_t lo = 0, hi = a->pending_count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (a->pending[mid]->nonce < nonce)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

size_t mem__nonces_from(const struct mem_account *a, int64_t nonce)
{
    size_t lo = 0, hi = a->nonce_count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (a->nonces[mid]->nonce < nonce)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

struct mem_row *mem__pending(const struct mem_account *a, int64_t nonce)
{
    size_t i = mem__pending_from(a, nonce);
    return i < a->pending_count && a->pending[i]->nonce == nonce ? a->pending[i] : NULL;
}

struct mem_nonce *mem__nonce_at(const struct mem_account *a, int64_t nonce)
{
    size_t i = mem__nonces_from(a, nonce);
    return i < a->nonce_count && a->nonces[i]->nonce == nonce ? a->nonces[i] : NULL;
}

struct mem_nonce *mem__nonce_make(struct mem_account *a, int64_t nonce)
{
    size_t at = mem__nonces_from(a, nonce);
    if (at < a->nonce_count && a->nonces[at]->nonce == nonce)
        return a->nonces[at];
    struct mem_nonce *n = xcalloc(1, sizeof(*n));
    n->nonce = nonce;
    n->last_end = -1;
    MEM_PUSH(a->nonces, a->nonce_count, a->nonce_cap, n);
    memmove(a->nonces + at + 1, a->nonces + at,
            (a->nonce_count - 1 - at) * sizeof(struct mem_nonce *));
    return a->nonces[at] = n;
}

int64_t mem__last_pending(const struct mem_account *a)
{
    return a->pending_count ? a->pending[a->pending_count - 1]->nonce : -1;
}

size_t mem__attempt_of(const struct mem_nonce *n, const uint8_t hash[32])
{
    for (size_t i = n ? n->count : 0; i; i--)
        if (!memcmp(n->attempts[i - 1].hash, hash, 32))
            return i;
    return 0;
}

bool mem__is_own(const struct mem_row *row, const struct mem_attempt *t)
{
    bool other = row->id && t->id != row->id, former = t->outcome == MEM_ATTEMPT_INCLUDED;
    return (!other && !former) || PLANTED(FORMER_LIFE);
}

size_t mem__own_attempt(const struct mem_row *row, const uint8_t hash[32])
{
    for (size_t i = row->at->count; i; i--)
        if (!memcmp(row->at->attempts[i - 1].hash, hash, 32) &&
            mem__is_own(row, &row->at->attempts[i - 1]))
            return i;
    return 0;
}

struct mem_attempt *mem__current(const struct mem_row *row)
{
    PRE(row->table == MEM_PENDING && row->at->count);
    return &row->at->attempts[row->at->count - 1];
}

void mem__attempt_add(struct mem_nonce *n, const struct mem_attempt *t)
{
    MEM_PUSH(n->attempts, n->count, n->cap, *t);
}

void mem__pending_put(struct mem_account *a, struct mem_row *row, int64_t nonce)
{
    PRE(nonce >= 0 && !row->at && !list_linked(&row->node));
    size_t at = mem__pending_from(a, nonce);
    INVARIANT(at == a->pending_count || a->pending[at]->nonce != nonce);
    row->table = MEM_PENDING;
    row->nonce = nonce;
    row->at = mem__nonce_make(a, nonce);
    row->at->row = row;
    a->timed += row->deadline_us != 0;
    MEM_PUSH(a->pending, a->pending_count, a->pending_cap, row);
    memmove(a->pending + at + 1, a->pending + at,
            (a->pending_count - 1 - at) * sizeof(struct mem_row *));
    a->pending[at] = row;
}

void mem__pending_take(struct mem_account *a, struct mem_row *row)
{
    size_t at = mem__pending_from(a, row->nonce);
    INVARIANT(at < a->pending_count && a->pending[at] == row);
    a->pending_count--;
    memmove(a->pending + at, a->pending + at + 1,
            (a->pending_count - at) * sizeof(struct mem_row *));
    a->timed -= row->deadline_us != 0;
    row->at->row = NULL;
    row->at = NULL;
}

/* ---- what waits ---- */

struct mem_id *mem__id(const struct mem_tables *t, int64_t id)
{
    struct mem_id *x;
    HASH_FIND(hh, t->ids, &id, sizeof(id), x);
    return x;
}

struct mem_id *mem__id_make(struct mem_tables *t, int64_t id)
{
    struct mem_id *x = mem__id(t, id);
    if (x)
        return x;
    x = xcalloc(1, sizeof(*x));
    x->id = id;
    x->end = -1;
    HASH_ADD(hh, t->ids, id, sizeof(x->id), x);
    return x;
}

struct mem_row *mem__waiting(const struct mem_tables *t, enum mem_table table,
                             const struct mem_account *a, int64_t id)
{
    const struct mem_id *x = mem__id(t, id);
    if (!x || !x->row || x->row->table != table || (a && x->row->account != a->number))
        return NULL;
    return x->row;
}

/* Higher priority first, then the lower id: most rows go to the end. */
void mem__outbox_put(struct mem_tables *t, struct mem_account *a, struct mem_row *row)
{
    PRE(row->id && !row->at && !list_linked(&row->node));
    struct list *at = &a->outbox;
    while (at->prev != &a->outbox) {
        const struct mem_row *before = CONTAINER_OF(at->prev, struct mem_row, node);
        if (before->priority > row->priority ||
            (before->priority == row->priority && before->id < row->id))
            break;
        at = at->prev;
    }
    row->table = MEM_OUTBOX;
    row->nonce = -1;
    a->timed += row->deadline_us || row->not_before_us;
    list_append(at, &row->node);
    mem__id_make(t, row->id)->row = row;
}

void mem__signed_put(struct mem_tables *t, struct mem_account *a, struct mem_row *row)
{
    PRE(row->id && row->presigned && !list_linked(&row->node));
    row->table = MEM_OUTBOX_SIGNED;
    list_append(&a->signed_rows, &row->node);
    mem__id_make(t, row->id)->row = row;
}

void mem__waiting_take(struct mem_account *a, struct mem_row *row)
{
    INVARIANT(!row->held || PLANTED(HELD_TAKEN));
    PRE(row->table != MEM_PENDING && list_linked(&row->node));
    if (row->table == MEM_OUTBOX)
        a->timed -= row->deadline_us || row->not_before_us;
    list_remove(&row->node);
}

/* ---- ends ---- */

void mem__finished_done(struct mem_finished *f)
{
    mem__drop(f->error);
    mem__drop(f->key);
    mem__drop(f->creator);
    mem__drop(f->options.trace);
    mem__drop_bytes(f->call);
}

struct mem_finished *mem__finished(const struct mem_tables *t, int64_t serial)
{
    return serial >= t->finished_first ? &t->finished[serial - t->finished_first] : NULL;
}

static void drop_nonces(const struct mem_tables *t, struct mem_account *a)
{
    size_t n = 0;
    for (size_t i = 0; i < a->nonce_count; i++) {
        struct mem_nonce *x = a->nonces[i];
        if (!x->row && x->last_end < t->finished_first)
            mem__nonce_free(x);
        else
            a->nonces[n++] = x;
    }
    a->nonce_count = n;
}

/* The oldest ends go, and the attempts at nonces that nothing else is known of. */
static void prune(struct mem_tables *t, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct mem_id *x = t->finished[i].id ? mem__id(t, t->finished[i].id) : NULL;
        if (x) {
            HASH_DELETE(hh, t->ids, x);
            free(x);
        }
        mem__finished_done(&t->finished[i]);
    }
    t->finished_count -= count;
    t->finished_first += (int64_t)count;
    memmove(t->finished, t->finished + count, t->finished_count * sizeof(*t->finished));
    for (size_t i = 0; i < t->account_count; i++)
        drop_nonces(t, t->accounts[i]);
}

void mem__finished_put(struct mem_db *db, const struct mem_finished *f)
{
    struct mem_tables *t = &db->t;
    struct mem_account *a = mem__account(db, f->account);
    int64_t serial = t->finished_first + (int64_t)t->finished_count;
    PRE(!t->finished_count || t->finished[t->finished_count - 1].finished_us < f->finished_us);
    MEM_PUSH(t->finished, t->finished_count, t->finished_cap, *f);
    struct mem_finished *last = &t->finished[t->finished_count - 1];
    last->before = -1;
    if (f->nonce >= 0) {
        struct mem_nonce *n = mem__nonce_make(a, f->nonce);
        last->before = n->last_end;
        n->last_end = serial;
    }
    if (f->id) {
        struct mem_id *x = mem__id_make(t, f->id);
        x->row = NULL;
        x->end = serial;
    }
    size_t most = db->config.finished_most;
    if (most && t->finished_count > most + most / 4)
        prune(t, most / 4);
}
