/* The embedded migrations are those of schema/migrations, numbered without a hole, and whole. */
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
    assert_true(schema_count() >= 1);
    for (size_t i = 0; i < schema_count(); i++) {
        struct schema_migration m = schema_migration(i);
        char prefix[8];
        snprintf(prefix, sizeof(prefix), "%04d_", m.version);
        assert_int_equal(m.version, i + 1);
        assert_memory_equal(m.name, prefix, 5);
    }
    assert_int_equal(schema_latest(), schema_count());
}

static void test_texts_are_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < schema_count(); i++) {
        struct schema_migration m = schema_migration(i);
        assert_int_equal(strlen(m.sql), m.len);
        assert_memory_equal(m.sql, "-- txrelay ", 11);
        assert_int_equal(m.sql[m.len - 1], '\n');
        assert_null(strchr(m.sql, '\\')); /* psql's own commands would not run over libpq */
    }
    assert_non_null(strstr(schema_migration(0).sql, "CREATE TABLE txrelay.schema_version"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions_have_no_hole),
        cmocka_unit_test(test_texts_are_whole),
    };
    return cmocka_run_group_tests_name("schema", tests, NULL, NULL);
}
