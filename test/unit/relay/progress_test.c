/* Which steps of a start are reported, and how far each is; the steps are the ones that
 * docs/operation.md lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "relay/progress.h"
#include "relay/status.h"

static const struct progress_seen none = {.step = START_NONE};

static void test_nothing_of_what_is_instant(void **state)
{
    (void)state;
    struct progress p = {0};
    struct progress_seen chain = {.step = START_CHAIN}, metadata = {.step = START_METADATA};
    assert_false(progress_look(&p, 1000, &chain));
    assert_false(progress_look(&p, 1999, &chain));
    assert_false(progress_look(&p, 2000, &metadata)); /* another step begins anew */
    assert_false(progress_look(&p, 2999, &metadata));
    assert_false(progress_look(&p, 3000, &none));
    assert_false(progress_lasts(&p));
    assert_false(progress_look(&p, 90000, &none));
}

static void test_told_again_every_ten_seconds(void **state)
{
    (void)state;
    struct progress p = {0};
    struct progress_seen seen = {.step = START_METADATA};
    unsigned told = 0;
    for (uint64_t now = 1000; now <= 32000; now += 1000)
        told += progress_look(&p, now, &seen);
    assert_int_equal(told, 4); /* after 1, 11, 21 and 31 s */
    assert_true(progress_lasts(&p));
    progress_look(&p, 33000, &none);
    assert_false(progress_lasts(&p));
}

static void test_how_far(void **state)
{
    (void)state;
    struct progress p = {0};
    char text[PROGRESS_TEXT];
    struct progress_seen blocks = {.step = START_BLOCKS, .at = 700, .to = 1700, .relative = true};
    progress_look(&p, 1000, &blocks);
    blocks.at = 950;
    assert_true(progress_look(&p, 4500, &blocks));
    assert_int_equal(p.done, 250);
    assert_int_equal(p.of, 1000);
    assert_non_null(strstr(progress_text(&p, 4500, text), ", 250 of 1000, for 3 s"));
    blocks.at = 600; /* a connection was lost, and it goes back */
    progress_look(&p, 5000, &blocks);
    assert_int_equal(p.done, 0);
    assert_int_equal(p.of, 1100);
    blocks.to = 500; /* a node that is behind what was read */
    progress_look(&p, 5500, &blocks);
    assert_int_equal(p.of, 0);

    struct progress rows = {0};
    struct progress_seen seen = {.step = START_ROWS};
    progress_look(&rows, 1000, &seen);
    assert_true(progress_look(&rows, 2000, &seen));
    assert_non_null(strstr(progress_text(&rows, 2000, text), "the database, for 1 s"));
    seen.at = 5000;
    seen.to = 12001;
    progress_look(&rows, 3000, &seen);
    assert_non_null(strstr(progress_text(&rows, 3000, text), ", 5000 of 12001, for 2 s"));
}

/* One line, whatever takes long; the longest one fits. */
static void test_one_line(void **state)
{
    (void)state;
    struct account_status accounts[2] = {{.alias = "alice"}, {.alias = "bob"}};
    struct service_status s = {.now_ms = 9000, .account_count = 2, .accounts = accounts};
    char line[PROGRESS_TEXT + 40];
    service_status_progress(&s, line, sizeof(line));
    assert_string_equal(line, "");
    for (int step = START_NONE + 1; step < START_STEP_COUNT; step++) {
        accounts[1].progress = (struct progress){.step = (enum start_step)step,
                                                 .since = 1000,
                                                 .told_at = 2000,
                                                 .done = UINT64_MAX,
                                                 .of = UINT64_MAX};
        service_status_progress(&s, line, sizeof(line));
        assert_memory_equal(line, "bob ", 4);
        assert_string_equal(line + strlen(line) - 9, ", for 8 s");
    }
    s.starting[START_PART_CHAIN] =
        (struct progress){.step = START_METADATA, .since = 3000, .told_at = 4000};
    service_status_progress(&s, line, sizeof(line));
    assert_string_equal(line, "reads the runtime's metadata, for 6 s, and 1 more");
}

static void test_the_page_lists_them(void **state)
{
    (void)state;
    static char page[65536];
    FILE *f = fopen(OPERATION_MD, "r");
    assert_non_null(f);
    page[fread(page, 1, sizeof(page) - 1, f)] = 0;
    fclose(f);
    for (int step = START_NONE + 1; step < START_STEP_COUNT; step++) {
        char row[60];
        snprintf(row, sizeof(row), "\n| `%s` |", start_step_name((enum start_step)step));
        if (!strstr(page, row))
            fail_msg("docs/operation.md has no row of the step %s",
                     start_step_name((enum start_step)step));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_of_what_is_instant),
        cmocka_unit_test(test_told_again_every_ten_seconds),
        cmocka_unit_test(test_how_far),
        cmocka_unit_test(test_one_line),
        cmocka_unit_test(test_the_page_lists_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
