/* The door and the publisher's client, against a room that plays a part: each message of the
 * protocol has its effect, a held stream gives nothing, strangers stay outside, and a drain and a
 * close leave nothing behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "chain/keys/keys.h"
#include "fake_room.h"
#include "feed/client/client.h"
#include "feed/door/door.h"
#include "net/grpc.h"

enum { PATIENCE_MS = 30000 };

struct world {
    struct loop *loop;
    struct loop_timer *patience;
    struct feed_room room;
    struct feed_door *door;
    struct keypair *key;
    struct feed_client *client;
    char *target;
    int64_t acked;
    unsigned notes[FEED_CLIENT_MISSING + 1];
    uint32_t answer_ms, skipped_ms; /* of the next client */
    bool has_all;                   /* its owner can put every batch again */
    int64_t missing;                /* the number that the owner had to put again; -1: none */
    char text[400];                 /* of the last note that had one */
    struct err failed;
    bool done;
    /* a bare client */
    struct grpc_client *link;
    struct grpc_call *call;
    bool up;
    unsigned answers, ends;
    struct feed_wire_response answer;
    enum grpc_status status;
};

static void impatient(void *arg)
{
    (void)arg;
    fail_msg("nothing happened in time");
}

static int set_up(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    struct err err;
    w->loop = loop_new();
    w->acked = -1;
    w->missing = -1;
    w->room.last = -1;
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
    grpc_client_close(w->link);
    feed_door_close(w->door);
    assert_int_equal(w->room.open, 0);
    assert_int_equal(w->room.opened, w->room.gone);
    loop_timer_close(w->patience);
    assert_int_equal(loop_open_handles(w->loop), 0);
    loop_free(w->loop);
    keypair_free(w->key);
    free(w->target);
    free(w);
    return 0;
}

static void open_door(struct world *w, const char *token_file)
{
    struct err err = {0};
    struct feed_door_config config = {.listen = "tcp:127.0.0.1:0", .token_file = token_file};
    w->door = feed_door_open(w->loop, &w->room, &config, &err);
    assert_non_null(w->door);
    w->target = xstrdup(feed_door_address(w->door) + 4);
}

/* ---- the publisher's client ---- */

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
    struct world *w = arg;
    w->failed = *why;
    loop_stop(w->loop);
}

static void on_done(void *arg)
{
    struct world *w = arg;
    w->done = true;
    loop_stop(w->loop);
}

static void put(struct world *w, int64_t number, size_t count, size_t len);

static bool on_missing(void *arg, int64_t number)
{
    struct world *w = arg;
    if (!w->has_all)
        return false;
    w->missing = number;
    w->acked = number - 1;
    feed_client_rewind(w->client, number);
    for (int64_t n = number; n < 4; n++)
        put(w, n, 1, 10);
    return true;
}

static void publish(struct world *w, const char *feed, const char *target, const char *token)
{
    struct err err = {0};
    const char *targets[] = {target};
    struct feed_client_config config = {
        .feed = feed,
        .targets = targets,
        .target_count = 1,
        .token = token,
        .key = w->key,
        .answer_ms = w->answer_ms,
        .skipped_ms = w->skipped_ms,
        .retry_ms = 5,
        .retry_max_ms = 20,
        .on_acked = on_acked,
        .on_note = on_note,
        .on_missing = on_missing,
        .on_failed = on_failed,
        .on_done = on_done,
        .arg = w,
    };
    w->client = feed_client_new(w->loop, &config, &err);
    assert_non_null(w->client);
}

static void put(struct world *w, int64_t number, size_t count, size_t len)
{
    struct err err = {0};
    struct feed_wire_call *calls = xcalloc(count + 1, sizeof(*calls));
    uint8_t *bytes = xcalloc(1, len + 1);
    for (size_t i = 0; i < count; i++)
        calls[i] = (struct feed_wire_call){.call = bytes, .call_len = len, .tip = "7"};
    assert_int_equal(feed_client_put(w->client, number, calls, count, &err), 0);
    free(bytes);
    free(calls);
}

static void until(struct world *w, const bool *flag)
{
    while (!*flag)
        loop_run(w->loop);
}

static void until_acked(struct world *w, int64_t number)
{
    while (w->acked < number && !w->failed.code)
        loop_run(w->loop);
    assert_int_equal(w->failed.code, 0);
}

static void test_batches_are_taken_in_order(void **state)
{
    struct world *w = *state;
    open_door(w, NULL);
    publish(w, "take", w->target, NULL);
    for (int64_t n = 0; n < 5; n++)
        put(w, n, n == 3 ? 0 : 3, 100);
    feed_client_end(w->client);
    until(w, &w->done);
    assert_int_equal(w->acked, 4);
    assert_int_equal(w->room.trailers, 5);
    assert_int_equal(w->room.calls, 12);
    assert_int_equal(w->room.ends, 1);
    assert_int_equal(w->room.end_code, 1);
    assert_int_equal(w->notes[FEED_CLIENT_CONNECTED], 1);
}

static void test_a_large_batch_crosses_in_pieces(void **state)
{
    struct world *w = *state;
    open_door(w, NULL);
    publish(w, "take", w->target, NULL);
    put(w, 7, 10000, 300);
    put(w, 8, 2, 500000);
    until_acked(w, 8);
    assert_int_equal(w->room.calls, 10002);
    assert_true(w->room.bytes > 10000 * 300 + 2 * 500000);
}

static void test_a_skipped_batch_is_acknowledged_later(void **state)
{
    struct world *w = *state;
    open_door(w, NULL);
    publish(w, "skip", w->target, NULL);
    put(w, 0, 3, 10);
    put(w, 1, 5000, 300); /* long: the skip comes in the middle */
    until_acked(w, 0);
    /* The second is cut off by its skip, and somebody else's copy is stored. */
    while (w->notes[FEED_CLIENT_SKIP] < 1 || w->room.headers < 2)
        loop_run(w->loop);
    if (w->acked < 1)
        fake_room_push(&w->room, FEED_MSG_ACK, 1);
    until_acked(w, 1);
    assert_int_equal(feed_client_kept(w->client), 0);
}

static void test_a_batch_is_sent_again(void **state)
{
    struct world *w = *state;
    open_door(w, NULL);
    publish(w, "resend", w->target, NULL);
    put(w, 0, 3, 10);
    until_acked(w, 0);
    assert_true(w->notes[FEED_CLIENT_SKIP] + w->notes[FEED_CLIENT_RESEND] >= 1);
    assert_int_equal(w->room.headers, 2);
}

/* The cursor is at 4: what it has is dropped, and it goes on with 5. */
static void test_a_cursor_beyond_is_followed_at_once(void **state)
{
    struct world *w = *state;
    open_door(w, NULL);
    publish(w, "behind", w->target, NULL);
    for (int64_t n = 3; n < 7; n++)
        put(w, n, 1, 10);
    until_acked(w, 6);
    assert_int_equal(w->room.trailers, 2);
    /* What was on its way when the answer came counts as nothing: no other stream, no back-off. */
    assert_int_equal(w->room.opened, 1);
    assert_int_equal(w->room.headers, 3);
    assert_int_equal(w->notes[FEED_CLIENT_ENDED] + w->notes[FEED_CLIENT_LOST], 0);
}

/* The relay's database lost 1 and 2, which were acknowledged. They are not here any more: the
 * stream ends with the reason, and another publisher sends them. */
static void test_lost_numbers_are_told(void **state)
{
    struct world *w = *state;
    open_door(w, NULL);
    publish(w, "lost", w->target, NULL);
    for (int64_t n = 0; n < 3; n++)
        put(w, n, 1, 10);
    until_acked(w, 2);
    w->room.last = 0;
    put(w, 3, 1, 10);
    while (w->room.ends < 2) /* it comes back with a growing delay */
        loop_run(w->loop);
    assert_int_equal(w->room.end_code, FEED_WIRE_END_TOO_FAR_BEHIND);
    assert_int_equal(w->room.earliest, 3);
    assert_int_equal(w->room.latest_acked, 2);
    assert_true(w->notes[FEED_CLIENT_MISSING] >= 1);
    assert_int_equal(feed_client_kept(w->client), 1);
    w->room.last = 2;
    until_acked(w, 3);
    assert_int_equal(w->failed.code, 0);
}

static void test_lost_numbers_are_put_again(void **state)
{
    struct world *w = *state;
    open_door(w, NULL);
    w->has_all = true;
    publish(w, "lost", w->target, NULL);
    for (int64_t n = 0; n < 3; n++)
        put(w, n, 1, 10);
    until_acked(w, 2);
    w->room.last = 0;
    put(w, 3, 1, 10);
    until_acked(w, 2); /* by what was acknowledged before */
    while (w->missing < 0)
        loop_run(w->loop);
    until_acked(w, 3);
    assert_int_equal(w->missing, 1);
    assert_int_equal(w->room.trailers, 6); /* 0, 1, 2, and again 1, 2, 3 */
    assert_int_equal(w->room.ends, 0);
    assert_int_equal(w->notes[FEED_CLIENT_MISSING], 0);
}

/* A number that it never had is another publisher's: the stream stays, without blame. */
static void test_numbers_before_the_first_are_awaited(void **state)
{
    struct world *w = *state;
    open_door(w, NULL);
    publish(w, "lost", w->target, NULL);
    put(w, 3, 1, 10);
    while (w->notes[FEED_CLIENT_MISSING] < 2)
        loop_run(w->loop);
    assert_int_equal(w->room.ends, 0);
    assert_int_equal(w->notes[FEED_CLIENT_CONNECTED], 1);
    w->room.last = 2;
    until_acked(w, 3);
}

static void no_longer_impatient(void *arg)
{
    loop_stop(((struct world *)arg)->loop);
}

/* While another copy is taken it waits for longer than for the answer to a copy of its own. */
static void test_a_skipped_batch_has_a_time_of_its_own(void **state)
{
    enum { ANSWER_MS = 100, LONGER_MS = 400 };
    struct world *w = *state;
    open_door(w, NULL);
    w->answer_ms = ANSWER_MS;
    w->skipped_ms = 1000 * ANSWER_MS;
    publish(w, "skipped", w->target, NULL);
    put(w, 0, 1, 10);
    while (!w->notes[FEED_CLIENT_SKIP])
        loop_run(w->loop);
    uint64_t until = loop_now_ms(w->loop) + LONGER_MS;
    struct loop_timer *timer = loop_timer_new(w->loop, no_longer_impatient, w);
    loop_timer_at(timer, until);
    while (loop_now_ms(w->loop) < until)
        loop_run(w->loop);
    loop_timer_close(timer);
    assert_int_equal(w->notes[FEED_CLIENT_ENDED], 0);
    fake_room_push(&w->room, FEED_MSG_ACK, 0);
    until_acked(w, 0);
    w->client = feed_client_close(w->client);

    w->notes[FEED_CLIENT_SKIP] = 0;
    w->skipped_ms = ANSWER_MS;
    w->acked = -1;
    publish(w, "skipped", w->target, NULL);
    put(w, 0, 1, 10);
    while (!w->notes[FEED_CLIENT_ENDED])
        loop_run(w->loop);
    assert_int_equal(w->notes[FEED_CLIENT_SKIP], 1);
    assert_string_equal(w->text, "no answer in time");
}

static void test_a_duplicate_goes_on_after_the_cursor(void **state)
{
    struct world *w = *state;
    open_door(w, NULL);
    publish(w, "end-5", w->target, NULL);
    for (int64_t n = 0; n < 5; n++)
        put(w, n, 1, 10);
    feed_client_end(w->client);
    until(w, &w->done);
    assert_int_equal(w->acked, 4);
    assert_int_equal(w->room.headers, 1);
    assert_string_equal(w->text, "DUPLICATE_BLOCK: as its name says");
}

static void test_a_batch_that_is_refused_three_times_is_given_up(void **state)
{
    struct world *w = *state;
    open_door(w, NULL);
    publish(w, "end-6", w->target, NULL);
    put(w, 9, 1, 10);
    while (!w->failed.code)
        loop_run(w->loop);
    assert_string_equal(w->failed.text, "batch 9 is refused: BAD_BLOCK_PROOF: as its name says");
    assert_int_equal(w->room.headers, 3);
}

static void test_other_ends_are_tried_again(void **state)
{
    static const char *const feeds[] = {"end-1", "end-3", "end-4", "end-7", "end-8"};
    struct world *w = *state;
    open_door(w, NULL);
    for (size_t i = 0; i < ARRAY_LEN(feeds); i++) {
        w->room.headers = 0;
        publish(w, feeds[i], w->target, NULL);
        put(w, 9, 1, 10);
        while (w->room.headers < 4)
            loop_run(w->loop);
        assert_int_equal(w->failed.code, 0);
        assert_int_equal(feed_client_kept(w->client), 1);
        w->client = feed_client_close(w->client);
        w->acked = -1;
    }
}

static void test_the_leader_is_followed(void **state)
{
    struct world *w = *state;
    char feed[100];
    open_door(w, NULL);
    struct err err = {0};
    struct feed_room other = {.last = -1, .led = true};
    struct feed_door_config config = {.listen = "tcp:127.0.0.1:0"};
    struct feed_door *leader = feed_door_open(w->loop, &other, &config, &err);
    snprintf(feed, sizeof(feed), "leader:%s", feed_door_address(leader) + 4);
    publish(w, feed, w->target, NULL);
    put(w, 0, 1, 10);
    until_acked(w, 0);
    assert_int_equal(w->room.headers, 1);
    assert_int_equal(other.trailers, 1);
    w->client = feed_client_close(w->client);
    feed_door_close(leader);
    assert_int_equal(other.open, 0);
}

static void test_it_connects_again(void **state)
{
    struct world *w = *state;
    struct err err = {0};
    open_door(w, NULL);
    publish(w, "take", w->target, NULL);
    put(w, 0, 1, 10);
    until_acked(w, 0);
    struct feed_door_config config = {.listen = feed_door_address(w->door)};
    char *address = xstrdup(config.listen);
    config.listen = address;
    w->door = feed_door_close(w->door);
    assert_int_equal(w->room.open, 0);
    put(w, 1, 1, 10);
    while (!w->notes[FEED_CLIENT_LOST] && !w->notes[FEED_CLIENT_ENDED])
        loop_run(w->loop);
    w->door = feed_door_open(w->loop, &w->room, &config, &err);
    assert_non_null(w->door);
    until_acked(w, 1);
    free(address);
}

/* ---- who may come in ---- */

static void test_strangers_stay_outside(void **state)
{
    struct world *w = *state;
    struct err err = {0};
    char path[] = "/tmp/txrelay-token-XXXXXX";
    int fd = mkstemp(path);
    assert_int_equal(write(fd, "open sesame\n", 12), 12);
    close(fd);
    open_door(w, path);
    static const char *const wrong[] = {NULL, "open", "open sesame!", "open sesami"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        err_clear(&w->failed);
        publish(w, "take", w->target, wrong[i]);
        put(w, 0, 1, 10);
        while (!w->failed.code)
            loop_run(w->loop);
        assert_non_null(strstr(w->failed.text, "UNAUTHENTICATED"));
        assert_null(strstr(w->failed.text, "sesame"));
        w->client = feed_client_close(w->client);
    }
    assert_int_equal(w->room.opened, 0);
    err_clear(&w->failed);
    publish(w, "take", w->target, "open sesame");
    put(w, 0, 1, 10);
    until_acked(w, 0);

    FILE *f = fopen(path, "w"); /* a new token holds for new streams */
    fputs("closed\n", f);
    fclose(f);
    assert_int_equal(feed_door_reload(w->door, &err), 0);
    put(w, 1, 1, 10);
    until_acked(w, 1);
    w->client = feed_client_close(w->client);
    publish(w, "take", w->target, "open sesame");
    put(w, 0, 1, 10);
    while (!w->failed.code)
        loop_run(w->loop);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(feed_door_reload(w->door, &err), ERR_CONFIG);
    unlink(path);
    w->client = feed_client_close(w->client);
    err_clear(&w->failed);
    publish(w, "take", w->target, "closed"); /* what was in force stays */
    put(w, 2, 1, 10);
    until_acked(w, 2);
}

static void test_what_other_machines_reach_needs_proof(void **state)
{
    struct world *w = *state;
    struct err err = {0};
    struct feed_door_config config = {
        .listen = "tcp:0.0.0.0:0", .cert_file = "/nonexistent", .key_file = "/nonexistent"};
    assert_null(feed_door_open(w->loop, &w->room, &config, &err));
    assert_non_null(strstr(err.text, "feeds.token_file"));
    config = (struct feed_door_config){.listen = "tcp:127.0.0.1:0", .cert_file = "/nonexistent"};
    assert_null(feed_door_open(w->loop, &w->room, &config, &err));
    config = (struct feed_door_config){.listen = "tcp:127.0.0.1:0", .ca_file = "/nonexistent"};
    assert_null(feed_door_open(w->loop, &w->room, &config, &err));
    config = (struct feed_door_config){.listen = "nowhere"};
    assert_null(feed_door_open(w->loop, &w->room, &config, &err));
}

/* ---- bare messages ---- */

static void link_up(void *arg)
{
    struct world *w = arg;
    w->up = true;
    loop_stop(w->loop);
}

static void link_down(void *arg, const struct err *why)
{
    (void)arg;
    fail_msg("%s", why->text);
}

static void bare_message(void *arg, const uint8_t *data, size_t len)
{
    struct world *w = arg;
    struct err err;
    assert_int_equal(feed_wire_response_read(data, len, &w->answer, &err), 0);
    w->answers++;
    loop_stop(w->loop);
}

static void bare_end(void *arg, enum grpc_status status, const char *text)
{
    struct world *w = arg;
    (void)text;
    w->call = NULL;
    w->status = status;
    w->ends++;
    loop_stop(w->loop);
}

static const struct grpc_call_events bare = {.on_message = bare_message, .on_end = bare_end};

static void bare_call(struct world *w, const char *path)
{
    struct err err = {0};
    struct grpc_client_config config = {
        .target = w->target, .on_up = link_up, .on_down = link_down, .arg = w};
    if (!w->link) {
        w->link = grpc_client_new(w->loop, &config, &err);
        grpc_client_open(w->link);
        until(w, &w->up);
    }
    w->call = grpc_client_call(w->link, path, NULL, 0, &bare, w);
}

static void until_answers(struct world *w, unsigned n)
{
    while (w->answers < n)
        loop_run(w->loop);
}

static void test_requests_that_are_wrong(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *why;
    } rows[] = {
        {"", 0, "a request has one item or more, or it ends the stream"},
        {"\x0a\x00", 2, "a request has one item or more, or it ends the stream"},
        {"\xff\xff\xff", 3, "a request is not a PublishRequest"},
        {"\x0a\x02\x0a\x00", 4, "an item is a header, a call or a trailer"},
        {"\x0a\x04\x0a\x02\x0a\x00", 6, "a feed's name has 1 to 200 bytes"},
        {"\x0a\x07\x0a\x05\x0a\x03\x0a\x01x", 9, "a publisher is named by its public key"},
        {"\x0a\x04\x0a\x02\x1a\x00", 6, "a trailer has a digest of 32 bytes"},
    };
    struct world *w = *state;
    open_door(w, NULL);
    for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
        bare_call(w, FEED_WIRE_PUBLISH);
        grpc_call_send(w->call, rows[i].bytes, rows[i].len);
        while (w->ends <= i)
            loop_run(w->loop);
        assert_int_equal(w->answer.answer, FEED_WIRE_END);
        assert_int_equal(w->answer.status, FEED_WIRE_INVALID_REQUEST);
        assert_int_equal(w->status, GRPC_OK);
        if (!strstr(w->answer.detail, rows[i].why))
            fail_msg("%s", w->answer.detail);
    }
    assert_int_equal(w->room.bad, ARRAY_LEN(rows));
    assert_int_equal(w->room.cut, 0); /* each had its end */
    bare_call(w, "/txrelay.feed.v1.Feed/Other");
    while (w->ends <= ARRAY_LEN(rows))
        loop_run(w->loop);
    assert_int_equal(w->status, GRPC_UNIMPLEMENTED);
}

/* A stream that ends without EndOfStream: the log has the reason. */
static void test_a_stream_that_is_cut_has_a_reason(void **state)
{
    struct world *w = *state;
    uint8_t *much = xcalloc(1, FEED_WIRE_REQUEST_MAX + 1);
    open_door(w, NULL);
    bare_call(w, FEED_WIRE_PUBLISH);
    grpc_call_send(w->call, much, FEED_WIRE_REQUEST_MAX + 1);
    while (!w->ends)
        loop_run(w->loop);
    assert_int_equal(w->status, GRPC_RESOURCE_EXHAUSTED);
    while (!w->room.gone)
        loop_run(w->loop);
    assert_int_equal(w->room.cut, 1);
    assert_string_equal(w->room.why, "the message is too long");
    free(much);
}

static const uint8_t zeros[64];

static void send_batch(struct world *w, struct feed_wire_item *items, const char *feed,
                       int64_t number)
{
    items[0] = (struct feed_wire_item){.kind = FEED_WIRE_HEADER};
    items[0].header = (struct feed_wire_header){feed, number, zeros};
    items[1] = (struct feed_wire_item){.kind = FEED_WIRE_CALL};
    items[1].call.data = zeros;
    items[1].call.len = 10;
    items[2] = (struct feed_wire_item){.kind = FEED_WIRE_TRAILER};
    items[2].trailer = (struct feed_wire_trailer){1, zeros, zeros};
    (void)w;
}

/* Two batches in one request, and more behind it: a hold keeps what follows back. */
static void test_a_held_stream_gives_nothing(void **state)
{
    struct world *w = *state;
    struct feed_wire_item items[6];
    struct buf out = {0};
    open_door(w, NULL);
    bare_call(w, FEED_WIRE_PUBLISH);
    send_batch(w, items, "hold", 0);
    send_batch(w, items + 3, "hold", 1);
    feed_wire_request_write(&out, items, 6);
    grpc_call_send(w->call, out.data, out.len);
    grpc_call_send(w->call, out.data, out.len);
    grpc_call_half_close(w->call);
    for (unsigned i = 0; i < 4; i++) {
        while (!w->room.held)
            loop_turn(w->loop);
        for (int turns = 0; turns < 20; turns++) /* the room refuses what comes now */
            loop_turn(w->loop);
        assert_int_equal(w->room.trailers, i + 1);
        assert_int_equal(w->room.ends, 0);
        fake_room_release(&w->room);
        until_answers(w, i + 1);
        assert_int_equal(w->answer.answer, FEED_WIRE_ACK);
    }
    while (!w->ends) /* it closed its side: the same as EndStream */
        loop_run(w->loop);
    assert_int_equal(w->answer.status, FEED_WIRE_SUCCESS);
    assert_int_equal(w->room.ends, 1);
    buf_done(&out);
}

/* The rest of a request waits, and was to go on in this moment. */
static void test_a_door_closes_with_a_stream_that_goes_on(void **state)
{
    struct world *w = *state;
    struct feed_wire_item items[6];
    struct buf out = {0};
    open_door(w, NULL);
    bare_call(w, FEED_WIRE_PUBLISH);
    send_batch(w, items, "hold", 0);
    send_batch(w, items + 3, "hold", 1);
    feed_wire_request_write(&out, items, 6);
    grpc_call_send(w->call, out.data, out.len);
    buf_done(&out);
    while (!w->room.held)
        loop_turn(w->loop);
    fake_room_release(&w->room);
    w->link = grpc_client_close(w->link);
    w->door = feed_door_close(w->door);
    for (int turns = 0; turns < 5; turns++)
        loop_turn(w->loop);
    assert_int_equal(w->room.trailers, 1);
    assert_int_equal(w->room.gone, 1);
}

static void test_a_publisher_that_vanishes_is_gone(void **state)
{
    struct world *w = *state;
    open_door(w, NULL);
    bare_call(w, FEED_WIRE_PUBLISH);
    struct feed_wire_item items[3];
    struct buf out = {0};
    send_batch(w, items, "hold", 0);
    feed_wire_request_write(&out, items, 3);
    grpc_call_send(w->call, out.data, out.len);
    buf_done(&out);
    while (!w->room.held)
        loop_turn(w->loop);
    w->link = grpc_client_close(w->link);
    while (!w->room.gone)
        loop_turn(w->loop);
    assert_null(w->room.held);
    assert_int_equal(feed_door_sessions(w->door), 0);
}

/* The answers to one that does not read have a cap, and the others do not wait for it. */
static void test_a_publisher_that_never_reads_is_ended(void **state)
{
    struct world *w = *state;
    open_door(w, NULL);
    bare_call(w, FEED_WIRE_PUBLISH);
    grpc_call_pause(w->call, true);
    publish(w, "take", w->target, NULL);
    put(w, 0, 1, 10);
    until_acked(w, 0);
    assert_int_equal(w->room.open, 2);
    while (w->room.open == 2) {
        for (int i = 0; i < 100; i++)
            fake_room_push(&w->room, FEED_MSG_ACK, 0);
        loop_turn(w->loop);
    }
    put(w, 1, 1, 10);
    until_acked(w, 1);
    assert_int_equal(w->room.open, 1);
    assert_int_equal(w->notes[FEED_CLIENT_ENDED] + w->notes[FEED_CLIENT_LOST], 0);
    while (!w->ends)
        loop_run(w->loop);
    assert_int_equal(w->status, GRPC_RESOURCE_EXHAUSTED);
}

static void test_a_drain_sends_publishers_elsewhere(void **state)
{
    struct world *w = *state;
    open_door(w, NULL);
    publish(w, "take", w->target, NULL);
    put(w, 0, 1, 10);
    until_acked(w, 0);
    feed_door_drain(w->door, 50);
    while (w->room.open)
        loop_turn(w->loop);
    while (!w->notes[FEED_CLIENT_ENDED] && !w->notes[FEED_CLIENT_LOST])
        loop_run(w->loop);
    assert_int_equal(feed_door_sessions(w->door), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
        T(test_batches_are_taken_in_order),
        T(test_a_large_batch_crosses_in_pieces),
        T(test_a_skipped_batch_is_acknowledged_later),
        T(test_a_batch_is_sent_again),
        T(test_a_cursor_beyond_is_followed_at_once),
        T(test_lost_numbers_are_told),
        T(test_lost_numbers_are_put_again),
        T(test_numbers_before_the_first_are_awaited),
        T(test_a_skipped_batch_has_a_time_of_its_own),
        T(test_a_duplicate_goes_on_after_the_cursor),
        T(test_a_batch_that_is_refused_three_times_is_given_up),
        T(test_other_ends_are_tried_again),
        T(test_the_leader_is_followed),
        T(test_it_connects_again),
        T(test_strangers_stay_outside),
        T(test_what_other_machines_reach_needs_proof),
        T(test_requests_that_are_wrong),
        T(test_a_stream_that_is_cut_has_a_reason),
        T(test_a_held_stream_gives_nothing),
        T(test_a_door_closes_with_a_stream_that_goes_on),
        T(test_a_publisher_that_vanishes_is_gone),
        T(test_a_publisher_that_never_reads_is_ended),
        T(test_a_drain_sends_publishers_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
