/* Times as text: microseconds since 1970 to and from "2026-11-27T22:00:00.123456Z". Private to
 * listen/. */
#ifndef LISTEN_TIME_TEXT_H
#define LISTEN_TIME_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

bool listen__time_parse(const char *text, int64_t *ret_us);
void listen__time_put(struct buf *out, int64_t us);

#endif
