/* The table of commands: what a reader may rely on in every one of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <string.h>

#include "command.h"

struct letters {
    const char *name[128]; /* what each letter means */
};

static void note(void *arg, const struct argp_option *o)
{
    struct letters *l = arg;
    assert_non_null(o->doc);
    if (o->key <= 0 || o->key >= 128 || !isalpha(o->key))
        return;
    if (l->name[o->key])
        assert_string_equal(l->name[o->key], o->name);
    l->name[o->key] = o->name;
}

static void test_one_letter_has_one_meaning(void **state)
{
    (void)state;
    struct letters l = {0};
    for (const struct command *const *c = commands; *c; c++)
        command_each_option(*c, note, &l);
    assert_string_equal(l.name['N'], "limit");
    assert_string_equal(l.name['s'], "since");
}

static void is_endpoint(void *arg, const struct argp_option *o)
{
    bool *found = arg;
    *found = *found || !strcmp(o->name, "endpoint");
}

static void test_commands_that_ask_no_node_take_no_endpoint(void **state)
{
    (void)state;
    int with = 0, without = 0;
    for (const struct command *const *c = commands; *c; c++) {
        bool found = false;
        command_each_option(*c, is_endpoint, &found);
        assert_int_equal(found, !(*c)->local && !((*c)->without & COMMAND_WITHOUT_CHAIN));
        with += found;
        without += !found;
    }
    assert_true(with > 0 && without > with);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_letter_has_one_meaning),
        cmocka_unit_test(test_commands_that_ask_no_node_take_no_endpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
