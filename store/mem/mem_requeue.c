/* leader_requeue of 16_finish.sql: the nonce is used up, and the transaction goes back to the
 * outbox with its id, its options and its place. */
#include <string.h>

#include "mem/mem.h"

static bool goes_back(const char *name, enum mem_outcome *ret)
{
    return mem__outcome_of(name, ret) &&
           (*ret == MEM_ENDED_USURPED || *ret == MEM_DISPATCH_ERROR || *ret == MEM_FAILED);
}

static int check_outcomes(const struct store_finish *r, struct err *err)
{
    enum mem_outcome outcome;
    for (size_t i = 0; i < r->count; i++) {
        const struct tx_end *in = &r->rows[i];
        if (!goes_back(in->outcome, &outcome))
            return mem__fail(err, "TR003", "nonce %lld cannot be used up as %s",
                             (long long)in->nonce, in->outcome ? in->outcome : "NULL");
        if ((outcome == MEM_DISPATCH_ERROR && !in->has_block) ||
            (outcome == MEM_FAILED && in->has_block))
            return mem__fail(
                err, "TR011",
                "nonce %lld: dispatch_error names the finalized block; failed has none",
                (long long)in->nonce);
    }
    return 0;
}

static const char *refusal_of(const struct mem_row *row, const struct tx_end *in)
{
    enum mem_outcome outcome;
    size_t number = mem__own_attempt(row, in->hash);
    mem__outcome_of(in->outcome, &outcome);
    if (row->presigned)
        return "was signed elsewhere, for this nonce";
    if (outcome != MEM_DISPATCH_ERROR)
        return row->state == MEM_FINALIZED ? "is in a finalized block" : NULL;
    if (!number)
        return "has no attempt with this hash";
    if (row->at->attempts[number - 1].filler_len)
        return "has a filler's call in this attempt";
    return row->retries ? NULL : "has no retries left";
}

static int check_rows(const struct mem_account *a, const struct store_finish *r, struct err *err)
{
    size_t found = 0;
    for (size_t i = 0; i < r->count; i++) {
        const struct mem_row *row = mem__pending(a, (int64_t)r->rows[i].nonce);
        if (!row || !row->id)
            continue;
        const char *why = refusal_of(row, &r->rows[i]);
        if (why)
            return mem__fail(err, "TR003", "nonce %lld (%s) %s", (long long)row->nonce,
                             mem_state_name(row->state), why);
        found++;
    }
    if (found != r->count)
        return mem__fail(err, "TR002", "%zu of %zu rows are still pending", found, r->count);
    return 0;
}

/* One of the attempts was included, and had no effect, or none of them was. */
static void end_attempts(struct mem_row *row, const struct mem_ending *end, const uint8_t *included)
{
    for (size_t i = 0; i < row->at->count; i++) {
        struct mem_attempt *t = &row->at->attempts[i];
        bool open = t->outcome == MEM_ATTEMPT_LIVE || t->outcome == MEM_ATTEMPT_UNKNOWN;
        bool is_it = included && !memcmp(t->hash, included, 32), current = i + 1 == row->at->count;
        if (!open && !is_it && !current)
            continue;
        t->state = is_it ? MEM_FINALIZED : current ? row->state : t->state;
        const char *error = is_it ? end->error : current ? row->error : NULL;
        if (error)
            mem__replace(&t->error, error);
        if (is_it) {
            t->in.known = end->block != NULL;
            if (end->block)
                memcpy(t->in.hash, end->block, 32);
            t->block_number = end->block ? end->number : -1;
        } else if (!t->reason) {
            t->reason = mem__text(end->error);
        }
        if (is_it)
            t->outcome = MEM_ATTEMPT_INCLUDED;
        else if (open)
            t->outcome = end->outcome == MEM_DISPATCH_ERROR  ? MEM_ATTEMPT_SUPERSEDED
                         : end->outcome == MEM_ENDED_USURPED ? MEM_ATTEMPT_USURPED
                                                             : MEM_ATTEMPT_DROPPED;
    }
}

/* The nonce leaves a record of its own. */
static struct mem_finished record_of(struct mem_db *db, const struct mem_row *row,
                                     const struct mem_ending *end, const uint8_t *included,
                                     int64_t epoch)
{
    struct mem_finished f = {.requeued = row->id,
                             .account = row->account,
                             .nonce = row->nonce,
                             .has_hash = true,
                             .block_number = end->block ? end->number : -1,
                             .index = end->index,
                             .state = row->state,
                             .outcome = end->outcome,
                             .error = mem__text(end->error),
                             .has_fee = end->has_fee,
                             .fee = end->fee,
                             .attempts = row->attempts,
                             .epoch = epoch,
                             .creator = mem__share(row->creator),
                             .created_us = row->created_us,
                             .admitted_us = row->admitted_us,
                             .in_block_us = row->in_block_us,
                             .finished_us = mem__stamp(db),
                             .used_block = end->outcome == MEM_ENDED_USURPED ? end->number : -1};
    if (end->outcome == MEM_DISPATCH_ERROR)
        f.state = MEM_FINALIZED;
    else if (end->outcome == MEM_ENDED_USURPED)
        f.state = MEM_USURPED;
    memcpy(f.hash, included ? included : row->hash, 32);
    f.in.known = end->block != NULL;
    if (end->block)
        memcpy(f.in.hash, end->block, 32);
    f.in_block_us = f.in_block_us || !included ? f.in_block_us : f.finished_us;
    return f;
}

/* It begins again, without a nonce and whatever belonged to that. */
static void go_back(struct mem_db *db, struct mem_account *a, struct mem_row *row)
{
    row->has_hash = row->unknown = row->blocked = row->in.known = false;
    row->state = MEM_STATE_NONE;
    row->block_number = -1;
    row->stop_outcome = MEM_OUTCOME_NONE;
    row->admitted_us = row->in_block_us = row->updated_us = 0;
    row->silent = false;
    mem__replace(&row->error, NULL);
    mem__replace(&row->stop_reason, NULL);
    mem__outbox_put(&db->t, a, row);
}

void mem__requeue(struct mem_session *s, struct store_finish *r)
{
    struct mem_account *a = mem__fence(s->db, r->account, r->epoch, &r->req.err);
    if (!a || mem__check_nonces(r->count, mem__finish_nonce, r->rows, &r->req.err) ||
        check_outcomes(r, &r->req.err) || check_rows(a, r, &r->req.err))
        return;
    for (size_t i = 0; i < r->count; i++) {
        struct mem_row *row = mem__pending(a, (int64_t)r->rows[i].nonce);
        const struct mem_ending end = mem__ending(&r->rows[i]);
        const uint8_t *included = end.outcome == MEM_DISPATCH_ERROR ? end.hash : NULL;
        end_attempts(row, &end, included);
        struct mem_finished f = record_of(s->db, row, &end, included, a->lead.epoch);
        mem__pending_take(a, row);
        mem__finished_put(s->db, &f);
        row->retries -= included != NULL;
        go_back(s->db, a, row);
        mem__notify_removed(s->db, &f);
        if (end.block || end.outcome == MEM_ENDED_USURPED)
            mem__nonces_used(a, f.nonce, end.number);
    }
}
