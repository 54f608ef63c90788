/* What makes an account stand still, and what makes it go on.
 *
 * - PAYMENT: the account cannot pay. Nothing more is admitted, one submission a block is tried, a quarter
 *   of a second apart at least; the first that is accepted ends it.
 * - TRANSACTION_VERSION: the runtime encodes calls in another way than the one that was accepted: what was
 *   enqueued may mean something else (case 102). Only an operator's order ends it: a node that shows the
 *   former version again may just be behind.
 * - REAPED: the account's nonce is below one that was used for good: the account was removed and lives again
 *   (case 93). After the order no byte of the former life is sent again: its rows go back to the outbox or
 * end once their eras are over, then nonces begin anew.
 *
 * A hold is written to the table, where operators see it. The order is read there too: a look that began
 * after the hold was stored and finds the account not paused. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "manager_internal.h"

bool manager__stands_still(const struct manager *m)
{
    bool reaped = m->hold.why == MANAGER_HOLD_REAPED && !PLANTED(REAPED_SENDS);
    return reaped || m->hold.why == MANAGER_HOLD_TRANSACTION_VERSION;
}

void manager__hold_reset(struct manager *m)
{
    m->hold.why = MANAGER_HOLD_NONE;
    m->hold.wanted = m->hold.told = m->hold.look = m->send.poor = false;
    m->life.ordered = m->life.wanted = m->life.known = false;
    m->account = (struct manager_account){.tip_cap = MANAGER_NO_CAP};
}

void manager__hold(struct manager *m, enum manager_hold hold, const char *fmt, ...)
{
    static const uint8_t weight[] = {[MANAGER_HOLD_NONE] = 0,
                                     [MANAGER_HOLD_PAYMENT] = 1,
                                     [MANAGER_HOLD_TRANSACTION_VERSION] = 2,
                                     [MANAGER_HOLD_REAPED] = 3};
    if (weight[m->hold.why] >= weight[hold])
        return;
    char text[sizeof(m->hold.text)];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    manager__plain(m->hold.text, sizeof(m->hold.text), text);
    m->hold.why = hold;
    m->hold.wanted = true;
    m->hold.told = false;
    manager__alert(m, "%s", text);
}

static void hold_over(struct manager *m)
{
    m->hold.why = MANAGER_HOLD_NONE;
    m->hold.told = false;
    m->hold.wanted = true;
    m->hold.text[0] = 0;
}

void manager__paid(struct manager *m)
{
    m->send.poor = false;
    if (m->hold.why == MANAGER_HOLD_PAYMENT)
        hold_over(m);
}

void manager__hold_pump(struct manager *m)
{
    if (m->hold.why == MANAGER_HOLD_PAYMENT && m->phase == MANAGER_LEADING && !line_not_in_block(&m->line))
        hold_over(m); /* nothing is left that could find out */
    if (m->phase < MANAGER_CHAIN_WAIT || !m->hold.wanted || m->writes.out[MANAGER_WRITE_PAUSE])
        return;
    m->hold.wanted = false;
    manager__write_start(m, MANAGER_WRITE_PAUSE);
    struct manager_effect *fx = manager__fx(m, MANAGER_FX_STORE_PAUSE);
    fx->hold = m->hold.why;
    memcpy(fx->text, m->hold.text, sizeof(fx->text));
}

static void ordered(struct manager *m)
{
    if (m->hold.why == MANAGER_HOLD_REAPED) {
        m->life.ordered = true;
        return;
    }
    if (m->hold.why == MANAGER_HOLD_TRANSACTION_VERSION)
        m->account.transaction_version = m->chain.transaction_version; /* this one, and no later one */
    m->hold.why = MANAGER_HOLD_NONE;
    m->hold.told = m->send.poor = false;
}

void manager__pause_stored(struct manager *m)
{
    if (m->hold.wanted)
        return; /* it is another one by now */
    m->hold.told = m->hold.why != MANAGER_HOLD_NONE;
    m->hold.look = false; /* a look that is under way may have been there before */
    if (PLANTED(ORDER_ASSUMED) && m->hold.told)
        ordered(m);
    m->look.now = true;
}

/* ---- what the table says ---- */

void manager__account_looked(struct manager *m, const struct manager_account *account)
{
    bool order = m->hold.told && m->hold.look && !account->paused && !m->life.ordered;
    uint32_t accepted = m->account.transaction_version;
    m->account = *account;
    if (!m->account.transaction_version)
        m->account.transaction_version = accepted; /* the look may be older than the admission that set it */
    if (order)
        ordered(m);
    manager__version_check(m);
}

void manager__account_loaded(struct manager *m, const struct manager_event *ev)
{
    if (ev->used_nonce > 0) {
        bool known = ev->used_block >= 0; /* else by somebody else, in blocks that nobody wrote down */
        m->life.used_nonce = (uint64_t)ev->used_nonce;
        m->life.used_block = known ? (uint64_t)ev->used_block : UINT64_MAX;
        if (known && m->life.used_block > m->load.max_submitted)
            m->load.max_submitted = m->life.used_block; /* a node below it knows less than the table */
    }
    if (!ev->account)
        return;
    m->account = *ev->account;
    if (m->hold.wanted)
        return; /* found, and not in the table yet */
    m->hold.why = m->account.reborn ? MANAGER_HOLD_REAPED : m->account.hold;
    m->hold.told = m->hold.why != MANAGER_HOLD_NONE;
    m->send.poor = m->hold.why == MANAGER_HOLD_PAYMENT;
    m->life.ordered = m->account.reborn;
    if (PLANTED(HOLD_FORGOTTEN)) {
        m->hold.why = MANAGER_HOLD_NONE;
        m->life.ordered = false;
    }
}

/* ---- the runtime's transaction version ---- */

void manager__version_check(struct manager *m)
{
    uint32_t accepted = m->account.transaction_version;
    if (m->phase < MANAGER_CHAIN_WAIT || !m->chain.transaction_version || PLANTED(VERSION_IGNORED))
        return;
    if (accepted && accepted != m->chain.transaction_version)
        manager__hold(
            m, MANAGER_HOLD_TRANSACTION_VERSION,
            "transaction_version is %u and calls were accepted for %u: they may mean something else "
            "now; nothing is signed until an operator resumes the account",
            m->chain.transaction_version, accepted);
}

/* ---- a reaped account ---- */

void manager__reaped(struct manager *m, uint64_t nonce, uint64_t was, uint64_t block)
{
    manager__hold(m, MANAGER_HOLD_REAPED,
                  "account nonce is %llu at block %llu and was %llu: the account was reaped; nothing is sent "
                  "until an operator resumes it",
                  (unsigned long long)nonce, (unsigned long long)block, (unsigned long long)was);
}

/* The table knows of nonces that were used for good, and this chain knows them no more. A node that lags says
 * the same, so only a finalized block that is not below theirs can tell. */
void manager__former_life(struct manager *m, const struct manager_block *block)
{
    if (block->number >= m->life.used_block && block->account_nonce < m->life.used_nonce)
        manager__reaped(m, block->account_nonce, m->life.used_nonce, block->number);
}

bool manager__dead(const struct manager *m, const struct row *row)
{
    return PLANTED(LIFE_EARLY) || !manager__live(m, row);
}

static void bury(struct manager *m)
{
    struct row *row;
    for (uint64_t at = 0; (row = line_first(&m->line, SET_LIVE, at));) {
        at = row->nonce + 1;
        if (row->state == ROW_SIGNING || row->state == ROW_SUBMITTED || manager__drop_hole(m, row))
            continue;
        if (row->was_out && row->out_death == INT64_MAX)
            manager__alert_once(
                m, ALERT_GUARD,
                "nonce %llu of the account's former life was signed without an era: its bytes "
                "stay valid, so the account cannot go on",
                (unsigned long long)row->nonce);
        if (manager__dead(m, row))
            manager__end_former(m, row);
    }
}

void manager__reborn_pump(struct manager *m)
{
    if (!m->life.ordered || m->phase != MANAGER_LEADING || !m->chain.up)
        return;
    bury(m);
    if (m->line.rows || !m->life.known || m->final.seen < m->life.block ||
        m->final.seen < m->chain.finalized || m->life.wanted || m->writes.out[MANAGER_WRITE_NONCE])
        return;
    line_cover(&m->line, m->life.nonce, m->life.nonce);
    m->nonces.wanted = m->nonces.lower = m->life.wanted = true;
}

/* The next nonce of the new life is stored. */
void manager__reborn(struct manager *m)
{
    if (!m->life.wanted)
        return;
    m->life.ordered = m->life.wanted = false;
    m->hold.why = MANAGER_HOLD_NONE;
    m->hold.told = false;
    m->account.reborn = false;
    m->life.used_nonce = 0;
    m->final.nonce = m->life.nonce;
    m->nonces.rewind = false;
    if (m->line.next != m->life.stored_nonce)
        m->nonces.wanted = true; /* it was used while it was stored, by somebody else */
    m->probe.now = true;
}
