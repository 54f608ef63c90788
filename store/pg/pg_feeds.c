/* Feeds, on a connection of their own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "pg/pg_session.h"
#include "store/feeds.h"

struct store_feeds {
    struct pg_session session;
};

struct store_feeds *store_feeds_new(struct loop *l, const char *dsn, const char *name)
{
    struct store_feeds *s = xcalloc(1, sizeof(*s));
    pg_session_open(&s->session, l, dsn, name, "feeds", s);
    return s;
}

void store_feeds_close(struct store_feeds *s, void (*cb)(void *arg), void *arg)
{
    pg_session_close(&s->session, cb, arg);
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
        pg_session_misfit(&r->err, SQL_READ_FEEDS);
    r->rows = rows;
    r->cb(r);
    free(rows);
}

void store_feed_list_start(struct store_feeds *s, struct store_feed_list *r,
                           void (*cb)(struct store_feed_list *r))
{
    struct pg_args a;
    r->cb = cb;
    pg_args_begin(&a, &s->session.scratch);
    pg_array_begin(&a, PG_ELEM_INT4, r->count);
    for (size_t i = 0; i < r->count; i++)
        pg_elem_int4(&a, r->accounts[i]);
    pg_array_end(&a);
    pg_put_text(&a, r->holder);
    pg_put_text(&a, r->address);
    pg_session_ask(&s->session, &r->query, SQL_READ_FEEDS, &a, on_list);
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
            pg_session_misfit(&r->err, SQL_TAKE_BATCH);
    } else if (result) {
        pg_session_misfit(&r->err, SQL_TAKE_BATCH);
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
    pg_args_begin(&a, &s->session.scratch);
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
    pg_session_ask(&s->session, &r->query, SQL_TAKE_BATCH, &a, on_taken);
    buf_done(&s->session.scratch); /* of a large batch: libpq has copied it */
}
