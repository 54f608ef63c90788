/* HTTP/1.1 on sockets: requests in any pieces are delivered once and whole, and a connection keeps
 * its order. What is not HTTP/1, smuggles, is too long or too slow is refused with a problem, and
 * costs no more than its bound. */
#include "certs.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "loop/socket.h"
#include "net/http.h"

enum { PATIENCE_MS = 100000 };

struct world {
    struct loop *loop;
    struct http_server *server;
    struct loop_socket *client;
    struct loop_timer *patience;
    struct http_request *kept; /* of "/later" */
    struct loop_task task;
    const char *said;      /* by the client */
    size_t said_len, step; /* bytes of a write; 0: all at once */
    struct buf heard;
    unsigned served, wanted; /* answers after which the loop stops; 0: at the end */
    bool ended;
    size_t base;    /* handles without a connection */
    struct buf log; /* of requests: "METHOD target body;" */
};

static void impatient(void *arg)
{
    (void)arg;
    fail_msg("nothing happened in time");
}

static int set_up(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    w->loop = loop_new();
    w->patience = loop_timer_new(w->loop, impatient, w);
    loop_timer_at(w->patience, loop_now_ms(w->loop) + PATIENCE_MS);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    loop_task_cancel(&w->task);
    loop_socket_close(w->client);
    http_server_close(w->server);
    loop_timer_close(w->patience);
    assert_int_equal(loop_open_handles(w->loop), 0);
    loop_free(w->loop);
    buf_done(&w->heard);
    buf_done(&w->log);
    free(w);
    return 0;
}

/* ---- the owner ---- */

static void answer(struct http_request *r, const char *text)
{
    struct http_answer a = {.status = 200,
                            .type = "text/plain",
                            .headers = "X-Own: 1\r\n",
                            .body = text,
                            .len = strlen(text)};
    http_answer(r, &a);
}

static void on_request(void *arg, struct http_request *r)
{
    struct world *w = arg;
    size_t len;
    const char *body = http_body(r, &len);
    w->served++;
    assert_non_null(strchr(http_peer(r), ':'));
    buf_printf(&w->log, "%s %s %.*s;", http_method(r), http_target(r), len < 50 ? (int)len : 3,
               body ? body : "");
    if (!strcmp(http_target(r), "/later")) {
        w->kept = r;
        loop_stop(w->loop);
        return;
    }
    const char *x = http_header(r, "x-twice");
    if (!strcmp(http_target(r), "/long")) {
        static char text[3 << 20];
        memset(text, 'x', sizeof(text) - 1);
        answer(r, text);
    } else {
        answer(r, x ? x : "none");
    }
}

static void serve(struct world *w, const struct http_limits *limits, struct tls_context *tls)
{
    struct err err = {0};
    struct http_server_config config = {.address = "tcp:127.0.0.1:0",
                                        .tls = tls,
                                        .headers = "X-All: yes\r\n",
                                        .on_request = on_request,
                                        .arg = w};
    if (limits)
        config.limits = *limits;
    w->server = http_server_new(w->loop, &config, &err);
    if (!w->server)
        fail_msg("%s", err.text);
    w->base = loop_open_handles(w->loop);
}

/* ---- the client ---- */

static void say(struct loop_task *task)
{
    struct world *w = CONTAINER_OF(task, struct world, task);
    size_t n = w->step && w->step < w->said_len ? w->step : w->said_len;
    if (!n || w->ended)
        return;
    loop_socket_write(w->client, w->said, n);
    w->said += n;
    w->said_len -= n;
    if (w->said_len)
        loop_post(w->loop, &w->task, say);
}

static void client_open(void *arg)
{
    struct world *w = arg;
    loop_post(w->loop, &w->task, say);
}

static unsigned answers(struct world *w)
{
    unsigned n = 0;
    for (const char *at = buf_str(&w->heard); (at = strstr(at, "HTTP/1.1 ")); at++)
        n++;
    return n;
}

static void client_bytes(void *arg, const uint8_t *data, size_t len)
{
    struct world *w = arg;
    buf_put(&w->heard, data, len);
    if (w->wanted && answers(w) >= w->wanted)
        loop_stop(w->loop);
}

static void client_end(void *arg, const struct err *why)
{
    struct world *w = arg;
    (void)why;
    w->ended = true;
    loop_task_cancel(&w->task);
    loop_stop(w->loop);
}

static void client_written(void *arg)
{
    (void)arg;
}

static const struct loop_socket_events client_events = {.on_open = client_open,
                                                        .on_bytes = client_bytes,
                                                        .on_written = client_written,
                                                        .on_end = client_end};

/* Says it on a connection of its own, and waits for so many answers, or for the end. */
static const char *exchange(struct world *w, const char *said, size_t len, size_t step,
                            unsigned wanted)
{
    struct err err;
    loop_task_cancel(&w->task);
    w->client = loop_socket_close(w->client);
    buf_clear(&w->heard);
    buf_clear(&w->log);
    w->said = said;
    w->said_len = len;
    w->step = step;
    w->wanted = wanted;
    w->ended = false;
    w->client =
        loop_socket_connect(w->loop, http_server_address(w->server), &client_events, w, &err);
    assert_non_null(w->client);
    loop_run(w->loop);
    return buf_str(&w->heard);
}

static const char *ask(struct world *w, const char *said, unsigned wanted)
{
    return exchange(w, said, strlen(said), 0, wanted);
}

/* The client goes, and the server notices. */
static void leave(struct world *w)
{
    w->client = loop_socket_close(w->client);
    while (loop_open_handles(w->loop) > w->base)
        loop_turn(w->loop);
}

/* ---- tests ---- */

static void requests_in_any_pieces_are_delivered_whole_and_in_order(void **state)
{
    struct world *w = *state;
    static const char text[] = "GET /a?b=c HTTP/1.1\r\nHost: x\r\nX-Twice: hello\r\n\r\n"
                               "POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n12345"
                               "POST /c HTTP/1.1\r\nhost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                               "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrail: er\r\n\r\n"
                               "HEAD /d HTTP/1.1\r\nHost: x\r\nX-Twice: 1\r\nX-Twice: 2\r\n\r\n";
    serve(w, NULL, NULL);
    for (size_t step = 0; step < 9; step++) {
        const char *heard = exchange(w, text, sizeof(text) - 1, step, 4);
        assert_string_equal(buf_str(&w->log), "GET /a?b=c ;POST /b 12345;POST /c abcde;GET /d ;");
        assert_int_equal(strncmp(heard, "HTTP/1.1 200 OK\r\nDate: ", 23), 0);
        assert_non_null(strstr(heard, "\r\n\r\nhello"));
        assert_non_null(strstr(heard, "X-All: yes\r\nX-Own: 1\r\n"));
        assert_non_null(strstr(heard, "Content-Length: 4\r\n")); /* two headers count as none */
        assert_null(strstr(heard, "Connection: close"));
    }
}

static void what_asks_for_the_end_gets_it(void **state)
{
    struct world *w = *state;
    static const char *const texts[] = {
        "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\n\r\n",
    };
    serve(w, NULL, NULL);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const char *heard = ask(w, texts[i], 0);
        assert_true(w->ended);
        assert_non_null(strstr(heard, "200 OK"));
        assert_non_null(strstr(heard, "Connection: close\r\n"));
    }
}

static void what_is_not_a_request_is_refused_with_a_problem(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *text;
        int status;
    } bad[] = {
        {"\x16\x03\x01\x02\x01\x01\x02\x03", 400}, /* TLS */
        {"HELLO / HTTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 400},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n\r\n", 400},                               /* no Host */
        {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},         /* two */
        {"GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n", 400},            /* not a path */
        {"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 400},                /* neither */
        {"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", 400},              /* nor this */
        {"GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400},                   /* space in a name */
        {"GET / HTTP/1.1\nHost: x\n\n", 400},                          /* bare LF */
        {"GET / HTTP/1.1\r\nHost: x\r\nA: b\x01\r\n\r\n", 400},        /* control */
        {"GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n", 400},                /* control */
        {"GET / HTTP/1.1\r\nHost: x\r\nExpect: miracle\r\n\r\n", 417}, /* */
        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
         400},
        {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, x\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n", 413},
        {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab", 400},
    };
    serve(w, NULL, NULL);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char status[20];
        const char *heard = ask(w, bad[i].text, 1);
        snprintf(status, sizeof(status), "HTTP/1.1 %d ", bad[i].status);
        if (strncmp(heard, status, strlen(status)) != 0 || w->served)
            fail_msg("%s: %s", bad[i].text, heard);
        assert_non_null(strstr(heard, "Content-Type: application/problem+json\r\n"));
        assert_non_null(strstr(heard, "X-All: yes\r\n"));
        assert_non_null(strstr(heard, "Connection: close\r\n"));
        leave(w);
    }
}

/* The text, and after it so many letters. */
static void ask_filled(struct world *w, const char *before, size_t n, const char *status)
{
    struct buf text = {0};
    buf_puts(&text, before);
    for (size_t i = 0; i < n; i++)
        buf_put_u8(&text, 'a');
    const char *heard = exchange(w, buf_str(&text), text.len, 0, 1);
    if (!strstr(heard, status))
        fail_msg("%s%zu: %s", before, n, heard);
    assert_int_equal(w->served, 0);
    leave(w);
    buf_done(&text);
}

static void what_is_too_long_is_refused(void **state)
{
    struct world *w = *state;
    struct buf text = {0};
    serve(w, NULL, NULL);
    ask_filled(w, "GET /", 17 << 10, "HTTP/1.1 431 ");
    ask_filled(w, "GET / HTTP/1.1\r\nHost: x\r\nA: ", 17 << 10, "HTTP/1.1 431 ");
    ask_filled(w, "GET / HTTP/1.1\r\nHost: x\r\n", 17 << 10, "HTTP/1.1 431 ");
    ask_filled(w, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nTrailer: ",
               17 << 10, "HTTP/1.1 431 ");
    ask_filled(w, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n200000\r\n",
               2 << 20, "HTTP/1.1 413 ");
    buf_puts(&text, "GET / HTTP/1.1\r\nHost: x\r\n");
    for (int i = 0; i < 64; i++)
        buf_printf(&text, "A%d: b\r\n", i);
    assert_non_null(strstr(ask(w, buf_str(&text), 1), "HTTP/1.1 431 "));
    buf_done(&text);
}

static void bodies_together_have_a_bound(void **state)
{
    struct world *w = *state;
    struct http_limits limits = {.bodies_bytes = 1000};
    serve(w, &limits, NULL);
    ask_filled(w, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2000\r\n\r\n", 1500,
               "HTTP/1.1 503 ");
    for (int i = 0; i < 3; i++) { /* what ended counts no more */
        struct buf text = {0};
        buf_puts(&text, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n");
        for (int k = 0; k < 900; k++)
            buf_put_u8(&text, 'b');
        assert_non_null(strstr(exchange(w, buf_str(&text), text.len, 0, 1), "200 OK"));
        buf_done(&text);
    }
}

static void what_is_too_slow_is_refused(void **state)
{
    struct world *w = *state;
    struct http_limits limits = {.head_ms = 30, .body_ms = 30, .idle_ms = 30};
    serve(w, &limits, NULL);
    assert_non_null(strstr(ask(w, "GET / HTTP/1.1\r\nHost:", 0), "HTTP/1.1 408 "));
    assert_non_null(strstr(ask(w, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n1", 0),
                           "HTTP/1.1 408 "));
    assert_string_equal(ask(w, "\r\n\r\n", 0), ""); /* nothing began */
    assert_true(w->ended);
    assert_int_equal(w->served, 0);
    assert_non_null(strstr(ask(w, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 0), "200 OK")); /* idle */
    assert_true(w->ended);
}

static void an_expectation_is_met_before_the_body(void **state)
{
    struct world *w = *state;
    serve(w, NULL, NULL);
    const char *heard = ask(
        w, "POST /x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab", 2);
    assert_int_equal(strncmp(heard, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK", 40), 0);
}

static void an_upgrade_is_ignored(void **state)
{
    struct world *w = *state;
    serve(w, NULL, NULL);
    const char *heard = ask(w,
                            "GET /1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n"
                            "\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n",
                            2);
    assert_string_equal(buf_str(&w->log), "GET /1 ;GET /2 ;");
    assert_int_equal(strncmp(heard, "HTTP/1.1 200 OK", 15), 0);
}

static void an_answer_may_come_later_and_after_the_client(void **state)
{
    struct world *w = *state;
    serve(w, NULL, NULL);
    ask(w, "GET /later HTTP/1.1\r\nHost: x\r\n\r\nGET /next HTTP/1.1\r\nHost: x\r\n\r\n", 2);
    assert_non_null(w->kept);
    assert_int_equal(w->served, 1); /* the next one waits */
    answer(w->kept, "at last");
    loop_run(w->loop);
    assert_non_null(strstr(buf_str(&w->heard), "at last"));
    assert_string_equal(buf_str(&w->log), "GET /later ;GET /next ;");

    ask(w, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n", 1);
    leave(w);
    answer(w->kept, "nobody is there");

    ask(w, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n", 1);
    w->server = http_server_close(w->server);
    answer(w->kept, "nor is the server");
}

static void who_does_not_read_is_closed(void **state)
{
    struct world *w = *state;
    static char text[200000];
    struct http_limits limits = {.stall_ms = 50};
    size_t n = 0;
    serve(w, &limits, NULL);
    /* Bytes beyond the bound while a request is served. */
    while (n + 60 < sizeof(text))
        n += (size_t)snprintf(text + n, sizeof(text) - n, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    exchange(w, text, n, 0, 0);
    while (!w->ended)
        loop_turn(w->loop);
    leave(w);
    answer(w->kept, "");
    assert_int_equal(w->served, 1);
}

static void nothing_waits_for_a_reader_that_stopped(void **state)
{
    struct world *w = *state;
    struct http_limits limits = {.stall_ms = 50};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    static const char text[] = "GET /long HTTP/1.1\r\nHost: x\r\n\r\n";
    int small = 4096, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    serve(w, &limits, NULL);
    to.sin_port =
        htons((uint16_t)strtol(strrchr(http_server_address(w->server), ':') + 1, NULL, 10));
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
    while (!w->served || loop_open_handles(w->loop) > w->base)
        loop_turn(w->loop);
    close(fd);
}

static int wrote(SSL *ssl, const char *text)
{
    return SSL_write(ssl, text, (int)strlen(text));
}

/* A client of OpenSSL, over memory, by the loop's own sockets. */
static void over_tls_it_is_the_same(void **state)
{
    struct world *w = *state;
    struct certs c;
    struct err err = {0};
    certs_open(&c);
    certs_add(&c, "server", "DNS:localhost");
    struct tls_config tls = {.server = true,
                             .http1 = true,
                             .cert_file = xstrdup(certs_path(&c, "server.pem")),
                             .key_file = xstrdup(certs_path(&c, "server.key"))};
    struct tls_context *t = tls_context_new(&tls, &err);
    assert_non_null(t);
    serve(w, NULL, t);
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    for (int alpn = 0; alpn < 2; alpn++) {
        SSL *ssl = SSL_new(ctx);
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        char answered[4096] = "";
        int n = 0;
        to.sin_port =
            htons((uint16_t)strtol(strrchr(http_server_address(w->server), ':') + 1, NULL, 10));
        assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
        assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
        SSL_set_fd(ssl, fd);
        if (alpn)
            SSL_set_alpn_protos(ssl, (const unsigned char *)"\x08http/1.1", 9);
        while (SSL_connect(ssl) != 1)
            loop_turn(w->loop);
        assert_true(wrote(ssl, "GET /tls HTTP/1.1\r\nHost: localhost\r\n\r\n") > 0);
        while (n <= 0) {
            loop_turn(w->loop);
            n = SSL_read(ssl, answered, sizeof(answered) - 1);
        }
        assert_non_null(strstr(answered, "200 OK"));
        SSL_free(ssl);
        close(fd);
        leave(w);
    }
    SSL_CTX_free(ctx);
    w->server = http_server_close(w->server);
    tls_context_free(t);
    free((char *)tls.cert_file);
    free((char *)tls.key_file);
    certs_close(&c);
}

static void a_drain_ends_what_is_idle_and_then_the_rest(void **state)
{
    struct world *w = *state;
    serve(w, NULL, NULL);
    ask(w, "GET /later HTTP/1.1\r\nHost: x\r\n\r\nGET /next HTTP/1.1\r\nHost: x\r\n\r\n", 0);
    http_server_drain(w->server);
    answer(w->kept, "the last one");
    loop_run(w->loop);
    assert_true(w->ended);
    assert_int_equal(w->served, 1);
    assert_non_null(strstr(buf_str(&w->heard), "Connection: close\r\n\r\nthe last one"));
    leave(w);
}

static void connections_have_a_bound(void **state)
{
    struct world *w = *state;
    struct http_limits limits = {.connections_max = 1};
    serve(w, &limits, NULL);
    ask(w, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n", 1);
    struct loop_socket *first = w->client;
    w->client = NULL;
    assert_string_equal(ask(w, "GET /second HTTP/1.1\r\nHost: x\r\n\r\n", 1), "");
    assert_true(w->ended);
    assert_int_equal(w->served, 1);
    answer(w->kept, "");
    loop_socket_close(first);
    leave(w);
    assert_non_null(strstr(ask(w, "GET /third HTTP/1.1\r\nHost: x\r\n\r\n", 1), "200 OK"));
}

static void cleartext_stays_on_this_machine(void **state)
{
    struct world *w = *state;
    struct err err = {0};
    struct http_server_config config = {.address = "tcp:0.0.0.0:0", .on_request = on_request};
    assert_null(http_server_new(w->loop, &config, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    assert_non_null(strstr(err.text, "can be reached from other machines"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(requests_in_any_pieces_are_delivered_whole_and_in_order),
        T(what_asks_for_the_end_gets_it),
        T(what_is_not_a_request_is_refused_with_a_problem),
        T(what_is_too_long_is_refused),
        T(bodies_together_have_a_bound),
        T(what_is_too_slow_is_refused),
        T(an_expectation_is_met_before_the_body),
        T(an_upgrade_is_ignored),
        T(an_answer_may_come_later_and_after_the_client),
        T(who_does_not_read_is_closed),
        T(nothing_waits_for_a_reader_that_stopped),
        T(over_tls_it_is_the_same),
        T(a_drain_ends_what_is_idle_and_then_the_rest),
        T(connections_have_a_bound),
        T(cleartext_stays_on_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
