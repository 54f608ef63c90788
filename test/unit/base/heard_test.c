/* A height counts while somebody repeats it. One far above the block that was read is dropped a
 * minute after the last repetition, one near it five minutes after that. */
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
    uint64_t end = 5 + HEARD_KEEP_MS + HEARD_NEAR_MS;
    assert_int_equal(heard_best(&h, end - 1), 1000 + HEARD_JUMP);
    assert_int_equal(heard_best(&h, end), 0);
}

/* What a node says without a new block keeps a height that is near, and none that is far above. */
static void repeated(void **state)
{
    (void)state;
    struct heard h = {0};
    uint64_t now = 0, high = UINT64_C(1) << 61;
    heard_base(&h, 1000);
    heard_add(&h, 1008, now);
    heard_add(&h, high, now);
    for (unsigned i = 0; i < 10; i++, now += HEARD_KEEP_MS - 1) {
        heard_repeat(&h, high, now);
        heard_repeat(&h, 1007, now); /* the fork of 1008 was left */
    }
    assert_int_equal(heard_best(&h, now), 1007);
    heard_told(&h, 1009, now);
    assert_int_equal(heard_best(&h, now + HEARD_TOLD_MS + HEARD_NEAR_MS - 1), 1009);
    now += HEARD_TOLD_MS + HEARD_NEAR_MS;
    heard_repeat(&h, 1007, now);
    assert_int_equal(heard_best(&h, now), 1007);
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
        cmocka_unit_test(near),       cmocka_unit_test(repeated), cmocka_unit_test(far),
        cmocka_unit_test(base_moves), cmocka_unit_test(told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
