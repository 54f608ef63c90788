/* The account: what the table says of it, why it is suspended, and a life that is over. */
#ifndef RELAY_CORE_TX_SUSPEND_H
#define RELAY_CORE_TX_SUSPEND_H

#include "state.h"

/* ---- suspend.c ---- */
bool manager__blocked(const struct manager *m);
bool manager__cannot_sign(const struct manager *m);
void manager__signing_check(struct manager *m); /* begin or end the suspension, by what is known */
void manager__signing_refused(struct manager *m, const char *why); /* found when it was tried */
void manager__suspension_reset(struct manager *m);
void manager__suspend(struct manager *m, enum manager_suspension suspension, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void manager__paid(struct manager *m);
void manager__unpaid(struct manager *m, uint64_t nonce, const char *text); /* no funds for it */
void manager__suspension_pump(struct manager *m);
void manager__pause_stored(struct manager *m, const struct manager_event *ev);
/* The write, if it is of the suspension, was not carried out, or its outcome is unknown. */
void manager__suspension_unstored(struct manager *m, enum manager_effect_type write);
/* The account as of this request poll, which may show the order of an operator. */
void manager__account_polled(struct manager *m, const struct manager_account *account,
                             uint64_t number);
/* The same with a load. Must be called in LOAD_WAIT. */
void manager__account_loaded(struct manager *m, const struct manager_event *ev);
/* Calls were accepted for another transaction_version: alert, and suspend once that is final. */
void manager__version_check(struct manager *m);
/* An operator ordered the account to go on. */
void manager__ordered(struct manager *m);

/* ---- life.c ---- */
void manager__reaped(struct manager *m, uint64_t nonce, uint64_t was, uint64_t block);
void manager__former_life(struct manager *m, const struct manager_block *block);
void manager__reborn_pump(struct manager *m);
void manager__nonce_stored(struct manager *m, const struct manager_event *ev);
void manager__life_reset(struct manager *m);  /* at a promotion */
void manager__life_forget(struct manager *m); /* what the table said of the former one */
void manager__life_order(struct manager *m, bool ordered);
/* What the table has on record as used: nonces below this one, by this block (UINT64_MAX: of
 * another program, in blocks that are not on record). */
void manager__life_recorded(struct manager *m, uint64_t nonce, uint64_t block);
void manager__life_used_by(struct manager *m, uint64_t block); /* that is final by this block */
/* A final block has the nonce of the present life. */
void manager__life_seen(struct manager *m, const struct manager_block *block);
void manager__life_storing(struct manager *m); /* the next nonce is being stored */

#endif
