/* Admission: rows of the outbox get nonces, also presigned ones, whose bytes are given. */
#ifndef RELAY_CORE_TX_ADMIT_H
#define RELAY_CORE_TX_ADMIT_H

#include "state.h"

/* ---- admit.c ---- */
void manager__outbox(struct manager *m, const struct manager_event *ev);
void manager__admit_pump(struct manager *m);
/* How many more rows may get a nonce now. */
uint32_t manager__room(const struct manager *m);

/* ---- admitted.c ---- */
/* The admission in flight was stored. */
void manager__admitted(struct manager *m, const struct manager_event *ev);
/* nothing is on its way any more */
void manager__admit_over(struct manager *m);

/* ---- presigned.c ---- */
/* Those among the rows of the outbox. Returns the nonce that calls have to stay below (the next
 * one: such a row is being admitted); ret_rejects: those that end now. */
uint64_t manager__presigned_rows(struct manager *m, const struct manager_event *ev,
                                 struct tx_end **ret_rejects, size_t *ret_count);
/* The row wants other bytes, and there are none: it ends if its own can never get in, or waits
 * to be sent again. */
void manager__presigned_retry(struct manager *m, struct row *row, enum row_reason reason);
/* a block is final: which of them can never get in? */
void manager__presigned_dead(struct manager *m);
/* rows of our own wait above it */
bool manager__hole_ours(const struct manager *m, const struct row *hole);

#endif
