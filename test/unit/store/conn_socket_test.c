/* libpq closes its descriptor by itself when a session fails, and the next one that is opened gets
 * its number: a connection that a listener accepts, another session. Whatever ends a session, and
 * whenever the connection notices, others can poll that number at once. Between the connection and
 * the server stands a proxy, a thread, that ends sessions in each way. */
#include "fixture.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"

enum { CLOSED, SHUT, GARBAGE, WAYS, STOP };            /* how a session ends */
enum { AT_A_SEND, AT_A_BIG_SEND, AT_A_READ, MOMENTS }; /* when it is noticed */
enum { NUMBERS = 24, BIG = 1 << 20 };

static struct fx_pg pg;
static char *proxy_dir;
static int listener, commands[2], answers[2];

/* ---- the proxy ---- */

static int socket_at(const char *dir, bool listens)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/.s.PGSQL.5432", dir);
    int rc = listens ? bind(fd, (struct sockaddr *)&sun, sizeof(sun))
                     : connect(fd, (struct sockaddr *)&sun, sizeof(sun));
    assert_int_equal(rc, 0);
    if (listens)
        assert_int_equal(listen(fd, 5), 0);
    return fd;
}

static bool forward(int from, int to)
{
    char bytes[8192];
    ssize_t n = read(from, bytes, sizeof(bytes));
    return n > 0 && (to < 0 || write(to, bytes, (size_t)n) == n);
}

/* Forwards until a command comes, which it returns, or one side ends. */
static int serve(int client, int server)
{
    for (char command;;) {
        struct pollfd fds[3] = {{.fd = client, .events = POLLIN},
                                {.fd = server, .events = POLLIN},
                                {.fd = commands[0], .events = POLLIN}};
        poll(fds, 3, -1);
        if (fds[2].revents)
            return read(commands[0], &command, 1) == 1 ? command : STOP;
        if ((fds[0].revents && !forward(client, server)) ||
            (fds[1].revents && !forward(server, client)))
            return WAYS;
    }
}

static void end_in_way(int way, int client)
{
    static const char no_message[] = "\1\2\3\4\5\6\7\10\11\12";
    if (way == GARBAGE)
        assert_int_equal(write(client, no_message, sizeof(no_message) - 1), 10);
    if (way == SHUT)
        assert_int_equal(shutdown(client, SHUT_RDWR), 0);
}

/* One session after the other. */
static void *proxy(void *arg)
{
    for (int way = WAYS; way != STOP;) {
        int client = accept(listener, NULL, NULL), server = socket_at(pg.dir, false);
        way = serve(client, server);
        if (way < WAYS)
            end_in_way(way, client);
        if (way == CLOSED || way >= WAYS)
            close(client);
        if (way != WAYS)
            assert_int_equal(write(answers[1], "", 1), 1);
        if (way < WAYS && way != CLOSED) {
            while (forward(client, -1)) /* until the client closes */
                ;
            close(client);
        }
        close(server);
    }
    return arg;
}

/* Returns when it is carried out. */
static void command(char c)
{
    assert_int_equal(write(commands[1], &c, 1), 1);
    assert_int_equal(read(answers[0], &c, 1), 1);
}

/* ---- others that open descriptors ---- */

static struct loop *loop;
static struct other {
    struct loop_poll *poll;
    int pair[2];
} others[NUMBERS];
static size_t other_count, heard;

static void on_other(void *arg, int status, int events)
{
    struct other *o = arg;
    char byte;
    assert_int_equal(status, 0);
    assert_true(events & LOOP_READABLE);
    assert_int_equal(read(o->pair[0], &byte, 1), 1);
    heard++;
}

static void open_others(void)
{
    for (; other_count < NUMBERS; other_count++) {
        struct other *o = &others[other_count];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, o->pair), 0);
        o->poll = loop_poll_new(loop, o->pair[0], on_other, o);
        loop_poll_set(o->poll, LOOP_READABLE);
    }
}

/* Each of them is still polled. */
static void close_others(void)
{
    assert_int_equal(other_count, NUMBERS);
    for (size_t i = 0; i < NUMBERS; i++)
        assert_int_equal(write(others[i].pair[1], "x", 1), 1);
    WAIT_FOR(loop, heard == NUMBERS);
    for (size_t i = 0; i < NUMBERS; i++) {
        loop_poll_close(others[i].poll);
        close(others[i].pair[0]);
        close(others[i].pair[1]);
    }
    other_count = heard = 0;
}

static void on_answer(struct conn_query *q, const struct conn_result *r)
{
    assert_null(r);
    assert_true(q->err.code);
    open_others();
}

/* ---- the test ---- */

static void try_one(struct fx_conn *f, int way, int moment)
{
    static char text[BIG];
    memset(text, 'x', sizeof(text));
    struct conn_query q = {0};
    struct fx_query again = {0};
    const struct conn_param big = {.data = text, .len = sizeof(text), .format = 1};
    int ups = f->ups, downs = f->downs;
    if (moment == AT_A_READ)
        conn_query_start(f->c, &q, NULL, "SELECT pg_sleep(600)", 0, NULL, 0, on_answer);
    command((char)way);
    if (moment != AT_A_READ) {
        bool is_big = moment == AT_A_BIG_SEND;
        conn_query_start(f->c, &q, NULL, is_big ? "SELECT length($1::bytea)" : "SELECT 1", is_big,
                         &big, 0, on_answer);
        open_others(); /* before the loop turns */
    }
    WAIT_FOR(loop, f->downs == downs + 1 && f->ups == ups + 1);
    close_others();
    fx_query(f->c, &again, NULL, "SELECT 17");
    WAIT_FOR(loop, again.done);
    assert_string_equal(again.text, "17");
}

static void test_numbers_are_given_again(void **state)
{
    (void)state;
    struct fx_conn f;
    struct conn_config config;
    pthread_t thread;
    assert_int_equal(pipe(commands) | pipe(answers), 0);
    proxy_dir = fx_temp_dir();
    listener = socket_at(proxy_dir, true);
    assert_int_equal(pthread_create(&thread, NULL, proxy, NULL), 0);
    char *dsn = xasprintf("host=%s port=5432 user=postgres dbname=postgres", proxy_dir);
    loop = loop_new();
    fx_conn_config(&f, &config, dsn);
    config.answer_timeout_ms =
        1000; /* libpq may have read the garbage while it sent: then no event follows */
    f.c = conn_new(loop, &config);
    conn_open(f.c);
    WAIT_FOR(loop, f.ups == 1);
    for (int way = 0; way < WAYS; way++)
        for (int moment = 0; moment < MOMENTS; moment++)
            try_one(&f, way, moment);
    command(STOP);
    assert_int_equal(pthread_join(thread, NULL), 0);
    fx_conn_close(loop, &f);
    assert_int_equal(loop_open_handles(loop), 0);
    loop_free(loop);
    free(dsn);
    fx_remove_dir(proxy_dir);
    close(listener);
}

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers_are_given_again)};
    return cmocka_run_group_tests(tests, suite_setup, suite_teardown);
}
