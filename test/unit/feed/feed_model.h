/* A feed on virtual time: publishers that crash, stall, lie, send wrong numbers and pipeline;
 * relays that die, lose answers, or believe that they lead when they do not; and a database whose
 * cursor decides. One seed decides all of it. */
#ifndef TEST_FEED_MODEL_H
#define TEST_FEED_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct feed_model_report {
    const char *violation; /* NULL: none */
    uint64_t at_ms;
    uint64_t moved; /* the moves that its cores made */
    uint64_t events, batches, crashes, resends, refused;
};

/* print: what happens, on stdout. */
void feed_model_run(uint64_t seed, bool print, struct feed_model_report *ret);

#endif
