/* What ends a transaction, and what gives it back to the outbox: leader_finish, leader_reject,
 * leader_requeue, leader_look, cancel (schema/functions). What is stored must be true on the finalized
 * chain. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static struct pending_row *at(struct world *w, const struct stmt *q, uint64_t nonce)
{
    return &w->db.t.pending[q->account][nonce];
}

const char *outcome_name(const char *outcome)
{
    static const char *const names[] = {"ok", "dispatch_error", "usurped", "expired", "cancelled", "failed"};
    for (size_t i = 0; outcome && i < ARRAY_LEN(names); i++)
        if (!strcmp(names[i], outcome))
            return names[i];
    UNREACHABLE();
}

/* ---- the end of a transaction ---- */

static uint64_t highest_block(const struct world *w)
{
    uint64_t highest = 0;
    for (int k = 0; k < w->plan.nodes; k++)
        if (w->chain.blocks[w->chain.nodes[k].best].number > highest)
            highest = w->chain.blocks[w->chain.nodes[k].best].number;
    return highest;
}

/* An era that ends in time may be too short to be of use some blocks before the last one that may hold it:
 * the more so the further finality lags. */
static bool may_expire(const struct world *w, const struct id_row *r)
{
    uint64_t best = highest_block(w), lag = best - w->chain.blocks[w->chain.final].number;
    return (r->deadline_us && r->deadline_us <= db_now_us(w)) ||
           (r->deadline_block && r->deadline_block <= best + lag + 40);
}

static void check_outcome(struct world *w, int64_t id, const char *outcome)
{
    const struct id_row *r = &w->db.t.ids[id];
    bool good = w->effects[id] == 0;
    if (!strcmp(outcome, "ok"))
        good = w->effects[id] == 1 && !w->inner[id];
    else if (!strcmp(outcome, "dispatch_error"))
        good = w->effects[id] == 1 ? w->inner[id] : !w->effects[id] && w->failures[id] == r->retried + 1;
    else
        good = good && w->failures[id] == r->retried;
    HOLDS(w, good || w->db.lossy, "I1",
          "transaction %lld ends as %s; in finalized blocks it took effect %u times and failed %u times, %u "
          "of them "
          "forgiven",
          (long long)id, outcome, w->effects[id], w->failures[id], r->retried);
    HOLDS(w,
          strcmp(outcome, "expired") != 0 || may_expire(w, r) ||
              (r->fixed && !includable(w, &w->chain.txs[r->fixed])),
          "deadline",
          "transaction %lld expires %lld us before its deadline, or at block %llu before block %llu",
          (long long)id, (long long)(r->deadline_us - db_now_us(w)), (unsigned long long)highest_block(w),
          (unsigned long long)r->deadline_block);
    HOLDS(w, strcmp(outcome, "cancelled") != 0 || r->cancelled || w->db.lossy, "cancel",
          "transaction %lld is cancelled and nobody asked for it", (long long)id);
}

static void end_id(struct world *w, int64_t id, const char *outcome, int64_t nonce)
{
    struct id_row *r = &w->db.t.ids[id];
    HOLDS(w, r->stage != STAGE_FINISHED, "I7", "transaction %lld ends as %s and had ended as %s",
          (long long)id, outcome, r->outcome ? r->outcome : "?");
    check_outcome(w, id, outcome);
    r->stage = STAGE_FINISHED;
    r->outcome = outcome_name(outcome);
    r->nonce = nonce;
    w->open--;
    w->stats.ended++;
}

static struct finished_row *record_end(struct world *w, const struct finished_row *row)
{
    struct tables *t = &w->db.t;
    INVARIANT(t->finished_count < ARRAY_LEN(t->finished));
    struct finished_row *f = &t->finished[t->finished_count++];
    *f = *row;
    f->outcome = outcome_name(row->outcome);
    f->finished_us = db_stamp(w);
    return f;
}

static void leave(struct world *w, const struct stmt *q, uint64_t nonce, const char *outcome)
{
    struct tables *t = &w->db.t;
    struct listen_event ev = row_event(w, q->account, nonce, LISTEN_REMOVED);
    ev.outcome = outcome ? outcome : "";
    notify_row(w, &ev);
    at(w, q, nonce)->used = false;
    while (t->pending_low[q->account] < t->pending_high[q->account] &&
           !t->pending[q->account][t->pending_low[q->account]].used)
        t->pending_low[q->account]++;
}

void row_leaves(struct world *w, const struct stmt *q, uint64_t nonce, const char *outcome)
{
    const struct pending_row *p = at(w, q, nonce);
    record_end(w, &(struct finished_row){.account = q->account,
                                         .nonce = (int64_t)nonce,
                                         .id = p->id,
                                         .tx = p->tx,
                                         .block = p->block,
                                         .state = p->state,
                                         .outcome = outcome});
    if (p->id)
        end_id(w, p->id, outcome, (int64_t)nonce);
    leave(w, q, nonce, outcome);
}

/* ---- by what a finalized block says ---- */

static bool taken_by_another(const struct world *w, int account, uint64_t nonce, int64_t id)
{
    uint32_t fixed = id ? w->db.t.ids[id].fixed : 0; /* what was signed here may have taken its nonce, too */
    for (uint32_t i = w->chain.last_of_nonce[account][nonce]; i; i = w->chain.txs[i].prev_nonce)
        if (w->chain.txs[i].spent && (w->chain.txs[i].id < 0 || (fixed && i != fixed)))
            return true;
    return false;
}

static void check_included(struct world *w, const struct stmt *q, const struct stmt_row *x)
{
    const struct chain *c = &w->chain;
    uint32_t block = block_of_hash(x->block_hash), tx = tx_of_hash(w, x->hash);
    HOLDS(w, c->blocks[block].final && c->blocks[block].number == (uint64_t)x->block_number, "I2",
          "nonce %llu of account %d ends in block %u, which is not final", (unsigned long long)x->nonce,
          q->account, block);
    const struct block *b = &c->blocks[block];
    HOLDS(w, x->index < b->count && b->txs[x->index] == tx && c->txs[tx].nonce == x->nonce, "I2",
          "nonce %llu of account %d ends as %s in block %u, which does not hold it at %u",
          (unsigned long long)x->nonce, q->account, x->outcome, block, x->index);
}

/* None of its bytes at this nonce may get into a block any more. */
static void check_dead(struct world *w, int64_t id, uint64_t nonce)
{
    for (uint32_t i = id ? w->chain.last_of_id[id] : 0; i; i = w->chain.txs[i].prev_id) {
        const struct tx *t = &w->chain.txs[i];
        HOLDS(w, t->nonce != nonce || !t->accepted || t->final_in || !includable(w, t) || w->db.lossy, "I5",
              "transaction %lld leaves nonce %llu, and its bytes there can still be included until %lld (tx "
              "%u)",
              (long long)id, (unsigned long long)t->nonce, (long long)t->death, i);
    }
}

static void check_finish(struct world *w, const struct stmt *q, const struct stmt_row *x)
{
    if (!x->has_block) {
        bool taken = taken_by_another(w, q->account, x->nonce, at(w, q, x->nonce)->id);
        HOLDS(w, strcmp(x->outcome, "usurped") != 0 || taken || w->db.lossy, "I2",
              "nonce %llu of account %d ends as usurped, and no finalized block holds another one's",
              (unsigned long long)x->nonce, q->account);
        if (!taken)
            check_dead(w, at(w, q, x->nonce)->id, x->nonce);
        return;
    }
    if (!strcmp(x->outcome, "usurped"))
        return;
    check_included(w, q, x);
    const struct pending_row *p = at(w, q, x->nonce);
    const struct tx *t = &w->chain.txs[tx_of_hash(w, x->hash)];
    const char *due = fate_of(w, t) == FATE_OK ? "ok" : "dispatch_error";
    if (t->id == 0 && t->for_id > 0 && p->id) /* it took the transaction's place */
        due = p->stop_outcome ? p->stop_outcome : "nothing";
    HOLDS(w, !strcmp(x->outcome, due), "I2", "nonce %llu ends as %s where %s is true",
          (unsigned long long)x->nonce, x->outcome, due);
}

/* false: the batch is refused. */
static bool ready_to_end(struct world *w, struct stmt *q)
{
    size_t found = 0;
    for (size_t i = 0; i < q->count; i++) {
        const struct stmt_row *x = &q->rows[i];
        const struct pending_row *p = at(w, q, x->nonce);
        if (p->used && x->has_block && !is_attempt(p, tx_of_hash(w, x->hash))) {
            order_error(w, q, "ends by bytes that are not on record", x->nonce);
            return false;
        }
        found += p->used;
    }
    if (found == q->count)
        return true;
    int64_t since = w->db.t.accounts[q->account].life_since_us;
    for (size_t i = 0; i < q->count; i++)
        for (uint32_t k = 0; k < w->db.t.finished_count; k++) {
            const struct finished_row *f = &w->db.t.finished[k];
            if (!at(w, q, q->rows[i].nonce)->used && f->account == q->account &&
                f->nonce == (int64_t)q->rows[i].nonce && f->finished_us > since) {
                order_error(w, q, "has ended before", q->rows[i].nonce);
                return false;
            }
        }
    q->code = ERR_DB_CONFLICT;
    return false;
}

void rows_end(struct world *w, struct stmt *q)
{
    if (!ready_to_end(w, q))
        return;
    for (size_t i = 0; i < q->count; i++) {
        const struct stmt_row *x = &q->rows[i];
        struct pending_row *p = at(w, q, x->nonce);
        check_finish(w, q, x);
        if (x->has_block)
            p->tx = tx_of_hash(w, x->hash);
        p->state = x->has_block ? "finalized" : !strcmp(x->outcome, "usurped") ? "usurped" : p->state;
        p->block = x->has_block ? block_of_hash(x->block_hash) : 0;
        p->updated_us = db_stamp(w);
        row_told(w, q, x->nonce, LISTEN_UPDATE);
        row_leaves(w, q, x->nonce, x->outcome);
        w->db.t.finished[w->db.t.finished_count - 1].used_block = x->used_block;
    }
}

/* ---- back to the outbox ---- */

/* The nonce is gone for this transaction, so none of its bytes may get in any more. */
static void check_requeue(struct world *w, const struct stmt *q, const struct stmt_row *x)
{
    const struct pending_row *p = at(w, q, x->nonce);
    bool forgiven = !strcmp(x->outcome, "dispatch_error");
    if (forgiven) {
        check_included(w, q, x);
        HOLDS(w, fate_of(w, &w->chain.txs[tx_of_hash(w, x->hash)]) == FATE_FAILS, "I1",
              "transaction %lld goes back to the outbox and did not fail as a whole", (long long)p->id);
    } else if (!strcmp(x->outcome, "usurped")) {
        HOLDS(w, taken_by_another(w, q->account, x->nonce, 0) || w->db.lossy, "I5",
              "transaction %lld goes back to the outbox, and nobody else has used nonce %llu for good",
              (long long)p->id, (unsigned long long)x->nonce);
    }
    if (!forgiven && strcmp(x->outcome, "usurped") != 0)
        check_dead(w, p->id, x->nonce);
}

static bool may_requeue(struct world *w, struct stmt *q)
{
    for (size_t i = 0; i < q->count; i++) {
        const struct stmt_row *x = &q->rows[i];
        const struct pending_row *p = at(w, q, x->nonce);
        if (!p->used || !p->id) {
            q->code = ERR_DB_CONFLICT;
            return false;
        }
        bool forgiven = !strcmp(x->outcome, "dispatch_error");
        if (forgiven && !w->db.t.ids[p->id].retries) {
            order_error(w, q, "no retries are left", x->nonce);
            return false;
        }
        if (forgiven && !is_attempt(p, tx_of_hash(w, x->hash))) {
            order_error(w, q, "fails by bytes that are not on record", x->nonce);
            return false;
        }
    }
    return true;
}

static void give_back(struct world *w, struct stmt *q, const struct stmt_row *x)
{
    const struct pending_row *p = at(w, q, x->nonce);
    struct id_row *r = &w->db.t.ids[p->id];
    bool forgiven = !strcmp(x->outcome, "dispatch_error");
    HOLDS(w, !r->fixed, "signed", "transaction %lld was signed elsewhere and goes back to the outbox",
          (long long)p->id);
    record_end(w, &(struct finished_row){.account = q->account,
                                         .nonce = (int64_t)x->nonce,
                                         .tx = forgiven ? tx_of_hash(w, x->hash) : p->tx,
                                         .block = forgiven ? block_of_hash(x->block_hash) : 0,
                                         .state = p->state,
                                         .used_block = x->used_block,
                                         .outcome = x->outcome,
                                         .requeued = p->id});
    leave(w, q, x->nonce, NULL);
    r->stage = STAGE_OUTBOX;
    r->nonce = -1;
    r->silent = false;
    r->retries -= forgiven;
    r->retried += forgiven;
    r->bump = -1;
    w->stats.requeues++;
}

/* leader_requeue; without rows: what a planted fault does with one nonce. */
void rows_requeue(struct world *w, struct stmt *q)
{
    struct stmt_row planted = {.nonce = q->nonce, .outcome = "failed"};
    if (!q->count) {
        const struct pending_row *p = at(w, q, q->nonce);
        if (p->used && p->id)
            give_back(w, q, &planted);
        else
            q->code = ERR_DB_CONFLICT;
        return;
    }
    if (!may_requeue(w, q))
        return;
    for (size_t i = 0; i < q->count; i++) {
        check_requeue(w, q, &q->rows[i]);
        give_back(w, q, &q->rows[i]);
    }
}

/* ---- without a nonce ---- */

static void told_end(struct world *w, int64_t id, const char *outcome)
{
    struct listen_event ev = {.kind = LISTEN_REMOVED,
                              .account = w->db.t.ids[id].account + 1,
                              .alias = "",
                              .id = id,
                              .nonce = -1,
                              .block_number = -1,
                              .state = "",
                              .outcome = outcome,
                              .error = "",
                              .creator = "",
                              .updated_at_us = db_stamp(w)};
    notify_row(w, &ev);
}

static void outbox_end(struct world *w, int64_t id, const char *outcome)
{
    record_end(w, &(struct finished_row){
                      .account = w->db.t.ids[id].account, .nonce = -1, .id = id, .outcome = outcome});
    end_id(w, id, outcome, -1);
    told_end(w, id, outcome);
}

void rows_cancel(struct world *w, int64_t id)
{
    struct id_row *r = &w->db.t.ids[id];
    bool keyless = r->fixed && w->plan.keyless[r->account];
    if ((r->stage != STAGE_OUTBOX && r->stage != STAGE_PENDING) || r->self_sent ||
        (keyless && r->stage == STAGE_PENDING))
        return;
    r->cancelled = true;
    if (r->stage == STAGE_OUTBOX)
        outbox_end(w, id, "cancelled");
    else
        notify_signal(w, "wake", r->account);
}

void rows_reject(struct world *w, struct stmt *q)
{
    for (size_t i = 0; i < q->count; i++)
        if (w->db.t.ids[q->rows[i].id].stage != STAGE_OUTBOX) {
            q->code = ERR_DB_CONFLICT;
            return;
        }
    for (size_t i = 0; i < q->count; i++) {
        const struct id_row *r = &w->db.t.ids[q->rows[i].id];
        HOLDS(w, never_admitted(q->rows[i].id) || r->guard || r->deadline_block || r->fixed, "I1",
              "transaction %lld is rejected and is good", (long long)q->rows[i].id);
        outbox_end(w, q->rows[i].id, q->rows[i].outcome);
    }
}

/* ---- leader_look ---- */

static void soonest(int64_t *at_us, int64_t us)
{
    if (us && us < *at_us)
        *at_us = us;
}

static void look_at_pending(struct world *w, struct stmt *q, int64_t id, bool over)
{
    const struct id_row *r = &w->db.t.ids[id];
    const struct pending_row *p = at(w, q, (uint64_t)r->nonce);
    if (over || r->cancelled)
        q->stops[q->out_count++] = (struct manager_stop){.nonce = (uint64_t)r->nonce,
                                                         .id = id,
                                                         .outcome = r->cancelled ? "cancelled" : "expired",
                                                         .reason = ""};
    if (r->bump > (int64_t)w->chain.txs[p->tx].tip)
        q->stops[q->out_count++] =
            (struct manager_stop){.nonce = (uint64_t)r->nonce, .id = id, .tip = (u128)r->bump};
}

void rows_look(struct world *w, struct stmt *q)
{
    int64_t now = db_now_us(w), next = INT64_MAX;
    bool paused = w->db.t.accounts[q->account].paused;
    q->stops = xcalloc(2 * IDS, sizeof(*q->stops));
    q->facts = account_facts(w, q->account);
    for (int64_t id = 1; id < w->db.t.next_id; id++) {
        const struct id_row *r = &w->db.t.ids[id];
        bool over = r->deadline_us && r->deadline_us <= now;
        bool pending = r->stage == STAGE_PENDING;
        if (r->account != q->account || (r->stage != STAGE_OUTBOX && !pending))
            continue;
        if (pending)
            look_at_pending(w, q, id, over);
        else if (over || r->cancelled)
            outbox_end(w, id, r->cancelled ? "cancelled" : "expired");
        if (over || r->cancelled)
            continue;
        soonest(&next, r->deadline_us);
        soonest(&next, r->not_before_us > now && !pending ? r->not_before_us : 0);
        q->ok |= !pending && !paused && r->not_before_us && r->not_before_us <= now;
    }
    q->next_ms = next == INT64_MAX ? UINT64_MAX : (uint64_t)(next - now + 999) / 1000;
}
