/* A height near the block that was read is kept. One far above it counts while somebody repeats it,
 * and is dropped a minute after the last repetition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/heard.h"

static void near(void **state)
{
    (void)state;
    struct heard h = {0};
    heard_base(&h, 1000);
    heard_add(&h, 1000 + HEARD_JUMP, 5);
    heard_add(&h, 1001, 6);
    assert_int_equal(heard_best(&h, 7), 1000 + HEARD_JUMP);
    assert_int_equal(heard_best(&h, 100 * HEARD_KEEP_MS), 1000 + HEARD_JUMP);
}

static void far(void **state)
{
    (void)state;
    struct heard h = {0};
    uint64_t now = 5, high = UINT64_C(1) << 61;
    heard_base(&h, 1000);
    heard_add(&h, 1002, now);
    heard_add(&h, high, now);
    for (unsigned i = 0; i < 5; i++) { /* somebody repeats it */
        now += HEARD_KEEP_MS - 1;
        assert_int_equal(heard_best(&h, now), high);
        heard_add(&h, high, now);
    }
    heard_add(&h, high - 1, now + HEARD_KEEP_MS - 1); /* that is another one */
    assert_int_equal(heard_best(&h, now + HEARD_KEEP_MS), 1002);
}

/* What was far is near once blocks up to there were read, and the other way round. */
static void base_moves(void **state)
{
    (void)state;
    struct heard h = {0};
    heard_base(&h, 1000);
    heard_add(&h, 2000, 0);
    heard_base(&h, 1950);
    assert_int_equal(heard_best(&h, HEARD_KEEP_MS), 2000);
    heard_base(&h, 10);
    assert_int_equal(heard_best(&h, HEARD_KEEP_MS), 0);
}

/* What another relay tells is repeated with its heartbeats, and does not outlive them for long. */
static void told(void **state)
{
    (void)state;
    struct heard h = {0};
    heard_base(&h, 1000);
    heard_add(&h, 1002, 0);
    heard_told(&h, 5000, 0);
    assert_int_equal(heard_best(&h, HEARD_TOLD_MS - 1), 5000);
    assert_int_equal(heard_best(&h, HEARD_TOLD_MS), 1002);
    heard_add(&h, 5000, 0); /* the node said it as well */
    heard_told(&h, 5000, 1);
    assert_int_equal(heard_best(&h, HEARD_KEEP_MS - 1), 5000);
    assert_int_equal(heard_best(&h, HEARD_KEEP_MS), 1002);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near),
        cmocka_unit_test(far),
        cmocka_unit_test(base_moves),
        cmocka_unit_test(told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
