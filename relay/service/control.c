/* The control endpoint: JSON lines over a unix or tcp socket. A leader takes transactions here as
 * well as from SQL; a follower refuses with the leader's address.
 *
 * Any process that can open the unix socket (mode 0600) may spend; the transaction's creator is
 * that user unless the request names one. The record of operations and the log say which user gave
 * an order, and which one sent in the name of another. A tcp socket does not tell who is there, and
 * every web page of a browser on this host can reach it: it is bound to loopback addresses only and
 * answers `status`, `metrics` and `health` alone. A line that is not JSON ends the connection, so
 * that an HTTP request cannot carry one in its body.
 *
 *   {"cmd":"send","account":"alice","call":"0x..",...}  -> {"id":17}      (fields: enqueue_json.h)
 *   {"cmd":"cancel","id":17}                            -> {"answer":"requested"}
 *   {"cmd":"bump","id":17,"tip":"1000"}                 -> {"answer":"requested"}
 *   {"cmd":"resume","account":"alice"}                  -> {"answer":""}
 *   {"cmd":"retry","id":17}                             -> {"id":18}     (deadline, deadline_block)
 *   {"cmd":"drain"}                                     -> {"answer":"draining"}, the relay stops
 *   {"cmd":"metrics"}                                   -> {"text":".."}, for Prometheus
 *   {"cmd":"health"}                                    -> {"ready":true,"text":".."}
 *   {"cmd":"status"}                                    -> {"relay":..,"accounts":[..]}
 *   any failure                                         -> {"error":"NOT_LEADER","text":..} */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "loop/peer.h"
#include "service/enqueue_json.h"
#include "service/entry.h"
#include "service/service_internal.h"
#include "service/status_json.h"

static void answer(struct loop_peer *peer, json_t *reply)
{
    char *text = json_dumps(reply, JSON_COMPACT);
    loop_peer_write(peer, text, strlen(text));
    loop_peer_write(peer, "\n", 1);
    free(text);
    json_decref(reply);
}

static void refuse(struct loop_peer *peer, int code, const char *text)
{
    answer(peer, json_pack("{s:s, s:s}", "error", err_name(code), "text", text));
}

struct control {
    struct room room;
    struct loop_server *server;
    struct entry entry;
    struct list sendings; /* requests whose peer may go first */
    enum {
        CONTROL_OPEN,
        CONTROL_DRAINING, /* it takes no more requests; it is drained when these have ended */
        CONTROL_DRAINED,
    } state;
};

/* A request of the store for a peer that may go before it is answered. */
struct sending {
    union {
        struct enqueue_json enqueue;
        struct ask_json ask;
        struct store_drained drain;
    } u;
    struct control *control;
    struct loop_peer *peer;
    char creator[16]; /* the user at the other end */
    struct list node;
};

static struct sending *sending_new(struct control *c, struct loop_peer *peer)
{
    unsigned uid;
    struct sending *x = xcalloc(1, sizeof(*x));
    x->control = c;
    x->peer = peer;
    if (loop_peer_uid(peer, &uid))
        snprintf(x->creator, sizeof(x->creator), "uid:%u", uid);
    list_append(&c->sendings, &x->node);
    c->room.service->ops++;
    return x;
}

static void try_drained(struct control *c)
{
    if (c->state != CONTROL_DRAINING || !list_empty(&c->sendings))
        return;
    c->state = CONTROL_DRAINED;
    room_ended(&c->room);
}

static void sending_free(struct sending *x)
{
    struct control *c = x->control;
    list_remove(&x->node);
    free(x);
    try_drained(c);
    service_op_done(c->room.service);
}

/* Also of an order that was refused, and where there is no database that keeps a record. */
static void log_order(const struct sending *x, const char *cmd, int64_t id, const char *account,
                      const struct err *err)
{
    log_info("control.order", "cmd=%s who=%s id=%lld account=\"%s\" code=%s", cmd,
             x->creator[0] ? x->creator : "unknown", (long long)id, account ? account : "",
             err->code ? err_name(err->code) : "OK");
}

static void enqueued(struct store_req *req)
{
    struct sending *x = CONTAINER_OF(req, struct sending, u.enqueue.req.req);
    const struct store_enqueue *r = &x->u.enqueue.req;
    if (r->who)
        log_order(x, "send", r->id, r->account, &req->err);
    if (x->peer && req->err.code)
        refuse(x->peer, req->err.code, req->err.text);
    else if (x->peer)
        answer(x->peer, json_pack("{s:I}", "id", (json_int_t)x->u.enqueue.req.id));
    store_req_done(req);
    enqueue_json_done(&x->u.enqueue);
    sending_free(x);
}

static void answered(struct store_req *req)
{
    struct sending *x = CONTAINER_OF(req, struct sending, u.ask.req.req);
    log_order(x, x->u.ask.cmd, x->u.ask.req.id, x->u.ask.req.account, &req->err);
    if (x->peer && req->err.code)
        refuse(x->peer, req->err.code, req->err.text);
    else if (x->peer && x->u.ask.start == store_retry_start)
        answer(x->peer,
               json_pack("{s:I}", "id", (json_int_t)strtoll(x->u.ask.req.answer, NULL, 10)));
    else if (x->peer)
        answer(x->peer, json_pack("{s:s}", "answer", x->u.ask.req.answer));
    store_req_done(req);
    ask_json_done(&x->u.ask);
    sending_free(x);
}

static void refuse_follower(struct service *s, struct account *a, struct loop_peer *peer)
{
    const char *address = "";
    const char *leader = service_leader_of(s, a, &address);
    char *text = *leader
                     ? xasprintf("relay %s does not lead account %s: the leader is %s at %s",
                                 s->name, a->alias, leader, *address ? address : "(no address)")
                     : xasprintf("relay %s does not lead account %s and knows no leader: try again",
                                 s->name, a->alias);
    a->refused_total++;
    log_warn("send.refused", "account=%s leader=%s address=%s", a->alias, leader, address);
    answer(peer, json_pack("{s:s, s:s, s:s, s:s}", "error", err_name(ERR_NOT_LEADER), "text", text,
                           "leader", leader, "address", address));
    free(text);
}

static void cmd_send(struct control *c, struct loop_peer *peer, json_t *request)
{
    struct err err;
    struct service *s = c->room.service;
    struct sending *x = sending_new(c, peer);
    struct store_enqueue *r = &x->u.enqueue.req;
    struct account *a = NULL;
    int rc = c->state != CONTROL_OPEN ? err_set(&err, ERR_CANCELED, "the relay stops")
                                      : enqueue_json_read(&x->u.enqueue, request, &err);
    if (rc == 0 && !(a = service_account_by_name(s, r->account)))
        rc = err_set(&err, ERR_ARGUMENT, "this relay has no account \"%.80s\"", r->account);
    if (rc == 0 && account_gate(a)) {
        r->account = a->alias;
        if (!r->creator && x->creator[0])
            r->creator = x->creator;
        else if (x->creator[0] && strcmp(r->creator, x->creator) != 0)
            r->who = x->creator;
        store_enqueue_start(s->store, r, enqueued);
        return;
    }
    if (rc)
        refuse(peer, err.code, err.text);
    else
        refuse_follower(s, a, peer);
    enqueue_json_done(&x->u.enqueue);
    sending_free(x);
}

static void cmd_ask(struct control *c, struct loop_peer *peer, const char *cmd, json_t *request)
{
    struct err err;
    struct service *s = c->room.service;
    struct sending *x = sending_new(c, peer);
    int rc =
        s->store && c->state == CONTROL_OPEN ? 0 : err_set(&err, ERR_CANCELED, "the relay stops");
    if (rc || ask_json_read(&x->u.ask, cmd, request, &err)) {
        refuse(peer, err.code, err.text);
        ask_json_done(&x->u.ask);
        sending_free(x);
        return;
    }
    x->u.ask.req.who = x->creator;
    x->u.ask.start(s->store, &x->u.ask.req, answered);
}

static void cmd_status(struct service *s, struct loop_peer *peer)
{
    struct service_status status;
    service_status(s, &status);
    answer(peer, status_json(&status, loop_now_ms(s->loop)));
    service_status_done(&status);
}

static void cmd_metrics(struct service *s, struct loop_peer *peer)
{
    struct buf text = {0};
    service_metrics_text(s, &text);
    answer(peer, json_pack("{s:s}", "text", buf_str(&text)));
    buf_done(&text);
}

static void cmd_health(const struct service *s, struct loop_peer *peer)
{
    struct buf text = {0};
    bool ready = service_ready(s, &text);
    answer(peer, json_pack("{s:b, s:s}", "ready", ready, "text", buf_str(&text)));
    buf_done(&text);
}

/* What reads alone: a tcp socket may have it too. */
static bool only_reads(const char *cmd)
{
    return !strcmp(cmd, "status") || !strcmp(cmd, "metrics") || !strcmp(cmd, "health");
}

static void on_drain_noted(struct store_req *req)
{
    struct sending *x = CONTAINER_OF(req, struct sending, u.drain.req);
    log_order(x, "drain", 0, NULL, &req->err);
    if (req->err.code)
        log_warn("relay.drain_unrecorded", "relay=%s text=\"%s\"", x->control->room.service->name,
                 req->err.text);
    store_req_done(req);
    sending_free(x);
}

/* It drains also where the database cannot keep a record of it. */
static void cmd_drain(struct control *c, struct loop_peer *peer)
{
    struct service *s = c->room.service;
    if (s->store && c->state == CONTROL_OPEN) {
        struct sending *x = sending_new(c, peer);
        x->u.drain.relay = s->holder;
        x->u.drain.who = x->creator;
        store_drained_start(s->store, &x->u.drain, on_drain_noted);
    }
    answer(peer, json_pack("{s:s}", "answer", "draining"));
    service_ask_drain(s);
}

static void on_end(void *arg, struct loop_peer *peer, const struct err *err)
{
    struct control *c = arg;
    (void)err;
    LIST_EACH (n, &c->sendings) {
        struct sending *x = CONTAINER_OF(n, struct sending, node);
        if (x->peer == peer)
            x->peer = NULL;
    }
}

static void on_line(void *arg, struct loop_peer *peer, const char *line, size_t len)
{
    struct control *c = arg;
    struct service *s = c->room.service;
    json_error_t error;
    json_t *request = json_loadb(line, len, JSON_REJECT_DUPLICATES, &error);
    const char *cmd = json_string_value(json_object_get(request, "cmd"));
    if (!request) {
        refuse(peer, ERR_ARGUMENT, error.text);
        on_end(arg, peer, NULL);
        loop_peer_close(peer);
    } else if (cmd && !only_reads(cmd) && !loop_address_is_unix(s->control_address))
        refuse(peer, ERR_ARGUMENT,
               "this endpoint is a tcp socket, which does not tell who is there: it answers "
               "status, metrics and health only; use SQL or a unix socket (control: unix:/path)");
    else if (cmd && !strcmp(cmd, "send"))
        cmd_send(c, peer, request);
    else if (cmd && !strcmp(cmd, "drain"))
        cmd_drain(c, peer);
    else if (cmd && !strcmp(cmd, "status"))
        cmd_status(s, peer);
    else if (cmd && !strcmp(cmd, "metrics"))
        cmd_metrics(s, peer);
    else if (cmd && !strcmp(cmd, "health"))
        cmd_health(s, peer);
    else if (ask_json_is(cmd))
        cmd_ask(c, peer, cmd, request);
    else
        refuse(
            peer, ERR_ARGUMENT,
            "cmd is not one of: send, cancel, bump, resume, retry, drain, status, metrics, health");
    json_decref(request);
}

/* ---- the room ---- */

/* The database answers what clients asked for before: the record of this very drain among it. */
static void control_drain(struct room *r)
{
    struct control *c = CONTAINER_OF(r, struct control, room);
    c->state = CONTROL_DRAINING;
    try_drained(c);
}

/* The endpoint answers until the service ends; requests that are in flight then have ended. */
static void control_free(struct room *r)
{
    struct control *c = CONTAINER_OF(r, struct control, room);
    INVARIANT(list_empty(&c->sendings));
    entry_end(&c->entry);
    loop_server_close(c->server);
    free(c);
}

static const struct room_ops ops = {
    .name = "control", .drain = control_drain, .free = control_free};

static int try_server(struct entry *e, struct err *err)
{
    struct control *c = CONTAINER_OF(e, struct control, entry);
    struct service *s = e->service;
    struct loop_peer_events events = {.on_line = on_line, .on_end = on_end, .arg = c};
    c->server = loop_server_new(s->loop, s->config.control_address, &events, err);
    if (!c->server)
        return err->code;
    free(s->control_address);
    s->control_address = xstrdup(loop_server_address(c->server));
    return 0;
}

/* A standalone relay has no other way in, so it does not start without its control endpoint. */
struct room *service_control(struct service *s, struct err *err)
{
    if (!s->config.control_address)
        return NULL;
    PRE(loop_address_is_local(s->config.control_address));
    struct control *c = xcalloc(1, sizeof(*c));
    c->room = (struct room){.ops = &ops, .service = s};
    c->entry = (struct entry){.name = "control", .service = s, .open = try_server};
    list_init(&c->sendings);
    s->control_address = xstrdup(s->config.control_address);
    if (!s->standalone) {
        entry_begin(&c->entry);
    } else if (try_server(&c->entry, err)) {
        free(c);
        return NULL;
    }
    return &c->room;
}
