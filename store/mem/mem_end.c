/* Ends: leader_finish, nonces_end and nonces_used of 16_finish.sql, leader_reject of 14_admit.sql,
 * outbox_end of 10_cancel.sql. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "mem/mem.h"

int64_t mem__finish_nonce(const void *rows, size_t i)
{
    return (int64_t)((const struct tx_end *)rows)[i].nonce;
}

/* An outcome that there is not is NONE: Postgres asks for one when a row ends, and not before. */
struct mem_ending mem__ending(const struct tx_end *in)
{
    struct mem_ending end = {.hash = in->hash,
                             .block = in->has_block ? in->block_hash : NULL,
                             .number = store__end_number(in),
                             .index = store__end_index(in),
                             .error = store__text(in->error),
                             .has_fee = in->has_fee,
                             .fee = in->fee};
    mem__outcome_of(in->outcome, &end.outcome);
    return end;
}

/* What finalized blocks have used for good. */
void mem__nonces_used(struct mem_account *a, int64_t nonce, int64_t block)
{
    if (nonce >= a->used_nonce)
        a->used_nonce = nonce + 1;
    if (block > a->used_block)
        a->used_block = block;
}

/* ---- the end of a nonce ---- */

/* Without a block that shows by what. */
static bool uses_nonce(enum mem_outcome outcome)
{
    return outcome == MEM_ENDED_USURPED || outcome == MEM_ENDED_UNKNOWN;
}

static bool by_chain(enum mem_outcome outcome)
{
    return outcome == MEM_OK || outcome == MEM_DISPATCH_ERROR;
}

/* What becomes of the attempts: one was included, or none. */
static void end_attempts(struct mem_row *row, const struct mem_ending *end, enum mem_state becomes,
                         const uint8_t *last)
{
    for (size_t i = 0; i < row->at->count; i++) {
        struct mem_attempt *t = &row->at->attempts[i];
        bool open = t->outcome == MEM_ATTEMPT_LIVE || t->outcome == MEM_ATTEMPT_UNKNOWN;
        bool is_last = !memcmp(t->hash, last, 32), current = i + 1 == row->at->count;
        if (!open && !is_last && !current)
            continue;
        t->state = is_last ? becomes : current ? row->state : t->state;
        if (end->block && !is_last && current && row->error)
            mem__replace(&t->error, row->error);
        else if (end->block && is_last && !t->filler_len && end->error)
            mem__replace(&t->error, end->error);
        if (is_last) {
            t->in.known = end->block != NULL;
            if (end->block)
                memcpy(t->in.hash, end->block, 32);
            t->block_number = end->block ? end->number : -1;
        }
        if (end->block && is_last)
            t->outcome = MEM_ATTEMPT_INCLUDED;
        else if (open)
            t->outcome = end->block                          ? MEM_ATTEMPT_SUPERSEDED
                         : end->outcome == MEM_ENDED_USURPED ? MEM_ATTEMPT_USURPED
                         : end->outcome == MEM_ENDED_UNKNOWN ? MEM_ATTEMPT_UNKNOWN
                                                             : MEM_ATTEMPT_DROPPED;
    }
}

/* If the attempt that was included belongs to a transaction that had ended before, the nonce's
 * record says so: such an effect must never be without a trace. */
static const char *error_of(const struct mem_row *row, const struct mem_ending *end,
                            const uint8_t *last)
{
    size_t number = mem__attempt_of(row->at, last);
    int64_t id = number ? row->at->attempts[number - 1].id : 0;
    if (row->id || !end->block || !id)
        return mem__text(end->error);
    char *text = xasprintf(
        "the attempt that was included belongs to transaction %lld, which had ended before%s%s",
        (long long)id, end->error ? ": " : "", end->error ? end->error : "");
    const char *kept = mem__text(text);
    free(text);
    return kept;
}

static struct mem_finished record_of(const struct mem_row *row, const struct mem_ending *end,
                                     enum mem_state becomes, const uint8_t *last, int64_t epoch)
{
    struct mem_finished f = {.id = row->id,
                             .account = row->account,
                             .nonce = row->nonce,
                             .has_hash = true,
                             .block_number = end->block ? end->number : -1,
                             .index = end->index,
                             .state = becomes,
                             .outcome = end->outcome,
                             .error = error_of(row, end, last),
                             .has_fee = end->has_fee,
                             .fee = end->fee,
                             .attempts = row->attempts,
                             .epoch = epoch,
                             .key = mem__share(row->key),
                             .creator = mem__share(row->creator),
                             .created_us = row->created_us,
                             .admitted_us = row->admitted_us,
                             .in_block_us = row->in_block_us,
                             .used_block =
                                 !end->block && uses_nonce(end->outcome) ? end->number : -1};
    memcpy(f.hash, last, 32);
    f.in.known = end->block != NULL;
    if (end->block)
        memcpy(f.in.hash, end->block, 32);
    if (end->outcome == MEM_OK || !row->id)
        return f;
    f.call = mem__share_bytes(row->call);
    f.options = mem__options_of(row);
    return f;
}

/* The last change of the state is notified before the row is gone. It belongs to the caller
 * then. */
void mem__nonce_end(struct mem_db *db, struct mem_account *a, struct mem_row *row,
                    const struct mem_ending *end)
{
    PRE(row->table == MEM_PENDING && end->outcome != MEM_OUTCOME_NONE);
    const uint8_t *last = end->block ? end->hash : row->hash;
    enum mem_state becomes = end->block                          ? MEM_FINALIZED
                             : end->outcome == MEM_ENDED_USURPED ? MEM_USURPED
                                                                 : row->state;
    if (end->block && mem__has_block(row) && memcmp(row->in.hash, end->block, 32) != 0)
        mem__retracted(row, row->in.hash);
    end_attempts(row, end, becomes, last);
    struct mem_finished f = record_of(row, end, becomes, last, a->lead.epoch);
    f.finished_us = mem__stamp(db);
    f.in_block_us = f.in_block_us || !end->block ? f.in_block_us : f.finished_us;
    bool block_moves =
        row->in.known != f.in.known || (f.in.known && memcmp(row->in.hash, f.in.hash, 32) != 0);
    bool seen = becomes != row->state || memcmp(last, row->hash, 32) != 0 || block_moves;
    row->state = becomes;
    row->in = f.in;
    memmove(row->hash, last, 32);
    row->updated_us = f.finished_us;
    if (seen)
        mem__notify_row(db, MEM_TX_UPDATE, row);
    mem__pending_take(a, row);
    mem__finished_put(db, &f);
    mem__notify_removed(db, &f);
}

/* ---- leader_finish ---- */

static int check_outcomes(const struct store_finish *r, struct err *err)
{
    for (size_t i = 0; i < r->count; i++) {
        const struct tx_end *in = &r->rows[i];
        enum mem_outcome outcome;
        if (!in->outcome ||
            (!in->has_block && mem__outcome_of(in->outcome, &outcome) && by_chain(outcome)))
            return mem__fail(err, "TR011", "nonce %lld: %s names no block", (long long)in->nonce,
                             in->outcome ? in->outcome : "outcome NULL");
    }
    return 0;
}

/* An end is true whatever a failover lost, if a block shows it, or shows that the nonce is used. */
static int check_lost(const struct mem_account *a, const struct store_finish *r, struct err *err)
{
    for (size_t i = 0; i < r->count; i++)
        if (store__end_number(&r->rows[i]) < 0 && mem__check_reconciled(a, err))
            return err->code;
    return 0;
}

/* Does the end fit what is on record? */
static bool fits(const struct mem_row *row, const struct mem_ending *end)
{
    size_t number = end->block ? mem__own_attempt(row, end->hash) : 0;
    const struct mem_attempt *t = number ? &row->at->attempts[number - 1] : NULL;
    if (end->block && !t)
        return false;
    bool own = by_chain(end->outcome) || end->outcome == MEM_ENDED_UNKNOWN;
    if (end->block && row->id && !t->filler_len != own)
        return false;
    return row->state != MEM_FINALIZED || (end->block && !memcmp(row->hash, end->hash, 32) &&
                                           !memcmp(row->in.hash, end->block, 32));
}

static bool ended_before(const struct mem_db *db, const struct mem_account *a, int64_t nonce)
{
    const struct mem_nonce *n = mem__nonce_at(a, nonce);
    const struct mem_finished *f = n ? mem__finished(&db->t, n->last_end) : NULL;
    return f && f->finished_us > a->life_since_us;
}

static int check_rows(struct mem_db *db, const struct mem_account *a, const struct store_finish *r,
                      struct err *err)
{
    size_t found = 0;
    bool wrong = false;
    for (size_t i = 0; i < r->count; i++) {
        const struct mem_row *row = mem__pending(a, (int64_t)r->rows[i].nonce);
        const struct mem_ending end = mem__ending(&r->rows[i]);
        bool good = row && fits(row, &end);
        found += good;
        wrong |= !good && (row || ended_before(db, a, (int64_t)r->rows[i].nonce));
        if (good && end.outcome == MEM_OUTCOME_NONE)
            return mem__fail(err, "22P02", "invalid input value for enum tx_outcome: \"%.40s\"",
                             r->rows[i].outcome);
    }
    if (wrong)
        return mem__fail(err, "TR003",
                         "a nonce of %zu has ended before, is finalized, or has no such attempt "
                         "that could end so",
                         r->count);
    if (found != r->count)
        return mem__fail(err, "TR002", "%zu of %zu rows are still pending", found, r->count);
    return 0;
}

void mem__finish(struct mem_session *s, struct store_finish *r)
{
    struct mem_account *a = mem__fence(s->db, r->account, r->epoch, &r->req.err);
    if (!a || mem__check_nonces(r->count, mem__finish_nonce, r->rows, &r->req.err) ||
        check_outcomes(r, &r->req.err) || check_lost(a, r, &r->req.err) ||
        check_rows(s->db, a, r, &r->req.err))
        return;
    for (size_t i = 0; i < r->count; i++) {
        struct mem_row *row = mem__pending(a, (int64_t)r->rows[i].nonce);
        const struct mem_ending end = mem__ending(&r->rows[i]);
        mem__nonce_end(s->db, a, row, &end);
        mem__row_free(row);
        if (end.block || uses_nonce(end.outcome))
            mem__nonces_used(a, (int64_t)r->rows[i].nonce, end.number);
    }
}
