/* Questions to pool and chain, and what becomes of rows by the answers. */
#ifndef RELAY_CORE_TX_PROBE_H
#define RELAY_CORE_TX_PROBE_H

#include "state.h"

/* ---- probe.c ---- */
/* Something is uncertain: a probe is wanted now, or with the next tick. */
static inline void manager__probe_soon(struct manager *m)
{
    m->probe.now = true;
}
static inline void manager__probe_at_beat(struct manager *m)
{
    m->probe.at_tick = true;
}
void manager__pool_answer(struct manager *m, const struct manager_event *ev);
void manager__nonce_answer(struct manager *m, const struct manager_event *ev);
void manager__unfinal_answer(struct manager *m, const struct manager_event *ev);
void manager__probe_stop(struct manager *m);
bool manager__probe_may(const struct manager *m);
void manager__probe_pump(struct manager *m);
void manager__probe_tick(struct manager *m);

/* ---- judge.c ---- */
void manager__unsure(struct manager *m, struct row *row, bool at_once, bool tentative);
void manager__pooled(struct manager *m, struct row *row, bool found);
/* What waited to be sent again, or for new bytes, was in some pool all the time: whatever was
 * answered, a refusal as invalid included. */
void manager__nonces_used(struct manager *m, uint64_t best_nonce);
void manager__judge_all(struct manager *m, uint64_t best_nonce);

#endif
