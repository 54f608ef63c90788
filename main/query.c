/* One statement on a connection of its own, for commands that query the database once. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "cli.h"
#include "command.h"
#include "embedded.h"

extern const struct embedded_file main_sql_files[];
extern const size_t main_sql_count;

const char *cli_sql(const char *file)
{
    for (size_t i = 0; i < main_sql_count; i++)
        if (!strcmp(main_sql_files[i].name, file))
            return main_sql_files[i].text;
    UNREACHABLE();
}

enum { NOTICE_MS = 5000 };

struct query {
    struct conn_query q;
    struct loop *loop;
    struct loop_timer *notice;
    struct conn *conn;
    const char *sql;
    int nparams;
    const struct conn_param *params;
    void (*rows)(void *arg, const struct conn_result *r);
    void *arg;
    struct err err;
    bool done;
};

static void closed(void *arg)
{
    (void)arg;
}

static void end_query(struct query *x, const struct err *err)
{
    if (x->done)
        return;
    x->done = true;
    x->err = *err;
    x->notice = loop_timer_close(x->notice);
    conn_close(x->conn, closed, NULL);
}

/* A statement that waits for a lock would look like a program that hangs. */
static void on_notice(void *arg)
{
    (void)arg;
    fprintf(stderr,
            "txrelay: the database has not answered for %d s. Its statement may wait for a lock "
            "(pg_stat_activity, application_name 'txrelay cli'). It goes on; Ctrl-C ends it\n",
            NOTICE_MS / 1000);
}

static void on_rows(struct conn_query *q, const struct conn_result *r)
{
    struct query *x = CONTAINER_OF(q, struct query, q);
    if (!q->err.code && x->rows)
        x->rows(x->arg, r);
    end_query(x, &q->err);
}

static void on_up(void *arg)
{
    struct query *x = arg;
    loop_timer_at(x->notice, loop_now_ms(x->loop) + NOTICE_MS);
    conn_query_start(x->conn, &x->q, NULL, x->sql, x->nparams, x->params, 0, on_rows);
}

/* Report the reason at once, without a second attempt. */
static void on_down(void *arg, const struct err *err)
{
    end_query(arg, err);
}

int cli_query(const char *dsn, const char *sql, int nparams, const struct conn_param *params,
              void (*rows)(void *arg, const struct conn_result *r), void *arg, struct err *err)
{
    struct query x = {.loop = loop_new(),
                      .sql = sql,
                      .nparams = nparams,
                      .params = params,
                      .rows = rows,
                      .arg = arg};
    struct conn_config config = {
        .dsn = dsn, .name = "txrelay cli", .on_up = on_up, .on_down = on_down, .arg = &x};
    x.notice = loop_timer_new(x.loop, on_notice, &x);
    x.conn = conn_new(x.loop, &config);
    conn_open(x.conn);
    loop_run(x.loop);
    loop_free(x.loop);
    *err = x.err;
    return err->code;
}

struct conn_param cli_text(const char *text)
{
    return (struct conn_param){.data = text};
}

int cli_run_sql(struct config *config, const char *file, int nparams,
                const struct conn_param *params,
                void (*rows)(void *arg, const struct conn_result *r), void *arg)
{
    struct err err = {0};
    int rc = cli_query(config->file->database.url, cli_sql(file), nparams, params, rows, arg, &err);
    config_done(config);
    return rc ? cli_fail(&err) : EXIT_OK;
}

/* ---- one transaction ---- */

struct found {
    struct arguments *args;
    void (*rows)(void *arg, const struct conn_result *r);
    bool any;
};

static void print_found(void *arg, const struct conn_result *r)
{
    struct found *f = arg;
    f->any = conn_result_rows(r) > 0;
    if (f->any)
        f->rows(f->args, r);
}

int cli_run_found(struct arguments *a, struct config *config, const char *file,
                  void (*rows)(void *arg, const struct conn_result *r), const char *what,
                  const char *hint)
{
    struct found found = {.args = a, .rows = rows};
    struct conn_param id = cli_text(a->word[0]);
    int rc = cli_run_sql(config, file, 1, &id, print_found, &found);
    if (rc == EXIT_OK && !found.any) {
        fprintf(stderr, "txrelay: there is no %s %s%s%s\n", what, a->word[0], hint ? ": " : "",
                hint ? hint : "");
        return EXIT_FAILED;
    }
    return rc;
}
