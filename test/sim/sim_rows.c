/* The leader's writes: schema/migrations/0004_pending.sql. Each is all or nothing: checked first, then done.
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
static void order_error(struct world *w, struct stmt *q, const char *what, uint64_t nonce)
{
    q->code = ERR_BUG;
    note(w, "  TR003 %s nonce %llu", what, (unsigned long long)nonce);
    HOLDS(w, w->db.lossy, "TR003", "r%d account %d nonce %llu: %s", q->relay, q->account,
          (unsigned long long)nonce, what);
}

static bool is_attempt(const struct pending_row *p, uint32_t tx)
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

static void tell(struct world *w, const struct stmt *q, uint64_t nonce, enum listen_kind kind)
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

static void end_id(struct world *w, int64_t id, const char *outcome, int64_t nonce)
{
    struct id_row *r = &w->db.t.ids[id];
    HOLDS(w, r->stage != STAGE_FINISHED, "I7", "transaction %lld ends as %s and had ended as %s",
          (long long)id, outcome, r->outcome ? r->outcome : "?");
    bool real = !strcmp(outcome, "ok") || !strcmp(outcome, "dispatch_error");
    HOLDS(w, real == (w->effects[id] > 0) || w->db.lossy, "I1",
          "transaction %lld ends as %s and is %u times in finalized blocks", (long long)id, outcome,
          w->effects[id]);
    HOLDS(w, strcmp(outcome, "expired") != 0 || (r->deadline_us && r->deadline_us <= db_now_us(w)),
          "deadline", "transaction %lld expires before its deadline", (long long)id);
    HOLDS(w, strcmp(outcome, "cancelled") != 0 || r->cancelled || w->db.lossy, "cancel",
          "transaction %lld is cancelled and nobody asked for it", (long long)id);
    r->stage = STAGE_FINISHED;
    r->outcome = outcome;
    r->nonce = nonce;
    w->open--;
    w->stats.ended++;
}

static void finish(struct world *w, int account, int64_t nonce, int64_t id, uint32_t tx, uint32_t block,
                   const char *state, const char *outcome)
{
    struct tables *t = &w->db.t;
    INVARIANT(t->finished_count < ARRAY_LEN(t->finished));
    t->finished[t->finished_count++] = (struct finished_row){.account = account,
                                                             .nonce = nonce,
                                                             .id = id,
                                                             .tx = tx,
                                                             .block = block,
                                                             .state = state,
                                                             .outcome = outcome,
                                                             .finished_us = db_stamp(w)};
    if (id)
        end_id(w, id, outcome, nonce);
}

static void row_leaves(struct world *w, const struct stmt *q, uint64_t nonce, const char *outcome)
{
    struct tables *t = &w->db.t;
    struct pending_row *p = at(w, q, nonce);
    struct listen_event ev = row_event(w, q->account, nonce, LISTEN_REMOVED);
    ev.outcome = outcome ? outcome : "";
    if (outcome)
        finish(w, q->account, (int64_t)nonce, p->id, p->tx, p->block, p->state, outcome);
    notify_row(w, &ev);
    p->used = false;
    while (t->pending_low[q->account] < t->pending_high[q->account] &&
           !t->pending[q->account][t->pending_low[q->account]].used)
        t->pending_low[q->account]++;
}

/* ---- attempts ---- */

static void record(struct world *w, const struct stmt *q, struct pending_row *p, uint32_t tx)
{
    struct tx *t = &w->chain.txs[tx];
    INVARIANT(p->attempt_count < ATTEMPTS);
    p->attempts[p->attempt_count++] = tx;
    p->tx = tx;
    p->state = "signed";
    p->block = 0;
    p->signed_at = q->signed_at;
    p->updated_us = db_stamp(w);
    t->committed = true;
    HOLDS(w, t->id <= 0 || !w->db.t.ids[t->id].guard || w->db.t.ids[t->id].guard == t->spec || w->db.lossy,
          "guard", "transaction %lld is for runtime %u and signed under %u", (long long)t->id,
          w->db.t.ids[t->id].guard, t->spec);
    HOLDS(w, t->id >= 0 && (t->birth < 0 || w->chain.blocks[t->anchor].final), "era",
          "r%d signs nonce %llu over block %u, which is not final", q->relay, (unsigned long long)t->nonce,
          t->anchor);
}

static struct pending_row *row_new(struct world *w, const struct stmt *q, uint64_t nonce, int64_t id,
                                   uint32_t tx)
{
    struct pending_row *p = at(w, q, nonce);
    INVARIANT(nonce < NONCES && !p->used);
    bounds(w, q->account, nonce);
    p->used = true;
    p->id = id; /* attempts of a former row at this nonce stay: they may be the ones that get in */
    record(w, q, p, tx);
    tell(w, q, nonce, LISTEN_NEW);
    return p;
}

/* The transaction must not be live at another nonce. */
static void check_renonce(struct world *w, int64_t id, uint64_t nonce)
{
    for (uint32_t i = w->chain.last_of_id[id]; i; i = w->chain.txs[i].prev_id) {
        const struct tx *t = &w->chain.txs[i];
        HOLDS(w, t->nonce == nonce || !t->committed || !includable(w, t) || w->db.lossy, "I5",
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
        HOLDS(w, p->id == w->chain.txs[q->txs[i]].id, "I5",
              "nonce %llu of transaction %lld is signed again for transaction %lld",
              (unsigned long long)q->rows[i].nonce, (long long)p->id, (long long)w->chain.txs[q->txs[i]].id);
        record(w, q, p, q->txs[i]);
        tell(w, q, q->rows[i].nonce, LISTEN_UPDATE);
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
        struct manager_row_effect *x = &q->rows[i];
        const struct pending_row *p = at(w, q, x->nonce);
        bool needs_block = !strcmp(x->state, "in_block") || !strcmp(x->state, "retracted") ||
                           !strcmp(x->state, "finality_timeout") || !strcmp(x->state, "finalized");
        HOLDS(w, !needs_block || x->has_block, "argument", "state %s of nonce %llu names no block", x->state,
              (unsigned long long)x->nonce);
        if (!strcmp(x->state, "signed") || (p->used && !is_attempt(p, tx_of_hash(w, x->hash)))) {
            order_error(w, q, "a state of bytes that are not on record", x->nonce);
            return;
        }
    }
    for (size_t i = 0; i < q->count; i++) {
        struct manager_row_effect *x = &q->rows[i];
        struct pending_row *p = at(w, q, x->nonce);
        uint32_t block = x->has_block ? block_of_hash(x->block_hash) : 0;
        if (!p->used || p->tx != tx_of_hash(w, x->hash) || (!strcmp(p->state, x->state) && p->block == block))
            continue;
        HOLDS(w, strcmp(p->state, "finalized") != 0, "I7", "nonce %llu was finalized and becomes %s",
              (unsigned long long)x->nonce, x->state);
        bool visible = strcmp(p->state, x->state) != 0 || p->block != block;
        p->state = x->state;
        p->block = block;
        p->updated_us = db_stamp(w);
        if (visible)
            tell(w, q, x->nonce, LISTEN_UPDATE);
    }
}

/* What is stored as an end must be true on the finalized chain. */
static void check_finish(struct world *w, const struct stmt *q, const struct manager_row_effect *x,
                         uint32_t tx)
{
    const struct chain *c = &w->chain;
    uint32_t block = block_of_hash(x->block_hash);
    HOLDS(w, c->blocks[block].final && c->blocks[block].number == (uint64_t)x->block_number, "I2",
          "nonce %llu of account %d ends in block %u, which is not final", (unsigned long long)x->nonce,
          q->account, block);
    if (!strcmp(x->outcome, "usurped"))
        return;
    const struct block *b = &c->blocks[block];
    HOLDS(w, x->index < b->count && b->txs[x->index] == tx && c->txs[tx].nonce == x->nonce, "I2",
          "nonce %llu of account %d ends as %s in block %u, which does not hold it at %u",
          (unsigned long long)x->nonce, q->account, x->outcome, block, x->index);
    bool failed = fails_dispatch(c->txs[tx].id);
    HOLDS(w, failed == !strcmp(x->outcome, "dispatch_error"), "I2", "nonce %llu ends as %s",
          (unsigned long long)x->nonce, x->outcome);
}

static void ends(struct world *w, struct stmt *q)
{
    size_t found = 0;
    for (size_t i = 0; i < q->count; i++) {
        const struct manager_row_effect *x = &q->rows[i];
        const struct pending_row *p = at(w, q, x->nonce);
        if (p->used && x->has_block && !is_attempt(p, tx_of_hash(w, x->hash))) {
            order_error(w, q, "ends by bytes that are not on record", x->nonce);
            return;
        }
        found += p->used;
    }
    if (found != q->count) {
        for (size_t i = 0; i < q->count; i++)
            for (uint32_t k = 0; k < w->db.t.finished_count; k++)
                if (!at(w, q, q->rows[i].nonce)->used && w->db.t.finished[k].account == q->account &&
                    w->db.t.finished[k].nonce == (int64_t)q->rows[i].nonce) {
                    order_error(w, q, "has ended before", q->rows[i].nonce);
                    return;
                }
        q->code = ERR_DB_CONFLICT;
        return;
    }
    for (size_t i = 0; i < q->count; i++) {
        const struct manager_row_effect *x = &q->rows[i];
        struct pending_row *p = at(w, q, x->nonce);
        uint32_t tx = tx_of_hash(w, x->hash);
        if (x->has_block)
            check_finish(w, q, x, tx);
        if (x->has_block && p->tx != tx)
            p->tx = tx;
        p->state = x->has_block ? "finalized" : !strcmp(x->outcome, "usurped") ? "usurped" : p->state;
        p->block = x->has_block ? block_of_hash(x->block_hash) : 0;
        p->updated_us = db_stamp(w);
        tell(w, q, x->nonce, LISTEN_UPDATE);
        row_leaves(w, q, x->nonce, x->outcome);
    }
}

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
    finish(w, w->db.t.ids[id].account, -1, id, 0, 0, NULL, outcome);
    told_end(w, id, outcome);
}

void rows_cancel(struct world *w, int64_t id)
{
    struct id_row *r = &w->db.t.ids[id];
    if (r->stage != STAGE_OUTBOX && r->stage != STAGE_PENDING)
        return;
    r->cancelled = true;
    if (r->stage == STAGE_OUTBOX)
        outbox_end(w, id, "cancelled");
    else
        notify_signal(w, "wake", r->account);
}

static void soonest(int64_t *at, int64_t us)
{
    if (us && us < *at)
        *at = us;
}

/* leader_look. */
static void look(struct world *w, struct stmt *q)
{
    int64_t now = db_now_us(w), next = INT64_MAX;
    q->stops = xcalloc(IDS, sizeof(*q->stops));
    for (int64_t id = 1; id < w->db.t.next_id; id++) {
        const struct id_row *r = &w->db.t.ids[id];
        bool over = r->deadline_us && r->deadline_us <= now;
        bool pending = r->stage == STAGE_PENDING;
        if (r->account != q->account || (r->stage != STAGE_OUTBOX && !pending))
            continue;
        const char *outcome = r->cancelled ? "cancelled" : "expired";
        if (pending && (over || r->cancelled)) {
            q->stops[q->out_count++] = (struct manager_stop){
                .nonce = (uint64_t)r->nonce, .id = id, .outcome = outcome, .reason = ""};
        } else if (over || r->cancelled) {
            outbox_end(w, id, outcome);
        } else {
            soonest(&next, r->deadline_us);
            soonest(&next, r->not_before_us > now && !pending ? r->not_before_us : 0);
            q->ok |= !pending && r->not_before_us && r->not_before_us <= now;
        }
    }
    q->next_ms = next == INT64_MAX ? UINT64_MAX : (uint64_t)(next - now + 999) / 1000;
}

static void reject(struct world *w, struct stmt *q)
{
    for (size_t i = 0; i < q->count; i++)
        if (w->db.t.ids[q->rows[i].id].stage != STAGE_OUTBOX) {
            q->code = ERR_DB_CONFLICT;
            return;
        }
    for (size_t i = 0; i < q->count; i++) {
        HOLDS(w, never_admitted(q->rows[i].id) || w->db.t.ids[q->rows[i].id].guard, "I1",
              "transaction %lld is rejected and is good", (long long)q->rows[i].id);
        outbox_end(w, q->rows[i].id, q->rows[i].outcome);
    }
}

static void set_nonce(struct world *w, struct stmt *q)
{
    struct account_row *a = account_of(w, q);
    if ((int64_t)q->nonce <= max_pending(w, q->account) || ((int64_t)q->nonce < a->next_nonce && !q->lower)) {
        order_error(w, q, "the next nonce goes down", q->nonce);
        return;
    }
    for (uint32_t i = 0; (int64_t)q->nonce < a->next_nonce && i < w->db.t.finished_count; i++) {
        const struct finished_row *f = &w->db.t.finished[i];
        if (f->account == q->account && f->nonce >= (int64_t)q->nonce &&
            (f->block || !strcmp(f->outcome, "usurped"))) {
            q->code = ERR_DB_CONFLICT; /* the node lags */
            return;
        }
    }
    a->next_nonce = (int64_t)q->nonce;
}

/* leader_requeue: only planted faults use it, no relay does yet. */
static void requeue(struct world *w, struct stmt *q)
{
    struct pending_row *p = at(w, q, q->nonce);
    if (!p->used || !p->id) {
        q->code = ERR_DB_CONFLICT;
        return;
    }
    int64_t id = p->id;
    row_leaves(w, q, q->nonce, NULL);
    w->db.t.ids[id].stage = STAGE_OUTBOX;
    w->db.t.ids[id].nonce = -1;
}

void sql_write(struct world *w, struct stmt *q)
{
    static void (*const writes[])(struct world * w, struct stmt * q) = {
        [OP_ADMIT] = admit,     [OP_RESIGN] = resign,   [OP_FILL] = fill,
        [OP_STATES] = states,   [OP_FINISH] = ends,     [OP_REJECT] = reject,
        [OP_NONCE] = set_nonce, [OP_REQUEUE] = requeue, [OP_LOOK] = look,
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
