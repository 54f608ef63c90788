/* The selector ranks the sites of an account: the worked example of the requirements, and 10,000
 * random cases that two processes and another implementation decide alike. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/ring.h"
#include "base/rng.h"
#include "election/election.h"
#include "site/core/selector.h"

enum { MEMBERS_MAX = 8, CASES = 10000 };

static const char *program;
static const uint8_t account[SELECTOR_ACCOUNT_BYTES] = {1};

static uint64_t degrees(unsigned d)
{
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)(((wide)d << 64) / 360);
}

/* A=315, B=45, C=225, D=135; the ranges 0, 1 and 2 hash to 310, 55 and 120. */
static uint64_t example_hash(const void *data, size_t len)
{
    static const unsigned members[] = {315, 45, 225, 135}, ranges[] = {310, 55, 120};
    const uint8_t *text = data;
    if (len == strlen("A#0"))
        return degrees(members[text[0] - 'A']);
    assert_int_equal(len, SELECTOR_ACCOUNT_BYTES + 8);
    assert_memory_equal(text, account, SELECTOR_ACCOUNT_BYTES);
    assert_in_range(text[len - 1], 0, 2);
    return degrees(ranges[text[len - 1]]);
}

/* Members of `names` as letters, ranked for a height with ranges of four blocks. */
static const char *ranked(const char *names, uint64_t height)
{
    static char text[MEMBERS_MAX + 1];
    struct ring *r = ring_new(example_hash);
    size_t order[MEMBERS_MAX], count = strlen(names);
    for (size_t i = 0; i < count; i++)
        ring_add(r, (char[]){names[i], 0}, 1);
    selector_rank(r, account, selector_range(height, 4), order);
    for (size_t i = 0; i < count; i++)
        text[i] = ring_name(r, order[i])[0];
    text[count] = 0;
    ring_free(r);
    return text;
}

/* The closest in either direction: the next one clockwise would give D for 55. */
static void worked_example(void **state)
{
    (void)state;
    static const char firsts[] = "AAAABBBBDDDD";
    for (uint64_t height = 0; height < 12; height++)
        assert_int_equal(ranked("ABCD", height)[0], firsts[height]);
}

static void the_next_closest_takes_the_place_of_one_that_is_away(void **state)
{
    (void)state;
    assert_string_equal(ranked("ABCD", 0), "ACBD");
    assert_string_equal(ranked("BCD", 0), "CBD"); /* C at 85 degrees, B at 95 */
}

static void positions_depend_on_names_alone(void **state)
{
    (void)state;
    assert_string_equal(ranked("DCBA", 0), "ACBD");
    assert_string_equal(ranked("DB", 4), "BD"); /* a committee may be a part of a group */
}

static void a_range_has_one_ranking(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 40; n += 3)
        for (uint64_t h = 0; h < 500; h++) {
            uint64_t range = selector_range(h, n);
            assert_true(range * n <= h && h < (range + 1) * n);
        }
}

struct shares {
    unsigned first[5], together;
};

static struct shares shares_of(unsigned members)
{
    enum { RANGES = 4000 };
    struct shares s = {{0}, 0};
    struct ring *r = ring_new(election_hash);
    uint8_t other[SELECTOR_ACCOUNT_BYTES] = {2};
    size_t order[5], second[5];
    for (unsigned i = 0; i < members; i++) {
        char name[] = "site-a.example";
        name[5] = (char)('a' + i);
        ring_add(r, name, RING_POINTS);
    }
    for (uint64_t range = 0; range < RANGES; range++) {
        selector_rank(r, account, range, order);
        selector_rank(r, other, range, second);
        s.first[order[0]]++;
        s.together += (unsigned)(order[0] == second[0]);
    }
    ring_free(r);
    for (unsigned i = 0; i < members; i++)
        assert_in_range(s.first[i], RANGES / members * 7 / 10, RANGES / members * 13 / 10);
    return s;
}

static void each_member_gets_its_share_of_the_ranges(void **state)
{
    (void)state;
    shares_of(2);
    shares_of(3);
    shares_of(5);
}

/* PQ2: with the range alone as the key, both would be at one site all the time. */
static void accounts_do_not_rotate_in_step(void **state)
{
    (void)state;
    assert_in_range(shares_of(4).together, 4000 / 4 * 7 / 10, 4000 / 4 * 13 / 10);
}

/* 10,000 random committees, accounts, heights and views of who is available; a line for each. */
static void rankings(struct buf *out)
{
    struct rng rng = {17};
    for (int i = 0; i < CASES; i++) {
        uint8_t who[SELECTOR_ACCOUNT_BYTES];
        for (size_t b = 0; b < sizeof(who); b++)
            who[b] = (uint8_t)rng_next(&rng);
        struct ring *r = ring_new(election_hash);
        size_t order[MEMBERS_MAX], count = 1 + rng_below(&rng, MEMBERS_MAX);
        for (size_t m = 0; m < count; m++) {
            char name[32];
            snprintf(name, sizeof(name), "site-%u",
                     (unsigned)rng_below(&rng, 1000) * 8 + (unsigned)m);
            ring_add(r, name, RING_POINTS);
        }
        uint64_t height = rng_below(&rng, UINT32_MAX), blocks = 1 + rng_below(&rng, 1000);
        uint64_t away = rng_below(&rng, 256);
        selector_rank(r, who, selector_range(height, blocks), order);
        for (size_t m = 0; m < count; m++)
            if (!(away >> order[m] & 1))
                buf_printf(out, "%s ", ring_name(r, order[m]));
        buf_puts(out, "\n");
        ring_free(r);
    }
}

static void two_processes_rank_10000_cases_alike(void **state)
{
    (void)state;
    struct buf here = {0}, there = {0};
    rankings(&here);
    char command[4096];
    snprintf(command, sizeof(command), "'%s' rankings", program);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    for (size_t n; (n = fread(buf_grow(&there, 65536), 1, 65536, f)) > 0;)
        there.len += n;
    assert_int_equal(pclose(f), 0);
    assert_string_equal(buf_str(&there), buf_str(&here));
    /* The same in Python, from the words of selector.h and ring.h alone. */
    assert_true(election_hash(here.data, here.len) == UINT64_C(0x045031c7e2b91c4a));
    buf_done(&here);
    buf_done(&there);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worked_example),
        cmocka_unit_test(the_next_closest_takes_the_place_of_one_that_is_away),
        cmocka_unit_test(positions_depend_on_names_alone),
        cmocka_unit_test(a_range_has_one_ranking),
        cmocka_unit_test(each_member_gets_its_share_of_the_ranges),
        cmocka_unit_test(accounts_do_not_rotate_in_step),
        cmocka_unit_test(two_processes_rank_10000_cases_alike),
    };
    program = argv[0];
    if (argc > 1 && strcmp(argv[1], "rankings") == 0) {
        struct buf out = {0};
        rankings(&out);
        bool written = fwrite(out.data, 1, out.len, stdout) == out.len;
        buf_done(&out);
        return written ? 0 : 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
