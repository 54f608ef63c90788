/* What is signed elsewhere: by applications (they choose the nonce, and sometimes send it themselves), and in
 * SQL (schema/functions/08_enqueue_signed.sql) and at a relay's door (relay/account/account_signed.c). */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum { ERAS_BACK = 3 };

static bool waits(const struct id_row *r)
{
    return r->fixed && r->stage == STAGE_OUTBOX;
}

/* ---- applications ---- */

static bool covered(const struct world *w, int account, uint64_t nonce)
{
    for (int64_t id = 1; id < w->db.t.next_id; id++) {
        const struct id_row *r = &w->db.t.ids[id];
        bool open = r->stage == STAGE_OPEN || r->stage == STAGE_OUTBOX || r->stage == STAGE_PENDING;
        if (r->fixed && open && r->account == account && w->chain.txs[r->fixed].nonce == nonce)
            return true;
    }
    return false;
}

/* Where no relay has the key its owner counts: the lowest nonce that nothing is there for, or one above it,
 * so that there is a hole for a while. Beside a relay he guesses. */
static uint64_t choose_nonce(struct world *w, int account)
{
    const struct block *final = &w->chain.blocks[w->chain.final];
    uint64_t nonce = final->nonce[account];
    if (w->plan.keyless[account]) {
        for (uint64_t skip = chance(w, 12) ? between(w, 1, 2) : 0; covered(w, account, nonce) || skip;
             nonce++)
            skip -= skip && !covered(w, account, nonce);
        return nonce;
    }
    int64_t next = w->db.t.accounts[account].next_nonce;
    if (next > (int64_t)nonce)
        nonce = (uint64_t)next;
    if (nonce && chance(w, 10))
        return nonce - 1;
    return nonce + (chance(w, 50) ? 0 : between(w, 1, 4));
}

/* A row that was made just now becomes one of these, if it is to be. */
void signed_elsewhere(struct world *w, int64_t id)
{
    struct id_row *r = &w->db.t.ids[id];
    r->noted = -1;
    if (!has(w, FEATURE_SIGNED) || (!w->plan.keyless[r->account] && !chance(w, 25)))
        return;
    uint64_t nonce = choose_nonce(w, r->account);
    if (nonce + 8 >= NONCES)
        nonce = NONCES - 9;
    *r = (struct id_row){.stage = STAGE_OPEN,
                         .account = r->account,
                         .nonce = -1,
                         .noted = -1,
                         .tip = -1,
                         .max_tip = -1,
                         .bump = -1};
    r->fixed = tx_sign(w, &(struct tx_content){.account = r->account,
                                               .nonce = nonce,
                                               .id = id,
                                               .for_id = id,
                                               .spec = w->chain.blocks[w->chain.final].spec,
                                               .anchor = w->chain.final,
                                               .period = w->plan.era,
                                               .tip = between(w, 0, 20)});
}

/* Its transaction is committed. Whoever sends it himself must not ask for its end: nobody could keep that.
 * Beside a relay with the key he would take nonces from it. */
void signed_commit(struct world *w, int64_t id)
{
    struct id_row *r = &w->db.t.ids[id];
    /* Nor where accounts are reaped: that it took effect in a former life is not known (docs/design.md). */
    if (!r->fixed || !w->plan.keyless[r->account] || has(w, FEATURE_REAP) || !chance(w, 20))
        return;
    int node = (int)rng_below(&w->rng, (uint64_t)w->plan.nodes);
    if (w->chain.nodes[node].down_until > w->now)
        return;
    struct answer x;
    r->self_sent = true;
    w->chain.txs[r->fixed].committed = true; /* I3 is about what relays send */
    pool_submit(w, node, r->fixed, &x);
    note(w, "transaction %lld is sent by who signed it: %lld", (long long)id, (long long)x.rpc_code);
}

/* ---- SQL ---- */

static bool due(const struct world *w, const struct stmt *q, const struct id_row *r, int64_t run)
{
    bool ready = !r->wait_block || r->wait_block <= q->signed_at;
    int64_t death = w->chain.txs[r->fixed].death;
    if (r->noted < 0)
        return ready;
    bool turn = r->noted < (int64_t)q->nonce || (r->noted >= (int64_t)q->nonce && r->noted < run);
    return ready && (turn || r->wait_block || death <= (int64_t)q->signed_at);
}

/* One above the last of the noted nonces that follow on from the next one. */
static int64_t run_of(const struct world *w, const struct stmt *q)
{
    int64_t run = (int64_t)q->nonce;
    for (int64_t id = 1; id < w->db.t.next_id; id++) {
        const struct id_row *r = &w->db.t.ids[id];
        if (!waits(r) || r->account != q->account || r->noted != run ||
            (r->wait_block && r->wait_block > q->signed_at))
            continue;
        run++;
        id = 0;
    }
    return run;
}

/* By nonce, those that were not read last; then id. 0: there is none. */
static int64_t next_due(const struct world *w, const struct stmt *q, int64_t run, const bool taken[IDS])
{
    int64_t found = 0;
    for (int64_t id = 1; id < w->db.t.next_id && !w->db.t.accounts[q->account].paused; id++) {
        const struct id_row *r = &w->db.t.ids[id];
        if (waits(r) && r->account == q->account && !taken[id] && due(w, q, r, run) &&
            (!found || (uint64_t)r->noted < (uint64_t)w->db.t.ids[found].noted))
            found = id;
    }
    return found;
}

static void reserve(const struct world *w, struct stmt *q)
{
    for (int64_t id = 1; id < w->db.t.next_id; id++) {
        const struct id_row *r = &w->db.t.ids[id];
        if (!waits(r) || r->account != q->account || r->wait_block || r->noted < (int64_t)q->nonce ||
            (q->has_reserved && (uint64_t)r->noted >= q->reserved))
            continue;
        q->has_reserved = true;
        q->reserved = (uint64_t)r->noted;
    }
}

void signed_read(struct world *w, struct stmt *q, uint8_t *bytes)
{
    int64_t run = run_of(w, q);
    size_t count = 0;
    bool taken[IDS] = {false};
    q->fixed = xcalloc(IDS, sizeof(*q->fixed));
    reserve(w, q);
    for (int64_t id; count < q->limit && (id = next_due(w, q, run, taken));) {
        const struct id_row *r = &w->db.t.ids[id];
        taken[id] = true;
        bytes_of_tx(w, r->fixed, bytes);
        q->fixed[count].waited = r->wait_block != 0;
        q->outbox[q->out_count++] = (struct manager_outbox_row){.id = id,
                                                                .call = bytes,
                                                                .call_len = BYTES_LEN,
                                                                .fixed = &q->fixed[count++],
                                                                .tip = w->chain.txs[r->fixed].tip};
        bytes += BYTES_LEN;
    }
}

void signed_note(struct world *w, struct stmt *q)
{
    for (size_t i = 0; i < q->count; i++) {
        struct id_row *r = &w->db.t.ids[q->rows[i].id];
        if (!waits(r))
            continue;
        int64_t nonce = q->rows[i].nonce == UINT64_MAX ? -1 : (int64_t)q->rows[i].nonce;
        bool again = nonce >= 0 && r->noted == nonce && r->wait_block == q->rows[i].wait_block &&
                     r->noted_at + 50 * MS > w->now;
        r->noted_again = again ? r->noted_again + 1 : 0;
        HOLDS(w, r->noted_again < 4, "hot loop",
              "transaction %lld of account %d waits for nonce %lld, noted again and again",
              (long long)q->rows[i].id, q->account, (long long)nonce);
        r->noted = nonce;
        r->noted_at = w->now;
        r->wait_block = q->rows[i].wait_block;
        r->silent = false; /* a poll finds it */
        w->stats.noted++;
    }
}

void signed_admit(struct world *w, struct stmt *q)
{
    struct account_row *a = &w->db.t.accounts[q->account];
    if (a->reconcile) {
        order_error(w, q, "admission to an account that is not reconciled", q->rows[0].nonce);
        return;
    }
    if (a->paused || (a->version && a->version != q->version)) {
        q->code = ERR_DB_CONFLICT;
        return;
    }
    int64_t next = a->next_nonce >= 0 ? a->next_nonce : (int64_t)q->nonce;
    if (next != (int64_t)q->nonce) {
        order_error(w, q, "another next nonce than a relay knows", q->nonce);
        return;
    }
    for (size_t i = 0; i < q->count; i++) {
        int64_t nonce = (int64_t)q->rows[i].nonce;
        if (nonce > next) {
            order_error(w, q, "a nonce that was signed elsewhere, above the next one", q->rows[i].nonce);
            return;
        }
        if (w->db.t.pending[q->account][nonce].used || !waits(&w->db.t.ids[q->rows[i].id])) {
            q->code = ERR_DB_CONFLICT;
            return;
        }
        next = nonce >= next ? nonce + 1 : next;
    }
    for (size_t i = 0; i < q->count; i++) {
        struct id_row *r = &w->db.t.ids[q->rows[i].id];
        r->stage = STAGE_PENDING;
        r->nonce = (int64_t)q->rows[i].nonce;
        q->signed_at = q->rows[i].from_block;
        row_new(w, q, q->rows[i].nonce, q->rows[i].id, q->txs[i]);
        w->stats.fixed++;
    }
    a->next_nonce = next;
    if (!a->version)
        a->version = q->version;
}

/* ---- a relay's door ---- */

static void check(struct world *w, const struct relay *r, struct manager_outbox_row *row,
                  struct manager_signed *x)
{
    const struct tx *t = &w->chain.txs[w->db.t.ids[row->id].fixed];
    int64_t best = (int64_t)w->chain.blocks[w->chain.nodes[r->door.node].best].number;
    int64_t period = t->death - t->birth;
    hash_of_tx(w->db.t.ids[row->id].fixed, x->hash);
    x->nonce = t->nonce;
    x->call_len = CALL_LEN;
    x->spec_version = r->door.spec;
    x->era_birth = x->era_death = -1;
    if (t->spec != r->door.spec || (t->birth <= best && (best - t->birth) / period >= ERAS_BACK)) {
        row->bad = "its signature does not fit this chain";
    } else if (t->birth > best) {
        x->waits = "its era begins later";
        x->wait_block = (uint64_t)t->birth;
    } else {
        x->era_birth = t->birth;
        x->era_death = t->death;
    }
}

void signed_check(struct world *w, struct relay *r, struct stmt *s)
{
    for (size_t i = 0; i < s->out_count; i++)
        if (s->outbox[i].fixed)
            check(w, r, &s->outbox[i], &s->fixed[s->outbox[i].fixed - s->fixed]);
}
