/* What suspends an account, and what ends the suspension.
 *
 * - PAYMENT: the account cannot pay. Nothing more is admitted. One submission per block is tried,
 *   at least a quarter of a second apart; the first accepted one ends it.
 * - TRANSACTION_VERSION: the runtime encodes calls differently from the accepted version, so an
 *   enqueued call may mean something else. Only an operator's order ends it: a node that shows the
 *   former version again may simply be behind.
 * - SIGNING: the chain does not take what this relay would sign (another kind of key, an unknown
 *   signed extension). Nothing is admitted or signed; what is signed already may go on. It ends
 *   when the node describes a runtime that takes it, or when another relay leads that can sign.
 * - REAPED: the account's nonce is below one that a final block used: the account was removed and
 *   exists again. After the order no byte of the former life is sent again: its rows go back to the
 *   outbox or end once their eras are over, then nonces begin anew.
 *
 * A suspension is written to the table, where operators see it. The order to resume is read there
 * too: by a request poll that began after the suspension was stored and finds the account not
 * paused. */
#include "suspend.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/heard.h"
#include "effects.h"
#include "load.h"
#include "stop.h"

enum { NO_NEXT_BLOCK_MS = 30000, NO_FINALITY_MS = 600000 };

bool manager__blocked(const struct manager *m)
{
    bool reaped = m->suspension.why == MANAGER_SUSPENSION_REAPED && !PLANTED(REAPED_SENDS);
    return reaped || m->suspension.version_since != UINT64_MAX ||
           m->suspension.why == MANAGER_SUSPENSION_TRANSACTION_VERSION;
}

void manager__suspension_reset(struct manager *m)
{
    m->suspension.why = MANAGER_SUSPENSION_NONE;
    m->suspension.wanted = m->suspension.stored = m->suspension.no_funds = false;
    m->suspension.not_signed = false;
    m->suspension.text[0] = 0;
    manager__life_reset(m);
    m->suspension.version_since = UINT64_MAX;
    m->account = (struct manager_account){.tip_cap = MANAGER_NO_CAP};
}

void manager__suspend(struct manager *m, enum manager_suspension suspension, const char *fmt, ...)
{
    PRE(suspension != MANAGER_SUSPENSION_NONE);
    static const uint8_t weight[] = {[MANAGER_SUSPENSION_NONE] = 0,
                                     [MANAGER_SUSPENSION_PAYMENT] = 1,
                                     [MANAGER_SUSPENSION_SIGNING] = 2,
                                     [MANAGER_SUSPENSION_TRANSACTION_VERSION] = 3,
                                     [MANAGER_SUSPENSION_REAPED] = 4};
    if (weight[m->suspension.why] >= weight[suspension])
        return;
    char text[sizeof(m->suspension.text)];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    plain_text(m->suspension.text, sizeof(m->suspension.text), text);
    m->suspension.why = suspension;
    m->suspension.wanted = true;
    m->suspension.stored = false;
    manager__alert(m, "%s", text);
}

static void end_suspension(struct manager *m)
{
    PRE(m->suspension.why == MANAGER_SUSPENSION_PAYMENT ||
        m->suspension.why == MANAGER_SUSPENSION_SIGNING);
    m->suspension.why = MANAGER_SUSPENSION_NONE;
    m->suspension.stored = false;
    m->suspension.wanted = true;
    m->suspension.text[0] = 0;
}

void manager__unpaid(struct manager *m, uint64_t nonce, const char *text)
{
    PRE(text);
    m->suspension.no_funds = true;
    manager__suspend(m, MANAGER_SUSPENSION_PAYMENT, "the account cannot pay for nonce %llu: %s",
                     (unsigned long long)nonce, text);
}

void manager__paid(struct manager *m)
{
    m->suspension.no_funds = false;
    if (m->suspension.why == MANAGER_SUSPENSION_PAYMENT)
        end_suspension(m);
}

/* ---- what cannot be signed ---- */

bool manager__cannot_sign(const struct manager *m)
{
    return m->suspension.why == MANAGER_SUSPENSION_SIGNING;
}

static void unsupported(struct manager *m, const char *why)
{
    PRE(why[0]);
    if (manager__cannot_sign(m) && !strcmp(m->suspension.text, why))
        return;
    if (manager__cannot_sign(m)) /* for another reason than before */
        m->suspension.why = MANAGER_SUSPENSION_NONE;
    manager__suspend(m, MANAGER_SUSPENSION_SIGNING, "%s", why);
}

/* A signature that was refused once is not tried again under the same runtime. */
static bool refused_here(const struct manager *m)
{
    return m->suspension.not_signed && m->suspension.runtimes == m->chain.runtimes;
}

void manager__signing_check(struct manager *m)
{
    if (m->phase < MANAGER_CHAIN_WAIT || !m->chain.spec_version || PLANTED(UNSIGNABLE_TRIED))
        return;
    if (m->chain.unsupported[0])
        unsupported(m, m->chain.unsupported);
    else if (manager__cannot_sign(m) && !refused_here(m))
        end_suspension(m);
}

void manager__signing_refused(struct manager *m, const char *why)
{
    PRE(why && m->phase >= MANAGER_CHAIN_WAIT);
    char text[sizeof(m->suspension.text)];
    if (PLANTED(UNSIGNABLE_TRIED))
        return;
    plain_text(text, sizeof(text), why);
    unsupported(m, text[0] ? text : "it cannot be signed for");
    m->suspension.not_signed = true;
    m->suspension.runtimes = m->chain.runtimes;
}

static enum suspension_action next(const struct manager *m)
{
    return suspension_next(
        &(struct suspension_view){.payment = m->suspension.why == MANAGER_SUSPENSION_PAYMENT,
                                  .leading = m->phase == MANAGER_LEADING,
                                  .rows_open = line_not_in_block(&m->line) > 0,
                                  .loaded = m->phase >= MANAGER_CHAIN_WAIT,
                                  .unstored = m->suspension.wanted,
                                  .storing = m->writes.out[MANAGER_FX_STORE_PAUSE]});
}

void manager__suspension_pump(struct manager *m)
{
    enum suspension_action action = next(m);
    if (action == SUSPENSION_END) {
        end_suspension(m);
        action = next(m);
    }
    if (action != SUSPENSION_STORE)
        return;
    m->suspension.wanted = false;
    struct manager_effect *fx = manager__write(m, MANAGER_FX_STORE_PAUSE);
    fx->pause.suspension = m->suspension.why;
    memcpy(fx->pause.text, m->suspension.text, sizeof(fx->pause.text));
}

void manager__ordered(struct manager *m)
{
    PRE(m->suspension.why != MANAGER_SUSPENSION_NONE);
    if (m->suspension.why == MANAGER_SUSPENSION_REAPED) {
        manager__life_order(m, true);
        return;
    }
    if (m->suspension.why == MANAGER_SUSPENSION_TRANSACTION_VERSION)
        m->account.transaction_version =
            m->chain.transaction_version; /* this one, and no later one */
    m->suspension.version_since = UINT64_MAX;
    m->suspension.why = MANAGER_SUSPENSION_NONE;
    m->suspension.stored = m->suspension.no_funds = m->suspension.not_signed = false;
}

void manager__suspension_unstored(struct manager *m, enum manager_effect_type write)
{
    if (write == MANAGER_FX_STORE_PAUSE)
        m->suspension.wanted = true;
}

void manager__pause_stored(struct manager *m, const struct manager_event *ev)
{
    (void)ev;
    if (m->suspension.wanted)
        return; /* it is another one by now */
    m->suspension.stored = m->suspension.why != MANAGER_SUSPENSION_NONE;
    if (PLANTED(ORDER_ASSUMED) && m->suspension.stored)
        manager__ordered(m);
    manager__poll_requests(m);
    m->suspension.first_poll =
        m->polls; /* an earlier request poll may have read the table before */
}

/* ---- what the table says of the account ---- */

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
        manager__life_recorded(m, (uint64_t)ev->snapshot.used_nonce,
                               known ? (uint64_t)ev->snapshot.used_block : UINT64_MAX);
        if (known) /* a node below it knows less than the table */
            manager__load_reaches(m, m->life.used_block);
    }
    if (!ev->snapshot.account)
        return;
    m->account = *ev->snapshot.account;
    if (m->suspension.wanted)
        return; /* found, and not in the table yet */
    m->suspension.why = m->account.reborn ? MANAGER_SUSPENSION_REAPED : m->account.suspension;
    plain_text(m->suspension.text, sizeof(m->suspension.text),
               ev->snapshot.suspension_text ? ev->snapshot.suspension_text : "");
    m->suspension.stored = m->suspension.why != MANAGER_SUSPENSION_NONE;
    m->suspension.first_poll = m->polls + 1; /* the one that follows the load */
    m->suspension.no_funds = m->suspension.why == MANAGER_SUSPENSION_PAYMENT;
    manager__life_order(m, m->account.reborn);
    if (PLANTED(HOLD_FORGOTTEN)) {
        m->suspension.why = MANAGER_SUSPENSION_NONE;
        manager__life_order(m, false);
    }
}

bool manager_has_version(const struct manager *m)
{
    return m->account.transaction_version != 0;
}

/* Is a block above the one at which the version was heard final? A chain that makes blocks on
 * demand may make none: then that block itself counts, when the node has said the same for a time.
 * Where finality stalls below it, the hold becomes a suspension as well: only that can be ended by
 * an operator, who may know more than the chain shows. */
static bool version_is_final(const struct manager *m)
{
    if (m->final.processed > m->suspension.version_since)
        return true;
    if (m->final.processed == m->suspension.version_since)
        return m->now >= m->chain_tick.block_at + NO_NEXT_BLOCK_MS;
    return m->now >= m->suspension.version_at + NO_FINALITY_MS;
}

/* Nothing is signed from the first answer on. It suspends the account, which only an operator ends,
 * if it still holds when that is final: until then the node is asked again with each tick, and may
 * take it back. */
void manager__version_check(struct manager *m)
{
    uint32_t accepted = m->account.transaction_version, now = m->chain.transaction_version;
    if (m->phase < MANAGER_CHAIN_WAIT || !now || PLANTED(VERSION_IGNORED))
        return;
    if (!accepted || accepted == now) {
        m->suspension.version_since = UINT64_MAX;
        return;
    }
    if (m->suspension.why == MANAGER_SUSPENSION_TRANSACTION_VERSION)
        return;
    if (m->suspension.version_since == UINT64_MAX) {
        m->suspension.version_since = m->chain.best;
        m->suspension.version_at = m->now;
        manager__alert(m,
                       "transaction_version is %u at block %llu and calls were accepted for %u: "
                       "nothing is signed, and the account is suspended if it still is when a "
                       "later block is final, or in ten minutes",
                       now, (unsigned long long)m->suspension.version_since, accepted);
        manager__fx(m, MANAGER_FX_RECHECK_RUNTIME);
    }
    if (!heard_is_near(m->chain.finalized, m->suspension.version_since))
        m->suspension.version_since = m->chain.finalized; /* that height was invented */
    if (version_is_final(m))
        manager__suspend(
            m, MANAGER_SUSPENSION_TRANSACTION_VERSION,
            "transaction_version is %u and calls were accepted for %u: they may mean something "
            "else now; nothing is signed until an operator resumes the account",
            now, accepted);
}
