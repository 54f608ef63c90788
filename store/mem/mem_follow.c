/* What readers query (listen/sql), and the tables for the owner of the database. */
#include <string.h>

#include "base/check.h"
#include "mem/mem.h"

/* In this store no transaction stays open after it has ended a row, so the next read sees every
 * row that has ended so far. */
int64_t mem_follow_position(const struct mem_db *db)
{
    int64_t now = mem_db_now_us(db);
    return now > db->stamp_us ? now : db->stamp_us;
}

static struct mem_follow_row pending_row(const struct mem_row *row)
{
    return (struct mem_follow_row){.account = row->account,
                                   .nonce = row->nonce,
                                   .id = row->id,
                                   .hash = row->hash,
                                   .block_hash = row->in.known ? row->in.hash : NULL,
                                   .block_number = row->block_number,
                                   .state = mem_state_name(row->state),
                                   .error = row->error,
                                   .creator = row->creator,
                                   .trace = row->trace,
                                   .at_us = row->updated_us};
}

size_t mem_scan_pending(const struct mem_db *db, int32_t after_account, int64_t after_nonce,
                        int32_t account, int64_t id, size_t limit, struct mem_follow_row *ret)
{
    size_t n = 0;
    for (size_t i = after_account > 1 ? (size_t)after_account - 1 : 0; i < db->t.account_count;
         i++) {
        const struct mem_account *a = db->t.accounts[i];
        if (account && a->number != account)
            continue;
        size_t at = a->number == after_account ? mem__pending_from(a, after_nonce + 1) : 0;
        for (; at < a->pending_count && n < limit; at++)
            if (!id || a->pending[at]->id == id)
                ret[n++] = pending_row(a->pending[at]);
    }
    return n;
}

static struct mem_follow_row finished_row(const struct mem_finished *f)
{
    return (struct mem_follow_row){.account = f->account,
                                   .nonce = f->nonce,
                                   .id = f->id,
                                   .hash = f->has_hash ? f->hash : NULL,
                                   .block_hash = f->in.known ? f->in.hash : NULL,
                                   .block_number = f->block_number,
                                   .state = mem_state_name(f->state),
                                   .outcome = mem_outcome_name(f->outcome),
                                   .error = f->error,
                                   .creator = f->creator,
                                   .at_us = f->finished_us};
}

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* The position of a row: its time, account, nonce and id. Times never repeat, but a position may
 * name one alone. */
static bool is_after(const struct mem_finished *f, int64_t us, int32_t account, int64_t nonce,
                     int64_t id)
{
    int order = compare(f->finished_us, us);
    order = order ? order : compare(f->account, account);
    order = order ? order : compare(f->nonce, nonce);
    order = order ? order : compare(f->id, id);
    return order > 0;
}

static size_t first_from(const struct mem_tables *t, int64_t us)
{
    size_t lo = 0, hi = t->finished_count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (t->finished[mid].finished_us < us)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

size_t mem_scan_finished(const struct mem_db *db, int64_t after_us, int32_t after_account,
                         int64_t after_nonce, int64_t after_id, int32_t account, int64_t id,
                         size_t limit, struct mem_follow_row *ret)
{
    size_t n = 0;
    for (size_t i = first_from(&db->t, after_us); i < db->t.finished_count && n < limit; i++) {
        const struct mem_finished *f = &db->t.finished[i];
        if (!f->requeued && (!account || f->account == account) && (!id || f->id == id) &&
            is_after(f, after_us, after_account, after_nonce, after_id))
            ret[n++] = finished_row(f);
    }
    return n;
}

size_t mem_find_finished(const struct mem_db *db, size_t count, const int64_t *ids, size_t fillers,
                         const int32_t *accounts, const int64_t *nonces, size_t limit,
                         struct mem_follow_row *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < count && n < limit; i++) {
        const struct mem_finished *f = mem_finished_of(db, ids[i]);
        if (f)
            ret[n++] = finished_row(f);
    }
    for (size_t i = 0; i < fillers && n < limit; i++) {
        const struct mem_nonce *x = mem_nonce_at(db, accounts[i], nonces[i]);
        const struct mem_finished *f = x ? mem__finished(&db->t, x->last_end) : NULL;
        for (; f && n < limit; f = mem__finished(&db->t, f->before))
            if (!f->id && !f->requeued)
                ret[n++] = finished_row(f);
    }
    return n;
}

/* ---- the tables ---- */

size_t mem_account_count(const struct mem_db *db)
{
    return db->t.account_count;
}

const struct mem_account *mem_account_at(const struct mem_db *db, int32_t number)
{
    return mem__account(db, number);
}

const struct mem_row *mem_row_of(const struct mem_db *db, int64_t id)
{
    const struct mem_id *x = mem__id(&db->t, id);
    return x ? x->row : NULL;
}

const struct mem_finished *mem_finished_of(const struct mem_db *db, int64_t id)
{
    const struct mem_id *x = mem__id(&db->t, id);
    return x && !x->row ? mem__finished(&db->t, x->end) : NULL;
}

const struct mem_row *mem_pending_at(const struct mem_db *db, int32_t account, int64_t nonce)
{
    const struct mem_account *a = mem__account(db, account);
    return a ? mem__pending(a, nonce) : NULL;
}

const struct mem_nonce *mem_nonce_at(const struct mem_db *db, int32_t account, int64_t nonce)
{
    const struct mem_account *a = mem__account(db, account);
    return a ? mem__nonce_at(a, nonce) : NULL;
}

size_t mem_finished_count(const struct mem_db *db)
{
    return db->t.finished_count;
}

const struct mem_finished *mem_finished_at(const struct mem_db *db, size_t i)
{
    PRE(i < db->t.finished_count);
    return &db->t.finished[i];
}

int64_t mem_last_id(const struct mem_db *db)
{
    return db->t.last_id;
}
