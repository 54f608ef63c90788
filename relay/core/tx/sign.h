/* New bytes and fillers: when they are wanted, what they pay, how long they can be included. */
#ifndef RELAY_CORE_TX_SIGN_H
#define RELAY_CORE_TX_SIGN_H

#include "state.h"

/* ---- resign.c ---- */
void manager__resign(struct manager *m, struct row *row, enum row_reason reason);
void manager__eras(struct manager *m);
void manager__late_resigns(struct manager *m);
void manager__sign_pump(struct manager *m);

/* ---- tip.c ---- */
struct row_terms *manager__terms(struct row *row);
/* New bytes of its own need an era that ends by its deadline. */
bool manager__may_sign(const struct manager *m, const struct row *row);
u128 manager__tip_first(const struct manager *m, const struct manager_outbox_row *o);
u128 manager__tip_next(const struct manager *m, const struct row *row);
u128 manager__tip_of_filler(const struct manager *m); /* at a nonce without a transaction */
/* more was asked than it pays */
bool manager__tip_short(const struct manager *m, const struct row *row);
void manager__tip_paid(struct row *row, u128 tip);
/* It is to pay more by this, as far as the cap allows; false: the cap is reached. */
bool manager__try_add_tip(const struct manager *m, struct row *row, u128 more);
/* one step; false: the cap is reached */
bool manager__try_raise_tip(struct manager *m, struct row *row);
/* by the ladder; true: it is a RESIGN now */
bool manager__try_outbid(struct manager *m, struct row *row);
void manager__sign_soon(struct manager *m, struct row *row);
void manager__bump(struct manager *m, const struct tx_stop *s);
/* true: it has become a RESIGN or a FILL */
bool manager__try_unblock_head(struct manager *m, struct row *row);

/* ---- validity.c ---- */
/* Some of its bytes may be in a pool and may still be included. */
bool manager__live(const struct manager *m, const struct row *row);
/* none of its bytes can get in */
bool manager__dead(const struct manager *m, const struct row *row);
/* Blocks for which bytes at this nonce are valid; 0: for ever. */
uint32_t manager__period(const struct manager *m, uint64_t nonce);
/* Nothing can be signed at this nonce (UINT64_MAX: behind another one) while finality lags. */
bool manager__unborn(const struct manager *m, uint64_t nonce);
/* The same of every nonce, with an alert. */
bool manager__stillborn(struct manager *m);
/* The best block that something may end by: not one that is far above the last one that was read,
 * because the node may have invented it. */
uint64_t manager__plausible_best(const struct manager *m);
/* UINT64_MAX: no deadline. 0: none fits now, because it is late or because finality lags. */
uint32_t manager__era_period(const struct manager *m, uint64_t nonce, uint64_t deadline_block);
/* None will fit any more, however near finality comes to the best block. */
bool manager__era_late(const struct manager *m, uint64_t deadline_block);
/* One may fit once finality has caught up. */
bool manager__era_waits(const struct manager *m, uint64_t deadline_block);
/* true, with the reason: the runtime is not the one that the call was made for. */
bool manager__guarded(const struct manager *m, uint32_t guard, char *reason, size_t size);

#endif
