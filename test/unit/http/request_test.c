/* What a request asks for: each path has its route and no other, arguments are decoded or refused,
 * tokens, hosts and origins are judged by their whole text. openapi.json has exactly these routes,
 * each with its scope. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "http/core/request.h"

static struct http_match m;

static int match(const char *method, const char *target)
{
    http_match(method, target, &m);
    return m.status;
}

static void each_path_has_its_route(void **state)
{
    (void)state;
    assert_int_equal(match("GET", "/v1/transactions"), 200);
    assert_int_equal(m.route, HTTP_ROUTE_TRANSACTIONS);
    assert_int_equal(m.params.count, 0);
    assert_int_equal(match("POST", "/v1/transactions"), 200);
    assert_int_equal(m.route, HTTP_ROUTE_ENQUEUE);
    assert_int_equal(match("GET", "/v1/transactions/17"), 200);
    assert_int_equal(m.route, HTTP_ROUTE_TRANSACTION);
    assert_string_equal(http_param(&m.params, "id"), "17");
    assert_int_equal(match("POST", "/v1/accounts/a%2Fb%20c/pause?x=1+2&y=&z"), 200);
    assert_int_equal(m.route, HTTP_ROUTE_PAUSE);
    assert_string_equal(http_param(&m.params, "account"), "a/b c");
    assert_string_equal(http_param(&m.params, "x"), "1 2");
    assert_string_equal(http_param(&m.params, "y"), "");
    assert_string_equal(http_param(&m.params, "z"), "");
    assert_null(http_param(&m.params, "id"));
    assert_int_equal(match("GET", "/v1/accounts/%C3%A9%F0%9F%98%80"), 200);
    assert_string_equal(http_param(&m.params, "account"), "\xc3\xa9\xf0\x9f\x98\x80");
}

static void other_paths_and_methods_have_none(void **state)
{
    static const char *const none[] = {"",
                                       "//",
                                       "/page/",
                                       "/page/x/y",
                                       "/v1",
                                       "/v1/",
                                       "/v1/transactions/",
                                       "//v1/transactions",
                                       "/v1/transactions/1/",
                                       "/v1/transactions/1/fly",
                                       "/v1/transactions/1/cancel/2",
                                       "/V1/transactions",
                                       "/v1/accounts//pause",
                                       "/v1%2Ftransactions",
                                       "/openapi.json/",
                                       "/../etc/passwd"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        if (match("GET", none[i]) != 404)
            fail_msg("%s: %d", none[i], m.status);
    assert_int_equal(match("GET", "/v1/transactions/1/cancel"), 405);
    assert_string_equal(m.allow, "POST");
    assert_int_equal(match("DELETE", "/v1/transactions"), 405);
    assert_string_equal(m.allow, "GET, HEAD, POST");
    assert_int_equal(match("PUT", "/openapi.json?x=%"), 405);
}

static void bad_arguments_are_refused(void **state)
{
    static const char *const bad[] = {"/v1/transactions/%",
                                      "/v1/transactions/%1",
                                      "/v1/transactions/%zz",
                                      "/v1/transactions/%00",
                                      "/v1/transactions/%0a",
                                      "/v1/transactions/%7f",
                                      "/v1/transactions/%ff",
                                      "/v1/transactions/%c0%80",
                                      "/v1/transactions/%c3",
                                      "/v1/transactions/%ed%a0%80",
                                      "/v1/transactions/%f4%90%80%80",
                                      "/v1/transactions/%e0%80%80",
                                      "/v1/transactions?a=%",
                                      "/v1/transactions?a=%00",
                                      "/v1/transactions?%ff=1",
                                      "/v1/transactions?a=1&a=2",
                                      "/v1/transactions/1?id=2",
                                      "/v1/transactions?a&b&c&d&e&f&g&h&i&j&k&l&m&n&o&p&q"};
    char longer[6000];
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (match("GET", bad[i]) != 400 || !m.why)
            fail_msg("%s: %d", bad[i], m.status);
    memset(longer, 'a', sizeof(longer));
    longer[sizeof(longer) - 1] = 0;
    memcpy(longer, "/v1/accounts/", 13);
    assert_int_equal(match("GET", longer), 400);
    memcpy(longer, "/v1/cluster?a=", 14);
    assert_int_equal(match("GET", longer), 400);
}

static void a_token_is_one_word_after_bearer(void **state)
{
    char longer[HTTP_TOKEN_MAX + 20] = "Bearer ";
    (void)state;
    assert_string_equal(http_bearer("Bearer abc-._~+/=9"), "abc-._~+/=9");
    assert_string_equal(http_bearer("bearer  x"), "x");
    assert_null(http_bearer(NULL));
    assert_null(http_bearer(""));
    assert_null(http_bearer("Bearer"));
    assert_null(http_bearer("Bearer "));
    assert_null(http_bearer("Basic abc"));
    assert_null(http_bearer("Bearer a b"));
    assert_null(http_bearer("Bearer a\"b"));
    memset(longer + 7, 'a', HTTP_TOKEN_MAX);
    assert_non_null(http_bearer(longer));
    longer[7 + HTTP_TOKEN_MAX] = 'a';
    assert_null(http_bearer(longer));
}

static void hosts_and_origins_are_judged_whole(void **state)
{
    (void)state;
    assert_true(http_host_is_ours("127.0.0.1:80", NULL));
    assert_true(http_host_is_ours("localhost", NULL));
    assert_true(http_host_is_ours("[::1]:9", NULL));
    assert_true(http_host_is_ours("Relay.example:80", "relay.example"));
    assert_false(http_host_is_ours("relay.example:80", NULL));
    assert_false(http_host_is_ours("relay.example.evil", "relay.example"));
    assert_false(http_host_is_ours("relay.exampl", "relay.example"));
    assert_false(http_host_is_ours("127.0.0.1.evil.example", NULL));
    assert_false(http_host_is_ours("localhost.evil.example:80", NULL));
    assert_false(http_host_is_ours("", NULL));
    assert_false(http_host_is_ours("", ""));
    assert_true(http_origin_is_ours(NULL, "a:1"));
    assert_true(http_origin_is_ours("http://a:1", "A:1"));
    assert_false(http_origin_is_ours("http://a:2", "a:1"));
    assert_false(http_origin_is_ours("http://a", "a:1"));
    assert_false(http_origin_is_ours("null", "null"));
    assert_false(http_origin_is_ours("", "a:1"));
}

static void a_rate_lets_a_burst_through_and_then_its_pace(void **state)
{
    struct http_rate r = {0};
    unsigned n = 0;
    (void)state;
    for (int i = 0; i < 50; i++)
        n += http_rate_take(&r, 10, 1000);
    assert_int_equal(n, 10);
    assert_false(http_rate_take(&r, 10, 1099));
    assert_true(http_rate_take(&r, 10, 1100));
    assert_false(http_rate_take(&r, 10, 1100));
    for (n = 0; http_rate_take(&r, 10, 1000000); n++)
        ;
    assert_int_equal(n, 10); /* it does not save up */
}

/* ---- the document ---- */

static const char *lower(const char *method, char room[16])
{
    size_t i = 0;
    for (; method[i] && i < 15; i++)
        room[i] = (char)(method[i] | 0x20);
    room[i] = 0;
    return room;
}

static void the_document_has_each_route_and_no_other(void **state)
{
    json_error_t error;
    json_t *doc = json_load_file(OPENAPI_JSON, JSON_REJECT_DUPLICATES, &error), *item;
    const char *path;
    size_t described = 0;
    (void)state;
    if (!doc)
        fail_msg("%s", error.text);
    json_t *paths = json_object_get(doc, "paths");
    for (int i = 0; i < HTTP_ROUTE_COUNT; i++) {
        char method[16];
        const struct http_route *r = &http_routes[i];
        json_t *op = json_object_get(json_object_get(paths, r->path), lower(r->method, method));
        if (!op)
            fail_msg("%s %s is not in the document", r->method, r->path);
        json_t *security = json_object_get(op, "security");
        const char *scope = json_string_value(
            json_array_get(json_object_get(json_array_get(security, 0), "token"), 0));
        assert_true(json_is_array(security));
        assert_string_equal(scope ? scope : "", http_scope_name(r->scope));
    }
    json_object_foreach(paths, path, item) described += json_object_size(item);
    assert_int_equal(described, HTTP_ROUTE_COUNT);
    json_decref(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_path_has_its_route),
        cmocka_unit_test(other_paths_and_methods_have_none),
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(a_token_is_one_word_after_bearer),
        cmocka_unit_test(hosts_and_origins_are_judged_whole),
        cmocka_unit_test(a_rate_lets_a_burst_through_and_then_its_pace),
        cmocka_unit_test(the_document_has_each_route_and_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
