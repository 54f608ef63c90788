/* The WebSocket client against a scripted server on the same loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "loop/peer.h"
#include "net/ws_client.h"
#include "ws_server.h"

enum { LIMIT_MS = 20000, TEXT_MAX = 64 };

struct rig {
    struct loop *loop;
    struct ws_server *server;
    struct ws_client *client;
    struct ws_peer *peer; /* the last one */
    char url[128];
    unsigned opened, closed;
    struct err why; /* of the last on_closed */
    size_t received_bytes;
    char received[TEXT_MAX];        /* by the client, the last message */
    char server_received[TEXT_MAX]; /* by the server, all messages, one after the other */
    bool server_gone, client_gone;
    void (*then)(struct rig *rig); /* called once from the next callback of the client */
};

/* ---- the server echoes; "cut" and "mute" make it do that instead ---- */

static void server_open(void *arg, struct ws_peer *p)
{
    ((struct rig *)arg)->peer = p;
}

static void server_text(void *arg, struct ws_peer *p, const char *text, size_t len)
{
    struct rig *rig = arg;
    size_t at = strlen(rig->server_received);
    snprintf(rig->server_received + at, TEXT_MAX - at, "%.*s", (int)len, text);
    if (len == 3 && memcmp(text, "cut", 3) == 0)
        ws_peer_cut(p);
    else if (len == 4 && memcmp(text, "mute", 4) == 0)
        ws_peer_stop_reading(p);
    else
        ws_peer_send(p, text);
}

/* ---- the client's callbacks ---- */

static void then(struct rig *rig)
{
    void (*cb)(struct rig * rig) = rig->then;
    rig->then = NULL;
    if (cb)
        cb(rig);
}

static void on_open(void *arg)
{
    struct rig *rig = arg;
    rig->opened++;
    then(rig);
}

static void on_text(void *arg, const char *text, size_t len)
{
    struct rig *rig = arg;
    rig->received_bytes += len;
    snprintf(rig->received, TEXT_MAX, "%.*s", (int)len, text);
    then(rig);
}

static void on_closed(void *arg, const struct err *why)
{
    struct rig *rig = arg;
    rig->closed++;
    rig->why = *why;
    then(rig);
}

/* ---- the rig ---- */

static void set_true(void *arg)
{
    *(bool *)arg = true;
}

static bool is_true(void *arg)
{
    return *(bool *)arg;
}

static bool is_positive(void *arg)
{
    return *(unsigned *)arg > 0;
}

static bool received_any(void *arg)
{
    return ((struct rig *)arg)->received_bytes > 0;
}

static struct ws_client_config config_of(struct rig *rig)
{
    return (struct ws_client_config){.url = rig->url,
                                     .on_open = on_open,
                                     .on_text = on_text,
                                     .on_closed = on_closed,
                                     .arg = rig};
}

static void rig_start(struct rig *rig)
{
    *rig = (struct rig){.loop = loop_new()};
    struct ws_script script = {.on_open = server_open, .on_text = server_text, .arg = rig};
    rig->server = ws_server_new(rig->loop, &script, 0);
    snprintf(rig->url, sizeof(rig->url), "ws://127.0.0.1:%d", ws_server_port(rig->server));
}

static void client_new(struct rig *rig, const struct ws_client_config *config)
{
    struct err err = {0};
    rig->client = ws_client_new(rig->loop, config, &err);
    if (!rig->client)
        fail_msg("%s", err.text);
}

static void rig_open(struct rig *rig)
{
    rig_start(rig);
    struct ws_client_config config = config_of(rig);
    client_new(rig, &config);
    ws_client_open(rig->client);
    assert_int_equal(rig->opened, 0); /* never inside the call */
    assert_true(run_until(rig->loop, is_positive, &rig->opened, LIMIT_MS));
}

static void client_close(struct rig *rig)
{
    ws_client_close(rig->client, set_true, &rig->client_gone);
    rig->client = NULL;
    assert_false(rig->client_gone);
}

static void server_stop(struct rig *rig)
{
    ws_server_close(rig->server, set_true, &rig->server_gone);
    assert_true(run_until(rig->loop, is_true, &rig->server_gone, LIMIT_MS));
    rig->server = NULL;
}

static void rig_done(struct rig *rig)
{
    if (rig->client)
        client_close(rig);
    assert_true(run_until(rig->loop, is_true, &rig->client_gone, LIMIT_MS));
    if (rig->server)
        server_stop(rig);
    loop_free(rig->loop); /* asserts that no handle is left */
}

/* ---- frames ---- */

struct sent {
    bool done;
    unsigned times;
    enum ws_frame_end end;
};

static void sent_cb(void *arg, enum ws_frame_end end)
{
    struct sent *s = arg;
    s->done = true;
    s->times++;
    s->end = end;
}

static struct ws_frame *frame_of(const char *text)
{
    struct ws_frame *f = ws_frame_new(strlen(text));
    memcpy(ws_frame_text(f), text, strlen(text));
    return f;
}

static void send_text(struct rig *rig, const char *text, struct sent *s)
{
    ws_client_send(rig->client, frame_of(text), NULL, NULL, s ? sent_cb : NULL, s);
}

static void await(struct rig *rig, struct sent *s, enum ws_frame_end end)
{
    assert_true(run_until(rig->loop, is_true, &s->done, LIMIT_MS));
    assert_int_equal(s->times, 1);
    assert_int_equal(s->end, end);
}

static void test_echo(void **state)
{
    (void)state;
    struct rig rig;
    struct sent s = {0};
    rig_open(&rig);
    send_text(&rig, "hello", &s);
    assert_false(s.done);
    await(&rig, &s, WS_FRAME_WRITTEN);
    assert_true(run_until(rig.loop, received_any, &rig, LIMIT_MS));
    assert_string_equal(rig.received, "hello");
    assert_int_equal(rig.received_bytes, 5);
    rig_done(&rig);
    assert_int_equal(rig.closed, 0);
}

/* A message that comes in many pieces is delivered once, whole. */
static void test_large_message(void **state)
{
    (void)state;
    struct rig rig;
    enum { N = 3 << 20 };
    rig_open(&rig);
    struct ws_frame *f = ws_frame_new(N);
    memset(ws_frame_text(f), 'x', N);
    ws_client_send(rig.client, f, NULL, NULL, NULL, NULL);
    assert_true(run_until(rig.loop, received_any, &rig, LIMIT_MS));
    assert_int_equal(rig.received_bytes, N);
    rig_done(&rig);
}

static void test_message_over_the_limit(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    struct ws_client_config config = config_of(&rig);
    config.message_max_bytes = 8;
    client_new(&rig, &config);
    ws_client_open(rig.client);
    assert_true(run_until(rig.loop, is_positive, &rig.opened, LIMIT_MS));
    send_text(&rig, "12345678", NULL);
    assert_true(run_until(rig.loop, received_any, &rig, LIMIT_MS));
    send_text(&rig, "123456789", NULL);
    assert_true(run_until(rig.loop, is_positive, &rig.closed, LIMIT_MS));
    assert_int_equal(rig.why.code, ERR_NET);
    assert_non_null(strstr(rig.why.text, "more than 8 bytes"));
    assert_int_equal(rig.received_bytes, 8);
    rig_done(&rig);
}

struct gate {
    bool open;
    unsigned asked;
    struct sent *before; /* must have been written when the gate is asked */
};

static bool gate(void *arg)
{
    struct gate *g = arg;
    g->asked++;
    if (g->before)
        assert_true(g->before->done);
    return g->open;
}

/* The gate is asked when the bytes are about to be written: not in the send, and after the frames
 * before. */
static void test_gate(void **state)
{
    (void)state;
    struct rig rig;
    struct sent a = {0}, b = {0}, c = {0}, d = {0};
    struct gate shut = {.open = true, .before = &a}, open = {.open = true, .before = &b};
    rig_open(&rig);
    send_text(&rig, "a", &a);
    ws_client_send(rig.client, frame_of("b"), gate, &shut, sent_cb, &b);
    ws_client_send(rig.client, frame_of("c"), gate, &open, sent_cb, &c);
    send_text(&rig, "d", &d);
    assert_int_equal(shut.asked + open.asked, 0);
    shut.open = false; /* after the send, before the write */
    await(&rig, &d, WS_FRAME_WRITTEN);
    await(&rig, &a, WS_FRAME_WRITTEN);
    await(&rig, &b, WS_FRAME_REFUSED);
    await(&rig, &c, WS_FRAME_WRITTEN);
    assert_int_equal(shut.asked, 1);
    assert_int_equal(open.asked, 1);
    send_text(&rig, "cut", NULL); /* the last one: everything before has arrived then */
    assert_true(run_until(rig.loop, is_positive, &rig.closed, LIMIT_MS));
    assert_string_equal(rig.server_received, "acdcut");
    rig_done(&rig);
}

static void test_cancel(void **state)
{
    (void)state;
    struct rig rig;
    struct sent a = {0}, b = {0}, c = {0};
    rig_open(&rig);
    struct ws_frame *f = frame_of("a");
    ws_client_send(rig.client, f, NULL, NULL, sent_cb, &a);
    send_text(&rig, "b", &b);
    ws_frame_cancel(f);
    await(&rig, &b, WS_FRAME_WRITTEN);
    assert_true(run_until(rig.loop, received_any, &rig, LIMIT_MS));
    assert_string_equal(rig.server_received, "b");
    f = frame_of("c");
    ws_client_drop(rig.client);
    ws_client_send(rig.client, f, NULL, NULL, sent_cb, &c); /* without a connection */
    ws_frame_cancel(f);
    rig_done(&rig);
    assert_int_equal(a.times, 0);
    assert_int_equal(c.times, 0);
}

/* Without a connection, and when it ends before the write: UNSENT, once, from the loop. */
static void test_unsent(void **state)
{
    (void)state;
    struct rig rig;
    struct sent a = {0}, b = {0}, c = {0};
    rig_start(&rig);
    struct ws_client_config config = config_of(&rig);
    client_new(&rig, &config);
    send_text(&rig, "a", &a);
    assert_false(a.done);
    await(&rig, &a, WS_FRAME_UNSENT);
    ws_client_open(rig.client);
    assert_true(run_until(rig.loop, is_positive, &rig.opened, LIMIT_MS));
    send_text(&rig, "b", &b);
    ws_client_drop(rig.client);
    assert_false(b.done);
    await(&rig, &b, WS_FRAME_UNSENT);
    rig.opened = 0;
    ws_client_open(rig.client);
    assert_true(run_until(rig.loop, is_positive, &rig.opened, LIMIT_MS));
    send_text(&rig, "c", &c);
    client_close(&rig);
    assert_false(c.done);
    assert_true(run_until(rig.loop, is_true, &rig.client_gone, LIMIT_MS));
    assert_int_equal(c.times, 1);
    assert_int_equal(c.end, WS_FRAME_UNSENT);
    assert_string_equal(rig.server_received, "");
    rig_done(&rig);
}

/* ---- the end of a connection ---- */

static void open_again(struct rig *rig)
{
    ws_client_open(rig->client);
}

static void test_lost_and_opened_again(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig.opened = 0;
    rig.then = open_again; /* from on_closed */
    send_text(&rig, "cut", NULL);
    assert_true(run_until(rig.loop, is_positive, &rig.opened, LIMIT_MS));
    assert_int_equal(rig.closed, 1);
    assert_int_equal(rig.why.code, ERR_NET);
    assert_non_null(strstr(rig.why.text, rig.url));
    rig_done(&rig);
    assert_int_equal(rig.closed, 1);
}

static void test_silent_peer(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    struct ws_client_config config = config_of(&rig);
    config.silence_timeout_ms = 150;
    client_new(&rig, &config);
    ws_client_open(rig.client);
    assert_true(run_until(rig.loop, is_positive, &rig.opened, LIMIT_MS));
    send_text(&rig, "mute", NULL);
    assert_true(run_until(rig.loop, is_positive, &rig.closed, LIMIT_MS));
    assert_non_null(strstr(rig.why.text, "silent for 150 ms"));
    rig_done(&rig);
}

static void test_refused(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    server_stop(&rig);
    struct ws_client_config config = config_of(&rig);
    client_new(&rig, &config);
    ws_client_open(rig.client);
    assert_int_equal(rig.closed, 0);
    assert_true(run_until(rig.loop, is_positive, &rig.closed, LIMIT_MS));
    assert_int_equal(rig.opened, 0);
    assert_int_equal(rig.why.code, ERR_NET);
    rig_done(&rig);
    assert_int_equal(rig.closed, 1);
}

/* ---- answers that are no upgrade ---- */

struct door {
    struct rig *rig;
    const char *answer; /* "": close without one */
};

static void door_line(void *arg, struct loop_peer *peer, const char *line, size_t len)
{
    struct door *d = arg;
    if (len > 1 || (len == 1 && line[0] != '\r'))
        return; /* the request goes on */
    loop_peer_write(peer, d->answer, strlen(d->answer));
    if (!*d->answer)
        loop_peer_close(peer);
}

/* An HTTP server with one answer: the attempt fails once, with a reason that names the status,
 * nobody else is connected to, and no handle of the loop is left. */
static void answered_with(const char *answer, const char *says)
{
    struct rig rig;
    struct err err;
    rig_start(&rig);
    struct door d = {.rig = &rig};
    struct loop_peer_events events = {.on_line = door_line, .arg = &d};
    struct loop_server *door = loop_server_new(rig.loop, "tcp:127.0.0.1:0", &events, &err);
    assert_non_null(door);
    char text[400], port[16];
    const char *hole = strchr(answer, '@'); /* a redirect leads to a server that would do */
    snprintf(port, sizeof(port), "%d", ws_server_port(rig.server));
    snprintf(text, sizeof(text), "%.*s%s%s", hole ? (int)(hole - answer) : (int)strlen(answer),
             answer, hole ? port : "", hole ? hole + 1 : "");
    d.answer = text;
    snprintf(rig.url, sizeof(rig.url), "ws://%s", loop_server_address(door) + strlen("tcp:"));
    struct ws_client_config config = config_of(&rig);
    config.connect_timeout_ms = 2000;
    client_new(&rig, &config);
    ws_client_open(rig.client);
    assert_true(run_until(rig.loop, is_positive, &rig.closed, LIMIT_MS));
    assert_int_equal(rig.opened, 0);
    assert_int_equal(rig.why.code, ERR_NET);
    if (!strstr(rig.why.text, rig.url) || !strstr(rig.why.text, says))
        fail_msg("'%.40s' ends with '%s', which does not say '%s'", answer, rig.why.text, says);
    assert_int_equal(ws_client_retry_after_ms(rig.client),
                     strstr(answer, "Retry-After: 5") ? 5000 : 0);
    assert_int_equal(ws_server_accepted(rig.server), 0);
    door = loop_server_close(door);
    rig_done(&rig);
    assert_int_equal(rig.closed, 1);
}

static void test_answers_that_are_no_upgrade(void **state)
{
    (void)state;
    static const int redirects[] = {301, 302, 303, 307, 308};
    for (size_t i = 0; i < ARRAY_LEN(redirects); i++) {
        char answer[200], says[40];
        snprintf(answer, sizeof(answer),
                 "HTTP/1.1 %d Moved\r\nLocation: http://127.0.0.1:@/\r\nContent-Length: 0\r\n\r\n",
                 redirects[i]);
        snprintf(says, sizeof(says), "HTTP status %d: a redirect", redirects[i]);
        answered_with(answer, says);
        snprintf(answer, sizeof(answer),
                 "HTTP/1.1 %d Moved\r\nLocation: ws://127.0.0.1:@/\r\nContent-Length: 0\r\n\r\n",
                 redirects[i]);
        answered_with(answer, says);
    }
    answered_with("HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n", "HTTP status 302");
    answered_with("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", "HTTP status 401");
    answered_with("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n",
                  "HTTP status 429");
    answered_with("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 2\r\n\r\nno",
                  "HTTP status 500");
    answered_with("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "HTTP status 200");
    answered_with(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n",
        "");
    answered_with("SSH-2.0-OpenSSH_9\r\n\r\n", "");
    answered_with("", "");
}

/* ---- dropped and closed by its owner ---- */

static void drop(struct rig *rig)
{
    ws_client_drop(rig->client);
}

static void test_drop_within_callbacks(void **state)
{
    (void)state;
    struct rig rig;
    struct sent s = {0};
    rig_start(&rig);
    struct ws_client_config config = config_of(&rig);
    client_new(&rig, &config);
    rig.then = drop; /* from on_open */
    ws_client_open(rig.client);
    assert_true(run_until(rig.loop, is_positive, &rig.opened, LIMIT_MS));
    send_text(&rig, "x", &s);
    await(&rig, &s, WS_FRAME_UNSENT);
    rig.opened = 0;
    ws_client_open(rig.client);
    assert_true(run_until(rig.loop, is_positive, &rig.opened, LIMIT_MS));
    rig.then = drop; /* from on_text */
    send_text(&rig, "y", NULL);
    assert_true(run_until(rig.loop, received_any, &rig, LIMIT_MS));
    rig_done(&rig);
    assert_int_equal(rig.closed, 0); /* a dropped connection is not reported */
}

static void test_close_within_callbacks(void **state)
{
    (void)state;
    struct rig rig;
    for (int i = 0; i < 3; i++) {
        rig_start(&rig);
        struct ws_client_config config = config_of(&rig);
        client_new(&rig, &config);
        if (i == 0)
            rig.then = client_close; /* from on_open */
        ws_client_open(rig.client);
        if (i > 0) {
            assert_true(run_until(rig.loop, is_positive, &rig.opened, LIMIT_MS));
            rig.then = client_close;
            send_text(&rig, i == 1 ? "x" : "cut", NULL); /* from on_text, from on_closed */
        }
        assert_true(run_until(rig.loop, is_true, &rig.client_gone, LIMIT_MS));
        assert_int_equal(rig.closed, i == 2);
        rig_done(&rig);
    }
}

static void test_close_in_every_phase(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    struct ws_client_config config = config_of(&rig);
    client_new(&rig, &config); /* never opened */
    client_close(&rig);
    assert_true(run_until(rig.loop, is_true, &rig.client_gone, LIMIT_MS));
    rig.client_gone = false;
    client_new(&rig, &config);
    ws_client_open(rig.client); /* resolving */
    rig_done(&rig);
    assert_int_equal(rig.opened + rig.closed, 0);
}

/* ---- configuration ---- */

static void test_bad_configuration(void **state)
{
    (void)state;
    struct rig rig = {.loop = loop_new()};
    struct err err = {0};
    struct ws_client_config config = config_of(&rig);
    config.url = "http://a";
    assert_null(ws_client_new(rig.loop, &config, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    assert_string_equal(
        err.text,
        "server url \"http://a\": has another scheme; write ws://host:port or wss://host:port");
    config.peer = "node";
    assert_null(ws_client_new(rig.loop, &config, &err));
    assert_ptr_equal(strstr(err.text, "node url"), err.text);
    config.url = "wss://a";
    config.ca_file = "/nonexistent.pem";
    assert_null(ws_client_new(rig.loop, &config, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    assert_non_null(strstr(err.text, "/nonexistent.pem"));
    loop_free(rig.loop);
}

/* ---- a url with secrets ---- */

/* User and password go into the header, decoded, and neither into the path nor into any text. */
static void user_and_password(void **state)
{
    (void)state;
    static const struct {
        const char *user, *rest, *authorization, *path;
    } cases[] = {
        {"svc:secret@", "", "Basic c3ZjOnNlY3JldA==", "/"},
        {"", "/?a=x@y", "", "/?a=x@y"},
        {"svc:se%40cr%3aet%2f@", "/path?key=k@v", "Basic c3ZjOnNlQGNyOmV0Lw==", "/path?key=k@v"},
        {"svc:a:b@", "", "Basic c3ZjOmE6Yg==", "/"},
        {"token@", "", "Basic dG9rZW46", "/"}, /* an empty password */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct rig rig;
        rig_start(&rig);
        snprintf(rig.url, sizeof(rig.url), "ws://%s127.0.0.1:%d%s", cases[i].user,
                 ws_server_port(rig.server), cases[i].rest);
        struct ws_client_config config = config_of(&rig);
        client_new(&rig, &config);
        ws_client_open(rig.client);
        assert_true(run_until(rig.loop, is_positive, &rig.opened, LIMIT_MS));
        assert_string_equal(ws_server_authorization(rig.server), cases[i].authorization);
        assert_string_equal(ws_server_path(rig.server), cases[i].path);
        server_stop(&rig);
        assert_true(run_until(rig.loop, is_positive, &rig.closed, LIMIT_MS));
        assert_null(strstr(rig.why.text, "secret"));
        assert_null(strstr(rig.why.text, "c3Zj"));
        rig_done(&rig);
    }
}

static void refused_without_the_secret(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "ws://u:s3cret@x@h:1",   "ws://u:s3cret/x@h:1",
        "ws://u:s3cret%4@h:1",   "ws://u:s3cret%zz@h",
        "ws://u%3as3cret@h:1",   "ws://:s3cret@h:1",
        "ws://u:s3cret%0a@h",    "ws://u:s3cret@h:0",
        "ws://u:s3cret@",        "ws://@h",
        "ws://h/s3cret@x",       "ws://u:s3cret@h#x",
        "http://u:s3cret@h:1/p", "ws://u:s3cret @h:1",
    };
    struct rig rig = {.loop = loop_new()};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = {0};
        struct ws_client_config config = config_of(&rig);
        config.url = bad[i];
        assert_null(ws_client_new(rig.loop, &config, &err));
        assert_int_equal(err.code, ERR_CONFIG);
        if (strstr(err.text, "s3cret"))
            fail_msg("%s", err.text);
    }
    loop_free(rig.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_echo),
        cmocka_unit_test(test_large_message),
        cmocka_unit_test(test_message_over_the_limit),
        cmocka_unit_test(test_gate),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_unsent),
        cmocka_unit_test(test_lost_and_opened_again),
        cmocka_unit_test(test_silent_peer),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_answers_that_are_no_upgrade),
        cmocka_unit_test(test_drop_within_callbacks),
        cmocka_unit_test(test_close_within_callbacks),
        cmocka_unit_test(test_close_in_every_phase),
        cmocka_unit_test(test_bad_configuration),
        cmocka_unit_test(user_and_password),
        cmocka_unit_test(refused_without_the_secret),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
