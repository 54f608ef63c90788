/* Standalone: no database is configured. The same manager over a memory store: transactions come as
 * JSON lines on standard input, statuses leave as JSON lines on standard output.
 *
 *   in:  {"account":"alice","call":"0x..",...}  (fields: enqueue_json.h)
 *        {"cmd":"cancel","id":1}, {"cmd":"bump","id":1,"tip":"1000"},
 *        {"cmd":"resume","account":"alice"}
 *   out: {"id":1,"event":"update","account":"alice","nonce":4,"hash":"0x..","state":"in_block"}
 *
 * Without a control endpoint nothing can come after the end of the input: the relay then stops as
 * soon as everything that it accepted has ended. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "base/log.h"
#include "service/enqueue_json.h"
#include "service/service_internal.h"

enum { INPUT_LINE_MAX = 4 << 20 };

struct standalone {
    struct room room;
    struct loop_stream *input;
    struct loop_task task; /* whether all has ended */
    bool input_ended;
    size_t asked; /* lines of the input that the store has not answered */
};

static void print(json_t *line)
{
    char *text = json_dumps(line, JSON_COMPACT);
    puts(text);
    fflush(stdout);
    free(text);
    json_decref(line);
}

/* ---- the end ---- */

static void check_done(struct loop_task *task)
{
    struct standalone *x = CONTAINER_OF(task, struct standalone, task);
    struct service *s = x->room.service;
    if (s->phase != SERVICE_RUNNING || x->asked || !store_mem_idle(s->store))
        return;
    log_info("relay.done", "text=\"the input has ended, and so has everything in it\"");
    s->config.on_drain(s->config.arg);
}

/* In the next round: what happened is in the tables then. */
static void check_later(struct service *s)
{
    struct standalone *x = s->standalone_room;
    loop_task_cancel(&x->task);
    if (x->input_ended)
        loop_post(s->loop, &x->task, check_done);
}

/* ---- statuses ---- */

static void standalone_event(void *arg, const char *kind, int32_t account, int64_t nonce,
                             int64_t id, const char *state, const uint8_t hash[32],
                             const char *outcome, const char *error)
{
    struct account *a = service_account_by_row(arg, account);
    json_t *line = json_pack("{s:I, s:s, s:s}", "id", (json_int_t)id, "event", kind, "account",
                             a ? a->alias : "");
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
    check_later(arg);
}

static void print_error(int code, const char *text)
{
    print(json_pack("{s:s, s:s}", "error", err_name(code), "text", text));
}

/* ---- requests ---- */

struct input {
    union {
        struct enqueue_json enqueue;
        struct ask_json ask;
    } u;
    struct service *service;
};

static struct input *input_new(struct service *s)
{
    struct input *x = xcalloc(1, sizeof(*x));
    x->service = s;
    s->ops++;
    s->standalone_room->asked++;
    return x;
}

static void input_free(struct input *x)
{
    struct service *s = x->service;
    s->standalone_room->asked--;
    check_later(s);
    free(x);
    service_op_done(s);
}

static void accepted(struct store_req *req)
{
    struct input *x = CONTAINER_OF(req, struct input, u.enqueue.req.req);
    if (req->err.code)
        print_error(req->err.code, req->err.text);
    else
        print(json_pack("{s:I, s:s, s:s}", "id", (json_int_t)x->u.enqueue.req.id, "event",
                        "accepted", "account", x->u.enqueue.req.account));
    store_req_done(req);
    enqueue_json_done(&x->u.enqueue);
    input_free(x);
}

static void answered(struct store_req *req)
{
    struct input *x = CONTAINER_OF(req, struct input, u.ask.req.req);
    if (req->err.code)
        print_error(req->err.code, req->err.text);
    else
        print(json_pack("{s:I, s:s, s:s}", "id", (json_int_t)x->u.ask.req.id, "event", "answer",
                        "answer", x->u.ask.req.answer));
    store_req_done(req);
    ask_json_done(&x->u.ask);
    input_free(x);
}

static void take_ask(struct service *s, const char *cmd, json_t *request)
{
    struct err err;
    struct input *x = input_new(s);
    if (ask_json_read(&x->u.ask, cmd, request, &err) == 0) {
        x->u.ask.start(s->store, &x->u.ask.req, answered);
        return;
    }
    print_error(err.code, err.text);
    ask_json_done(&x->u.ask);
    input_free(x);
}

static void take_enqueue(struct service *s, json_t *request)
{
    struct err err;
    struct input *x = input_new(s);
    if (enqueue_json_read(&x->u.enqueue, request, &err) == 0) {
        store_enqueue_start(s->store, &x->u.enqueue.req, accepted);
        return;
    }
    print_error(err.code, err.text);
    enqueue_json_done(&x->u.enqueue);
    input_free(x);
}

static void take(struct service *s, json_t *request)
{
    json_t *cmd = json_object_get(request, "cmd");
    const char *name = json_string_value(cmd);
    if (!cmd || (name && !strcmp(name, "send")))
        take_enqueue(s, request);
    else if (ask_json_is(name))
        take_ask(s, name, request);
    else
        print_error(ERR_ARGUMENT, "cmd is not one of: send, cancel, bump, resume");
}

static void input_ended(struct service *s)
{
    const char *failure = loop_stream_failure(s->standalone_room->input);
    if (failure)
        print_error(ERR_IO, failure);
    if (s->config.control_address)
        return;
    s->standalone_room->input_ended = true;
    check_later(s);
}

static void on_line(void *arg, const char *line, size_t len)
{
    struct service *s = arg;
    json_error_t error;
    if (!line && len) {
        print_error(ERR_ARGUMENT, "line too long");
        return;
    }
    if (!line)
        input_ended(s);
    if (!line || !len)
        return; /* what was accepted is carried out, whatever comes of the input */
    json_t *request = json_loadb(line, len, JSON_REJECT_DUPLICATES, &error);
    if (request && s->store)
        take(s, request);
    else if (request)
        print_error(ERR_CANCELED, "the relay stops");
    else
        print_error(ERR_ARGUMENT, error.text);
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
        account_poll(a, (struct poll_event){.type = POLL_EV_RANG});
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
    INVARIANT(granted ||
              a->service->phase != SERVICE_RUNNING); /* a memory store has no other relay */
    if (!granted)
        return;
    account_promote(a, epoch);
}

/* Leadership of a memory store is a formality that gives the epoch; then standard input is read. */
static void standalone_run(struct room *r)
{
    struct service *s = r->service;
    for (size_t i = 0; i < s->account_count; i++) {
        struct claiming *c = xcalloc(1, sizeof(*c));
        c->account = &s->accounts[i];
        c->req.account = s->accounts[i].store_account;
        c->req.holder = s->holder;
        c->req.address = "";
        c->req.have_lock = true;
        c->req.expiry_1_ms = c->req.expiry_2_ms = 1000; /* no other relay can claim */
        s->ops++;
        store_claim_start(s->store, &c->req, claimed);
    }
    if (s->config.read_stdin)
        CONTAINER_OF(r, struct standalone, room)->input =
            loop_stream_new(s->loop, STDIN_FILENO, INPUT_LINE_MAX, on_line, s);
}

/* ---- the room: a memory store in place of the database ---- */

static void standalone_open(struct room *r)
{
    log_warn(
        "relay.standalone",
        "relay=%s text=\"no database is configured: no failover, nothing survives this process\"",
        r->service->name);
    store_open(r->service->store);
}

static void closed(void *arg)
{
    struct room *r = arg;
    r->service->store = NULL;
    room_ended(r);
}

static void standalone_close(struct room *r)
{
    store_close(r->service->store, closed, r);
}

static void standalone_free(struct room *r)
{
    struct standalone *x = CONTAINER_OF(r, struct standalone, room);
    struct service *s = r->service;
    INVARIANT(!s->store);
    loop_stream_close(x->input);
    loop_task_cancel(&x->task);
    s->standalone_room = NULL;
    free(x);
}

static void standalone_status(const struct room *r, struct service_status *ret)
{
    ret->store = store_status(r->service->store);
}

static const struct room_ops ops = {.name = "standalone",
                                    .open = standalone_open,
                                    .run = standalone_run,
                                    .close = standalone_close,
                                    .free = standalone_free,
                                    .status = standalone_status};

struct room *service_standalone(struct service *s, struct err *err)
{
    (void)err;
    if (!s->standalone)
        return NULL;
    struct standalone *x = s->standalone_room = xcalloc(1, sizeof(*x));
    x->room = (struct room){.ops = &ops, .service = s};
    s->store = store_mem_new(s->loop, &(struct store_mem_config){.on_state = on_state,
                                                                 .on_event = standalone_event,
                                                                 .on_wake = on_wake,
                                                                 .arg = s});
    return &x->room;
}
