/* A connection answers every query exactly once, in order, from the loop, and says what is known
 * about it. */
#include "base/alloc.h"
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fx_pg pg;

static int suite_setup(void **state)
{
    (void)state;
    fx_pg_start(&pg, "");
    return 0;
}

static int suite_teardown(void **state)
{
    (void)state;
    fx_pg_stop(&pg);
    return 0;
}

/* Each test: a loop, a connection that is up. */
struct ctx {
    struct loop *l;
    struct fx_conn f;
};

static struct ctx open_with(struct ctx *x, const struct conn_config *config)
{
    x->f.c = conn_new(x->l, config);
    conn_open(x->f.c);
    WAIT_FOR(x->l, x->f.ups == 1);
    assert_true(conn_is_up(x->f.c));
    assert_int_equal(x->f.downs, 0);
    return *x;
}

static void open_plain(struct ctx *x)
{
    struct conn_config config;
    x->l = loop_new();
    fx_conn_config(&x->f, &config, pg.dsn);
    open_with(x, &config);
}

/* The session that answers now. */
static int backend_pid(struct ctx *x)
{
    struct fx_query q = {0};
    fx_query(x->f.c, &q, NULL, "SELECT pg_backend_pid()");
    WAIT_FOR(x->l, q.done);
    return (int)strtol(q.text, NULL, 10);
}

static void done(struct ctx *x)
{
    fx_conn_close(x->l, &x->f);
    assert_int_equal(loop_open_handles(x->l), 0);
    loop_free(x->l);
}

/* ---- queries ---- */

/* Parameters go out in text and binary form, rows come back. */
static void test_query(void **state)
{
    (void)state;
    struct ctx x;
    open_plain(&x);
    struct fx_query q = {0};
    const char seven[4] = {0, 0, 0, 7};
    const struct conn_param params[] = {{.data = seven, .len = 4, .format = 1, .oid = 23},
                                        {.data = "35"}};
    fx_query_params(x.f.c, &q, "sum", "SELECT $1::int + $2::int", 2, params);
    WAIT_FOR(x.l, q.done);
    assert_int_equal(q.q.err.code, 0);
    assert_string_equal(q.text, "42");
    char *name =
        fx_pg_sql(&pg, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'test'");
    assert_string_equal(name, "1");
    free(name);
    done(&x);
}

/* A failed statement is one query's error and no other's, also when its Parse failed while others
 * wait behind it. */
static void test_errors(void **state)
{
    (void)state;
    struct ctx x;
    open_plain(&x);
    struct fx_query bad[3] = {0}, good = {0}, raise = {0}, again = {0};
    for (int i = 0; i < 3; i++)
        fx_query(x.f.c, &bad[i], "nonsense", "SELECT nothing FROM nowhere");
    fx_query(x.f.c, &good, "one", "SELECT 1");
    fx_query(x.f.c, &raise, NULL,
             "DO $$ BEGIN RAISE 'of another relay' USING ERRCODE = 'TR001'; END $$");
    fx_query(x.f.c, &again, "one", "SELECT 1");
    WAIT_FOR(x.l, again.done);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(bad[i].q.err.code, ERR_DB);
        assert_string_equal(bad[i].q.err.sqlstate, "42P01");
    }
    assert_string_equal(good.text, "1");
    assert_string_equal(again.text, "1");
    assert_int_equal(raise.q.err.code, ERR_LOST_LEADERSHIP);
    assert_string_equal(raise.q.err.text, "of another relay");
    assert_int_equal(x.f.downs, 0);
    fx_query(x.f.c, &bad[0], "nonsense", "SELECT 'now it is right'");
    WAIT_FOR(x.l, bad[0].done);
    assert_string_equal(bad[0].text, "now it is right");
    done(&x);
}

/* What only fails at the commit is an error, although rows were returned before. */
static void test_deferred_error(void **state)
{
    (void)state;
    struct ctx x;
    open_plain(&x);
    struct fx_query make = {0}, bad = {0}, count = {0};
    fx_query(x.f.c, &make, NULL,
             "CREATE TEMP TABLE d (v int UNIQUE DEFERRABLE INITIALLY DEFERRED)");
    fx_query(x.f.c, &bad, "dup", "INSERT INTO d VALUES (1), (1) RETURNING v");
    fx_query(x.f.c, &count, NULL, "SELECT count(*) FROM d");
    WAIT_FOR(x.l, count.done);
    assert_int_equal(make.q.err.code, 0);
    assert_int_equal(bad.q.err.code, ERR_DB);
    assert_string_equal(bad.q.err.sqlstate, "23505");
    assert_string_equal(count.text, "0");
    done(&x);
}

/* Ten thousand queries at once: answered in order. */
static void test_many(void **state)
{
    (void)state;
    enum { N = 10000 };
    struct ctx x;
    open_plain(&x);
    int order = 0;
    struct fx_query *q = xcalloc(N, sizeof(*q));
    char number[16];
    const struct conn_param param = {.data = number};
    for (int i = 0; i < N; i++) {
        q[i].order = &order;
        snprintf(number, sizeof(number), "%d", i);
        fx_query_params(x.f.c, &q[i], "echo", "SELECT $1::int", 1, &param);
    }
    WAIT_FOR(x.l, order == N);
    for (int i = 0; i < N; i++) {
        assert_int_equal(q[i].q.err.code, 0);
        assert_int_equal(q[i].at, i);
        assert_int_equal(strtol(q[i].text, NULL, 10), i);
    }
    free(q);
    done(&x);
}

/* More parameter bytes than may be in flight, and the same bytes back: neither side gets stuck. */
static void test_big_both_ways(void **state)
{
    (void)state;
    enum { N = 24, LEN = 1 << 20 };
    struct ctx x;
    open_plain(&x);
    char *text = xmalloc(LEN + 1);
    memset(text, 'x', LEN);
    text[LEN] = 0;
    struct fx_query q[N] = {0};
    int order = 0;
    const struct conn_param param = {.data = text};
    for (int i = 0; i < N; i++) {
        q[i].order = &order;
        fx_query_params(x.f.c, &q[i], "big", "SELECT length($1::text), $1::text", 1, &param);
        text[0] = 'y'; /* the parameters were copied */
    }
    WAIT_FOR(x.l, order == N);
    for (int i = 0; i < N; i++) {
        assert_int_equal(q[i].q.err.code, 0);
        assert_int_equal(strtol(q[i].text, NULL, 10), LEN);
    }
    struct fx_query rows = {0};
    fx_query(x.f.c, &rows, NULL, "SELECT i, repeat('z', 1000) FROM generate_series(1, 30000) i");
    WAIT_FOR(x.l, rows.done);
    assert_int_equal(rows.rows, 30000);
    free(text);
    done(&x);
}

/* Rows taken over in the callback outlive it, the query and the connection. */
static struct conn_result *kept;
static void keep_rows(struct conn_query *q, const struct conn_result *r)
{
    (void)q;
    kept = conn_result_take(r);
}

static void test_keep(void **state)
{
    (void)state;
    struct ctx x;
    open_plain(&x);
    struct conn_query q;
    conn_query_start(x.f.c, &q, NULL, "SELECT 'kept', NULL", 0, NULL, 0, keep_rows);
    WAIT_FOR(x.l, kept);
    done(&x);
    assert_string_equal(conn_result_get(kept, 0, 0, NULL), "kept");
    assert_true(conn_result_is_null(kept, 0, 1));
    conn_result_free(kept);
    kept = NULL;
}

/* Notifications arrive, also many, also while queries run, and after a reconnect. */
static void test_notify(void **state)
{
    (void)state;
    struct ctx x;
    struct conn_config config;
    const char *setup[] = {"LISTEN news", NULL};
    x.l = loop_new();
    fx_conn_config(&x.f, &config, pg.dsn);
    config.setup = setup;
    config.refuse_standby = config.refuse_pooler = true;
    open_with(&x, &config);
    free(fx_pg_sql(&pg, "SELECT pg_notify('news', 'n' || i) FROM generate_series(1, 2000) i"));
    WAIT_FOR(x.l, x.f.notifies == 2000);
    assert_string_equal(x.f.payload, "n2000");
    struct fx_query q = {0};
    fx_query(x.f.c, &q, NULL, "SELECT pg_notify('news', 'own')");
    WAIT_FOR(x.l, q.done && x.f.notifies == 2001);
    conn_reconnect(x.f.c, &(struct err){.code = ERR_TIMEOUT, .text = "a probe failed"});
    WAIT_FOR(x.l, x.f.ups == 2);
    assert_int_equal(x.f.down_err.code, ERR_TIMEOUT);
    free(fx_pg_sql(&pg, "NOTIFY news, 'again'"));
    WAIT_FOR(x.l, x.f.notifies == 2002);
    assert_string_equal(x.f.payload, "again");
    done(&x);
}

/* Outside the pipeline one query may hold many statements; parameters are possible too. */
static void test_plain(void **state)
{
    (void)state;
    struct ctx x;
    struct conn_config config;
    x.l = loop_new();
    fx_conn_config(&x.f, &config, pg.dsn);
    config.plain = true;
    open_with(&x, &config);
    struct fx_query many = {0}, with = {0}, bad = {0}, after = {0};
    const struct conn_param param = {.data = "5"};
    fx_query(x.f.c, &many, NULL,
             "CREATE TEMP TABLE p (v int); INSERT INTO p VALUES (1), (2); SELECT sum(v) FROM p");
    fx_query_params(x.f.c, &with, NULL, "SELECT $1::int + 1", 1, &param);
    fx_query(x.f.c, &bad, NULL, "INSERT INTO p VALUES (3); SELECT 1/0; INSERT INTO p VALUES (4)");
    fx_query(x.f.c, &after, NULL, "SELECT sum(v) FROM p");
    WAIT_FOR(x.l, after.done);
    assert_string_equal(many.text, "3");
    assert_string_equal(with.text, "6");
    assert_string_equal(bad.q.err.sqlstate, "22012");
    assert_string_equal(after.text, "3");
    done(&x);
}

/* ---- the end of a session ---- */

/* The server ends the session in the middle of the pipeline: what was sent has an unknown outcome,
 * the answered error stays known, and the connection comes back by itself with nothing prepared. */
static void test_terminated(void **state)
{
    (void)state;
    struct ctx x;
    open_plain(&x);
    struct fx_query prepared = {0}, sleeping = {0}, behind[5] = {0}, later = {0};
    fx_query(x.f.c, &prepared, "one", "SELECT 1");
    WAIT_FOR(x.l, prepared.done);
    int pid = backend_pid(&x);
    fx_query(x.f.c, &sleeping, NULL, "SELECT pg_sleep(600)");
    for (int i = 0; i < 5; i++)
        fx_query(x.f.c, &behind[i], "one", "SELECT 1");
    char sql[200];
    snprintf(sql, sizeof(sql),
             "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = %d AND wait_event "
             "= 'PgSleep'",
             pid);
    for (bool hit = false; !hit;) {
        char *out = fx_pg_sql(&pg, sql);
        hit = !strcmp(out, "t");
        free(out);
        fx_step(x.l);
    }
    WAIT_FOR(x.l, x.f.downs == 1);
    assert_true(sleeping.done && behind[4].done); /* before on_down */
    assert_int_equal(sleeping.q.err.code, ERR_DB_UNKNOWN_OUTCOME);
    for (int i = 0; i < 5; i++)
        assert_int_equal(behind[i].q.err.code, ERR_DB_UNKNOWN_OUTCOME);
    assert_int_equal(x.f.down_err.code, ERR_DB_UNAVAILABLE);
    assert_string_equal(x.f.down_err.sqlstate, "57P01");
    fx_query(x.f.c, &later, "one", "SELECT 1");
    WAIT_FOR(x.l, later.done);
    assert_int_equal(later.q.err.code, ERR_DB_UNAVAILABLE);
    WAIT_FOR(x.l, x.f.ups == 2);
    assert_int_not_equal(backend_pid(&x), pid);
    fx_query(x.f.c, &later, "one", "SELECT 1");
    WAIT_FOR(x.l, later.done);
    assert_string_equal(later.text, "1");
    done(&x);
}

/* A server that has become read-only is left: the error is told, and the addresses are tried
 * anew. */
static void test_demoted(void **state)
{
    (void)state;
    struct ctx x;
    struct conn_config config;
    x.l = loop_new();
    fx_conn_config(&x.f, &config, pg.dsn);
    config.refuse_standby = true;
    open_with(&x, &config);
    struct fx_query demote = {0}, write = {0};
    fx_query(x.f.c, &demote, NULL, "SET default_transaction_read_only = on");
    fx_query(x.f.c, &write, NULL, "CREATE TABLE never_there (v int)");
    WAIT_FOR(x.l, x.f.downs == 1);
    assert_int_equal(demote.q.err.code, 0);
    assert_int_equal(write.q.err.code, ERR_DB_READONLY);
    assert_int_equal(x.f.down_err.code, ERR_DB_READONLY);
    WAIT_FOR(x.l, x.f.ups == 2);
    done(&x);
}

/* DDL made a plan stale: a new session prepares it anew. Whoever does that all the time cannot keep
 * the session away from others, and neither can what else has the SQLSTATE 0A000. */
static void test_stale_plan(void **state)
{
    (void)state;
    struct ctx x;
    open_plain(&x);
    struct fx_query q = {0};
    static const char *const changes[] = {"ALTER TABLE changes ALTER v TYPE text",
                                          "ALTER TABLE changes ADD COLUMN w int"};
    free(fx_pg_sql(&pg, "CREATE TABLE changes (v int)"));
    for (size_t i = 0; i < 2; i++) {
        fx_query(x.f.c, &q, "all", "SELECT * FROM public.changes");
        WAIT_FOR(x.l, q.done);
        assert_int_equal(q.q.err.code, 0);
        free(fx_pg_sql(&pg, changes[i]));
        fx_query(x.f.c, &q, "all", "SELECT * FROM public.changes");
        WAIT_FOR(x.l, q.done);
        assert_string_equal(q.q.err.sqlstate, "0A000");
        assert_int_equal(q.q.err.code, ERR_DB_SERIALIZATION);
        WAIT_FOR(x.l, x.f.ups == 2);
    }
    fx_query(x.f.c, &q, NULL, "SELECT 'infinity'::numeric::bigint");
    WAIT_FOR(x.l, q.done);
    assert_string_equal(q.q.err.sqlstate, "0A000");
    assert_int_equal(q.q.err.code, ERR_DB);
    fx_query(x.f.c, &q, NULL, "SELECT 1");
    WAIT_FOR(x.l, q.done);
    assert_string_equal(q.text, "1");
    assert_int_equal(x.f.ups, 2);
    done(&x);
}

/* An idle session that is ended says why. */
static void test_terminated_idle(void **state)
{
    (void)state;
    struct ctx x;
    open_plain(&x);
    char sql[100];
    snprintf(sql, sizeof(sql), "SELECT pg_terminate_backend(%d)", backend_pid(&x));
    free(fx_pg_sql(&pg, sql));
    WAIT_FOR(x.l, x.f.downs == 1);
    assert_string_equal(x.f.down_err.sqlstate, "57P01");
    WAIT_FOR(x.l, x.f.ups == 2);
    done(&x);
}

/* Bytes over the cap were never sent: their queries say so. */
static void test_unsent(void **state)
{
    (void)state;
    enum { N = 12, LEN = 1 << 20 };
    struct ctx x;
    open_plain(&x);
    int pid = backend_pid(&x);
    char *text = xmalloc(LEN + 1);
    memset(text, 'x', LEN);
    text[LEN] = 0;
    const struct conn_param param = {.data = text};
    struct fx_query sleeping = {0}, q[N] = {0};
    fx_query(x.f.c, &sleeping, NULL, "SELECT pg_sleep(600)");
    for (int i = 0; i < N; i++)
        fx_query_params(x.f.c, &q[i], NULL, "SELECT length($1::text)", 1, &param);
    char sql[100];
    snprintf(sql, sizeof(sql), "SELECT pg_terminate_backend(%d)", pid);
    free(fx_pg_sql(&pg, sql));
    WAIT_FOR(x.l, x.f.downs == 1);
    assert_int_equal(q[0].q.err.code, ERR_DB_UNKNOWN_OUTCOME);
    assert_int_equal(q[N - 1].q.err.code, ERR_DB_UNAVAILABLE);
    free(text);
    WAIT_FOR(x.l, x.f.ups == 2);
    done(&x);
}

/* A server that restarts is waited for. */
static void test_restart(void **state)
{
    (void)state;
    struct ctx x;
    open_plain(&x);
    fx_pg_restart(&pg, "immediate");
    WAIT_FOR(x.l, x.f.ups == 2);
    assert_true(x.f.downs >= 1);
    struct fx_query q = {0};
    fx_query(x.f.c, &q, NULL, "SELECT 1");
    WAIT_FOR(x.l, q.done);
    assert_string_equal(q.text, "1");
    done(&x);
}

/* A server that does not answer is given up, so that its owner does not wait for ever. */
static void test_answer_overdue(void **state)
{
    (void)state;
    struct ctx x;
    struct conn_config config;
    x.l = loop_new();
    fx_conn_config(&x.f, &config, pg.dsn);
    config.answer_timeout_ms = 300;
    open_with(&x, &config);
    struct fx_query quick = {0}, q = {0};
    fx_query(x.f.c, &quick, NULL, "SELECT 1");
    WAIT_FOR(x.l, quick.done);
    fx_query(x.f.c, &q, NULL, "SELECT pg_sleep(600)");
    WAIT_FOR(x.l, x.f.downs == 1);
    assert_int_equal(q.q.err.code, ERR_DB_UNKNOWN_OUTCOME);
    assert_non_null(strstr(x.f.down_err.text, "no answer"));
    WAIT_FOR(x.l, x.f.ups == 2);
    done(&x);
    free(fx_pg_sql(&pg, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE "
                        "'%pg_sleep(600)' AND pid <> pg_backend_pid()"));
}

/* ---- close ---- */

/* Closing ends every query, sent or not, with ERR_CANCELED, before the close callback. */
static void test_close_busy(void **state)
{
    (void)state;
    enum { N = 2000 };
    struct ctx x;
    open_plain(&x);
    int order = 0;
    struct fx_query *q = xcalloc(N, sizeof(*q));
    for (int i = 0; i < N; i++) {
        q[i].order = &order;
        fx_query(x.f.c, &q[i], "s", "SELECT pg_sleep(600)");
    }
    conn_close(x.f.c, NULL, NULL);
    assert_int_equal(order, 0);
    WAIT_FOR(x.l, order == N);
    for (int i = 0; i < N; i++)
        assert_int_equal(q[i].q.err.code, ERR_CANCELED);
    free(q);
    fx_step(x.l);
    loop_free(x.l);
    free(fx_pg_sql(&pg, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE "
                        "'%pg_sleep(600)' AND pid <> pg_backend_pid()"));
}

/* A query's callback may close the connection. */
static struct fx_conn *to_close;
static bool inner_closed;
static void inner_close(void *arg)
{
    (void)arg;
    inner_closed = true;
}
static void close_in_callback(struct conn_query *q, const struct conn_result *r)
{
    (void)q;
    assert_non_null(r);
    conn_close(to_close->c, inner_close, NULL);
}

static void test_close_in_callback(void **state)
{
    (void)state;
    struct ctx x;
    open_plain(&x);
    struct conn_query first;
    struct fx_query second = {0};
    to_close = &x.f;
    inner_closed = false;
    conn_query_start(x.f.c, &first, NULL, "SELECT 1", 0, NULL, 0, close_in_callback);
    fx_query(x.f.c, &second, NULL, "SELECT 2");
    WAIT_FOR(x.l, inner_closed);
    assert_true(second.done);
    assert_int_equal(second.q.err.code, ERR_CANCELED);
    loop_free(x.l);
}

/* Closing works in every state on the way up, and in back-off. */
static void test_close_early(void **state)
{
    (void)state;
    const char *const dsns[] = {pg.dsn, "host=localhost port=1", "host=/nowhere",
                                "host=does-not-exist.invalid", "nonsense"};
    for (size_t i = 0; i < ARRAY_LEN(dsns); i++) {
        for (int steps = 0; steps < 6; steps++) {
            struct ctx x;
            struct conn_config config;
            x.l = loop_new();
            fx_conn_config(&x.f, &config, dsns[i]);
            x.f.c = conn_new(x.l, &config);
            if (steps)
                conn_open(x.f.c);
            for (int s = 1; s < steps; s++)
                fx_step(x.l);
            done(&x);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_query),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_deferred_error),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_big_both_ways),
        cmocka_unit_test(test_keep),
        cmocka_unit_test(test_notify),
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_terminated),
        cmocka_unit_test(test_stale_plan),
        cmocka_unit_test(test_terminated_idle),
        cmocka_unit_test(test_demoted),
        cmocka_unit_test(test_unsent),
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_answer_overdue),
        cmocka_unit_test(test_close_busy),
        cmocka_unit_test(test_close_in_callback),
        cmocka_unit_test(test_close_early),
    };
    return cmocka_run_group_tests(tests, suite_setup, suite_teardown);
}
