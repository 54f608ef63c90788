/* What the database may have lost: searched, adopted, and waited for. */
#ifndef RELAY_CORE_TX_RECONCILE_H
#define RELAY_CORE_TX_RECONCILE_H

#include "state.h"

/* ---- reconcile.c ---- */
/* from the first block that could hold what is looked for */
void manager__follow_loaded(struct manager *m);
void manager__found_clear(struct manager *m);
/* the chain is there: how long to wait, and the first block to search */
uint64_t manager__reconcile_begin(struct manager *m);
/* The search began behind blocks that it should read: the node had invented a final height. */
bool manager__reconcile_skips(const struct manager *m);
/* what is not final yet is waited for, from here on */
void manager__reconcile_patience(struct manager *m);
void manager__reconcile_loaded(struct manager *m, const struct manager_event *ev);
/* An extrinsic of ours that no row knows; true: it is kept to be adopted. `block` NULL: in a
 * pool. */
bool manager__try_collect(struct manager *m, const struct tx_included *x,
                          const struct manager_block *block);
/* The first probe is answered; false: it is not yet certain what the database lost. */
bool manager__try_reconcile(struct manager *m, uint64_t best_nonce);
/* An extrinsic at another nonce was found that has the row's call. */
bool manager__resent(const struct manager *m, const struct row *row);
/* What the lost commits gave the nonce of this ending row to is adopted after that end. */
bool manager__displaced(const struct manager *m, const struct row *row);
void manager__adopt_pump(struct manager *m);
void manager__adopted(struct manager *m, const struct manager_event *ev);

/* ---- clocks.c ---- */
void manager__clocks_loaded(struct manager *m, const struct manager_event *ev);
void manager__clocks_block(struct manager *m, const struct manager_block *block);
/* By how much the database's clock is ahead of the chain's; 0: that is not proven. */
int64_t manager__clock_ahead_ms(const struct manager *m);

/* ---- era_wait.c ---- */
void manager__era_wait_loaded(struct manager *m, const struct manager_event *ev);
/* a finalized block was worked through */
void manager__era_wait_block(struct manager *m, const struct manager_block *block);
void manager__era_wait_pump(struct manager *m);
void manager__heard_stored(struct manager *m, const struct manager_event *ev);
/* Blocks that are left; 0: none, or not known yet. */
uint64_t manager__era_wait_left(const struct manager *m);
/* For ADOPT: what was read; -1: it did not wait. */
int64_t manager__era_wait_read(const struct manager *m);

#endif
