/* The auditor of new attempts: admissions, bytes that are signed again, fillers, and what was
 * adopted. */
#include <string.h>

#include "sim_audit.h"

static int64_t row_of_attempt(const struct audit *t, size_t i)
{
    return t->x->what == MEM_REQUEST_fill      ? 0
           : t->x->what == MEM_REQUEST_attempt ? t->rows[i].id
                                               : t->x->u.attempts.rows[i].id;
}

/* The database has it on record now. What a failover lost is not: no leader can know of it. */
static bool on_record(const struct world *w, uint32_t tx)
{
    const struct tx *x = &w->chain.txs[tx];
    const struct mem_nonce *at = mem_nonce_at(w->db.mem, x->account + 1, (int64_t)x->nonce);
    for (size_t i = 0; at && i < at->count; i++)
        if (tx_of_hash(w, at->attempts[i].hash) == tx)
            return true;
    return false;
}

/* A node has refused the call: its pool holds no bytes of it that could be outbid. */
static bool refused(const struct world *w, int64_t id)
{
    for (uint32_t i = w->chain.last_of_id[id]; i; i = w->chain.txs[i].prev_id)
        if (w->chain.txs[i].refused)
            return true;
    return false;
}

/* Nobody pays more than was allowed, and a race that cannot be won is not begun. */
static void check_tip(const struct audit *t, int64_t id, const struct tx *x)
{
    struct world *w = t->w;
    bool presigned = x->id > 0 && w->calls[x->id].presigned;
    HOLDS(w, !presigned || &w->chain.txs[w->calls[x->id].presigned] == x, "signed",
          "transaction %lld was signed elsewhere and is signed again", (long long)x->id);
    HOLDS(w, presigned || x->tip <= tip_limit(w, id, x->account), "tip",
          "nonce %llu of transaction %lld is signed with a tip of %llu, and %llu is the most it "
          "may pay",
          (unsigned long long)x->nonce, (long long)id, (unsigned long long)x->tip,
          (unsigned long long)tip_limit(w, id, x->account));
    if (x->id || !id)
        return;
    for (uint32_t i = w->chain.last_of_id[id]; i; i = w->chain.txs[i].prev_id) {
        const struct tx *own = &w->chain.txs[i];
        bool races =
            own->nonce == x->nonce && own->reached && includable(w, own) && on_record(w, i);
        HOLDS(w, !races || own->tip < x->tip || refused(w, id), "tip",
              "a filler in the place of transaction %lld pays %llu, and its own bytes %llu",
              (long long)id, (unsigned long long)x->tip, (unsigned long long)own->tip);
    }
}

static void check_version(const struct audit *t, const struct tx *x)
{
    struct world *w = t->w;
    bool still = !strcmp(t->suspension, "reaped") || !strcmp(t->suspension, "transaction_version");
    uint32_t version = t->was.transaction_version;
    HOLDS(w, !still || lossy(t), "hold",
          "r%d signs nonce %llu of account %d, which waits for an operator", t->process,
          (unsigned long long)x->nonce, x->account);
    HOLDS(w, !has(w, FEATURE_VERSION) || !version || version == version_of(w, x->spec) || lossy(t),
          "hold",
          "r%d signs nonce %llu of account %d under transaction_version %u, and %u was accepted",
          t->process, (unsigned long long)x->nonce, x->account, version_of(w, x->spec), version);
}

static void check_recorded(const struct audit *t, int64_t id, uint32_t tx)
{
    struct world *w = t->w;
    struct tx *x = &w->chain.txs[tx];
    const struct call *call = x->id > 0 ? &w->calls[x->id] : NULL;
    check_tip(t, id, x);
    if (!call || !call->presigned)
        check_version(t, x);
    x->committed = true;
    uint64_t last = call ? call->deadline_block : 0;
    HOLDS(w, !last || (x->death >= 0 && x->death <= (int64_t)last + 1) || lossy(t), "deadline",
          "transaction %lld may be in no block after %llu and is signed for those below %lld",
          (long long)x->id, (unsigned long long)last, (long long)x->death);
    HOLDS(w, !call || !call->guard || call->guard == x->spec || lossy(t), "guard",
          "transaction %lld is for runtime %u and signed under %u", (long long)x->id,
          call ? call->guard : 0, x->spec);
    HOLDS(w, x->id >= 0 && (x->birth < 0 || w->chain.blocks[x->anchor].final), "era",
          "r%d signs nonce %llu over block %u, which is not final", t->process,
          (unsigned long long)x->nonce, x->anchor);
}

/* A finalized block used the nonce, and left the account with a higher one. If it was reaped
 * after that, what was signed for the nonce is valid again: no relay can know that before it is
 * final (see forgotten() in sim_pool.c). */
static bool spent(const struct world *w, int account, uint64_t nonce)
{
    for (uint32_t i = w->chain.last_of_nonce[account][nonce]; i; i = w->chain.txs[i].prev_nonce)
        if (w->chain.txs[i].spent)
            return true;
    return false;
}

/* The transaction must not be live at another nonce. */
static void check_renonce(const struct audit *t, int64_t id, uint64_t nonce)
{
    struct world *w = t->w;
    for (uint32_t i = w->chain.last_of_id[id]; i; i = w->chain.txs[i].prev_id) {
        const struct tx *x = &w->chain.txs[i];
        bool live =
            x->accepted && !x->final_in && includable(w, x) && !spent(w, x->account, x->nonce);
        HOLDS(
            w, x->nonce == nonce || !live || may_double(t), "I5",
            "transaction %lld gets nonce %llu while its bytes at nonce %llu can still be included",
            (long long)id, (unsigned long long)nonce, (unsigned long long)x->nonce);
    }
}

static void check_admitted(const struct audit *t, size_t i)
{
    struct world *w = t->w;
    const struct store_attempt_row *row = &t->x->u.attempts.rows[i];
    bool held = t->was.paused && !t->was.paused_by_operator && t->suspension[0];
    HOLDS(w, !held || lossy(t), "hold", "r%d admits to account %d, which its leader holds back",
          t->process, t->account);
    HOLDS(w, t->rows[i].waiting, "I7", "transaction %lld has ended and gets a nonce",
          (long long)row->id);
    if (t->x->what == MEM_REQUEST_admit)
        check_renonce(t, row->id, (uint64_t)row->nonce);
    else
        w->stats.presigned++;
}

static void check_again(const struct audit *t, size_t i, uint32_t tx)
{
    struct world *w = t->w;
    const struct before *b = &t->rows[i];
    const struct store_attempt_row *row = &t->x->u.attempts.rows[i];
    const struct tx *x = &w->chain.txs[tx];
    bool filler = row->filler_len != 0;
    HOLDS(
        w, row->id == b->id && (x->id == b->id || filler), "I5",
        "nonce %lld of transaction %lld is signed again for transaction %lld with the call of %lld",
        (long long)row->nonce, (long long)b->id, (long long)row->id, (long long)x->id);
    HOLDS(w, b->stop_outcome == MEM_OUTCOME_NONE || filler, "stop",
          "transaction %lld is signed again after a filler for its place", (long long)b->id);
    w->stats.raises += x->tip > w->chain.txs[b->tx].tip;
    w->stats.races += filler;
    w->stats.resigns++;
}

/* The transaction ends here, so none of its bytes may be in a pool or get into a block any more. */
static void check_fill(const struct audit *t, size_t i)
{
    struct world *w = t->w;
    int64_t id = t->rows[i].id, nonce = t->x->u.attempts.rows[i].nonce;
    for (uint32_t k = id ? w->chain.last_of_id[id] : 0; k; k = w->chain.txs[k].prev_id) {
        const struct tx *x = &w->chain.txs[k];
        bool lives = (int64_t)x->nonce == nonce && x->committed && x->in_pool && includable(w, x);
        HOLDS(w, !lives || may_double(t), "I5",
              "transaction %lld ends, a filler takes nonce %llu, and a pool holds its bytes",
              (long long)id, (unsigned long long)x->nonce);
    }
    w->stats.fills++;
}

void audit_attempts(const struct audit *t)
{
    const struct store_attempts *r = &t->x->u.attempts;
    for (size_t i = 0; i < r->count; i++) {
        uint32_t tx = tx_of_hash(t->w, r->rows[i].hash);
        HOLDS(t->w, tx, "I3", "r%d records bytes that nobody signed", t->process);
        if (t->x->what == MEM_REQUEST_fill)
            check_fill(t, i);
        else if (t->x->what == MEM_REQUEST_attempt)
            check_again(t, i, tx);
        else
            check_admitted(t, i);
        check_recorded(t, row_of_attempt(t, i), tx);
    }
}

void audit_adopted(const struct audit *t)
{
    const struct store_adopt *r = &t->x->u.adopt;
    t->w->stats.adopted += (uint64_t)r->adopted;
    for (size_t i = 0; i < r->count; i++) {
        uint32_t tx = tx_of_hash(t->w, r->rows[i].hash);
        HOLDS(t->w, !t->w->chain.txs[tx].forged, "I3", "r%d adopts bytes that nobody signed",
              t->process);
        const struct mem_row *row =
            mem_pending_at(t->w->db.mem, t->account + 1, (int64_t)r->rows[i].nonce);
        for (size_t k = 0; row && k < row->at->count; k++)
            if (!memcmp(row->at->attempts[k].hash, r->rows[i].hash, 32))
                check_recorded(t, row->id, tx);
    }
}
