/* The ends of pending rows in memory, and their way back to the outbox: the second half of
 * schema/migrations/0004_pending.sql is the text that this follows. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "store_mem.h"

static int64_t finish_nonce(const void *rows, size_t i)
{
    return ((const struct store_finish_row *)rows)[i].nonce;
}

/* Those marked as leaving are gone; who frees them is the caller's business. */
static void remove_leaving(struct mem_account *a, void (*leave)(struct mem_account *a, struct mem_row *row))
{
    size_t n = 0;
    for (size_t i = 0; i < a->pending_count; i++) {
        struct mem_row *row = a->pending[i];
        if (row->leaving)
            leave(a, row);
        else
            a->pending[n++] = row;
    }
    a->pending_count = n;
}

/* ---- ends ---- */

static int check_row(const struct mem_account *a, const struct store_finish_row *in, struct err *err)
{
    const struct mem_row *row = mem__pending(a, in->nonce);
    if (!row && a->first_nonce >= 0 && in->nonce >= a->first_nonce && in->nonce < a->next_nonce)
        return err_set(err, ERR_BUG, "nonce %lld has ended before", (long long)in->nonce);
    if (!row)
        return err_set(err, ERR_DB_CONFLICT, "nonce %lld is not pending", (long long)in->nonce);
    if (in->block_number >= 0 && !mem__attempt_of(row, in->hash))
        return err_set(err, ERR_BUG, "nonce %lld has no attempt with this hash", (long long)in->nonce);
    return 0;
}

static int check_finish(const struct mem_account *a, const struct store_finish_row *in, struct err *err)
{
    bool chain = in->outcome && (!strcmp(in->outcome, "ok") || !strcmp(in->outcome, "dispatch_error"));
    if (!chain && !mem__ends(in->outcome))
        return err_set(err, ERR_ARGUMENT, "nonce %lld: no such outcome: %s", (long long)in->nonce,
                       in->outcome ? in->outcome : "NULL");
    if (chain && in->block_number < 0)
        return err_set(err, ERR_ARGUMENT, "nonce %lld: %s names no block", (long long)in->nonce, in->outcome);
    if (check_row(a, in, err))
        return err->code;
    const struct mem_row *row = mem__pending(a, in->nonce);
    size_t attempt = mem__attempt_of(row, in->hash);
    if (row->id && in->block_number >= 0 && chain != !row->attempts[attempt - 1].filler_len)
        return err_set(err, ERR_BUG, "nonce %lld: attempt %zu has %s call and cannot end as %s",
                       (long long)in->nonce, attempt,
                       row->attempts[attempt - 1].filler_len ? "a filler's" : "the transaction's own",
                       in->outcome);
    return 0;
}

/* The attempt that was included counts as the current one. */
static void make_current(struct mem_row *row, const uint8_t hash[32])
{
    size_t n = mem__attempt_of(row, hash);
    struct mem_attempt t = row->attempts[n - 1];
    memmove(&row->attempts[n - 1], &row->attempts[n], (row->attempt_count - n) * sizeof(t));
    row->attempts[row->attempt_count - 1] = t;
}

/* The row's nonce is over: what a follower sees of it, and what is known of the nonce from then on.
 * `included`: by the attempt with the hash. */
static void end_nonce(struct store_mem *s, struct mem_account *a, const struct store_finish_row *in,
                      bool included)
{
    struct mem_row *row = mem__pending(a, in->nonce);
    bool usurped = !strcmp(in->outcome, "usurped");
    if (included) {
        bool seen = strcmp(row->state, "finalized") != 0;
        make_current(row, in->hash);
        mem__set_state(row, "finalized");
        if (seen)
            mem__tell(s, "update", a, row, NULL, NULL);
    } else if (usurped) {
        mem__set_state(row, "usurped");
    }
    if (in->block_number >= 0 || usurped)
        mem__used(a, in->nonce, in->block_number < 0 && in->used_block ? in->used_block : in->block_number);
    mem__tell(s, "finished", a, row, in->outcome, in->error);
    row->leaving = true;
}

static void leave_for_good(struct mem_account *a, struct mem_row *row)
{
    (void)a;
    mem__row_free(row);
}

void mem__finish(struct store_mem *s, struct store_finish *r)
{
    struct mem_account *a = mem__fence(s, r->account, r->epoch, &r->req.err);
    if (!a || mem__check_nonces(a, r->count, finish_nonce, r->rows, &r->req.err))
        return;
    for (size_t i = 0; i < r->count; i++)
        if (check_finish(a, &r->rows[i], &r->req.err))
            return;
    for (size_t i = 0; i < r->count; i++)
        end_nonce(s, a, &r->rows[i], r->rows[i].block_number >= 0);
    remove_leaving(a, leave_for_good);
}

/* ---- back to the outbox ---- */

static int check_requeue(const struct mem_account *a, const struct store_finish_row *in, struct err *err)
{
    static const char *const names[] = {"usurped", "dispatch_error", "failed"};
    const struct mem_row *row = mem__pending(a, in->nonce);
    bool known = false;
    for (size_t i = 0; in->outcome && i < ARRAY_LEN(names); i++)
        known |= !strcmp(in->outcome, names[i]);
    if (!known)
        return err_set(err, ERR_BUG, "nonce %lld: a transaction does not go back because of %s",
                       (long long)in->nonce, in->outcome ? in->outcome : "NULL");
    bool error = !strcmp(in->outcome, "dispatch_error");
    if (!row || !row->id || (!error && !strcmp(row->state, "finalized")))
        return err_set(err, ERR_DB_CONFLICT, "nonce %lld has no transaction that could go back",
                       (long long)in->nonce);
    if (error && in->block_number < 0)
        return err_set(err, ERR_ARGUMENT, "nonce %lld: %s names no block", (long long)in->nonce, in->outcome);
    if (!strcmp(in->outcome, "failed") && in->block_number >= 0)
        return err_set(err, ERR_ARGUMENT, "nonce %lld: failed names a block", (long long)in->nonce);
    size_t attempt = mem__attempt_of(row, in->hash);
    if (error && (!attempt || row->attempts[attempt - 1].filler_len))
        return err_set(err, ERR_BUG, "nonce %lld has no attempt of its own with this hash",
                       (long long)in->nonce);
    if (error && !row->retries)
        return err_set(err, ERR_BUG, "nonce %lld: transaction %lld has no retries left", (long long)in->nonce,
                       (long long)row->id);
    return 0;
}

/* It begins again: with its id, key, options and place, without a nonce and whatever belonged to that. */
static void leave_for_outbox(struct mem_account *a, struct mem_row *row)
{
    mem__row_attempts_free(row);
    free(row->stop_outcome);
    free(row->stop_reason);
    free(row->refusal);
    row->stop_outcome = row->stop_reason = row->refusal = NULL;
    row->leaving = row->unknown = row->has_block = false;
    row->nonce = row->block_number = -1;
    mem__set_state(row, "");
    a->timed |= row->not_before || row->deadline || row->cancelled || row->bump;
    mem__outbox_insert(a, row);
}

void mem__requeue(struct store_mem *s, struct store_finish *r)
{
    struct mem_account *a = mem__fence(s, r->account, r->epoch, &r->req.err);
    if (!a || mem__check_nonces(a, r->count, finish_nonce, r->rows, &r->req.err))
        return;
    for (size_t i = 0; i < r->count; i++)
        if (check_requeue(a, &r->rows[i], &r->req.err))
            return;
    for (size_t i = 0; i < r->count; i++) {
        const struct store_finish_row *in = &r->rows[i];
        struct mem_row *row = mem__pending(a, in->nonce);
        bool error = !strcmp(in->outcome, "dispatch_error");
        row->retries -= error;
        end_nonce(s, a, in, error);
    }
    remove_leaving(a, leave_for_outbox);
}
