/* Several sites with one account on virtual time: each has a database, a leader that crashes, a
 * node that lags; messages are lost, doubled and late; links are cut; databases lose commits;
 * blocks are reorganised. One seed decides all of it. */
#ifndef TEST_SITE_MODEL_H
#define TEST_SITE_MODEL_H

#include "site/core/site.h"

struct site_model_report {
    const char *violation; /* NULL: none */
    uint64_t at_ms;
    struct site_moves moved;
    uint64_t events, messages, items, rows, crashes, losses, reorganisations, demoted, adopted,
        fillers, delegated, cancelled, healed_ms;
};

/* print: what happens, on stdout. */
void site_model_run(uint64_t seed, bool print, struct site_model_report *ret);

#endif
