/* The embedded files are those of schema/migrations, numbered without a hole, and schema/functions,
 * and whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "schema/schema.h"

static void test_versions_have_no_hole(void **state)
{
    (void)state;
    const struct schema_set *set = schema_set();
    assert_true(set->count >= 1);
    for (size_t i = 0; i < set->count; i++) {
        char prefix[32];
        snprintf(prefix, sizeof(prefix), "%04zu_", i + 1);
        assert_memory_equal(set->migrations[i].name, prefix, 5);
    }
}

static void check_file(const struct schema_file *file)
{
    assert_int_equal(strlen(file->sql), file->len);
    assert_memory_equal(file->sql, "-- txrelay", 10);
    assert_int_equal(file->sql[file->len - 1], '\n');
    assert_null(strchr(file->sql, '\\')); /* psql's own commands would not run over libpq */
    assert_int_equal(strspn(file->checksum, "0123456789abcdef"), 64);
    assert_int_equal(strlen(file->checksum), 64);
}

static void test_texts_are_whole(void **state)
{
    (void)state;
    const struct schema_set *set = schema_set();
    for (size_t i = 0; i < set->count; i++)
        check_file(&set->migrations[i]);
    for (size_t i = 0; i < set->functions_count; i++)
        check_file(&set->functions[i]);
    assert_int_equal(strlen(set->functions_checksum), 64);
    assert_non_null(strstr(set->migrations[0].sql, "CREATE TABLE txrelay.schema_version"));
}

/* The first file notes what there is, the last ones make triggers and rights: of functions that the
 * files before made. */
static void test_functions_are_in_order(void **state)
{
    (void)state;
    const struct schema_set *set = schema_set();
    assert_string_equal(set->functions[0].name, "00_begin.sql");
    for (size_t i = 1; i < set->functions_count; i++)
        assert_true(strcmp(set->functions[i - 1].name, set->functions[i].name) < 0);
    assert_string_equal(set->functions[set->functions_count - 1].name, "91_grants.sql");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions_have_no_hole),
        cmocka_unit_test(test_texts_are_whole),
        cmocka_unit_test(test_functions_are_in_order),
    };
    return cmocka_run_group_tests_name("schema", tests, NULL, NULL);
}
