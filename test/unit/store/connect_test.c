/* On the way up a connection tries every address, each with its own deadline, and takes only a
 * server that will do. */
#include "fixture.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct fx_pg pg; /* TCP, TLS, and a socket */
static int port;
static char cert[256];

/* A certificate for db.test, that the server and the clients know. */
static void make_tls(void)
{
    snprintf(cert, sizeof(cert), "%s/server.crt", pg.dir);
    free(fx_shell(
        "cd %s && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days "
        "2 -subj /CN=db.test -addext subjectAltName=DNS:db.test -keyout server.key -out server.crt "
        "2>&1 && chmod 600 server.key && chown --reference=data server.key server.crt",
        pg.dir));
    char sql[600];
    snprintf(sql, sizeof(sql), "ALTER SYSTEM SET ssl_cert_file = '%s'", cert);
    free(fx_pg_sql(&pg, sql));
    snprintf(sql, sizeof(sql), "ALTER SYSTEM SET ssl_key_file = '%s/server.key'", pg.dir);
    free(fx_pg_sql(&pg, sql));
    free(fx_pg_sql(&pg, "ALTER SYSTEM SET ssl = on"));
    /* Database "tlsonly" takes no plain connection: sslmode=allow tries that first and gets a new
     * socket. */
    free(fx_pg_sql(&pg, "CREATE DATABASE tlsonly"));
    free(fx_shell("cd %s/data && { echo 'hostnossl tlsonly all 127.0.0.1/32 reject'; cat "
                  "pg_hba.conf; } >hba && cat hba >pg_hba.conf && rm hba",
                  pg.dir));
    fx_pg_restart(&pg, "fast");
}

static int suite_setup(void **state)
{
    (void)state;
    char options[32];
    port = fx_free_port();
    snprintf(options, sizeof(options), "--tcp %d", port);
    fx_pg_start(&pg, options);
    make_tls();
    return 0;
}

static int suite_teardown(void **state)
{
    (void)state;
    fx_pg_stop(&pg);
    return 0;
}

struct ctx {
    struct loop *l;
    struct fx_conn f;
    struct conn_config config;
};

static char dsn_text[1024];
static const char *dsn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static const char *dsn(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(dsn_text, sizeof(dsn_text), fmt, ap);
    va_end(ap);
    return dsn_text;
}

static void begin(struct ctx *x, const char *text)
{
    x->l = loop_new();
    fx_conn_config(&x->f, &x->config, text);
}

static void start(struct ctx *x)
{
    x->f.c = conn_new(x->l, &x->config);
    conn_open(x->f.c);
    assert_int_equal(x->f.ups + x->f.downs, 0);
}

static void end(struct ctx *x)
{
    fx_conn_close(x->l, &x->f);
    assert_int_equal(loop_open_handles(x->l), 0);
    loop_free(x->l);
}

static void expect_up(const char *text)
{
    struct ctx x;
    begin(&x, text);
    start(&x);
    WAIT_FOR(x.l, x.f.ups || x.f.downs);
    if (x.f.downs)
        fail_msg("%s: %s", text, x.f.down_err.text);
    struct fx_query q = {0};
    fx_query(x.f.c, &q, "one", "SELECT 1");
    WAIT_FOR(x.l, q.done);
    assert_string_equal(q.text, "1");
    end(&x);
}

/* Down with the code; `word` is in the text. */
static void expect_down(const char *text, int code, const char *word)
{
    struct ctx x;
    begin(&x, text);
    start(&x);
    WAIT_FOR(x.l, x.f.ups || x.f.downs);
    assert_int_equal(x.f.ups, 0);
    if (x.f.down_err.code != code || !strstr(x.f.down_err.text, word))
        fail_msg("%s: %s \"%s\"", text, err_name(x.f.down_err.code), x.f.down_err.text);
    end(&x);
}

/* ---- addresses ---- */

static void test_hosts(void **state)
{
    (void)state;
    expect_up(dsn("host=127.0.0.1 port=%d user=postgres dbname=postgres", port));
    expect_up(dsn("postgresql://postgres@127.0.0.1:%d/postgres", port));
    expect_up(dsn("host=localhost port=%d user=postgres dbname=postgres",
                  port)); /* ::1 may be tried first */
    expect_up(dsn("host=%s port=%d user=postgres dbname=postgres", pg.dir, port));
    /* dead ones first: a refused port, a missing socket, a name that does not resolve */
    expect_up(dsn("host=127.0.0.1,/nowhere,does-not-exist.invalid,127.0.0.1 port=1,5432,5432,%d "
                  "user=postgres",
                  port));
    expect_up(dsn(
        "host=a.test,b.test hostaddr=127.0.0.1,127.0.0.1 port=1,%d user=postgres sslmode=disable",
        port));
    expect_down("host=127.0.0.1,127.0.0.1 port=1,2 user=postgres", ERR_DB_UNAVAILABLE, "refused");
    expect_down("host=does-not-exist.invalid user=postgres", ERR_DB_UNAVAILABLE,
                "does-not-exist.invalid");
}

static void test_dsn_errors(void **state)
{
    (void)state;
    expect_down("host=a,b hostaddr=127.0.0.1", ERR_CONFIG, "2 hosts but 1 hostaddr");
    expect_down("host=a,b,c port=1,2", ERR_CONFIG, "2 ports for 3 hosts");
    expect_down("host=a nonsense=1", ERR_CONFIG, "nonsense");
    expect_down("host=a connect_timeout=5s", ERR_CONFIG,
                "connect_timeout of the connection string is '5s'");
    expect_down("host=a connect_timeout=-1", ERR_CONFIG, "from 1 to 3600");
    struct ctx x;
    begin(&x, "postgresql://me:topsecret@[bad/db");
    start(&x);
    WAIT_FOR(x.l, x.f.downs);
    assert_null(strstr(x.f.down_err.text, "topsecret"));
    end(&x);
}

/* Connections that came to a listening socket, which is not blocking, since the last call. */
static int accepted(int fd)
{
    int count = 0;
    for (int peer; (peer = accept(fd, NULL, NULL)) >= 0; count++)
        close(peer);
    return count;
}

/* A server that takes the connection and says nothing is given up at its deadline, and the next one
 * is used. */
static void test_silent(void **state)
{
    (void)state;
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(sa);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
    struct ctx x;
    begin(&x, dsn("host=127.0.0.1,127.0.0.1 port=%d,%d user=postgres", ntohs(sa.sin_port), port));
    x.config.connect_timeout_ms = 300;
    start(&x);
    uint64_t since = loop_now_ms(x.l);
    WAIT_FOR(x.l, x.f.ups);
    assert_true(loop_now_ms(x.l) - since >= 290);
    assert_int_equal(x.f.downs, 0);
    assert_int_equal(accepted(fd), 1);
    /* The one that worked is tried first the next time. */
    conn_reconnect(x.f.c, &(struct err){.code = ERR_TIMEOUT, .text = "test"});
    WAIT_FOR(x.l, x.f.downs == 1);
    WAIT_FOR(x.l, x.f.ups == 2);
    assert_int_equal(accepted(fd), 0);
    end(&x);

    begin(&x, dsn("host=127.0.0.1 port=%d user=postgres", ntohs(sa.sin_port)));
    x.config.connect_timeout_ms = 100;
    start(&x);
    WAIT_FOR(x.l, x.f.downs == 2); /* and it tries again */
    assert_int_equal(x.f.down_err.code, ERR_DB_UNAVAILABLE);
    assert_non_null(strstr(x.f.down_err.text, "no answer from"));
    end(&x);
    expect_down(dsn("host=127.0.0.1 port=%d user=postgres connect_timeout=1", ntohs(sa.sin_port)),
                ERR_DB_UNAVAILABLE, "within 1000 ms (connect_timeout=SECONDS in");
    close(fd);
}

/* ---- refusals ---- */

static void test_denied(void **state)
{
    (void)state;
    struct ctx x;
    begin(&x, dsn("host=127.0.0.1 port=%d user=postgres dbname=later", port));
    start(&x);
    WAIT_FOR(x.l, x.f.downs);
    assert_int_equal(x.f.down_err.code, ERR_DB_DENIED);
    assert_string_equal(x.f.down_err.sqlstate, "3D000");
    assert_non_null(strstr(x.f.down_err.text, "\"later\" does not exist"));
    free(fx_pg_sql(&pg, "CREATE DATABASE later"));
    WAIT_FOR(x.l, x.f.ups); /* it goes on trying */
    end(&x);
    expect_down(dsn("host=127.0.0.1 port=%d user=stranger", port), ERR_DB_DENIED, "stranger");
}

static void test_read_only(void **state)
{
    (void)state;
    const char *read_only = "-c default_transaction_read_only=on";
    expect_up(dsn("host=127.0.0.1 port=%d user=postgres options='%s'", port, read_only));
    expect_down(
        dsn("host=127.0.0.1 port=%d user=postgres options='%s' target_session_attrs=read-write",
            port, read_only),
        ERR_DB_READONLY, "read-only");
    struct ctx x;
    begin(&x, dsn("host=127.0.0.1 port=%d user=postgres options='%s'", port, read_only));
    x.config.refuse_standby = true;
    start(&x);
    WAIT_FOR(x.l, x.f.downs);
    assert_int_equal(x.f.down_err.code, ERR_DB_READONLY);
    end(&x);
}

/* A setup statement that fails keeps the connection from being up. */
static void test_setup_fails(void **state)
{
    (void)state;
    const char *setup[] = {"SELECT 1", "SET nonsense_of_ours = 1", "SELECT 2", NULL};
    struct ctx x;
    begin(&x, dsn("host=127.0.0.1 port=%d user=postgres", port));
    x.config.setup = setup;
    start(&x);
    WAIT_FOR(x.l, x.f.downs == 2);
    assert_int_equal(x.f.ups, 0);
    assert_string_equal(x.f.down_err.sqlstate, "42704");
    end(&x);
}

/* Setup has the rest of the address's time, or its own: the first LISTEN behind a long backlog
 * takes seconds. */
static void test_setup_slow(void **state)
{
    (void)state;
    static const uint32_t own[] = {0, 300, 20000};
    static const char *const said[] = {"within 500 ms", "within 300 ms", NULL};
    const char *setup[] = {"SELECT pg_sleep(0.8)", NULL};
    for (int i = 0; i < 3; i++) {
        struct ctx x;
        begin(&x, dsn("host=127.0.0.1 port=%d user=postgres", port));
        x.config.setup = setup;
        x.config.connect_timeout_ms = 500;
        x.config.setup_timeout_ms = own[i];
        start(&x);
        WAIT_FOR(x.l, x.f.ups || x.f.downs);
        assert_int_equal(x.f.ups, !said[i]);
        if (said[i])
            assert_non_null(strstr(x.f.down_err.text, said[i]));
        end(&x);
    }
}

/* ---- TLS ---- */

static void test_tls(void **state)
{
    (void)state;
    expect_up(dsn(
        "host=db.test hostaddr=127.0.0.1 port=%d user=postgres sslmode=verify-full sslrootcert=%s",
        port, cert));
    expect_down(dsn("host=other.test hostaddr=127.0.0.1 port=%d user=postgres sslmode=verify-full "
                    "sslrootcert=%s",
                    port, cert),
                ERR_DB_UNAVAILABLE, "other.test");
    expect_down(dsn("host=db.test hostaddr=127.0.0.1 port=%d user=postgres sslmode=verify-full "
                    "sslrootcert=/nowhere",
                    port),
                ERR_DB_UNAVAILABLE, "/nowhere");
    expect_up(dsn("host=127.0.0.1 port=%d user=postgres dbname=tlsonly sslmode=allow", port));
    expect_down(dsn("host=127.0.0.1 port=%d user=postgres dbname=tlsonly sslmode=disable", port),
                ERR_DB_DENIED, "reject");
}

/* Over TLS what was decrypted with an earlier record is not left lying. */
static void test_tls_big(void **state)
{
    (void)state;
    const char *setup[] = {"LISTEN news", NULL};
    struct ctx x;
    begin(&x, dsn("host=127.0.0.1 port=%d user=postgres sslmode=require", port));
    x.config.setup = setup;
    start(&x);
    WAIT_FOR(x.l, x.f.ups);
    struct fx_query q[20] = {0};
    int order = 0;
    for (int i = 0; i < 20; i++) {
        q[i].order = &order;
        fx_query(x.f.c, &q[i], "rows",
                 "SELECT i, repeat('z', 100 + i % 50) FROM generate_series(1, 20000) i");
    }
    WAIT_FOR(x.l, order == 20);
    for (int i = 0; i < 20; i++)
        assert_int_equal(q[i].rows, 20000);
    free(fx_pg_sql(
        &pg, "SELECT pg_notify('news', i || repeat('n', 7900)) FROM generate_series(1, 500) i"));
    WAIT_FOR(x.l, x.f.notifies == 500);
    end(&x);
}

/* ---- pooler ---- */

struct bouncer {
    char *dir;
    int port;
};

static void bouncer_start(struct bouncer *b, const char *mode)
{
    b->dir = fx_temp_dir();
    b->port = fx_free_port();
    free(fx_shell(
        "cd %s && printf '[databases]\\n* = host=%s port=%d user=postgres\\n[pgbouncer]\\n"
        "listen_addr = 127.0.0.1\\nlisten_port = %d\\nunix_socket_dir =\\nauth_type = any\\n"
        "pool_mode = %s\\nlogfile = %s/log\\npidfile = %s/pid\\n' >ini && chown "
        "--reference=%s/data . ini && if [ $(id -u) = 0 ]; then as=\"-u $(stat -c %%U %s/data)\"; "
        "fi; /usr/sbin/pgbouncer -q -d $as ini 2>&1",
        b->dir, pg.dir, port, b->port, mode, b->dir, b->dir, pg.dir, pg.dir));
}

static void bouncer_stop(struct bouncer *b)
{
    free(fx_shell("p=$(cat %s/pid) && kill -TERM $p && tail --pid=$p -f /dev/null", b->dir));
    fx_remove_dir(b->dir);
}

/* An address that is refused while its session is set up is left for the next one at once, again
 * and again: the new session may get the memory and the descriptor of the old one. */
static void test_refused_then_next(void **state)
{
    (void)state;
    struct bouncer b;
    bouncer_start(&b, "session");
    for (int i = 0; i < 20; i++) {
        struct ctx x;
        begin(&x, dsn("host=127.0.0.1,%s port=%d,%d user=postgres dbname=postgres", pg.dir, b.port,
                      port));
        x.config.refuse_pooler = true;
        x.config.connect_timeout_ms = 60000;
        start(&x);
        WAIT_FOR(x.l, x.f.ups || x.f.downs);
        assert_int_equal(x.f.downs, 0);
        end(&x);
    }
    bouncer_stop(&b);
}

/* A pooler is refused where a session is needed. Where none is needed statements work, prepared by
 * nobody. */
static void test_pooler(void **state)
{
    (void)state;
    const char *setup[] = {"SET statement_timeout = 12345", NULL};
    const char *const modes[] = {"transaction", "session"};
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        struct bouncer b;
        bouncer_start(&b, modes[i]);
        struct ctx x;
        begin(&x, dsn("host=127.0.0.1 port=%d user=postgres dbname=postgres", b.port));
        x.config.refuse_pooler = true;
        start(&x);
        WAIT_FOR(x.l, x.f.downs && x.f.down_err.code != ERR_DB_UNAVAILABLE);
        assert_int_equal(x.f.down_err.code, ERR_DB_POOLER);
        assert_int_equal(x.f.ups, 0);
        end(&x);

        begin(&x, dsn_text);
        x.config.setup = setup;
        start(&x);
        WAIT_FOR(x.l, x.f.ups);
        assert_true(conn_is_pooled(x.f.c));
        struct fx_query q[50] = {0}, prepared = {0}, timeout = {0};
        int order = 0;
        for (int n = 0; n < 50; n++) {
            q[n].order = &order;
            fx_query(x.f.c, &q[n], "one", "SELECT 1");
        }
        WAIT_FOR(x.l, order == 50);
        for (int n = 0; n < 50; n++)
            assert_string_equal(q[n].text, "1");
        fx_query(x.f.c, &prepared, NULL,
                 "SELECT count(*) FROM pg_prepared_statements WHERE name = 'one'");
        fx_query(x.f.c, &timeout, NULL, "SHOW statement_timeout");
        WAIT_FOR(x.l, timeout.done);
        assert_string_equal(prepared.text, "0");
        assert_string_equal(timeout.text, "0"); /* other users of the pool would have got it */
        end(&x);
        bouncer_stop(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts),      cmocka_unit_test(test_dsn_errors),
        cmocka_unit_test(test_silent),     cmocka_unit_test(test_denied),
        cmocka_unit_test(test_read_only),  cmocka_unit_test(test_setup_fails),
        cmocka_unit_test(test_tls),        cmocka_unit_test(test_tls_big),
        cmocka_unit_test(test_pooler),     cmocka_unit_test(test_refused_then_next),
        cmocka_unit_test(test_setup_slow),
    };
    return cmocka_run_group_tests(tests, suite_setup, suite_teardown);
}
