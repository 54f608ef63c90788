#include "fixture.h"
#include "base/alloc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void stop_loop(void *arg)
{
    loop_stop(arg);
}

void fx_step(struct loop *l)
{
    struct loop_timer *t = loop_timer_new(l, stop_loop, l);
    loop_timer_at(t, loop_now_ms(l) + 1);
    loop_run(l);
    loop_timer_close(t);
}

/* ---- commands ---- */

static char *read_all(FILE *f)
{
    size_t len = 0, cap = 4096;
    char *out = xmalloc(cap);
    for (size_t n; (n = fread(out + len, 1, cap - len - 1, f)) > 0;) {
        len += n;
        if (cap - len < 2)
            out = xrealloc(out, cap *= 2);
    }
    while (len && out[len - 1] == '\n')
        len--;
    out[len] = 0;
    return out;
}

char *fx_shell(const char *fmt, ...)
{
    char command[4096];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(command, sizeof(command), fmt, ap);
    va_end(ap);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    char *out = read_all(f);
    int rc = pclose(f);
    if (rc)
        fail_msg("exit %d: %s\n%s", rc, command, out);
    return out;
}

char *fx_temp_dir(void)
{
    char dir[] = "/tmp/txstore-XXXXXX";
    assert_non_null(mkdtemp(dir));
    return xstrdup(dir);
}

void fx_remove_dir(char *dir)
{
    assert_true(strstr(dir, "/txstore-") || strstr(dir, "/txpg-"));
    free(fx_shell("rm -rf '%s'", dir));
    free(dir);
}

int fx_free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    close(fd);
    return ntohs(a.sin_port);
}

/* ---- servers ---- */

void fx_pg_start(struct fx_pg *pg, const char *options)
{
    if (!pg->dir)
        pg->dir = fx_shell("%s folder", PG_SH);
    /* A test that dies takes its server along. */
    free(fx_shell("(tail --pid=%d -f /dev/null; [ -d %s ] && { %s stop %s immediate; rm -rf %s; }) "
                  "</dev/null >/dev/null 2>&1 &",
                  (int)getpid(), pg->dir, PG_SH, pg->dir, pg->dir));
    pg->dsn = fx_shell("%s start %s %s 2>&1", PG_SH, pg->dir, options);
}

void fx_pg_restart(struct fx_pg *pg, const char *mode)
{
    free(fx_shell("%s restart %s %s 2>&1", PG_SH, pg->dir, mode));
}

void fx_pg_stop(struct fx_pg *pg)
{
    free(fx_shell("%s stop %s immediate 2>&1", PG_SH, pg->dir));
    free(pg->dsn);
    fx_remove_dir(pg->dir);
    *pg = (struct fx_pg){0};
}

char *fx_pg_sql(const struct fx_pg *pg, const char *sql)
{
    return fx_shell("%s psql %s -Atq -v ON_ERROR_STOP=1 -c \"%s\" 2>&1", PG_SH, pg->dir, sql);
}

/* ---- connections ---- */

static void on_up(void *arg)
{
    ((struct fx_conn *)arg)->ups++;
}

static void on_down(void *arg, const struct err *err)
{
    struct fx_conn *f = arg;
    f->downs++;
    f->down_err = *err;
}

static void on_notify(void *arg, const char *channel, const char *payload, int from_pid)
{
    struct fx_conn *f = arg;
    assert_true(from_pid > 0);
    assert_string_equal(channel, "news");
    f->notifies++;
    snprintf(f->payload, sizeof(f->payload), "%s", payload);
}

void fx_conn_config(struct fx_conn *f, struct conn_config *config, const char *dsn)
{
    *f = (struct fx_conn){0};
    *config = (struct conn_config){.dsn = dsn,
                                   .name = "test",
                                   .on_up = on_up,
                                   .on_down = on_down,
                                   .on_notify = on_notify,
                                   .arg = f};
}

static void on_closed(void *arg)
{
    ((struct fx_conn *)arg)->closed = true;
}

void fx_conn_close(struct loop *l, struct fx_conn *f)
{
    conn_close(f->c, on_closed, f);
    assert_false(f->closed);
    WAIT_FOR(l, f->closed);
}

static void on_query(struct conn_query *q, const struct conn_result *r)
{
    struct fx_query *f = CONTAINER_OF(q, struct fx_query, q);
    assert_false(f->done);
    assert_true(q->err.code ? !r : r != NULL);
    f->done = true;
    if (f->order)
        f->at = (*f->order)++;
    if (!r)
        return;
    f->rows = conn_result_rows(r);
    if (f->rows && conn_result_columns(r))
        snprintf(f->text, sizeof(f->text), "%s", conn_result_get(r, 0, 0, NULL));
}

void fx_query_params(struct conn *c, struct fx_query *f, const char *name, const char *sql, int n,
                     const struct conn_param *params)
{
    int *order = f->order;
    *f = (struct fx_query){.order = order};
    conn_query_start(c, &f->q, name, sql, n, params, 0, on_query);
    assert_false(f->done); /* never inside the start */
}

void fx_query(struct conn *c, struct fx_query *f, const char *name, const char *sql)
{
    fx_query_params(c, f, name, sql, 0, NULL);
}
