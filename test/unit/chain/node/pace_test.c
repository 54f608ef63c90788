/* The pace of calls to an endpoint that limits them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pace.h"

/* A token bucket, as gateways have it. */
struct bucket {
    uint64_t per_s, most;
    uint64_t milli; /* tokens, in thousandths */
    uint64_t at;
};

static bool taken(struct bucket *b, uint64_t now)
{
    b->milli += (now - b->at) * b->per_s;
    b->at = now;
    if (b->milli > b->most * 1000)
        b->milli = b->most * 1000;
    if (b->milli < 1000)
        return false;
    b->milli -= 1000;
    return true;
}

static void no_limit_is_known(void **state)
{
    (void)state;
    struct pace p = {0};
    for (uint64_t i = 0; i < 1000; i++) {
        assert_int_equal(pace_next(&p, 7000), 7000);
        pace_sent(&p, 7000);
        pace_answered(&p, 7000);
    }
}

/* Calls one after another through a bucket for a minute: most of what it takes is used, and little
 * is refused. */
static void against(uint64_t per_s, uint64_t burst)
{
    struct pace p = {0};
    struct bucket b = {.per_s = per_s, .most = burst, .milli = burst * 1000, .at = 5000};
    uint64_t good = 0, refused = 0;
    for (uint64_t now = 5000; now < 65000; now++)
        while (pace_next(&p, now) == now && now < 65000) {
            pace_sent(&p, now);
            if (taken(&b, now)) {
                good++;
                pace_answered(&p, now);
            } else {
                refused++;
                pace_refused(&p, now, now, 0);
            }
            if (!p.per_ks)
                break; /* a round trip takes a millisecond */
        }
    assert_true(good >= 60 * per_s / 2);
    assert_true(refused * 5 < good);
}

static void half_of_what_a_bucket_takes(void **state)
{
    (void)state;
    against(5, 5);
    against(10, 10);
    against(20, 5);
    against(1, 1);
}

static void a_burst_counts_once(void **state)
{
    (void)state;
    struct pace p = {0};
    for (int i = 0; i < 20; i++)
        pace_sent(&p, 1000);
    for (int i = 0; i < 10; i++)
        pace_refused(&p, 1010, 1000, 0);
    assert_int_equal(p.per_ks, 10000);
    assert_true(pace_next(&p, 1010) >= 1500);
    pace_sent(&p, 1600);
    pace_refused(&p, 1610, 1600, 0);
    assert_int_equal(p.per_ks, 5000);
}

static void as_long_as_the_answer_says(void **state)
{
    (void)state;
    struct pace p = {0};
    pace_sent(&p, 1000);
    pace_refused(&p, 1010, 1000, 30000);
    assert_int_equal(pace_next(&p, 1010), 31010);
    pace_refused(&p, 1020, 1000, 60000); /* another one of the same burst knows better */
    assert_int_equal(pace_next(&p, 1020), 61020);
    pace_refused(&p, 1030, 1000, 500); /* none makes the wait shorter: neither of this burst */
    assert_int_equal(pace_next(&p, 1030), 61020);
    pace_refused(&p, 2000, 1900, 0); /* nor of a later one */
    assert_int_equal(pace_next(&p, 2000), 61020);
}

static void the_limit_is_forgotten(void **state)
{
    (void)state;
    struct pace p = {0};
    pace_sent(&p, 1000);
    pace_refused(&p, 1000, 1000, 0);
    assert_int_equal(p.per_ks, 500);
    for (uint64_t now = 1000; now < 301000; now += 100)
        pace_answered(&p, now);
    assert_int_equal(p.per_ks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_limit_is_known),      cmocka_unit_test(half_of_what_a_bucket_takes),
        cmocka_unit_test(a_burst_counts_once),    cmocka_unit_test(as_long_as_the_answer_says),
        cmocka_unit_test(the_limit_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
