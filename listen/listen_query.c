/* The listener's statements: listen/sql/<verb_noun>.sql, embedded. All of them only read, each in a
 * transaction of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/hex.h"
#include "base/log.h"
#include "embedded.h"
#include "listen_internal.h"

extern const struct embedded_file listen_sql_files[];
extern const size_t listen_sql_count;

enum { ROW_COLUMNS = 12, NUMBER_LEN = 24 };

/* Usage of the server's notification queue: at the first a warning; at the second nothing is
 * notified (queue_measure in schema/functions), so the table has to be read. */
static const double QUEUE_FILLS = 0.05, QUEUE_SHUT = 0.25;

const char *const listen__channels[] = {"leader_change",     "outbox_wake",        "pending_tx_new",
                                        "pending_tx_update", "pending_tx_removed", NULL};

static const char *statement(const char *name)
{
    for (size_t i = 0; i < listen_sql_count; i++)
        if (!strcmp(listen_sql_files[i].name, name))
            return listen_sql_files[i].text;
    UNREACHABLE();
}

/* ---- parameters ---- */

struct args {
    struct conn_param params[8];
    char numbers[8][NUMBER_LEN];
    int count;
};

static void put_number(struct args *a, int64_t n)
{
    snprintf(a->numbers[a->count], NUMBER_LEN, "%lld", (long long)n);
    a->params[a->count] = (struct conn_param){.data = a->numbers[a->count]};
    a->count++;
}

static void put_text(struct args *a, const char *text)
{
    a->params[a->count++] = (struct conn_param){.data = text};
}

static void put_filter(struct args *a, int64_t n)
{
    if (n)
        put_number(a, n);
    else
        put_text(a, NULL);
}

static void ask(struct listen *s, struct question *q, const char *name, const struct args *a,
                void (*cb)(struct conn_query *q, const struct conn_result *r))
{
    PRE(!q->busy);
    if (!listen__asking(s))
        s->busy_since = loop_now_ms(s->loop);
    q->busy = true;
    q->s = s;
    /* Not prepared, so that the planner sees the filters as constants. */
    conn_query_start(s->conn, &q->query, NULL, statement(name), a ? a->count : 0,
                     a ? a->params : NULL, 0, cb);
}

bool listen__asking(const struct listen *s)
{
    return s->read_accounts.busy || s->sources.busy || s->scan.busy || s->lookup.busy;
}

/* True if the answer can be used. If it has no rows because the session ended, on_down follows. */
static bool answered(struct question *q, const struct conn_result *r)
{
    struct listen *s = q->s;
    q->busy = false;
    if (listen__closing(s))
        return false;
    if (!r && conn_is_up(s->conn))
        listen__question_failed(s, &q->query.err);
    return r && s->state != LISTEN_RETRY_WAIT && s->state != LISTEN_CONNECT_WAIT;
}

static void misfit(struct listen *s, const char *name)
{
    struct err err;
    err_set(
        &err, ERR_DB_SCHEMA,
        "statement %s answered in a form that this program does not know: program and schema have "
        "different versions; run txrelay migrate",
        name);
    listen__question_failed(s, &err);
}

/* ---- rows ---- */

static bool number_at(const struct conn_result *r, int row, int column, int64_t null, int64_t *ret)
{
    *ret = null;
    if (conn_result_is_null(r, row, column))
        return true;
    char *end;
    const char *text = conn_result_get(r, row, column, NULL);
    *ret = strtoll(text, &end, 10);
    return *text && !*end;
}

static bool hash_at(const struct conn_result *r, int row, int column, uint8_t ret[32],
                    bool *ret_has)
{
    int len;
    const char *hex = conn_result_get(r, row, column, &len);
    *ret_has = !conn_result_is_null(r, row, column);
    return !*ret_has || (len == 64 && hex_decode_fixed(hex, 64, ret, 32));
}

static const char *text_at(const struct conn_result *r, int row, int column)
{
    return conn_result_is_null(r, row, column) ? "" : conn_result_get(r, row, column, NULL);
}

static bool decode(const struct conn_result *r, int row, struct listen_event *ev)
{
    int64_t account;
    *ev = (struct listen_event){.alias = "",
                                .state = text_at(r, row, 4),
                                .outcome = text_at(r, row, 7),
                                .error = text_at(r, row, 8),
                                .creator = text_at(r, row, 9),
                                .trace = text_at(r, row, 11)};
    bool fits = number_at(r, row, 0, 0, &account) && number_at(r, row, 1, -1, &ev->nonce) &&
                number_at(r, row, 2, 0, &ev->id) && hash_at(r, row, 3, ev->hash, &ev->has_hash) &&
                hash_at(r, row, 5, ev->block_hash, &ev->has_block) &&
                number_at(r, row, 6, -1, &ev->block_number) &&
                number_at(r, row, 10, 0, &ev->updated_at_us);
    ev->account = (int32_t)account;
    return fits && account > 0;
}

/* The rows of an answer as a cursor's event. */
static void feed_rows(struct listen *s, enum cursor_event_type type, const struct conn_result *r,
                      const char *name)
{
    int count = conn_result_rows(r);
    struct listen_event *rows = xcalloc((size_t)count + 1, sizeof(*rows));
    bool fits = conn_result_columns(r) == ROW_COLUMNS;
    for (int i = 0; i < count && fits; i++)
        fits = decode(r, i, &rows[i]);
    if (fits)
        listen__step(
            s, &(struct cursor_event){.type = type,
                                      .answer = {.rows = rows,
                                                 .count = (size_t)count,
                                                 .last = (uint32_t)count < s->config.scan_rows}});
    else
        misfit(s, name);
    free(rows);
}

/* ---- questions ---- */

static void on_accounts(struct conn_query *query, const struct conn_result *r)
{
    struct question *q = CONTAINER_OF(query, struct question, query);
    struct listen *s = q->s;
    int64_t now_us, kept_us;
    if (!answered(q, r))
        return;
    if (listen__accounts_take(s, r, &now_us, &kept_us))
        listen__accounts_read(s, now_us, kept_us);
    else
        misfit(s, "read_accounts");
}

void listen__read_accounts(struct listen *s)
{
    ask(s, &s->read_accounts, "read_accounts.sql", NULL, on_accounts);
}

static void on_sources(struct conn_query *query, const struct conn_result *r)
{
    struct question *q = CONTAINER_OF(query, struct question, query);
    struct listen *s = q->s;
    if (!answered(q, r))
        return;
    if (listen__sources_take(s, r))
        listen__drain_buffered(s);
    else
        misfit(s, "read_sources");
}

void listen__read_sources(struct listen *s)
{
    ask(s, &s->sources, "read_sources.sql", NULL, on_sources);
}

static void on_pending(struct conn_query *query, const struct conn_result *r)
{
    struct question *q = CONTAINER_OF(query, struct question, query);
    struct listen *s = q->s;
    s->scan_pending = false;
    if (!answered(q, r))
        return;
    feed_rows(s, CURSOR_EV_PENDING, r, "scan_pending");
    if (!listen__closing(s) && !s->scan_pending)
        listen__drain_buffered(s);
}

void listen__scan_pending(struct listen *s, const struct cursor_effect *fx)
{
    struct args a = {0};
    const struct account_row *only = s->account ? listen__account_by_name(s, s->account) : NULL;
    put_number(&a, fx->after.account);
    put_number(&a, fx->after.nonce);
    put_number(&a, s->config.scan_rows);
    put_filter(&a, only ? only->number : 0);
    put_filter(&a, s->config.id);
    s->scan_pending = true;
    ask(s, &s->scan, "scan_pending.sql", &a, on_pending);
}

static void on_finished(struct conn_query *query, const struct conn_result *r)
{
    struct question *q = CONTAINER_OF(query, struct question, query);
    if (answered(q, r))
        feed_rows(q->s, CURSOR_EV_FINISHED, r, "scan_finished");
}

void listen__scan_finished(struct listen *s, const struct cursor_effect *fx)
{
    struct args a = {0};
    const struct account_row *only = s->account ? listen__account_by_name(s, s->account) : NULL;
    put_number(&a, fx->after.since_us);
    put_number(&a, fx->after.account);
    put_number(&a, fx->after.nonce);
    put_number(&a, fx->after.id);
    put_number(&a, s->config.scan_rows);
    put_filter(&a, only ? only->number : 0);
    put_filter(&a, s->config.id);
    ask(s, &s->scan, "scan_finished.sql", &a, on_finished);
}

static void on_looked_up(struct conn_query *query, const struct conn_result *r)
{
    struct question *q = CONTAINER_OF(query, struct question, query);
    if (answered(q, r))
        feed_rows(q->s, CURSOR_EV_LOOKED_UP, r, "find_finished");
}

static void put_element(struct buf *b, int64_t n)
{
    buf_printf(b, "%s%lld", b->len > 1 ? "," : "", (long long)n);
}

void listen__look_up(struct listen *s)
{
    const struct cursor_lookup *lookups;
    size_t count = cursor_lookups(s->cursor, &lookups);
    struct buf list[3] = {{0}, {0}, {0}}; /* ids; accounts and nonces of fillers */
    struct args a = {0};
    for (int i = 0; i < 3; i++)
        buf_puts(&list[i], "{");
    for (size_t i = 0; i < count; i++) {
        if (lookups[i].id) {
            put_element(&list[0], lookups[i].id);
            continue;
        }
        put_element(&list[1], lookups[i].account);
        put_element(&list[2], lookups[i].nonce);
    }
    for (int i = 0; i < 3; i++) {
        buf_puts(&list[i], "}");
        put_text(&a, buf_str(&list[i]));
    }
    ask(s, &s->lookup, "find_finished.sql", &a, on_looked_up);
    for (int i = 0; i < 3; i++)
        buf_done(&list[i]);
}

/* ---- the proof of life ---- */

static int channel_count(const struct listen *s)
{
    return s->config.signals_only ? 2 : 5;
}

static void warn_of_queue(struct listen *s, double usage)
{
    if (usage < QUEUE_FILLS)
        return;
    log_warn("listen.queue",
             "usage=%.2f text=\"the server's notification queue fills up: a session that listens "
             "stays in a transaction (pg_stat_activity: idle in transaction); end it. %s\"",
             usage,
             usage < QUEUE_SHUT
                 ? "From 0.25 on transactions are found by polls and scans only"
                 : "Nothing is notified now: transactions are found by polls and scans");
    if (usage >= QUEUE_SHUT)
        listen__rescan(s);
}

static void on_probe(struct conn_query *query, const struct conn_result *r)
{
    struct question *q = CONTAINER_OF(query, struct question, query);
    struct listen *s = q->s;
    struct err err;
    q->busy = false;
    if (listen__closing(s) || !conn_is_up(s->conn))
        return;
    if (!r) {
        conn_reconnect(s->conn, &query->err);
        return;
    }
    int64_t channels = 0;
    if (!number_at(r, 0, 0, 0, &channels) || channels != channel_count(s)) {
        err_set(&err, ERR_DB_POOLER,
                "the session listens on %lld of %d channels: is the connection a direct one, not "
                "through a pooler?",
                (long long)channels, channel_count(s));
        conn_reconnect(s->conn, &err);
        return;
    }
    s->queue_usage = strtod(text_at(r, 0, 1), NULL);
    s->clock_back_s = s->config.signals_only ? strtod(text_at(r, 0, 2), NULL) : 0;
    warn_of_queue(s, s->queue_usage);
    listen__proved(s, s->probe_at);
    s->probe_at = loop_now_ms(s->loop) + s->config.probe_ms;
    if (!s->config.signals_only && !s->sources.busy)
        listen__read_sources(s); /* another session may have the backend's number by now */
    listen__arm(s);
}

void listen__probe(struct listen *s)
{
    struct args a = {0};
    struct buf list = {0};
    buf_puts(&list, "{");
    for (int i = 0; i < channel_count(s); i++)
        buf_printf(&list, "%s%s", i ? "," : "", listen__channels[i]);
    buf_puts(&list, "}");
    put_text(&a, buf_str(&list));
    ask(s, &s->probe, s->config.signals_only ? "probe_signals.sql" : "probe_listen.sql", &a,
        on_probe);
    buf_done(&list);
}
