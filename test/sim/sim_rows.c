/* The leader's writes: schema/functions. Each is all or nothing: checked first, then done.
 * TR001 and TR002 are normal; TR003 says that a relay has a fault, so it breaks the run. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static struct account_row *account_of(struct world *w, const struct stmt *q)
{
    return &w->db.t.accounts[q->account];
}

static struct pending_row *at(struct world *w, const struct stmt *q, uint64_t nonce)
{
    return &w->db.t.pending[q->account][nonce];
}

/* What the schema calls an order error. After a failover that lost commits a relay may meet one in good
 * faith: what it knows was true once. */
void order_error(struct world *w, struct stmt *q, const char *what, uint64_t nonce)
{
    q->code = ERR_BUG;
    note(w, "  TR003 %s nonce %llu", what, (unsigned long long)nonce);
    HOLDS(w, w->db.lossy, "TR003", "r%d account %d nonce %llu: %s", q->relay, q->account,
          (unsigned long long)nonce, what);
}

bool is_attempt(const struct pending_row *p, uint32_t tx)
{
    for (uint32_t i = 0; i < p->attempt_count; i++)
        if (p->attempts[i] == tx)
            return true;
    return false;
}

/* ---- what every change of a row means ---- */

struct listen_event row_event(const struct world *w, int account, uint64_t nonce, enum listen_kind kind)
{
    const struct pending_row *p = &w->db.t.pending[account][nonce];
    struct listen_event ev = {.kind = kind,
                              .account = account + 1,
                              .alias = "",
                              .id = p->id,
                              .nonce = (int64_t)nonce,
                              .has_hash = true,
                              .has_block = p->block != 0,
                              .block_number = -1,
                              .state = p->state,
                              .outcome = "",
                              .error = "",
                              .creator = "",
                              .updated_at_us = p->updated_us};
    hash_of_tx(p->tx, ev.hash);
    if (p->block)
        hash_of_block(p->block, ev.block_hash);
    return ev;
}

void row_told(struct world *w, const struct stmt *q, uint64_t nonce, enum listen_kind kind)
{
    struct listen_event ev = row_event(w, q->account, nonce, kind);
    notify_row(w, &ev);
}

static void bounds(struct world *w, int account, uint64_t nonce)
{
    struct tables *t = &w->db.t;
    if (t->pending_low[account] >= t->pending_high[account])
        t->pending_low[account] = t->pending_high[account] = nonce;
    if (nonce < t->pending_low[account])
        t->pending_low[account] = nonce;
    if (nonce + 1 > t->pending_high[account])
        t->pending_high[account] = nonce + 1;
}

/* ---- attempts ---- */

/* Nobody pays more than was allowed, and a race that cannot be won is not begun. */
static void check_tip(struct world *w, const struct pending_row *p, const struct tx *t)
{
    bool fixed = t->id > 0 && w->db.t.ids[t->id].fixed;
    HOLDS(w, !fixed || &w->chain.txs[w->db.t.ids[t->id].fixed] == t, "signed",
          "transaction %lld was signed elsewhere and is signed again", (long long)t->id);
    HOLDS(w, fixed || t->tip <= tip_limit(w, t->for_id, t->account), "tip",
          "nonce %llu of transaction %lld is signed with a tip of %llu, and %llu is the most it may pay",
          (unsigned long long)t->nonce, (long long)t->for_id, (unsigned long long)t->tip,
          (unsigned long long)tip_limit(w, t->for_id, t->account));
    for (uint32_t i = p->own_from; t->id == 0 && t->for_id > 0 && i < p->attempt_count; i++) {
        const struct tx *x = &w->chain.txs[p->attempts[i]];
        HOLDS(w, x->id != t->for_id || !x->reached || !includable(w, x) || x->tip < t->tip, "tip",
              "a filler in the place of transaction %lld pays %llu, and its own bytes %llu",
              (long long)t->for_id, (unsigned long long)t->tip, (unsigned long long)x->tip);
    }
}

static bool stands_still(const struct account_row *a)
{
    return a->hold == MANAGER_HOLD_REAPED || a->hold == MANAGER_HOLD_TRANSACTION_VERSION;
}

static void check_version(struct world *w, const struct stmt *q, const struct tx *t)
{
    const struct account_row *a = account_of(w, q);
    HOLDS(w, !stands_still(a) || w->db.lossy, "hold",
          "r%d signs nonce %llu of account %d, which waits for an operator", q->relay,
          (unsigned long long)t->nonce, t->account);
    HOLDS(w, !has(w, FEATURE_VERSION) || !a->version || a->version == version_of(w, t->spec) || w->db.lossy,
          "hold", "r%d signs nonce %llu of account %d under transaction_version %u, and %u was accepted",
          q->relay, (unsigned long long)t->nonce, t->account, version_of(w, t->spec), a->version);
}

static void record(struct world *w, const struct stmt *q, struct pending_row *p, uint32_t tx)
{
    struct tx *t = &w->chain.txs[tx];
    INVARIANT(p->attempt_count < ATTEMPTS);
    check_tip(w, p, t);
    if (t->id <= 0 || !w->db.t.ids[t->id].fixed)
        check_version(w, q, t);
    p->attempts[p->attempt_count++] = tx;
    p->tx = tx;
    p->state = "signed";
    p->block = 0;
    p->signed_at = q->signed_at;
    p->updated_us = db_stamp(w);
    t->committed = true;
    uint64_t last = t->id > 0 ? w->db.t.ids[t->id].deadline_block : 0;
    HOLDS(w, !last || (t->death >= 0 && t->death <= (int64_t)last + 1) || w->db.lossy, "deadline",
          "transaction %lld may be in no block after %llu and is signed for those below %lld",
          (long long)t->id, (unsigned long long)last, (long long)t->death);
    HOLDS(w, t->id <= 0 || !w->db.t.ids[t->id].guard || w->db.t.ids[t->id].guard == t->spec || w->db.lossy,
          "guard", "transaction %lld is for runtime %u and signed under %u", (long long)t->id,
          w->db.t.ids[t->id].guard, t->spec);
    HOLDS(w, t->id >= 0 && (t->birth < 0 || w->chain.blocks[t->anchor].final), "era",
          "r%d signs nonce %llu over block %u, which is not final", q->relay, (unsigned long long)t->nonce,
          t->anchor);
}

struct pending_row *row_new(struct world *w, const struct stmt *q, uint64_t nonce, int64_t id, uint32_t tx)
{
    struct pending_row *p = at(w, q, nonce);
    INVARIANT(nonce < NONCES && !p->used);
    bounds(w, q->account, nonce);
    p->used = true;
    p->id = id; /* attempts of a former row at this nonce stay: they may be the ones that get in */
    p->own_from = p->attempt_count;
    p->stop_outcome = NULL;
    record(w, q, p, tx);
    row_told(w, q, nonce, LISTEN_NEW);
    return p;
}

void row_attempt(struct world *w, const struct stmt *q, uint64_t nonce, uint32_t tx)
{
    record(w, q, at(w, q, nonce), tx);
    row_told(w, q, nonce, LISTEN_UPDATE);
}

/* A finalized block used the nonce, and left the account with a higher one. If it was reaped after that, what
 * was signed for the nonce is valid again: no relay can know that before it is final (see forgotten() in
 * sim_pool.c). */
static bool spent(const struct world *w, int account, uint64_t nonce)
{
    for (uint32_t i = w->chain.last_of_nonce[account][nonce]; i; i = w->chain.txs[i].prev_nonce)
        if (w->chain.txs[i].spent)
            return true;
    return false;
}

/* The transaction must not be live at another nonce. */
static void check_renonce(struct world *w, int64_t id, uint64_t nonce)
{
    for (uint32_t i = w->chain.last_of_id[id]; i; i = w->chain.txs[i].prev_id) {
        const struct tx *t = &w->chain.txs[i];
        bool live = t->accepted && !t->final_in && includable(w, t) && !spent(w, t->account, t->nonce);
        HOLDS(w, t->nonce == nonce || !live || w->db.lossy, "I5",
              "transaction %lld gets nonce %llu while its bytes at nonce %llu can still be included",
              (long long)id, (unsigned long long)nonce, (unsigned long long)t->nonce);
    }
}

static int64_t max_pending(const struct world *w, int account)
{
    const struct tables *t = &w->db.t;
    for (uint64_t n = t->pending_high[account]; n > t->pending_low[account]; n--)
        if (t->pending[account][n - 1].used)
            return (int64_t)n - 1;
    return -1;
}

static void admit(struct world *w, struct stmt *q)
{
    if (q->admits_fixed) {
        signed_admit(w, q);
        return;
    }
    struct account_row *a = account_of(w, q);
    struct tables *t = &w->db.t;
    int64_t next = a->next_nonce >= 0 ? a->next_nonce : max_pending(w, q->account) + 1;
    bool known = a->next_nonce >= 0 || max_pending(w, q->account) >= 0;
    for (size_t i = 0; i < q->count; i++)
        if (q->rows[i].nonce != q->rows[0].nonce + i) {
            order_error(w, q, "nonces do not go up by one", q->rows[i].nonce);
            return;
        }
    if (known && (int64_t)q->rows[0].nonce != next) {
        order_error(w, q, "admission does not begin at the next nonce", q->rows[0].nonce);
        return;
    }
    if (a->reconcile) {
        order_error(w, q, "admission to an account that is not reconciled", q->rows[0].nonce);
        return;
    }
    if (a->paused || (a->version && a->version != q->version)) {
        HOLDS(w, !a->by_leader || a->hold == MANAGER_HOLD_NONE || w->db.lossy, "hold",
              "r%d admits to account %d, which its leader holds back", q->relay, q->account);
        q->code = ERR_DB_CONFLICT;
        return;
    }
    for (size_t i = 0; i < q->count; i++) {
        const struct id_row *r = &t->ids[q->rows[i].id];
        bool there = r->stage == STAGE_OUTBOX && r->account == q->account &&
                     (!r->deadline_us || r->deadline_us > db_now_us(w));
        if (PLANTED(CANCEL_ADMIT) && r->stage == STAGE_FINISHED && r->cancelled)
            there = true;
        if (!there) {
            q->code = ERR_DB_CONFLICT;
            return;
        }
    }
    for (size_t i = 0; i < q->count; i++) {
        int64_t id = q->rows[i].id;
        check_renonce(w, id, q->rows[i].nonce);
        HOLDS(w, t->ids[id].stage == STAGE_OUTBOX, "I7", "transaction %lld has ended and gets a nonce",
              (long long)id);
        t->ids[id].stage = STAGE_PENDING;
        t->ids[id].nonce = (int64_t)q->rows[i].nonce;
        row_new(w, q, q->rows[i].nonce, id, q->txs[i]);
    }
    a->next_nonce = (int64_t)(q->rows[0].nonce + q->count);
    if (!a->version)
        a->version = q->version;
}

static void resign(struct world *w, struct stmt *q)
{
    for (size_t i = 0; i < q->count; i++) {
        const struct pending_row *p = at(w, q, q->rows[i].nonce);
        if (!q->rows[i].index && p->used && is_attempt(p, q->txs[i])) {
            order_error(w, q, "these bytes are on record already", q->rows[i].nonce);
            return;
        }
    }
    for (size_t i = 0; i < q->count; i++)
        if (!q->rows[i].index && !at(w, q, q->rows[i].nonce)->used) {
            q->code = ERR_DB_CONFLICT;
            return;
        }
    for (size_t i = 0; i < q->count; i++) {
        struct pending_row *p = at(w, q, q->rows[i].nonce);
        if (q->rows[i].index)
            continue; /* the relay left it out: these bytes are the current ones */
        const struct tx *t = &w->chain.txs[q->txs[i]];
        HOLDS(w, p->id == t->for_id && (t->id == p->id || q->rows[i].filler), "I5",
              "nonce %llu of transaction %lld is signed again for transaction %lld with the call of %lld",
              (unsigned long long)q->rows[i].nonce, (long long)p->id, (long long)t->for_id, (long long)t->id);
        HOLDS(w, !p->stop_outcome || q->rows[i].filler, "stop",
              "transaction %lld is signed again after a filler for its place", (long long)p->id);
        w->stats.raises += t->tip > w->chain.txs[p->tx].tip;
        w->stats.races += q->rows[i].filler;
        record(w, q, p, q->txs[i]);
        if (q->rows[i].filler)
            p->stop_outcome = outcome_name(q->rows[i].outcome);
        row_told(w, q, q->rows[i].nonce, LISTEN_UPDATE);
        w->stats.resigns++;
    }
}

/* The transaction ends here, so none of its bytes may be in a pool or get into a block any more. */
static void check_fill(struct world *w, const struct pending_row *p)
{
    for (uint32_t i = 0; p->id && i < p->attempt_count; i++) {
        const struct tx *t = &w->chain.txs[p->attempts[i]];
        HOLDS(w, t->id != p->id || !t->in_pool || !includable(w, t) || w->db.lossy, "I5",
              "transaction %lld ends, a filler takes nonce %llu, and a pool holds its bytes",
              (long long)p->id, (unsigned long long)t->nonce);
    }
}

static void fill(struct world *w, struct stmt *q)
{
    struct account_row *a = account_of(w, q);
    int64_t next = a->next_nonce;
    if (next < 0)
        next = max_pending(w, q->account) + 1;
    int64_t due = next;
    for (size_t i = 0; i < q->count; i++) /* the batch is in nonce order */
        if ((int64_t)q->rows[i].nonce >= next && (int64_t)q->rows[i].nonce != due++) {
            order_error(w, q, "fillers leave a gap", q->rows[i].nonce);
            return;
        }
    for (size_t i = 0; i < q->count; i++) {
        uint64_t nonce = q->rows[i].nonce;
        struct pending_row *p = at(w, q, nonce);
        if (p->used) {
            check_fill(w, p);
            p->block = 0;
            row_leaves(w, q, nonce, q->rows[i].outcome);
        }
        row_new(w, q, nonce, 0, q->txs[i]);
        w->stats.fills++;
    }
    if (due > a->next_nonce)
        a->next_nonce = due;
}

/* ---- states, ends, nonce ---- */

static void states(struct world *w, struct stmt *q)
{
    for (size_t i = 0; i < q->count; i++) {
        struct stmt_row *x = &q->rows[i];
        const struct pending_row *p = at(w, q, x->nonce);
        bool needs_block = !strcmp(x->state, "in_block") || !strcmp(x->state, "retracted") ||
                           !strcmp(x->state, "finality_timeout") || !strcmp(x->state, "finalized");
        HOLDS(w, !needs_block || x->has_block, "argument", "state %s of nonce %llu names no block", x->state,
              (unsigned long long)x->nonce);
        if (!strcmp(x->state, "refused"))
            HOLDS(w, x->error[0], "I7", "a refusal of nonce %llu has no text", (unsigned long long)x->nonce);
        if (!strcmp(x->state, "signed") || (p->used && !is_attempt(p, tx_of_hash(w, x->hash)))) {
            order_error(w, q, "a state of bytes that are not on record", x->nonce);
            return;
        }
    }
    for (size_t i = 0; i < q->count; i++) {
        struct stmt_row *x = &q->rows[i];
        struct pending_row *p = at(w, q, x->nonce);
        uint32_t block = x->has_block ? block_of_hash(x->block_hash) : 0;
        if (!strcmp(x->state, "refused")) { /* a line of the history, whichever attempt it was */
            w->stats.refusals++;
            continue;
        }
        if (!p->used || p->tx != tx_of_hash(w, x->hash) || (!strcmp(p->state, x->state) && p->block == block))
            continue;
        HOLDS(w, strcmp(p->state, "finalized") != 0, "I7", "nonce %llu was finalized and becomes %s",
              (unsigned long long)x->nonce, x->state);
        bool visible = strcmp(p->state, x->state) != 0 || p->block != block;
        p->state = x->state;
        p->block = block;
        p->updated_us = db_stamp(w);
        if (visible)
            row_told(w, q, x->nonce, LISTEN_UPDATE);
    }
}

static void begin_life(struct world *w, struct stmt *q)
{
    struct account_row *a = account_of(w, q);
    if (max_pending(w, q->account) >= 0) {
        order_error(w, q, "a new life begins while nonces of the former one are open", q->nonce);
        return;
    }
    HOLDS(w, a->reborn || w->db.lossy, "hold", "r%d begins a new life of account %d, and nobody ordered it",
          q->relay, q->account);
    a->next_nonce = (int64_t)q->nonce;
    a->life_since_us = db_stamp(w);
    a->reborn = false;
}

static void set_nonce(struct world *w, struct stmt *q)
{
    struct account_row *a = account_of(w, q);
    if (q->reborn) {
        begin_life(w, q);
        return;
    }
    if ((int64_t)q->nonce <= max_pending(w, q->account) || ((int64_t)q->nonce < a->next_nonce && !q->lower)) {
        order_error(w, q, "the next nonce goes down", q->nonce);
        return;
    }
    for (uint32_t i = 0; (int64_t)q->nonce < a->next_nonce && i < w->db.t.finished_count; i++) {
        const struct finished_row *f = &w->db.t.finished[i];
        if (f->account == q->account && f->nonce >= (int64_t)q->nonce && f->finished_us > a->life_since_us &&
            (f->block || !strcmp(f->outcome, "usurped"))) {
            q->code = ERR_DB_CONFLICT; /* the node lags */
            return;
        }
    }
    a->next_nonce = (int64_t)q->nonce;
}

/* Whoever ends a pause rings for what had to wait. */
void rows_audible(struct world *w, int account)
{
    for (int64_t id = 1; id < w->db.t.next_id; id++)
        if (w->db.t.ids[id].account == account)
            w->db.t.ids[id].silent = false;
}

/* leader_pause: an operator's pause stays as it is, and says nothing of the hold. */
static void set_pause(struct world *w, struct stmt *q)
{
    struct account_row *a = account_of(w, q);
    a->hold = q->hold;
    if (a->paused && !a->by_leader)
        return;
    a->paused = a->by_leader = q->hold != MANAGER_HOLD_NONE;
    a->paused_us = db_stamp(w);
    w->stats.holds += a->paused;
    if (!a->paused)
        rows_audible(w, q->account);
}

struct manager_account account_facts(const struct world *w, int account)
{
    const struct account_row *a = &w->db.t.accounts[account];
    const struct policy *p = &w->plan.policy[account];
    return (struct manager_account){.paused = a->paused,
                                    .hold = a->hold,
                                    .reborn = a->reborn,
                                    .transaction_version = a->version,
                                    .tip_start = p->tip_start,
                                    .tip_step = p->tip_step,
                                    .tip_cap = p->tip_cap < 0 ? MANAGER_NO_CAP : (u128)p->tip_cap,
                                    .tip_step_percent = p->tip_step_percent,
                                    .tip_after_blocks = p->tip_after_blocks,
                                    .skip_after_blocks = p->skip_after_blocks,
                                    .requeue_usurped = p->requeue_usurped,
                                    .has_low_balance = true,
                                    .low_balance = 10};
}

void sql_write(struct world *w, struct stmt *q)
{
    static void (*const writes[])(struct world * w, struct stmt * q) = {
        [OP_ADMIT] = admit,     [OP_RESIGN] = resign,        [OP_FILL] = fill,
        [OP_STATES] = states,   [OP_FINISH] = rows_end,      [OP_REJECT] = rows_reject,
        [OP_NONCE] = set_nonce, [OP_REQUEUE] = rows_requeue, [OP_LOOK] = rows_look,
        [OP_PAUSE] = set_pause, [OP_NOTE] = signed_note,     [OP_ADOPT] = sql_adopt,
    };
    bool unfenced = PLANTED(NO_FENCE) && q->op == OP_STATES;
    if (!sql_fence(w, q) && !unfenced)
        return;
    const struct account_row *a = account_of(w, q);
    HOLDS(w, a->holder && a->epoch == q->epoch, "I4",
          "r%d writes to account %d under epoch %lld, which is at %lld", q->relay, q->account,
          (long long)q->epoch, (long long)a->epoch);
    q->code = 0;
    writes[q->op](w, q);
}
