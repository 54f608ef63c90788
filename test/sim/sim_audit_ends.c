/* The auditor of ends: what is stored of a transaction must be true on the finalized chain. */
#include <string.h>

#include "sim_audit.h"

static bool taken_by_another(const struct world *w, int account, uint64_t nonce, int64_t id)
{
    uint32_t presigned =
        id ? w->calls[id].presigned : 0; /* what was signed here may have taken its nonce, too */
    for (uint32_t i = w->chain.last_of_nonce[account][nonce]; i; i = w->chain.txs[i].prev_nonce)
        if (w->chain.txs[i].spent && (w->chain.txs[i].id < 0 || (presigned && i != presigned)))
            return true;
    return false;
}

/* `id`: of the transaction that ends or goes on by this block; 0: a filler does. */
static void check_included(const struct audit *t, int64_t id, const struct tx_end *x)
{
    struct world *w = t->w;
    const struct chain *c = &w->chain;
    uint32_t block = block_of_hash(x->block_hash), tx = tx_of_hash(w, x->hash);
    HOLDS(w, c->blocks[block].final && c->blocks[block].number == (uint64_t)x->block_number, "I2",
          "nonce %llu of account %d ends in block %u, which is not final",
          (unsigned long long)x->nonce, t->account, block);
    const struct block *b = &c->blocks[block];
    HOLDS(w, x->index < b->count && b->txs[x->index] == tx && c->txs[tx].nonce == x->nonce, "I2",
          "nonce %llu of account %d ends as %s in block %u, which does not hold it at %u",
          (unsigned long long)x->nonce, t->account, x->outcome, block, x->index);
    int64_t whose = c->txs[tx].id;
    HOLDS(w, !id || !whose || whose == id, "I1",
          "transaction %lld ends as %s by block %u, which holds what was signed for transaction "
          "%lld",
          (long long)id, x->outcome, block, (long long)whose);
}

/* None of its bytes at this nonce may get into a block any more. */
static void check_dead(const struct audit *t, int64_t id, uint64_t nonce)
{
    struct world *w = t->w;
    for (uint32_t i = id ? w->chain.last_of_id[id] : 0; i; i = w->chain.txs[i].prev_id) {
        const struct tx *x = &w->chain.txs[i];
        HOLDS(w,
              x->nonce != nonce || !x->accepted || x->final_in || !includable(w, x) ||
                  may_double(t),
              "I5",
              "transaction %lld leaves nonce %llu, and its bytes there can still be included until "
              "%lld (tx %u)",
              (long long)id, (unsigned long long)x->nonce, (long long)x->death, i);
    }
}

static void check_finish(const struct audit *t, const struct before *b, const struct tx_end *x)
{
    struct world *w = t->w;
    if (!x->has_block && !strcmp(x->outcome, "unknown")) {
        HOLDS(w, has(w, FEATURE_ABILITIES), "I2",
              "nonce %llu ends as unknown, and all blocks can be read",
              (unsigned long long)x->nonce);
        return;
    }
    if (!x->has_block) {
        bool taken = taken_by_another(w, t->account, (uint64_t)x->nonce, b->id);
        HOLDS(
            w, strcmp(x->outcome, "usurped") != 0 || taken || lossy(t), "I2",
            "nonce %llu of account %d ends as usurped, and no finalized block holds another one's",
            (unsigned long long)x->nonce, t->account);
        if (!taken)
            check_dead(t, b->id, (uint64_t)x->nonce);
        return;
    }
    if (!strcmp(x->outcome, "usurped"))
        return;
    check_included(t, b->id, x);
    const struct tx *tx = &w->chain.txs[tx_of_hash(w, x->hash)];
    const char *due = fate_of(w, tx) == FATE_OK ? "ok" : "dispatch_error";
    if (tx->id == 0 && b->id) /* it took the transaction's place */
        due = b->stop_outcome != MEM_OUTCOME_NONE ? mem_outcome_name(b->stop_outcome) : "nothing";
    HOLDS(w, !strcmp(x->outcome, due), "I2", "nonce %llu ends as %s where %s is true",
          (unsigned long long)x->nonce, x->outcome, due);
}

void audit_finished(const struct audit *t)
{
    for (size_t i = 0; i < t->x->u.finish.count; i++)
        check_finish(t, &t->rows[i], &t->x->u.finish.rows[i]);
}

/* The nonce is gone for this transaction, so none of its bytes may get in any more. */
void audit_requeued(const struct audit *t)
{
    struct world *w = t->w;
    for (size_t i = 0; i < t->x->u.finish.count; i++) {
        const struct tx_end *x = &t->x->u.finish.rows[i];
        int64_t id = t->rows[i].id;
        bool forgiven = !strcmp(x->outcome, "dispatch_error"),
             usurped = !strcmp(x->outcome, "usurped");
        HOLDS(w, id > 0 && !w->calls[id].presigned, "signed",
              "transaction %lld was signed elsewhere and goes back to the outbox", (long long)id);
        if (forgiven) {
            check_included(t, id, x);
            HOLDS(w, fate_of(w, &w->chain.txs[tx_of_hash(w, x->hash)]) == FATE_FAILS, "I1",
                  "transaction %lld goes back to the outbox and did not fail as a whole",
                  (long long)id);
            w->calls[id].forgiven++;
        } else if (usurped) {
            HOLDS(w, taken_by_another(w, t->account, (uint64_t)x->nonce, 0) || lossy(t), "I5",
                  "transaction %lld goes back to the outbox, and nobody else has used nonce %llu "
                  "for good",
                  (long long)id, (unsigned long long)x->nonce);
        } else {
            check_dead(t, id, (uint64_t)x->nonce);
        }
        w->calls[id].bump = -1;
        w->stats.requeues++;
    }
}

void audit_rejected(const struct audit *t)
{
    struct world *w = t->w;
    for (size_t i = 0; i < t->x->u.finish.count; i++) {
        int64_t id = t->x->u.finish.rows[i].id;
        const struct call *c = &w->calls[id];
        HOLDS(w, never_admitted(id) || c->guard || c->deadline_block || c->presigned, "I1",
              "transaction %lld is rejected and is good", (long long)id);
    }
}

static uint64_t highest_block(const struct world *w)
{
    uint64_t highest = 0;
    for (int k = 0; k < w->plan.nodes; k++)
        if (w->chain.blocks[w->chain.nodes[k].best].number > highest)
            highest = w->chain.blocks[w->chain.nodes[k].best].number;
    return highest;
}

/* An era that ends in time may be too short to be of use some blocks before the last one that
 * may hold it: the more so the further finality lags. */
static bool may_expire(const struct world *w, const struct call *c)
{
    uint64_t best = highest_block(w), final = w->chain.blocks[w->chain.final].number;
    best = best > final ? best : final; /* nodes that begin anew are at block 0 */
    uint64_t lag = best - final;
    return (c->deadline_us && c->deadline_us <= db_now_us(w)) ||
           (c->deadline_block && c->deadline_block <= best + lag + 40);
}

/* What a failover lost may have been forgiven before, and is forgiven again. */
static bool forgiven(const struct world *w, int64_t id, uint32_t failures)
{
    return w->failures[id] == w->calls[id].forgiven + failures || w->db.lossy;
}

static void check_outcome(struct world *w, int64_t id, const char *outcome)
{
    const struct call *c = &w->calls[id];
    bool good = w->effects[id] == 0;
    if (!strcmp(outcome, "ok"))
        good = w->effects[id] == 1 && !w->inner[id];
    else if (!strcmp(outcome, "dispatch_error"))
        good = w->effects[id] == 1 ? w->inner[id] : !w->effects[id] && forgiven(w, id, 1);
    else if (!strcmp(outcome, "unknown"))
        good = w->effects[id] <= 1;
    else
        good = good && forgiven(w, id, 0);
    HOLDS(w, good || db_may_double(w), "I1",
          "transaction %lld ends as %s; in finalized blocks it took effect %u times and failed %u "
          "times, %u of them forgiven",
          (long long)id, outcome, w->effects[id], w->failures[id], c->forgiven);
    bool over = c->presigned && !includable(w, &w->chain.txs[c->presigned]);
    HOLDS(
        w, strcmp(outcome, "expired") != 0 || may_expire(w, c) || over, "deadline",
        "transaction %lld expires %lld us before its deadline, or at block %llu before block %llu",
        (long long)id, (long long)(c->deadline_us - db_now_us(w)),
        (unsigned long long)highest_block(w), (unsigned long long)c->deadline_block);
    HOLDS(w, strcmp(outcome, "cancelled") != 0 || c->cancelled || w->db.lossy, "cancel",
          "transaction %lld is cancelled and nobody asked for it", (long long)id);
}

/* Every end is told, whatever statement it was in. */
void audit_told(struct world *w, const struct mem_notice *n)
{
    if (n->channel != MEM_TX_REMOVED || !n->outcome || n->id <= 0)
        return;
    check_outcome(w, n->id, n->outcome);
    w->stats.ended++;
}
