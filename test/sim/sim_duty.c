/* What a core owes to those outside and what it must not do, seen from its events and effects:
 * each refusal is recorded, one try a block while the account cannot pay, nothing leaves an
 * account that waits for an operator, what is to be stopped does not come back to the outbox,
 * what was asked for happens in time. */
#include <string.h>

#include "base/heard.h"
#include "sim.h"
#include "sim_relay.h"

enum {
    PATIENCE_BLOCKS = 12
}; /* of a healed world: for a probe, a signature, a commit, a submission */

/* An invented height is waited for by the relay that heard of it and, as long as that one repeats
 * it, by those that it told; the row of one that died counts until it expires. */
#define LIE_WAIT_US ((HEARD_KEEP_MS + HEARD_TOLD_MS + 10000) * MS)

void duty_forget(struct duty *d)
{
    d->refused_count = 0;
    d->no_funds = false;
    d->poor_try = 0;
    memset(d->stop_told, 0, sizeof(d->stop_told));
}

/* ---- refusals ---- */

static bool is_refusal(const struct manager_event *ev)
{
    return ev->reply.code == ERR_RPC &&
           ev->reply.rpc_code != 1013; /* which says that the pool has it */
}

static void refused(struct world *w, struct duty *d, const struct manager_event *ev)
{
    if (d->refused_count < ARRAY_LEN(d->refused))
        d->refused[d->refused_count++] = tx_of_hash(w, ev->reply.hash);
    if (strstr(ev->reply.text, "Inability to pay"))
        d->no_funds = true;
}

static bool recorded(struct duty *d, uint32_t tx)
{
    for (size_t i = 0; i < d->refused_count; i++)
        if (d->refused[i] == tx) {
            d->refused[i] = d->refused[--d->refused_count];
            return true;
        }
    return false;
}

static void record_states(struct world *w, struct duty *d, int account,
                          const struct manager_effect *fx)
{
    for (size_t i = 0; i < fx->states.count; i++) {
        const struct tx_report *x = &fx->states.rows[i];
        if (!strcmp(x->state, "refused"))
            HOLDS(w,
                  recorded(d, tx_of_hash(w, x->hash)) || d->refused_count == ARRAY_LEN(d->refused),
                  "I7", "a refusal of nonce %llu of account %d is recorded that nobody gave",
                  (unsigned long long)x->nonce, account);
    }
}

/* The row goes on, or ends: what was said of its bytes must have gone into the history before. */
static void check_recorded(struct world *w, const struct duty *d, int account, uint64_t nonce)
{
    for (size_t k = 0; k < d->refused_count; k++)
        HOLDS(w, w->chain.txs[d->refused[k]].nonce != nonce, "I7",
              "nonce %llu of account %d was refused, and goes on without a record of it",
              (unsigned long long)nonce, account);
}

static void check_ends_recorded(struct world *w, const struct duty *d, int account,
                                const struct manager_effect *fx)
{
    for (size_t i = 0; i < fx->ends.count; i++)
        check_recorded(w, d, account, fx->ends.rows[i].nonce);
}

static void check_signs_recorded(struct world *w, const struct duty *d, int account,
                                 const struct manager_effect *fx)
{
    for (size_t i = 0; i < fx->sign.count; i++)
        check_recorded(w, d, account, fx->sign.rows[i].nonce);
}

/* ---- payment ---- */

/* A try is one that a node answered so; bytes that it had banned were none. */
static void check_poor(struct world *w, struct duty *d, const struct relay *r, int account,
                       const struct manager_event *ev)
{
    const struct tx *t = &w->chain.txs[tx_of_hash(w, ev->reply.hash)];
    if (!strstr(ev->reply.text, "Inability to pay") || !t->poor_block || t->poor_by != r->holder ||
        t->poor_at < d->ordered_at)
        return;
    bool once = d->poor_try != t->poor_block ||
                t->poor_at >= d->poor_at + 4 * SECOND; /* or time took a step */
    HOLDS(w, once, "payment",
          "r%d tried nonce %llu of account %d, the second one in a block, and it cannot pay",
          r->index, (unsigned long long)ev->reply.nonce, account);
    d->poor_try = t->poor_block;
    d->poor_at = t->poor_at;
}

/* ---- events and effects ---- */

/* While commits may be lost, no stop counts, nor one that came before the load: it comes again. */
static void told_stops(const struct world *w, const struct relay *r, int account, struct duty *d,
                       const struct manager_event *ev)
{
    if (manager_view_of(r->service->accounts[account].manager).reconciles) {
        memset(d->stop_told, 0, sizeof(d->stop_told));
        return;
    }
    for (size_t i = 0; i < ev->requests.count; i++)
        if (ev->requests.stops[i].outcome && !d->stop_told[ev->requests.stops[i].id])
            d->stop_told[ev->requests.stops[i].id] = w->now;
}

void duty_event(struct world *w, struct relay *r, int account, const struct manager_event *ev)
{
    struct duty *d = &r->accounts[account].duty;
    switch ((int)ev->type) {
    case MANAGER_EV_PROMOTED:
    case MANAGER_EV_DEMOTED:
        duty_forget(d);
        return;
    case MANAGER_EV_BEST:
        d->blocks++;
        d->block_at = w->now;
        return;
    case MANAGER_EV_REQUESTS:
        told_stops(w, r, account, d, ev);
        if (d->order_unheard && ev->requests.account && !ev->requests.account->paused) {
            d->order_unheard = false;
            d->poor_try = 0; /* one try more, in the block in which it is heard */
        }
        return;
    case MANAGER_EV_SUBMIT_REPLY:
        if (is_refusal(ev)) {
            check_poor(w, d, r, account, ev);
            refused(w, d, ev);
        } else if (!ev->reply.code)
            d->no_funds = false;
        return;
    default:
        return;
    }
}

/* One whose end was decided before it heard of the stop may still be under way. */
static void check_requeues(struct world *w, const struct duty *d, int account,
                           const struct manager_effect *fx)
{
    for (size_t i = 0; i < fx->ends.count; i++) {
        uint64_t told = d->stop_told[fx->ends.rows[i].id];
        HOLDS(w, !told || told + 10 * SECOND > w->now, "stop",
              "transaction %lld of account %d is to be stopped and goes back to the outbox",
              (long long)fx->ends.rows[i].id, account);
    }
}

/* Its own leader wrote the hold, so it knows of it. What was accepted may have come back
 * meanwhile. */
static void check_still(struct world *w, const struct relay *r, int account,
                        const struct manager_effect *fx)
{
    const struct mem_account *a = db_account(w, account);
    bool back = version_of(w, spec_of(r)) == a->transaction_version;
    bool still = !strcmp(a->suspension, "reaped") ||
                 (!strcmp(a->suspension, "transaction_version") && !back);
    HOLDS(w, !still || a->lead.epoch != epoch_of(r, account) || w->db.lossy, "hold",
          "r%d sends nonce %llu of account %d, which waits for an operator", r->index,
          (unsigned long long)fx->submit.nonce, account);
}

void duty_effect(struct world *w, struct relay *r, int account, const struct manager_effect *fx)
{
    struct duty *d = &r->accounts[account].duty;
    struct tx *t;
    if (!has(w, FEATURE_DUTIES))
        return;
    switch ((int)fx->type) {
    case MANAGER_FX_LOAD:
        duty_forget(d); /* what was in memory is forgotten */
        return;
    case MANAGER_FX_STORE_STATES:
        record_states(w, d, account, fx);
        return;
    case MANAGER_FX_STORE_REQUEUE:
        check_requeues(w, d, account, fx);
        check_ends_recorded(w, d, account, fx);
        return;
    case MANAGER_FX_STORE_FINISH:
        check_ends_recorded(w, d, account, fx);
        return;
    case MANAGER_FX_RESIGN:
    case MANAGER_FX_FILL:
        check_signs_recorded(w, d, account, fx);
        return;
    case MANAGER_FX_SUBMIT:
        check_still(w, r, account, fx);
        t = &w->chain.txs[tx_of_hash(w, fx->submit.hash)];
        /* A chain that stands still takes a step of its own after 5 s at the earliest. */
        t->poor_block = d->no_funds && w->now < d->block_at + 4900 * MS ? d->blocks + 1 : 0;
        t->poor_at = w->now;
        t->poor_by = r->holder;
        return;
    default:
        return;
    }
}

/* ---- what was asked for happens in time ---- */

const struct relay *leader_of(const struct world *w, int account)
{
    for (int i = 0; i < w->plan.relays; i++) {
        const struct relay *r = &w->relays[i];
        if (leads(r, account) && epoch_of(r, account) == db_account(w, account)->lead.epoch)
            return r;
    }
    return NULL;
}

/* A world in which nothing stands in the way of the account for so long. */
static bool calm(const struct world *w, int account, uint64_t us)
{
    const struct mem_account *a = db_account(w, account);
    const struct relay *leader = leader_of(w, account);
    bool led = leader && leader->accounts[account].led_since + us < w->now &&
               manager_phase(manager_of(leader, account)) == MANAGER_LEADING;
    if (has(w, FEATURE_LIES))
        us += LIE_WAIT_US;
    if (has(w, FEATURE_PACED))
        us *= 2;
    return w->now > w->healed_at + us && led && !a->paused && !w->chain.unpaid[account] &&
           w->now > w->account_moved[account] + us;
}

static void check_bump(struct world *w, int account, const struct mem_row *p, uint64_t us)
{
    const struct call *r = &w->calls[p->id];
    const struct tx *t = &w->chain.txs[tx_of_row(w, p)];
    const struct block *final = &w->chain.blocks[w->chain.final];
    bool used =
        final->nonce[account] > (uint64_t)p->nonce; /* a block that does not decode held it */
    bool settled = p->state != MEM_IN_BLOCK && p->state != MEM_FINALIZED && !used;
    uint64_t best = final->number;
    bool late =
        r->deadline_block && best + 4 > r->deadline_block; /* nothing new is signed for it */
    if (!settled || late || r->bump <= (int64_t)t->tip || r->bumped_at + us > w->now)
        return;
    HOLDS(w, w->db.lossy, "bump",
          "a bump asked for a tip of %lld for transaction %lld of account %d, and it pays %llu",
          (long long)r->bump, (long long)p->id, account, (unsigned long long)t->tip);
}

static uint64_t later_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The head of the line is given up after so many blocks; then the eras of its bytes are waited
 * for. */
static void check_head(struct world *w, int account)
{
    const struct mem_account *row = db_account(w, account);
    const struct mem_row *p = row->pending_count ? row->pending[0] : NULL;
    const struct relay *leader = leader_of(w, account);
    uint32_t after = w->plan.policy[account].skip_after_blocks;
    struct head *h = &w->heads[account];
    int64_t id = p ? p->id : 0;
    if (!id || h->id != id || !leader || !after || !w->plan.era || w->calls[id].presigned) {
        *h = (struct head){.id = id, .since = w->now};
        return;
    }
    uint64_t from = later_of(later_of(h->since, w->healed_at), w->account_moved[account]);
    uint64_t blocks = after + w->plan.era * 3 / 2 + 4 * w->plan.finality_lag + PATIENCE_BLOCKS;
    from = later_of(from, leader->accounts[account].led_since);
    from += has(w, FEATURE_LIES) ? LIE_WAIT_US : 0;
    HOLDS(w, w->now < from + blocks * slowest_block(w) * 5 / 4 + 40 * SECOND || w->db.lossy, "skip",
          "transaction %lld holds up account %d for %llu s, and is to be given up after %u blocks",
          (long long)p->id, account, (unsigned long long)((w->now - from) / SECOND), after);
}

/* Once a second of a healed world. */
void duty_waits(struct world *w)
{
    uint64_t us = PATIENCE_BLOCKS * slowest_block(w) + 40 * SECOND;
    for (int a = 0; a < w->plan.accounts; a++) {
        const struct mem_account *row = db_account(w, a);
        if (row->paused || row->reborn || w->chain.unpaid[a] || db_doubtful(w, a))
            w->account_moved[a] = w->now;
        check_head(w, a);
        if (!calm(w, a, us))
            continue;
        for (size_t n = 0; n < row->pending_count; n++)
            if (row->pending[n]->id)
                check_bump(w, a, row->pending[n], us);
    }
}
