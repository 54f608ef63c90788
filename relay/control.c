/* The control endpoint: JSON lines over a unix or tcp socket. A leader takes transactions here as well as
 * from SQL; a follower refuses with the leader's address (S03).
 *
 *   {"cmd":"send","account":"alice","call":"0x..","key":"..","priority":0}  -> {"id":17}
 *   {"cmd":"status"}                                                       -> {"relay":..,"accounts":[..]}
 *   any failure                                                            ->
 * {"error":"NOT_LEADER","text":..}
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "base/log.h"
#include "internal.h"

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

struct sending {
    struct store_enqueue req;
    struct service *service;
    struct loop_peer *peer;
    json_t *request; /* keeps the strings */
    struct buf call;
    struct list node;
};

static void enqueued(struct store_req *req)
{
    struct sending *x = CONTAINER_OF(req, struct sending, req.req);
    struct service *s = x->service;
    if (x->peer && req->err.code)
        refuse(x->peer, req->err.code, req->err.text);
    else if (x->peer)
        answer(x->peer, json_pack("{s:I}", "id", (json_int_t)x->req.id));
    list_remove(&x->node);
    json_decref(x->request);
    buf_done(&x->call);
    store_req_done(req);
    free(x);
    service_op_done(s);
}

/* Who leads, as far as this relay knows: elections are only there between start and end. */
static const char *leader_of(struct service *s, struct account *a, const char **ret_address)
{
    if (!s->election || (s->phase != SERVICE_RUNNING && s->phase != SERVICE_DRAINING))
        return "";
    return election_leader(s->election, a->index, ret_address);
}

static void refuse_follower(struct service *s, struct account *a, struct loop_peer *peer)
{
    const char *address = "";
    const char *leader = leader_of(s, a, &address);
    char *text = *leader ? xasprintf("relay %s does not lead account %s: the leader is %s at %s", s->name,
                                     a->alias, leader, *address ? address : "(no address)")
                         : xasprintf("relay %s does not lead account %s and knows no leader: try again",
                                     s->name, a->alias);
    log_warn("send.refused", "account=%s leader=%s address=%s", a->alias, leader, address);
    answer(peer, json_pack("{s:s, s:s, s:s, s:s}", "error", err_name(ERR_NOT_LEADER), "text", text, "leader",
                           leader, "address", address));
    free(text);
}

static void cmd_send(struct service *s, struct loop_peer *peer, json_t *request)
{
    const char *name = NULL, *call = NULL, *key = NULL, *creator = NULL;
    int priority = 0;
    json_error_t error;
    if (json_unpack_ex(request, &error, 0, "{s:s, s:s, s?s, s?i, s?s}", "account", &name, "call", &call,
                       "key", &key, "priority", &priority, "creator", &creator)) {
        refuse(peer, ERR_ARGUMENT, error.text);
        return;
    }
    struct account *a = service_account_by_name(s, name);
    if (!a) {
        refuse(peer, ERR_ARGUMENT, "this relay has no such account");
        return;
    }
    if (!account_gate(a)) {
        refuse_follower(s, a, peer);
        return;
    }
    struct sending *x = xcalloc(1, sizeof(*x));
    if (!hex_decode(call, strlen(call), &x->call)) {
        buf_done(&x->call);
        free(x);
        refuse(peer, ERR_ARGUMENT, "call is not hexadecimal");
        return;
    }
    x->service = s;
    x->peer = peer;
    x->request = json_incref(request);
    x->req.account = a->alias;
    x->req.call = (struct store_bytes){x->call.data, x->call.len};
    x->req.key = key;
    x->req.priority = priority;
    x->req.creator = creator;
    list_append(&s->sendings, &x->node);
    s->ops++;
    store_enqueue_start(s->store, &x->req, enqueued);
}

static json_t *account_status(struct service *s, struct account *a)
{
    struct manager_view v = manager_look(a->manager);
    const char *address = "";
    const char *leader = leader_of(s, a, &address);
    const char *role = s->standalone ? "standalone" : a->role == ACCOUNT_LEADER ? "leader" : "follower";
    return json_pack("{s:s, s:s, s:s, s:I, s:b, s:s, s:s, s:i, s:I, s:I, s:I, s:I}", "alias", a->alias,
                     "address", a->address, "role", role, "epoch", (json_int_t)a->epoch, "gate",
                     account_gate(a), "leader", leader, "leader_address", address, "phase",
                     (int)manager_phase(a->manager), "next_nonce", (json_int_t)v.next_nonce, "open",
                     (json_int_t)v.open, "unsent", (json_int_t)v.unsent, "in_block", (json_int_t)v.in_block);
}

static void cmd_status(struct service *s, struct loop_peer *peer)
{
    json_t *accounts = json_array();
    for (size_t i = 0; i < s->account_count; i++)
        json_array_append_new(accounts, account_status(s, &s->accounts[i]));
    answer(peer, json_pack("{s:s, s:s, s:b, s:b, s:o}", "relay", s->name, "holder", s->holder, "database",
                           s->store_up, "chain", s->node_ready, "accounts", accounts));
}

static void on_line(void *arg, struct loop_peer *peer, const char *line, size_t len)
{
    struct service *s = arg;
    json_error_t error;
    json_t *request = json_loadb(line, len, JSON_REJECT_DUPLICATES, &error);
    const char *cmd = json_string_value(json_object_get(request, "cmd"));
    if (!request)
        refuse(peer, ERR_ARGUMENT, error.text);
    else if (cmd && !strcmp(cmd, "send"))
        cmd_send(s, peer, request);
    else if (cmd && !strcmp(cmd, "status"))
        cmd_status(s, peer);
    else
        refuse(peer, ERR_ARGUMENT, "cmd is not one of: send, status");
    json_decref(request);
}

static void on_end(void *arg, struct loop_peer *peer, const struct err *err)
{
    struct service *s = arg;
    (void)err;
    LIST_EACH (n, &s->sendings) {
        struct sending *x = CONTAINER_OF(n, struct sending, node);
        if (x->peer == peer)
            x->peer = NULL;
    }
}

int control_open(struct service *s, struct err *err)
{
    if (!s->config.control_address)
        return 0;
    struct loop_peer_events events = {.on_line = on_line, .on_end = on_end, .arg = s};
    s->control = loop_server_new(s->loop, s->config.control_address, &events, err);
    if (!s->control)
        return err->code;
    s->control_address = xstrdup(loop_server_address(s->control));
    return 0;
}
