#include "audit/audit_ask.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/host.h"

enum { OPEN_MS = 10000, ANSWER_MS = 60000 }; /* metadata is large */

/* ---- questions ---- */

static void answered(struct rpc_call *call)
{
    struct asker_question *q = CONTAINER_OF(call, struct asker_question, call);
    const char *wrong = NULL;
    if (!call->err.code)
        wrong = q->take(q->arg, call->result);
    if (call->err.code && !q->err->code)
        err_set(q->err, call->err.code, "%s: %s%s: %s", q->asker->shown, q->method, q->params,
                call->err.text);
    else if (wrong && !q->err->code)
        err_set(q->err, ERR_PROTOCOL, "%s: %s%s: %s", q->asker->shown, q->method, q->params, wrong);
    if (--*q->left == 0)
        loop_stop(q->asker->loop);
}

int asker_ask_all(struct asker *c, struct asker_question *list, size_t count, struct err *err)
{
    size_t left = count;
    *err = (struct err){0};
    for (size_t i = 0; i < count; i++) {
        struct asker_question *q = &list[i];
        q->asker = c;
        q->left = &left;
        q->err = err;
        rpc_call_start(c->rpc, &q->call, q->method, q->params, ANSWER_MS, NULL, NULL, answered);
    }
    while (left)
        loop_run(c->loop); /* a change of the connection's state ends a run too */
    return err->code;
}

int asker_ask(struct asker *c, const char *method, const char *params,
              const char *(*take)(void *arg, const struct jv *result), void *arg, struct err *err)
{
    struct asker_question q = {.method = method, .take = take, .arg = arg};
    snprintf(q.params, sizeof(q.params), "%s", params);
    return asker_ask_all(c, &q, 1, err);
}

const char *asker_take_hash(void *arg, const struct jv *result)
{
    return jv_hex_fixed(result, arg, 32) ? NULL : "the answer is no hash";
}

const char *asker_take_number(void *arg, const struct jv *result)
{
    char text[24];
    char *end;
    if (jv_copy(jv_get(result, "number"), text, sizeof(text)) >= sizeof(text) || text[0] != '0')
        return "the answer is no header";
    *(uint64_t *)arg = strtoull(text, &end, 16);
    return *end ? "the answer is no header" : NULL;
}

const char *asker_take_spec(void *arg, const struct jv *result)
{
    int64_t spec;
    if (!jv_int(jv_get(result, "specVersion"), &spec) || spec < 0 || spec > UINT32_MAX)
        return "the answer has no specVersion";
    *(uint32_t *)arg = (uint32_t)spec;
    return NULL;
}

const char *asker_take_bytes(void *arg, const struct jv *result)
{
    return jv_hex(result, arg) ? NULL : "the answer is not hexadecimal";
}

const char *asker_take_storage(void *arg, const struct jv *result)
{
    return jv_is(result, JV_NULL) ? NULL : asker_take_bytes(arg, result);
}

/* ---- the connection ---- */

static void on_state(void *arg, enum rpc_state state, const struct err *err)
{
    struct asker *c = arg;
    if (state == RPC_OPEN)
        c->open = true;
    else if (err)
        c->err = *err;
    loop_stop(c->loop);
}

static void on_late(void *arg)
{
    struct asker *c = arg;
    c->late = true;
    loop_stop(c->loop);
}

static void rpc_gone(void *arg)
{
    struct asker *c = arg;
    c->rpc = NULL;
    loop_stop(c->loop);
}

static void disconnect(struct asker *c)
{
    if (!c->rpc)
        return;
    rpc_close(c->rpc, rpc_gone, c);
    while (c->rpc)
        loop_run(c->loop);
}

static bool connect_to(struct asker *c, const struct audit_chain_config *config, const char *url)
{
    struct rpc_config rpc = {.url = url,
                             .ca_file = config->ca_file,
                             .insecure = config->insecure,
                             .call_timeout_ms = ANSWER_MS,
                             .on_state = on_state,
                             .arg = c};
    c->rpc = rpc_new(c->loop, &rpc, &c->err);
    if (!c->rpc)
        return false;
    free(c->shown);
    c->shown = host_url_shown(url);
    c->late = false;
    loop_timer_at(c->limit, loop_now_ms(c->loop) + OPEN_MS);
    rpc_open(c->rpc);
    while (!c->open && !c->late && rpc_state(c->rpc) != RPC_BACKOFF)
        loop_run(c->loop);
    loop_timer_stop(c->limit);
    if (!c->open)
        disconnect(c);
    return c->open;
}

void asker_open(struct asker *c, struct loop *l, const struct audit_chain_config *config)
{
    PRE(!c->loop);
    c->loop = l;
    c->limit = loop_timer_new(l, on_late, c);
    err_set(&c->err, ERR_TIMEOUT, "no endpoint answered within %d s", OPEN_MS / 1000);
    for (size_t i = 0; !c->open && i < config->url_count; i++)
        connect_to(c, config, config->urls[i]);
}

void asker_close(struct asker *c)
{
    disconnect(c);
    loop_timer_close(c->limit);
    free(c->shown);
}
