/* Feeds, on a connection of their own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/log.h"
#include "conn/pg_codec.h"
#include "sql.h"
#include "store/conn.h"
#include "store/feeds.h"

enum { ANSWER_MS = 60000 /* longer than a statement may take: the session hangs */ };

static const char *const setup[] = {"SET statement_timeout = '50s'", NULL};

struct store_feeds {
    struct conn *conn;
    struct buf scratch;
    void (*closed)(void *arg);
    void *arg;
};

static void on_up(void *arg)
{
    (void)arg;
}

static void on_down(void *arg, const struct err *err)
{
    (void)arg;
    log_debug("feed.database_down", "code=%s text=\"%s\"", err_name(err->code), err->text);
}

struct store_feeds *store_feeds_new(struct loop *l, const char *dsn, const char *name)
{
    struct store_feeds *s = xcalloc(1, sizeof(*s));
    char full[80];
    snprintf(full, sizeof(full), "%.57s feeds", name); /* the server keeps 63 bytes */
    s->conn = conn_new(l, &(struct conn_config){.dsn = dsn,
                                                .name = full,
                                                .setup = setup,
                                                .refuse_standby = true,
                                                .answer_timeout_ms = ANSWER_MS,
                                                .on_up = on_up,
                                                .on_down = on_down,
                                                .arg = s});
    conn_open(s->conn);
    return s;
}

static void on_closed(void *arg)
{
    struct store_feeds *s = arg;
    void (*cb)(void *arg) = s->closed;
    void *cb_arg = s->arg;
    buf_done(&s->scratch);
    free(s);
    cb(cb_arg);
}

void store_feeds_close(struct store_feeds *s, void (*cb)(void *arg), void *arg)
{
    s->closed = cb;
    s->arg = arg;
    conn_close(s->conn, on_closed, s);
}

static void ask(struct store_feeds *s, struct conn_query *q, enum sql_id id, struct pg_args *a,
                void (*cb)(struct conn_query *q, const struct conn_result *r))
{
    conn_query_start(s->conn, q, sql__name(id), sql__text(id), a->count, pg_args_end(a), 1, cb);
}

static void misfit(struct err *err, enum sql_id id)
{
    err_set(err, ERR_DB_SCHEMA,
            "statement %s answered in a form that this program does not know: run txrelay migrate",
            sql__name(id));
}

/* ---- the list ---- */

static void on_list(struct conn_query *q, const struct conn_result *result)
{
    struct store_feed_list *r = CONTAINER_OF(q, struct store_feed_list, query);
    struct store_feed_row *rows = NULL;
    bool bad = false;
    r->err = q->err;
    r->row_count = 0;
    if (result) {
        r->row_count = (size_t)conn_result_rows(result);
        rows = xcalloc(r->row_count ? r->row_count : 1, sizeof(*rows));
    }
    for (size_t i = 0; i < r->row_count; i++) {
        struct pg_row row = {.r = result, .row = (int)i};
        rows[i].name = pg_get_text(&row, 0, "");
        rows[i].account = (int32_t)pg_get_int(&row, 1, 0);
        rows[i].last = pg_get_int(&row, 2, -1);
        rows[i].publishers = pg_get_bytes(&row, 3, &rows[i].publishers_len);
        rows[i].options = pg_get_text(&row, 4, "{}");
        rows[i].paused = pg_get_bool(&row, 5);
        rows[i].leader = pg_get_text(&row, 6, "");
        bad |= row.bad;
    }
    if (bad)
        misfit(&r->err, SQL_READ_FEEDS);
    r->rows = rows;
    r->cb(r);
    free(rows);
}

void store_feed_list_start(struct store_feeds *s, struct store_feed_list *r,
                           void (*cb)(struct store_feed_list *r))
{
    struct pg_args a;
    r->cb = cb;
    pg_args_begin(&a, &s->scratch);
    pg_array_begin(&a, PG_ELEM_INT4, r->count);
    for (size_t i = 0; i < r->count; i++)
        pg_elem_int4(&a, r->accounts[i]);
    pg_array_end(&a);
    pg_put_text(&a, r->holder);
    pg_put_text(&a, r->address);
    ask(s, &r->query, SQL_READ_FEEDS, &a, on_list);
}

/* ---- a batch ---- */

static void on_taken(struct conn_query *q, const struct conn_result *result)
{
    static const char *const names[] = {[STORE_FEED_TAKEN] = "taken",
                                        [STORE_FEED_ELSEWHERE] = "elsewhere",
                                        [STORE_FEED_PAUSED] = "paused",
                                        [STORE_FEED_REMOVED] = "removed"};
    struct store_feed_take *r = CONTAINER_OF(q, struct store_feed_take, query);
    r->err = q->err;
    if (result && conn_result_rows(result) == 1) {
        struct pg_row row = {.r = result};
        const char *outcome = pg_get_text(&row, 0, "");
        size_t i = 0;
        while (i < ARRAY_LEN(names) && strcmp(names[i], outcome) != 0)
            i++;
        r->taken = (enum store_feed_taken)i;
        r->last = pg_get_int(&row, 1, -1);
        if (row.bad || i == ARRAY_LEN(names))
            misfit(&r->err, SQL_TAKE_BATCH);
    } else if (result) {
        misfit(&r->err, SQL_TAKE_BATCH);
    }
    r->cb(r);
}

void store_feed_take_start(struct store_feeds *s, struct store_feed_take *r,
                           void (*cb)(struct store_feed_take *r))
{
    struct pg_args a;
    struct store_feed_call *calls = xcalloc(r->count ? r->count : 1, sizeof(*calls));
    for (size_t i = 0; i < r->count; i++)
        r->call(r->arg, i, &calls[i]);
    r->cb = cb;
    pg_args_begin(&a, &s->scratch);
    pg_put_int4(&a, r->account);
    pg_put_int8(&a, r->epoch);
    pg_put_text(&a, r->feed);
    pg_put_int8(&a, r->number);
    pg_put_bytes(&a, r->publisher, 32);
    pg_put_bytes(&a, r->digest, 32);
#define COLUMN(elem, put)                                                                          \
    do {                                                                                           \
        pg_array_begin(&a, elem, r->count);                                                        \
        for (size_t i = 0; i < r->count; i++)                                                      \
            put;                                                                                   \
        pg_array_end(&a);                                                                          \
    } while (0)
    COLUMN(PG_ELEM_BYTES, pg_elem_bytes(&a, calls[i].data, calls[i].len));
    COLUMN(PG_ELEM_INT8, pg_elem_int8(&a, calls[i].priority));
    COLUMN(PG_ELEM_INT8, pg_elem_opt(&a, calls[i].not_before_ms));
    COLUMN(PG_ELEM_INT8, pg_elem_opt(&a, calls[i].deadline_ms));
    COLUMN(PG_ELEM_INT8, pg_elem_opt(&a, calls[i].spec_version));
    COLUMN(PG_ELEM_TEXT, pg_elem_text(&a, calls[i].tip));
    COLUMN(PG_ELEM_TEXT, pg_elem_text(&a, calls[i].max_tip));
    COLUMN(PG_ELEM_INT8, pg_elem_opt(&a, calls[i].deadline_block));
    COLUMN(PG_ELEM_INT8, pg_elem_int8(&a, calls[i].retries));
#undef COLUMN
    free(calls);
    ask(s, &r->query, SQL_TAKE_BATCH, &a, on_taken);
    buf_done(&s->scratch); /* of a large batch: libpq has copied it */
}
