/* Ends without a nonce: outbox_end of 10_cancel.sql, and leader_reject of 14_admit.sql. */
#include "mem/mem.h"

/* outbox_end, signed_end. */
void mem__outbox_end(struct mem_db *db, struct mem_account *a, struct mem_row *row,
                     enum mem_outcome outcome, const char *error, int64_t epoch)
{
    struct mem_finished f = {.id = row->id,
                             .account = row->account,
                             .nonce = -1,
                             .block_number = -1,
                             .index = INT32_MIN,
                             .state = MEM_STATE_NONE,
                             .outcome = outcome,
                             .error = mem__text(error),
                             .attempts = row->table == MEM_OUTBOX ? row->attempts : 0,
                             .epoch = epoch,
                             .key = mem__share(row->key),
                             .creator = mem__share(row->creator),
                             .call = mem__share_bytes(row->call),
                             .options = mem__options_of(row),
                             .created_us = row->created_us,
                             .finished_us = mem__stamp(db),
                             .used_block = -1};
    mem__waiting_take(a, row);
    mem__finished_put(db, &f);
    mem__notify_removed(db, &f);
    mem__row_free(row);
}

static struct mem_row *waiting(const struct mem_db *db, const struct mem_account *a, int64_t id)
{
    struct mem_row *row = mem__waiting(&db->t, MEM_OUTBOX, a, id);
    return row ? row : mem__waiting(&db->t, MEM_OUTBOX_SIGNED, a, id);
}

static int check_reject(const struct store_finish *r, struct err *err)
{
    enum mem_outcome outcome;
    for (size_t i = 0; i < r->count; i++)
        if (mem__outcome_of(r->rows[i].outcome, &outcome) &&
            (outcome == MEM_OK || outcome == MEM_DISPATCH_ERROR || outcome == MEM_ENDED_UNKNOWN))
            return mem__fail(err, "TR003",
                             "ok, dispatch_error and unknown are outcomes of the chain");
    for (size_t i = 0; i < r->count; i++)
        if (!mem__outcome_of(r->rows[i].outcome, &outcome) && r->rows[i].outcome)
            return mem__fail(err, "22P02", "invalid input value for enum tx_outcome: \"%.40s\"",
                             r->rows[i].outcome);
    return 0;
}

/* Every id waits, none twice. */
static int check_waiting(const struct mem_db *db, const struct mem_account *a,
                         const struct store_finish *r, struct err *err)
{
    size_t found = 0;
    bool without = false;
    for (size_t i = 0; i < r->count; i++) {
        struct mem_row *row = waiting(db, a, r->rows[i].id);
        if (!row || row->marked || row->held)
            continue;
        row->marked = true;
        found++;
        without |= !r->rows[i].outcome;
    }
    for (size_t i = 0; i < r->count; i++) {
        struct mem_row *row = waiting(db, a, r->rows[i].id);
        if (row)
            row->marked = false;
    }
    if (without)
        return mem__fail(err, "23502", "an end has no outcome");
    if (found != r->count)
        return mem__fail(err, "TR002", "%zu of %zu rows are still in the outbox", found, r->count);
    return 0;
}

void mem__reject(struct mem_session *s, struct store_finish *r)
{
    struct mem_account *a = mem__fence(s->db, r->account, r->epoch, &r->req.err);
    if (!a || mem__check_reconciled(a, &r->req.err) || check_reject(r, &r->req.err) ||
        check_waiting(s->db, a, r, &r->req.err))
        return;
    for (size_t i = 0; i < r->count; i++) {
        enum mem_outcome outcome;
        mem__outcome_of(r->rows[i].outcome, &outcome);
        mem__outbox_end(s->db, a, waiting(s->db, a, r->rows[i].id), outcome,
                        store__text(r->rows[i].error), a->lead.epoch);
    }
}

int mem__held(struct err *err, const struct mem_row *row)
{
    return mem__fail(err, "55P03", "transaction %lld is blocked by backend %u", (long long)row->id,
                     row->held->pid);
}
