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
void manager__load_new(struct manager *m);
void manager__load_drop(struct manager *m); /* the answer to the one that is out is not wanted */
/* The table has something of this block: a node below it has nothing to say. */
void manager__load_reaches(struct manager *m, uint64_t block);
/* The database refused this write, or stored it: does the back-off of loads go on? */
void manager__load_write_refused(struct manager *m, enum manager_effect_type write);
void manager__load_write_stored(struct manager *m, enum manager_effect_type write);

#endif
