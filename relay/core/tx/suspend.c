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
 * - REAPED: the account's nonce is below one that was used for good: the account was removed and
 *   exists again. After the order no byte of the former life is sent again: its rows go back to the
 *   outbox or end once their eras are over, then nonces begin anew.
 *
 * A suspension is written to the table, where operators see it. The order to resume is read there
 * too: by a request poll that began after the suspension was stored and finds the account not
 * paused. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "manager_internal.h"

bool manager__blocked(const struct manager *m)
{
    bool reaped = m->suspension.why == MANAGER_SUSPENSION_REAPED && !PLANTED(REAPED_SENDS);
    return reaped || m->chain.version_since != UINT64_MAX ||
           m->suspension.why == MANAGER_SUSPENSION_TRANSACTION_VERSION;
}

void manager__suspension_reset(struct manager *m)
{
    m->suspension.why = MANAGER_SUSPENSION_NONE;
    m->suspension.wanted = m->suspension.stored = m->send.no_funds = false;
    m->suspension.not_signed = false;
    m->suspension.text[0] = 0;
    m->life.ordered = m->life.wanted = m->life.known = false;
    m->chain.version_since = UINT64_MAX;
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
    manager__plain(m->suspension.text, sizeof(m->suspension.text), text);
    m->suspension.why = suspension;
    m->suspension.wanted = true;
    m->suspension.stored = false;
    manager__alert(m, "%s", text);
}

static void hold_over(struct manager *m)
{
    PRE(m->suspension.why == MANAGER_SUSPENSION_PAYMENT ||
        m->suspension.why == MANAGER_SUSPENSION_SIGNING);
    m->suspension.why = MANAGER_SUSPENSION_NONE;
    m->suspension.stored = false;
    m->suspension.wanted = true;
    m->suspension.text[0] = 0;
}

void manager__paid(struct manager *m)
{
    m->send.no_funds = false;
    if (m->suspension.why == MANAGER_SUSPENSION_PAYMENT)
        hold_over(m);
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
        hold_over(m);
}

void manager__chain_signing(struct manager *m, u128 tip_max, const char *why)
{
    m->chain.tip_max = tip_max;
    manager__plain(m->chain.unsupported, sizeof(m->chain.unsupported), why ? why : "");
    manager__signing_check(m);
}

void manager__signing_refused(struct manager *m, const char *why)
{
    PRE(why && m->phase >= MANAGER_CHAIN_WAIT);
    char text[sizeof(m->suspension.text)];
    if (PLANTED(UNSIGNABLE_TRIED))
        return;
    manager__plain(text, sizeof(text), why);
    unsupported(m, text[0] ? text : "it cannot be signed for");
    m->suspension.not_signed = true;
    m->suspension.runtimes = m->chain.runtimes;
}

static enum hold_action next(const struct manager *m)
{
    return hold_next(&(struct hold_view){.payment = m->suspension.why == MANAGER_SUSPENSION_PAYMENT,
                                         .leading = m->phase == MANAGER_LEADING,
                                         .rows_open = line_not_in_block(&m->line) > 0,
                                         .loaded = m->phase >= MANAGER_CHAIN_WAIT,
                                         .unstored = m->suspension.wanted,
                                         .storing = m->writes.out[MANAGER_FX_STORE_PAUSE]});
}

void manager__suspension_pump(struct manager *m)
{
    enum hold_action action = next(m);
    if (action == HOLD_END) {
        hold_over(m);
        action = next(m);
    }
    if (action != HOLD_STORE)
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
        m->life.ordered = true;
        return;
    }
    if (m->suspension.why == MANAGER_SUSPENSION_TRANSACTION_VERSION)
        m->account.transaction_version =
            m->chain.transaction_version; /* this one, and no later one */
    m->chain.version_since = UINT64_MAX;
    m->suspension.why = MANAGER_SUSPENSION_NONE;
    m->suspension.stored = m->send.no_funds = m->suspension.not_signed = false;
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
