/* Nonces are given and used: leader_admit of 14_admit.sql, leader_attempt of 15_attempts.sql. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "mem/mem.h"

/* ---- what batches have in common ---- */

int64_t mem__attempt_nonce(const void *rows, size_t i)
{
    return ((const struct store_attempt_row *)rows)[i].nonce;
}

static int by_value(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a > b) - (a < b);
}

/* No nonce twice. */
int mem__check_nonces(size_t count, int64_t (*nonce_of)(const void *rows, size_t i),
                      const void *rows, struct err *err)
{
    if (count < 2)
        return 0;
    int64_t *nonces = xcalloc(count, sizeof(*nonces));
    for (size_t i = 0; i < count; i++)
        nonces[i] = nonce_of(rows, i);
    qsort(nonces, count, sizeof(*nonces), by_value);
    for (size_t i = 1; i < count && !err->code; i++)
        if (nonces[i] == nonces[i - 1])
            mem__fail(err, "TR003", "nonce %lld is given more than once", (long long)nonces[i]);
    free(nonces);
    return err->code;
}

/* What CHECK constraints say of rows that are put in. */
int mem__check_rows(size_t count, int64_t (*nonce_of)(const void *rows, size_t i), const void *rows,
                    struct err *err)
{
    for (size_t i = 0; i < count; i++)
        if (nonce_of(rows, i) < 0)
            return mem__fail(err, "23514", "nonce %lld is negative", (long long)nonce_of(rows, i));
    return 0;
}

struct mem_attempt mem__attempt_new(const struct store_attempts *r,
                                    const struct store_attempt_row *in,
                                    uint32_t transaction_version, int64_t id)
{
    struct mem_attempt t = {.id = id,
                            .extrinsic = mem__bytes(in->extrinsic),
                            .era_birth = in->era_birth,
                            .era_death = in->era_death,
                            .spec_version = r->spec_version,
                            .transaction_version = transaction_version,
                            .block = r->block,
                            .epoch = r->epoch,
                            .outcome = MEM_ATTEMPT_LIVE,
                            .state = MEM_STATE_NONE,
                            .block_number = -1};
    memcpy(t.hash, in->hash, 32);
    mem__amount(in->tip, &t.tip);
    return t;
}

static void begin_attempt(struct mem_db *db, struct mem_account *a, struct mem_row *row,
                          const struct mem_attempt *t)
{
    mem__attempt_add(row->at, t);
    memcpy(row->hash, t->hash, 32);
    row->has_hash = true;
    row->attempts++;
    row->state = MEM_SIGNED;
    row->unknown = row->in.known = false;
    row->block_number = -1;
    mem__replace(&row->error, NULL);
    row->epoch = a->lead.epoch;
    row->updated_us = mem__stamp(db);
}

/* The row gets this nonce. It has left the table where it waited. */
void mem__pend(struct mem_db *db, struct mem_account *a, struct mem_row *row, int64_t nonce,
               const struct mem_attempt *t)
{
    mem__pending_put(a, row, nonce);
    begin_attempt(db, a, row, t);
    row->admitted_us = row->updated_us;
    mem__notify_row(db, MEM_TX_NEW, row);
}

void mem__attempt_again(struct mem_db *db, struct mem_account *a, struct mem_row *row,
                        const struct mem_attempt *t, const char *reason)
{
    struct mem_attempt *former = mem__current(row);
    if (former->outcome == MEM_ATTEMPT_LIVE || former->outcome == MEM_ATTEMPT_UNKNOWN)
        former->outcome = MEM_ATTEMPT_REPLACED;
    mem__replace(&former->reason, reason);
    former->state = row->state;
    former->in = row->in;
    former->block_number = row->block_number;
    if (row->error)
        mem__replace(&former->error, row->error);
    begin_attempt(db, a, row, t);
    mem__notify_row(db, MEM_TX_UPDATE, row);
}

static int other_version(const struct mem_account *a, uint32_t version, struct err *err)
{
    return mem__fail(err, "TR002",
                     "signed under transaction version %u, and account %s signs under %u", version,
                     a->alias, a->transaction_version);
}

/* ---- admission ---- */

static int check_order(const struct mem_account *a, const struct store_attempts *r, struct err *err)
{
    int64_t due = mem__next_nonce(a), first = r->rows[0].nonce;
    for (size_t i = 0; i < r->count; i++)
        if (r->rows[i].nonce < 0 || r->rows[i].nonce != first + (int64_t)i)
            return mem__fail(err, "TR003",
                             "nonce %lld in place %zu: nonces must go up by one from %lld",
                             (long long)r->rows[i].nonce, i, (long long)first);
    if (due >= 0 && first != due)
        return mem__fail(err, "TR003", "first nonce is %lld, next nonce of account %s is %lld",
                         (long long)first, a->alias, (long long)due);
    return 0;
}

static int check_account(const struct mem_account *a, const struct store_attempts *r,
                         struct err *err)
{
    if (a->paused)
        return mem__fail(err, "TR002", "account %s is paused", a->alias);
    if (a->transaction_version && a->transaction_version != r->transaction_version)
        return other_version(a, r->transaction_version, err);
    return mem__check_reconciled(a, err) ? err->code : mem__check_eras(a, r, err);
}

/* A planted fault: what was cancelled is found nevertheless. */
static void revive(struct mem_db *db, struct mem_account *a, int64_t id)
{
    const struct mem_id *x = mem__id(&db->t, id);
    const struct mem_finished *f = x && !x->row ? mem__finished(&db->t, x->end) : NULL;
    if (!f || f->outcome != MEM_CANCELLED || f->nonce >= 0 || f->account != a->number)
        return;
    struct mem_row *row = mem__row_new(a->number, id);
    row->call = mem__share_bytes(f->call);
    row->creator = mem__share(f->creator);
    row->created_us = f->created_us;
    mem__outbox_put(&db->t, a, row);
}

static int64_t id_of(const void *rows, size_t i)
{
    return ((const struct store_attempt_row *)rows)[i].id;
}

/* Every id is in the outbox once, and its deadline has not passed. */
static int check_ids(struct mem_db *db, struct mem_account *a, const struct store_attempts *r,
                     struct err *err)
{
    size_t found = 0;
    int64_t now = mem_db_now_us(db);
    for (size_t i = 0; i < r->count; i++) {
        if (PLANTED(CANCEL_ADMIT))
            revive(db, a, r->rows[i].id);
        const struct mem_row *row = mem__waiting(&db->t, MEM_OUTBOX, a, r->rows[i].id);
        found += row && (!row->held || PLANTED(HELD_TAKEN)) &&
                 (!row->deadline_us || row->deadline_us > now);
    }
    if (found != r->count)
        return mem__fail(err, "TR002", "%zu of %zu rows are still in the outbox", found, r->count);
    return 0;
}

void mem__admit(struct mem_session *s, struct store_attempts *r)
{
    struct mem_account *a = mem__fence(s->db, r->account, r->epoch, &r->req.err);
    if (!a)
        return;
    r->next_nonce = a->next_nonce;
    if (!r->count || check_order(a, r, &r->req.err) ||
        mem__check_nonces(r->count, id_of, r->rows, &r->req.err) ||
        check_account(a, r, &r->req.err) || check_ids(s->db, a, r, &r->req.err))
        return;
    for (size_t i = 0; i < r->count; i++) {
        const struct store_attempt_row *in = &r->rows[i];
        struct mem_row *row = mem__waiting(&s->db->t, MEM_OUTBOX, a, in->id);
        struct mem_attempt t = mem__attempt_new(r, in, r->transaction_version, row->id);
        mem__waiting_take(a, row);
        row->not_before_us = 0;
        mem__pend(s->db, a, row, in->nonce, &t);
    }
    if (!a->transaction_version)
        a->transaction_version = r->transaction_version;
    if (r->block > a->seen_block)
        a->seen_block = r->block;
    r->next_nonce = a->next_nonce = r->rows[0].nonce + (int64_t)r->count;
}

/* ---- new attempts ---- */

static bool stops(const char *name)
{
    enum mem_outcome outcome;
    return mem__outcome_of(name, &outcome) &&
           (outcome == MEM_CANCELLED || outcome == MEM_EXPIRED || outcome == MEM_FAILED);
}

static int check_attempts(const struct mem_account *a, const struct store_attempts *r,
                          struct err *err)
{
    for (size_t i = 0; i < r->count; i++)
        if (mem__attempt_of(mem__nonce_at(a, r->rows[i].nonce), r->rows[i].hash))
            return mem__fail(err, "TR003", "nonce %lld has these bytes already",
                             (long long)r->rows[i].nonce);
    for (size_t i = 0; i < r->count; i++) {
        const struct store_attempt_row *in = &r->rows[i];
        if (in->filler_len && (in->filler_len > in->extrinsic.len || !stops(in->outcome)))
            return mem__fail(err, "TR003",
                             "nonce %lld with a filler of %u bytes (in %zu) cannot end as %s",
                             (long long)in->nonce, in->filler_len, in->extrinsic.len,
                             in->outcome ? in->outcome : "NULL");
    }
    return 0;
}

static int check_pending(const struct mem_account *a, const struct store_attempts *r,
                         struct err *err)
{
    bool other = a->transaction_version && a->transaction_version != r->transaction_version;
    bool version = false, missing = false, final = false;
    for (size_t i = 0; i < r->count; i++) {
        const struct mem_row *row = mem__pending(a, r->rows[i].nonce);
        bool own = !r->rows[i].filler_len;
        if (row && row->presigned && own)
            return mem__fail(err, "TR003", "transaction %lld at nonce %lld was signed elsewhere",
                             (long long)row->id, (long long)row->nonce);
        version |= row && row->id && own && other;
        missing |= !row;
        final |= row && row->state == MEM_FINALIZED;
    }
    if (version)
        return other_version(a, r->transaction_version, err);
    if (final)
        return mem__fail(err, "TR003", "what is finalized stays");
    if (missing)
        return mem__fail(err, "TR002", "not all of %zu rows are still pending", r->count);
    return 0;
}

static void attempt_rows(struct mem_db *db, struct mem_account *a, const struct store_attempts *r,
                         uint32_t version)
{
    for (size_t i = 0; i < r->count; i++) {
        const struct store_attempt_row *in = &r->rows[i];
        struct mem_row *row = mem__pending(a, in->nonce);
        struct mem_attempt t = mem__attempt_new(r, in, version, row->id);
        t.filler_len = in->filler_len;
        mem__attempt_again(db, a, row, &t, in->reason);
        if (!in->filler_len)
            continue;
        mem__outcome_of(in->outcome, &row->stop_outcome);
        mem__replace(&row->stop_reason, in->stop_reason);
    }
}

void mem__attempt(struct mem_session *s, struct store_attempts *r)
{
    struct mem_account *a = mem__fence(s->db, r->account, r->epoch, &r->req.err);
    if (!a || mem__check_nonces(r->count, mem__attempt_nonce, r->rows, &r->req.err) ||
        mem__check_reconciled(a, &r->req.err) || mem__check_eras(a, r, &r->req.err) ||
        check_attempts(a, r, &r->req.err) || check_pending(a, r, &r->req.err))
        return;
    attempt_rows(s->db, a, r, r->transaction_version);
}
