/* What a node says its runtime is: only what has a name and a number counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "node_internal.h"
#include "node_runtime.h"

static void only_a_name_and_a_number(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
    } versions[] = {
        {"{\"specName\":\"node\",\"specVersion\":268,\"transactionVersion\":2}", true},
        {"{\"specName\":\"node\",\"specVersion\":268}", true}, /* as before 2020 */
        {"{\"specName\":\"node\",\"specVersion\":4294967295}", true},
        {"{\"specName\":\"node\",\"specVersion\":4294967296}", false},
        {"{\"specName\":\"node\",\"specVersion\":-1}", false},
        {"{\"specName\":\"node\",\"specVersion\":\"x\"}", false},
        {"{\"specName\":\"node\"}", false},
        {"{\"specVersion\":268}", false},
        {"{\"specName\":7,\"specVersion\":268}", false},
        {"{\"specName\":null,\"specVersion\":268}", false},
        {"{\"specName\":[\"node\"],\"specVersion\":268}", false},
        {"null", false},
        {"[]", false},
    };
    for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
        struct jv_doc doc = {0};
        struct runtime v;
        const char *text = versions[i].text;
        const struct jv *value = jv_read(&doc, text, strlen(text), NULL);
        assert_non_null(value);
        if (runtime_version_read(value, &v) != versions[i].good)
            fail_msg("%s", text);
        if (versions[i].good)
            assert_string_equal(v.spec_name, "node");
        jv_done(&doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(only_a_name_and_a_number)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
