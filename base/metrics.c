#include "base/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"

static const char *type_name(enum metric_type type)
{
    static const char *const names[] = {
        [METRIC_GAUGE] = "gauge", [METRIC_COUNTER] = "counter", [METRIC_HISTOGRAM] = "histogram"};
    PRE(type < ARRAY_LEN(names));
    return names[type];
}

void metric_head(struct buf *out, const struct metric *m)
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", m->name, m->help, m->name, type_name(m->type));
}

static void put_escaped(struct buf *out, const char *text)
{
    for (size_t plain; *text; text += plain) {
        plain = strcspn(text, "\\\"\n");
        buf_put(out, text, plain);
        if (!text[plain])
            return;
        buf_puts(out, text[plain] == '\n' ? "\\n" : text[plain] == '"' ? "\\\"" : "\\\\");
        plain++;
    }
}

/* `more` comes behind the labels: the bound of a bucket. */
static void put_name(struct buf *out, const struct metric *m, const char *suffix,
                     const struct metric_label *labels, const char *more)
{
    bool first = true;
    buf_puts(out, m->name);
    buf_puts(out, suffix);
    for (; labels && labels->name; labels++, first = false) {
        buf_puts(out, first ? "{" : ",");
        buf_puts(out, labels->name);
        buf_puts(out, "=\"");
        put_escaped(out, labels->value);
        buf_put_u8(out, '"');
    }
    if (more)
        buf_printf(out, "%sle=\"%s\"", first ? "{" : ",", more);
    buf_puts(out, first && !more ? " " : "} ");
}

/* Nearly all values are small whole numbers, and a scrape has a hundred for each account: these
 * are written without printf. */
static void put_whole(struct buf *out, uint64_t n)
{
    char digits[24], *at = digits + sizeof(digits);
    *--at = '\n';
    do
        *--at = (char)('0' + n % 10);
    while (n /= 10);
    buf_put(out, at, (size_t)(digits + sizeof(digits) - at));
}

static void put_value(struct buf *out, double value)
{
    const double exact = 9007199254740992; /* 2^53 */
    if (value >= 0 && value < exact && value == (double)(uint64_t)value)
        put_whole(out, (uint64_t)value);
    else if (isnan(value))
        buf_puts(out, "NaN\n");
    else if (isinf(value))
        buf_puts(out, value > 0 ? "+Inf\n" : "-Inf\n");
    else
        buf_printf(out, "%.17g\n", value);
}

void metric_sample(struct buf *out, const struct metric *m, const struct metric_label *labels,
                   double value)
{
    put_name(out, m, "", labels, NULL);
    put_value(out, value);
}

double metric_bound(size_t bucket)
{
    PRE(bucket < METRIC_BUCKETS);
    return 0.05 * (double)(UINT64_C(1) << bucket);
}

void metric_observe(struct metric_histogram *h, double seconds)
{
    size_t i = 0;
    while (i < METRIC_BUCKETS && seconds > metric_bound(i))
        i++;
    h->buckets[i]++;
    h->sum += seconds;
}

uint64_t metric_histogram_count(const struct metric_histogram *h)
{
    uint64_t count = 0;
    for (size_t i = 0; i <= METRIC_BUCKETS; i++)
        count += h->buckets[i];
    return count;
}

void metric_histogram_add(struct metric_histogram *h, const struct metric_histogram *more)
{
    for (size_t i = 0; i <= METRIC_BUCKETS; i++)
        h->buckets[i] += more->buckets[i];
    h->sum += more->sum;
}

/* The text of a bound: formatting it for each line would be most of a scrape. */
static const char *bound_text(size_t bucket)
{
    static char texts[METRIC_BUCKETS][16];
    if (!texts[bucket][0])
        snprintf(texts[bucket], sizeof(texts[bucket]), "%g", metric_bound(bucket));
    return texts[bucket];
}

void metric_histogram(struct buf *out, const struct metric *m, const struct metric_label *labels,
                      const struct metric_histogram *h)
{
    PRE(m->type == METRIC_HISTOGRAM);
    uint64_t count = 0;
    for (size_t i = 0; i <= METRIC_BUCKETS; i++) {
        count += h->buckets[i];
        put_name(out, m, "_bucket", labels, i < METRIC_BUCKETS ? bound_text(i) : "+Inf");
        put_whole(out, count);
    }
    put_name(out, m, "_sum", labels, NULL);
    put_value(out, h->sum);
    put_name(out, m, "_count", labels, NULL);
    buf_printf(out, "%" PRIu64 "\n", count);
}
