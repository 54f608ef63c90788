/* JSON-RPC envelope: parse, dispatch, answer, and the scripted fates of a request. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "rpc_call.h"
#include "server.h"
#include "subs.h"

static int compare_methods(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const struct method *const TABLES[] = {METHODS_AUTHOR, METHODS_CHAIN, METHODS_STATE,
                                              METHODS_SYSTEM, METHODS_DEV};
static const struct method *const NEWER[] = {METHODS_ARCHIVE, METHODS_HEAD, METHODS_TRANSACTION};

/* The i-th table of this chain; NULL behind the last one. */
static const struct method *table(const struct app *a, size_t i)
{
    if (i < ARRAY_LEN(TABLES))
        return TABLES[i];
    i -= ARRAY_LEN(TABLES);
    return a->options.newer_rpc && i < ARRAY_LEN(NEWER) ? NEWER[i] : NULL;
}

static method_fn find_method(const struct app *a, const char *name)
{
    for (size_t t = 0; table(a, t); t++)
        for (const struct method *m = table(a, t); m->name; m++)
            if (strcmp(m->name, name) == 0)
                return m->fn;
    return NULL;
}

void rpc_list_methods(struct call *c)
{
    const char *names[160];
    size_t count = 0;
    for (size_t t = 0; table(c->app, t); t++)
        for (const struct method *m = table(c->app, t); m->name && count < ARRAY_LEN(names); m++)
            names[count++] = m->name;
    qsort(names, count, sizeof names[0], compare_methods);
    struct buf *b = call_begin(c);
    buf_puts(b, "{\"methods\":[");
    for (size_t i = 0; i < count; i++) {
        if (i)
            buf_put_u8(b, ',');
        put_json_str(b, names[i]);
    }
    buf_puts(b, "]}");
    call_end(c);
}

/* The transaction in a submission's first parameter, for rules that look at it. */
static struct tx *peek_tx(const struct call *c)
{
    const json_t *v = json_array_get(c->params, 0);
    struct buf bytes = {0};
    struct tx *tx = NULL;
    if (json_is_string(v) && hex_decode(json_string_value(v), json_string_length(v), &bytes))
        tx_decode(bytes.data, bytes.len, &tx);
    buf_done(&bytes);
    return tx;
}

static struct script_rule *scripted(struct call *c)
{
    struct script *s = &c->app->script;
    if (list_empty(&s->rules))
        return NULL;
    struct tx *tx = script_wants_tx(s, c->method) ? peek_tx(c) : NULL;
    struct script_rule *r = script_request(s, c->method, tx);
    tx_unref(tx);
    if (r)
        c->app->stats.faults++;
    return r && r->action != ACTION_NONE ? r : NULL;
}

static void run(struct call *c)
{
    method_fn fn = find_method(c->app, c->method);
    if (fn)
        fn(c);
    else
        call_error(c, RPC_METHOD_NOT_FOUND, "Method not found", NULL);
}

static void run_verdict(struct call *c, struct script_rule *r)
{
    struct validity v = r->verdict;
    c->app->verdict = &v;
    run(c);
    c->app->verdict = NULL;
}

static void scripted_error(struct call *c, const json_t *error)
{
    buf_puts(c->out, "{\"jsonrpc\":\"2.0\",\"id\":");
    rpc__put_id(c->out, c->id);
    char *text = json_dumps(error, JSON_COMPACT);
    buf_printf(c->out, ",\"error\":%s}", text ? text : "{}");
    free(text);
}

struct outcome {
    enum fate fate;
    uint32_t delay_ms;
};

static struct outcome run_scripted(struct call *c, struct script_rule *r)
{
    switch (r->action) {
    case ACTION_ERROR:
        scripted_error(c, r->json);
        return (struct outcome){FATE_SEND, 0};
    case ACTION_RESULT:
        call_result_json(c, json_incref(r->json));
        return (struct outcome){FATE_SEND, 0};
    case ACTION_CUT_BEFORE:
        return (struct outcome){FATE_CUT, 0};
    case ACTION_IGNORE:
        return (struct outcome){FATE_SILENT, 0};
    case ACTION_FREEZE:
        if (c->conn)
            conn_freeze(c->conn);
        return (struct outcome){FATE_SILENT, 0};
    case ACTION_ACCEPT_AND_DROP:
        c->drop_after = true;
        run(c);
        return (struct outcome){FATE_SEND, 0};
    case ACTION_VERDICT:
        run_verdict(c, r);
        return (struct outcome){FATE_SEND, 0};
    case ACTION_CUT_AFTER:
    case ACTION_NO_REPLY:
    case ACTION_DELAY: {
        struct outcome o = {r->action == ACTION_CUT_AFTER  ? FATE_CUT
                            : r->action == ACTION_NO_REPLY ? FATE_SILENT
                                                           : FATE_DELAY,
                            r->delay_ms};
        run(c);
        return o;
    }
    case ACTION_NONE:
    case ACTION_OMIT:
    case ACTION_END:
    case ACTION_SKIP:
    case ACTION_FAIL:
    default:
        run(c);
        return (struct outcome){FATE_SEND, 0};
    }
}

/* One request object. Notifications (no id) are carried out and not answered. */
static struct outcome handle_one(struct call *c, const json_t *request)
{
    const char *method = json_string_value(json_object_get(request, "method"));
    c->id = json_object_get(request, "id");
    if (!method) {
        call_error(c, RPC_INVALID_REQUEST, "Invalid request", NULL);
        return (struct outcome){FATE_SEND, 0};
    }
    c->method = method;
    c->params = json_object_get(request, "params");
    struct script_rule *r = scripted(c);
    struct outcome o = {FATE_SEND, 0};
    if (r)
        o = run_scripted(c, r);
    else
        run(c);
    if (!c->id)
        buf_clear(c->out);
    return o;
}

/* Answers in one array, in order. Scripted fates other than sending are honoured for the batch as a
 * whole. */
static struct outcome handle_batch(struct app *a, struct conn *conn, const json_t *batch,
                                   struct buf *out)
{
    struct outcome worst = {FATE_SEND, 0};
    size_t i;
    json_t *item;
    if (json_array_size(batch) == 0) {
        rpc__put_error(out, NULL, RPC_INVALID_REQUEST, "Invalid request", NULL);
        return worst;
    }
    struct buf one = {0};
    json_array_foreach(batch, i, item)
    {
        struct call c = {.app = a, .conn = conn, .out = &one};
        struct outcome o = handle_one(&c, item);
        if (o.fate != FATE_SEND)
            worst = o;
        if (one.len) {
            buf_put_u8(out, out->len ? ',' : '[');
            buf_put(out, one.data, one.len);
        }
        buf_clear(&one);
        if (c.started)
            sub_release(c.started);
    }
    buf_done(&one);
    if (out->len)
        buf_put_u8(out, ']');
    return worst;
}

/* An answer that waits, and the subscription whose notifications wait for it. */
struct delayed {
    struct list node;
    struct app *app;
    struct loop_timer *timer;
    uint64_t conn;
    char sub_id[17];
    struct buf out;
};

static void delayed_free(struct delayed *d)
{
    list_remove(&d->node);
    d->timer = loop_timer_close(d->timer);
    buf_done(&d->out);
    free(d);
}

static void send_answer(struct conn *conn, const struct buf *out, struct sub *started)
{
    if (out->len)
        conn_send(conn, out->data, out->len);
    if (started)
        sub_release(started);
}

static void deliver_late(void *arg)
{
    struct delayed *d = arg;
    struct conn *conn = server_conn(d->app->server, d->conn);
    if (conn)
        send_answer(conn, &d->out, d->sub_id[0] ? map_get(&d->app->sub_ids, d->sub_id) : NULL);
    delayed_free(d);
}

static void delay(struct call *c, uint32_t delay_ms)
{
    struct delayed *d = xcalloc(1, sizeof *d);
    d->app = c->app;
    d->conn = conn_number(c->conn);
    if (c->started)
        memcpy(d->sub_id, c->started->id, sizeof d->sub_id);
    buf_put(&d->out, c->out->data, c->out->len);
    list_append(&c->app->delays, &d->node);
    d->timer = loop_timer_new(c->app->loop, deliver_late, d);
    loop_timer_at(d->timer, loop_now_ms(c->app->loop) + delay_ms);
}

void rpc_delays_done(struct app *a)
{
    while (!list_empty(&a->delays))
        delayed_free(CONTAINER_OF(list_first(&a->delays), struct delayed, node));
}

static struct outcome handle_text(struct call *c, const char *text, size_t len)
{
    json_t *request = json_loadb(text, len, 0, NULL);
    struct outcome o = {FATE_SEND, 0};
    if (!request) {
        rpc__put_error(c->out, NULL, RPC_PARSE_ERROR, "Parse error", NULL);
    } else if (json_is_array(request)) {
        o = handle_batch(c->app, c->conn, request, c->out);
    } else {
        o = handle_one(c, request);
    }
    c->id = c->params = NULL;
    json_decref(request);
    return o;
}

void rpc_handle(struct app *a, struct conn *conn, const char *text, size_t len)
{
    struct buf out = {0};
    struct call c = {.app = a, .conn = conn, .out = &out};
    struct outcome o = handle_text(&c, text, len);
    switch (o.fate) {
    case FATE_SEND:
        send_answer(conn, &out, c.started);
        break;
    case FATE_DELAY:
        delay(&c, o.delay_ms);
        break;
    case FATE_CUT:
        conn_cut(conn);
        break;
    case FATE_SILENT:
        break; /* a started subscription stays held: nothing is ever heard of it */
    }
    buf_done(&out);
}

/* Over HTTP an answer cannot be kept back: silence and delay are a cut connection. */
bool rpc_handle_http(struct app *a, const char *text, size_t len, struct buf *out)
{
    struct call c = {.app = a, .out = out};
    return handle_text(&c, text, len).fate == FATE_SEND;
}
