/* The shared part of the contract suite: the store and the account of the running test. */
#ifndef STORE_CONTRACT_H
#define STORE_CONTRACT_H

#include "store_fixture.h"

extern struct fx_store x;
extern struct fx_account a;

void snapshot(struct store_snapshot *snap); /* everything that is pending */
size_t outbox_count(void);
struct store_states states_of(const struct tx_report *rows, size_t n);
void assert_amount(u128 v, const char *text);
struct store_attempt_row attempt_row(int64_t id, int64_t nonce, int hash);
struct store_attempts attempts_of(const struct store_attempt_row *rows, size_t n);
struct store_finish finish_of(const struct tx_end *rows, size_t n);

/* contract_rows.c */
void test_outbox_order(void **state);
void test_poll_requests(void **state);
void test_idempotency(void **state);
void test_admit(void **state);
void test_snapshot_chunks(void **state);
void test_attempt(void **state);
void test_state(void **state);
void test_finish(void **state);
void test_reject(void **state);
void test_fill(void **state);
void test_nonce(void **state);

/* contract_policy.c */
void test_options(void **state);
void test_options_refused(void **state);
void test_not_before(void **state);
void test_due(void **state);
void test_due_facts(void **state);
void test_deadline_queued(void **state);
void test_spans(void **state);
void test_deadline_pending(void **state);
void test_cancel(void **state);
void test_retry(void **state);
void test_bump(void **state);
void test_bump_meets_admission(void **state);
void test_bump_to_the_limit(void **state);
void test_filler_attempt(void **state);
void test_refused(void **state);
void test_requeue_usurped(void **state);
void test_requeue_dispatch_error(void **state);
void test_requeue_keeps_its_options(void **state);
void test_hold(void **state);
void test_transaction_version(void **state);
void test_used_nonce(void **state);
void test_reborn(void **state);

#endif
