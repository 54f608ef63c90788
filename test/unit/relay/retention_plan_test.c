/* When a relay keeps house: calm, one run at a time, only by who may. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "relay/core/poll/retention_plan.h"

enum { HOUR = 3600000, START = 1000000 };

static struct retention_plan plan_of(uint64_t interval_ms)
{
    struct retention_plan p;
    retention_plan_init(&p, interval_ms, START, 7);
    return p;
}

static void first_after_a_minute(void **state)
{
    (void)state;
    struct retention_plan p = plan_of(HOUR);
    uint64_t due = retention_plan_next(&p);
    assert_in_range(due, START + 54000, START + 60000);
    assert_false(retention_plan_begin(&p, due - 1, true));
    assert_int_equal(retention_plan_next(&p), due);
    assert_true(retention_plan_begin(&p, due, true));
    assert_int_equal(retention_plan_next(&p), UINT64_MAX);
    assert_false(retention_plan_begin(&p, due + HOUR, true)); /* one at a time */
}

static void who_may_not_is_asked_again(void **state)
{
    (void)state;
    struct retention_plan p = plan_of(HOUR);
    uint64_t due = retention_plan_next(&p);
    assert_false(retention_plan_begin(&p, due, false));
    assert_in_range(retention_plan_next(&p), due + 9000, due + 10000);
    assert_true(retention_plan_begin(&p, due + 10000, true));
}

static void the_end_says_how_long_it_rests(void **state)
{
    (void)state;
    static const struct {
        enum retention_end end;
        uint64_t least, most;
    } rests[] = {{RETENTION_DONE, HOUR - HOUR / 10, HOUR},
                 {RETENTION_MORE, 900, 1000},
                 {RETENTION_FAILED, 270000, 300000}};
    struct retention_plan p = plan_of(HOUR);
    uint64_t now = START;
    for (size_t i = 0; i < 3; i++) {
        now = retention_plan_next(&p);
        assert_true(retention_plan_begin(&p, now, true));
        now += 5;
        retention_plan_ended(&p, now, rests[i].end);
        assert_in_range(retention_plan_next(&p), now + rests[i].least, now + rests[i].most);
    }
}

/* Nothing waits longer than the interval; not all relays at the same moment. */
static void a_short_interval_bounds_all(void **state)
{
    (void)state;
    struct retention_plan p = plan_of(200);
    assert_in_range(retention_plan_next(&p), START + 180, START + 200);
    assert_true(retention_plan_begin(&p, START + 200, true));
    retention_plan_ended(&p, START + 300, RETENTION_FAILED);
    assert_in_range(retention_plan_next(&p), START + 480, START + 500);

    struct retention_plan other;
    retention_plan_init(&other, HOUR, START, 8);
    p = plan_of(HOUR);
    assert_int_not_equal(retention_plan_next(&p), retention_plan_next(&other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_after_a_minute),
        cmocka_unit_test(who_may_not_is_asked_again),
        cmocka_unit_test(the_end_says_how_long_it_rests),
        cmocka_unit_test(a_short_interval_bounds_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
