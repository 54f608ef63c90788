/* Submissions: how many, the answers of nodes, and the watch statuses. */
#ifndef RELAY_CORE_TX_SUBMIT_H
#define RELAY_CORE_TX_SUBMIT_H

#include "state.h"

/* ---- submit.c ---- */
void manager__send_pump(struct manager *m);
void manager__send_forget(struct manager *m); /* what refusals said; the rows are read again */
void manager__gate_open(struct manager *m);   /* what was refused at the gate may be tried */
/* The open row that an answer or a status is about; NULL: it ended meanwhile, or was forgotten. */
struct row *manager__known(const struct manager *m, uint64_t nonce, const uint8_t hash[32],
                           bool *ret_current);
void manager__reply(struct manager *m, const struct manager_event *ev);
/* The probe that was answered while these bytes were on the wire or were signed, or before, showed
 * their nonce used: they are not sent. Where a fork has freed it since, the next probe says so. */
void manager__used_meanwhile(struct manager *m, struct row *row);

/* ---- window.c ---- */
void manager__window_reset(struct manager *m);
bool manager__window_open(const struct manager *m, const struct row *row);
bool manager__wire_open(const struct manager *m);
void manager__window_accepted(struct manager *m); /* a submission was */
/* A block has come: the window grows unless the pool was full in it. */
void manager__window_block(struct manager *m);
void manager__window_shrink(struct manager *m);
/* The pool has no room for the head of the line, and our own later nonces are in it: true, it is
 * signed again with a tip for which a pool makes room. */
bool manager__window_outbid(struct manager *m, struct row *row);

/* ---- statuses.c ---- */
void manager__unwatch(struct manager *m, struct row *row);
void manager__watch_status(struct manager *m, const struct manager_event *ev);
void manager__watch_lost(struct manager *m, const struct manager_event *ev);
void manager__states_pump(struct manager *m);

#endif
