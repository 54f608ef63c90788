/* The client of HTTP/1: it connects to what was allowed and to nothing else, believes no receiver,
 * and ends in time whatever the other side does. */
#include "certs.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "loop/socket.h"
#include "net/http.h"
#include "net/http_client.h"

enum { PATIENCE_MS = 100000, CALL_MS = 5000, SLOW_MS = 60000 };

/* A receiver that says what it is told, whatever it hears. */
struct world {
    struct loop *loop;
    struct loop_timer *patience;
    struct loop_listener *listener;
    struct loop_socket *peer;
    struct buf heard;
    const char *says; /* NULL: nothing */
    bool for_ever;    /* again and again */
    bool closes;
    size_t said, asked;
    bool refuse;
    int status, done;
    struct err err;
    char url[80];
    struct buf parts; /* of bodies */
    size_t enough;    /* of them */
};

static void impatient(void *arg)
{
    (void)arg;
    fail_msg("nothing happened in time");
}

static void say(struct world *w)
{
    if (w->says)
        loop_socket_write(w->peer, w->says, strlen(w->says));
    w->said += w->says ? strlen(w->says) : 0;
    if (w->closes)
        w->peer = loop_socket_close(w->peer);
}

static void on_bytes(void *arg, const uint8_t *data, size_t len)
{
    struct world *w = arg;
    buf_put(&w->heard, data, len);
    if (w->said == 0)
        say(w);
}

static void on_written(void *arg)
{
    struct world *w = arg;
    if (w->for_ever && w->peer && loop_socket_queued(w->peer) == 0)
        say(w);
}

static void on_end(void *arg, const struct err *why)
{
    struct world *w = arg;
    (void)why;
    w->peer = loop_socket_close(w->peer);
}

static void on_accept(void *arg, struct loop_socket *s)
{
    static const struct loop_socket_events events = {
        .on_bytes = on_bytes, .on_written = on_written, .on_end = on_end};
    struct world *w = arg;
    if (w->peer)
        loop_socket_close(w->peer);
    w->peer = s;
    loop_socket_start(s, &events, w);
}

static int set_up(void **state)
{
    struct err err = {0};
    struct world *w = xcalloc(1, sizeof(*w));
    w->loop = loop_new();
    w->patience = loop_timer_new(w->loop, impatient, w);
    loop_timer_at(w->patience, loop_now_ms(w->loop) + PATIENCE_MS);
    w->listener = loop_listener_new(w->loop, "tcp:127.0.0.1:0", on_accept, w, &err);
    assert_non_null(w->listener);
    snprintf(w->url, sizeof(w->url), "http://%s/hook?a=1", loop_listener_address(w->listener) + 4);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    loop_listener_close(w->listener);
    if (w->peer)
        loop_socket_close(w->peer);
    loop_timer_close(w->patience);
    buf_done(&w->heard);
    buf_done(&w->parts);
    loop_free(w->loop);
    free(w);
    return 0;
}

static bool allowed(void *arg, const char *address, bool tls, struct err *err)
{
    struct world *w = arg;
    w->asked++;
    (void)tls;
    if (!w->refuse)
        return true;
    err_set(err, ERR_NET, "%s is not allowed", address);
    return false;
}

static void on_done(void *arg, int status, const struct err *err)
{
    struct world *w = arg;
    w->done++;
    w->status = status;
    w->err = *err;
    loop_stop(w->loop);
}

static void call(struct world *w, const char *url, uint32_t timeout_ms, struct tls_context *tls)
{
    struct err err = {0};
    const struct http_call_config config = {.url = url,
                                            .tls = tls,
                                            .headers = "X-One: 1\r\n",
                                            .body = "{}",
                                            .len = 2,
                                            .timeout_ms = timeout_ms,
                                            .allowed = allowed,
                                            .on_done = on_done,
                                            .arg = w};
    w->done = 0;
    assert_non_null(http_call_start(w->loop, &config, &err));
    assert_int_equal(w->done, 0); /* never inside of the call */
    loop_run(w->loop);
    assert_int_equal(w->done, 1);
}

static void a_status_is_the_answer(void **state)
{
    struct world *w = *state;
    const struct {
        const char *says;
        int status;
    } cases[] = {{"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200},
                 {"HTTP/1.1 204 No Content\r\n\r\n", 204},
                 {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 500 x\r\n\r\n", 500},
                 {"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n", 302},
                 {"HTTP/1.0 410 Gone\r\n\r\n", 410}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        w->says = cases[i].says;
        w->said = 0;
        w->heard.len = 0;
        call(w, w->url, CALL_MS, NULL);
        assert_int_equal(w->err.code, 0);
        assert_int_equal(w->status, cases[i].status);
        assert_non_null(strstr(buf_str(&w->heard), "POST /hook?a=1 HTTP/1.1\r\nHost: 127.0.0.1:"));
        assert_non_null(strstr(buf_str(&w->heard),
                               "\r\nContent-Length: 2\r\nConnection: close\r\nX-One: 1\r\n\r\n{}"));
    }
}

static bool on_part(void *arg, int status, const void *data, size_t len)
{
    struct world *w = arg;
    assert_int_equal(status, 200);
    assert_int_equal(w->done, 0);
    buf_put(&w->parts, data, len);
    return w->parts.len < w->enough;
}

static void get(struct world *w, const char *says, size_t enough, uint32_t timeout_ms)
{
    struct err err = {0};
    const struct http_call_config config = {
        .url = w->url, .timeout_ms = timeout_ms, .on_part = on_part, .on_done = on_done, .arg = w};
    w->says = says;
    w->enough = enough;
    w->said = 0;
    w->done = 0;
    buf_clear(&w->heard);
    buf_clear(&w->parts);
    assert_non_null(http_call_start(w->loop, &config, &err));
    loop_run(w->loop);
    assert_int_equal(w->done, 1);
}

/* Parts come as long as they are wanted, and as long as they come; a head's bound is not theirs. */
static void a_body_comes_in_parts(void **state)
{
    struct world *w = *state;
    get(w, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", SIZE_MAX, CALL_MS);
    assert_int_equal(w->status, 200);
    assert_string_equal(buf_str(&w->parts), "hello");
    assert_non_null(strstr(buf_str(&w->heard), "GET /hook?a=1 HTTP/1.1\r\n"));
    assert_null(strstr(buf_str(&w->heard), "Content-Length"));
    static const char stream[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                 "3\r\none\r\n3\r\ntwo\r\n";
    get(w, stream, SIZE_MAX, 200); /* then it is silent */
    assert_string_equal(buf_str(&w->parts), "onetwo");
    assert_int_equal(w->err.code, ERR_NET);
    get(w, stream, 2, CALL_MS); /* the first one is enough */
    assert_int_equal(w->status, 200);
    assert_string_equal(buf_str(&w->parts), "one");
    char *much = xmalloc(60000);
    memset(much, 'x', 60000 - 1);
    much[60000 - 1] = 0;
    char *text = xasprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", 60000 - 1, much);
    get(w, text, SIZE_MAX, CALL_MS);
    assert_int_equal(w->parts.len, 60000 - 1);
    free(text);
    free(much);
    get(w, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", 3, CALL_MS);
    assert_int_equal(w->status, 200);
}

static void what_is_no_answer_is_a_failure(void **state)
{
    struct world *w = *state;
    const struct {
        const char *says, *text;
        bool closes, for_ever;
        uint32_t timeout_ms;
    } cases[] = {
        {"SSH-2.0-x\r\n", "the answer is not HTTP/1", false, false, CALL_MS},
        {"HTTP/1.1 200 OK\r\nX: y", "the connection ended before an answer", true, false, CALL_MS},
        {NULL, "the connection ended before an answer", true, false, CALL_MS},
        {NULL, "no answer in time", false, false, 50},
        {"HTTP/1.1 200 OK\r\nX: "
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         "the head of the answer is too long", false, true, CALL_MS},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        w->says = cases[i].says;
        w->said = 0;
        w->closes = cases[i].closes;
        w->for_ever = cases[i].for_ever;
        call(w, w->url, cases[i].timeout_ms, NULL);
        assert_int_equal(w->err.code, ERR_NET);
        assert_non_null(strstr(w->err.text, cases[i].text));
        if (w->peer)
            w->peer = loop_socket_close(w->peer);
    }
}

static void nothing_is_connected_to_that_is_not_allowed(void **state)
{
    struct world *w = *state;
    char url[80];
    w->refuse = true;
    snprintf(url, sizeof(url), "http://localhost:%s/",
             strrchr(loop_listener_address(w->listener), ':') + 1);
    call(w, url, CALL_MS, NULL);
    assert_non_null(strstr(w->err.text, "is not allowed"));
    assert_true(w->asked >= 1);
    assert_null(w->peer);
    call(w, "http://nowhere.invalid/", CALL_MS, NULL);
    assert_non_null(strstr(w->err.text, "the host is not known"));
}

static void what_is_no_url_is_refused_at_once(void **state)
{
    struct world *w = *state;
    static const char *const urls[] = {"",
                                       "ftp://x/",
                                       "https://x/",
                                       "http://",
                                       "http://u:secret@x/",
                                       "http://x:0/",
                                       "http://x:65536/",
                                       "http://x:1a/",
                                       "http://x/ y",
                                       "http://x/\r\nA: b",
                                       "http://x/#y",
                                       "http://[::1/"};
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        struct err err = {0};
        const struct http_call_config config = {.url = urls[i], .on_done = on_done, .arg = w};
        assert_null(http_call_start(w->loop, &config, &err));
        assert_int_equal(err.code, ERR_ARGUMENT);
        assert_null(strstr(err.text, "secret"));
    }
}

static void a_call_can_be_cancelled_at_any_time(void **state)
{
    struct world *w = *state;
    for (int turns = 0; turns < 6; turns++) {
        struct err err = {0};
        const struct http_call_config config = {.url = w->url, .on_done = on_done, .arg = w};
        w->says = NULL;
        struct http_call *c = http_call_start(w->loop, &config, &err);
        for (int i = 0; i < turns; i++)
            loop_turn(w->loop);
        http_call_cancel(c);
    }
    assert_int_equal(w->done, 0);
}

/* ---- over TLS ---- */

static void on_request(void *arg, struct http_request *r)
{
    struct http_answer a = {.status = 201, .type = "text/plain", .body = "x", .len = 1};
    (void)arg;
    http_answer(r, &a);
}

static void over_tls_the_certificate_is_the_hosts(void **state)
{
    struct world *w = *state;
    struct certs c;
    struct err err = {0};
    char url[80];
    certs_open(&c);
    certs_add(&c, "server", "DNS:localhost");
    const struct tls_config server = {.server = true,
                                      .http1 = true,
                                      .cert_file = xstrdup(certs_path(&c, "server.pem")),
                                      .key_file = xstrdup(certs_path(&c, "server.key"))},
                            client = {.http1 = true, .ca_file = xstrdup(certs_path(&c, "ca.pem"))},
                            stranger = {.http1 = true};
    struct tls_context *s = tls_context_new(&server, &err), *t = tls_context_new(&client, &err),
                       *u = tls_context_new(&stranger, &err);
    const struct http_server_config config = {
        .address = "tcp:127.0.0.1:0", .tls = s, .on_request = on_request};
    struct http_server *h = http_server_new(w->loop, &config, &err);
    assert_non_null(h);
    const char *port = strrchr(http_server_address(h), ':') + 1;
    snprintf(url, sizeof(url), "https://localhost:%s/", port);
    call(w, url, SLOW_MS, t);
    assert_int_equal(w->status, 201);
    call(w, url, SLOW_MS, u);
    assert_non_null(strstr(w->err.text, "certificate is refused"));
    /* Cleartext to it, and TLS to cleartext. */
    snprintf(url, sizeof(url), "http://127.0.0.1:%s/", port);
    call(w, url, SLOW_MS, t);
    assert_int_equal(w->err.code, ERR_NET);
    w->says = "HTTP/1.1 200 OK\r\n\r\n";
    snprintf(url, sizeof(url), "https://localhost:%s/",
             strrchr(loop_listener_address(w->listener), ':') + 1);
    call(w, url, SLOW_MS, t);
    assert_int_equal(w->err.code, ERR_NET);
    http_server_close(h);
    tls_context_free(s);
    tls_context_free(t);
    tls_context_free(u);
    free((char *)server.cert_file);
    free((char *)server.key_file);
    free((char *)client.ca_file);
    certs_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(a_status_is_the_answer),
        T(a_body_comes_in_parts),
        T(what_is_no_answer_is_a_failure),
        T(nothing_is_connected_to_that_is_not_allowed),
        T(what_is_no_url_is_refused_at_once),
        T(a_call_can_be_cancelled_at_any_time),
        T(over_tls_the_certificate_is_the_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
