/* The pipeline of an established session: a FIFO of queries, a Sync after each.
 *
 *   queued --(room in flight)--> sent --result--> held --PIPELINE_SYNC--> callback
 *
 * A result is only believed at its Sync: before it the implicit transaction may still fail
 * (deferred constraints) or be lost. conn_send.c sends the queries. */
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "conn/conn_internal.h"

enum {
    RENEW_PAUSE_MS = 60000,
};

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

bool conn__socket_open(struct conn *c)
{
    if (PQsocket(c->pg) < 0)
        c->poll = loop_poll_close(c->poll);
    return c->poll != NULL;
}

static bool is_busy(struct conn *c)
{
    bool busy = PQisBusy(c->pg);
    conn__socket_open(c);
    return busy;
}

static PGresult *next_result(struct conn *c)
{
    PGresult *res = PQgetResult(c->pg);
    conn__socket_open(c);
    return res;
}

/* In a pipeline each query ends with NULL and each Sync without one; two NULLs in a row mean that
 * nothing is there. Outside, NULL ends the query. Every callback may end the session. */
static void drain(struct conn *c)
{
    PGconn *pg = c->pg;
    uint64_t session = c->session;
    int nulls = 0;
    while (c->session == session && !list_empty(&c->sent) && nulls < 2 && !is_busy(c)) {
        PGresult *res = next_result(c);
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
        ok = conn__socket_open(c) && ok;
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
    conn__pump(c);
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
        loop_post(c->loop, &q->task, conn__answer_posted);
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
