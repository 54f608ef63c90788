#include "support_rpc.h"

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
/* ---- the server's script: the method says what happens ---- */

static void answer(struct ws_peer *p, const json_t *id, const char *result)
{
    ws_peer_printf(p, "{\"jsonrpc\":\"2.0\",\"result\":%s,\"id\":%" JSON_INTEGER_FORMAT "}", result,
                   json_integer_value(id));
}

static void notify(struct ws_peer *p, const char *id, const char *item)
{
    ws_peer_printf(
        p,
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

static void notify_big(struct ws_peer *p, const char *id, size_t n)
{
    struct buf b = {0};
    buf_printf(&b,
               "{\"jsonrpc\":\"2.0\",\"method\":\"note\",\"params\":{\"subscription\":\"%s\","
               "\"result\":\"",
               id);
    memset(buf_grow(&b, n), 'x', n);
    b.len += n;
    buf_puts(&b, "\"}}");
    ws_peer_send(p, buf_str(&b));
    buf_done(&b);
}

static void serve(struct rig *rig, struct ws_peer *p, const char *method, const json_t *id,
                  const json_t *params)
{
    char *text = json_dumps(params, JSON_COMPACT);
    if (rig->hook && rig->hook(rig, p, method, id, text)) {
    } else if (!strcmp(method, "echo")) {
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
        ws_peer_send(p, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32007,\"message\":"
                        "\"Request is too big\"}}");
    } else if (!strcmp(method, "empty")) {
        ws_peer_printf(p, "{\"jsonrpc\":\"2.0\",\"id\":%" JSON_INTEGER_FORMAT "}",
                       json_integer_value(id));
    } else if (!strcmp(method, "garbage")) {
        ws_peer_send(p, "}{ not json");
        ws_peer_send(p, "[1,2,3]");
        ws_peer_send(p, "\"text\"");
        ws_peer_send(p, "{\"id\":\"other\",\"result\":1}");
        ws_peer_send(p, "{\"id\":18446744073709551616,\"result\":1}");
        ws_peer_send(p, "{\"method\":\"note\",\"params\":7}");
        answer(p, id, "\"not UTF-8: \xff\""); /* were one of these taken, it would be the answer */
        answer(p, id, "\"half a pair: \\ud800\"");
        answer(p, id, "01");
        answer(p, id, "[1,]");
        answer(p, id, "{\"a\" 1}");
        answer(p, id, "1},{\"a\":1");
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
        notify(p, "\"E\\u0031\"", " 2 ");
        answer(p, id, "\"E1\"");
        notify(p, "\"E1\"", "3");
    } else if (!strcmp(method, "sub_early_flood")) {
        notify(p, "\"E1\"", "1");
        for (unsigned i = 0; i < 3; i++)
            notify_big(p, "other", 400 << 10);
        answer(p, id, "\"E1\"");
        notify(p, "\"E1\"", "2");
    } else if (!strcmp(method, "sub_early_many")) {
        notify(p, "\"E1\"", "1");
        for (unsigned i = 0; i < 1100; i++)
            notify(p, "\"other\"", "0");
        answer(p, id, "\"E1\"");
        notify(p, "\"E1\"", "2");
    } else if (!strcmp(method, "sub_early_large")) {
        notify(p, "\"E1\"", "1");
        notify_big(p, "E1", 2 << 20);
        answer(p, id, "\"E1\"");
        notify(p, "\"E1\"", "2");
    } else if (!strcmp(method, "sub_number")) {
        answer(p, id, "42");
        notify(p, "42", "1");
    } else if (!strcmp(method, "sub_ends")) {
        answer(p, id, "\"X\"");
        ws_peer_send(
            p,
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
    assert_non_null(err);
    if (state == RPC_CLOSED) {
        rig->stopped++;
        return;
    }
    assert_int_equal(state, RPC_BACKOFF);
    rig->lost++;
    rig->why = *err;
}

void set_true(void *arg)
{
    *(bool *)arg = true;
}

bool is_true(void *arg)
{
    return *(bool *)arg;
}

bool is_open(void *arg)
{
    return rpc_state(((struct rig *)arg)->rpc) == RPC_OPEN;
}

bool has_lost(void *arg)
{
    return ((struct rig *)arg)->lost > 0;
}

struct rpc_config rpc_rig_config(struct rig *rig)
{
    return (struct rpc_config){.url = rig->url,
                               .backoff_base_ms = 5,
                               .backoff_cap_ms = 20,
                               .on_state = on_state,
                               .arg = rig};
}

void server_start(struct rig *rig, const char *cert, const char *key, int port)
{
    struct ws_script script = {.cert_file = cert,
                               .key_file = key,
                               .on_open = server_open,
                               .on_text = server_text,
                               .arg = rig};
    rig->server = ws_server_new(rig->loop, &script, port);
    rig->server_gone = false;
}

void server_stop(struct rig *rig)
{
    ws_server_close(rig->server, set_true, &rig->server_gone);
    assert_true(run_until(rig->loop, is_true, &rig->server_gone, LIMIT_MS));
    rig->server = NULL;
}

void client_start(struct rig *rig, const struct rpc_config *config)
{
    struct err err = {0};
    rig->rpc = rpc_new(rig->loop, config, &err);
    if (!rig->rpc)
        fail_msg("%s", err.text);
    rpc_open(rig->rpc);
}

void rpc_rig_open(struct rig *rig)
{
    *rig = (struct rig){.loop = loop_new()};
    server_start(rig, NULL, NULL, 0);
    snprintf(rig->url, sizeof(rig->url), "ws://127.0.0.1:%d", ws_server_port(rig->server));
}

void rpc_rig_start(struct rig *rig)
{
    rpc_rig_open(rig);
    struct rpc_config config = rpc_rig_config(rig);
    client_start(rig, &config);
    assert_true(run_until(rig->loop, is_open, rig, LIMIT_MS));
}

void client_stop(struct rig *rig)
{
    rpc_close(rig->rpc, set_true, &rig->rpc_gone);
    assert_false(rig->rpc_gone);
    assert_true(run_until(rig->loop, is_true, &rig->rpc_gone, LIMIT_MS));
    rig->rpc = NULL;
}

void rpc_rig_done(struct rig *rig)
{
    if (rig->rpc)
        client_stop(rig);
    if (rig->server)
        server_stop(rig);
    json_decref(rig->held);
    loop_free(rig->loop);
}

/* ---- one call ---- */

void asked(struct rpc_call *call)
{
    struct ask *a = CONTAINER_OF(call, struct ask, call);
    a->done = true;
    a->times++;
    if (call->result) {
        size_t size = call->result->len + sizeof("\"\"");
        a->result = xmalloc(size);
        jv_text(call->result, a->result, size);
    }
    if (a->order)
        a->place = ++*a->order;
}

void ask(struct rig *rig, struct ask *a, const char *method, const char *params,
         uint32_t timeout_ms)
{
    rpc_call_start(rig->rpc, &a->call, method, params, timeout_ms, NULL, NULL, asked);
    assert_false(a->done);
}

void ask_done(struct ask *a)
{
    assert_int_equal(a->times, 1);
    free(a->result);
    a->result = NULL;
}

void await(struct rig *rig, struct ask *a)
{
    assert_true(run_until(rig->loop, is_true, &a->done, LIMIT_MS));
}
