/* The text format of Prometheus: what a scraper would refuse or read as another number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/metrics.h"

static const struct metric plain = {"some_total", METRIC_COUNTER, "What it counts."};
static const struct metric times = {"some_seconds", METRIC_HISTOGRAM, "How long."};

static void samples(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } values[] = {{0, "0"},
                  {1, "1"},
                  {0.25, "0.25"},
                  {1234567890123456, "1234567890123456"},
                  {(double)NAN, "NaN"},
                  {(double)INFINITY, "+Inf"},
                  {-(double)INFINITY, "-Inf"}};
    struct buf out = {0};
    metric_head(&out, &plain);
    assert_string_equal(buf_str(&out),
                        "# HELP some_total What it counts.\n# TYPE some_total counter\n");
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        char line[80];
        snprintf(line, sizeof(line), "some_total %s\n", values[i].text);
        buf_clear(&out);
        metric_sample(&out, &plain, NULL, values[i].value);
        assert_string_equal(buf_str(&out), line);
    }
    buf_done(&out);
}

/* An alias is any text, and must not add a sample. */
static void labels(void **state)
{
    (void)state;
    const struct metric_label rows[] = {
        {"account", "a\"} 9\nb\\"}, {"outcome", "ok"}, {NULL, NULL}};
    struct buf out = {0};
    metric_sample(&out, &plain, rows, 3);
    assert_string_equal(buf_str(&out),
                        "some_total{account=\"a\\\"} 9\\nb\\\\\",outcome=\"ok\"} 3\n");
    buf_done(&out);
}

static void histograms(void **state)
{
    (void)state;
    struct metric_histogram h = {0};
    struct buf out = {0};
    const struct metric_label rows[] = {{"stage", "pool"}, {NULL, NULL}};
    metric_observe(&h, 0);
    metric_observe(&h, 0.05); /* a bound belongs to its bucket */
    metric_observe(&h, 0.06);
    metric_observe(&h, 1e9);
    metric_histogram(&out, &times, rows, &h);
    const char *text = buf_str(&out);
    assert_non_null(strstr(text, "some_seconds_bucket{stage=\"pool\",le=\"0.05\"} 2\n"));
    assert_non_null(strstr(text, "some_seconds_bucket{stage=\"pool\",le=\"0.1\"} 3\n"));
    assert_non_null(strstr(text, "some_seconds_bucket{stage=\"pool\",le=\"1638.4\"} 3\n"));
    assert_non_null(strstr(text, "some_seconds_bucket{stage=\"pool\",le=\"+Inf\"} 4\n"));
    assert_non_null(strstr(text, "some_seconds_count{stage=\"pool\"} 4\n"));
    assert_non_null(strstr(text, "some_seconds_sum{stage=\"pool\"} 1000000000.11"));
    buf_clear(&out);
    metric_histogram(&out, &times, NULL, &h);
    assert_non_null(strstr(buf_str(&out), "some_seconds_bucket{le=\"0.05\"} 2\n"));
    assert_non_null(strstr(buf_str(&out), "some_seconds_count 4\n"));
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples),
        cmocka_unit_test(labels),
        cmocka_unit_test(histograms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
