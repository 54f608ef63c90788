/* From promotion, or a write whose outcome is unknown, to the rows of the table. */
#ifndef RELAY_CORE_TX_LOAD_H
#define RELAY_CORE_TX_LOAD_H

#include "state.h"

void manager__promote(struct manager *m, int64_t epoch);
/* Drop all rows and read the table again, at once or after a back-off. Not in IDLE. */
void manager__reload(struct manager *m, bool at_once);
/* Drop everything that came from the table or from queries; keep what the chain reported. */
void manager__forget(struct manager *m);
/* How many rows the table has, as far as the first ones show it; 0: not known, or loaded. */
size_t manager__to_load(const struct manager *m);
void manager__snapshot(struct manager *m, const struct manager_event *ev);
void manager__load_failed(struct manager *m, int code);
void manager__load_pump(struct manager *m);

#endif
