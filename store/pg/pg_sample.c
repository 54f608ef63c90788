/* The reader of counts and ages for the metrics. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/log.h"
#include "sql.h"
#include "store/conn.h"
#include "store/sample.h"

enum { ANSWER_MS = 15000 };

static const char *const setup[] = {"SET statement_timeout = '10s'", NULL};

struct store_sampler {
    struct loop *loop;
    struct conn *conn;
    struct loop_timer *timer;
    struct conn_query query;
    bool asked; /* a query is in flight */
    uint32_t every_ms;
    struct buf accounts; /* an int[] as text */
    void (*sample)(void *arg, const struct store_sample *s);
    void *arg;
    void (*closed)(void *arg);
    void *closed_arg;
};

static double number(const struct conn_result *r, int row, int col)
{
    return strtod(conn_result_get(r, row, col, NULL), NULL);
}

static void on_answer(struct conn_query *q, const struct conn_result *r)
{
    struct store_sampler *s = CONTAINER_OF(q, struct store_sampler, query);
    s->asked = false;
    if (!s->timer)
        return; /* closing */
    if (!r)
        log_debug("sample.failed", "code=%s text=\"%s\"", err_name(q->err.code), q->err.text);
    for (int i = 0; r && i < conn_result_rows(r); i++) {
        const struct store_sample row = {.account = (int32_t)number(r, i, 0),
                                         .waiting = (uint64_t)number(r, i, 1),
                                         .pending = (uint64_t)number(r, i, 2),
                                         .waiting_age_s = number(r, i, 3),
                                         .pending_age_s = number(r, i, 4)};
        s->sample(s->arg, &row);
    }
    loop_timer_at(s->timer, loop_now_ms(s->loop) + s->every_ms);
}

static void ask(struct store_sampler *s)
{
    struct buf rows = {0};
    buf_printf(&rows, "%d", STORE_SAMPLE_ROWS);
    const struct conn_param params[] = {{.data = buf_str(&s->accounts)}, {.data = buf_str(&rows)}};
    s->asked = true;
    conn_query_start(s->conn, &s->query, sql__name(SQL_SAMPLE_ACCOUNTS),
                     sql__text(SQL_SAMPLE_ACCOUNTS), ARRAY_LEN(params), params, 0, on_answer);
    buf_done(&rows);
}

static void on_timer(void *arg)
{
    struct store_sampler *s = arg;
    if (!s->asked && conn_is_up(s->conn))
        ask(s);
}

static void on_up(void *arg)
{
    on_timer(arg);
}

static void on_down(void *arg, const struct err *err)
{
    (void)arg;
    log_debug("sample.down", "code=%s text=\"%s\"", err_name(err->code), err->text);
}

struct store_sampler *store_sampler_new(struct loop *l, const char *dsn, const char *name,
                                        uint32_t every_ms, const int32_t *accounts, size_t count,
                                        void (*sample)(void *arg, const struct store_sample *s),
                                        void *arg)
{
    PRE(every_ms > 0);
    struct store_sampler *s = xcalloc(1, sizeof(*s));
    struct conn_config config = {.dsn = dsn,
                                 .name = name,
                                 .setup = setup,
                                 .answer_timeout_ms = ANSWER_MS,
                                 .on_up = on_up,
                                 .on_down = on_down,
                                 .arg = s};
    s->loop = l;
    s->every_ms = every_ms;
    s->sample = sample;
    s->arg = arg;
    for (size_t i = 0; i < count; i++)
        buf_printf(&s->accounts, "%s%d", i ? "," : "{", (int)accounts[i]);
    buf_puts(&s->accounts, count ? "}" : "{}");
    s->timer = loop_timer_new(l, on_timer, s);
    s->conn = conn_new(l, &config);
    conn_open(s->conn);
    return s;
}

static void on_closed(void *arg)
{
    struct store_sampler *s = arg;
    void (*cb)(void *arg) = s->closed;
    void *cb_arg = s->closed_arg;
    buf_done(&s->accounts);
    free(s);
    cb(cb_arg);
}

void store_sampler_close(struct store_sampler *s, void (*cb)(void *arg), void *arg)
{
    s->timer = loop_timer_close(s->timer);
    s->closed = cb;
    s->closed_arg = arg;
    conn_close(s->conn, on_closed, s);
}
