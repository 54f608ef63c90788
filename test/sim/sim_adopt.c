/* What the chain knows and a failover lost: schema/functions/17_reconcile.sql. */
#include <stdlib.h>

#include "sim.h"

/* The pending transaction at its nonce, or one that waits, whose call it has; else nobody's. */
static bool adopt(struct world *w, struct stmt *q, uint32_t tx)
{
    const struct tx *t = &w->chain.txs[tx];
    struct pending_row *p = &w->db.t.pending[q->account][t->nonce];
    if (p->used) {
        if (p->id != t->id || is_attempt(p, tx))
            return false;
        row_attempt(w, q, t->nonce, tx);
        return true;
    }
    struct id_row *r = t->id > 0 ? &w->db.t.ids[t->id] : NULL;
    if (!r || r->stage != STAGE_OUTBOX || is_attempt(p, tx) || (r->fixed && r->fixed != tx))
        return false;
    r->stage = STAGE_PENDING;
    r->nonce = (int64_t)t->nonce;
    uint64_t block = q->signed_at;
    if (r->fixed && q->signed_at > (uint64_t)t->birth) /* it may have been sent long before */
        q->signed_at = (uint64_t)t->birth;
    row_new(w, q, t->nonce, t->id, tx);
    q->signed_at = block;
    struct account_row *a = &w->db.t.accounts[q->account];
    if (a->next_nonce < (int64_t)t->nonce + 1)
        a->next_nonce = (int64_t)t->nonce + 1;
    return true;
}

void sql_adopt(struct world *w, struct stmt *q)
{
    for (size_t i = 0; i < q->count; i++)
        q->out_count += adopt(w, q, q->txs[i]);
    w->stats.adopted += q->out_count;
    if (q->reconcile)
        w->db.t.accounts[q->account].reconcile = false;
}
