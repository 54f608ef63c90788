/* An account that was reaped: the rows of its former life end, then nonces begin anew. */
#include "ends.h"
#include "probe.h"
#include "suspend.h"

void manager__reaped(struct manager *m, uint64_t nonce, uint64_t was, uint64_t block)
{
    manager__suspend(m, MANAGER_SUSPENSION_REAPED,
                     "account nonce is %llu at block %llu and was %llu: the account was reaped; "
                     "nothing is sent until an operator resumes it",
                     (unsigned long long)nonce, (unsigned long long)block, (unsigned long long)was);
}

/* The table records nonces that final blocks used, and the chain's nonce is below them. A node that
 * lags answers the same, so only a finalized block at or above those blocks is proof. */
void manager__former_life(struct manager *m, const struct manager_block *block)
{
    if (block->number >= m->life.used_block && block->account_nonce < m->life.used_nonce)
        manager__reaped(m, block->account_nonce, m->life.used_nonce, block->number);
}

static enum life_action next(const struct manager *m)
{
    return life_next(
        &(struct life_view){.ordered = m->life.ordered,
                            .leading = m->phase == MANAGER_LEADING,
                            .node_up = m->chain.up,
                            .rows = m->line.rows > 0,
                            .nonce_known = m->life.known,
                            .bytes_alive = m->final.processed < m->life.block,
                            .final_unread = m->final.processed < m->chain.finalized,
                            .storing = m->life.wanted || m->writes.out[MANAGER_FX_STORE_NONCE]});
}

void manager__reborn_pump(struct manager *m)
{
    enum life_action action = next(m);
    if (action == LIFE_BURY) {
        manager__end_life(m);
        action = next(m);
    }
    if (action != LIFE_BEGIN)
        return;
    line_cover(&m->line, m->life.nonce, m->life.nonce);
    m->nonces.wanted = m->nonces.lower = m->life.wanted = true;
}

void manager__life_reset(struct manager *m)
{
    m->life.ordered = m->life.wanted = m->life.known = false;
}

void manager__life_forget(struct manager *m)
{
    m->life.used_nonce = m->life.used_block = 0;
    m->life.wanted = false;
}

void manager__life_order(struct manager *m, bool ordered)
{
    m->life.ordered = ordered;
}

void manager__life_recorded(struct manager *m, uint64_t nonce, uint64_t block)
{
    PRE(nonce > 0);
    m->life.used_nonce = nonce;
    m->life.used_block = block;
}

void manager__life_used_by(struct manager *m, uint64_t block)
{
    PRE(m->life.used_block > block);
    m->life.used_block = block;
}

void manager__life_seen(struct manager *m, const struct manager_block *block)
{
    PRE(m->suspension.why == MANAGER_SUSPENSION_REAPED);
    m->life.nonce = block->account_nonce;
    if (!m->life.known)
        m->life.block = block->number + manager_era_longest(m->config.era_period);
    m->life.known = true;
}

void manager__life_storing(struct manager *m)
{
    m->life.stored_nonce = m->line.next;
}

void manager__nonce_stored(struct manager *m, const struct manager_event *ev)
{
    (void)ev;
    PRE(m->phase >= MANAGER_CHAIN_WAIT);
    if (!m->life.wanted)
        return;
    m->life.ordered = m->life.wanted = false;
    m->suspension.why = MANAGER_SUSPENSION_NONE;
    m->suspension.stored = false;
    m->account.reborn = false;
    m->life.used_nonce = 0;
    m->final.nonce = m->life.nonce;
    m->nonces.rewind = false;
    if (m->line.next != m->life.stored_nonce)
        m->nonces.wanted = true; /* it was used while it was stored, by another program */
    manager__probe_soon(m);
    manager__signing_check(m); /* the suspension that is over came before that one */
}
