/* System.Events of one block: what became of each extrinsic. */
#ifndef CHAIN_EVENTS_H
#define CHAIN_EVENTS_H

#include "base/error.h"
#include "chain/metadata.h"
#include "chain/scale.h"

enum dispatch_outcome { DISPATCH_NONE, DISPATCH_OK, DISPATCH_FAILED };

struct dispatch_result {
    enum dispatch_outcome outcome; /* NONE: no ExtrinsicSuccess/Failed event was found */
    /* Failed: "Balances.InsufficientBalance" for a module error, else "BadOrigin", "Token.FundsUnavailable",
     * "Arithmetic.Overflow"... An inner failure that the outer call survives (Utility.BatchInterrupted,
     * ItemFailed, Proxy.ProxyExecuted(Err), Multisig.MultisigExecuted(Err), Sudo.Sudid(Err)) is outcome
     * FAILED too, with the text "Utility.BatchInterrupted[2]: Balances.InsufficientBalance". */
    char error[160];
    bool inner; /* the failure is an inner one */
    bool has_fee;
    u128 fee; /* TransactionPayment.TransactionFeePaid.actual_fee */
};

/* results[0..count): by extrinsic index; zeroed first. Bytes: the storage value of System.Events. */
int events_decode(const struct metadata *md, const uint8_t *bytes, size_t len,
                  struct dispatch_result *results, size_t count, struct err *err);

/* A SCALE DispatchError (system_dryRun, ExtrinsicFailed's field) to text, moving `in` over it. */
int dispatch_error_text(const struct metadata *md, struct scale_in *in, char out[160], struct err *err);

#endif
