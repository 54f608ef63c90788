#include "pg/pg_session.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/log.h"

enum { ANSWER_MS = 60000 /* longer than a statement may take: the session hangs */ };

static const char *const setup[] = {"SET statement_timeout = '50s'", NULL};

static void on_up(void *arg)
{
    (void)arg;
}

static void on_down(void *arg, const struct err *err)
{
    const struct pg_session *s = arg;
    log_debug("session.down", "part=%s code=%s text=\"%s\"", s->part, err_name(err->code),
              err->text);
}

void pg_session_open(struct pg_session *s, struct loop *l, const char *dsn, const char *name,
                     const char *part, void *owner)
{
    char full[80];
    PRE(!s->conn && owner);
    s->part = part;
    s->owner = owner;
    snprintf(full, sizeof(full), "%.57s %s", name, part); /* the server keeps 63 bytes */
    s->conn = conn_new(l, &(struct conn_config){.dsn = dsn,
                                                .name = full,
                                                .setup = setup,
                                                .refuse_standby = true,
                                                .answer_timeout_ms = ANSWER_MS,
                                                .on_up = on_up,
                                                .on_down = on_down,
                                                .arg = s});
    conn_open(s->conn);
}

static void on_closed(void *arg)
{
    struct pg_session *s = arg;
    void (*cb)(void *arg) = s->closed;
    void *cb_arg = s->arg;
    buf_done(&s->scratch);
    free(s->owner);
    cb(cb_arg);
}

void pg_session_close(struct pg_session *s, void (*cb)(void *arg), void *arg)
{
    PRE(!s->closed && cb);
    s->closed = cb;
    s->arg = arg;
    conn_close(s->conn, on_closed, s);
}

void pg_session_ask(struct pg_session *s, struct conn_query *q, enum sql_id id, struct pg_args *a,
                    void (*cb)(struct conn_query *q, const struct conn_result *r))
{
    conn_query_start(s->conn, q, sql__name(id), sql__text(id), a->count, pg_args_end(a), 1, cb);
}

void pg_session_misfit(struct err *err, enum sql_id id)
{
    err_set(err, ERR_DB_SCHEMA,
            "statement %s answered in a form that this program does not know: run txrelay migrate",
            sql__name(id));
}
