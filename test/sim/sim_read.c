/* The leader's reads (leader_snapshot, leader_outbox) and a listener's (listen/sql). */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

void bytes_of_tx(const struct world *w, uint32_t tx, uint8_t out[BYTES_LEN])
{
    int64_t id = w->chain.txs[tx].id;
    memset(out, 0, BYTES_LEN);
    memcpy(out, &tx, sizeof(tx));
    memcpy(out + BYTES_LEN - CALL_LEN, &id, sizeof(id));
}

/* Earlier attempts: first those that were no fillers in a transaction's place. */
static void earlier(const struct world *w, const struct pending_row *p, struct manager_snapshot_row *s,
                    uint8_t (*out)[32], size_t *hashes)
{
    bool own = p->id && w->db.t.ids[p->id].fixed; /* it may be at a nonce that another one used */
    for (int fillers = 0; fillers < 2; fillers++)
        for (uint32_t i = own ? p->own_from : 0; i + 1 < p->attempt_count; i++) {
            const struct tx *x = &w->chain.txs[p->attempts[i]];
            if ((!x->id && x->for_id > 0) != fillers)
                continue;
            hash_of_tx(p->attempts[i], out[(*hashes)++]);
            s->earlier_count++;
            s->earlier_own += !fillers;
            if (s->earlier_death >= 0)
                s->earlier_death = x->death < 0                  ? -1
                                   : x->death > s->earlier_death ? x->death
                                                                 : s->earlier_death;
        }
}

static void load_row(struct world *w, struct stmt *q, uint64_t nonce, size_t *hashes)
{
    const struct pending_row *p = &w->db.t.pending[q->account][nonce];
    const struct tx *t = &w->chain.txs[p->tx];
    uint8_t *bytes = q->bytes + q->out_count * BYTES_LEN;
    struct manager_snapshot_row *s = &q->snapshot[q->out_count++];
    bool in_block = !strcmp(p->state, "in_block") || !strcmp(p->state, "finalized");
    const struct id_row *r = p->id ? &w->db.t.ids[p->id] : NULL;
    bytes_of_tx(w, p->tx, bytes);
    *s = (struct manager_snapshot_row){.nonce = nonce,
                                       .id = p->id,
                                       .bytes = bytes,
                                       .bytes_len = BYTES_LEN,
                                       .call_len = CALL_LEN,
                                       .era_death = t->death,
                                       .spec_version = t->spec,
                                       .guard = r ? r->guard : 0,
                                       .tip = t->tip,
                                       .has_max_tip = r && r->max_tip >= 0,
                                       .max_tip = r && r->max_tip >= 0 ? (u128)r->max_tip : 0,
                                       .deadline_block =
                                           r && r->deadline_block ? r->deadline_block : UINT64_MAX,
                                       .retries = r ? r->retries : 0,
                                       .filler = !t->id && t->for_id > 0,
                                       .stop_outcome = p->stop_outcome,
                                       .stop_reason = p->stop_outcome ? "stopped" : NULL,
                                       .submitted_block = p->signed_at,
                                       .fixed = r && r->fixed,
                                       .earlier = (const uint8_t(*)[32])(q->hashes + *hashes)};
    s->stage = !strcmp(p->state, "signed") ? MANAGER_ROW_SIGNED
               : in_block                  ? MANAGER_ROW_IN_BLOCK
                                           : MANAGER_ROW_SENT;
    hash_of_tx(p->tx, s->hash);
    earlier(w, p, s, q->hashes, hashes);
}

/* By what is on record, finalized blocks used every nonce below used_nonce, the last of them in used_block;
 * of the account's present life. */
static void used_for_good(const struct world *w, struct stmt *q)
{
    const struct tables *t = &w->db.t;
    q->used_nonce = q->used_block = -1;
    for (uint32_t i = 0; i < t->finished_count; i++) {
        const struct finished_row *f = &t->finished[i];
        if (f->account != q->account || f->nonce < 0 || (!f->block && strcmp(f->outcome, "usurped") != 0) ||
            f->finished_us <= t->accounts[q->account].life_since_us)
            continue;
        if (f->nonce >= q->used_nonce)
            q->used_nonce = f->nonce + 1;
        int64_t number = f->block ? (int64_t)w->chain.blocks[f->block].number : (int64_t)f->used_block;
        if (number && number > q->used_block)
            q->used_block = number;
    }
}

static void load(struct world *w, struct stmt *q)
{
    const struct tables *t = &w->db.t;
    uint64_t from = (uint64_t)(q->after_nonce + 1), high = t->pending_high[q->account];
    size_t rows = 0, hashes = 0;
    if (from < t->pending_low[q->account])
        from = t->pending_low[q->account];
    for (uint64_t n = from; n < high && rows < q->limit; n++)
        if (t->pending[q->account][n].used) {
            rows++;
            hashes += t->pending[q->account][n].attempt_count;
        }
    q->snapshot = xcalloc(rows, sizeof(*q->snapshot));
    q->bytes = xcalloc(rows, BYTES_LEN);
    q->hashes = xcalloc(hashes, 32);
    hashes = 0;
    for (uint64_t n = from; n < high && q->out_count < rows; n++)
        if (t->pending[q->account][n].used)
            load_row(w, q, n, &hashes);
    q->last = q->out_count < q->limit;
    q->next_nonce = t->accounts[q->account].next_nonce;
    q->facts = account_facts(w, q->account);
    q->seen_block = t->accounts[q->account].seen_block;
    q->reconcile = t->accounts[q->account].reconcile;
    q->reconcile_from = t->accounts[q->account].reconcile_from;
    used_for_good(w, q);
}

/* By priority, then id. */
static int64_t next_in_outbox(const struct tables *t, int account, const int64_t *taken, size_t count,
                              int64_t now)
{
    int64_t found = 0;
    for (int64_t id = 1; id < t->next_id; id++) {
        const struct id_row *r = &t->ids[id];
        bool seen = r->stage != STAGE_OUTBOX || r->account != account || r->fixed || r->not_before_us > now ||
                    (r->deadline_us && r->deadline_us <= now);
        for (size_t i = 0; i < count && !seen; i++)
            seen = taken[i] == id;
        if (!seen && (!found || t->ids[id].priority > t->ids[found].priority))
            found = id;
    }
    return found;
}

static void read_outbox(struct world *w, struct stmt *q)
{
    int64_t taken[IDS], id;
    size_t count = 0;
    while (!w->db.t.accounts[q->account].paused && count < q->limit && count < IDS &&
           (id = next_in_outbox(&w->db.t, q->account, taken, count, db_now_us(w))))
        taken[count++] = id;
    q->outbox = xcalloc(count + IDS, sizeof(*q->outbox));
    q->bytes = xcalloc(count * CALL_LEN + (size_t)IDS * BYTES_LEN, 1);
    for (size_t i = 0; i < count; i++) {
        const struct id_row *r = &w->db.t.ids[taken[i]];
        memcpy(q->bytes + i * CALL_LEN, &taken[i], CALL_LEN);
        q->outbox[i] = (struct manager_outbox_row){.id = taken[i],
                                                   .call = q->bytes + i * CALL_LEN,
                                                   .call_len = CALL_LEN,
                                                   .guard = r->guard,
                                                   .has_tip = r->tip >= 0,
                                                   .tip = r->tip >= 0 ? (u128)r->tip : 0,
                                                   .has_max_tip = r->max_tip >= 0,
                                                   .max_tip = r->max_tip >= 0 ? (u128)r->max_tip : 0,
                                                   .deadline_block = r->deadline_block,
                                                   .retries = r->retries};
        if (never_admitted(taken[i]))
            q->outbox[i].bad = "call 0 does not decode";
    }
    q->out_count = count;
    signed_read(w, q, q->bytes + count * CALL_LEN);
}

/* ---- a listener's ---- */

static void scan_pending(struct world *w, struct stmt *q)
{
    const struct tables *t = &w->db.t;
    q->events = xcalloc(q->limit, sizeof(*q->events));
    for (int a = 0; a < w->plan.accounts; a++)
        for (uint64_t n = t->pending_low[a]; n < t->pending_high[a] && q->out_count < q->limit; n++) {
            bool after =
                a + 1 > q->after_account || (a + 1 == q->after_account && (int64_t)n > q->after_nonce);
            if (after && t->pending[a][n].used)
                q->events[q->out_count++] = row_event(w, a, n, LISTEN_UPDATE);
        }
    q->last = q->out_count < q->limit;
}

static struct listen_event finished_event(const struct finished_row *f)
{
    struct listen_event ev = {.kind = LISTEN_FINISHED,
                              .account = f->account + 1,
                              .alias = "",
                              .id = f->id,
                              .nonce = f->nonce,
                              .has_hash = f->tx != 0,
                              .has_block = f->block != 0,
                              .block_number = -1,
                              .state = f->state ? f->state : "",
                              .outcome = f->outcome,
                              .error = "",
                              .creator = "",
                              .updated_at_us = f->finished_us};
    if (f->tx)
        hash_of_tx(f->tx, ev.hash);
    if (f->block)
        hash_of_block(f->block, ev.block_hash);
    return ev;
}

/* The position (finished_at, account, nonce, id): times never repeat, so the first decides. */
static void scan_finished(struct world *w, struct stmt *q)
{
    const struct tables *t = &w->db.t;
    q->events = xcalloc(q->limit, sizeof(*q->events));
    for (uint32_t i = 0; i < t->finished_count && q->out_count < q->limit; i++) {
        const struct finished_row *f = &t->finished[i];
        bool after = f->finished_us > q->since_us || (f->finished_us == q->since_us && !q->after_account);
        if (after)
            q->events[q->out_count++] = finished_event(f);
    }
    q->last = q->out_count < q->limit;
}

static bool asked(const struct stmt *q, const struct finished_row *f)
{
    for (size_t i = 0; i < q->count; i++) {
        const struct cursor_lookup *l = &q->lookups[i];
        if (l->id ? l->id == f->id : !f->id && l->account == f->account + 1 && l->nonce == f->nonce)
            return true;
    }
    return false;
}

static void look_up(struct world *w, struct stmt *q)
{
    const struct tables *t = &w->db.t;
    q->events = xcalloc(t->finished_count, sizeof(*q->events));
    for (uint32_t i = 0; i < t->finished_count; i++)
        if (asked(q, &t->finished[i]))
            q->events[q->out_count++] = finished_event(&t->finished[i]);
}

void sql_read(struct world *w, struct stmt *q)
{
    q->now_us = db_now_us(w);
    switch ((int)q->op) {
    case OP_LOAD:
        if (sql_fence(w, q))
            load(w, q);
        return;
    case OP_OUTBOX:
        if (sql_fence(w, q))
            read_outbox(w, q);
        return;
    case OP_SCAN_PENDING:
        scan_pending(w, q);
        return;
    case OP_SCAN_FINISHED:
        scan_finished(w, q);
        return;
    case OP_LOOK_UP:
        look_up(w, q);
        return;
    default:
        return; /* OP_ACCOUNTS: the clock */
    }
}
