/* Fillers: leader_fill of 15_attempts.sql. */
#include <stdio.h>
#include <string.h>

#include "mem/mem.h"

/* Those above the next nonce continue the nonces. *ret_next: the next nonce after them, -1 for
 * none. */
static int check_gap(const struct mem_account *a, const struct store_attempts *r, int64_t *ret_next,
                     struct err *err)
{
    int64_t next = mem__next_nonce(a), top = -1, lowest = INT64_MAX;
    size_t above = 0;
    for (size_t i = 0; i < r->count; i++) {
        int64_t nonce = r->rows[i].nonce;
        above += next >= 0 && nonce >= next;
        lowest = next >= 0 && nonce >= next && nonce < lowest ? nonce : lowest;
        top = nonce > top ? nonce : top;
    }
    *ret_next = next < 0 ? (r->count ? top + 1 : -1) : next + (int64_t)above;
    if (above && (lowest != next || top != next + (int64_t)above - 1))
        return mem__fail(err, "TR003",
                         "fillers up to %lld leave a gap above the next nonce %lld of account %s",
                         (long long)top, (long long)next, a->alias);
    return 0;
}

static int check_fill(const struct mem_account *a, const struct store_attempts *r, struct err *err)
{
    enum mem_outcome outcome;
    for (size_t i = 0; i < r->count; i++) {
        const struct mem_row *row = mem__pending(a, r->rows[i].nonce);
        bool known = mem__outcome_of(r->rows[i].outcome, &outcome);
        if (row && (!r->rows[i].outcome || outcome == MEM_OK || outcome == MEM_DISPATCH_ERROR ||
                    row->state == MEM_FINALIZED))
            return mem__fail(err, "TR003", "nonce %lld (%s) cannot end as %s",
                             (long long)row->nonce, mem_state_name(row->state),
                             known ? r->rows[i].outcome : "NULL");
    }
    for (size_t i = 0; i < r->count; i++)
        if (mem__pending(a, r->rows[i].nonce) && !mem__outcome_of(r->rows[i].outcome, &outcome))
            return mem__fail(err, "22P02", "invalid input value for enum tx_outcome: \"%.40s\"",
                             r->rows[i].outcome);
    return mem__check_rows(r->count, mem__attempt_nonce, r->rows, err);
}

static void end_for_filler(struct mem_db *db, struct mem_account *a,
                           const struct store_attempt_row *in)
{
    struct mem_row *row = mem__pending(a, in->nonce);
    struct mem_ending end = {.number = -1, .index = INT32_MIN, .error = in->reason};
    if (!row)
        return;
    struct mem_attempt *former = mem__current(row);
    mem__outcome_of(in->outcome, &end.outcome);
    if (former->outcome == MEM_ATTEMPT_LIVE || former->outcome == MEM_ATTEMPT_UNKNOWN)
        former->outcome = MEM_ATTEMPT_REPLACED;
    if (!former->reason) {
        char text[80];
        snprintf(text, sizeof(text), "a filler took the nonce: %s", in->outcome);
        former->reason = mem__text(text);
    }
    mem__nonce_end(db, a, row, &end);
    mem__row_free(row);
}

void mem__fill(struct mem_session *s, struct store_attempts *r)
{
    int64_t next;
    struct mem_account *a = mem__fence(s->db, r->account, r->epoch, &r->req.err);
    if (!a || mem__check_nonces(r->count, mem__attempt_nonce, r->rows, &r->req.err) ||
        mem__check_reconciled(a, &r->req.err) || mem__check_eras(a, r, &r->req.err) ||
        check_gap(a, r, &next, &r->req.err) || check_fill(a, r, &r->req.err))
        return;
    for (size_t i = 0; i < r->count; i++) {
        const struct store_attempt_row *in = &r->rows[i];
        struct mem_row *row = mem__row_new(a->number, 0);
        struct mem_attempt t = mem__attempt_new(r, in, r->transaction_version, 0);
        end_for_filler(s->db, a, in);
        row->call = mem__bytes(in->call);
        row->created_us = mem__stamp(s->db);
        mem__pend(s->db, a, row, in->nonce, &t);
    }
    r->next_nonce = a->next_nonce = next;
}
