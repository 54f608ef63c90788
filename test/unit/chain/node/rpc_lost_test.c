/* Connections that are cut, half-open, silent, refused, given up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "support_rpc.h"

/* ---- losing the connection ---- */

static void test_cut_and_reconnect(void **state)
{
    (void)state;
    struct rig rig;
    struct ask a = {0}, b = {0}, c = {0};
    rpc_rig_start(&rig);
    ask(&rig, &a, "mute", "[]", 0);
    ask(&rig, &b, "cut", "[]", 0);
    await(&rig, &a);
    await(&rig, &b);
    assert_int_equal(a.call.err.code, ERR_NET);
    assert_int_equal(b.call.err.code, ERR_NET);
    assert_true(a.call.written);
    assert_true(run_until(rig.loop, is_open, &rig, LIMIT_MS));
    ask(&rig, &c, "echo", "[1]", 0);
    await(&rig, &c);
    assert_string_equal(c.result, "[1]");
    assert_int_equal(rig.opened, 2);
    assert_int_equal(rig.lost, 1);
    ask_done(&a);
    ask_done(&b);
    ask_done(&c);
    rpc_rig_done(&rig);
}

static bool lost_thrice(void *arg)
{
    return ((struct rig *)arg)->lost >= 3;
}

static void test_server_comes_back(void **state)
{
    (void)state;
    struct rig rig;
    rpc_rig_start(&rig);
    int port = ws_server_port(rig.server);
    server_stop(&rig);
    assert_true(run_until(rig.loop, lost_thrice, &rig, LIMIT_MS));
    assert_int_equal(rig.why.code, ERR_NET);
    assert_non_null(strstr(rig.why.text, rig.url));
    server_start(&rig, NULL, NULL, port);
    assert_true(run_until(rig.loop, is_open, &rig, LIMIT_MS));
    rpc_rig_done(&rig);
}

static void test_half_open_peer(void **state)
{
    (void)state;
    struct rig rig;
    struct ask a = {0};
    rpc_rig_open(&rig);
    struct rpc_config config = rpc_rig_config(&rig);
    config.silence_timeout_ms = 150;
    client_start(&rig, &config);
    assert_true(run_until(rig.loop, is_open, &rig, LIMIT_MS));
    ask(&rig, &a, "stop", "[]", 0);
    await(&rig, &a);
    assert_int_equal(a.call.err.code, ERR_NET);
    assert_non_null(strstr(a.call.err.text, "silent"));
    assert_true(run_until(rig.loop, is_open, &rig, LIMIT_MS));
    assert_int_equal(rig.opened, 2);
    rpc_rig_done(&rig);
    ask_done(&a);
}

struct later {
    struct loop *loop;
    uint64_t at_ms;
};

static bool is_later(void *arg)
{
    struct later *l = arg;
    return loop_now_ms(l->loop) >= l->at_ms;
}

/* A quiet peer that answers pings stays: several silence time-outs pass without a loss. */
static void test_pongs_keep_a_quiet_line(void **state)
{
    (void)state;
    struct rig rig;
    rpc_rig_open(&rig);
    struct rpc_config config = rpc_rig_config(&rig);
    config.silence_timeout_ms = 90;
    client_start(&rig, &config);
    assert_true(run_until(rig.loop, is_open, &rig, LIMIT_MS));
    struct later later = {rig.loop, loop_now_ms(rig.loop) + 500};
    assert_true(run_until(rig.loop, is_later, &later, LIMIT_MS));
    assert_int_equal(rig.lost, 0);
    rpc_rig_done(&rig);
}

static void test_reconnect_by_the_owner(void **state)
{
    (void)state;
    struct rig rig;
    struct ask a = {0};
    struct err why;
    rpc_rig_start(&rig);
    ask(&rig, &a, "mute", "[]", 0);
    err_set(&why, ERR_PROTOCOL, "because");
    rpc_reconnect(rig.rpc, &why);
    rpc_reconnect(rig.rpc, &why);
    assert_false(a.done);
    await(&rig, &a);
    assert_int_equal(a.call.err.code, ERR_PROTOCOL);
    assert_true(run_until(rig.loop, is_open, &rig, LIMIT_MS));
    assert_int_equal(rig.lost, 1);
    rpc_reconnect(rig.rpc, &why);
    rpc_close(rig.rpc, set_true, &rig.rpc_gone);
    assert_true(run_until(rig.loop, is_true, &rig.rpc_gone, LIMIT_MS));
    rig.rpc = NULL;
    ask_done(&a);
    rpc_rig_done(&rig);
}

/* ---- stopped by the owner ---- */

static bool is_closed(void *arg)
{
    return rpc_state(((struct rig *)arg)->rpc) == RPC_CLOSED;
}

static void test_stop_and_open_again(void **state)
{
    (void)state;
    struct rig rig;
    struct ask a = {0}, b = {0};
    struct err why;
    rpc_rig_start(&rig);
    ask(&rig, &a, "mute", "[]", 0);
    err_set(&why, ERR_NET, "another endpoint is better");
    rpc_reconnect(rig.rpc, &why);
    rpc_stop(rig.rpc, &why); /* it wins */
    await(&rig, &a);
    assert_true(run_until(rig.loop, is_closed, &rig, LIMIT_MS));
    assert_int_equal(rig.stopped, 1);
    assert_int_equal(rig.lost, 0);
    assert_string_equal(a.call.err.text, "another endpoint is better");
    rpc_open(rig.rpc);
    assert_true(run_until(rig.loop, is_open, &rig, LIMIT_MS));
    ask(&rig, &b, "echo", "[1]", 0);
    await(&rig, &b);
    assert_string_equal(b.result, "[1]");
    ask_done(&a);
    ask_done(&b);
    rpc_rig_done(&rig);
}

static void test_stop_in_every_phase(void **state)
{
    (void)state;
    struct rig rig;
    struct err why;
    err_set(&why, ERR_NET, "stop");
    rpc_rig_open(&rig);
    struct rpc_config config = rpc_rig_config(&rig);
    client_start(&rig, &config);
    rpc_stop(rig.rpc, &why); /* resolving */
    assert_true(run_until(rig.loop, is_closed, &rig, LIMIT_MS));
    server_stop(&rig);
    rpc_open(rig.rpc);
    assert_true(run_until(rig.loop, has_lost, &rig, LIMIT_MS));
    rpc_stop(rig.rpc, &why); /* backing off */
    assert_true(run_until(rig.loop, is_closed, &rig, LIMIT_MS));
    assert_int_equal(rig.stopped, 2);
    rpc_rig_done(&rig);
}

/* ---- giving up while answers come ---- */

struct together {
    struct ask first, second;
    struct rig *rig;
    bool reconnects;
    json_int_t id; /* of the first question */
};

/* The first question waits for the second one, and then both are answered in one message. */
static bool both_at_once(struct rig *rig, struct ws_peer *p, const char *method, const json_t *id,
                         const char *params)
{
    struct together *t = rig->hook_arg;
    (void)params;
    if (strcmp(method, "first") == 0)
        t->id = json_integer_value(id);
    else
        ws_peer_printf(p,
                       "[{\"id\":%" JSON_INTEGER_FORMAT ",\"result\":1},"
                       "{\"id\":%" JSON_INTEGER_FORMAT ",\"result\":2}]",
                       t->id, json_integer_value(id));
    return true;
}

static void give_up(struct rpc_call *call)
{
    struct together *t = CONTAINER_OF(CONTAINER_OF(call, struct ask, call), struct together, first);
    struct err why = {0};
    asked(call);
    err_set(&why, ERR_NET, "given up");
    if (t->reconnects)
        rpc_reconnect(t->rig->rpc, &why);
    else
        rpc_stop(t->rig->rpc, &why);
}

/* Who gives a connection up hears nothing more from it: no answer that came in the same message. */
static void test_nothing_is_heard_of_what_is_given_up(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct rig rig;
        struct together t = {.rig = &rig, .reconnects = i == 1};
        rpc_rig_start(&rig);
        rig.hook = both_at_once;
        rig.hook_arg = &t;
        rpc_call_start(rig.rpc, &t.first.call, "first", "[]", 0, NULL, NULL, give_up);
        ask(&rig, &t.second, "second", "[]", 0);
        await(&rig, &t.second);
        assert_string_equal(t.first.result, "1");
        assert_int_equal(t.second.call.err.code, ERR_NET);
        assert_string_equal(t.second.call.err.text, "given up");
        ask_done(&t.first);
        ask_done(&t.second);
        rpc_rig_done(&rig);
    }
}

/* ---- descriptors ---- */

static unsigned open_descriptors(void)
{
    unsigned count = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static void test_no_descriptor_is_left(void **state)
{
    (void)state;
    struct rig rig;
    unsigned before = open_descriptors();
    for (int i = 0; i < 3; i++) {
        rpc_rig_start(&rig);
        client_stop(&rig);
        rpc_rig_done(&rig);
        assert_int_equal(open_descriptors(), before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_and_reconnect),
        cmocka_unit_test(test_server_comes_back),
        cmocka_unit_test(test_half_open_peer),
        cmocka_unit_test(test_pongs_keep_a_quiet_line),
        cmocka_unit_test(test_reconnect_by_the_owner),
        cmocka_unit_test(test_stop_and_open_again),
        cmocka_unit_test(test_stop_in_every_phase),
        cmocka_unit_test(test_nothing_is_heard_of_what_is_given_up),
        cmocka_unit_test(test_no_descriptor_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
