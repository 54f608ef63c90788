/* The JSON-RPC client against a scripted server on the same loop: every way an answer can come, or not. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "chain/rpc.h"
#include "support_ws.h"

enum { LIMIT_MS = 20000 };

struct rig {
    struct loop *loop;
    struct ws_server *server;
    struct rpc *rpc;
    struct ws_peer *peer; /* the last one */
    char url[128];
    unsigned opened, lost;
    struct err why; /* of the last BACKOFF */
    bool server_gone, rpc_gone;
    json_t *held;  /* "hold": answered after the next call */
    unsigned seen; /* requests */
    char unsubscribed[64];
};

/* ---- the server's script: the method says what happens ---- */

static void answer(struct ws_peer *p, const json_t *id, const char *result)
{
    ws_peer_printf(p, "{\"jsonrpc\":\"2.0\",\"result\":%s,\"id\":%" JSON_INTEGER_FORMAT "}", result,
                   json_integer_value(id));
}

static void notify(struct ws_peer *p, const char *id, const char *item)
{
    ws_peer_printf(p,
                   "{\"jsonrpc\":\"2.0\",\"method\":\"note\",\"params\":{\"subscription\":%s,\"result\":%s}}",
                   id, item);
}

static void answer_big(struct ws_peer *p, const json_t *id, size_t n)
{
    struct buf b = {0};
    buf_printf(&b, "{\"jsonrpc\":\"2.0\",\"id\":%" JSON_INTEGER_FORMAT ",\"result\":\"",
               json_integer_value(id));
    memset(buf_grow(&b, n), 'x', n);
    b.len += n;
    buf_puts(&b, "\"}");
    ws_peer_send(p, buf_str(&b));
    buf_done(&b);
}

static void serve(struct rig *rig, struct ws_peer *p, const char *method, const json_t *id,
                  const json_t *params)
{
    char *text = json_dumps(params, JSON_COMPACT);
    if (!strcmp(method, "echo")) {
        answer(p, id, text);
    } else if (!strcmp(method, "hold")) {
        rig->held = json_copy((json_t *)id);
    } else if (!strcmp(method, "fail")) {
        ws_peer_printf(p,
                       "{\"jsonrpc\":\"2.0\",\"id\":%" JSON_INTEGER_FORMAT
                       ",\"error\":{\"code\":1010,\"message\":"
                       "\"Invalid Transaction\",\"data\":\"Transaction is outdated\"}}",
                       json_integer_value(id));
    } else if (!strcmp(method, "fail_object")) {
        ws_peer_printf(p,
                       "{\"jsonrpc\":\"2.0\",\"id\":%" JSON_INTEGER_FORMAT
                       ",\"error\":{\"code\":-1,\"message\":"
                       "\"{\\\"invalid\\\":{\\\"stale\\\":null}}\",\"data\":{\"a\":[1]}}}",
                       json_integer_value(id));
    } else if (!strcmp(method, "unreadable")) {
        ws_peer_send(p, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32007,\"message\":\"Request "
                        "is too big\"}}");
    } else if (!strcmp(method, "empty")) {
        ws_peer_printf(p, "{\"jsonrpc\":\"2.0\",\"id\":%" JSON_INTEGER_FORMAT "}", json_integer_value(id));
    } else if (!strcmp(method, "garbage")) {
        ws_peer_send(p, "}{ not json");
        ws_peer_send(p, "[1,2,3]");
        ws_peer_send(p, "\"text\"");
        ws_peer_send(p, "{\"id\":\"other\",\"result\":1}");
        ws_peer_send(p, "{\"id\":18446744073709551616,\"result\":1}");
        ws_peer_send(p, "{\"method\":\"note\",\"params\":7}");
        answer(p, id, "\"still here\"");
    } else if (!strcmp(method, "big")) {
        answer_big(p, id, (size_t)json_integer_value(json_array_get(params, 0)));
    } else if (!strcmp(method, "cut")) {
        ws_peer_cut(p);
    } else if (!strcmp(method, "stop")) {
        ws_peer_stop_reading(p);
    } else if (!strcmp(method, "sub")) {
        answer(p, id, "\"S1\"");
        notify(p, "\"S1\"", "1");
        notify(p, "\"S1\"", "2");
        notify(p, "\"nobody\"", "3");
    } else if (!strcmp(method, "sub_early")) {
        notify(p, "\"E1\"", "1");
        notify(p, "\"other\"", "7");
        notify(p, "\"E1\"", "2");
        answer(p, id, "\"E1\"");
        notify(p, "\"E1\"", "3");
    } else if (!strcmp(method, "sub_number")) {
        answer(p, id, "42");
        notify(p, "42", "1");
    } else if (!strcmp(method, "sub_ends")) {
        answer(p, id, "\"X\"");
        ws_peer_send(p,
                     "{\"jsonrpc\":\"2.0\",\"method\":\"note\",\"params\":{\"subscription\":\"X\",\"error\":"
                     "{\"code\":-1,\"message\":\"too slow\"}}}");
    } else if (!strncmp(method, "unsub", 5)) {
        snprintf(rig->unsubscribed, sizeof(rig->unsubscribed), "%s", text);
        answer(p, id, "true");
    } else {
        assert_string_equal(method, "mute");
    }
    if (rig->held && strcmp(method, "hold") != 0) {
        answer(p, rig->held, "\"held\"");
        json_decref(rig->held);
        rig->held = NULL;
    }
    free(text);
}

static void server_text(void *arg, struct ws_peer *p, const char *text, size_t len)
{
    struct rig *rig = arg;
    json_t *m = json_loadb(text, len, 0, NULL);
    assert_non_null(m);
    assert_string_equal(json_string_value(json_object_get(m, "jsonrpc")), "2.0");
    rig->seen++;
    serve(rig, p, json_string_value(json_object_get(m, "method")), json_object_get(m, "id"),
          json_object_get(m, "params"));
    json_decref(m);
}

static void server_open(void *arg, struct ws_peer *p)
{
    struct rig *rig = arg;
    rig->peer = p;
}

/* ---- the rig ---- */

static void on_state(void *arg, enum rpc_state state, const struct err *err)
{
    struct rig *rig = arg;
    if (state == RPC_OPEN) {
        rig->opened++;
        return;
    }
    assert_int_equal(state, RPC_BACKOFF);
    assert_non_null(err);
    rig->lost++;
    rig->why = *err;
}

static void set_true(void *arg)
{
    *(bool *)arg = true;
}

static bool is_true(void *arg)
{
    return *(bool *)arg;
}

static bool is_open(void *arg)
{
    return rpc_state(((struct rig *)arg)->rpc) == RPC_OPEN;
}

static bool has_lost(void *arg)
{
    return ((struct rig *)arg)->lost > 0;
}

static struct rpc_config config_of(struct rig *rig)
{
    return (struct rpc_config){
        .url = rig->url, .backoff_base_ms = 5, .backoff_cap_ms = 20, .on_state = on_state, .arg = rig};
}

static void server_start(struct rig *rig, const char *cert, const char *key, int port)
{
    struct ws_script script = {
        .cert_file = cert, .key_file = key, .on_open = server_open, .on_text = server_text, .arg = rig};
    rig->server = ws_server_new(rig->loop, &script, port);
    rig->server_gone = false;
}

static void server_stop(struct rig *rig)
{
    ws_server_close(rig->server, set_true, &rig->server_gone);
    assert_true(run_until(rig->loop, is_true, &rig->server_gone, LIMIT_MS));
    rig->server = NULL;
}

static void client_start(struct rig *rig, const struct rpc_config *config)
{
    struct err err = {0};
    rig->rpc = rpc_new(rig->loop, config, &err);
    if (!rig->rpc)
        fail_msg("%s", err.text);
    rpc_open(rig->rpc);
}

static void rig_open(struct rig *rig)
{
    *rig = (struct rig){.loop = loop_new()};
    server_start(rig, NULL, NULL, 0);
    snprintf(rig->url, sizeof(rig->url), "ws://127.0.0.1:%d", ws_server_port(rig->server));
}

static void rig_start(struct rig *rig)
{
    rig_open(rig);
    struct rpc_config config = config_of(rig);
    client_start(rig, &config);
    assert_true(run_until(rig->loop, is_open, rig, LIMIT_MS));
}

static void client_stop(struct rig *rig)
{
    rpc_close(rig->rpc, set_true, &rig->rpc_gone);
    assert_false(rig->rpc_gone);
    assert_true(run_until(rig->loop, is_true, &rig->rpc_gone, LIMIT_MS));
    rig->rpc = NULL;
}

static void rig_done(struct rig *rig)
{
    if (rig->rpc)
        client_stop(rig);
    if (rig->server)
        server_stop(rig);
    json_decref(rig->held);
    loop_free(rig->loop);
}

/* ---- one call and what became of it ---- */

struct ask {
    struct rpc_call call;
    bool done;
    unsigned times;
    char *result; /* JSON text */
    unsigned *order;
    unsigned place;
};

static void asked(struct rpc_call *call)
{
    struct ask *a = CONTAINER_OF(call, struct ask, call);
    a->done = true;
    a->times++;
    if (call->result)
        a->result = json_dumps(call->result, JSON_COMPACT | JSON_ENCODE_ANY);
    if (a->order)
        a->place = ++*a->order;
}

static void ask(struct rig *rig, struct ask *a, const char *method, const char *params, uint32_t timeout_ms)
{
    rpc_call_start(rig->rpc, &a->call, method, params, timeout_ms, NULL, NULL, asked);
    assert_false(a->done);
}

static void ask_done(struct ask *a)
{
    assert_int_equal(a->times, 1);
    free(a->result);
    a->result = NULL;
}

static void await(struct rig *rig, struct ask *a)
{
    assert_true(run_until(rig->loop, is_true, &a->done, LIMIT_MS));
}

/* ---- calls ---- */

static void test_echo(void **state)
{
    (void)state;
    struct rig rig;
    struct ask a = {0};
    rig_start(&rig);
    ask(&rig, &a, "echo", "[1,\"two\"]", 0);
    await(&rig, &a);
    assert_int_equal(a.call.err.code, 0);
    assert_string_equal(a.result, "[1,\"two\"]");
    assert_true(a.call.written);
    ask_done(&a);
    rig_done(&rig);
}

static void test_answers_in_another_order(void **state)
{
    (void)state;
    struct rig rig;
    unsigned order = 0;
    struct ask a = {.order = &order}, b = {.order = &order};
    rig_start(&rig);
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
    rig_done(&rig);
}

static void test_errors(void **state)
{
    (void)state;
    struct rig rig;
    struct ask a = {0}, b = {0}, c = {0}, d = {0};
    rig_start(&rig);
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
    rig_done(&rig);
}

static void test_garbage_is_survived(void **state)
{
    (void)state;
    struct rig rig;
    struct ask a = {0};
    rig_start(&rig);
    ask(&rig, &a, "garbage", "[]", 0);
    await(&rig, &a);
    assert_int_equal(a.call.err.code, 0);
    assert_string_equal(a.result, "\"still here\"");
    assert_int_equal(rig.lost, 0);
    ask_done(&a);
    rig_done(&rig);
}

static void test_large_message(void **state)
{
    (void)state;
    struct rig rig;
    struct ask a = {0}, b = {0};
    rig_start(&rig);
    ask(&rig, &a, "big", "[5242880]", 0);
    await(&rig, &a);
    assert_int_equal(a.call.err.code, 0);
    assert_int_equal(strlen(a.result), 5242880 + 2);
    ask(&rig, &b, "big", "[100000]", 0);
    await(&rig, &b);
    assert_int_equal(strlen(b.result), 100000 + 2);
    ask_done(&a);
    ask_done(&b);
    rig_done(&rig);
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
    rig_start(&rig);
    ask(&rig, &a, "echo", params, 0);
    ask(&rig, &b, "echo", "[1]", 0);
    await(&rig, &a);
    await(&rig, &b);
    assert_int_equal(a.call.err.code, 0);
    assert_string_equal(a.result, params);
    free(params);
    ask_done(&a);
    ask_done(&b);
    rig_done(&rig);
}

static void test_message_over_the_limit(void **state)
{
    (void)state;
    struct rig rig;
    struct ask a = {0};
    rig_open(&rig);
    struct rpc_config config = config_of(&rig);
    config.message_max_bytes = 100000;
    client_start(&rig, &config);
    assert_true(run_until(rig.loop, is_open, &rig, LIMIT_MS));
    ask(&rig, &a, "big", "[200000]", 0);
    await(&rig, &a);
    assert_int_equal(a.call.err.code, ERR_NET);
    assert_non_null(strstr(rig.why.text, "more than 100000 bytes"));
    assert_true(run_until(rig.loop, is_open, &rig, LIMIT_MS));
    ask_done(&a);
    rig_done(&rig);
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
    rig_start(&rig);
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
    rig_done(&rig);
}

/* A line that answers nothing at all is made anew although its pongs flow. */
static void test_mute_line_is_replaced(void **state)
{
    (void)state;
    struct rig rig;
    struct ask a = {0}, b = {0};
    rig_start(&rig);
    ask(&rig, &a, "mute", "[]", 60);
    ask(&rig, &b, "mute", "[]", 0);
    await(&rig, &a);
    await(&rig, &b);
    assert_int_equal(a.call.err.code, ERR_TIMEOUT);
    assert_int_equal(b.call.err.code, ERR_TIMEOUT);
    assert_int_equal(rig.lost, 1);
    assert_true(run_until(rig.loop, is_open, &rig, LIMIT_MS));
    assert_int_equal(rig.opened, 2);
    ask_done(&a);
    ask_done(&b);
    rig_done(&rig);
}

static void test_not_connected(void **state)
{
    (void)state;
    struct rig rig;
    struct ask a = {0};
    rig_open(&rig);
    struct rpc_config config = config_of(&rig);
    client_start(&rig, &config);
    ask(&rig, &a, "echo", "[]", 0);
    await(&rig, &a);
    assert_int_equal(a.call.err.code, ERR_NET);
    assert_false(a.call.written);
    ask_done(&a);
    rig_done(&rig);
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
    rig_start(&rig);
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
    rig_done(&rig);
}

/* ---- cancel and close ---- */

static void test_cancel(void **state)
{
    (void)state;
    struct rig rig;
    struct ask idle = {0}, a = {0}, b = {0};
    rig_start(&rig);
    rpc_call_cancel(&idle.call);
    ask(&rig, &a, "echo", "[]", 0);
    rpc_call_cancel(&a.call);
    rpc_call_cancel(&a.call);
    assert_false(a.done);
    await(&rig, &a);
    assert_int_equal(a.call.err.code, ERR_CANCELED);
    ask(&rig, &b, "echo", "[1]", 0);
    await(&rig, &b);
    assert_int_equal(rig.seen, 1); /* the canceled one was never sent */
    assert_int_equal(idle.times, 0);
    ask_done(&a);
    ask_done(&b);
    rig_done(&rig);
}

static void test_close_cancels(void **state)
{
    (void)state;
    struct rig rig;
    struct ask a = {0}, late = {0};
    rig_start(&rig);
    ask(&rig, &a, "mute", "[]", 0);
    rpc_close(rig.rpc, set_true, &rig.rpc_gone);
    ask(&rig, &late, "echo", "[]", 0);
    assert_true(run_until(rig.loop, is_true, &rig.rpc_gone, LIMIT_MS));
    rig.rpc = NULL;
    assert_int_equal(a.call.err.code, ERR_CANCELED);
    assert_int_equal(late.call.err.code, ERR_CANCELED);
    ask_done(&a);
    ask_done(&late);
    rig_done(&rig);
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
    rig_start(&rig);
    rpc_call_start(rig.rpc, &c.ask.call, "echo", "[]", 0, NULL, NULL, close_in_callback);
    assert_true(run_until(rig.loop, is_true, &rig.rpc_gone, LIMIT_MS));
    rig.rpc = NULL;
    ask_done(&c.ask);
    rig_done(&rig);
}

static void test_close_in_every_phase(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    struct rpc_config config = config_of(&rig);
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
    rig_done(&rig);
}

/* ---- losing the connection ---- */

static void test_cut_and_reconnect(void **state)
{
    (void)state;
    struct rig rig;
    struct ask a = {0}, b = {0}, c = {0};
    rig_start(&rig);
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
    rig_done(&rig);
}

static bool lost_thrice(void *arg)
{
    return ((struct rig *)arg)->lost >= 3;
}

static void test_server_comes_back(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    int port = ws_server_port(rig.server);
    server_stop(&rig);
    assert_true(run_until(rig.loop, lost_thrice, &rig, LIMIT_MS));
    assert_int_equal(rig.why.code, ERR_NET);
    assert_non_null(strstr(rig.why.text, rig.url));
    server_start(&rig, NULL, NULL, port);
    assert_true(run_until(rig.loop, is_open, &rig, LIMIT_MS));
    rig_done(&rig);
}

static void test_half_open_peer(void **state)
{
    (void)state;
    struct rig rig;
    struct ask a = {0};
    rig_open(&rig);
    struct rpc_config config = config_of(&rig);
    config.silence_timeout_ms = 150;
    client_start(&rig, &config);
    assert_true(run_until(rig.loop, is_open, &rig, LIMIT_MS));
    ask(&rig, &a, "stop", "[]", 0);
    await(&rig, &a);
    assert_int_equal(a.call.err.code, ERR_NET);
    assert_non_null(strstr(a.call.err.text, "silent"));
    assert_true(run_until(rig.loop, is_open, &rig, LIMIT_MS));
    assert_int_equal(rig.opened, 2);
    rig_done(&rig);
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
    rig_open(&rig);
    struct rpc_config config = config_of(&rig);
    config.silence_timeout_ms = 90;
    client_start(&rig, &config);
    assert_true(run_until(rig.loop, is_open, &rig, LIMIT_MS));
    struct later later = {rig.loop, loop_now_ms(rig.loop) + 500};
    assert_true(run_until(rig.loop, is_later, &later, LIMIT_MS));
    assert_int_equal(rig.lost, 0);
    rig_done(&rig);
}

static void test_reconnect_by_the_owner(void **state)
{
    (void)state;
    struct rig rig;
    struct ask a = {0};
    struct err why;
    rig_start(&rig);
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
    rig_done(&rig);
}

/* ---- subscriptions ---- */

struct watch {
    struct rpc_sub sub;
    struct rig *rig;
    bool replied, ended;
    unsigned items;
    int last;
    bool items_before_reply;
    unsigned unsubscribe_after; /* items */
    struct err end;
};

static void watch_reply(struct rpc_call *call)
{
    struct watch *w = CONTAINER_OF(CONTAINER_OF(call, struct rpc_sub, call), struct watch, sub);
    assert_false(w->replied);
    w->replied = true;
}

static void watch_item(struct rpc_sub *sub, const json_t *item)
{
    struct watch *w = CONTAINER_OF(sub, struct watch, sub);
    w->items_before_reply |= !w->replied;
    w->items++;
    assert_int_equal(json_integer_value(item), w->last + 1);
    w->last = (int)json_integer_value(item);
    if (w->items == w->unsubscribe_after)
        rpc_unsubscribe(w->rig->rpc, sub, "unsub");
}

static void watch_end(struct rpc_sub *sub, const struct err *err)
{
    struct watch *w = CONTAINER_OF(sub, struct watch, sub);
    assert_false(w->ended);
    w->ended = true;
    w->end = *err;
}

static void watch_start(struct watch *w, const char *method)
{
    rpc_subscribe_start(w->rig->rpc, &w->sub, method, "[]", NULL, NULL, watch_reply, watch_item, watch_end);
    assert_false(w->replied);
}

static bool has_three(void *arg)
{
    return ((struct watch *)arg)->items >= 3;
}

static bool has_two(void *arg)
{
    return ((struct watch *)arg)->items >= 2;
}

static bool has_one(void *arg)
{
    return ((struct watch *)arg)->items >= 1;
}

static bool unsubscribed(void *arg)
{
    return ((struct rig *)arg)->unsubscribed[0] != 0;
}

static void test_subscription(void **state)
{
    (void)state;
    struct rig rig;
    struct watch w = {.rig = &rig};
    rig_start(&rig);
    watch_start(&w, "sub");
    assert_true(run_until(rig.loop, has_two, &w, LIMIT_MS));
    rpc_unsubscribe(rig.rpc, &w.sub, "unsub");
    assert_true(run_until(rig.loop, unsubscribed, &rig, LIMIT_MS));
    assert_string_equal(rig.unsubscribed, "[\"S1\"]");
    assert_false(w.ended);
    rig_done(&rig);
    assert_int_equal(w.items, 2);
}

static void test_notification_before_the_answer(void **state)
{
    (void)state;
    struct rig rig;
    struct watch w = {.rig = &rig};
    rig_start(&rig);
    watch_start(&w, "sub_early");
    assert_true(run_until(rig.loop, has_three, &w, LIMIT_MS));
    assert_false(w.items_before_reply);
    rig_done(&rig);
    assert_true(w.ended);
    assert_int_equal(w.end.code, ERR_CANCELED);
}

static void test_unsubscribe_within_an_early_item(void **state)
{
    (void)state;
    struct rig rig;
    struct watch w = {.rig = &rig, .unsubscribe_after = 1};
    rig_start(&rig);
    watch_start(&w, "sub_early");
    assert_true(run_until(rig.loop, unsubscribed, &rig, LIMIT_MS));
    assert_string_equal(rig.unsubscribed, "[\"E1\"]");
    rig_done(&rig);
    assert_int_equal(w.items, 1);
    assert_false(w.ended);
}

static void test_numeric_subscription_id(void **state)
{
    (void)state;
    struct rig rig;
    struct watch w = {.rig = &rig, .unsubscribe_after = 1};
    rig_start(&rig);
    watch_start(&w, "sub_number");
    assert_true(run_until(rig.loop, has_one, &w, LIMIT_MS));
    assert_true(run_until(rig.loop, unsubscribed, &rig, LIMIT_MS));
    assert_string_equal(rig.unsubscribed, "[42]");
    rig_done(&rig);
}

static void test_server_ends_a_subscription(void **state)
{
    (void)state;
    struct rig rig;
    struct watch w = {.rig = &rig};
    rig_start(&rig);
    watch_start(&w, "sub_ends");
    assert_true(run_until(rig.loop, is_true, &w.ended, LIMIT_MS));
    assert_int_equal(w.end.code, ERR_RPC);
    assert_non_null(strstr(w.end.text, "too slow"));
    rig_done(&rig);
}

static void test_subscription_refused(void **state)
{
    (void)state;
    struct rig rig;
    struct watch w = {.rig = &rig}, x = {.rig = &rig};
    rig_start(&rig);
    watch_start(&w, "fail");
    assert_true(run_until(rig.loop, is_true, &w.replied, LIMIT_MS));
    assert_int_equal(w.sub.call.rpc_code, 1010);
    watch_start(&x, "echo"); /* answers an array: no id */
    assert_true(run_until(rig.loop, is_true, &x.replied, LIMIT_MS));
    assert_int_equal(x.sub.call.err.code, ERR_PROTOCOL);
    rig_done(&rig);
    assert_false(w.ended || x.ended);
}

static void test_connection_lost_ends_subscriptions(void **state)
{
    (void)state;
    struct rig rig;
    struct watch w = {.rig = &rig};
    struct ask a = {0};
    rig_start(&rig);
    watch_start(&w, "sub");
    assert_true(run_until(rig.loop, has_two, &w, LIMIT_MS));
    ask(&rig, &a, "cut", "[]", 0);
    await(&rig, &a);
    assert_true(run_until(rig.loop, is_true, &w.ended, LIMIT_MS));
    assert_int_equal(w.end.code, ERR_NET);
    ask_done(&a);
    rig_done(&rig);
}

/* Forgotten before its answer, or given up at its deadline: the late answer is undone at the node. */
static bool holds(void *arg)
{
    return ((struct rig *)arg)->held != NULL;
}

static void test_forgotten_before_the_answer(void **state)
{
    (void)state;
    struct rig rig;
    struct watch w = {.rig = &rig}, x = {.rig = &rig};
    struct ask a = {0}, b = {0}, c = {0};
    rig_start(&rig);
    watch_start(&w, "hold");
    rpc_unsubscribe(rig.rpc, &w.sub, "unsub"); /* before it is sent: nothing to undo */
    ask(&rig, &a, "echo", "[]", 0);
    await(&rig, &a);
    assert_int_equal(rig.seen, 1);
    watch_start(&w, "hold");
    assert_true(run_until(rig.loop, holds, &rig, LIMIT_MS));
    rpc_unsubscribe(rig.rpc, &w.sub, "unsub");
    memset(&w, 0xee, sizeof(w));    /* its owner has freed it */
    ask(&rig, &b, "echo", "[]", 0); /* makes the held one be answered */
    assert_true(run_until(rig.loop, unsubscribed, &rig, LIMIT_MS));
    assert_string_equal(rig.unsubscribed, "[\"held\"]");
    rig.unsubscribed[0] = 0;
    x.sub.call.err.code = 0;
    watch_start(&x, "hold");
    assert_true(run_until(rig.loop, holds, &rig, LIMIT_MS));
    ask(&rig, &c, "mute", "[]", 0); /* keeps an answer out, so that the line is not taken for dead */
    await(&rig, &b);
    rpc_unsubscribe(rig.rpc, &x.sub, "unsub");
    assert_true(run_until(rig.loop, unsubscribed, &rig, LIMIT_MS));
    rig_done(&rig);
    ask_done(&a);
    ask_done(&b);
    ask_done(&c);
}

/* ---- TLS ---- */

static char tls_dir[] = "/tmp/txrelay-rpc-test-XXXXXX";

static void shell(const char *fmt, ...)
{
    char *line = NULL;
    va_list ap;
    va_start(ap, fmt);
    INVARIANT(vasprintf(&line, fmt, ap) > 0);
    va_end(ap);
    int rc = system(line);
    if (rc)
        fail_msg("%s: %d", line, rc);
    free(line);
}

static int make_certificates(void **state)
{
    (void)state;
    if (!mkdtemp(tls_dir))
        return -1;
    const char *new_key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    shell("cd %s && openssl req -x509 %s -keyout ca.key -out ca.pem -subj /CN=test-ca -days 2 2>log", tls_dir,
          new_key);
    const char *names[][2] = {
        {"name", "DNS:localhost"}, {"address", "IP:127.0.0.1"}, {"other", "DNS:elsewhere"}};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        shell("cd %s && openssl req %s -keyout %s.key -out %s.csr -subj /CN=node 2>log && echo "
              "subjectAltName=%s >ext "
              "&& openssl x509 -req -in %s.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext "
              "-out "
              "%s.pem 2>log",
              tls_dir, new_key, names[i][0], names[i][0], names[i][1], names[i][0], names[i][0]);
    return 0;
}

static int remove_certificates(void **state)
{
    (void)state;
    shell("rm -r %s", tls_dir);
    return 0;
}

/* true: it opened; false: it was refused, rig.why says why. */
static bool tls_try(struct rig *rig, const char *cert, const char *host, bool with_ca, bool insecure)
{
    char *cert_file = xasprintf("%s/%s.pem", tls_dir, cert);
    char *key_file = xasprintf("%s/%s.key", tls_dir, cert);
    char *ca_file = xasprintf("%s/ca.pem", tls_dir);
    *rig = (struct rig){.loop = loop_new()};
    server_start(rig, cert_file, key_file, 0);
    snprintf(rig->url, sizeof(rig->url), "wss://%s:%d/", host, ws_server_port(rig->server));
    struct rpc_config config = config_of(rig);
    config.ca_file = with_ca ? ca_file : NULL;
    config.insecure = insecure;
    client_start(rig, &config);
    bool over = false;
    while (!over)
        over = run_until(rig->loop, is_open, rig, 50) || rig->lost;
    bool opened = rig->opened > 0;
    if (opened) {
        struct ask a = {0}, b = {0};
        ask(rig, &a, "echo", "[\"tls\"]", 0);
        await(rig, &a);
        assert_string_equal(a.result, "[\"tls\"]");
        ask_done(&a);
        ask(rig, &b, "big", "[1000000]", 0);
        await(rig, &b);
        assert_int_equal(b.call.err.code, 0);
        assert_int_equal(strlen(b.result), 1000002);
        ask_done(&b);
    }
    rig_done(rig);
    free(cert_file);
    free(key_file);
    free(ca_file);
    return opened;
}

static void test_tls(void **state)
{
    (void)state;
    struct rig rig;
    assert_true(tls_try(&rig, "name", "localhost", true, false));
    assert_true(tls_try(&rig, "address", "127.0.0.1", true, false));
    assert_false(tls_try(&rig, "other", "localhost", true, false));
    assert_non_null(strstr(rig.why.text, "ostname mismatch"));
    assert_false(tls_try(&rig, "other", "127.0.0.1", true, false));
    assert_non_null(strstr(rig.why.text, "not for the address 127.0.0.1"));
    assert_false(tls_try(&rig, "name", "localhost", false, false)); /* the system does not know our CA */
    assert_non_null(strstr(rig.why.text, "certificate is refused"));
    assert_true(tls_try(&rig, "other", "localhost", false, true));
    assert_true(tls_try(&rig, "other", "127.0.0.1", false, true));
}

static void test_tls_against_a_plain_server(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    snprintf(rig.url, sizeof(rig.url), "wss://127.0.0.1:%d", ws_server_port(rig.server));
    struct rpc_config config = config_of(&rig);
    config.connect_timeout_ms = 300;
    client_start(&rig, &config);
    assert_true(run_until(rig.loop, has_lost, &rig, LIMIT_MS));
    assert_int_equal(rig.opened, 0);
    rig_done(&rig);
}

/* ---- urls ---- */

static void test_bad_configuration(void **state)
{
    (void)state;
    static const char *const bad[] = {"http://a", "ws://",       "ws://a:0",  "ws://a:65536",
                                      "ws://a:x", "ws://[::1",   "localhost", "ws://u@host",
                                      "ws://a b", "ws://[::1]x", ""};
    struct loop *l = loop_new();
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = {0};
        struct rpc_config config = {.url = bad[i]};
        assert_null(rpc_new(l, &config, &err));
        assert_int_equal(err.code, ERR_CONFIG);
        assert_non_null(strstr(err.text, bad[i]));
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
    struct rpc_config config = config_of(&rig);
    config.connect_timeout_ms = 15000;
    client_start(&rig, &config);
    assert_true(run_until(rig.loop, has_lost, &rig, LIMIT_MS));
    assert_non_null(strstr(rig.why.text, "no-such-host.invalid"));
    rig_done(&rig);
}

/* ---- many ---- */

static void test_many_calls(void **state)
{
    (void)state;
    struct rig rig;
    enum { N = 2000 };
    struct ask *asks = xcalloc(N, sizeof(*asks));
    rig_start(&rig);
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
    rig_done(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
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
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_close_cancels),
        cmocka_unit_test(test_close_within_a_callback),
        cmocka_unit_test(test_close_in_every_phase),
        cmocka_unit_test(test_cut_and_reconnect),
        cmocka_unit_test(test_server_comes_back),
        cmocka_unit_test(test_half_open_peer),
        cmocka_unit_test(test_pongs_keep_a_quiet_line),
        cmocka_unit_test(test_reconnect_by_the_owner),
        cmocka_unit_test(test_subscription),
        cmocka_unit_test(test_notification_before_the_answer),
        cmocka_unit_test(test_unsubscribe_within_an_early_item),
        cmocka_unit_test(test_numeric_subscription_id),
        cmocka_unit_test(test_server_ends_a_subscription),
        cmocka_unit_test(test_subscription_refused),
        cmocka_unit_test(test_connection_lost_ends_subscriptions),
        cmocka_unit_test(test_forgotten_before_the_answer),
        cmocka_unit_test(test_tls),
        cmocka_unit_test(test_tls_against_a_plain_server),
        cmocka_unit_test(test_bad_configuration),
        cmocka_unit_test(test_unknown_name),
        cmocka_unit_test(test_many_calls),
    };
    return cmocka_run_group_tests(tests, make_certificates, remove_certificates);
}
