/* HTTP/2 connections and their calls, on virtual time: each call ends once, nothing is lost or
 * reordered whatever the pieces are, windows open only as bytes are taken, nobody waits for a
 * reader that stands still, and every kind of silence ends. */
#include "h2_pair.h"

struct user { /* of one call, on either side */
    struct pair *pair;
    struct grpc_call *call;
    unsigned messages, halves, rooms, ends;
    uint64_t bytes;
    uint32_t next; /* the number that the next message must have */
    enum grpc_status status;
    char text[300];
    void (*then)(struct user *u); /* after each message */
    unsigned trick;
};

static struct user client, server;

static void number_message(uint32_t n, uint8_t *ret, size_t len)
{
    for (size_t i = 0; i < len; i++)
        ret[i] = (uint8_t)(n >> (8 * (i % 4)));
}

static void on_message(void *arg, const uint8_t *data, size_t len)
{
    struct user *u = arg;
    assert_int_equal(u->ends, 0);
    assert_int_equal(u->halves, 0);
    uint8_t want[8];
    number_message(u->next++, want, sizeof(want));
    assert_memory_equal(data, want, len < 8 ? len : 8);
    if (len)
        assert_int_equal(data[len - 1], want[(len - 1) % 4]);
    u->messages++;
    u->bytes += len;
    if (u->then)
        u->then(u);
}

static void on_half(void *arg)
{
    struct user *u = arg;
    u->halves++;
}

static void on_room(void *arg)
{
    ((struct user *)arg)->rooms++;
}

static void on_end(void *arg, enum grpc_status status, const char *text)
{
    struct user *u = arg;
    u->call = NULL;
    u->ends++;
    u->status = status;
    snprintf(u->text, sizeof(u->text), "%s", text);
}

static const struct grpc_call_events events = {
    .on_message = on_message, .on_half = on_half, .on_room = on_room, .on_end = on_end};

static bool take_call(struct pair *p, struct grpc_call *call)
{
    if (strcmp(grpc_call_path(call), "/test/echo") != 0)
        return false;
    server.pair = p;
    server.call = call;
    grpc_call_listen(call, &events, &server);
    return true;
}

static void begin(struct pair *p, uint64_t seed, size_t piece, const struct grpc_limits *cl,
                  const struct grpc_limits *sl)
{
    client = server = (struct user){0};
    *p = (struct pair){.on_call = take_call};
    pair_open(p, seed, piece, cl, sl);
    pair_run(p);
    assert_true(p->client.up && p->server.up);
    client.pair = p;
}

static void call(struct pair *p, const char *path, uint64_t deadline)
{
    client.call = grpc__call_start(p->client.conn, path, "test", NULL, deadline, &events, &client);
}

static void send(struct user *u, uint32_t n, size_t len)
{
    uint8_t *data = xmalloc(len + 1);
    number_message(n, data, len);
    grpc_call_send(u->call, data, len);
    free(data);
}

static void finish(struct pair *p)
{
    pair_close(p);
    assert_true(client.ends <= 1 && server.ends <= 1);
}

/* ---- messages ---- */

static void echo(struct user *u)
{
    send(u, u->next - 1, 4);
}

/* Under memcheck each course is tried with one seed of ten. */
static uint64_t seeds(uint64_t all)
{
    return getenv("TXRELAY_VALGRIND") ? all / 10 : all;
}

static void test_messages_cross_in_any_pieces(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= seeds(30); seed++)
        for (size_t piece = 1; piece <= 20000; piece = piece == 1 ? 7 : piece * 50) {
            struct pair p;
            begin(&p, seed, piece, NULL, NULL);
            server.then = echo;
            call(&p, "/test/echo", 0);
            uint64_t bytes = 0;
            for (uint32_t i = 0; i < 40; i++) {
                size_t len = (size_t)rng_below(&p.rng, i % 8 ? 60 : 9000);
                send(&client, i, len);
                bytes += len;
                if (rng_below(&p.rng, 3) == 0)
                    pair_run(&p);
            }
            grpc_call_half_close(client.call);
            pair_run(&p);
            assert_int_equal(server.messages, 40);
            assert_int_equal(server.bytes, bytes);
            assert_int_equal(server.halves, 1);
            assert_int_equal(client.messages, 40);
            grpc_call_finish(server.call, GRPC_ABORTED, "100 %\nso");
            pair_run(&p);
            assert_int_equal(client.ends, 1);
            assert_int_equal(server.ends, 1);
            assert_int_equal(client.status, GRPC_ABORTED);
            assert_string_equal(client.text, "100 %\nso");
            finish(&p);
        }
}

static void test_a_message_longer_than_the_window_arrives(void **state)
{
    (void)state;
    struct pair p;
    struct grpc_limits small = {.window_bytes = 65535};
    begin(&p, 1, 5000, NULL, &small);
    call(&p, "/test/echo", 0);
    send(&client, 0, 3 << 20);
    pair_run(&p);
    assert_int_equal(server.messages, 1);
    assert_int_equal(server.bytes, 3 << 20);
    finish(&p);
}

static void test_the_server_ends_first_and_its_messages_arrive(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, 3, 100, NULL, NULL);
    call(&p, "/test/echo", 0);
    pair_run(&p);
    send(&server, 0, 5000);
    send(&server, 1, 5);
    grpc_call_finish(server.call, GRPC_OK, "");
    pair_run(&p);
    assert_int_equal(client.messages, 2);
    assert_int_equal(client.ends, 1);
    assert_int_equal(client.status, GRPC_OK);
    assert_int_equal(server.ends, 1);
    assert_true(list_empty(&p.client.conn->calls) && list_empty(&p.server.conn->calls));
    finish(&p);
}

/* ---- refusals ---- */

static void expect_end(const char *path, enum grpc_status status)
{
    struct pair p;
    begin(&p, 1, 50, NULL, NULL);
    call(&p, path, 0);
    pair_run(&p);
    assert_int_equal(client.ends, 1);
    assert_int_equal(client.status, status);
    assert_false(p.client.over || p.server.over);
    finish(&p);
}

static void test_refused_calls_leave_the_connection(void **state)
{
    (void)state;
    char path[400];
    memset(path, 'a', sizeof(path));
    path[0] = '/';
    path[399] = 0;
    expect_end("/test/nothing", GRPC_UNIMPLEMENTED);
    expect_end(path, GRPC_UNIMPLEMENTED);
    char *headers = xmalloc(9001);
    memset(headers, 'a', 9000);
    headers[0] = '/';
    headers[9000] = 0;
    expect_end(headers, GRPC_RESOURCE_EXHAUSTED);
    free(headers);
}

static void test_a_message_that_is_too_long_ends_its_call(void **state)
{
    (void)state;
    struct pair p;
    struct grpc_limits small = {.message_bytes = 1000};
    begin(&p, 1, 50, NULL, &small);
    call(&p, "/test/echo", 0);
    send(&client, 0, 1000);
    send(&client, 1, 1001);
    pair_run(&p);
    assert_int_equal(server.messages, 1);
    assert_int_equal(client.status, GRPC_RESOURCE_EXHAUSTED);
    assert_string_equal(client.text, "the message is too long");
    assert_int_equal(server.ends, 1);
    finish(&p);
}

static void test_half_messages_have_a_budget(void **state)
{
    (void)state;
    struct pair p;
    struct grpc_limits small = {.conn_partial_bytes = 50000};
    begin(&p, 1, 5000, NULL, &small);
    call(&p, "/test/echo", 0);
    send(&client, 0, 100000);
    pair_run(&p);
    assert_int_equal(server.messages, 0);
    assert_int_equal(client.status, GRPC_RESOURCE_EXHAUSTED);
    assert_int_equal(p.server.conn->partial_bytes, 0);
    finish(&p);
}

static void test_a_side_that_ends_inside_a_message(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, 1, 50, NULL, NULL);
    call(&p, "/test/echo", 0);
    buf_put(&client.call->out, "\0\0\0\0\11abc", 8);
    p.client.conn->out_bytes += 8;
    grpc_call_half_close(client.call);
    pair_run(&p);
    assert_int_equal(client.status, GRPC_INTERNAL);
    finish(&p);
}

/* ---- flow control ---- */

static void pause_now(struct user *u)
{
    if (u->messages == 3)
        grpc_call_pause(u->call, true);
}

/* A call that is paused takes a window's worth of bytes and no more, and its neighbour goes on. */
static void test_a_paused_call_closes_its_window(void **state)
{
    (void)state;
    struct pair p;
    struct grpc_limits limits = {
        .window_bytes = 65535, .call_out_bytes = 1 << 20, .conn_out_bytes = 8 << 20};
    begin(&p, 1, 5000, &limits, &limits);
    server.then = pause_now;
    call(&p, "/test/echo", 0);
    for (uint32_t i = 0; i < 500; i++)
        send(&client, i, 1000);
    pair_run(&p);
    struct grpc_call *paused = server.call;
    assert_int_equal(server.messages, 3);
    assert_true(paused->held.len - paused->held_at <= 65535);
    assert_true(paused->held.len - paused->held_at > 30000);
    assert_true(grpc_call_queued(client.call) > 400000);

    struct user first_client = client, first_server = server; /* a neighbour */
    paused->arg = &first_server;
    client.call->arg = &first_client;
    client = server = (struct user){.pair = &p};
    call(&p, "/test/echo", 0);
    send(&client, 0, 100000);
    pair_run(&p);
    assert_int_equal(server.messages, 1);

    grpc_call_pause(paused, false);
    pair_run(&p);
    assert_int_equal(first_server.messages, 500);
    assert_int_equal(grpc_call_queued(first_client.call), 0);
    assert_int_equal(first_client.rooms, 1);
    finish(&p);
}

/* Who does not read answers cannot ask more: input waits for room in the output. */
static void test_input_waits_for_output(void **state)
{
    (void)state;
    struct pair p;
    struct grpc_limits limits = {.window_bytes = 65535, .call_out_bytes = 100000};
    struct grpc_limits wide = {
        .window_bytes = 65535, .call_out_bytes = 64 << 20, .conn_out_bytes = 64 << 20};
    begin(&p, 1, 5000, &wide, &limits);
    server.then = echo;
    call(&p, "/test/echo", 0);
    pair_run(&p);
    grpc_call_pause(client.call, true); /* the client takes no answer, and its window closes */
    for (uint32_t i = 0; i < 60000; i++)
        send(&client, i, 100);
    pair_run(&p);
    assert_non_null(server.call); /* not cut for its queue */
    assert_true(server.messages < 20000);
    assert_true(grpc_call_queued(server.call) <= 100000);
    grpc_call_pause(client.call, false);
    pair_run(&p);
    assert_int_equal(client.messages, 60000);
    finish(&p);
}

static void test_a_push_to_a_reader_that_stands_still_is_cut(void **state)
{
    (void)state;
    struct pair p;
    struct grpc_limits limits = {.call_out_bytes = 100000};
    begin(&p, 1, 5000, NULL, &limits);
    call(&p, "/test/echo", 0);
    pair_run(&p);
    p.server.stuck = true;
    for (uint32_t i = 0; i < 2000 && server.call; i++)
        send(&server, i, 1000);
    assert_true(p.server.conn->out_bytes == 0); /* dropped */
    p.server.stuck = false;
    pair_run(&p);
    assert_int_equal(client.status, GRPC_RESOURCE_EXHAUSTED);
    assert_int_equal(server.status, GRPC_RESOURCE_EXHAUSTED);
    finish(&p);
}

/* ---- time ---- */

static void test_a_deadline_ends_both_sides(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, 1, 50, NULL, NULL);
    call(&p, "/test/echo", p.now + 200);
    pair_run(&p);
    assert_true(server.call->deadline_ms >= p.now + 199);
    pair_wait(&p, 199);
    assert_int_equal(client.ends, 0);
    pair_wait(&p, 3);
    assert_int_equal(client.status, GRPC_DEADLINE_EXCEEDED);
    assert_int_equal(server.ends, 1);
    finish(&p);
}

static void test_an_idle_connection_lives_by_its_pings(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, 1, 50, NULL, NULL);
    call(&p, "/test/echo", 0);
    pair_run(&p);
    pair_wait(&p, 3600000);
    assert_false(p.client.over || p.server.over);
    assert_int_equal(client.ends + server.ends, 0);
    finish(&p);
}

static bool refuse(struct pair *p, struct grpc_call *call)
{
    (void)p;
    grpc_call_finish(call, GRPC_UNAUTHENTICATED, "no");
    return true;
}

/* It answers every ping, and would keep its place for ever: without a call, with one that is
 * refused again and again, and after one that is over. */
static void test_a_connection_without_a_call_ends(void **state)
{
    enum { NONE, REFUSED, OVER, WAYS };
    (void)state;
    for (int way = NONE; way < WAYS; way++) {
        struct pair p;
        begin(&p, 1, 50, NULL, NULL);
        p.on_call = way == REFUSED ? refuse : take_call;
        for (int i = 0; i < 5; i++) {
            if (way == REFUSED || (way == OVER && i == 0)) {
                client.ends = 0;
                call(&p, "/test/echo", 0);
                pair_run(&p);
            }
            pair_wait(&p, 11000);
            assert_false(p.server.over);
            if (way == OVER && i == 0) {
                grpc_call_finish(server.call, GRPC_OK, "");
                pair_run(&p);
            }
        }
        pair_wait(&p, 25000);
        assert_true(p.server.over && p.client.over);
        pair_close(&p);
    }
}

static void ping_back(struct user *u)
{
    nghttp2_submit_ping(u->pair->client.conn->session, NGHTTP2_FLAG_NONE, NULL);
}

/* grpc-go sends them to measure the bandwidth. Without messages so many PINGs are a flood
 * (h2_attack_test). */
static void test_a_ping_for_each_message_is_no_flood(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, 1, 50, NULL, NULL);
    call(&p, "/test/echo", 0);
    pair_run(&p);
    client.then = ping_back;
    for (uint32_t i = 0; i < 1000; i++) {
        send(&server, i, 10);
        h2__conn_turn(p.server.conn, p.now);
        pair_run(&p);
        pair_wait(&p, 5);
        assert_false(p.server.over);
    }
    assert_int_equal(client.messages, 1000);
    finish(&p);
}

static void test_a_silent_peer_is_noticed(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, 1, 50, NULL, NULL);
    call(&p, "/test/echo", 0);
    pair_run(&p);
    p.client.stuck = p.server.stuck = true;
    pair_wait(&p, 15001);
    assert_true(p.client.over && p.server.over);
    assert_int_equal(client.status, GRPC_UNAVAILABLE);
    assert_int_equal(server.status, GRPC_UNAVAILABLE);
    assert_string_equal(p.server.why.text, "the peer is silent");
    finish(&p);
}

/* It sends, so it is not silent, and takes nothing. */
static void test_a_connection_that_takes_no_output_ends(void **state)
{
    (void)state;
    struct pair p;
    struct grpc_limits patient = {.keepalive_ms = 3600000, .stall_ms = 3600000};
    begin(&p, 1, 50, &patient, NULL);
    call(&p, "/test/echo", 0);
    pair_run(&p);
    p.server.stuck = true;
    send(&server, 0, 100);
    for (int i = 0; i < 7 && !p.server.over; i++) {
        nghttp2_submit_ping(p.client.conn->session, NGHTTP2_FLAG_NONE, NULL);
        h2__conn_turn(p.client.conn, p.now);
        pair_run(&p);
        pair_wait(&p, 5000);
    }
    assert_true(p.server.over);
    assert_string_equal(p.server.why.text, "the peer takes no output");
    assert_int_equal(server.status, GRPC_UNAVAILABLE);
    finish(&p);
}

/* It answers pings and gives no window: only its call ends. */
static void test_a_closed_window_ends_the_call(void **state)
{
    (void)state;
    struct pair p;
    struct grpc_limits slow = {.stall_ms = 30000};
    begin(&p, 1, 5000, &slow, NULL);
    server.then = pause_now;
    call(&p, "/test/echo", 0);
    for (uint32_t i = 0; i < 500; i++)
        send(&client, i, 2000);
    pair_run(&p);
    pair_wait(&p, 30001);
    assert_int_equal(client.status, GRPC_RESOURCE_EXHAUSTED);
    assert_int_equal(server.ends, 1);
    assert_false(p.client.over || p.server.over);
    finish(&p);
}

static void test_a_message_that_does_not_end_is_refused(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, 1, 50, NULL, NULL);
    call(&p, "/test/echo", 0);
    pair_run(&p);
    buf_put(&client.call->out, "\0\0\0\0\11abc", 8);
    p.client.conn->out_bytes += 8;
    client.call->deferred = false;
    nghttp2_session_resume_data(p.client.conn->session, client.call->stream);
    p.client.woken = true;
    pair_run(&p);
    assert_int_equal(server.call->partial, 8);
    pair_wait(&p, 60001);
    assert_int_equal(client.status, GRPC_DEADLINE_EXCEEDED);
    finish(&p);
}

static void test_no_settings_in_time(void **state)
{
    (void)state;
    static const struct grpc_limits none;
    struct pair p = {.now = 1000, .rng = {1}, .piece_max = 10};
    side_open(&p, &p.server, true, &none);
    p.client.over = true;
    pair_run(&p);
    pair_wait(&p, 5001);
    assert_true(p.server.over);
    assert_string_equal(p.server.why.text, "no HTTP/2 SETTINGS came in time");
    pair_close(&p);
}

/* ---- drain ---- */

static void test_drain_lets_open_calls_end(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, 1, 50, NULL, NULL);
    server.then = echo;
    call(&p, "/test/echo", 0);
    pair_run(&p);
    h2__conn_drain(p.server.conn, p.now);
    pair_run(&p);
    struct user late = {.pair = &p}; /* a new call is refused from the loop */
    late.call = grpc__call_start(p.client.conn, "/test/echo", "test", NULL, 0, &events, &late);
    assert_int_equal(late.ends, 0);
    pair_run(&p);
    assert_int_equal(late.ends, 1);
    assert_int_equal(late.status, GRPC_UNAVAILABLE);
    send(&client, 0, 10);
    pair_run(&p);
    assert_int_equal(client.messages, 1);
    grpc_call_finish(server.call, GRPC_OK, "");
    pair_run(&p);
    assert_int_equal(client.status, GRPC_OK);
    assert_true(p.client.over && p.server.over);
    assert_int_equal(p.server.why.code, ERR_OK);
    finish(&p);
}

/* ---- dying inside a callback ---- */

static void die(struct user *u)
{
    struct err why;
    struct side *mine = u == &server ? &u->pair->server : &u->pair->client;
    if (u->messages != 2)
        return;
    switch (u->trick) {
    case 0:
        grpc_call_cancel(u->call, "enough");
        break;
    case 1:
        grpc_call_finish(u->call, GRPC_OK, "");
        break;
    case 2:
        err_set(&why, ERR_NET, "lost");
        h2__conn_lost(mine->conn, u->pair->now, &why);
        break;
    case 3:
        h2__conn_silence(mine->conn);
        break;
    case 4:
        grpc_call_finish(u->call, GRPC_OK, "");
        grpc_call_finish(u->call, GRPC_ABORTED, "");
        grpc_call_cancel(u->call, "twice");
        grpc_call_send(u->call, "x", 1);
        break;
    case 5:
        h2__conn_drain(mine->conn, u->pair->now);
        break;
    default:
        break;
    }
}

static void test_every_way_to_die_inside_a_callback(void **state)
{
    (void)state;
    for (unsigned trick = 0; trick < 6; trick++)
        for (uint64_t seed = 1; seed <= seeds(20); seed++) {
            struct pair p;
            begin(&p, seed, seed % 3 ? 40 : 4000, NULL, NULL);
            server.then = die;
            server.trick = trick;
            call(&p, "/test/echo", 0);
            for (uint32_t i = 0; i < 6; i++)
                send(&client, i, 30);
            pair_run(&p);
            if (trick == 3) {
                assert_int_equal(server.ends, 0); /* its owner wanted silence */
                assert_int_equal(server.messages, 2);
            } else if (trick == 5) {
                assert_int_equal(server.messages, 6);
            } else {
                assert_int_equal(server.messages, 2);
                assert_int_equal(server.ends, 1);
            }
            finish(&p);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_cross_in_any_pieces),
        cmocka_unit_test(test_a_message_longer_than_the_window_arrives),
        cmocka_unit_test(test_the_server_ends_first_and_its_messages_arrive),
        cmocka_unit_test(test_refused_calls_leave_the_connection),
        cmocka_unit_test(test_a_message_that_is_too_long_ends_its_call),
        cmocka_unit_test(test_half_messages_have_a_budget),
        cmocka_unit_test(test_a_side_that_ends_inside_a_message),
        cmocka_unit_test(test_a_paused_call_closes_its_window),
        cmocka_unit_test(test_input_waits_for_output),
        cmocka_unit_test(test_a_push_to_a_reader_that_stands_still_is_cut),
        cmocka_unit_test(test_a_deadline_ends_both_sides),
        cmocka_unit_test(test_an_idle_connection_lives_by_its_pings),
        cmocka_unit_test(test_a_connection_without_a_call_ends),
        cmocka_unit_test(test_a_ping_for_each_message_is_no_flood),
        cmocka_unit_test(test_a_silent_peer_is_noticed),
        cmocka_unit_test(test_a_connection_that_takes_no_output_ends),
        cmocka_unit_test(test_a_closed_window_ends_the_call),
        cmocka_unit_test(test_a_message_that_does_not_end_is_refused),
        cmocka_unit_test(test_no_settings_in_time),
        cmocka_unit_test(test_drain_lets_open_calls_end),
        cmocka_unit_test(test_every_way_to_die_inside_a_callback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
