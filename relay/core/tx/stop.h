/* Rows that are given up: by deadlines and cancellations, or because they block the line. */
#ifndef RELAY_CORE_TX_STOP_H
#define RELAY_CORE_TX_STOP_H

#include "state.h"

/* ---- stop.c ---- */
void manager__poll_requests(struct manager *m); /* a request poll is wanted */
void manager__requests_polled(struct manager *m, const struct manager_event *ev);
/* no more bytes fit before its deadline: stop */
void manager__late(struct manager *m, struct row *row);
void manager__stop(struct row *row, const char *outcome, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* what a stop means in its state */
void manager__stop_now(struct manager *m, struct row *row);
/* The row wants new bytes or wants to be sent again, and must not: it has become a FILL, or a
 * RESIGN whose bytes are a filler, or it ends. */
bool manager__try_stop(struct manager *m, struct row *row);
/* A filler with a higher tip is signed against the row's own bytes; false: it may not pay more. */
bool manager__try_replace(struct manager *m, struct row *row);
/* A node refuses it as invalid: a filler is signed against it, with the same tip if that may not
 * rise. */
void manager__give_up(struct manager *m, struct row *row, const char *why);

/* ---- head.c ---- */
/* The lowest nonce that is in no block yet; NULL: there is none. */
struct row *manager__head(const struct manager *m);
void manager__head_tick(struct manager *m);

#endif
