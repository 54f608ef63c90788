/* The invariants (docs/design.md, section 1), each where the fact is born. What they look at is the truth of
 * the models, never what a relay believes. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim.h"

void broken(struct world *w, const char *invariant, const char *fmt, ...)
{
    int n = snprintf(w->violation, sizeof(w->violation), "%s: ", invariant);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(w->violation + n, sizeof(w->violation) - (size_t)n, fmt, ap);
    va_end(ap);
    siglongjmp(w->broken, 1);
}

/* Can these bytes still get into a block? */
bool includable(const struct world *w, const struct tx *t)
{
    const struct block *final = &w->chain.blocks[w->chain.final];
    return final->nonce[t->account] <= t->nonce && (t->death < 0 || t->death > (int64_t) final->number + 1);
}

/* What a relay refused at its door it never sent. Whoever signed it may have (docs/design.md). */
static bool by_another_hand(const struct id_row *r)
{
    return r->self_sent && r->nonce < 0;
}

/* I1, I2, I3, I6 for a block that has become final. */
void check_final(struct world *w, uint32_t block)
{
    const struct block *b = &w->chain.blocks[block];
    const struct block *p = &w->chain.blocks[b->parent];
    uint64_t nonce[ACCOUNTS];
    memcpy(nonce, p->nonce, sizeof(nonce));
    for (uint32_t i = 0; i < b->count; i++) {
        struct tx *t = &w->chain.txs[b->txs[i]];
        HOLDS(w, t->nonce == nonce[t->account]++, "I6",
              "block %u holds nonce %llu of account %d out of order", block, (unsigned long long)t->nonce,
              t->account);
        t->final_in = block;
        t->spent |= b->nonce[t->account] > t->nonce;
        if (t->id < 0)
            continue;
        HOLDS(w, t->committed, "I3", "nonce %llu of account %d is final and was never recorded",
              (unsigned long long)t->nonce, t->account);
        if (!t->id)
            continue;
        const struct id_row *r = &w->db.t.ids[t->id];
        enum fate fate = fate_of(w, t);
        w->effects[t->id] += fate != FATE_FAILS;
        w->failures[t->id] += fate == FATE_FAILS;
        w->inner[t->id] |= fate == FATE_FAILS_INSIDE;
        w->stats.doubled += w->effects[t->id] > 1;
        HOLDS(w, w->effects[t->id] <= 1 || w->db.lossy, "I1", "transaction %lld takes effect twice",
              (long long)t->id);
        HOLDS(w, w->effects[t->id] + w->failures[t->id] <= r->retried + 1 || w->db.lossy, "I1",
              "transaction %lld is in a block again, and %u failures were forgiven", (long long)t->id,
              r->retried);
        HOLDS(w, !r->deadline_block || b->number <= r->deadline_block || w->db.lossy, "deadline",
              "transaction %lld is in block %llu and was for none after %llu", (long long)t->id,
              (unsigned long long)b->number, (unsigned long long)r->deadline_block);
        HOLDS(w, r->stage != STAGE_FINISHED || w->db.lossy || by_another_hand(r), "I1",
              "transaction %lld had ended as %s and takes effect", (long long)t->id, r->outcome);
    }
}

/* Bytes leave a relay. */
void check_sent(struct world *w, const struct relay *r, int account, uint32_t tx, bool stopped)
{
    const struct tx *t = &w->chain.txs[tx];
    const struct sim_account *a = &r->accounts[account];
    HOLDS(w, t->committed, "I3", "r%d sends nonce %llu of account %d, which is not committed", r->index,
          (unsigned long long)t->nonce, account);
    if (stopped)
        return; /* only what is on record was sent, and the chain takes it once */
    HOLDS(w, r->store_up, "gate", "r%d sends nonce %llu of account %d while its database is away", r->index,
          (unsigned long long)t->nonce, account);
    uint64_t time = (w->plan.expiry_1_ms - 1000) * MS + 20 * MS;
    HOLDS(w, w->now <= a->renewed_sent + time, "gate",
          "r%d sends nonce %llu of account %d %llu ms after its last renewal was sent", r->index,
          (unsigned long long)t->nonce, account, (unsigned long long)((w->now - a->renewed_sent) / MS));
    const struct account_row *row = &w->db.t.accounts[account];
    bool own = row->holder == r->holder; /* of a claim whose answer is under way */
    HOLDS(w, w->plan.use_lock || row->epoch == a->epoch || own || w->db.lossy, "gate",
          "r%d sends for account %d under epoch %lld, which is at %lld", r->index, account,
          (long long)a->epoch, (long long)row->epoch);
}

/* The same bytes are not sent twice without a reason: a block, time, a new start. */
void check_effort(struct world *w, const struct relay *r, int account, uint32_t tx)
{
    struct tx *t = &w->chain.txs[tx];
    uint64_t beats = r->accounts[account].beats;
    int by = r->holder * ACCOUNTS + account;
    HOLDS(w, t->sent_by != by || t->sent_beat != beats, "hot loop", "r%d sends nonce %llu twice in one beat",
          r->index, (unsigned long long)t->nonce);
    t->sent_by = by;
    t->sent_beat = beats;
}

/* I8 for one follower that has heard everything. */
void check_view(struct world *w, const struct follower *f, bool all_ended)
{
    const struct tables *t = &w->db.t;
    int number = (int)(f - w->followers);
    for (int64_t id = 1; id < t->next_id; id++) {
        const struct id_row *r = &t->ids[id];
        const struct view *v = &f->views[id];
        if (w->was_failed_over[id] || w->db.lossy)
            continue;
        if (r->stage == STAGE_FINISHED) {
            HOLDS(w, v->finished && !strcmp(v->outcome, r->outcome), "I8",
                  "follower %d was not told that transaction %lld ended as %s (%s)", number, (long long)id,
                  r->outcome,
                  v->finished ? v->outcome
                  : v->known  ? v->state
                              : "nothing");
            continue;
        }
        HOLDS(w, !v->finished, "I8", "follower %d was told an end of transaction %lld", number,
              (long long)id);
        HOLDS(w, (r->stage == STAGE_PENDING) == v->known, "I8", "follower %d %s transaction %lld", number,
              v->known ? "still knows" : "was not told of", (long long)id);
        if (!v->known)
            continue;
        const struct pending_row *p = &t->pending[r->account][r->nonce];
        HOLDS(w, v->nonce == r->nonce && v->tx == p->tx && !strcmp(v->state, p->state), "I8",
              "follower %d sees transaction %lld at nonce %lld as %s, the table says %lld, %s", number,
              (long long)id, (long long)v->nonce, v->state, (long long)r->nonce, p->state);
    }
    (void)all_ended;
}

/* After everything has ended. */
void check_end(struct world *w)
{
    const struct tables *t = &w->db.t;
    for (int64_t id = 1; id < t->next_id; id++) {
        const struct id_row *r = &t->ids[id];
        if (!w->must_end[id])
            continue;
        HOLDS(w, r->stage == STAGE_FINISHED, "liveness", "transaction %lld has not ended", (long long)id);
        bool real = !strcmp(r->outcome, "ok") || !strcmp(r->outcome, "dispatch_error");
        bool did = w->effects[id] || w->failures[id] > r->retried;
        HOLDS(w, w->db.lossy || real == did || by_another_hand(r), "I1",
              "transaction %lld ended as %s, took effect %u times and failed %u times, %u of them forgiven",
              (long long)id, r->outcome, w->effects[id], w->failures[id], r->retried);
        HOLDS(w, w->db.lossy || !never_admitted(id) || r->fixed || !real, "I1",
              "transaction %lld cannot be %s", (long long)id, r->outcome);
    }
    for (uint32_t i = 1; i < w->chain.tx_count && !w->db.lossy; i++) { /* I2: no effect without its record */
        const struct tx *x = &w->chain.txs[i];
        bool stray = !x->id && has(w, FEATURE_REAP_UNFINAL); /* a stop's filler: docs/design.md, Repair */
        bool found = !x->final_in || x->id < 0 || stray || (x->id && by_another_hand(&t->ids[x->id]));
        for (uint32_t k = 0; k < t->finished_count && !found; k++)
            found = t->finished[k].tx == i &&
                    (t->finished[k].block == x->final_in || !x->id); /* or its next life's */
        HOLDS(w, found, "I2", "nonce %llu of account %d (transaction %lld) is final and has no record",
              (unsigned long long)x->nonce, x->account, (long long)x->id);
    }
}
