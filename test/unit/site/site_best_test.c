/* The hashes of the best chain: what was read before, where a fork begins, what is final. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tables_internal.h"

static struct best b;

/* The block of this height of fork `fork`. */
static const uint8_t *block(uint64_t number, char fork)
{
    static uint8_t hashes[2][32];
    static unsigned turn;
    uint8_t *h = hashes[turn++ % 2];
    memset(h, 0, 32);
    h[0] = (uint8_t)number;
    h[1] = (uint8_t)fork;
    return h;
}

static void take(uint64_t first, const char *forks)
{
    uint8_t hashes[64][32];
    size_t n = strlen(forks);
    for (size_t i = 0; i < n; i++)
        memcpy(hashes[i], block(first + i, forks[i]), 32);
    best_take(&b, first, (const uint8_t(*)[32])hashes, n);
}

static int clear(void **state)
{
    (void)state;
    best_clear(&b);
    return 0;
}

static void blocks_that_follow_are_added(void **state)
{
    (void)state;
    assert_false(best_has(&b, block(5, 'a')));
    take(5, "aa");
    take(7, "a");
    for (uint64_t n = 5; n <= 7; n++)
        assert_true(best_has(&b, block(n, 'a')));
    assert_false(best_has(&b, block(8, 'a')));
    assert_int_equal(b.count, 3);
}

static void a_fork_replaces_what_it_leaves(void **state)
{
    (void)state;
    take(5, "aaaa");
    take(7, "b"); /* shorter than what it replaces */
    assert_true(best_has(&b, block(6, 'a')));
    assert_true(best_has(&b, block(7, 'b')));
    assert_false(best_has(&b, block(7, 'a')));
    assert_false(best_has(&b, block(8, 'a')));
    take(5, "cc"); /* from its beginning */
    assert_false(best_has(&b, block(6, 'a')));
    assert_int_equal(b.count, 2);
}

static void blocks_behind_a_gap_begin_anew(void **state)
{
    (void)state;
    take(5, "aa");
    take(9, "a");
    assert_false(best_has(&b, block(6, 'a')));
    assert_true(best_has(&b, block(9, 'a')));
    take(3, "a"); /* nor are those below joined */
    assert_int_equal(b.count, 1);
    assert_true(best_has(&b, block(3, 'a')));
}

static void final_blocks_are_forgotten(void **state)
{
    (void)state;
    best_final(&b, 4);
    take(5, "aaaa");
    best_final(&b, 4);
    assert_int_equal(b.count, 4);
    best_final(&b, 6);
    assert_false(best_has(&b, block(6, 'a')));
    assert_true(best_has(&b, block(7, 'a')));
    take(8, "b");
    assert_true(best_has(&b, block(7, 'a')));
    assert_true(best_has(&b, block(8, 'b')));
    best_final(&b, 20);
    assert_int_equal(b.count, 0);
    take(21, "aa");
    assert_true(best_has(&b, block(22, 'a')));
}

#define TEST(name) cmocka_unit_test_teardown(name, clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(blocks_that_follow_are_added), TEST(a_fork_replaces_what_it_leaves),
        TEST(blocks_behind_a_gap_begin_anew), TEST(final_blocks_are_forgotten)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
