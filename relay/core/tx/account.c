/* The account's settings in the table, and an operator's orders. */
#include "base/heard.h"
#include "manager_internal.h"

void manager__account_polled(struct manager *m, const struct manager_account *account,
                             uint64_t number)
{
    PRE(account);
    bool order = m->suspension.stored && number >= m->suspension.first_poll && !account->paused &&
                 !m->life.ordered;
    uint32_t accepted = m->account.transaction_version;
    m->account = *account;
    if (!m->account.transaction_version)
        m->account.transaction_version =
            accepted; /* the poll may be older than the admission that set it */
    if (order)
        manager__ordered(m);
    manager__version_check(m);
    manager__signing_check(m);
}

void manager__account_loaded(struct manager *m, const struct manager_event *ev)
{
    PRE(m->phase == MANAGER_LOAD_WAIT);
    if (ev->snapshot.used_nonce > 0) {
        bool known = ev->snapshot.used_block >=
                     0; /* else by another program, in blocks that are not on record */
        m->life.used_nonce = (uint64_t)ev->snapshot.used_nonce;
        m->life.used_block = known ? (uint64_t)ev->snapshot.used_block : UINT64_MAX;
        if (known && m->life.used_block > m->load.max_submitted)
            m->load.max_submitted =
                m->life.used_block; /* a node below it knows less than the table */
    }
    if (!ev->snapshot.account)
        return;
    m->account = *ev->snapshot.account;
    if (m->suspension.wanted)
        return; /* found, and not in the table yet */
    m->suspension.why = m->account.reborn ? MANAGER_SUSPENSION_REAPED : m->account.suspension;
    m->suspension.stored = m->suspension.why != MANAGER_SUSPENSION_NONE;
    m->suspension.first_poll = m->polls + 1; /* the one that follows the load */
    m->send.no_funds = m->suspension.why == MANAGER_SUSPENSION_PAYMENT;
    m->life.ordered = m->account.reborn;
    if (PLANTED(HOLD_FORGOTTEN)) {
        m->suspension.why = MANAGER_SUSPENSION_NONE;
        m->life.ordered = false;
    }
}

bool manager_has_version(const struct manager *m)
{
    return m->account.transaction_version != 0;
}

/* Nothing is signed from the first answer on. It suspends the account, which only an operator ends,
 * if it still holds when a block above the one at which it was heard is final: until then the node
 * is asked again with each tick, and may take it back. */
void manager__version_check(struct manager *m)
{
    uint32_t accepted = m->account.transaction_version, now = m->chain.transaction_version;
    if (m->phase < MANAGER_CHAIN_WAIT || !now || PLANTED(VERSION_IGNORED))
        return;
    if (!accepted || accepted == now) {
        m->chain.version_since = UINT64_MAX;
        return;
    }
    if (m->suspension.why == MANAGER_SUSPENSION_TRANSACTION_VERSION)
        return;
    if (m->chain.version_since == UINT64_MAX) {
        m->chain.version_since = m->chain.best;
        manager__alert(m,
                       "transaction_version is %u at block %llu and calls were accepted for %u: "
                       "nothing is signed, and the account is suspended if it still is when a "
                       "later block is final",
                       now, (unsigned long long)m->chain.version_since, accepted);
        manager__fx(m, MANAGER_FX_RECHECK_RUNTIME);
    }
    if (!heard_is_near(m->chain.finalized, m->chain.version_since))
        m->chain.version_since = m->chain.finalized; /* that height was invented */
    if (m->final.processed > m->chain.version_since)
        manager__suspend(
            m, MANAGER_SUSPENSION_TRANSACTION_VERSION,
            "transaction_version is %u and calls were accepted for %u: they may mean something "
            "else now; nothing is signed until an operator resumes the account",
            now, accepted);
}
