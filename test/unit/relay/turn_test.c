/* A turn is as many blocks as were finalized since it began, not as many as were read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "relay/core/poll/turn.h"

static void ends_after_its_blocks(void **state)
{
    (void)state;
    struct turn t = {0};
    assert_false(turn_block(&t, 100, 100, 3));
    assert_false(turn_block(&t, 101, 101, 3));
    assert_false(turn_block(&t, 102, 102, 3));
    assert_true(turn_block(&t, 103, 103, 3));
    assert_false(turn_block(&t, 104, 104, 3));
    assert_false(turn_block(&t, 105, 105, 3));
    assert_true(turn_block(&t, 106, 106, 3)); /* nobody took it: another turn */
}

static void old_blocks_do_not_count(void **state)
{
    (void)state;
    struct turn t = {0};
    for (uint64_t number = 12; number <= 100; number++)
        assert_false(turn_block(&t, number, 100, 3));
    assert_false(turn_block(&t, 102, 102, 3));
    assert_true(turn_block(&t, 103, 103, 3));
}

/* As many blocks as three turns become final while the old ones are read. */
static void reading_takes_longer_than_a_turn(void **state)
{
    (void)state;
    struct turn t = {0};
    for (uint64_t number = 12; number < 109; number++)
        assert_false(turn_block(&t, number, 100 + number / 12, 3));
    assert_false(turn_block(&t, 109, 109, 3));
    assert_false(turn_block(&t, 110, 110, 3));
    assert_false(turn_block(&t, 111, 111, 3));
    assert_true(turn_block(&t, 112, 112, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_after_its_blocks),
        cmocka_unit_test(old_blocks_do_not_count),
        cmocka_unit_test(reading_takes_longer_than_a_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
