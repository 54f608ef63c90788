/* What the commands share. */
#include "cli.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/hex.h"
#include "base/log.h"
#include "embedded.h"
#include "loop/peer.h"

extern const struct embedded_file main_sql_files[];
extern const size_t main_sql_count;

const char *cli_sql(const char *file)
{
    for (size_t i = 0; i < main_sql_count; i++)
        if (!strcmp(main_sql_files[i].name, file))
            return main_sql_files[i].text;
    UNREACHABLE();
}

/* ---- options ---- */

static const struct argp_option common_options[] = {
    {"config", 'c', "FILE", 0, "configuration file (environment: TXRELAY_CONFIG)", 90},
    {"database", 'd', "URL", 0, "libpq connection string (TXRELAY_DATABASE)", 90},
    {"endpoint", 'e', "URL[,URL]", 0, "chain nodes, ws:// or wss:// (TXRELAY_ENDPOINTS)", 90},
    {"name", 'n', "NAME", 0, "name of this relay (TXRELAY_NAME)", 90},
    {"control", 'l', "ADDRESS", 0, "control endpoint, unix:/path or tcp:host:port (TXRELAY_CONTROL)", 90},
    {"log-level", 'v', "LEVEL", 0, "error, warn, info or debug (TXRELAY_LOG_LEVEL)", 90},
    {0},
};

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
    struct config_flags *f = state->input;
    switch (key) {
    case 'c':
        f->path = arg;
        return 0;
    case 'd':
        f->database = arg;
        return 0;
    case 'e':
        f->endpoint = arg;
        return 0;
    case 'n':
        f->name = arg;
        return 0;
    case 'l':
        f->control = arg;
        return 0;
    case 'v':
        f->log_level = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp cli_common_argp = {.options = common_options, .parser = parse_common};

int cli_fail(const struct err *err)
{
    fprintf(stderr, "txrelay: %s\n", err->text[0] ? err->text : err_text(err->code));
    return EXIT_FAILED;
}

int cli_load(const struct config_flags *flags, bool need_database, struct config *ret)
{
    struct err err = {0};
    if (config_load(flags, ret, &err)) {
        cli_fail(&err);
        return EXIT_USAGE;
    }
    if (need_database && !ret->file->database.url) {
        config_done(ret);
        fputs("txrelay: no database is given: use --database, TXRELAY_DATABASE or database.url in the config "
              "file\n",
              stderr);
        return EXIT_USAGE;
    }
    return 0;
}

/* ---- one statement ---- */

struct query {
    struct conn_query q;
    struct loop *loop;
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
    conn_close(x->conn, closed, NULL);
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
    conn_query_start(x->conn, &x->q, NULL, x->sql, x->nparams, x->params, 0, on_rows);
}

/* A person at a terminal wants the reason at once: no second attempt. */
static void on_down(void *arg, const struct err *err)
{
    end_query(arg, err);
}

int cli_query(const char *dsn, const char *sql, int nparams, const struct conn_param *params,
              void (*rows)(void *arg, const struct conn_result *r), void *arg, struct err *err)
{
    struct query x = {
        .loop = loop_new(), .sql = sql, .nparams = nparams, .params = params, .rows = rows, .arg = arg};
    struct conn_config config = {
        .dsn = dsn, .name = "txrelay cli", .on_up = on_up, .on_down = on_down, .arg = &x};
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

bool cli_is_number(const char *text, bool negative)
{
    const char *digits = negative && *text == '-' ? text + 1 : text;
    return *digits && strspn(digits, "0123456789") == strlen(digits);
}

/* ---- one control line ---- */

enum { CONTROL_TIMEOUT_MS = 10000 };

struct control {
    const char *line;
    void (*answer)(void *arg, const char *line);
    void *arg;
    struct loop_timer *timer;
    struct loop_peer *peer;
    struct err *err;
};

static void control_open(void *arg, struct loop_peer *peer)
{
    struct control *c = arg;
    loop_peer_write(peer, c->line, strlen(c->line));
    loop_peer_write(peer, "\n", 1);
}

static void control_line(void *arg, struct loop_peer *peer, const char *line, size_t len)
{
    struct control *c = arg;
    (void)len;
    c->answer(c->arg, line);
    err_clear(c->err);
    c->timer = loop_timer_close(c->timer);
    loop_peer_close(peer);
}

static void control_end(void *arg, struct loop_peer *peer, const struct err *err)
{
    struct control *c = arg;
    (void)peer;
    err_set(c->err, ERR_NET, "%s",
            err->code ? err->text : "the relay closed the connection without an answer");
    c->timer = loop_timer_close(c->timer);
}

static void control_late(void *arg)
{
    struct control *c = arg;
    err_set(c->err, ERR_TIMEOUT, "the relay did not answer within %d s", CONTROL_TIMEOUT_MS / 1000);
    c->timer = loop_timer_close(c->timer);
    loop_peer_close(c->peer);
}

int cli_control(const char *address, const char *line, void (*answer)(void *arg, const char *line), void *arg,
                struct err *err)
{
    struct loop *l = loop_new();
    struct control c = {.line = line, .answer = answer, .arg = arg, .err = err};
    struct loop_peer_events events = {control_open, control_line, control_end, &c};
    c.timer = loop_timer_new(l, control_late, &c);
    loop_timer_at(c.timer, loop_now_ms(l) + CONTROL_TIMEOUT_MS);
    c.peer = loop_peer_connect(l, address, &events, err);
    if (!c.peer)
        c.timer = loop_timer_close(c.timer);
    loop_run(l);
    loop_free(l);
    return err->code;
}

/* ---- following ---- */

void cli_follow_state(const char *command, bool live, uint64_t age_ms, const struct err *err)
{
    char event[32];
    snprintf(event, sizeof(event), "%s.%s", command, live ? "live" : "stale");
    if (live)
        log_info(event, "text=\"caught up with the database\"");
    else
        log_error(event, "role=follower age_s=%llu code=%s text=\"%s\"", (unsigned long long)(age_ms / 1000),
                  err_name(err->code), err->text);
}

/* ---- results ---- */

static int cell_width(const struct conn_result *r, int row, int col)
{
    int len = 1;
    if (!conn_result_is_null(r, row, col))
        conn_result_get(r, row, col, &len);
    return len > 66 ? 66 : len;
}

void cli_print_table(const struct conn_result *r)
{
    int columns = conn_result_columns(r), rows = conn_result_rows(r);
    int *width = xcalloc((size_t)columns, sizeof(int));
    for (int c = 0; c < columns; c++) {
        width[c] = (int)strlen(conn_result_name(r, c));
        for (int i = 0; i < rows; i++)
            if (cell_width(r, i, c) > width[c])
                width[c] = cell_width(r, i, c);
        printf("%-*s%s", width[c], conn_result_name(r, c), c + 1 < columns ? "  " : "\n");
    }
    for (int i = 0; i < rows; i++)
        for (int c = 0; c < columns; c++) {
            int len = 1;
            const char *text = conn_result_is_null(r, i, c) ? "-" : conn_result_get(r, i, c, &len);
            printf("%-*.*s%s", width[c], len > 66 ? 66 : len, text, c + 1 < columns ? "  " : "\n");
        }
    free(width);
}

void cli_print_value(void *arg, const struct conn_result *r)
{
    int len;
    (void)arg;
    if (conn_result_rows(r) && !conn_result_is_null(r, 0, 0))
        puts(conn_result_get(r, 0, 0, &len));
}
