/* What suspends an account, and what ends the suspension.
 *
 * - PAYMENT: the account cannot pay. Nothing more is admitted. One submission per block is tried,
 *   at least a quarter of a second apart; the first accepted one ends it.
 * - TRANSACTION_VERSION: the runtime encodes calls differently from the accepted version, so an
 *   enqueued call may mean something else. Only an operator's order ends it: a node that shows the
 *   former version again may simply be behind.
 * - REAPED: the account's nonce is below one that was used for good: the account was removed and
 *   exists again. After the order no byte of the former life is sent again: its rows go back to the
 *   outbox or end once their eras are over, then nonces begin anew.
 *
 * A hold is written to the table, where operators see it. The order is read there too: by a
 * request poll that began after the hold was stored and finds the account not paused. */
#include <stdarg.h>
#include <stdio.h>
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
    m->hold.wanted = m->hold.told = m->send.poor = false;
    m->life.ordered = m->life.wanted = m->life.known = false;
    m->account = (struct manager_account){.tip_cap = MANAGER_NO_CAP};
}

void manager__hold(struct manager *m, enum manager_hold hold, const char *fmt, ...)
{
    PRE(hold != MANAGER_HOLD_NONE);
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
    PRE(m->hold.why == MANAGER_HOLD_PAYMENT);
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

static enum hold_action next(const struct manager *m)
{
    return hold_next(&(struct hold_view){.payment = m->hold.why == MANAGER_HOLD_PAYMENT,
                                         .leading = m->phase == MANAGER_LEADING,
                                         .rows_open = line_not_in_block(&m->line) > 0,
                                         .loaded = m->phase >= MANAGER_CHAIN_WAIT,
                                         .unstored = m->hold.wanted,
                                         .storing = m->writes.out[MANAGER_WRITE_PAUSE]});
}

void manager__hold_pump(struct manager *m)
{
    enum hold_action action = next(m);
    if (action == HOLD_END) {
        hold_over(m);
        action = next(m);
    }
    if (action != HOLD_STORE)
        return;
    m->hold.wanted = false;
    manager__write_start(m, MANAGER_WRITE_PAUSE);
    struct manager_effect *fx = manager__fx(m, MANAGER_FX_STORE_PAUSE);
    fx->pause.hold = m->hold.why;
    memcpy(fx->pause.text, m->hold.text, sizeof(fx->pause.text));
}

void manager__ordered(struct manager *m)
{
    PRE(m->hold.why != MANAGER_HOLD_NONE);
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
    if (PLANTED(ORDER_ASSUMED) && m->hold.told)
        manager__ordered(m);
    manager__look(m);
    m->hold.look = m->looks; /* an earlier request poll may have read the table before */
}
