/* Queries of a session on their way to the server. What does not fit yet waits as a copy; the rest
 * goes to libpq, each with a Sync after it. PQpipelineSync pushes the output buffer in libpq 15, so
 * statement and Sync leave in one write and PQflush only looks after what did not fit. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "conn/conn_internal.h"

enum {
    BYTES_IN_FLIGHT = 4 << 20, /* both sides would block writing, and libpq buffers all of it */
    QUERY_OVERHEAD = 64,
};

/* What a query that waits needs: one block, the strings behind the parameters. */
struct call {
    const char *name;
    const char *sql;
    int nparams;
    int result_format;
    struct conn_param params[];
};

static size_t param_len(const struct conn_param *p)
{
    if (!p->data)
        return 0;
    return p->format ? (size_t)p->len : strlen(p->data) + 1;
}

static size_t call_bytes(const char *sql, int nparams, const struct conn_param *params)
{
    size_t n = QUERY_OVERHEAD + strlen(sql) + 1;
    for (int i = 0; i < nparams; i++)
        n += param_len(&params[i]);
    return n;
}

static char *put_bytes(char **at, const void *data, size_t n)
{
    char *out = *at;
    memcpy(out, data, n);
    *at += n;
    return out;
}

static struct call *call_copy(const char *name, const char *sql, int nparams,
                              const struct conn_param *params, int result_format)
{
    size_t fixed = sizeof(struct call) + (size_t)nparams * sizeof(*params);
    size_t name_len = name ? strlen(name) + 1 : 0;
    struct call *call = xmalloc(fixed + name_len + call_bytes(sql, nparams, params));
    char *at = (char *)call + fixed;
    *call = (struct call){.nparams = nparams, .result_format = result_format};
    call->name = name ? put_bytes(&at, name, name_len) : NULL;
    call->sql = put_bytes(&at, sql, strlen(sql) + 1);
    for (int i = 0; i < nparams; i++) {
        call->params[i] = params[i];
        if (params[i].data)
            call->params[i].data = put_bytes(&at, params[i].data, param_len(&params[i]));
    }
    return call;
}

/* ---- sending ---- */

static struct conn_statement *statement_of(struct conn *c, const char *name)
{
    for (size_t i = 0; i < c->statement_count; i++)
        if (!strcmp(c->statements[i]->name, name))
            return c->statements[i];
    struct conn_statement *s = xcalloc(1, sizeof(*s));
    s->name = xstrdup(name);
    c->statements =
        xrealloc(c->statements, (c->statement_count + 1) * sizeof(struct conn_statement *));
    return c->statements[c->statement_count++] = s;
}

static bool give_to_libpq(struct conn *c, struct conn_query *q, const char *name, const char *sql,
                          int n, const struct conn_param *params, int result_format)
{
    const char *values[CONN_PARAMS_MAX];
    int lengths[CONN_PARAMS_MAX], formats[CONN_PARAMS_MAX];
    Oid types[CONN_PARAMS_MAX];
    for (int i = 0; i < n; i++) {
        values[i] = params[i].data;
        lengths[i] = params[i].len;
        formats[i] = params[i].format;
        types[i] = params[i].oid;
    }
    if (c->config.plain && !n)
        return PQsendQuery(c->pg, sql);
    struct conn_statement *s =
        name && !c->pooled && !c->config.plain ? statement_of(c, name) : NULL;
    bool ok = true;
    if (s && s->state == STATEMENT_NEW) {
        ok = PQsendPrepare(c->pg, name, sql, n, types);
        s->state = STATEMENT_SENT;
        q->preparing = s;
    }
    if (s && (q->preparing || s->state == STATEMENT_READY))
        ok = ok && PQsendQueryPrepared(c->pg, name, n, values, lengths, formats, result_format);
    else
        ok = ok && PQsendQueryParams(c->pg, sql, n, types, values, lengths, formats, result_format);
    return ok && (c->config.plain || PQpipelineSync(c->pg));
}

static void check_later(struct conn *c)
{
    struct err err = {0};
    conn__connect_err(c->pg, &err);
    conn__check_later(c, &err);
}

static void send_query(struct conn *c, struct conn_query *q, const char *name, const char *sql,
                       int nparams, const struct conn_param *params, int result_format)
{
    if (list_empty(&c->sent) && c->config.answer_timeout_ms) {
        c->answer_deadline_ms = loop_now_ms(c->loop) + c->config.answer_timeout_ms;
        if (c->state == CONN_UP && !loop_timer_armed(c->timer))
            loop_timer_at(c->timer, c->answer_deadline_ms);
    }
    list_append(&c->sent, &q->node);
    c->bytes_in_flight += q->bytes;
    bool ok = give_to_libpq(c, q, name, sql, nparams, params, result_format);
    if (!conn__socket_open(c) || !ok)
        check_later(c);
}

static bool has_room(const struct conn *c, size_t bytes)
{
    if (list_empty(&c->sent))
        return true;
    /* One at a time: a client that goes away in the middle of a pipeline leaves answers behind that
     * a pooler may give to the next one (conn_setup.c). */
    if (c->pooled)
        return false;
    return !c->config.plain && c->bytes_in_flight + bytes <= BYTES_IN_FLIGHT;
}

void conn__flush(struct conn *c)
{
    int rc = PQflush(c->pg);
    if (!conn__socket_open(c) || rc < 0) {
        check_later(c);
        return;
    }
    /* Not writable for longer than needed: the loop polls level-triggered. */
    loop_poll_set(c->poll, rc ? LOOP_READABLE | LOOP_WRITABLE : LOOP_READABLE);
}

void conn__pump(struct conn *c)
{
    for (struct list *n = list_first(&c->queued); n; n = list_first(&c->queued)) {
        struct conn_query *q = CONTAINER_OF(n, struct conn_query, node);
        if (!has_room(c, q->bytes))
            break;
        struct call *call = q->call;
        list_remove(n);
        q->call = NULL;
        send_query(c, q, call->name, call->sql, call->nparams, call->params, call->result_format);
        free(call);
    }
    conn__flush(c);
}

void conn__submit(struct conn *c, struct conn_query *q, const char *prepare_name, const char *sql,
                  int nparams, const struct conn_param *params, int result_format,
                  void (*cb)(struct conn_query *q, const struct conn_result *r))
{
    q->cb = cb;
    q->bytes = call_bytes(sql, nparams, params);
    if (list_empty(&c->queued) && has_room(c, q->bytes)) {
        send_query(c, q, prepare_name, sql, nparams, params, result_format);
        conn__flush(c);
        return;
    }
    q->call = call_copy(prepare_name, sql, nparams, params, result_format);
    list_append(&c->queued, &q->node);
}

void conn__answer_posted(struct loop_task *task)
{
    struct conn_query *q = CONTAINER_OF(task, struct conn_query, task);
    q->cb(q, NULL);
}

void conn_query_start(struct conn *c, struct conn_query *q, const char *prepare_name,
                      const char *sql, int nparams, const struct conn_param *params,
                      int result_format,
                      void (*cb)(struct conn_query *q, const struct conn_result *r))
{
    PRE(nparams >= 0 && nparams <= CONN_PARAMS_MAX);
    *q = (struct conn_query){.cb = cb};
    if (c->state == CONN_UP) {
        conn__submit(c, q, prepare_name, sql, nparams, params, result_format, cb);
        return;
    }
    err_set(&q->err, c->state == CONN_CLOSING ? ERR_CANCELED : ERR_DB_UNAVAILABLE,
            "database is not connected");
    loop_post(c->loop, &q->task, conn__answer_posted);
}
