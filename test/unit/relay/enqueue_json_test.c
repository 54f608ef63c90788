/* A transaction as JSON: every field, and what is said about the ones that cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "service/enqueue_json.h"

static int read_enqueue(struct enqueue_json *x, const char *text, struct err *err)
{
    json_t *request = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_non_null(request);
    *x = (struct enqueue_json){0};
    int rc = enqueue_json_read(x, request, err);
    json_decref(request);
    assert_int_equal(rc, err->code);
    return rc;
}

static void test_every_field(void **state)
{
    (void)state;
    struct err err;
    struct enqueue_json x;
    read_enqueue(
        &x,
        "{\"cmd\":\"send\",\"account\":\"alice\",\"call\":\"0x0102\",\"key\":\"k\",\"creator\":"
        "\"c\",\"priority\":-7,\"not_before\":1,\"deadline\":\"2026-01-31T12:00:00.25Z\",\"spec_"
        "version\":9,\"tip\":12,\"max_tip\":\"340282366920938463463374607431768211455\",\"deadline_"
        "block\":5000000000,\"retries\":3,\"traceparent\":\"00-t\"}",
        &err);
    assert_int_equal(err.code, 0);
    assert_string_equal(x.req.account, "alice");
    assert_int_equal(x.req.call.len, 2);
    assert_memory_equal(x.req.call.data, "\x01\x02", 2);
    assert_string_equal(x.req.key, "k");
    assert_string_equal(x.req.creator, "c");
    assert_int_equal(x.req.priority, -7);
    assert_int_equal(x.req.not_before_ms, 1);
    assert_int_equal(x.req.deadline_ms, 1769860800250);
    assert_int_equal(x.req.guard, 9);
    assert_string_equal(x.req.tip, "12");
    assert_string_equal(x.req.max_tip, "340282366920938463463374607431768211455");
    assert_int_equal(x.req.deadline_block, 5000000000);
    assert_int_equal(x.req.retries, 3);
    assert_string_equal(x.req.traceparent, "00-t");
    enqueue_json_done(&x);
}

static void test_left_out(void **state)
{
    (void)state;
    struct err err;
    struct enqueue_json x;
    read_enqueue(&x, "{\"account\":\"alice\",\"call\":\"00\",\"tip\":null,\"deadline\":null}",
                 &err);
    assert_int_equal(err.code, 0);
    assert_null(x.req.key);
    assert_null(x.req.creator);
    assert_null(x.req.tip);
    assert_null(x.req.max_tip);
    assert_int_equal(x.req.priority, 0);
    assert_int_equal(x.req.not_before_ms, 0);
    assert_int_equal(x.req.deadline_ms, 0);
    assert_int_equal(x.req.deadline_block, 0);
    assert_int_equal(x.req.guard, 0);
    assert_int_equal(x.req.retries, 0);
    assert_null(x.req.traceparent);
    enqueue_json_done(&x);
}

static void test_spans(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {{"1", 1},
                 {"\"250ms\"", 250},
                 {"\"90s\"", 90000},
                 {"\"15m\"", 900000},
                 {"\"2h\"", 7200000},
                 {"\"7d\"", 604800000}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err;
        struct enqueue_json x;
        char *text = xasprintf("{\"account\":\"a\",\"call\":\"00\",\"delay\":%s,\"expires_in\":%s}",
                               cases[i].text, cases[i].text);
        read_enqueue(&x, text, &err);
        assert_int_equal(err.code, 0);
        assert_int_equal(x.req.delay_ms, cases[i].ms);
        assert_int_equal(x.req.expires_in_ms, cases[i].ms);
        enqueue_json_done(&x);
        free(text);
    }
}

static void test_refused_by_name_and_value(void **state)
{
    (void)state;
    static const struct {
        const char *fields, *name, *value;
    } cases[] = {
        {"\"deadlin\":1", "deadlin", "deadline_block"},
        {"\"priority\":1001", "priority", "1001"},
        {"\"priority\":\"5\"", "priority", "\"5\""},
        {"\"priority\":0.5", "priority", "0.5"},
        {"\"retries\":101", "retries", "101"},
        {"\"retries\":-1", "retries", "-1"},
        {"\"traceparent\":1", "traceparent", "1"},
        {"\"tip\":-1", "tip", "-1"},
        {"\"tip\":\"1e3\"", "tip", "1e3"},
        {"\"tip\":1.5", "tip", "1.5"},
        {"\"tip\":\"\"", "tip", "\"\""},
        {"\"tip\":\"340282366920938463463374607431768211456\"", "tip", "768211456"},
        {"\"max_tip\":[1]", "max_tip", "[1]"},
        {"\"deadline_block\":0", "deadline_block", "0"},
        {"\"spec_version\":2147483648", "spec_version", "2147483648"},
        {"\"deadline\":\"soon\"", "deadline", "soon"},
        {"\"deadline\":0", "deadline", "0"},
        {"\"deadline\":\"2026-02-29T00:00:00Z\"", "deadline", "2026-02-29"},
        {"\"deadline\":\"2026-01-31T12:00:00\"", "deadline", "2026"}, /* where? */
        {"\"deadline\":\"2026-01-31T24:00:00Z\"", "deadline", "24:00"},
        {"\"deadline\":\"2026-01-31T12:00:00Zz\"", "deadline", "Zz"},
        {"\"not_before\":true", "not_before", "true"},
        {"\"delay\":0", "delay", "0"},
        {"\"delay\":\"1 hour\"", "delay", "1 hour"},
        {"\"expires_in\":-5", "expires_in", "-5"},
        {"\"expires_in\":\"m\"", "expires_in", "15m"},
        {"\"expires_in\":\"15\"", "expires_in", "15"},
        {"\"expires_in\":\"1500y\"", "expires_in", "1500y"},
        {"\"expires_in\":\"999999999d\"", "expires_in", "999999999d"},
        {"\"key\":5", "key", "5"},
        {"\"call\":\"0xzz\"", "call", "0xzz"},
        {"\"call\":7", "call", "7"},
        {"\"account\":7", "account", "7"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err;
        struct enqueue_json x;
        char *text = xasprintf("{%s}", cases[i].fields);
        read_enqueue(&x, text, &err);
        assert_int_equal(err.code, ERR_ARGUMENT);
        if (!strstr(err.text, cases[i].name) || !strstr(err.text, cases[i].value))
            fail_msg("%s: \"%s\"", text, err.text);
        enqueue_json_done(&x);
        free(text);
    }
}

static void test_missing(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"{\"call\":\"00\"}", "account"},
                                           {"{\"account\":\"a\"}", "call"},
                                           {"[1]", "object"},
                                           {"7", "object"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err;
        struct enqueue_json x;
        assert_int_equal(read_enqueue(&x, cases[i][0], &err), ERR_ARGUMENT);
        assert_non_null(strstr(err.text, cases[i][1]));
        enqueue_json_done(&x);
    }
}

/* The same instant however it is written; leap days and the ends of years are where they belong. */
static void test_times(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {
        {"1970-01-01T00:00:00.001Z", 1},
        {"2000-02-29T23:59:59Z", 951868799000},
        {"2000-03-01 00:00:00z", 951868800000},
        {"2026-01-31T12:00:00+02:00", 1769853600000},
        {"2026-01-31T08:30:00-01:30", 1769853600000},
        {"2026-12-31T23:59:59.9994Z", 1798761599999},
        {"2100-03-01T00:00:00Z", 4107542400000},
        {"9999-12-31T23:59:59Z", 253402300799000},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err;
        struct enqueue_json x;
        char *text =
            xasprintf("{\"account\":\"a\",\"call\":\"00\",\"deadline\":\"%s\"}", cases[i].text);
        if (read_enqueue(&x, text, &err))
            fail_msg("%s: %s", text, err.text);
        assert_int_equal(x.req.deadline_ms, cases[i].ms);
        enqueue_json_done(&x);
        free(text);
    }
}

static int read_ask(struct ask_json *x, const char *cmd, const char *text, struct err *err)
{
    json_t *request = json_loads(text, 0, NULL);
    assert_non_null(request);
    assert_true(ask_json_is(cmd));
    *x = (struct ask_json){0};
    int rc = ask_json_read(x, cmd, request, err);
    json_decref(request);
    return rc;
}

static void test_asked_for_later(void **state)
{
    (void)state;
    struct err err;
    struct ask_json x;
    assert_int_equal(read_ask(&x, "cancel", "{\"id\":17}", &err), 0);
    assert_int_equal(x.req.id, 17);
    assert_ptr_equal(x.start, store_cancel_start);
    ask_json_done(&x);
    assert_int_equal(read_ask(&x, "bump", "{\"id\":17}", &err), 0);
    assert_null(x.req.tip);
    assert_ptr_equal(x.start, store_bump_start);
    ask_json_done(&x);
    assert_int_equal(read_ask(&x, "bump", "{\"id\":17,\"tip\":900}", &err), 0);
    assert_string_equal(x.req.tip, "900");
    ask_json_done(&x);
    assert_int_equal(read_ask(&x, "resume", "{\"account\":\"alice\"}", &err), 0);
    assert_string_equal(x.req.account, "alice");
    assert_ptr_equal(x.start, store_resume_start);
    ask_json_done(&x);
    assert_int_equal(read_ask(&x, "retry", "{\"id\":17,\"cmd\":\"retry\",\"deadline\":null}", &err),
                     0);
    assert_int_equal(x.req.id, 17);
    assert_int_equal(x.req.deadline_ms, 0);
    assert_int_equal(x.req.deadline_block, 0);
    assert_ptr_equal(x.start, store_retry_start);
    ask_json_done(&x);
    assert_int_equal(
        read_ask(&x, "retry", "{\"id\":17,\"deadline\":1000,\"deadline_block\":9}", &err), 0);
    assert_int_equal(x.req.deadline_ms, 1000);
    assert_int_equal(x.req.deadline_block, 9);
    ask_json_done(&x);
    assert_int_equal(
        read_ask(&x, "retry", "{\"id\":17,\"deadline\":\"infinity\",\"deadline_block\":0}", &err),
        0);
    assert_true(x.req.deadline_ms == STORE_ASK_NONE && x.req.deadline_block == STORE_ASK_NONE);
    ask_json_done(&x);
    static const char *const bad[][3] = {
        {"retry", "{}", "id is missing"},
        {"retry", "{\"id\":1,\"deadlin\":1}", "retry has no field \"deadlin\""},
        {"retry", "{\"id\":1,\"deadline\":\"soon\"}", "deadline"},
        {"retry", "{\"id\":1,\"deadline_block\":-1}", "deadline_block"},
        {"cancel", "{\"id\":1,\"tip\":1}", "cancel has no field \"tip\""},
        {"cancel", "{}", "id"},
        {"cancel", "{\"id\":\"17\"}", "17"},
        {"bump", "{\"id\":0}", "0"},
        {"bump", "{\"id\":1,\"tip\":\"x\"}", "tip"},
        {"resume", "{}", "account"},
        {"resume", "{\"account\":1}", "account"}};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(read_ask(&x, bad[i][0], bad[i][1], &err), ERR_ARGUMENT);
        assert_non_null(strstr(err.text, bad[i][2]));
        ask_json_done(&x);
    }
    assert_false(ask_json_is("send"));
    assert_false(ask_json_is(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_field),    cmocka_unit_test(test_left_out),
        cmocka_unit_test(test_spans),          cmocka_unit_test(test_refused_by_name_and_value),
        cmocka_unit_test(test_missing),        cmocka_unit_test(test_times),
        cmocka_unit_test(test_asked_for_later)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
