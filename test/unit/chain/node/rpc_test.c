/* Calls against a scripted server on the same loop: every way an answer can come, or not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/host.h"
#include "support_rpc.h"

/* ---- calls ---- */

static void test_echo(void **state)
{
    (void)state;
    struct rig rig;
    struct ask a = {0};
    rpc_rig_start(&rig);
    ask(&rig, &a, "echo", "[1,\"two\"]", 0);
    await(&rig, &a);
    assert_int_equal(a.call.err.code, 0);
    assert_string_equal(a.result, "[1,\"two\"]");
    assert_true(a.call.written);
    ask_done(&a);
    rpc_rig_done(&rig);
}

static void test_answers_in_another_order(void **state)
{
    (void)state;
    struct rig rig;
    unsigned order = 0;
    struct ask a = {.order = &order}, b = {.order = &order};
    rpc_rig_start(&rig);
    ask(&rig, &a, "hold", "[]", 0);
    ask(&rig, &b, "echo", "[2]", 0);
    await(&rig, &a);
    await(&rig, &b);
    assert_int_equal(b.place, 1);
    assert_int_equal(a.place, 2);
    assert_string_equal(a.result, "\"held\"");
    assert_string_equal(b.result, "[2]");
    ask_done(&a);
    ask_done(&b);
    rpc_rig_done(&rig);
}

static void test_errors(void **state)
{
    (void)state;
    struct rig rig;
    struct ask a = {0}, b = {0}, c = {0}, d = {0};
    rpc_rig_start(&rig);
    ask(&rig, &a, "fail", "[]", 0);
    await(&rig, &a);
    assert_int_equal(a.call.err.code, ERR_RPC);
    assert_int_equal(a.call.rpc_code, 1010);
    assert_string_equal(a.call.err.text, "Invalid Transaction");
    assert_string_equal(a.call.rpc_data, "Transaction is outdated");
    assert_null(a.call.result);
    ask(&rig, &b, "fail_object", "[]", 0);
    await(&rig, &b);
    assert_int_equal(b.call.rpc_code, -1);
    assert_string_equal(b.call.err.text, "{\"invalid\":{\"stale\":null}}");
    assert_string_equal(b.call.rpc_data, "{\"a\":[1]}");
    ask(&rig, &c, "unreadable", "[]", 0);
    await(&rig, &c);
    assert_int_equal(c.call.err.code, ERR_RPC);
    assert_int_equal(c.call.rpc_code, -32007);
    assert_string_equal(c.call.rpc_data, "");
    ask(&rig, &d, "empty", "[]", 0);
    await(&rig, &d);
    assert_int_equal(d.call.err.code, ERR_PROTOCOL);
    ask_done(&a);
    ask_done(&b);
    ask_done(&c);
    ask_done(&d);
    rpc_rig_done(&rig);
}

static void test_garbage_is_survived(void **state)
{
    (void)state;
    struct rig rig;
    struct ask a = {0};
    rpc_rig_start(&rig);
    ask(&rig, &a, "garbage", "[]", 0);
    await(&rig, &a);
    assert_int_equal(a.call.err.code, 0);
    assert_string_equal(a.result, "\"still here\"");
    assert_int_equal(rig.lost, 0);
    ask_done(&a);
    rpc_rig_done(&rig);
}

static void test_large_message(void **state)
{
    (void)state;
    struct rig rig;
    struct ask a = {0}, b = {0};
    rpc_rig_start(&rig);
    ask(&rig, &a, "big", "[5242880]", 0);
    await(&rig, &a);
    assert_int_equal(a.call.err.code, 0);
    assert_int_equal(strlen(a.result), 5242880 + 2);
    ask(&rig, &b, "big", "[100000]", 0);
    await(&rig, &b);
    assert_int_equal(strlen(b.result), 100000 + 2);
    ask_done(&a);
    ask_done(&b);
    rpc_rig_done(&rig);
}

static void test_large_request(void **state)
{
    (void)state;
    struct rig rig;
    struct ask a = {0}, b = {0};
    size_t n = 3u << 20;
    char *params = xmalloc(n + 8);
    memset(params, 'y', n);
    memcpy(params, "[\"", 2);
    memcpy(params + n, "\"]", 3);
    rpc_rig_start(&rig);
    ask(&rig, &a, "echo", params, 0);
    ask(&rig, &b, "echo", "[1]", 0);
    await(&rig, &a);
    await(&rig, &b);
    assert_int_equal(a.call.err.code, 0);
    assert_string_equal(a.result, params);
    free(params);
    ask_done(&a);
    ask_done(&b);
    rpc_rig_done(&rig);
}

static void test_message_over_the_limit(void **state)
{
    (void)state;
    struct rig rig;
    struct ask a = {0};
    rpc_rig_open(&rig);
    struct rpc_config config = rpc_rig_config(&rig);
    config.message_max_bytes = 100000;
    client_start(&rig, &config);
    assert_true(run_until(rig.loop, is_open, &rig, LIMIT_MS));
    ask(&rig, &a, "big", "[200000]", 0);
    await(&rig, &a);
    assert_int_equal(a.call.err.code, ERR_NET);
    assert_non_null(strstr(rig.why.text, "more than 100000 bytes"));
    assert_true(run_until(rig.loop, is_open, &rig, LIMIT_MS));
    ask_done(&a);
    rpc_rig_done(&rig);
}

/* The deadline holds while other calls are answered; the connection stays (cases.md 85). */
static bool answered_enough(void *arg)
{
    return ((struct rig *)arg)->seen > 3;
}

static void test_deadline_while_traffic_flows(void **state)
{
    (void)state;
    struct rig rig;
    struct ask a = {0}, b = {0}, c = {0};
    rpc_rig_start(&rig);
    ask(&rig, &a, "mute", "[]", 60);
    ask(&rig, &b, "echo", "[]", 0);
    await(&rig, &b);
    await(&rig, &a);
    assert_int_equal(a.call.err.code, ERR_TIMEOUT);
    assert_non_null(strstr(a.call.err.text, "mute"));
    assert_true(a.call.written);
    assert_int_equal(rig.lost, 0);
    ask(&rig, &c, "echo", "[]", 0);
    await(&rig, &c);
    assert_int_equal(c.call.err.code, 0);
    assert_false(answered_enough(&rig));
    ask_done(&a);
    ask_done(&b);
    ask_done(&c);
    rpc_rig_done(&rig);
}

/* A line that answers nothing at all is made anew although its pongs flow. */
static void test_mute_line_is_replaced(void **state)
{
    (void)state;
    struct rig rig;
    struct ask a = {0}, b = {0};
    rpc_rig_start(&rig);
    ask(&rig, &a, "mute", "[]", 60);
    ask(&rig, &b, "mute", "[]", 0);
    await(&rig, &a);
    await(&rig, &b);
    assert_int_equal(a.call.err.code, ERR_TIMEOUT);
    assert_int_equal(b.call.err.code, ERR_NET);
    assert_int_equal(rig.lost, 1);
    assert_true(run_until(rig.loop, is_open, &rig, LIMIT_MS));
    assert_int_equal(rig.opened, 2);
    ask_done(&a);
    ask_done(&b);
    rpc_rig_done(&rig);
}

static void test_not_connected(void **state)
{
    (void)state;
    struct rig rig;
    struct ask a = {0};
    rpc_rig_open(&rig);
    struct rpc_config config = rpc_rig_config(&rig);
    client_start(&rig, &config);
    ask(&rig, &a, "echo", "[]", 0);
    await(&rig, &a);
    assert_int_equal(a.call.err.code, ERR_NET);
    assert_false(a.call.written);
    ask_done(&a);
    rpc_rig_done(&rig);
}

/* ---- the gate ---- */

static bool gate(void *arg)
{
    return *(bool *)arg;
}

static void test_gate(void **state)
{
    (void)state;
    struct rig rig;
    struct ask a = {0}, b = {0}, c = {0};
    bool open = true;
    rpc_rig_start(&rig);
    rpc_call_start(rig.rpc, &a.call, "echo", "[1]", 0, gate, &open, asked);
    open = false; /* after the start, before the write */
    rpc_call_start(rig.rpc, &b.call, "echo", "[2]", 0, NULL, NULL, asked);
    await(&rig, &a);
    await(&rig, &b);
    assert_int_equal(a.call.err.code, ERR_NOT_LEADER);
    assert_false(a.call.written);
    assert_string_equal(b.result, "[2]");
    assert_int_equal(rig.seen, 1);
    open = true;
    rpc_call_start(rig.rpc, &c.call, "echo", "[3]", 0, gate, &open, asked);
    await(&rig, &c);
    assert_string_equal(c.result, "[3]");
    ask_done(&a);
    ask_done(&b);
    ask_done(&c);
    rpc_rig_done(&rig);
}

/* ---- cancel and close ---- */

static void test_close_cancels(void **state)
{
    (void)state;
    struct rig rig;
    struct ask a = {0}, late = {0};
    rpc_rig_start(&rig);
    ask(&rig, &a, "mute", "[]", 0);
    rpc_close(rig.rpc, set_true, &rig.rpc_gone);
    ask(&rig, &late, "echo", "[]", 0);
    assert_true(run_until(rig.loop, is_true, &rig.rpc_gone, LIMIT_MS));
    rig.rpc = NULL;
    assert_int_equal(a.call.err.code, ERR_CANCELED);
    assert_int_equal(late.call.err.code, ERR_CANCELED);
    ask_done(&a);
    ask_done(&late);
    rpc_rig_done(&rig);
}

struct closer {
    struct ask ask;
    struct rig *rig;
};

static void close_in_callback(struct rpc_call *call)
{
    struct closer *c = CONTAINER_OF(CONTAINER_OF(call, struct ask, call), struct closer, ask);
    asked(call);
    rpc_close(c->rig->rpc, set_true, &c->rig->rpc_gone);
}

static void test_close_within_a_callback(void **state)
{
    (void)state;
    struct rig rig;
    struct closer c = {.rig = &rig};
    rpc_rig_start(&rig);
    rpc_call_start(rig.rpc, &c.ask.call, "echo", "[]", 0, NULL, NULL, close_in_callback);
    assert_true(run_until(rig.loop, is_true, &rig.rpc_gone, LIMIT_MS));
    rig.rpc = NULL;
    ask_done(&c.ask);
    rpc_rig_done(&rig);
}

static void test_close_in_every_phase(void **state)
{
    (void)state;
    struct rig rig;
    rpc_rig_open(&rig);
    struct rpc_config config = rpc_rig_config(&rig);
    struct err err;
    rig.rpc = rpc_new(rig.loop, &config, &err); /* never opened */
    client_stop(&rig);
    rig.rpc_gone = false;
    client_start(&rig, &config); /* resolving */
    client_stop(&rig);
    rig.rpc_gone = false;
    server_stop(&rig);
    client_start(&rig, &config); /* refused: backing off */
    assert_true(run_until(rig.loop, has_lost, &rig, LIMIT_MS));
    client_stop(&rig);
    rpc_rig_done(&rig);
}

/* ---- urls ---- */

static void test_bad_configuration(void **state)
{
    (void)state;
    static const char *const bad[] = {"http://a", "ws://",       "ws://a:0",  "ws://a:65536",
                                      "ws://a:x", "ws://[::1",   "localhost", "ws://@host",
                                      "ws://a b", "ws://[::1]x", ""};
    struct loop *l = loop_new();
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = {0};
        struct rpc_config config = {.url = bad[i]};
        assert_null(rpc_new(l, &config, &err));
        assert_int_equal(err.code, ERR_CONFIG);
        char *shown = host_url_shown(bad[i]);
        assert_non_null(strstr(err.text, shown));
        free(shown);
    }
    struct err err = {0};
    struct rpc_config config = {.url = "wss://a", .ca_file = "/nonexistent.pem"};
    assert_null(rpc_new(l, &config, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    assert_non_null(strstr(err.text, "/nonexistent.pem"));
    loop_free(l);
}

static void test_unknown_name(void **state)
{
    (void)state;
    struct rig rig = {.loop = loop_new()};
    snprintf(rig.url, sizeof(rig.url), "ws://no-such-host.invalid:1");
    struct rpc_config config = rpc_rig_config(&rig);
    config.connect_timeout_ms = 15000;
    client_start(&rig, &config);
    assert_true(run_until(rig.loop, has_lost, &rig, LIMIT_MS));
    assert_non_null(strstr(rig.why.text, "no-such-host.invalid"));
    rpc_rig_done(&rig);
}

/* ---- many ---- */

static void test_many_calls(void **state)
{
    (void)state;
    struct rig rig;
    enum { N = 2000 };
    struct ask *asks = xcalloc(N, sizeof(*asks));
    rpc_rig_start(&rig);
    for (int i = 0; i < N; i++) {
        char params[32];
        snprintf(params, sizeof(params), "[%d]", i);
        ask(&rig, &asks[i], "echo", params, 0);
    }
    for (int i = 0; i < N; i++) {
        char params[32];
        snprintf(params, sizeof(params), "[%d]", i);
        await(&rig, &asks[i]);
        assert_int_equal(asks[i].call.err.code, 0);
        assert_string_equal(asks[i].result, params);
        ask_done(&asks[i]);
    }
    free(asks);
    rpc_rig_done(&rig);
}

/* ---- methods that are closed by an error of which nothing is known ---- */

struct gateway {
    int code;
    const char *message; /* NULL: one that says nothing */
    bool text;           /* the error is a text and no object */
    bool open;
};

static bool refuses(struct rig *rig, struct ws_peer *p, const char *method, const json_t *id,
                    const char *params)
{
    const struct gateway *g = rig->hook_arg;
    (void)method;
    (void)params;
    if (g->open)
        ws_peer_printf(p, "{\"id\":%" JSON_INTEGER_FORMAT ",\"result\":1}", json_integer_value(id));
    else if (g->text)
        ws_peer_printf(p, "{\"id\":%" JSON_INTEGER_FORMAT ",\"error\":\"nope\"}",
                       json_integer_value(id));
    else
        ws_peer_printf(
            p, "{\"id\":%" JSON_INTEGER_FORMAT ",\"error\":{\"code\":%d,\"message\":\"%s\"}}",
            json_integer_value(id), g->code, g->message ? g->message : "nope");
    return true;
}

static enum rpc_error refused_as(struct rig *rig, const char *method)
{
    struct ask a = {0};
    ask(rig, &a, method, "[]", 0);
    await(rig, &a);
    enum rpc_error means = a.call.refused;
    ask_done(&a);
    return means;
}

static void test_a_method_that_is_closed_by_any_error(void **state)
{
    (void)state;
    static const struct {
        struct gateway gateway;
        const char *method;
        bool closed;
    } cases[] = {
        {{.code = -32000}, "chain_getHeader", true},
        {{.code = -32603}, "author_pendingExtrinsics", true},
        {{.code = -32603}, "author_submitAndWatchExtrinsic", true},
        {{.text = true}, "state_subscribeRuntimeVersion", true},
        {{.code = -32603}, "chain_getBlock", false}, /* there is no other way to a body */
        {{.code = 1014}, "author_submitAndWatchExtrinsic", false}, /* it tells of the bytes */
    };
    for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
        struct rig rig;
        struct gateway gateway = cases[c].gateway;
        unsigned refusals = 1;
        rpc_rig_start(&rig);
        rig.hook = refuses;
        rig.hook_arg = &gateway;
        uint64_t begun = loop_now_ms(rig.loop);
        while (refused_as(&rig, cases[c].method) == RPC_ERROR_OTHER &&
               loop_now_ms(rig.loop) < begun + (cases[c].closed ? LIMIT_MS : 300))
            refusals++;
        assert_int_equal(refused_as(&rig, cases[c].method),
                         cases[c].closed ? RPC_ERROR_METHOD : RPC_ERROR_OTHER);
        assert_true(refusals >= 5);
        if (cases[c].closed)
            assert_true(loop_now_ms(rig.loop) >= begun + 150); /* thirty back-offs */
        gateway.open = true;
        assert_int_equal(refused_as(&rig, cases[c].method), RPC_ERROR_NONE);
        gateway.open = false;
        assert_int_equal(refused_as(&rig, cases[c].method), RPC_ERROR_OTHER); /* it begins anew */
        rpc_rig_done(&rig);
    }
}

struct until {
    struct loop *loop;
    uint64_t ms;
};

static bool is_past(void *arg)
{
    const struct until *until = arg;
    return loop_now_ms(until->loop) >= until->ms;
}

static void test_few_refusals_close_nothing(void **state)
{
    (void)state;
    struct rig rig;
    struct gateway gateway = {.code = -32603};
    rpc_rig_start(&rig);
    rig.hook = refuses;
    rig.hook_arg = &gateway;
    assert_int_equal(refused_as(&rig, "chain_getHeader"), RPC_ERROR_OTHER);
    struct until until = {rig.loop, loop_now_ms(rig.loop) + 200};
    assert_true(run_until(rig.loop, is_past, &until, LIMIT_MS)); /* over thirty back-offs */
    assert_int_equal(refused_as(&rig, "chain_getHeader"), RPC_ERROR_OTHER);
    rpc_rig_done(&rig);
}

static void test_a_word_that_may_mean_that_a_method_is_closed(void **state)
{
    (void)state;
    struct rig rig;
    struct gateway gateway = {.code = -32003, .message = "access denied"};
    rpc_rig_start(&rig);
    rig.hook = refuses;
    rig.hook_arg = &gateway;
    assert_int_equal(refused_as(&rig, "state_getStorage"), RPC_ERROR_METHOD);
    assert_int_equal(refused_as(&rig, "chain_getBlock"), RPC_ERROR_OTHER);
    rpc_rig_done(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_refusals_close_nothing),
        cmocka_unit_test(test_a_word_that_may_mean_that_a_method_is_closed),
        cmocka_unit_test(test_a_method_that_is_closed_by_any_error),
        cmocka_unit_test(test_echo),
        cmocka_unit_test(test_answers_in_another_order),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_garbage_is_survived),
        cmocka_unit_test(test_large_message),
        cmocka_unit_test(test_large_request),
        cmocka_unit_test(test_message_over_the_limit),
        cmocka_unit_test(test_deadline_while_traffic_flows),
        cmocka_unit_test(test_mute_line_is_replaced),
        cmocka_unit_test(test_not_connected),
        cmocka_unit_test(test_gate),
        cmocka_unit_test(test_close_cancels),
        cmocka_unit_test(test_close_within_a_callback),
        cmocka_unit_test(test_close_in_every_phase),
        cmocka_unit_test(test_bad_configuration),
        cmocka_unit_test(test_unknown_name),
        cmocka_unit_test(test_many_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
