/* The next nonce, holes, and nonces that are free again. */
#ifndef RELAY_CORE_TX_NONCES_H
#define RELAY_CORE_TX_NONCES_H

#include "state.h"

bool manager__try_rebuild(struct manager *m, uint64_t best_nonce);
/* An account nonce as of this block that cannot be: it says nothing, and is not stored. */
/* All below it is accounted for: by rows, by the table, or by final blocks. */
uint64_t manager__nonce_known(const struct manager *m);
bool manager__nonce_absurd(struct manager *m, uint64_t nonce, uint64_t block);
bool manager__try_find_gaps(struct manager *m, uint64_t best_nonce);
void manager__chain_nonce(struct manager *m, uint64_t nonce, const char *where);
void manager__rewind_check(struct manager *m, uint64_t best_nonce);
void manager__give_back_pump(struct manager *m);
void manager__nonce_pump(struct manager *m);

#endif
