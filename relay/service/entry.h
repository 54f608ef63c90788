/* An entry: an address at which others reach this relay (control, metrics, feeds, HTTP). It may not
 * open, because its port is taken or its certificate has expired. The relay leads all the same: it
 * logs why, and tries again until the entry is open or given up. */
#ifndef RELAY_ENTRY_H
#define RELAY_ENTRY_H

#include "base/error.h"
#include "loop/loop.h"

struct service;

struct entry {
    /* set by the owner */
    const char *name; /* for the log */
    struct service *service;
    int (*open)(struct entry *e, struct err *err); /* a try */
    /* private */
    struct loop_timer *timer; /* NULL: it is open, or not begun */
    unsigned tries;
    bool is_open;
};

void entry_begin(struct entry *e); /* the first try; entry_end must follow */
void entry_end(struct entry *e);   /* no more tries */
bool entry_is_open(const struct entry *e);

#endif
