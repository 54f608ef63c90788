/* What a reader missed, by SQL: the ends before its split, then the pending rows, page by page. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/log.h"
#include "events_internal.h"

enum {
    PAGE_ROWS = 200,
    PAST_MS = 60000 /* the ring is past what came from the tables */
};

static const int64_t DAY_US = 86400LL * 1000000;

static struct conn_param number(char room[24], int64_t value)
{
    snprintf(room, 24, "%" PRId64, value);
    return (struct conn_param){.data = room};
}

static int64_t value_at(const struct conn_result *r, int row, int column)
{
    int len;
    return strtoll(conn_result_get(r, row, column, &len), NULL, 10);
}

static void ask(struct follower *f, const char *file, int n, const struct conn_param *params,
                void (*cb)(struct conn_query *q, const struct conn_result *r))
{
    f->asking = true;
    conn_query_start(f->hub->api->reads, &f->query, file, api__sql(file), n, params, 0, cb);
}

/* false: it is over with this reader. */
static bool answered(struct follower *f)
{
    f->asking = false;
    if (!f->stream) {
        follower__free(f);
        return false;
    }
    if (!f->query.err.code)
        return true;
    if (err_class(f->query.err.code) != ERR_CLASS_RETRY && f->query.err.code != ERR_CANCELED)
        log_error("http.failed", "code=%s sqlstate=%s text=\"%s\"", err_name(f->query.err.code),
                  f->query.err.sqlstate, f->query.err.text);
    follower__end(f, "the database cannot be asked now: resume from your last id");
    return false;
}

/* Rows whose last column is a line of JSON. Without an id: it stays the one that was resumed from
 * until all of them are there. */
static void send_rows(struct follower *f, const struct conn_result *r)
{
    struct buf text = {0};
    int len;
    for (int i = 0; i < conn_result_rows(r); i++) {
        const char *line = conn_result_get(r, i, conn_result_columns(r) - 1, &len);
        buf_puts(&text, "data: ");
        buf_put(&text, line, (size_t)len);
        buf_puts(&text, "\n\n");
    }
    follower__say(f, &text);
    buf_done(&text);
}

/* A page of either statement: both begin with account, nonce, id and time. Returns its rows. */
static int take_page(struct follower *f, const struct conn_result *r, bool ended)
{
    int rows = conn_result_rows(r);
    if (!rows)
        return 0;
    f->after.account = (int32_t)value_at(r, rows - 1, 0);
    f->after.nonce = value_at(r, rows - 1, 1);
    f->after.id = value_at(r, rows - 1, 2);
    f->after.us = value_at(r, rows - 1, 3);
    for (int i = 0; i < rows; i++)
        told_put(f->told, &(struct told_row){.account = (int32_t)value_at(r, i, 0),
                                             .nonce = value_at(r, i, 1),
                                             .id = value_at(r, i, 2),
                                             .updated_us = value_at(r, i, 3),
                                             .ended = ended});
    send_rows(f, r);
    return rows;
}

static void on_pending(struct conn_query *q, const struct conn_result *r)
{
    struct follower *f = CONTAINER_OF(q, struct follower, query);
    const struct recent *recent = f->hub->recent;
    if (!answered(f))
        return;
    if (take_page(f, r, false) < PAGE_ROWS) {
        bool all = f->split_us == INT64_MAX;
        if (recent_first(recent) > f->joined || (!all && recent_covers(recent) > f->split_us)) {
            f->since_us = all ? f->complete_us : f->split_us;
            f->phase = FOLLOWER_WAIT;
        } else {
            f->number = all ? f->joined : recent_first(recent);
            f->phase = FOLLOWER_RING;
            f->told_until = loop_now_ms(f->hub->api->loop) + PAST_MS;
        }
    }
    follower__go_on(f);
}

static void ask_pending(struct follower *f)
{
    char room[5][24];
    struct conn_param params[] = {
        number(room[0], f->after.account), number(room[1], f->after.nonce),
        number(room[2], PAGE_ROWS),        number(room[3], f->filter.account),
        number(room[4], f->filter.id),     {.data = *f->filter.state ? f->filter.state : NULL}};
    ask(f, "events_pending.sql", 6, params, on_pending);
}

static void on_ended(struct conn_query *q, const struct conn_result *r)
{
    struct follower *f = CONTAINER_OF(q, struct follower, query);
    if (!answered(f))
        return;
    if (take_page(f, r, true) < PAGE_ROWS) {
        f->phase = FOLLOWER_PENDING;
        f->after.account = 0;
        f->after.nonce = -1;
    }
    follower__go_on(f);
}

static void ask_ended(struct follower *f)
{
    char room[8][24];
    struct conn_param params[] = {
        number(room[0], f->after.us),
        number(room[1], f->after.account),
        number(room[2], f->after.nonce),
        number(room[3], f->after.id),
        number(room[4], f->split_us == INT64_MAX ? INT64_MAX / 4 : f->split_us),
        number(room[5], PAGE_ROWS),
        number(room[6], f->filter.account),
        number(room[7], f->filter.id),
        {.data = *f->filter.state ? f->filter.state : NULL}};
    ask(f, "events_ended.sql", 9, params, on_ended);
}

static void send_gap(struct follower *f, int64_t kept_us)
{
    struct buf text = {0};
    buf_puts(&text, "data: ");
    listen_format_gap_json(f->since_us, kept_us, &text);
    buf_puts(&text, "\n\n");
    follower__say(f, &text);
    buf_done(&text);
}

static void on_position(struct conn_query *q, const struct conn_result *r)
{
    struct follower *f = CONTAINER_OF(q, struct follower, query);
    if (!answered(f))
        return;
    int64_t kept_us = value_at(r, 0, 1);
    f->complete_us = value_at(r, 0, 0);
    f->split_us = recent_split(f->hub->recent, f->complete_us);
    told_free(f->told);
    f->told = told_new();
    if (f->since_us < kept_us && f->since_us > DAY_US)
        send_gap(f, kept_us);
    f->after.us = f->since_us;
    f->after.account = 0;
    f->after.nonce = -1;
    f->after.id = -1;
    f->phase = FOLLOWER_ENDS;
    follower__go_on(f);
}

void follower__read(struct follower *f)
{
    if (f->phase == FOLLOWER_POSITION)
        ask(f, "events_position.sql", 0, NULL, on_position);
    else if (f->phase == FOLLOWER_ENDS)
        ask_ended(f);
    else
        ask_pending(f);
}
