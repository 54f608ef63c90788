/* Standalone (S04): no database is configured. The same manager over a memory store: transactions come
 * as JSON lines on standard input, statuses leave as JSON lines on standard output.
 *
 *   in:  {"account":"alice","call":"0x..","key":"..","priority":0}
 *   out: {"id":1,"event":"update","account":"alice","nonce":4,"hash":"0x..","state":"in_block"}
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/hex.h"
#include "base/log.h"
#include "internal.h"

enum { INPUT_LINE_MAX = 4 << 20 };

static void print(json_t *line)
{
    char *text = json_dumps(line, JSON_COMPACT);
    puts(text);
    fflush(stdout);
    free(text);
    json_decref(line);
}

void standalone_event(void *arg, const char *kind, int32_t account, int64_t nonce, int64_t id,
                      const char *state, const uint8_t hash[32], const char *outcome, const char *error)
{
    struct account *a = service_account_by_row(arg, account);
    json_t *line =
        json_pack("{s:I, s:s, s:s}", "id", (json_int_t)id, "event", kind, "account", a ? a->alias : "");
    if (nonce >= 0)
        json_object_set_new(line, "nonce", json_integer(nonce));
    if (hash)
        json_object_set_new(line, "hash", json_string(hex_log(hash, 32)));
    if (state)
        json_object_set_new(line, "state", json_string(state));
    if (outcome)
        json_object_set_new(line, "outcome", json_string(outcome));
    if (error)
        json_object_set_new(line, "error", json_string(error));
    print(line);
}

struct input {
    struct store_enqueue req;
    struct service *service;
    json_t *request;
    struct buf call;
};

static void accepted(struct store_req *req)
{
    struct input *x = CONTAINER_OF(req, struct input, req.req);
    struct service *s = x->service;
    if (req->err.code)
        print(json_pack("{s:s, s:s}", "error", err_name(req->err.code), "text", req->err.text));
    else
        print(json_pack("{s:I, s:s, s:s}", "id", (json_int_t)x->req.id, "event", "accepted", "account",
                        x->req.account));
    json_decref(x->request);
    buf_done(&x->call);
    store_req_done(req);
    free(x);
    service_op_done(s);
}

static void take(struct service *s, json_t *request)
{
    const char *account = NULL, *call = NULL, *key = NULL;
    int priority = 0;
    json_error_t error;
    struct input *x = xcalloc(1, sizeof(*x));
    if (json_unpack_ex(request, &error, JSON_STRICT, "{s:s, s:s, s?s, s?i}", "account", &account, "call",
                       &call, "key", &key, "priority", &priority) ||
        !hex_decode(call, strlen(call), &x->call)) {
        print(json_pack("{s:s, s:s}", "error", err_name(ERR_ARGUMENT), "text",
                        call ? "call is not hexadecimal" : error.text));
        buf_done(&x->call);
        free(x);
        return;
    }
    x->service = s;
    x->request = json_incref(request);
    x->req.account = account;
    x->req.call = (struct store_bytes){x->call.data, x->call.len};
    x->req.key = key;
    x->req.priority = priority;
    s->ops++;
    store_enqueue_start(s->store, &x->req, accepted);
}

static void on_line(void *arg, const char *line, size_t len)
{
    struct service *s = arg;
    json_error_t error;
    if (!line && len) {
        print(json_pack("{s:s, s:s}", "error", err_name(ERR_ARGUMENT), "text", "line too long"));
        return;
    }
    if (!line || !len)
        return; /* the end of input ends nothing: what was accepted is still carried out */
    json_t *request = json_loadb(line, len, JSON_REJECT_DUPLICATES, &error);
    if (request)
        take(s, request);
    else
        print(json_pack("{s:s, s:s}", "error", err_name(ERR_ARGUMENT), "text", error.text));
    json_decref(request);
}

static void on_state(void *arg, enum store_state state, const struct err *err)
{
    struct service *s = arg;
    (void)err;
    s->store_up = state == STORE_UP;
    service_register(s);
}

static void on_wake(void *arg, int32_t account)
{
    struct account *a = service_account_by_row(arg, account);
    if (a)
        account_wake(a, WAKE_EV_RING);
}

void standalone_new(struct service *s)
{
    struct store_mem_config config = {
        .on_state = on_state, .on_event = standalone_event, .on_wake = on_wake, .arg = s};
    s->store = store_mem_new(s->loop, &config);
}

struct claiming {
    struct store_claim req;
    struct account *account;
};

static void claimed(struct store_req *req)
{
    struct claiming *c = CONTAINER_OF(req, struct claiming, req.req);
    struct account *a = c->account;
    int64_t epoch = c->req.epoch;
    bool granted = !req->err.code && c->req.granted;
    store_req_done(req);
    free(c);
    service_op_done(a->service);
    INVARIANT(granted || a->service->phase != SERVICE_RUNNING); /* a memory store has no other relay */
    if (!granted)
        return;
    account_promote(a, epoch);
}

/* Leadership of a memory store is a formality that gives the epoch; then standard input is read. */
void standalone_promote(struct service *s)
{
    for (size_t i = 0; i < s->account_count; i++) {
        struct claiming *c = xcalloc(1, sizeof(*c));
        c->account = &s->accounts[i];
        c->req.account = s->accounts[i].store_account;
        c->req.holder = s->holder;
        c->req.address = "";
        c->req.have_lock = true;
        c->req.expiry_1_ms = c->req.expiry_2_ms = 1000; /* nobody else can claim */
        s->ops++;
        store_claim_start(s->store, &c->req, claimed);
    }
    if (s->config.read_stdin)
        s->input = loop_stream_new(s->loop, STDIN_FILENO, INPUT_LINE_MAX, on_line, s);
}
