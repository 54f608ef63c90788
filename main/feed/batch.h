/* One batch as text: a JSON array of calls, or an object {"number": N, "calls": [...]}. A call is
 * hexadecimal SCALE, or an object with the fields of Call in feed.proto. */
#ifndef MAIN_FEED_BATCH_H
#define MAIN_FEED_BATCH_H

#include <jansson.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "feed/wire/wire.h"

struct feed_batch {
    int64_t number; /* -1: the text has none */
    struct feed_wire_call *calls;
    size_t count;
    /* what the calls point into */
    json_t *json;
    struct buf bytes;
};

/* ERR_ARGUMENT: err says what is wrong, and in which call. */
int feed_batch_read(const char *text, size_t len, struct feed_batch *ret, struct err *err);
void feed_batch_done(struct feed_batch *b);

#endif
