/* The shared part of the contract suite: the store and the account of the running test. */
#ifndef STORE_CONTRACT_H
#define STORE_CONTRACT_H

#include "store_fixture.h"

extern struct fx_store x;
extern struct fx_account a;

void snapshot(struct store_snapshot *snap); /* everything that is pending */
struct store_states states_of(const struct store_state_row *rows, size_t n);

/* contract_rows.c */
void test_outbox_order(void **state);
void test_look(void **state);
void test_idempotency(void **state);
void test_admit(void **state);
void test_snapshot_chunks(void **state);
void test_attempt(void **state);
void test_state(void **state);
void test_finish(void **state);
void test_reject(void **state);
void test_fill(void **state);
void test_nonce(void **state);

#endif
