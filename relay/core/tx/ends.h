/* Finalized blocks, and how rows end by them. */
#ifndef RELAY_CORE_TX_ENDS_H
#define RELAY_CORE_TX_ENDS_H

#include "state.h"

/* ---- finality.c ---- */
/* The account's nonce at the last finalized block that was read is known: no nonce from
 * `final.nonce` on is used there. */
bool manager__nonce_settled(const struct manager *m);
/* Up to this finalized block it is known whether it held bytes that are on record. One that no
 * endpoint has may hold them until the account's nonce behind it was read. */
uint64_t manager__searched(const struct manager *m);
/* May a block that no endpoint has hold bytes of this row? */
bool manager__may_be_unread(const struct manager *m, const struct row *row);
/* Ask for finalized blocks, from this one on. */
void manager__follow(struct manager *m, uint64_t from);
void manager__finalized(struct manager *m, const struct manager_block *told);
void manager__consumed(struct manager *m, uint64_t account_nonce,
                       const struct manager_block *block);

/* ---- ends.c ---- */
/* finish or requeue */
void manager__ends_stored(struct manager *m, const struct manager_event *ev);
void manager__finish_pump(struct manager *m);
/* Some row is about to go back to the outbox. */
bool manager__requeuing(const struct manager *m);
void manager__end_unused(struct manager *m, struct row *row, const char *outcome, const char *why);
/* The account begins a new life: what its former one has signed and can no longer get in ends. */
void manager__end_life(struct manager *m);
/* Its rows that the lost commits sent again in the new one go back to the outbox. */
void manager__requeue_resent(struct manager *m);
/* If nothing else is open: holes with nothing signed behind them. */
void manager__drop_holes(struct manager *m);
bool manager__try_drop_gap(struct manager *m, struct row *row);
/* The block holds this attempt of the row. */
void manager__end_ours(struct manager *m, struct row *row, const struct tx_included *x,
                       const struct manager_block *block);
/* The block holds another program's extrinsic at the row's nonce. */
void manager__end_usurped(struct manager *m, struct row *row, const struct tx_included *x,
                          const struct manager_block *block);
/* The block holds another program's extrinsic at the nonce of a row that has ended already. If it
 * ended unused, its nonce is not free any more. */
void manager__end_overtaken(struct row *row, const struct manager_block *block);
/* The nonce is used as of this block, and no block showed by what. */
void manager__end_unseen(struct manager *m, struct row *row, const struct manager_block *block);
#ifdef TXRELAY_PLANT
void manager__requeue_early(struct manager *m, struct row *row);
void manager__trust_watch(struct manager *m, struct row *row, const uint8_t *block_hash);
#endif

#endif
