/* The rules that doors call: each case of each. */
#include "manager_harness.h"

static void test_era_fit(void **state)
{
    (void)state;
    static const struct {
        uint32_t period;
        uint64_t from, last;
        uint32_t fit;
    } cases[] = {
        {64, 100, 163, 64}, /* its last block is from + period - 1 */
        {64, 100, 162, 32}, {64, 100, 103, 4}, {64, 100, 102, 0}, /* sp-runtime has none below 4 */
        {64, 100, 50, 0},   {4, 100, 1000, 4}, {0, 100, 1000, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(manager_era_fit(cases[i].period, cases[i].from, cases[i].last),
                         cases[i].fit);
}

static void test_attempts(void **state)
{
    (void)state;
    struct script *s = leading_pooled(5, 1);
    assert_int_equal(manager_attempt_of(s->m, hash_of(5, 1), hash_of(5, 1)),
                     MANAGER_ATTEMPT_CURRENT);
    assert_int_equal(manager_attempt_of(s->m, hash_of(5, 2), hash_of(5, 1)),
                     MANAGER_ATTEMPT_FORMER);
    assert_int_equal(manager_attempt_of(s->m, hash_of(5, 1), hash_of(5, 3)), MANAGER_ATTEMPT_NEW);
    script_free(s);
}

/* With an era the anchor moves on by itself. */
static void test_era_anew(void **state)
{
    (void)state;
    for (int banned = 0; banned <= 1; banned++) {
        assert_int_equal(manager_era_anew(MANAGER_ATTEMPT_NEW, banned, 0), 0);
        assert_int_equal(manager_era_anew(MANAGER_ATTEMPT_FORMER, banned, 0), 64);
        assert_int_equal(manager_era_anew(MANAGER_ATTEMPT_FORMER, banned, 16), 16);
        assert_int_equal(manager_era_anew(MANAGER_ATTEMPT_CURRENT, banned, 16), 16);
    }
    assert_int_equal(manager_era_anew(MANAGER_ATTEMPT_CURRENT, false, 0), 0);
    assert_int_equal(manager_era_anew(MANAGER_ATTEMPT_CURRENT, true, 0), 64); /* seed 5630 */
}

static void test_doubt(void **state)
{
    (void)state;
    assert_true(manager_write_doubtful(MANAGER_FX_ADMIT, ERR_DB_UNKNOWN_OUTCOME));
    assert_false(manager_write_doubtful(MANAGER_FX_LOAD, ERR_DB_UNKNOWN_OUTCOME)); /* a read */
    assert_false(manager_write_doubtful(MANAGER_FX_ADMIT, ERR_DB_UNAVAILABLE));    /* never sent */
}

static void test_settled(void **state)
{
    (void)state;
    struct script *s = leading(5);
    assert_true(manager_settled(s->m, 0, 0));
    assert_false(manager_settled(s->m, 1, 0));
    assert_false(manager_settled(s->m, 0, 1));
    script_free(s);
    s = leading_with(&(struct manager_config){.unanswered_max = 1}, 5);
    outbox(s, 2);
    admitted(s);
    expect_submit(s, 5);
    assert_int_equal(manager_view_of(s->m).unsent, 1); /* the second one waits */
    assert_false(manager_settled(s->m, 0, 0));
    script_free(s);
    s = script_new(NULL); /* it leads nothing */
    assert_true(manager_settled(s->m, 1, 1));
    script_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_era_fit),  cmocka_unit_test(test_attempts),
        cmocka_unit_test(test_era_anew), cmocka_unit_test(test_doubt),
        cmocka_unit_test(test_settled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
