/* Metrics in the text format of Prometheus (version 0.0.4). A metric is a row of its owner's table:
 * name, type and help; the owner gives the values when it is asked for them, so nothing is kept
 * twice. Names follow Prometheus' conventions: base units (seconds, bytes, ratio) at the end, and
 * _total for counters alone. */
#ifndef BASE_METRICS_H
#define BASE_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum metric_type { METRIC_GAUGE, METRIC_COUNTER, METRIC_HISTOGRAM };

struct metric {
    const char *name;
    enum metric_type type;
    const char *help; /* one sentence */
};

/* Names end with NULL. Values may be any text. */
struct metric_label {
    const char *name, *value;
};

/* The two lines before the samples of a metric. All samples of one metric follow one another. */
void metric_head(struct buf *out, const struct metric *m);
void metric_sample(struct buf *out, const struct metric *m, const struct metric_label *labels,
                   double value);

/* How long something took, in buckets that double from 50 ms to 27 minutes: chains with blocks of
 * half a second and of twelve seconds use the same ones. */
enum { METRIC_BUCKETS = 16 };
struct metric_histogram {
    uint64_t buckets[METRIC_BUCKETS + 1]; /* the last one: above all bounds */
    double sum;
};
double metric_bound(size_t bucket); /* PRE: bucket < METRIC_BUCKETS */
void metric_observe(struct metric_histogram *h, double seconds);
uint64_t metric_histogram_count(const struct metric_histogram *h);
void metric_histogram_add(struct metric_histogram *h, const struct metric_histogram *more);
void metric_histogram(struct buf *out, const struct metric *m, const struct metric_label *labels,
                      const struct metric_histogram *h);

#endif
