/* The auditor of the database: what a statement was allowed to do, and whether what it stores is
 * true on the chain. It looks at the tables before and after, and never at what a relay
 * believes; the rule itself is the database's, here are other words for it. An order that the
 * schema calls an error of the relay's (TR003) breaks the run. */
#include <stdio.h>
#include <string.h>

#include "sim_audit.h"

/* ---- before ---- */

static void look_at(struct audit *t, int64_t nonce, int64_t id)
{
    struct before *b = &t->rows[t->count++];
    const struct mem_db *db = t->w->db.mem;
    const struct mem_row *r = nonce >= 0 ? mem_pending_at(db, t->account + 1, nonce) : NULL;
    const struct mem_row *own = id > 0 ? mem_row_of(db, id) : NULL;
    *b = (struct before){.stop_outcome = MEM_OUTCOME_NONE};
    b->waiting = own && own->table != MEM_PENDING;
    if (!r)
        return;
    b->used = true;
    b->id = r->id;
    b->stop_outcome = r->stop_outcome;
    b->state = r->state;
    b->tx = tx_of_row(t->w, r);
    b->retries = r->retries;
}

static void look_at_rows(struct audit *t)
{
    const struct request *x = t->x;
    switch ((int)x->what) {
    case MEM_REQUEST_admit:
    case MEM_REQUEST_admit_signed:
    case MEM_REQUEST_attempt:
    case MEM_REQUEST_fill:
        INVARIANT(x->u.attempts.count <= ROWS_MAX);
        for (size_t i = 0; i < x->u.attempts.count; i++)
            look_at(t, x->u.attempts.rows[i].nonce, x->u.attempts.rows[i].id);
        return;
    case MEM_REQUEST_state:
        INVARIANT(x->u.states.count <= ROWS_MAX);
        for (size_t i = 0; i < x->u.states.count; i++)
            look_at(t, (int64_t)x->u.states.rows[i].nonce, 0);
        return;
    case MEM_REQUEST_finish:
    case MEM_REQUEST_requeue:
        INVARIANT(x->u.finish.count <= ROWS_MAX);
        for (size_t i = 0; i < x->u.finish.count; i++)
            look_at(t, (int64_t)x->u.finish.rows[i].nonce, 0);
        return;
    default:
        return;
    }
}

/* ---- states ---- */

static void states(const struct audit *t)
{
    struct world *w = t->w;
    const struct store_states *r = &t->x->u.states;
    for (size_t i = 0; i < r->count; i++) {
        const struct tx_report *x = &r->rows[i];
        bool needs_block = !strcmp(x->state, "in_block") || !strcmp(x->state, "retracted") ||
                           !strcmp(x->state, "finality_timeout") || !strcmp(x->state, "finalized");
        HOLDS(w, !needs_block || x->has_block, "argument", "state %s of nonce %llu names no block",
              x->state, (unsigned long long)x->nonce);
        if (!strcmp(x->state, "refused")) {
            HOLDS(w, x->error[0], "I7", "a refusal of nonce %llu has no text",
                  (unsigned long long)x->nonce);
            w->stats.refusals++;
            continue;
        }
        bool was = t->rows[i].used && t->rows[i].state == MEM_FINALIZED &&
                   t->rows[i].tx == tx_of_hash(w, x->hash);
        HOLDS(w, !was || !strcmp(x->state, "finalized"), "I7",
              "nonce %llu was finalized and becomes %s", (unsigned long long)x->nonce, x->state);
    }
}

/* ---- what the chain's nonces were taken for ---- */

static void paused(const struct audit *t)
{
    struct world *w = t->w;
    const char *suspension = t->x->u.pause.suspension;
    w->stats.holds += suspension != NULL;
    HOLDS(w,
          !suspension || strcmp(suspension, "reaped") != 0 ||
              w->chain.blocks[w->chain.final].life[t->account],
          "nonce", "r%d suspends account %d as reaped, and no final block has removed it",
          t->process, t->account);
}

/* Above the nonces that the block uses, also of an account that it removes. */
static int64_t used_in(const struct world *w, uint32_t block, int account)
{
    const struct block *b = &w->chain.blocks[block];
    int64_t used = (int64_t)b->nonce[account];
    for (uint32_t i = 0; i < b->count; i++) {
        const struct tx *x = &w->chain.txs[b->txs[i]];
        if (x->account == account && (int64_t)x->nonce >= used)
            used = (int64_t)x->nonce + 1;
    }
    return used;
}

/* No next nonce is above all that was given and all that any block has used. */
static void next_nonce(const struct audit *t)
{
    struct world *w = t->w;
    int64_t highest = t->was.next_nonce, next = t->x->u.nonce.next_nonce;
    HOLDS(w, !t->x->u.nonce.reborn || t->was.reborn || lossy(t), "hold",
          "r%d begins a new life of account %d, and nobody ordered it", t->process, t->account);
    for (size_t i = 0; i < t->was.pending_count; i++)
        if (t->was.pending[i]->nonce >= highest)
            highest = t->was.pending[i]->nonce + 1;
    for (uint32_t i = 0; i < w->chain.block_count; i++)
        if (used_in(w, i, t->account) > highest)
            highest = used_in(w, i, t->account);
    HOLDS(w, next <= highest, "nonce",
          "r%d stores the next nonce %lld of account %d, and %lld is the highest that can be",
          t->process, (long long)next, t->account, (long long)highest);
}

/* ---- what was signed elsewhere and waits ---- */

static void noted(const struct audit *t)
{
    struct world *w = t->w;
    for (size_t i = 0; i < t->x->u.note.count; i++) {
        const struct tx_note *x = &t->x->u.note.rows[i];
        struct call *c = &w->calls[x->id];
        int64_t nonce = (int64_t)x->nonce;
        bool again = nonce >= 0 && c->noted == nonce && c->wait_block == x->wait_block &&
                     c->noted_at + 50 * MS > w->now;
        c->noted_again = again ? c->noted_again + 1 : 0;
        HOLDS(w, c->noted_again < 4, "hot loop",
              "transaction %lld of account %d waits for nonce %lld, noted again and again",
              (long long)x->id, t->account, (long long)nonce);
        c->noted = nonce;
        c->noted_at = w->now;
        c->wait_block = x->wait_block;
        w->stats.noted++;
    }
}

/* ---- one statement ---- */

static bool is_write(enum mem_request what)
{
    return what == MEM_REQUEST_poll_requests || what == MEM_REQUEST_note ||
           what == MEM_REQUEST_admit || what == MEM_REQUEST_admit_signed ||
           what == MEM_REQUEST_reject || (what >= MEM_REQUEST_attempt && what <= MEM_REQUEST_adopt);
}

static void check_write(const struct audit *t)
{
    struct world *w = t->w;
    const struct mem_account *a = db_account(w, t->account);
    const int64_t *epoch =
        (const int64_t *)((const char *)&t->x->u + offsetof(struct store_poll_requests, epoch));
    HOLDS(w, a->lead.holder && a->lead.epoch == *epoch, "I4",
          "r%d writes to account %d under epoch %lld, which is at %lld", t->process, t->account,
          (long long)*epoch, (long long)a->lead.epoch);
}

static void check_done(const struct audit *t)
{
    switch ((int)t->x->what) {
    case MEM_REQUEST_admit:
    case MEM_REQUEST_admit_signed:
    case MEM_REQUEST_attempt:
    case MEM_REQUEST_fill:
        audit_attempts(t);
        return;
    case MEM_REQUEST_state:
        states(t);
        return;
    case MEM_REQUEST_finish:
        audit_finished(t);
        return;
    case MEM_REQUEST_requeue:
        audit_requeued(t);
        return;
    case MEM_REQUEST_reject:
        audit_rejected(t);
        return;
    case MEM_REQUEST_note:
        noted(t);
        return;
    case MEM_REQUEST_adopt:
        audit_adopted(t);
        return;
    case MEM_REQUEST_renew:
        audit_renewed(t);
        return;
    case MEM_REQUEST_evict:
        audit_evicted(t);
        return;
    case MEM_REQUEST_pause:
        paused(t);
        return;
    case MEM_REQUEST_nonce:
        next_nonce(t);
        return;
    default:
        return;
    }
}

/* It has ended nonces that no block holds bytes of ours for, and the account is not reconciled. */
static bool ends_in_the_wait(const struct audit *t)
{
    const struct store_finish *r = &t->x->u.finish;
    bool ends = t->x->what == MEM_REQUEST_finish || t->x->what == MEM_REQUEST_requeue;
    if (!ends || db_account(t->w, t->account)->reconcile_from < 0)
        return false;
    for (size_t i = 0; i < r->count; i++)
        if (!r->rows[i].has_block)
            return true;
    return false;
}

void audited_run(struct world *w, struct session *s, struct request *x)
{
    struct audit t; /* a megabyte of rows, of which those below count are set */
    t.w = w;
    t.x = x;
    t.process = x->message.process;
    t.by = s->mem;
    t.account = x->message.account;
    t.count = 0;
    if (t.account >= 0) {
        t.was = *db_account(w, t.account);
        snprintf(t.suspension, sizeof(t.suspension), "%s", t.was.suspension);
        look_at_rows(&t);
    }
    mem_session_run(s->mem, x->what, &x->u.req);
    int code = x->u.req.err.code;
    HOLDS(w, code != ERR_BUG || w->db.lossy, "TR003", "r%d account %d %s: %s", t.process, t.account,
          x->message.name, x->u.req.err.text);
    if (code)
        return;
    if (is_write(x->what))
        check_write(&t);
    check_done(&t);
    if (ends_in_the_wait(&t))
        fault_between(w, t.process);
    if (x->what == MEM_REQUEST_adopt && x->u.adopt.adopted)
        fault_adopted(w, t.process);
}
