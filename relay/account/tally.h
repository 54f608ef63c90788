/* Private to relay/: what the leader of an account counts for the metrics (relay/status.h has the
 * counters), and a line of the log for each step of a transaction. */
#ifndef RELAY_TALLY_H
#define RELAY_TALLY_H

#include <stddef.h>
#include <stdint.h>

#include "base/tx.h"

struct account;
struct op;
struct service;
struct store_ended;

/* Pending transactions of which this relay becomes the leader. */
void tally_loaded(struct account *a, const struct tx_pending *rows, size_t count);
void tally_attempts(const struct op *op); /* new bytes are committed */
void tally_submit(struct account *a, uint64_t nonce,
                  const uint8_t hash[32]); /* these bytes go to a node now */
void tally_states(struct account *a, const struct tx_report *rows, size_t count);
void tally_ends(const struct op *op); /* these ends are committed */
/* These have ended without a nonce, by the database. */
void tally_ended(struct account *a, const struct store_ended *rows, size_t count);
void tally_forget(struct account *a); /* not the leader any more; the counters stay */
void tally_done(struct service *s);   /* after all accounts */

#endif
