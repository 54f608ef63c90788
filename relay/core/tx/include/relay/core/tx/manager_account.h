/* What the table says of the account: its settings, and why it is suspended. */
#ifndef RELAY_MANAGER_ACCOUNT_H
#define RELAY_MANAGER_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/tx.h"

/* Why the account is suspended, beyond single transactions. */
enum manager_suspension {
    MANAGER_SUSPENSION_NONE,
    MANAGER_SUSPENSION_PAYMENT, /* it cannot pay: nothing is admitted; ends by itself */
    MANAGER_SUSPENSION_REAPED, /* its nonce went back: nothing is sent before an operator's order */
    MANAGER_SUSPENSION_TRANSACTION_VERSION, /* calls may mean something else now: the same */
    /* the chain does not take what this relay would sign: nothing is admitted or signed; ends by
     * itself when the chain takes it, or another relay's key */
    MANAGER_SUSPENSION_SIGNING,
};
/* As the table has it: "payment"; "" of none. */
const char *manager_suspension_name(enum manager_suspension suspension);
enum manager_suspension manager_suspension_of(const char *name); /* NULL or unknown: none */

/* The account's settings in the table, with every snapshot and request poll. Amounts are planck.
 */
struct manager_account {
    bool paused;                        /* by whomever */
    enum manager_suspension suspension; /* a leader's pause that stands */
    bool reborn; /* an operator resumed a reaped account, and its new life has not begun yet */
    uint32_t transaction_version; /* the one that was accepted; 0: any */
    u128 tip_start, tip_step;     /* of a first attempt; the least raise (0: 1) */
    u128 tip_cap;                 /* MANAGER_NO_CAP: none */
    uint32_t tip_step_percent;
    uint32_t tip_after_blocks; /* the first transaction gets a higher tip after this many blocks; 0:
                                  never */
    uint32_t skip_after_blocks; /* and is given up after this many; 0: never */
    /* "ExhaustsResources,Custom:6": what a chain refuses so is submitted again; "": nothing */
    char retry_refusals[121];
    bool requeue_usurped; /* else a transaction that lost its nonce ends as usurped */
    bool has_low_balance;
    u128 low_balance; /* alert when the free balance is below it */
};
#define MANAGER_NO_CAP (~(u128)0)

#endif
