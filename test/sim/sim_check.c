/* The invariants (docs/design.md, section 1), each where the fact is born. What they look at is
 * the truth of the models, never what a relay believes. */
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

/* Can these bytes still get into a block? None of a former runtime can. */
bool includable(const struct world *w, const struct tx *t)
{
    const struct block *final = &w->chain.blocks[w->chain.final];
    return final->nonce[t->account] <= t->nonce && t->spec >= final->spec &&
           (t->death < 0 || t->death > (int64_t) final->number + 1);
}

/* What a relay refused at its door it never sent. Whoever signed it may have (docs/design.md). */
static bool by_another_hand(const struct world *w, int64_t id)
{
    const struct mem_finished *f = mem_finished_of(w->db.mem, id);
    return w->calls[id].self_sent && f && f->nonce < 0;
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
              "block %u holds nonce %llu of account %d out of order", block,
              (unsigned long long)t->nonce, t->account);
        t->final_in = block;
        t->spent |= b->nonce[t->account] > t->nonce;
        if (t->id < 0)
            continue;
        HOLDS(w, t->committed, "I3", "nonce %llu of account %d is final and was never recorded",
              (unsigned long long)t->nonce, t->account);
        if (!t->id)
            continue;
        const struct call *c = &w->calls[t->id];
        enum fate fate = fate_of(w, t);
        w->effects[t->id] += fate != FATE_FAILS;
        w->failures[t->id] += fate == FATE_FAILS;
        w->inner[t->id] |= fate == FATE_FAILS_INSIDE;
        w->stats.doubled += w->effects[t->id] > 1;
        HOLDS(w, w->effects[t->id] <= 1 || db_may_double(w), "I1",
              "transaction %lld takes effect twice", (long long)t->id);
        HOLDS(w, w->effects[t->id] + w->failures[t->id] <= c->forgiven + 1 || db_may_double(w),
              "I1", "transaction %lld is in a block again, and %u failures were forgiven",
              (long long)t->id, c->forgiven);
        HOLDS(w, !c->deadline_block || b->number <= c->deadline_block || w->db.lossy, "deadline",
              "transaction %lld is in block %llu and was for none after %llu", (long long)t->id,
              (unsigned long long)b->number, (unsigned long long)c->deadline_block);
        HOLDS(w, !db_ended(w, t->id) || db_may_double(w) || by_another_hand(w, t->id), "I1",
              "transaction %lld had ended as %s and takes effect", (long long)t->id,
              mem_outcome_name(mem_finished_of(w->db.mem, t->id)->outcome));
    }
}

/* A server whose clock is ahead took over since the claim was renewed. By that clock the claim has
 * run out, by the relay's it has not. */
static bool ran_out_early(const struct world *w, const struct sim_account *a)
{
    return w->db.ahead_us && a->renewed_sent <= w->db.stepped_at;
}

/* Bytes leave a relay. */
void check_sent(struct world *w, const struct relay *r, int account, uint32_t tx, bool stopped)
{
    const struct tx *t = &w->chain.txs[tx];
    const struct sim_account *a = &r->accounts[account];
    HOLDS(w, t->committed, "I3", "r%d sends nonce %llu of account %d, which is not committed",
          r->index, (unsigned long long)t->nonce, account);
    if (stopped)
        return; /* only what is on record was sent, and the chain takes it once */
    HOLDS(w, store_is_up(r), "gate",
          "r%d sends nonce %llu of account %d while its database is away", r->index,
          (unsigned long long)t->nonce, account);
    uint64_t time = (w->plan.expiry_1_ms - 1000) * MS + 20 * MS;
    HOLDS(w, w->now <= a->renewed_sent + time, "gate",
          "r%d sends nonce %llu of account %d %llu ms after its last renewal was sent", r->index,
          (unsigned long long)t->nonce, account,
          (unsigned long long)((w->now - a->renewed_sent) / MS));
    const struct mem_account *row = db_account(w, account);
    /* Its own claim, whose answer is under way. */
    bool own = row->lead.holder && !strcmp(row->lead.holder, r->name);
    bool current = row->lead.epoch == epoch_of(r, account) || own || ran_out_early(w, a);
    HOLDS(w, w->plan.use_lock || current || w->db.lossy, "gate",
          "r%d sends for account %d under epoch %lld, which is at %lld", r->index, account,
          (long long)epoch_of(r, account), (long long)row->lead.epoch);
}

/* The same bytes are not sent twice without a reason: a block, time, a new start. */
void check_effort(struct world *w, const struct relay *r, int account, uint32_t tx)
{
    struct tx *t = &w->chain.txs[tx];
    uint64_t beats = r->accounts[account].beats;
    int by = r->holder * ACCOUNTS + account;
    HOLDS(w, t->sent_by != by || t->sent_beat != beats, "hot loop",
          "r%d sends nonce %llu twice in one beat", r->index, (unsigned long long)t->nonce);
    t->sent_by = by;
    t->sent_beat = beats;
}

/* With one node and no forks nothing is sent again that a probe in the right order would have
 * seen. */
void check_resend(struct world *w, const struct relay *r, uint32_t tx, uint64_t probed_at)
{
    const struct tx *t = &w->chain.txs[tx];
    bool by_another =
        t->id > 0 && w->calls[t->id].self_sent; /* who signed it sent it before any relay did */
    if (w->plan.nodes > 1 || w->stats.forks || w->db.lossy || !t->included_at[0] || by_another)
        return;
    HOLDS(w, t->included_at[0] > probed_at, "probe",
          "r%d sends nonce %llu again, which was in a block when the probe was answered", r->index,
          (unsigned long long)t->nonce);
}

static void check_seen(struct world *w, int number, int64_t id, const struct view *v)
{
    const struct mem_row *r = mem_row_of(w->db.mem, id);
    const struct mem_finished *f = r ? NULL : mem_finished_of(w->db.mem, id);
    if (f) {
        const char *outcome = mem_outcome_name(f->outcome);
        HOLDS(w, v->finished && !strcmp(v->outcome, outcome), "I8",
              "follower %d was not told that transaction %lld ended as %s (%s)", number,
              (long long)id, outcome,
              v->finished ? v->outcome
              : v->known  ? v->state
                          : "nothing");
        return;
    }
    bool pending = r && r->table == MEM_PENDING;
    HOLDS(w, !v->finished, "I8", "follower %d was told an end of transaction %lld", number,
          (long long)id);
    HOLDS(w, pending == v->known, "I8", "follower %d %s transaction %lld", number,
          v->known ? "still knows" : "was not told of", (long long)id);
    if (!v->known)
        return;
    const char *state = mem_state_name(r->state);
    HOLDS(w, v->nonce == r->nonce && v->tx == tx_of_row(w, r) && !strcmp(v->state, state), "I8",
          "follower %d sees transaction %lld at nonce %lld as %s, the table says %lld, %s", number,
          (long long)id, (long long)v->nonce, v->state, (long long)r->nonce, state);
}

/* I8 for one follower that has heard everything. */
void check_view(struct world *w, const struct follower *f)
{
    for (int64_t id = 1; id < w->next_id; id++)
        if (!w->was_failed_over[id] && !w->db.lossy)
            check_seen(w, f->index, id, &f->views[id]);
}

/* I2: what took effect has its record. */
static void check_on_record(struct world *w, uint32_t tx, const bool *found)
{
    const struct tx *x = &w->chain.txs[tx];
    bool stray =
        !x->id && has(w, FEATURE_REAP_UNFINAL); /* a stop's filler: docs/design.md, Repair */
    bool known = !x->final_in || x->id < 0 || stray || found[tx] ||
                 unread(w, w->chain.blocks[x->final_in].number) ||
                 (x->id && by_another_hand(w, x->id));
    HOLDS(w, known, "I2", "nonce %llu of account %d (transaction %lld) is final and has no record",
          (unsigned long long)x->nonce, x->account, (long long)x->id);
}

static void check_records(struct world *w)
{
    static bool found[TXS];
    memset(found, 0, sizeof(found));
    for (size_t k = 0; k < mem_finished_count(w->db.mem); k++) {
        const struct mem_finished *f = mem_finished_at(w->db.mem, k);
        uint32_t tx = f->has_hash ? tx_of_hash(w, f->hash) : 0;
        uint32_t block = f->in.known ? block_of_hash(f->in.hash) : 0;
        found[tx] |=
            block == w->chain.txs[tx].final_in || !w->chain.txs[tx].id; /* or its next life's */
    }
    for (uint32_t i = 1; i < w->chain.tx_count && !w->db.lossy; i++)
        check_on_record(w, i, found);
}

/* After everything has ended. */
void check_end(struct world *w)
{
    for (int64_t id = 1; id < w->next_id; id++) {
        const struct call *c = &w->calls[id];
        if (!w->must_end[id])
            continue;
        HOLDS(w, db_ended(w, id), "liveness", "transaction %lld has not ended", (long long)id);
        const char *outcome = mem_outcome_name(mem_finished_of(w->db.mem, id)->outcome);
        if (!strcmp(outcome, "unknown"))
            continue; /* sim_audit_ends.c checks that no node could know it */
        bool real = !strcmp(outcome, "ok") || !strcmp(outcome, "dispatch_error");
        bool did = w->effects[id] || w->failures[id] > c->forgiven;
        did = w->db.lossy && !w->effects[id] ? real : did; /* see forgiven() in sim_audit_ends.c */
        HOLDS(w, db_may_double(w) || real == did || by_another_hand(w, id), "I1",
              "transaction %lld ended as %s, took effect %u times and failed %u times, %u of them "
              "forgiven",
              (long long)id, outcome, w->effects[id], w->failures[id], c->forgiven);
        HOLDS(w, w->db.lossy || !never_admitted(id) || c->presigned || !real, "I1",
              "transaction %lld cannot be %s", (long long)id, outcome);
    }
    check_records(w);
}
