/* The memory database and Postgres keep the same rules: the same random calls from a seed, every
 * answer and every table compared. A difference names the seed and the call; DIFF_SEED runs that
 * seed alone, DIFF_SEEDS and DIFF_CALLS say how many of each, DIFF_EVERY after how many calls the
 * tables are compared. */
#include "base/alloc.h"
#include "diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum plant plant;
static struct diff d;

static int setup(void **state)
{
    (void)state;
    diff_open(&d);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    diff_close(&d);
    return 0;
}

/* ---- tables ---- */

static size_t line_len(const char *s)
{
    return strcspn(s, "\n");
}

static void report_line(const char *pg, const char *mem)
{
    char *x = xstrndup(pg, line_len(pg)), *y = xstrndup(mem, line_len(mem));
    diff_found(&d, "tables differ", x, y);
    free(x);
    free(y);
}

static void compare_tables(void)
{
    struct buf b = {0};
    char *pg = diff_admin(&d, diff_tables_sql());
    diff_tables_mem(&d, &b);
    const char *x = pg, *y = buf_str(&b);
    while (*x && *y && line_len(x) == line_len(y) && !strncmp(x, y, line_len(x))) {
        x += line_len(x) + (x[line_len(x)] != 0);
        y += line_len(y) + (y[line_len(y)] != 0);
    }
    if (*x || *y)
        report_line(x, y);
    free(pg);
    buf_done(&b);
}

/* ---- a seed ---- */

static void enroll_all(void)
{
    static uint8_t ids[ACCOUNTS][32];
    static const uint8_t genesis[32] = {7};
    for (size_t i = 0; i < ACCOUNTS; i++) {
        ids[i][0] = (uint8_t)(i + 1);
        union any_request u = {
            .enroll = {.alias = diff_text(&d, "account-%zu", i),
                       .scheme = "sr25519",
                       .address = diff_text(&d, "5Account%zu", i),
                       .account_id = {ids[i], 32},
                       .genesis = {genesis, 32},
                       .lock_key = i % 2 ? -1000 - (int64_t)i : 1000 + (int64_t)i,
                       .watch_only = i == 3,
                       .era_longest = i % 2 ? 4096 : 64,
                       .era_immortal = i % 2}};
        diff_request(&d, 0, MEM_REQUEST_enroll, &u);
        diff_policy(&d, diff_account(&d, i), &(struct mem_policy){0});
    }
}

/* A rule of the memory database is broken: one row of one table says something else. */
static bool spoil(void)
{
    for (size_t i = 0; i < mem_account_count(d.db); i++) {
        struct mem_account *a = d.db->t.accounts[i];
        if (!a->pending_count)
            continue;
        a->pending[a->pending_count - 1]->attempts++;
        return true;
    }
    return false;
}

static void run_seed(uint64_t seed, size_t calls, size_t every, size_t spoil_at)
{
    d.seed = seed;
    d.rng = (struct rng){.state = seed};
    d.text_count = 0;
    diff_reset(&d);
    buf_clear(&d.said);
    enroll_all();
    for (d.call = 1; d.call <= calls && !d.differs && diff_real_us() < d.began_us + 20 * 1000000;
         d.call++) {
        buf_clear(&d.said);
        diff_any_call(&d);
        if (spoil_at && d.call >= spoil_at && spoil())
            spoil_at = 0;
        if (d.differs || d.call % every != 0)
            continue;
        compare_tables();
        diff_notices_compare(&d);
    }
    diff_close_transaction(&d);
    if (d.differs)
        return;
    compare_tables();
    diff_notices_compare(&d);
}

static size_t number(const char *name, size_t otherwise)
{
    const char *text = getenv(name);
    return text ? (size_t)strtoull(text, NULL, 10) : otherwise;
}

static void test_same(void **state)
{
    (void)state;
    uint64_t first = number("DIFF_SEED", 1);
    size_t seeds = getenv("DIFF_SEED") ? 1 : number("DIFF_SEEDS", 4);
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        run_seed(seed, number("DIFF_CALLS", 700), number("DIFF_EVERY", 10), 0);
        if (d.differs)
            fail_msg("%s", buf_str(&d.why));
    }
}

/* The comparison finds a row that is wrong, at the next look at the tables. */
static void test_finds_a_difference(void **state)
{
    (void)state;
    run_seed(1, 400, 10, 200);
    assert_true(d.differs);
    assert_non_null(strstr(buf_str(&d.why), "differ"));
    assert_in_range(d.call, 200, 400);
}

/* So does it a rule that is broken: each of these is found within some seeds. */
static void test_finds_planted_faults(void **state)
{
    static const enum plant plants[] = {PLANT_CLAIM_ALWAYS, PLANT_RENEW_ANY, PLANT_NO_FENCE,
                                        PLANT_HELD_TAKEN};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(plants); i++) {
        plant = plants[i];
        d.differs = false;
        for (uint64_t seed = 1; seed <= 16 && !d.differs; seed++)
            run_seed(seed, 500, 10, 0);
        if (!d.differs)
            fail_msg("fault %d of base/plant.h is not found", (int)plants[i]);
    }
    plant = PLANT_NONE;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_finds_a_difference),
        cmocka_unit_test(test_finds_planted_faults),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
