/* The node is up or down, best blocks, the runtime, and the pace of repair. */
#ifndef RELAY_CORE_TX_CHAIN_H
#define RELAY_CORE_TX_CHAIN_H

#include "state.h"

void manager__chain_ready(struct manager *m);
void manager__runtime(struct manager *m, const struct manager_event *ev);
void manager__chain_back(struct manager *m);
void manager__chain_up(struct manager *m, const struct manager_event *ev);
void manager__chain_down(struct manager *m);
void manager__best(struct manager *m, const struct manager_event *ev);
/* A leadership begins or ends: the adapter says again whether the node is up. */
void manager__chain_forget(struct manager *m);
void manager__final_block(struct manager *m, uint64_t number); /* this height is final */

void manager__chain_tick(struct manager *m, bool block);
void manager__stall_pump(struct manager *m);
uint64_t manager__silent_at(const struct manager *m); /* UINT64_MAX: nothing is to be asked */
void manager__silent_tick(struct manager *m);

#endif
