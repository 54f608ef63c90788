/* relay/status.h as metrics, and as an answer to "is it well?". Private to relay/. */
#ifndef RELAY_METRICS_H
#define RELAY_METRICS_H

#include "base/buf.h"
#include "relay/status.h"

/* What the process itself measures. */
struct process_status {
    double resident_bytes, cpu_seconds, start_seconds; /* NaN: /proc does not tell */
    double open_fds;
    double lag_seconds; /* the longest that a timer of the loop was late since the last answer */
};
void process_status(struct process_status *ret); /* but for the lag */

/* now_ms: of the loop's clock, to which times are relative. */
void metrics_text(struct buf *out, const struct service_status *s, const struct process_status *p,
                  uint64_t now_ms);

/* Can this relay work? Appends a line for each reason why not. A blocked account is no reason: that
 * is one account's matter, and its metric says so. */
bool health_ready(const struct service_status *s, struct buf *ret_reasons);

#endif
