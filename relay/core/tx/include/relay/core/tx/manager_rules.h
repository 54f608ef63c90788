/* Rules of the manager that its adapters apply when they sign, write and read blocks (rules.c). */
#ifndef RELAY_MANAGER_RULES_H
#define RELAY_MANAGER_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/tx.h"
#include "relay/core/tx/manager_effect.h"

struct manager;

/* The longest era of at most `period` blocks (0: immortal) that begins at block `from` and ends
 * with block `last`; 0: none does. The core chooses a period by the final block that it has
 * worked through; when its door signs, a newer one may be final. */
uint32_t manager_era_fit(uint32_t period, uint64_t from, uint64_t last);

/* The longest era, in blocks, that is ever signed where eras are of `period` blocks (0: none). */
uint32_t manager_era_longest(uint32_t period);

/* What bytes are that were signed for an open nonce. An ed25519 or ecdsa key signs the same
 * content to the same bytes: while finality stalls they are the CURRENT attempt, which is on
 * record and is not written again. A FORMER attempt's bytes come back from a node that is behind
 * the one that they were signed by. */
enum manager_attempt { MANAGER_ATTEMPT_NEW, MANAGER_ATTEMPT_CURRENT, MANAGER_ATTEMPT_FORMER };
enum manager_attempt manager_attempt_of(const struct manager *m, const uint8_t current[32],
                                        const uint8_t hash[32]);
/* The era to sign with once bytes with an era of `period` turned out to be such an attempt. A node
 * that was behind an upgrade had a row signed for the old runtime; back under the new one, immortal
 * bytes are a FORMER attempt's for ever, and only another era makes new ones. So it is with CURRENT
 * immortal bytes that a pool has banned. */
uint32_t manager_era_anew(enum manager_attempt attempt, bool banned, uint32_t period);

/* A write failed. May the database still carry it out? Then the account goes on under a new
 * epoch. */
bool manager_write_doubtful(enum manager_effect_type write, int code);

/* May an account that admits nothing any more be handed over? Nothing is unsent, no store
 * request is in flight that new bytes may come of (unstored), every submission is answered. One
 * that is not rebuilt has nothing of its own on the way. */
bool manager_settled(const struct manager *m, size_t unstored, size_t unanswered);

/* Does the manager know this hash (current or earlier attempt of an open nonce)? */
bool manager_knows(const struct manager *m, const uint8_t hash[32]);
/* All hashes that it knows. */
void manager_each_hash(const struct manager *m, void (*cb)(void *arg, const uint8_t hash[32]),
                       void *arg);
/* The highest final block that this leader has read, or one before it as its rows tell. */
uint64_t manager_block_read(const struct manager *m);
/* Could a block hold anything that this account has in flight, or has lost? */
bool manager_needs_blocks(const struct manager *m);
/* Does a transaction of a former runtime end once a final block is known to be under a later one?
 */
bool manager_wants_runtime(const struct manager *m);
/* Does an extrinsic that names the account as its signer count only if its signature is right? Not
 * where the hash is on record, nor where its nonce is below all that is open. */
bool manager_must_verify(const struct manager *m, const uint8_t hash[32], uint64_t nonce);
/* Were calls of the account accepted under some transaction_version? */
bool manager_has_version(const struct manager *m);
/* Would something that only an operator can undo follow from this account nonce at a final block?
 * Then the adapter asks again before it reports the block. shown: above the nonces that the
 * account's extrinsics in the block use, where their signatures are right; 0: none is there. */
enum tx_doubt manager_doubts_nonce(const struct manager *m, uint64_t number, uint64_t nonce,
                                   uint64_t shown);
/* Above the nonce that this extrinsic of a block uses for certain; 0: its bytes are unknown and its
 * signature is not verified. */
uint64_t manager_shown_nonce(const struct manager *m, const struct tx_included *x);

#endif
