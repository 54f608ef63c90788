/* The pipeline of an established session: a FIFO of queries, a Sync after each.
 *
 *   queued --(room in flight)--> sent --result--> held --PIPELINE_SYNC--> callback
 *
 * A result is only believed at its Sync: before it the implicit transaction may still fail
 * (deferred constraints) or be lost. PQpipelineSync pushes the output buffer in libpq 15, so
 * statement and Sync leave in one write and PQflush only looks after what did not fit. */
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "conn/conn_internal.h"

enum {
    BYTES_IN_FLIGHT = 4 << 20, /* both sides would block writing, and libpq buffers all of it */
    QUERY_OVERHEAD = 64,
    RENEW_PAUSE_MS = 60000,
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
    if (!give_to_libpq(c, q, name, sql, nparams, params, result_format)) {
        struct err err = {0};
        conn__connect_err(c->pg, &err);
        conn__check_later(c, &err);
    }
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

static void flush(struct conn *c)
{
    int rc = PQflush(c->pg);
    if (rc < 0) {
        struct err err = {0};
        conn__connect_err(c->pg, &err);
        conn__check_later(c, &err);
        return;
    }
    /* Not writable for longer than needed: the loop polls level-triggered. */
    loop_poll_set(c->poll, rc ? LOOP_READABLE | LOOP_WRITABLE : LOOP_READABLE);
}

static void pump(struct conn *c)
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
    flush(c);
}

void conn__submit(struct conn *c, struct conn_query *q, const char *prepare_name, const char *sql,
                  int nparams, const struct conn_param *params, int result_format,
                  void (*cb)(struct conn_query *q, const struct conn_result *r))
{
    q->cb = cb;
    q->bytes = call_bytes(sql, nparams, params);
    if (list_empty(&c->queued) && has_room(c, q->bytes)) {
        send_query(c, q, prepare_name, sql, nparams, params, result_format);
        flush(c);
        return;
    }
    q->call = call_copy(prepare_name, sql, nparams, params, result_format);
    list_append(&c->queued, &q->node);
}

static void answer_posted(struct loop_task *task)
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
    loop_post(c->loop, &q->task, answer_posted);
}

/* ---- answers ---- */

static void complete(struct conn *c, struct conn_query *q)
{
    struct conn_result r = {.pg = q->held};
    list_remove(&q->node);
    q->held = NULL;
    c->bytes_in_flight -= q->bytes;
    c->answer_deadline_ms = loop_now_ms(c->loop) + c->config.answer_timeout_ms;
    if (!q->err.code &&
        !r.pg) { /* libpq gave a result up, e.g. for want of memory: it may have been committed */
        err_set(&q->err, ERR_DB_UNKNOWN_OUTCOME, "the database's answer was lost: %s",
                c->fatal.text);
        err_clear(&c->fatal);
    }
    q->cb(q, q->err.code ? NULL : &r); /* q may be gone now, and the session with it */
    PQclear(r.pg);
}

static void statement_failed(struct conn *c, struct conn_query *q, const PGresult *res)
{
    if (q->preparing)
        ((struct conn_statement *)q->preparing)->state = STATEMENT_NEW;
    q->preparing = NULL;
    if (!q->err.code)
        conn__result_err(res, &q->err);
    /* Tables changed under a prepared statement, or the name is not there: a new session knows
     * better. If it does not, others who use this session must not lose it again and again. */
    uint64_t now = loop_now_ms(c->loop);
    bool renew = conn__result_stale(res) && now >= c->renew_after_ms;
    if (renew)
        c->renew_after_ms = now + RENEW_PAUSE_MS;
    /* A server that was demoted does not close its sessions: the addresses are looked up again. */
    if (renew || (q->err.code == ERR_DB_READONLY && c->config.refuse_standby))
        conn__check_later(c, &q->err);
}

static void hold(struct conn_query *q, PGresult *res)
{
    PQclear(q->held);
    q->held = res;
}

static void take_result(struct conn *c, PGresult *res)
{
    struct conn_query *q = CONTAINER_OF(list_first(&c->sent), struct conn_query, node);
    switch (PQresultStatus(res)) {
    case PGRES_COMMAND_OK:
    case PGRES_TUPLES_OK:
    case PGRES_EMPTY_QUERY:
        if (q->preparing) {
            ((struct conn_statement *)q->preparing)->state = STATEMENT_READY;
            q->preparing = NULL;
            break;
        }
        if (c->raw_texts)
            conn__result_make_utf8(res);
        hold(q, res);
        return;
    case PGRES_PIPELINE_SYNC:
        PQclear(res);
        complete(c, q);
        return;
    case PGRES_PIPELINE_ABORTED:
        if (!q->err.code)
            err_set(&q->err, ERR_DB, "not executed: an earlier statement of the pipeline failed");
        break;
    case PGRES_FATAL_ERROR:
    case PGRES_NONFATAL_ERROR:
    case PGRES_BAD_RESPONSE:
        if (!conn__result_fatal(res))
            statement_failed(c, q, res);
        else if (
            !c->fatal
                 .code) /* the session ends, the outcome of q is not known; the first word explains
                                    most */
            conn__result_err(res, &c->fatal);
        break;
    case PGRES_COPY_IN:
    case PGRES_COPY_OUT:
    case PGRES_COPY_BOTH:
    case PGRES_SINGLE_TUPLE:
        err_set(&q->err, ERR_BUG, "COPY is not possible in a pipeline");
        conn__check_later(c, &q->err);
        break;
    }
    PQclear(res);
}

/* All of them, always: libpq keeps them without a bound. */
static void take_notifies(struct conn *c)
{
    PGconn *pg = c->pg;
    uint64_t session = c->session;
    for (PGnotify *n = PQnotifies(pg); n; n = c->session == session ? PQnotifies(pg) : NULL) {
        if (c->state == CONN_UP && c->config.on_notify)
            c->config.on_notify(c->config.arg, n->relname, n->extra, n->be_pid);
        PQfreemem(n);
    }
}

/* In a pipeline each query ends with NULL and each Sync without one; two NULLs in a row mean that
 * nothing is there. Outside, NULL ends the query. Every callback may end the session. */
static void drain(struct conn *c)
{
    PGconn *pg = c->pg;
    uint64_t session = c->session;
    int nulls = 0;
    while (c->session == session && !list_empty(&c->sent) && nulls < 2 && !PQisBusy(pg)) {
        PGresult *res = PQgetResult(pg);
        if (res) {
            nulls = 0;
            take_result(c, res);
        } else if (c->config.plain) {
            if (PQstatus(pg) == CONNECTION_BAD)
                break;
            complete(c, CONTAINER_OF(list_first(&c->sent), struct conn_query, node));
        } else {
            nulls++;
        }
        if (c->session == session)
            take_notifies(c);
    }
    if (c->session == session)
        take_notifies(c);
}

/* Bytes that OpenSSL has decrypted already wake no poll. */
static bool tls_pending(PGconn *pg)
{
    SSL *ssl = PQsslInUse(pg) ? PQsslStruct(pg, "OpenSSL") : NULL;
    return ssl && SSL_pending(ssl) > 0;
}

static void lost(struct conn *c)
{
    struct err err = c->fatal;
    if (!err.code)
        conn__connect_err(c->pg, &err);
    conn__session_lost(c, &err);
}

bool conn__read(struct conn *c)
{
    PGconn *pg = c->pg;
    uint64_t session = c->session;
    do {
        bool ok = PQconsumeInput(pg);
        drain(c); /* also on failure: what came before the end counts */
        if (c->session != session)
            return false;
        if (!ok || PQstatus(pg) == CONNECTION_BAD) {
            lost(c);
            return false;
        }
    } while (tls_pending(pg));
    return true;
}

static void on_io(void *arg, int status, int events)
{
    struct conn *c = arg;
    if (status < 0 || (events & LOOP_READABLE)) {
        if (!conn__read(c))
            return;
    }
    if (status < 0) { /* the kernel reports an error that a read did not find */
        lost(c);
        return;
    }
    pump(c);
}

void conn__io_start(struct conn *c)
{
    c->poll = loop_poll_new(c->loop, PQsocket(c->pg), on_io, c);
    loop_poll_set(c->poll, LOOP_READABLE);
}

/* ---- the end of a session ---- */

/* A FATAL that meets no query in flight comes as a notice. */
void conn__notice(void *arg, const PGresult *res)
{
    struct conn *c = arg;
    log_debug(
        "conn.notice", "conn=%s sqlstate=%s text=\"%s\"", c->config.name ? c->config.name : "-",
        PQresultErrorField(res, PG_DIAG_SQLSTATE) ? PQresultErrorField(res, PG_DIAG_SQLSTATE) : "",
        PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY)
            ? PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY)
            : "");
    if (PQresultErrorField(res, PG_DIAG_SEVERITY_NONLOCALIZED) && conn__result_fatal(res))
        conn__result_err(res, &c->fatal);
}

static void abandon_list(struct conn *c, struct list *head, int code, const char *text)
{
    for (struct list *n = list_first(head); n; n = list_first(head)) {
        struct conn_query *q = CONTAINER_OF(n, struct conn_query, node);
        list_remove(n);
        free(q->call);
        PQclear(q->held);
        q->call = q->held = q->preparing = NULL;
        if (!q->err.code) /* an error that the server had answered stays: that transaction was
                             rolled back */
            err_set(&q->err, code, "%s", text);
        loop_post(c->loop, &q->task, answer_posted);
    }
}

void conn__abandon(struct conn *c, int code_sent, int code_queued, const char *text)
{
    abandon_list(c, &c->sent, code_sent, text);
    abandon_list(c, &c->queued, code_queued, text);
    c->bytes_in_flight = 0;
}

void conn__answer_overdue(struct conn *c)
{
    if (list_empty(&c->sent))
        return;
    if (loop_now_ms(c->loop) < c->answer_deadline_ms) {
        loop_timer_at(c->timer, c->answer_deadline_ms);
        return;
    }
    struct err err;
    err_set(&err, ERR_DB_UNAVAILABLE, "no answer from the database within %u ms",
            c->config.answer_timeout_ms);
    conn__session_lost(c, &err);
}
