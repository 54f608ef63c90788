/* A flood of notifications costs a reader neither memory nor questions without bound. The database
 * is this file: it implements store/conn.h and answers when a test says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "listen/listen.h"
#include "loop/loop.h"
#include "store/conn.h"

enum { RELAY_PID = 7, STRANGER_PID = 9, PAYLOAD_LEN = 7900, FLOOD = 4000, BUFFERED = 8 << 20 };

/* ---- the database ---- */

enum statement { LOOK_UP, SOURCES, ACCOUNTS, PENDING, FINISHED, PROBE, STATEMENTS };

/* A part of the text of each. */
static const char *const parts[STATEMENTS] = {"unnest",          "follow_sources",
                                              "follow_accounts", "follow_pending",
                                              "follow_finished", "pg_listening_channels"};

struct conn_result {
    int columns;
    const char *cells[12]; /* of its one row; columns 0: no row */
};

struct conn {
    struct conn_config config;
    struct conn_query *open[STATEMENTS];
    int asked[STATEMENTS];
};

static struct loop *loop;
static struct conn *db;
static const char *relay_pid; /* the one session of a relay */

struct conn *conn_new(struct loop *l, const struct conn_config *config)
{
    (void)l;
    db = xcalloc(1, sizeof(*db));
    db->config = *config;
    return db;
}

void conn_open(struct conn *c)
{
    c->config.on_up(c->config.arg);
}

void conn_close(struct conn *c, void (*cb)(void *arg), void *arg)
{
    db = NULL;
    free(c);
    cb(arg);
}

bool conn_is_up(const struct conn *c)
{
    return c != NULL;
}

void conn_reconnect(struct conn *c, const struct err *why)
{
    (void)c;
    fail_msg("reconnects: %s", why->text);
}

void conn_query_start(struct conn *c, struct conn_query *q, const char *prepare_name,
                      const char *sql, int nparams, const struct conn_param *params,
                      int result_format,
                      void (*cb)(struct conn_query *q, const struct conn_result *r))
{
    (void)prepare_name, (void)nparams, (void)params, (void)result_format;
    enum statement i = 0;
    while (i < STATEMENTS && !strstr(sql, parts[i]))
        i++;
    if (i == STATEMENTS)
        fail_msg("another statement: %s", sql);
    assert_null(c->open[i]);
    c->open[i] = q;
    c->asked[i]++;
    q->cb = cb;
}

int conn_result_rows(const struct conn_result *r)
{
    return r->cells[0] ? 1 : 0;
}

int conn_result_columns(const struct conn_result *r)
{
    return r->columns;
}

bool conn_result_is_null(const struct conn_result *r, int row, int col)
{
    (void)row;
    return !r->cells[col];
}

const char *conn_result_get(const struct conn_result *r, int row, int col, int *ret_len)
{
    (void)row;
    if (ret_len)
        *ret_len = (int)strlen(r->cells[col]);
    return r->cells[col];
}

static void answer(enum statement i)
{
    const struct conn_result results[STATEMENTS] = {
        [SOURCES] = {2, {relay_pid, "1700000000000000"}},
        [ACCOUNTS] = {6,
                      {"1", "alice",
                       "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1", "5x",
                       "1700000000000000", "0"}},
        [PENDING] = {12, {NULL}},
        [FINISHED] = {12, {NULL}},
        [PROBE] = {2, {"5", "0.0"}},
    };
    struct conn_query *q = db->open[i];
    assert_non_null(q);
    db->open[i] = NULL;
    q->cb(q, &results[i]);
}

/* ---- a reader ---- */

struct reader {
    struct listen *listen;
    int events;
    int64_t last_id;
    bool closed;
};

static void on_event(void *arg, const struct listen_event *ev)
{
    struct reader *r = arg;
    assert_true(ev->id > r->last_id);
    r->last_id = ev->id;
    r->events++;
}

static void on_close(void *arg)
{
    ((struct reader *)arg)->closed = true;
}

/* It has read whose notifications it believes, and asks for the pending rows. */
static void reader_open(struct reader *r, uint32_t probe_ms)
{
    *r = (struct reader){0};
    relay_pid = "7";
    loop = loop_new();
    r->listen = listen_new(
        loop,
        &(struct listen_config){.dsn = "", .probe_ms = probe_ms, .on_event = on_event, .arg = r});
    listen_open(r->listen);
    answer(SOURCES);
    answer(ACCOUNTS);
    assert_non_null(db->open[PENDING]);
}

static void scan_ends(void)
{
    answer(PENDING);
    answer(FINISHED);
}

static void reader_close(struct reader *r)
{
    listen_close(r->listen, on_close, r);
    assert_true(r->closed);
    loop_free(loop);
}

static void notify(int pid, int id)
{
    static char text[PAYLOAD_LEN + 1];
    int len =
        snprintf(text, sizeof(text),
                 "{\"account_id\":\"0xa1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1"
                 "a1a1a1a1\",\"nonce\":%d,\"id\":%d,\"hash\":\"0xcdcdcdcdcdcdcdcdcdcdcdcdcdcd"
                 "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd\",\"state\":\"signed\",\"updated_at\":"
                 "\"2023-11-14T22:13:20.000000Z\"}",
                 id, id);
    memset(text + len, ' ', (size_t)(PAYLOAD_LEN - len)); /* JSON allows blanks */
    db->config.on_notify(db->config.arg, "pending_tx_new", text, pid);
}

static void stop_loop(void *arg)
{
    loop_stop(arg);
}

static void turn(void)
{
    struct loop_timer *t = loop_timer_new(loop, stop_loop, loop);
    loop_timer_at(t, loop_now_ms(loop) + 10);
    loop_run(loop);
    loop_timer_close(t);
}

/* A repair without a reason comes after a minute. */
static void wait_for_statement(enum statement i, int count)
{
    for (uint64_t end = loop_now_ms(loop) + 20000; db->asked[i] < count;) {
        assert_true(loop_now_ms(loop) < end);
        turn();
    }
    assert_int_equal(db->asked[i], count);
}

/* ---- tests ---- */

static size_t used(void)
{
    return mallinfo2().uordblks + mallinfo2().hblkhd;
}

/* While a scan is out, 8 MiB of notifications are kept. What was dropped causes another scan. */
static void kept_bytes_have_a_bound(void **state)
{
    (void)state;
    struct reader r;
    reader_open(&r, 0);
    size_t before = used();
    for (int id = 1; id <= FLOOD; id++)
        notify(RELAY_PID, id);
    assert_true(used() < before + BUFFERED + BUFFERED / 8);
    assert_int_equal(r.events, 0);

    scan_ends();
    assert_int_equal(r.last_id, FLOOD);
    assert_in_range(r.events, 1, BUFFERED / PAYLOAD_LEN);
    assert_int_equal(db->asked[ACCOUNTS], 1);
    wait_for_statement(ACCOUNTS, 2);
    reader_close(&r);
}

/* Somebody who is no relay is told to nobody, and causes one scan. */
static void strangers_cost_one_scan(void **state)
{
    (void)state;
    struct reader r;
    reader_open(&r, 0);
    scan_ends();
    for (int id = 1; id <= FLOOD; id++)
        notify(STRANGER_PID, id);
    assert_int_equal(db->asked[SOURCES], 1); /* they were read less than a second ago */
    assert_int_equal(r.events, 0);
    notify(RELAY_PID, 1);
    assert_int_equal(r.events, 1);
    wait_for_statement(ACCOUNTS, 2);
    answer(SOURCES);
    answer(ACCOUNTS);
    scan_ends();
    assert_int_equal(db->asked[ACCOUNTS], 2);
    reader_close(&r);
}

/* A relay's session that is newer than the reader: whose it is comes before what it says. */
static void unknown_sender_is_looked_up(void **state)
{
    (void)state;
    struct reader r;
    reader_open(&r, 0);
    scan_ends();
    for (uint64_t end = loop_now_ms(loop) + 1000; loop_now_ms(loop) < end;)
        turn(); /* the least interval between two questions */
    relay_pid = "8";
    for (int id = 1; id <= 3; id++)
        notify(8, id);
    assert_int_equal(db->asked[SOURCES], 2);
    assert_int_equal(r.events, 0);
    answer(SOURCES);
    assert_int_equal(r.events, 3);
    notify(RELAY_PID, 4); /* no longer a relay's: its number may be somebody else's */
    assert_int_equal(r.events, 3);
    reader_close(&r);
}

/* The server gives a backend's number to another session: who was a relay may be one no longer. */
static void senders_are_read_again(void **state)
{
    (void)state;
    struct reader r;
    reader_open(&r, 500);
    scan_ends();
    notify(RELAY_PID, 1);
    assert_int_equal(r.events, 1);
    wait_for_statement(PROBE, 1);
    answer(PROBE);
    assert_int_equal(db->asked[SOURCES], 2);
    relay_pid = "8";
    answer(SOURCES);
    notify(RELAY_PID, 2);
    assert_int_equal(r.events, 1);
    reader_close(&r);
}

/* Scans that anybody may cause take a tenth of the time at most. */
static void slow_scans_are_rare(void **state)
{
    (void)state;
    struct reader r;
    reader_open(&r, 0);
    uint64_t begun = loop_now_ms(loop);
    while (loop_now_ms(loop) < begun + 150)
        turn();
    scan_ends();
    uint64_t ended = loop_now_ms(loop);
    notify(STRANGER_PID, 1);
    wait_for_statement(ACCOUNTS, 2);
    assert_true(loop_now_ms(loop) >= ended + 1500);
    reader_close(&r);
}

/* Nonsense of anybody is not logged; a relay's is. */
static void nonsense_fills_no_log(void **state)
{
    (void)state;
    struct reader r;
    reader_open(&r, 0);
    scan_ends();
    FILE *file = tmpfile();
    int saved = dup(STDERR_FILENO);
    assert_true(file && saved >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    for (int i = 0; i < FLOOD; i++)
        db->config.on_notify(db->config.arg, "pending_tx_new", "{", STRANGER_PID);
    off_t of_strangers = lseek(fileno(file), 0, SEEK_END);
    db->config.on_notify(db->config.arg, "pending_tx_new", "{", RELAY_PID);
    off_t of_all = lseek(fileno(file), 0, SEEK_END);
    dup2(saved, STDERR_FILENO);
    close(saved);
    fclose(file);
    assert_int_equal(of_strangers, 0);
    assert_true(of_all > 0);
    reader_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_bytes_have_a_bound),     cmocka_unit_test(strangers_cost_one_scan),
        cmocka_unit_test(unknown_sender_is_looked_up), cmocka_unit_test(senders_are_read_again),
        cmocka_unit_test(slow_scans_are_rare),         cmocka_unit_test(nonsense_fills_no_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
