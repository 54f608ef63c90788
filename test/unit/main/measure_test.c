/* What `txrelay check` asks an endpoint, and what an answer says of its method. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "measure.h"

static const struct measure_question reads = {.method = "chain_getHeader"};
static const struct measure_question submits = {.method = "author_submitExtrinsic",
                                                .submits = true};

static void each_answer(void **state)
{
    (void)state;
    static const struct {
        const char *error;
        enum measure_is read, submit;
    } answers[] = {
        {"{\"code\":-32601,\"message\":\"Method not found\"}", MEASURE_CLOSED, MEASURE_CLOSED},
        {"{\"code\":-32000,\"message\":\"RPC call is unsafe to be called externally\"}",
         MEASURE_CLOSED, MEASURE_CLOSED},
        {"{\"code\":403,\"message\":\"Forbidden\"}", MEASURE_CLOSED, MEASURE_CLOSED},
        {"{\"code\":1001,\"message\":\"Extrinsic has invalid format: Not enough data\"}",
         MEASURE_BROKEN, MEASURE_OPEN},
        {"{\"code\":1010,\"message\":\"Invalid Transaction\"}", MEASURE_BROKEN, MEASURE_OPEN},
        {"{\"code\":-32602,\"message\":\"Invalid params\"}", MEASURE_BROKEN, MEASURE_OPEN},
        {"{\"code\":-32005,\"message\":\"Too many requests\"}", MEASURE_TOO_MANY, MEASURE_TOO_MANY},
        {"{\"code\":429,\"message\":\"Too Many Requests\"}", MEASURE_TOO_MANY, MEASURE_TOO_MANY},
        {"{\"code\":-32006,\"message\":\"Too many subscriptions\"}", MEASURE_TOO_MANY,
         MEASURE_TOO_MANY},
        {"{\"code\":-32008,\"message\":\"Response is too big\"}", MEASURE_TOO_LARGE,
         MEASURE_TOO_LARGE},
        {"{\"code\":4003,\"message\":\"State already discarded\"}", MEASURE_BROKEN, MEASURE_BROKEN},
        {"{\"code\":-32603,\"message\":\"Internal error\"}", MEASURE_BROKEN, MEASURE_BROKEN},
        {"{}", MEASURE_BROKEN, MEASURE_BROKEN},
    };
    struct jv_doc doc = {0};
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        const struct jv *error = jv_read(&doc, answers[i].error, strlen(answers[i].error), NULL);
        assert_non_null(error);
        assert_string_equal(measure_is_name(measure_judge(&reads, error)),
                            measure_is_name(answers[i].read));
        assert_string_equal(measure_is_name(measure_judge(&submits, error)),
                            measure_is_name(answers[i].submit));
    }
    assert_int_equal(measure_judge(&reads, NULL), MEASURE_OPEN);
    jv_done(&doc);
}

/* The page tells operators of each method and of each line that check prints. */
static void the_page_lists_them(void **state)
{
    (void)state;
    static char page[1 << 18];
    FILE *f = fopen(OPERATION_MD, "r");
    assert_non_null(f);
    page[fread(page, 1, sizeof(page) - 1, f)] = 0;
    fclose(f);
    const char *begin = strstr(page, "## What a node must offer and keep");
    char *end = strstr(page, "\n## Failures");
    assert_true(begin && end && begin < end);
    *end = 0;
    for (size_t i = 0; i < measure_question_count(); i++) {
        char text[80];
        snprintf(text, sizeof(text), "`%s`", measure_questions[i].feature);
        if (!strstr(begin, text))
            fail_msg("docs/operation.md does not name the line %s", text);
        snprintf(text, sizeof(text), "`%s`", measure_questions[i].method);
        if (!strstr(begin, text))
            fail_msg("docs/operation.md does not name the method %s", text);
    }
}

/* Bytes that a node could decode might be sent to the chain. */
static void nothing_is_sent(void **state)
{
    (void)state;
    size_t ways = 0;
    for (size_t i = 0; i < measure_question_count(); i++) {
        const struct measure_question *q = &measure_questions[i];
        bool named = strstr(q->method, "submit") || strstr(q->method, "broadcast");
        assert_int_equal(q->submits, named);
        ways += q->submits;
        if (q->submits) /* a SCALE length in its longest form, without the length */
            assert_string_equal(q->params, "[\"0xff\"]");
    }
    assert_int_equal(ways, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_answer),
        cmocka_unit_test(the_page_lists_them),
        cmocka_unit_test(nothing_is_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
