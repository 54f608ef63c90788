/* The hash ring: a worked example, and properties of a ring of names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/ring.h"
#include "election/election.h"

static uint64_t degrees(unsigned d)
{
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)(((wide)d << 64) / 360);
}

/* The example's members: each has one point. */
static const struct {
    const char *name;
    unsigned at;
} nodes[] = {{"A", 315}, {"B", 45}, {"C", 225}, {"D", 135}};

static uint64_t example_hash(const void *data, size_t len)
{
    size_t i = 0;
    while (i < 3 && nodes[i].name[0] != *(const char *)data)
        i++;
    assert_int_equal(len, strlen("A#0"));
    return degrees(nodes[i].at);
}

/* Without those of `down`. */
static struct ring *example(const char *down)
{
    struct ring *r = ring_new(example_hash);
    for (size_t i = 0; i < 4; i++)
        if (!strstr(down, nodes[i].name))
            ring_add(r, nodes[i].name, 1);
    return r;
}

static const char *order_text(const struct ring *r, uint64_t key)
{
    static char text[64];
    size_t order[8];
    text[0] = 0;
    assert_true(ring_count(r) <= 8);
    ring_order(r, key, order);
    for (size_t i = 0; i < ring_count(r); i++)
        text[i] = ring_name(r, order[i])[0], text[i + 1] = 0;
    return text;
}

/* The key decides, not the order of questions. Closest: clockwise-successor would say D for 55. */
static void worked_example(void **state)
{
    (void)state;
    static const struct {
        unsigned at;
        char first;
    } keys[] = {{310, 'A'}, {55, 'B'}, {120, 'D'}, {224, 'C'}, {55, 'B'}, {310, 'A'}};
    struct ring *r = example("");
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        assert_int_equal(order_text(r, degrees(keys[i].at))[0], keys[i].first);
    ring_free(r);
}

/* With A down 310 goes to C (85 degrees), not to B (95); the whole order is A, C, B, D. */
static void next_closest(void **state)
{
    (void)state;
    struct ring *r = example(""), *without = example("A");
    assert_string_equal(order_text(r, degrees(310)), "ACBD");
    assert_string_equal(order_text(without, degrees(310)), "CBD");
    assert_int_equal(ring_distance(degrees(310), degrees(225)) / degrees(1), 85);
    assert_int_equal((ring_distance(degrees(310), degrees(45)) + degrees(1) / 2) / degrees(1), 95);
    ring_free(r);
    ring_free(without);
}

/* To remove who is unavailable and look again is to walk down the same ranking. */
static void remove_is_walk_down(void **state)
{
    (void)state;
    static const char *const downs[] = {"A", "B", "C", "D", "AB", "AC", "BD", "ABC", "BCD"};
    struct ring *all = example("");
    for (uint64_t key = 0; key < 360; key += 7)
        for (size_t i = 0; i < sizeof(downs) / sizeof(downs[0]); i++) {
            struct ring *some = example(downs[i]);
            char expected[8] = "";
            size_t n = 0;
            for (const char *p = order_text(all, degrees((unsigned)key)); *p; p++)
                if (!strchr(downs[i], *p))
                    expected[n++] = *p;
            assert_string_equal(order_text(some, degrees((unsigned)key)), expected);
            ring_free(some);
        }
    ring_free(all);
}

/* A position comes from the name alone, whoever else is there and in whatever order they came. */
static void positions_by_name(void **state)
{
    (void)state;
    struct ring *one = ring_new(election_hash), *two = ring_new(election_hash);
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    for (int i = 0; i < 5; i++) {
        ring_add(one, names[i], RING_POINTS);
        ring_add(two, names[4 - i], RING_POINTS);
    }
    for (uint64_t i = 0; i < 2000; i++) {
        char first[64];
        uint64_t key = election_hash(&i, sizeof(i));
        snprintf(first, sizeof(first), "%s", order_text(one, key));
        assert_string_equal(order_text(two, key), first);
        assert_int_equal(strlen(first), 5);
    }
    ring_free(one);
    ring_free(two);
}

/* Each of five gets a fifth of the keys within a bound; what one leaves goes to all four others, to
 * none of them most of it by far. */
static void shares_are_fair(void **state)
{
    (void)state;
    enum { KEYS = 10000 };
    struct ring *r = ring_new(election_hash);
    size_t first[5] = {0}, heirs[5] = {0}, order[5];
    char name[80];
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof(name), "txrelay-r%d-host-%d-00aabbccddeeff%02d", i, 4000 + i * 17, i);
        ring_add(r, name, RING_POINTS);
    }
    for (uint64_t i = 0; i < KEYS; i++) {
        ring_order(r, election_hash(&i, sizeof(i)), order);
        first[order[0]]++;
        if (order[0] == 0)
            heirs[order[1]]++;
    }
    for (int i = 0; i < 5; i++)
        print_message("member %d: %zu of %d, %zu of member 0's\n", i, first[i], KEYS, heirs[i]);
    for (int i = 0; i < 5; i++)
        assert_in_range(first[i], KEYS / 5 * 6 / 10, KEYS / 5 * 14 / 10);
    for (int i = 1; i < 5; i++)
        assert_in_range(heirs[i], first[0] / 10, first[0] / 10 * 6);
    ring_free(r);
}

static void distances(void **state)
{
    (void)state;
    assert_int_equal(ring_distance(0, UINT64_MAX), 1);
    assert_int_equal(ring_distance(5, 5), 0);
    assert_int_equal(ring_distance(degrees(0), degrees(180)), degrees(180));
    assert_true(ring_distance(degrees(10), degrees(350)) ==
                ring_distance(degrees(350), degrees(10)));
    /* SHA-256 of "abc" begins ba7816bf8f01cfea (FIPS 180-2, appendix B.1). */
    assert_true(election_hash("abc", 3) == UINT64_C(0xba7816bf8f01cfea));
    uint8_t both[64] = {9};
    both[32] = 7;
    /* The place of an account is what its lock is derived from: genesis, then id. */
    assert_true(election_hash(both, 64) == (uint64_t)election_lock_key(both, both + 32, 32));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worked_example),      cmocka_unit_test(next_closest),
        cmocka_unit_test(remove_is_walk_down), cmocka_unit_test(positions_by_name),
        cmocka_unit_test(shares_are_fair),     cmocka_unit_test(distances),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
