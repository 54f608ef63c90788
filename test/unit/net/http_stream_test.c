/* Answers that go on: chunks arrive in order and end cleanly, who does not read is closed, and the
 * owner learns once that the client has gone. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "loop/socket.h"
#include "net/http.h"

enum { PATIENCE_MS = 100000, PIECE = 16 << 10, ENOUGH = 256 << 10 };

struct world {
    struct loop *loop;
    struct http_server *server;
    struct http_stream *stream;
    struct loop_timer *patience;
    unsigned served, rooms, ends;
    bool greedy; /* writes whenever there is room */
    size_t written;
    int fd;
};

static void impatient(void *arg)
{
    (void)arg;
    fail_msg("nothing happened in time");
}

static void on_room(void *arg)
{
    static char piece[PIECE];
    struct world *w = arg;
    w->rooms++;
    while (w->greedy && http_stream_queued(w->stream) < ENOUGH) {
        memset(piece, 'a' + (int)(w->written / PIECE % 26), sizeof(piece));
        http_stream_write(w->stream, piece, sizeof(piece));
        w->written += sizeof(piece);
    }
}

static void on_end(void *arg)
{
    struct world *w = arg;
    w->ends++;
    w->stream = NULL;
}

static const struct http_stream_events events = {.on_room = on_room, .on_end = on_end};

static void on_request(void *arg, struct http_request *r)
{
    struct world *w = arg;
    struct http_answer a = {.status = 200, .type = "text/event-stream", .headers = "X-Own: 1\r\n"};
    w->served++;
    w->stream = http_stream_start(r, &a, &events, w);
    if (w->stream)
        http_stream_write(w->stream, "first", 5);
}

static int set_up(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    struct err err = {0};
    struct http_server_config config = {.address = "tcp:127.0.0.1:0",
                                        .limits = {.stall_ms = 50},
                                        .headers = "X-All: yes\r\n",
                                        .on_request = on_request,
                                        .arg = w};
    w->loop = loop_new();
    w->patience = loop_timer_new(w->loop, impatient, w);
    loop_timer_at(w->patience, loop_now_ms(w->loop) + PATIENCE_MS);
    w->server = http_server_new(w->loop, &config, &err);
    assert_non_null(w->server);
    w->fd = -1;
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    if (w->fd >= 0)
        close(w->fd);
    if (w->stream)
        http_stream_end(w->stream);
    http_server_close(w->server);
    loop_timer_close(w->patience);
    assert_int_equal(loop_open_handles(w->loop), 0);
    loop_free(w->loop);
    free(w);
    return 0;
}

/* Asks on a connection of its own, whose receive buffer is small, and turns until it was heard. */
static void ask(struct world *w, const char *text)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    unsigned served = w->served;
    int small = 4096;
    if (w->fd >= 0)
        close(w->fd);
    w->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    to.sin_port =
        htons((uint16_t)strtol(strrchr(http_server_address(w->server), ':') + 1, NULL, 10));
    assert_int_equal(setsockopt(w->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
    assert_int_equal(connect(w->fd, (struct sockaddr *)&to, sizeof(to)), 0);
    assert_int_equal(write(w->fd, text, strlen(text)), (ssize_t)strlen(text));
    while (w->served == served)
        loop_turn(w->loop);
}

/* Reads until there are so many bytes, or until the end (0). */
static void hear(struct world *w, struct buf *heard, size_t bytes)
{
    char part[65536];
    for (;;) {
        struct pollfd p = {.fd = w->fd, .events = POLLIN};
        if (bytes && heard->len >= bytes)
            return;
        if (poll(&p, 1, 0) == 0) {
            loop_turn(w->loop);
            continue;
        }
        ssize_t n = read(w->fd, part, sizeof(part));
        if (n <= 0)
            return;
        buf_put(heard, part, (size_t)n);
    }
}

static void pieces_arrive_in_chunks_and_end(void **state)
{
    struct world *w = *state;
    struct buf heard = {0};
    ask(w, "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /never HTTP/1.1\r\nHost: x\r\n\r\n");
    http_stream_write(w->stream, "0123456789abcdefg", 17);
    http_stream_write(w->stream, "", 0); /* no chunk: it would be the last one */
    http_stream_end(w->stream);
    w->stream = NULL;
    hear(w, &heard, 0);
    const char *text = buf_str(&heard);
    assert_int_equal(strncmp(text, "HTTP/1.1 200 OK\r\n", 17), 0);
    assert_non_null(strstr(text, "Content-Type: text/event-stream\r\n"
                                 "Transfer-Encoding: chunked\r\nX-All: yes\r\nX-Own: 1\r\n"
                                 "Connection: close\r\n\r\n"
                                 "5\r\nfirst\r\n11\r\n0123456789abcdefg\r\n0\r\n\r\n"));
    assert_null(strstr(text, "Content-Length"));
    assert_int_equal(w->served, 1);
    assert_int_equal(w->ends, 0);
    buf_done(&heard);
}

static void http_1_0_has_no_chunks_and_head_no_body(void **state)
{
    struct world *w = *state;
    struct buf heard = {0};
    ask(w, "GET / HTTP/1.0\r\n\r\n");
    http_stream_end(w->stream);
    w->stream = NULL;
    hear(w, &heard, 0);
    assert_non_null(strstr(buf_str(&heard), "Connection: close\r\n\r\nfirst"));
    assert_null(strstr(buf_str(&heard), "chunked"));
    buf_clear(&heard);
    ask(w, "HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert_null(w->stream);
    hear(w, &heard, 0);
    assert_non_null(strstr(buf_str(&heard), "200 OK"));
    assert_string_equal(buf_str(&heard) + heard.len - 4, "\r\n\r\n");
    buf_done(&heard);
}

static void a_reader_gets_it_all_while_little_is_queued(void **state)
{
    struct world *w = *state;
    struct buf heard = {0};
    w->greedy = true;
    ask(w, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    hear(w, &heard, 4 << 20); /* much more than may be queued, and than sockets hold */
    assert_int_equal(w->ends, 0);
    assert_true(http_stream_queued(w->stream) < ENOUGH + PIECE + 64);
    assert_true(w->rooms > 10);
    buf_done(&heard);
}

static void who_stops_reading_is_closed(void **state)
{
    struct world *w = *state;
    struct buf heard = {0};
    w->greedy = true;
    ask(w, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    hear(w, &heard, 1 << 20);
    while (!w->ends)
        loop_turn(w->loop);
    assert_null(w->stream);
    assert_true(w->written < (32u << 20));
    buf_done(&heard);
}

static void who_is_silent_because_nothing_is_written_stays(void **state)
{
    struct world *w = *state;
    struct buf heard = {0};
    ask(w, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    uint64_t until = loop_now_ms(w->loop) + 200; /* four times what a stalled one has */
    while (loop_now_ms(w->loop) < until)
        loop_turn(w->loop);
    assert_int_equal(w->ends, 0);
    http_stream_write(w->stream, "second", 6);
    http_stream_end(w->stream);
    w->stream = NULL;
    hear(w, &heard, 0);
    assert_non_null(strstr(buf_str(&heard), "second\r\n0\r\n\r\n"));
    buf_done(&heard);
}

static void the_owner_learns_once_that_the_client_has_gone(void **state)
{
    struct world *w = *state;
    ask(w, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    close(w->fd);
    w->fd = -1;
    while (!w->ends)
        loop_turn(w->loop);
    assert_null(w->stream);
    ask(w, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    http_server_drain(w->server); /* a stream ends when its owner ends it */
    assert_non_null(w->stream);
    w->server = http_server_close(w->server);
    assert_int_equal(w->ends, 2);
    assert_null(w->stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(pieces_arrive_in_chunks_and_end),
        T(http_1_0_has_no_chunks_and_head_no_body),
        T(a_reader_gets_it_all_while_little_is_queued),
        T(who_stops_reading_is_closed),
        T(who_is_silent_because_nothing_is_written_stays),
        T(the_owner_learns_once_that_the_client_has_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
