/* What the simulator looks at while the product runs: every event and effect of a manager, every
 * step of a wake-up core, every claim and renewal that was granted. The linker turns the doors'
 * calls of the two cores to here. */
#include <stdio.h>

#include "relay/core/poll/poll.h"
#include "sim.h"
#include "sim_relay.h"
#include "state.h"

void __real_manager_step(struct manager *m, uint64_t now, const struct manager_event *ev,
                         const struct manager_effect **ret_effects, size_t *ret_count);
void __wrap_manager_step(struct manager *m, uint64_t now, const struct manager_event *ev,
                         const struct manager_effect **ret_effects, size_t *ret_count);
bool __real_poll_step(struct poll *p, uint64_t now, const struct poll_event *ev);
void __real_elector_step(struct elector *e, uint64_t now, const struct elector_event *ev,
                         const struct elector_effect **ret_effects, size_t *ret_count);
void __wrap_elector_step(struct elector *e, uint64_t now, const struct elector_event *ev,
                         const struct elector_effect **ret_effects, size_t *ret_count);
bool __wrap_poll_step(struct poll *p, uint64_t now, const struct poll_event *ev);

static struct relay *running(struct world *w)
{
    INVARIANT(w->current && w->current->index < RELAYS);
    return &w->relays[w->current->index];
}

/* ---- managers ---- */

static int account_of(const struct relay *r, const struct manager *m)
{
    for (size_t a = 0; a < r->service->account_count; a++)
        if (r->service->accounts[a].manager == m)
            return (int)a;
    UNREACHABLE();
}

static const char *const effects[] = {
#define X(write, name) [write] = &#write[sizeof("MANAGER_FX")],
    MANAGER_WRITES(X)
#undef X
        [MANAGER_FX_LOAD] = "LOAD",
    [MANAGER_FX_WANT_OUTBOX] = "WANT_OUTBOX",
    [MANAGER_FX_SUBMIT] = "SUBMIT",
    [MANAGER_FX_UNWATCH] = "UNWATCH",
    [MANAGER_FX_UNWATCH_ALL] = "UNWATCH_ALL",
    [MANAGER_FX_ASK_POOL] = "ASK_POOL",
    [MANAGER_FX_ASK_NONCE] = "ASK_NONCE",
    [MANAGER_FX_ASK_UNFINAL] = "ASK_UNFINAL",
    [MANAGER_FX_FOLLOW] = "FOLLOW",
    [MANAGER_FX_RECHECK_RUNTIME] = "RECHECK_RUNTIME",
    [MANAGER_FX_NODE_BEHIND] = "NODE_BEHIND",
    [MANAGER_FX_READY] = "READY",
    [MANAGER_FX_ALERT] = "ALERT",
    [MANAGER_FX_POLL_REQUESTS] = "POLL_REQUESTS",
};

static void note_ends(struct world *w, const char *who, const struct manager_effect *fx)
{
    for (size_t i = 0; i < fx->ends.count; i++)
        note_line(w, "%s %s nonce %llu of %lld: %s %s", who, effects[fx->type],
                  (unsigned long long)fx->ends.rows[i].nonce, (long long)fx->ends.rows[i].id,
                  fx->ends.rows[i].outcome, fx->ends.rows[i].error);
}

static void note_notes(struct world *w, const char *who, const struct manager_effect *fx)
{
    for (size_t i = 0; i < fx->notes.count; i++)
        note_line(w, "%s %s nonce %llu of %lld: until block %llu: %s", who, effects[fx->type],
                  (unsigned long long)fx->notes.rows[i].nonce, (long long)fx->notes.rows[i].id,
                  (unsigned long long)fx->notes.rows[i].wait_block, fx->notes.rows[i].text);
}

static void note_signs(struct world *w, const char *who, const struct manager_effect *fx)
{
    for (size_t i = 0; i < fx->sign.count; i++)
        note_line(w, "%s %s nonce %llu of %lld", who, effects[fx->type],
                  (unsigned long long)fx->sign.rows[i].nonce, (long long)fx->sign.rows[i].id);
}

static void note_states(struct world *w, const char *who, const struct manager_effect *fx)
{
    for (size_t i = 0; i < fx->states.count; i++)
        note_line(w, "%s %s nonce %llu: %s", who, effects[fx->type],
                  (unsigned long long)fx->states.rows[i].nonce, fx->states.rows[i].state);
}

static void note_effect(struct world *w, const struct relay *r, int account,
                        const struct manager_effect *fx)
{
    char who[24];
    snprintf(who, sizeof(who), "  r%d a%d", r->index, account);
    switch ((int)fx->type) {
    case MANAGER_FX_ADMIT:
    case MANAGER_FX_RESIGN:
    case MANAGER_FX_FILL:
        note_signs(w, who, fx);
        return;
    case MANAGER_FX_STORE_STATES:
        note_states(w, who, fx);
        return;
    case MANAGER_FX_STORE_FINISH:
    case MANAGER_FX_STORE_REJECT:
    case MANAGER_FX_STORE_REQUEUE:
        note_ends(w, who, fx);
        return;
    case MANAGER_FX_STORE_NOTE:
        note_notes(w, who, fx);
        return;
    case MANAGER_FX_SUBMIT:
        note_line(w, "%s SUBMIT nonce %llu", who, (unsigned long long)fx->submit.nonce);
        return;
    case MANAGER_FX_STORE_NONCE:
        note_line(w, "%s STORE_NONCE %llu", who, (unsigned long long)fx->next.nonce);
        return;
    case MANAGER_FX_STORE_PAUSE:
        note_line(w, "%s STORE_PAUSE %s", who, fx->pause.text);
        return;
    case MANAGER_FX_ALERT:
        note_line(w, "%s ALERT %s", who, fx->text);
        return;
    case MANAGER_FX_ASK_UNFINAL:
    case MANAGER_FX_FOLLOW:
    case MANAGER_FX_NODE_BEHIND:
    case MANAGER_FX_STORE_HEARD:
        note_line(w, "%s %s %llu", who, effects[fx->type], (unsigned long long)fx->number);
        return;
    default:
        note_line(w, "%s %s", who, effects[fx->type]);
    }
}

static void before_event(struct world *w, struct relay *r, int account,
                         const struct manager_event *ev)
{
    struct sim_account *a = &r->accounts[account];
    a->beats += ev->type == MANAGER_EV_BEST || ev->type == MANAGER_EV_TICK ||
                ev->type == MANAGER_EV_PROMOTED || ev->type == MANAGER_EV_GATE_OPEN ||
                ev->type == MANAGER_EV_CHAIN_UP;
    if (ev->type == MANAGER_EV_PROMOTED) {
        a->led_since = w->now;
        note(w, "  r%d leads a%d under epoch %lld", r->index, account, (long long)ev->epoch);
    }
    if (ev->type == MANAGER_EV_DEMOTED)
        note(w, "  r%d leads a%d no more", r->index, account);
    duty_event(w, r, account, ev);
}

/* A leader that believes its bytes were never sent ends a transaction or gives up a nonce at once.
 * So it must not believe that of bytes that a pool has had and a block may still hold. Without an
 * era it does neither. */
static void check_unsent(struct world *w, const struct relay *r, const struct row *row,
                         const uint8_t hash[32])
{
    const struct tx *tx = &w->chain.txs[tx_of_hash(w, hash)];
    HOLDS(w, row->era_death < 0 || !tx->accepted || !includable(w, tx), "I5",
          "r%d takes nonce %llu of account %d as never sent, and a pool has had its bytes",
          r->index, (unsigned long long)row->nonce, tx->account);
}

/* Not of a leader that was deposed while it was stopped: it cannot write what it believes. Bytes
 * that are on the wire have no answer yet, and who signed presigned ones may send them. */
static void check_rows(struct world *w, const struct relay *r, int account, const struct manager *m)
{
    if (epoch_of(r, account) != db_account(w, account)->lead.epoch)
        return;
    for (uint64_t nonce = m->line.low; nonce < m->line.next; nonce++) {
        const struct row *row = line_at(&m->line, nonce);
        if (!row || row->was_out || row->presigned || row->state == ROW_SUBMITTED)
            continue;
        if (row->bytes)
            check_unsent(w, r, row, row->hash);
        for (size_t i = 0; i < row->earlier_count; i++)
            check_unsent(w, r, row, row->earlier[i]);
    }
}

void __wrap_manager_step(struct manager *m, uint64_t now, const struct manager_event *ev,
                         const struct manager_effect **ret_effects, size_t *ret_count)
{
    struct world *w = simulated;
    struct relay *r = running(w);
    int account = account_of(r, m);
    before_event(w, r, account, ev);
    __real_manager_step(m, now, ev, ret_effects, ret_count);
    struct manager_moves moved = manager_moved(m);
    w->moved.phases |= moved.phases;
    w->moved.rows |= moved.rows;
    for (size_t i = 0; i < *ret_count; i++) {
        const struct manager_effect *fx = &(*ret_effects)[i];
        if (fx->type == MANAGER_FX_UNWATCH_ALL) /* everything is read again */
            r->accounts[account].beats++;
        if (w->tracing)
            note_effect(w, r, account, fx);
        duty_effect(w, r, account, fx);
    }
    if (w->events % 16 == 0) {
        check_rows(w, r, account, m);
        manager_check(m);
    }
}

/* ---- polls ---- */

/* Nobody rings for a row whose enqueue found the leader awake, so a leader that sleeps has seen
 * it. */
static void check_asleep(struct world *w, const struct relay *r, int account)
{
    const struct mem_session *owner = mem_doorbell_owner(w->db.mem, account + 1);
    const struct link *l = &r->links[LINK_CONTROL];
    const struct mem_account *a = db_account(w, account);
    if (!owner || !l->up || l->session->serial != l->serial || owner != l->session->mem ||
        a->lead.epoch != epoch_of(r, account))
        return; /* its lock is gone without its knowing: it will hear of it */
    LIST_EACH (n, &a->outbox) {
        const struct mem_row *row = CONTAINER_OF(n, struct mem_row, node);
        bool timed = a->paused || row->not_before_us ||
                     (row->deadline_us && row->deadline_us <= db_now_us(w));
        HOLDS(w, timed || !row->silent, "wake",
              "r%d sleeps on account %d while transaction %lld waits, of which nobody was notified",
              r->index, account, (long long)row->id);
    }
}

bool __wrap_poll_step(struct poll *p, uint64_t now, const struct poll_event *ev)
{
    struct world *w = simulated;
    const struct relay *r = running(w);
    bool asleep[ACCOUNTS];
    for (int a = 0; a < w->plan.accounts; a++)
        asleep[a] = poll_outbox_state(p, (size_t)a) == POLL_ASLEEP;
    bool waited = __real_poll_step(p, now, ev);
    for (int a = 0; a < w->plan.accounts; a++)
        if (!asleep[a] && poll_outbox_state(p, (size_t)a) == POLL_ASLEEP)
            check_asleep(w, r, a);
    if (w->events % 16 == 0)
        poll_check(p);
    return waited;
}

void __wrap_elector_step(struct elector *e, uint64_t now, const struct elector_event *ev,
                         const struct elector_effect **ret_effects, size_t *ret_count)
{
    __real_elector_step(e, now, ev, ret_effects, ret_count);
    elector_check(e);
}

/* ---- claims and renewals, as the relay hears of them ---- */

void claim_heard(struct world *w, int process, int32_t account, uint64_t sent_at)
{
    w->relays[process].accounts[account - 1].renewed_sent = sent_at;
}

void request_heard(struct world *w, const struct request *x)
{
    const struct store_renew *r = &x->u.renew;
    w->stats.sweeps += x->what == MEM_REQUEST_due && x->u.due.ahead_ms;
    w->stats.merged += x->what == MEM_REQUEST_due && !x->u.due.ahead_ms;
    for (size_t i = 0; x->what == MEM_REQUEST_renew && !x->u.req.err.code && i < r->count; i++)
        if (r->renewed[i])
            claim_heard(w, x->message.process, r->accounts[i], x->message.sent_at);
}
