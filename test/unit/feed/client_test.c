/* The publisher's client against relays that answer what they should not, or that disagree: it
 * loses no batch, believes nothing that comes after an end, and tries the next relay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "chain/keys/keys.h"
#include "feed/client/client.h"
#include "net/grpc.h"

enum { PATIENCE_MS = 30000, RELAYS = 2 };

struct relay;
/* What a relay says to the n-th request of a stream (from 0). */
typedef void script_fn(struct relay *r, unsigned n, const struct feed_wire_item *first);

struct relay {
    struct world *world;
    struct grpc_server *server;
    struct grpc_call *call;
    script_fn *script;
    char address[64];
    unsigned streams, requests; /* requests: of the present stream */
    unsigned headers;
    int64_t number; /* of the last header */
};

struct world {
    struct loop *loop;
    struct loop_timer *patience;
    struct relay relays[RELAYS];
    struct keypair *key;
    struct feed_client *client;
    int64_t acked;
    unsigned notes[FEED_CLIENT_MISSING + 1];
    char text[400]; /* of the last note that had one */
    bool done;
};

/* ---- relays ---- */

static void say(struct relay *r, struct feed_wire_response answer)
{
    struct buf out = {0};
    feed_wire_response_write(&out, &answer);
    grpc_call_send(r->call, out.data, out.len);
    buf_done(&out);
}

#define SAY(r, ...) say(r, (struct feed_wire_response){__VA_ARGS__})

static void say_end(struct relay *r, enum feed_wire_status status, int64_t last, const char *leader)
{
    struct feed_wire_response answer = {
        .answer = FEED_WIRE_END, .number = last, .status = (int)status};
    snprintf(answer.leader, sizeof(answer.leader), "%s", leader);
    say(r, answer);
    grpc_call_finish(r->call, GRPC_OK, "");
}

static void on_request(void *arg, const uint8_t *data, size_t len)
{
    struct relay *r = arg;
    struct err err;
    struct feed_wire_request *request = feed_wire_request_read(data, len, &err);
    assert_non_null(request);
    struct feed_wire_item first = feed_wire_request_item(request, 0);
    if (first.kind == FEED_WIRE_HEADER) {
        r->headers++;
        r->number = first.header.number;
    }
    r->script(r, r->requests++, &first);
    feed_wire_request_free(request);
}

static void on_call_end(void *arg, enum grpc_status status, const char *text)
{
    struct relay *r = arg;
    (void)status;
    (void)text;
    r->call = NULL;
}

static const struct grpc_call_events events = {.on_message = on_request, .on_end = on_call_end};

static bool on_call(void *arg, struct grpc_call *call)
{
    struct relay *r = arg;
    r->streams++;
    r->requests = 0;
    r->call = call;
    grpc_call_listen(call, &events, r);
    return true;
}

static void open_relay(struct world *w, size_t i, script_fn *script)
{
    struct relay *r = &w->relays[i];
    struct err err = {0};
    struct grpc_server_config config = {.address = "tcp:127.0.0.1:0", .on_call = on_call, .arg = r};
    r->world = w;
    r->script = script;
    r->server = grpc_server_new(w->loop, &config, &err);
    assert_non_null(r->server);
    snprintf(r->address, sizeof(r->address), "%s", grpc_server_address(r->server) + 4);
}

/* ---- the publisher ---- */

static void on_acked(void *arg, int64_t number)
{
    struct world *w = arg;
    assert_true(number > w->acked);
    w->acked = number;
    loop_stop(w->loop);
}

static void on_note(void *arg, enum feed_client_note note, int64_t number, const char *text)
{
    struct world *w = arg;
    (void)number;
    w->notes[note]++;
    if (text[0])
        snprintf(w->text, sizeof(w->text), "%s", text);
    loop_stop(w->loop);
}

static void on_failed(void *arg, const struct err *why)
{
    (void)arg;
    fail_msg("%s", why->text);
}

static void on_done(void *arg)
{
    struct world *w = arg;
    w->done = true;
    loop_stop(w->loop);
}

static void publish(struct world *w, size_t relays, uint32_t retry_ms)
{
    const char *targets[RELAYS] = {w->relays[0].address, w->relays[1].address};
    struct err err = {0};
    struct feed_client_config config = {
        .feed = "prices",
        .targets = targets,
        .target_count = relays,
        .key = w->key,
        .retry_ms = retry_ms,
        .retry_max_ms = retry_ms,
        .on_acked = on_acked,
        .on_note = on_note,
        .on_failed = on_failed,
        .on_done = on_done,
        .arg = w,
    };
    w->client = feed_client_new(w->loop, &config, &err);
    assert_non_null(w->client);
}

static void put(struct world *w, int64_t number, size_t count)
{
    struct feed_wire_call calls[3] = {{0}};
    struct err err = {0};
    for (size_t i = 0; i < count; i++)
        calls[i] = (struct feed_wire_call){.call = (const uint8_t *)"call", .call_len = 4};
    assert_int_equal(feed_client_put(w->client, number, calls, count, &err), 0);
}

static void impatient(void *arg)
{
    (void)arg;
    fail_msg("nothing happened in time");
}

#define UNTIL(w, condition)                                                                        \
    do {                                                                                           \
        while (!(condition))                                                                       \
            loop_run((w)->loop);                                                                   \
    } while (0)

static int set_up(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    struct err err;
    w->loop = loop_new();
    w->acked = -1;
    w->patience = loop_timer_new(w->loop, impatient, w);
    loop_timer_at(w->patience, loop_now_ms(w->loop) + PATIENCE_MS);
    assert_int_equal(keypair_from_uri("//Alice", KEY_ED25519, &w->key, &err), 0);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    feed_client_close(w->client);
    for (size_t i = 0; i < RELAYS; i++)
        grpc_server_close(w->relays[i].server);
    loop_timer_close(w->patience);
    assert_int_equal(loop_open_handles(w->loop), 0);
    loop_free(w->loop);
    keypair_free(w->key);
    free(w);
    return 0;
}

/* ---- scripts and tests ---- */

static void take(struct relay *r, unsigned n, const struct feed_wire_item *first)
{
    (void)n;
    if (first->kind == FEED_WIRE_END_STREAM)
        say_end(r, FEED_WIRE_SUCCESS, r->number, "");
    else
        SAY(r, .answer = FEED_WIRE_ACK, .number = r->number);
}

static void rubbish_once(struct relay *r, unsigned n, const struct feed_wire_item *first)
{
    if (r->streams == 1)
        grpc_call_send(r->call, "\xff\xff", 2);
    else
        take(r, n, first);
}

static void test_an_answer_that_is_none_ends_the_stream(void **state)
{
    struct world *w = *state;
    open_relay(w, 0, rubbish_once);
    publish(w, 1, 5);
    put(w, 0, 1);
    UNTIL(w, w->notes[FEED_CLIENT_ENDED]);
    assert_string_equal(w->text, "CANCELLED: an answer is not a PublishResponse of feed.proto");
    UNTIL(w, w->acked == 0);
    assert_int_equal(w->relays[0].streams, 2);
}

static void more_after_the_end(struct relay *r, unsigned n, const struct feed_wire_item *first)
{
    if (r->streams > 1) {
        take(r, n, first);
        return;
    }
    SAY(r, .answer = FEED_WIRE_END, .status = FEED_WIRE_ERROR, .number = -1);
    SAY(r, .answer = FEED_WIRE_ACK, .number = 7);
    SAY(r, .answer = FEED_WIRE_BEHIND, .number = 7);
    SAY(r, .answer = FEED_WIRE_RESEND, .number = 0);
    SAY(r, .answer = FEED_WIRE_SKIP, .number = 0);
    grpc_call_finish(r->call, GRPC_OK, "");
}

static void test_what_comes_after_an_end_is_not_believed(void **state)
{
    struct world *w = *state;
    open_relay(w, 0, more_after_the_end);
    publish(w, 1, 5);
    put(w, 0, 1);
    UNTIL(w, w->acked >= 0);
    assert_int_equal(w->acked, 0);
    assert_int_equal(w->relays[0].streams, 2);
    assert_int_equal(w->notes[FEED_CLIENT_RESEND] + w->notes[FEED_CLIENT_SKIP], 0);
}

/* It has nothing to send, or offers another number than the answers name. */
static void answers_unasked(struct relay *r, unsigned n, const struct feed_wire_item *first)
{
    SAY(r, .answer = FEED_WIRE_SKIP, .number = 99);
    take(r, n, first);
    if (first->kind == FEED_WIRE_HEADER) {
        SAY(r, .answer = FEED_WIRE_SKIP, .number = r->number);
        SAY(r, .answer = FEED_WIRE_SKIP, .number = 99);
        SAY(r, .answer = FEED_WIRE_RESEND, .number = 99);
        SAY(r, .answer = FEED_WIRE_ACK, .number = -1);
    }
}

static void test_answers_that_nobody_asked_for_change_nothing(void **state)
{
    struct world *w = *state;
    open_relay(w, 0, answers_unasked);
    publish(w, 1, 5);
    put(w, 0, 1);
    UNTIL(w, w->notes[FEED_CLIENT_RESEND]);
    assert_int_equal(w->acked, 0);
    assert_int_equal(w->notes[FEED_CLIENT_SKIP], 0);
    put(w, 1, 3);
    UNTIL(w, w->notes[FEED_CLIENT_RESEND] == 2);
    feed_client_end(w->client);
    UNTIL(w, w->done);
    assert_int_equal(w->acked, 1);
    assert_int_equal(w->relays[0].headers, 2);
    assert_int_equal(w->relays[0].streams, 1);
    assert_int_equal(w->notes[FEED_CLIENT_SKIP], 0);
}

/* At the end it has closed its side: it cannot send anything again. */
static void asks_at_the_end(struct relay *r, unsigned n, const struct feed_wire_item *first)
{
    if (first->kind == FEED_WIRE_END_STREAM) {
        SAY(r, .answer = FEED_WIRE_RESEND, .number = 0);
        SAY(r, .answer = FEED_WIRE_BEHIND, .number = -1);
        SAY(r, .answer = FEED_WIRE_ACK, .number = 0);
    }
    take(r, n, first);
}

static void test_who_has_ended_sends_nothing_again(void **state)
{
    struct world *w = *state;
    open_relay(w, 0, asks_at_the_end);
    publish(w, 1, 5);
    put(w, 0, 1);
    feed_client_end(w->client);
    UNTIL(w, w->done);
    assert_int_equal(w->relays[0].requests, 2);
    assert_int_equal(w->notes[FEED_CLIENT_RESEND], 0);
    assert_int_equal(w->notes[FEED_CLIENT_ENDED], 0);
}

/* The relay wants the stream opened anew: the batch that is kept is not lost with it. */
static void anew_once(struct relay *r, unsigned n, const struct feed_wire_item *first)
{
    if (r->streams == 1)
        say_end(r, FEED_WIRE_SUCCESS, -1, "");
    else
        take(r, n, first);
}

static void test_it_is_not_done_while_a_batch_is_kept(void **state)
{
    struct world *w = *state;
    open_relay(w, 0, anew_once);
    publish(w, 1, 5);
    put(w, 0, 1);
    feed_client_end(w->client);
    UNTIL(w, w->done);
    assert_int_equal(w->acked, 0);
    assert_int_equal(w->relays[0].headers, 2);
}

static void beyond(struct relay *r, unsigned n, const struct feed_wire_item *first)
{
    (void)n;
    (void)first;
    SAY(r, .answer = FEED_WIRE_ACK, .number = 4);
}

/* Another publisher's copies were faster than those that this one computes now. */
static void test_a_batch_that_is_stored_is_not_offered(void **state)
{
    struct world *w = *state;
    open_relay(w, 0, beyond);
    publish(w, 1, 5);
    put(w, 0, 1);
    UNTIL(w, w->acked == 4);
    for (int64_t n = 1; n < 5; n++) {
        put(w, n, 1);
        assert_int_equal(feed_client_kept(w->client), 0);
    }
    put(w, 5, 1);
    UNTIL(w, w->notes[FEED_CLIENT_SENT] == 2);
    while (w->relays[0].headers < 2)
        loop_turn(w->loop);
    assert_int_equal(w->relays[0].number, 5);
}

static void fails(struct relay *r, unsigned n, const struct feed_wire_item *first)
{
    (void)n;
    (void)first;
    say_end(r, FEED_WIRE_ERROR, -1, "");
}

static void test_a_relay_that_fails_is_left_for_the_next(void **state)
{
    struct world *w = *state;
    open_relay(w, 0, fails);
    open_relay(w, 1, take);
    publish(w, 2, 5);
    put(w, 0, 1);
    UNTIL(w, w->acked == 0);
    assert_int_equal(w->relays[0].headers, 1);
    assert_int_equal(w->relays[1].headers, 1);
}

/* The second relay is closed: nobody listens where it was. */
static void leader_is_gone(struct relay *r, unsigned n, const struct feed_wire_item *first)
{
    if (r->streams == 1)
        say_end(r, FEED_WIRE_NOT_LEADER, -1, r->world->relays[1].address);
    else
        take(r, n, first);
}

static void test_a_leader_that_is_gone_is_tried_once(void **state)
{
    struct world *w = *state;
    open_relay(w, 0, leader_is_gone);
    open_relay(w, 1, take);
    w->relays[1].server = grpc_server_close(w->relays[1].server);
    publish(w, 1, 5);
    put(w, 0, 1);
    UNTIL(w, w->acked == 0);
    assert_int_equal(w->notes[FEED_CLIENT_LOST], 1);
}

static void the_other_one_leads(struct relay *r, unsigned n, const struct feed_wire_item *first)
{
    struct world *w = r->world;
    (void)n;
    (void)first;
    say_end(r, FEED_WIRE_NOT_LEADER, -1, w->relays[r == &w->relays[0]].address);
}

/* It goes to the leader at once; after that it waits, each time. */
static void test_relays_that_disagree_are_not_asked_in_a_rush(void **state)
{
    enum { RETRY_MS = 100, STREAMS = 6 };
    struct world *w = *state;
    open_relay(w, 0, the_other_one_leads);
    open_relay(w, 1, the_other_one_leads);
    publish(w, 2, RETRY_MS);
    put(w, 0, 1);
    uint64_t begun = loop_now_ms(w->loop);
    UNTIL(w, w->relays[0].streams + w->relays[1].streams == STREAMS);
    assert_in_range(loop_now_ms(w->loop) - begun, (STREAMS - 2) * RETRY_MS / 2, PATIENCE_MS);
    assert_int_equal(w->relays[0].streams, STREAMS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
        T(test_an_answer_that_is_none_ends_the_stream),
        T(test_what_comes_after_an_end_is_not_believed),
        T(test_answers_that_nobody_asked_for_change_nothing),
        T(test_who_has_ended_sends_nothing_again),
        T(test_it_is_not_done_while_a_batch_is_kept),
        T(test_a_batch_that_is_stored_is_not_offered),
        T(test_a_relay_that_fails_is_left_for_the_next),
        T(test_a_leader_that_is_gone_is_tried_once),
        T(test_relays_that_disagree_are_not_asked_in_a_rush),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
