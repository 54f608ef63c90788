/* Housekeeping on a connection of its own; the states are in store/retention.h. */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "sql.h"
#include "store/retention.h"

enum {
    NUMBER_LEN = 24,
    ANSWER_MS = 45000 /* longer than a statement may take: the session hangs */
};

static const char *const setup[] = {"SET statement_timeout = '30s'", NULL};

static void on_answer(struct conn_query *q, const struct conn_result *r);

static void on_closed(void *arg)
{
    struct store_retention *k = arg;
    k->cb(k);
}

static void failed(struct store_retention *k, const struct err *err)
{
    if (!k->err.code && err_class(err->code) != ERR_CLASS_LOST_LEADERSHIP)
        k->err = *err;
}

static void finish(struct store_retention *k)
{
    k->state = STORE_RETENTION_CLOSE_WAIT;
    conn_close(k->conn, on_closed, k);
}

static void run(struct store_retention *k, enum store_retention_state state, enum sql_id id,
                int count, const struct conn_param *params)
{
    k->state = state;
    conn_query_start(k->conn, &k->query, NULL, sql__text(id), count, params, 0, on_answer);
}

static struct conn_param number(char text[NUMBER_LEN], int64_t n)
{
    snprintf(text, NUMBER_LEN, "%lld", (long long)n);
    return (struct conn_param){.data = text};
}

static void drop(struct store_retention *k)
{
    char days[NUMBER_LEN];
    const struct conn_param params[] = {number(days, k->days)};
    run(k, STORE_RETENTION_DROP_WAIT, SQL_DROP_PARTITIONS, ARRAY_LEN(params), params);
}

static void clean_next(struct store_retention *k)
{
    char text[4][NUMBER_LEN];
    if (k->next == k->count) {
        finish(k);
        return;
    }
    const struct store_retention_account *a = &k->accounts[k->next++];
    const struct conn_param params[] = {number(text[0], a->account), number(text[1], a->epoch),
                                        number(text[2], k->days), number(text[3], k->rows)};
    run(k, STORE_RETENTION_CLEAN_WAIT, SQL_CLEAN_ACCOUNT, ARRAY_LEN(params), params);
}

static void on_answer(struct conn_query *q, const struct conn_result *r)
{
    struct store_retention *k = CONTAINER_OF(q, struct store_retention, query);
    int64_t n =
        r && conn_result_rows(r) == 1 ? strtoll(conn_result_get(r, 0, 0, NULL), NULL, 10) : 0;
    if (k->state == STORE_RETENTION_CLOSE_WAIT)
        return; /* cancelled */
    if (!r)
        failed(k, &q->err);
    if (!conn_is_up(k->conn)) {
        finish(k);
        return;
    }
    switch (k->state) {
    case STORE_RETENTION_AHEAD_WAIT:
        k->made = n;
        drop(k);
        return;
    case STORE_RETENTION_DROP_WAIT:
        k->dropped = n;
        clean_next(k);
        return;
    case STORE_RETENTION_CLEAN_WAIT:
        k->removed += n;
        k->more |= n >= k->rows;
        clean_next(k);
        return;
    case STORE_RETENTION_CONNECT_WAIT:
    case STORE_RETENTION_CLOSE_WAIT:
        break;
    }
    UNREACHABLE();
}

static void on_up(void *arg)
{
    run(arg, STORE_RETENTION_AHEAD_WAIT, SQL_ENSURE_PARTITIONS, 0, NULL);
}

/* No second attempt: the next run is one. What was in flight was answered before. */
static void on_down(void *arg, const struct err *err)
{
    struct store_retention *k = arg;
    if (k->state == STORE_RETENTION_CLOSE_WAIT)
        return;
    failed(k, err);
    finish(k);
}

void store_retention_start(struct loop *l, struct store_retention *k, const char *dsn,
                           const char *name, void (*cb)(struct store_retention *k))
{
    char full[80];
    snprintf(full, sizeof(full), "%.52s retention", name); /* the server keeps 63 bytes */
    k->err = (struct err){0};
    k->made = k->dropped = k->removed = 0;
    k->more = false;
    k->next = 0;
    k->cb = cb;
    k->state = STORE_RETENTION_CONNECT_WAIT;
    k->conn = conn_new(l, &(struct conn_config){.dsn = dsn,
                                                .name = full,
                                                .setup = setup,
                                                .refuse_standby = true,
                                                .answer_timeout_ms = ANSWER_MS,
                                                .on_up = on_up,
                                                .on_down = on_down,
                                                .arg = k});
    conn_open(k->conn);
}

void store_retention_cancel(struct store_retention *k)
{
    struct err err;
    if (k->state == STORE_RETENTION_CLOSE_WAIT)
        return;
    err_set(&err, ERR_CANCELED, "the relay stops");
    failed(k, &err);
    finish(k);
}
