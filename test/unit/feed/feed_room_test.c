/* The room of feeds: nothing reaches the database that was not verified, and each publisher learns
 * what became of its batch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/metrics.h"
#include "chain/codec/hash.h"
#include "chain/keys/keys.h"
#include "feed/feed.h"
#include "feed/wire/wire.h"
#include "page.h"

enum { SESSIONS = 18, KEYS = 3, DEADLINE_MS = 30000, EPOCH = 7, ACCOUNT = 1 };

/* ---- the relay, as far as the room sees it ---- */

static struct {
    struct loop *loop;
    struct feed_room *room;
    struct loop_task task;
    struct feed_row row;
    uint8_t publishers[KEYS * FEED_KEY];
    struct keypair *keys[KEYS];
    bool reads_held, no_rows, gone, unanswered, metadata_away, slow, drained, closed;
    enum feed_stored outcome; /* of the next take */
    struct err err;
    struct feed_take *take; /* that waits for its answer */
    int64_t cursor;
    struct buf taken; /* what was stored, in words */
    unsigned loads, takes, checks;
} host;

static void answer_load(struct loop_task *task)
{
    (void)task;
    host.row.last = host.cursor;
    if (host.no_rows)
        feed_room_no_rows(host.room);
    else
        feed_room_rows(host.room, &host.row, host.gone ? 0 : 1);
}

static void load(void *arg)
{
    (void)arg;
    host.loads++;
    if (!host.reads_held)
        loop_post(host.loop, &host.task, answer_load);
}

static struct loop_task take_task;

static void answer_take(struct loop_task *task)
{
    struct feed_take *t = host.take;
    (void)task;
    host.take = NULL;
    if (host.outcome == FEED_STORED) {
        if (t->number == host.cursor + 1)
            host.cursor++;
        buf_printf(&host.taken, "%s %lld:", t->feed, (long long)t->number);
        for (size_t i = 0; i < t->count && i < 4; i++)
            buf_printf(&host.taken, " %02x/%lld/%s/%lld", t->calls[i].data[0],
                       (long long)t->calls[i].priority, t->calls[i].tip ? t->calls[i].tip : "-",
                       (long long)t->calls[i].deadline_ms);
        buf_puts(&host.taken, "\n");
    }
    feed_take_done(t, host.outcome, host.cursor, host.err.code ? &host.err : NULL);
}

static void take(void *arg, struct feed_take *t)
{
    (void)arg;
    host.takes++;
    assert_int_equal(t->account, ACCOUNT);
    assert_int_equal(t->epoch, EPOCH);
    assert_null(host.take);
    host.take = t;
    if (!host.unanswered)
        loop_post(host.loop, &take_task, answer_take);
}

static int check_call(void *arg, const uint8_t *call, size_t len, struct err *err)
{
    (void)arg;
    host.checks++;
    if (host.metadata_away)
        return ERR_NET;
    if (host.slow) /* a call that takes its time */
        for (uint64_t until = loop_clock_ns(host.loop) + 10000; loop_clock_ns(host.loop) < until;)
            ;
    return len && call[0] == 0xff ? err_set(err, ERR_DECODE, "there is no pallet 255") : 0;
}

static const struct feed_host_ops ops = {.load = load, .take = take, .check_call = check_call};

/* ---- publishers ---- */

static struct {
    struct feed_session *s;
    struct buf said;
    bool held, ended;
} sessions[SESSIONS];

static void on_send(void *ctx, const struct feed_message_out *m)
{
    static const char *const names[] = {"ack", "skip", "resend", "behind", "end"};
    size_t i = (size_t)(uintptr_t)ctx;
    assert_false(sessions[i].ended);
    struct buf *said = &sessions[i].said;
    if (said->len)
        buf_puts(said, ", ");
    if (m->message != FEED_MSG_END) {
        assert_string_equal(m->detail, "");
        buf_printf(said, "%s %lld", names[m->message], (long long)m->number);
        return;
    }
    sessions[i].ended = true;
    buf_printf(said, "end %s %lld", feed_end_name(m->end), (long long)m->number);
    if (*m->leader)
        buf_printf(said, " at %s", m->leader);
    if (*m->detail)
        buf_printf(said, " (%s)", m->detail);
}

static void on_hold(void *ctx, bool held)
{
    sessions[(size_t)(uintptr_t)ctx].held = held;
}

static const struct feed_session_ops session_ops = {.send = on_send, .hold = on_hold};

static void connect_to(size_t i)
{
    sessions[i].ended = sessions[i].held = false;
    buf_clear(&sessions[i].said);
    sessions[i].s = feed_session_open(host.room, &session_ops, (void *)(uintptr_t)i, "test");
}

static void gone(size_t i)
{
    feed_session_gone(sessions[i].s);
    sessions[i].s = NULL;
}

static const char *said(size_t i)
{
    return buf_str(&sessions[i].said);
}

/* A batch as its publisher makes it. */
struct batch {
    struct buf body, message;
    uint32_t count;
    uint8_t digest[FEED_DIGEST], signature[KEY_SIG_MAX];
};

static void batch_call(struct batch *b, const struct feed_wire_call *call, struct buf *ret)
{
    buf_clear(ret);
    feed_wire_call_write(ret, call);
    for (int shift = 24; shift >= 0; shift -= 8)
        buf_put_u8(&b->body, (uint8_t)(ret->len >> shift));
    buf_put(&b->body, ret->data, ret->len);
    b->count++;
}

static void batch_sign(struct batch *b, const char *feed, int64_t number, int key)
{
    hash_sha256(b->body.data, b->body.len, b->digest);
    feed_wire_signed_put(&b->message, feed, number, b->count, b->digest);
    keypair_sign(host.keys[key], b->message.data, b->message.len, b->signature);
}

static void batch_done(struct batch *b)
{
    buf_done(&b->body);
    buf_done(&b->message);
}

static void header(size_t i, const char *feed, int64_t number, int key)
{
    feed_session_header(sessions[i].s, feed, number, host.publishers + key * FEED_KEY);
}

/* Sends `count` calls whose bytes are (first, 1) and `fault` spoils one part. */
enum fault { NONE, WRONG_COUNT, WRONG_DIGEST, WRONG_SIGNATURE, WRONG_NUMBER, WRONG_KEY, NO_CALL };
static void send_batch_of(size_t i, int64_t number, uint32_t count, uint8_t first, enum fault fault)
{
    struct batch b = {0};
    struct buf item = {0};
    header(i, "prices", number, (int)(i % KEYS));
    for (uint32_t n = 0; n < count; n++) {
        const uint8_t bytes[2] = {first, 1};
        batch_call(&b,
                   &(struct feed_wire_call){.call = bytes,
                                            .call_len = 2,
                                            .tip = n == 1 ? "5" : "",
                                            .max_tip = "",
                                            .priority = n == 1 ? 9 : 0,
                                            .deadline_ms = n == 1 ? 1234 : 0},
                   &item);
        feed_session_call(sessions[i].s, fault == NO_CALL ? (const uint8_t *)"\xff\xff" : item.data,
                          fault == NO_CALL ? 2 : item.len);
    }
    if (fault == NO_CALL) {
        buf_clear(&b.body);
        buf_put(&b.body, "\0\0\0\2\xff\xff", 6);
    }
    batch_sign(&b, "prices", fault == WRONG_NUMBER ? number + 1 : number,
               (int)(fault == WRONG_KEY ? i + 1 : i) % KEYS);
    b.digest[0] ^= (uint8_t)(fault == WRONG_DIGEST);
    b.signature[5] ^= (uint8_t)(fault == WRONG_SIGNATURE);
    feed_session_trailer(sessions[i].s, b.count + (fault == WRONG_COUNT), b.digest, b.signature);
    batch_done(&b);
    buf_done(&item);
}

static void send_batch(size_t i, int64_t number)
{
    send_batch_of(i, number, 2, 0x0a, NONE);
}

/* ---- time ---- */

static void turn(void)
{
    struct pollfd p = {.fd = loop_fd(host.loop), .events = POLLIN};
    int wait = loop_wait_ms(host.loop);
    poll(&p, 1, wait < 0 || wait > 50 ? 50 : wait);
    loop_turn(host.loop);
}

#define UNTIL(condition)                                                                           \
    do {                                                                                           \
        uint64_t until = loop_now_ms(host.loop) + DEADLINE_MS;                                     \
        while (!(condition)) {                                                                     \
            turn();                                                                                \
            if (loop_now_ms(host.loop) > until)                                                    \
                fail_msg("not in time: %s", #condition);                                           \
        }                                                                                          \
    } while (0)

static void hears(size_t i, const char *text)
{
    UNTIL(sessions[i].said.len);
    assert_string_equal(said(i), text);
    buf_clear(&sessions[i].said);
}

static bool served(void)
{
    /* A header is answered by "skip" until the cursor is known. */
    return host.loads >= 2 && !list_linked(&host.task.node);
}

/* The room reads the row again, because it is asked to serve the feed. */
static void row_changed(void)
{
    unsigned loads = host.loads;
    feed_room_lead(host.room, ACCOUNT, 0);
    feed_room_lead(host.room, ACCOUNT, EPOCH);
    UNTIL(host.loads > loads && !list_linked(&host.task.node));
}

static int setup(void **state)
{
    (void)state;
    for (int i = 0; i < KEYS; i++) {
        char uri[16];
        size_t len;
        snprintf(uri, sizeof(uri), "//%d", i);
        assert_int_equal(keypair_from_uri(uri, KEY_ED25519, &host.keys[i], NULL), 0);
        memcpy(host.publishers + i * FEED_KEY, keypair_public(host.keys[i], &len), FEED_KEY);
    }
    host.loop = loop_new();
    host.room = feed_room_new(host.loop, &ops, NULL);
    host.row = (struct feed_row){.name = "prices",
                                 .account = ACCOUNT,
                                 .publishers = host.publishers,
                                 .publisher_count = KEYS,
                                 .options = "{}",
                                 .leader = "10.0.0.9:9944"};
    host.cursor = 4;
    feed_room_lead(host.room, ACCOUNT, EPOCH);
    UNTIL(served());
    return 0;
}

static void on_closed(void *arg)
{
    (void)arg;
    host.closed = true;
}

static int teardown(void **state)
{
    (void)state;
    for (size_t i = 0; i < SESSIONS; i++) {
        if (sessions[i].s)
            gone(i);
        buf_done(&sessions[i].said);
    }
    feed_room_close(host.room, on_closed);
    UNTIL(host.closed);
    for (int i = 0; i < KEYS; i++)
        keypair_free(host.keys[i]);
    buf_done(&host.taken);
    loop_free(host.loop);
    memset(&host, 0, sizeof(host));
    memset(sessions, 0, sizeof(sessions));
    return 0;
}

/* ---- tests ---- */

static void a_batch_is_verified_stored_and_acknowledged(void **state)
{
    (void)state;
    connect_to(0);
    connect_to(1);
    header(1, "prices", 4, 1); /* so that it belongs to the feed */
    hears(1, "end DUPLICATE_BLOCK 4");
    gone(1);
    connect_to(1);
    send_batch(0, 5);
    assert_true(sessions[0].held);
    header(1, "prices", 5, 1);
    hears(1, "skip 5");
    hears(0, "ack 5");
    hears(1, "ack 5");
    assert_false(sessions[0].held);
    assert_string_equal(buf_str(&host.taken), "prices 5: 0a/0/-/-1 0a/9/5/1234\n");
    assert_int_equal(host.checks, 2);
    send_batch(0, 6);
    hears(0, "ack 6");
}

static void what_is_not_valid_never_reaches_the_database(void **state)
{
    (void)state;
    static const struct {
        enum fault fault;
        uint8_t first;
        const char *text;
    } cases[] = {
        {WRONG_COUNT, 1, "the trailer says 2 calls, and there are 1"},
        {WRONG_DIGEST, 1, "the digest of the trailer is not that of the calls"},
        {WRONG_SIGNATURE, 1, "the signature is not that of the header's publisher"},
        {WRONG_NUMBER, 1, "the signature is not that of the header's publisher"},
        {WRONG_KEY, 1, "the signature is not that of the header's publisher"},
        {NO_CALL, 1, "call 0: it is no message Call"},
        {NONE, 0xff, "call 0: there is no pallet 255"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char expected[300];
        connect_to(0);
        send_batch_of(0, 5, 1, cases[i].first, cases[i].fault);
        snprintf(expected, sizeof(expected), "end BAD_BLOCK_PROOF 4 (%s)", cases[i].text);
        hears(0, expected);
        gone(0);
    }
    assert_int_equal(host.takes, 0);
}

/* The same of a copy that is verified on the thread. */
static void a_large_copy_is_verified_too(void **state)
{
    (void)state;
    static const struct {
        enum fault fault;
        const char *text;
    } cases[] = {
        {WRONG_COUNT, "the trailer says 10001 calls, and there are 10000"},
        {WRONG_DIGEST, "the digest of the trailer is not that of the calls"},
        {WRONG_SIGNATURE, "the signature is not that of the header's publisher"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char expected[300];
        connect_to(0);
        send_batch_of(0, 5, 10000, 1, cases[i].fault);
        snprintf(expected, sizeof(expected), "end BAD_BLOCK_PROOF 4 (%s)", cases[i].text);
        hears(0, expected);
        gone(0);
    }
    assert_int_equal(host.takes, 0);
}

static void options_are_checked(void **state)
{
    (void)state;
    const uint8_t bytes[1] = {1};
    const struct feed_wire_call bad[] = {
        {.call = bytes, .call_len = 0, .tip = "", .max_tip = ""},
        {.call = bytes, .call_len = 1, .tip = "1.5", .max_tip = ""},
        {.call = bytes, .call_len = 1, .tip = "", .max_tip = "-1"},
        {.call = bytes, .call_len = 1, .tip = "1234567890123456789012345678901234567890"},
        {.call = bytes, .call_len = 1, .tip = "", .max_tip = "", .priority = 1001},
        {.call = bytes, .call_len = 1, .tip = "", .max_tip = "", .priority = -1001},
        {.call = bytes, .call_len = 1, .tip = "", .max_tip = "", .not_before_ms = -1},
        {.call = bytes, .call_len = 1, .tip = "", .max_tip = "", .deadline_ms = -1},
        {.call = bytes, .call_len = 1, .tip = "", .max_tip = "", .deadline_block = -1},
        {.call = bytes, .call_len = 1, .tip = "", .max_tip = "", .retries = 101},
    };
    static const char *const names[] = {
        "call",          "tip",         "max_tip",        "tip",    "priority", "priority",
        "not_before_ms", "deadline_ms", "deadline_block", "retries"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct batch b = {0};
        struct buf item = {0};
        char expected[200];
        connect_to(0);
        header(0, "prices", 5, 0);
        batch_call(&b, &bad[i], &item);
        feed_session_call(sessions[0].s, item.data, item.len);
        batch_sign(&b, "prices", 5, 0);
        feed_session_trailer(sessions[0].s, b.count, b.digest, b.signature);
        snprintf(expected, sizeof(expected),
                 "end BAD_BLOCK_PROOF 4 (call 0: %s is missing or out of its bounds)", names[i]);
        hears(0, expected);
        gone(0);
        batch_done(&b);
        buf_done(&item);
    }
    assert_int_equal(host.takes, 0);
}

static void tc_fv_001_a_bad_copy_is_followed_by_a_good_one(void **state)
{
    (void)state;
    connect_to(0);
    connect_to(1);
    send_batch_of(0, 5, 2, 0x0a, WRONG_DIGEST);
    header(1, "prices", 5, 1);
    hears(1, "skip 5");
    hears(1, "resend 5");
    send_batch(1, 5);
    hears(1, "ack 5");
    assert_int_equal(host.takes, 1);
}

static void who_does_not_begin_with_a_header_is_refused(void **state)
{
    (void)state;
    const uint8_t none[64] = {0};
    connect_to(0);
    feed_session_call(sessions[0].s, none, 3);
    hears(0, "end INVALID_REQUEST -1 (a batch begins with its header)");
    feed_session_call(sessions[0].s, none, 3); /* on its way */
    connect_to(1);
    feed_session_trailer(sessions[1].s, 1, none, none);
    hears(1, "end INVALID_REQUEST -1 (a batch begins with its header)");
    connect_to(2);
    header(2, "nobody", 0, 0);
    hears(2, "end INVALID_REQUEST -1 (there is no such feed at this relay)");
    connect_to(3);
    feed_session_header(sessions[3].s, "prices", 5, none);
    hears(3, "end INVALID_REQUEST 4 (the key is none of the feed's publishers: txrelay feed "
             "publishers)");
    connect_to(4);
    header(4, "prices", 5, 0);
    header(4, "other", 5, 0);
    hears(4, "end INVALID_REQUEST 4 (a stream is for one feed: open another one)");
    connect_to(5);
    feed_session_bad(sessions[5].s, "rubbish");
    hears(5, "end INVALID_REQUEST -1 (rubbish)");
    connect_to(6);
    feed_session_end_stream(sessions[6].s, 1, 0, 0);
    hears(6, "end SUCCESS -1");
}

/* What was on its way when the end was sent; one session has a feed, the other has none. */
static void after_an_end_nothing_counts(void **state)
{
    (void)state;
    const uint8_t none[64] = {0};
    connect_to(0);
    feed_session_bad(sessions[0].s, "rubbish");
    hears(0, "end INVALID_REQUEST -1 (rubbish)");
    connect_to(1);
    header(1, "prices", 4, 1);
    hears(1, "end DUPLICATE_BLOCK 4");
    for (size_t i = 0; i < 2; i++) {
        header(i, "prices", 5, (int)i);
        header(i, "nothing", 5, (int)i);
        feed_session_call(sessions[i].s, none, 3);
        feed_session_trailer(sessions[i].s, 1, none, none);
        feed_session_end_stream(sessions[i].s, 1, 0, 0);
        feed_session_bad(sessions[i].s, "rubbish");
        assert_string_equal(said(i), "");
        assert_false(sessions[i].held);
    }
    connect_to(2);
    send_batch(2, 5); /* nobody else has begun it */
    hears(2, "ack 5");
}

static void a_client_ends_its_stream(void **state)
{
    (void)state;
    connect_to(0);
    header(0, "prices", 5, 0);
    feed_session_end_stream(sessions[0].s, 1, 0, 0);
    hears(0, "end SUCCESS 4");
}

static void a_batch_has_a_cap(void **state)
{
    (void)state;
    host.row.options = "{\"batch_calls_max\": 3, \"batch_bytes_max\": 1000}";
    row_changed();
    connect_to(0);
    header(0, "prices", 5, 0);
    for (int i = 0; i < 4; i++)
        feed_session_call(sessions[0].s, (const uint8_t *)"a", 1);
    hears(0, "end INVALID_REQUEST 4 (calls without a header, or more of them than a batch may "
             "have)");
    static const uint8_t large[1000] = {0};
    connect_to(1);
    header(1, "prices", 5, 1);
    feed_session_call(sessions[1].s, large, sizeof(large));
    hears(1, "end INVALID_REQUEST 4 (calls without a header, or more of them than a batch may "
             "have)");
}

static unsigned ticks, in_the_middle;
static struct loop_timer *ticker;

static void on_tick(void *arg)
{
    (void)arg;
    ticks++;
    in_the_middle += host.checks > 0 && host.checks < 10000;
    loop_timer_at(ticker, loop_now_ms(host.loop) + 1);
}

/* The loop goes on while ten thousand calls are hashed and decoded. */
static void issue16_4_a_large_batch_does_not_stop_the_loop(void **state)
{
    (void)state;
    connect_to(0);
    ticker = loop_timer_new(host.loop, on_tick, NULL);
    loop_timer_at(ticker, loop_now_ms(host.loop) + 1);
    send_batch_of(0, 5, 10000, 0x0a, NONE);
    ticks = 0;
    in_the_middle = 0;
    host.slow = true; /* 0.1 s of calls */
    hears(0, "ack 5");
    assert_int_equal(host.checks, 10000);
    assert_true(ticks >= 1);
    assert_true(in_the_middle >= 1);
    loop_timer_close(ticker);
}

static void without_the_chain_a_batch_waits(void **state)
{
    (void)state;
    host.metadata_away = true;
    connect_to(0);
    send_batch(0, 5);
    UNTIL(host.checks >= 2); /* it looked twice */
    assert_int_equal(host.takes, 0);
    assert_string_equal(said(0), "");
    host.metadata_away = false;
    hears(0, "ack 5");
}

static void what_the_database_refuses_names_its_reason(void **state)
{
    (void)state;
    connect_to(0);
    host.outcome = FEED_STORED_BAD;
    err_set(&host.err, ERR_ARGUMENT, "call 1 of the batch: priority is 2000");
    send_batch(0, 5);
    hears(0, "end BAD_BLOCK_PROOF 4 (call 1 of the batch: priority is 2000)");
}

static void a_store_without_an_answer_is_read_again(void **state)
{
    (void)state;
    connect_to(0);
    host.outcome = FEED_STORED_UNKNOWN;
    err_set(&host.err, ERR_DB_UNKNOWN_OUTCOME, "gone");
    send_batch(0, 5);
    hears(0, "resend 5");
    host.outcome = FEED_STORED;
    host.err = (struct err){0};
    send_batch(0, 5);
    hears(0, "ack 5");
}

static void a_copy_is_kept_until_its_answer_comes(void **state)
{
    (void)state;
    host.row.options = "{\"persistence_ack_ms\": 100}";
    row_changed();
    connect_to(0);
    host.unanswered = true;
    send_batch(0, 5);
    hears(0, "resend 5"); /* the answer did not come in time */
    UNTIL(host.take);
    gone(0);
    struct feed_take *late = host.take;
    host.take = NULL;
    host.unanswered = false;
    connect_to(0);
    send_batch(0, 5);
    hears(0, "ack 5");
    assert_int_equal(late->number, 5); /* still there */
    feed_take_done(late, FEED_STORED_BAD, 5, NULL);
    assert_string_equal(said(0), "");
}

static void issue16_5_another_relay_is_named(void **state)
{
    (void)state;
    connect_to(0);
    header(0, "prices", 5, 0);
    feed_room_lead(host.room, ACCOUNT, 0);
    hears(0, "end NOT_LEADER 4 at 10.0.0.9:9944");
    connect_to(1);
    header(1, "prices", 5, 1);
    hears(1, "end NOT_LEADER 4 at 10.0.0.9:9944");
    feed_room_lead(host.room, ACCOUNT, EPOCH);
    connect_to(2);
    header(2, "prices", 5, 2);
    hears(2, "skip 5"); /* until the cursor is read */
    hears(2, "resend 5");
}

/* Publishers may be started together with the feed's creation. */
static void issue16_3_a_new_feed_is_found_at_once(void **state)
{
    (void)state;
    unsigned loads = host.loads;
    host.row.name = "payouts";
    connect_to(0);
    header(0, "payouts", 5, 0);
    assert_true(sessions[0].held);
    assert_string_equal(said(0), "");
    hears(0, "skip 5"); /* until its cursor is read */
    assert_false(sessions[0].held);
    hears(0, "resend 5");
    assert_in_range(host.loads, loads + 1, loads + 3);
    /* One that is nowhere is asked for no more often. */
    connect_to(1);
    header(1, "nowhere", 5, 0);
    gone(1); /* it does not wait for the answer */
    connect_to(1);
    header(1, "nowhere", 5, 0);
    hears(1, "end INVALID_REQUEST -1 (there is no such feed at this relay)");
    gone(1);
    loads = host.loads;
    uint64_t begun = loop_now_ms(host.loop);
    for (int i = 0; i < 5; i++) {
        connect_to(1);
        header(1, "nowhere", 5, 0);
        hears(1, "end INVALID_REQUEST -1 (there is no such feed at this relay)");
        gone(1);
    }
    assert_in_range(loop_now_ms(host.loop) - begun, (uint64_t)(host.loads - loads - 1) * 200,
                    DEADLINE_MS);
}

/* Each session that waits keeps a request: they are few. */
static void few_sessions_wait_for_a_feed_that_is_not_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < 17; i++) {
        connect_to(i);
        header(i, "nowhere", 5, 0);
        assert_string_equal(said(i),
                            i < 16 ? "" : "end ERROR -1 (the feeds are not known now: try again)");
    }
    gone(0); /* its place is free */
    connect_to(17);
    header(17, "nowhere", 5, 0);
    assert_string_equal(said(17), "");
    for (size_t i = 1; i < 16; i++)
        hears(i, "end INVALID_REQUEST -1 (there is no such feed at this relay)");
    hears(17, "end INVALID_REQUEST -1 (there is no such feed at this relay)");
    for (size_t i = 1; i < 17; i++) { /* their places are free again */
        gone(i);
        connect_to(i);
        header(i, "nowhere", 5, 0);
        assert_string_equal(said(i), "");
    }
}

/* The read that is under way may have missed it: the next one answers, at once. */
static void issue16_3_a_read_that_began_before_shows_no_absence(void **state)
{
    (void)state;
    unsigned loads = host.loads;
    host.reads_held = true;
    feed_room_lead(host.room, ACCOUNT, 0);
    feed_room_lead(host.room, ACCOUNT, EPOCH);
    assert_int_equal(host.loads, loads + 1);
    connect_to(0);
    header(0, "payouts", 5, 0);
    feed_room_rows(host.room, &host.row, 1);
    assert_string_equal(said(0), "");
    assert_true(sessions[0].held);
    assert_int_equal(host.loads, loads + 2);
    host.row.name = "payouts";
    feed_room_rows(host.room, &host.row, 1);
    assert_false(sessions[0].held);
    hears(0, "skip 5");
    assert_int_equal(host.loads, loads + 3);
    host.reads_held = false;
    answer_load(NULL);
    hears(0, "resend 5");
}

/* The database is not reachable in the first moment: publishers need not wait for the next look. */
static void issue16_5_a_relay_that_starts_knows_its_feeds_soon(void **state)
{
    (void)state;
    feed_room_close(host.room, on_closed);
    UNTIL(host.closed);
    host.closed = false;
    host.loads = 0;
    host.no_rows = true;
    host.room = feed_room_new(host.loop, &ops, NULL);
    uint64_t begun = loop_now_ms(host.loop);
    UNTIL(host.loads == 3);
    connect_to(0);
    header(0, "prices", 5, 0);
    hears(0, "end ERROR -1 (the feeds are not known now: try again)");
    gone(0);
    host.no_rows = false;
    feed_room_lead(host.room, ACCOUNT, EPOCH);
    UNTIL(host.loads >= 5 && !list_linked(&host.task.node));
    assert_in_range(loop_now_ms(host.loop) - begun, 0, 1999);
    connect_to(0);
    send_batch(0, 5);
    hears(0, "ack 5");
}

static void a_stale_epoch_ends_the_sessions(void **state)
{
    (void)state;
    connect_to(0);
    host.outcome = FEED_STORED_LOST;
    send_batch(0, 5);
    hears(0, "end NOT_LEADER 4 at 10.0.0.9:9944");
}

/* The answer belongs to the publisher whose batch it was. */
static void a_reason_is_for_its_sender(void **state)
{
    (void)state;
    connect_to(0);
    connect_to(1);
    host.outcome = FEED_STORED_LOST;
    err_set(&host.err, ERR_ARGUMENT, "epoch 7 is over");
    send_batch(0, 5);
    header(1, "prices", 5, 1);
    hears(1, "skip 5");
    hears(1, "end NOT_LEADER 4 at 10.0.0.9:9944");
    hears(0, "end NOT_LEADER 4 at 10.0.0.9:9944 (epoch 7 is over)");
}

/* Another relay leads: publishers go there now, and do not wait for what the database says. */
static void issue16_5_a_lost_lead_waits_for_no_answer(void **state)
{
    (void)state;
    connect_to(0);
    host.unanswered = true;
    send_batch(0, 5);
    UNTIL(host.take);
    feed_room_lead(host.room, ACCOUNT + 1, 9); /* of another account */
    assert_string_equal(said(0), "");
    feed_room_lead(host.room, ACCOUNT, 0);
    hears(0, "end NOT_LEADER 4 at 10.0.0.9:9944");
    answer_take(NULL);
    assert_string_equal(said(0), "");
}

/* The relay does not serve it either way, and what it tells publishers changes. */
static void issue16_5_a_paused_feed_of_another_relay_is_led(void **state)
{
    (void)state;
    feed_room_lead(host.room, ACCOUNT, 0);
    host.row.paused = true;
    connect_to(0);
    header(0, "nothing", 5, 0); /* the feeds are read */
    hears(0, "end INVALID_REQUEST -1 (there is no such feed at this relay)");
    connect_to(1);
    header(1, "prices", 5, 1);
    hears(1, "end NOT_LEADER 4 at 10.0.0.9:9944 (the feed is paused)");
    feed_room_lead(host.room, ACCOUNT, EPOCH);
    connect_to(2);
    header(2, "prices", 5, 2);
    hears(2, "end ERROR 4 (the feed is paused)");
}

static void a_paused_or_removed_feed_takes_nothing(void **state)
{
    (void)state;
    connect_to(0);
    header(0, "prices", 5, 0);
    host.row.paused = true;
    hears(0, "end ERROR 4 (the feed is paused)");
    connect_to(1);
    header(1, "prices", 5, 1);
    hears(1, "end ERROR 4 (the feed is paused)");
    host.row.paused = false;
    row_changed();
    connect_to(2);
    send_batch(2, 5);
    hears(2, "ack 5");
    host.gone = true;
    hears(2, "end ERROR 5 (the feed was removed)");
    connect_to(4); /* the others are not gone yet */
    header(4, "prices", 6, 0);
    hears(4, "end INVALID_REQUEST -1 (there is no such feed at this relay)");
    gone(0);
    gone(1);
    gone(2);
    connect_to(3);
    header(3, "prices", 6, 0);
    hears(3, "end INVALID_REQUEST -1 (there is no such feed at this relay)");
}

/* Removed and created again between two reads of the rows: the cursor of the former feed would
 * refuse every batch of the new one. */
static void a_feed_that_is_created_again_begins_anew(void **state)
{
    (void)state;
    connect_to(0);
    send_batch(0, 5);
    hears(0, "ack 5");
    host.cursor = -1;
    hears(0, "end ERROR 5 (the feed was created again, and its last number is -1)");
    gone(0);
    connect_to(0);
    send_batch(0, 0);
    hears(0, "skip 0"); /* until the new cursor is read */
    hears(0, "resend 0");
    send_batch(0, 0);
    hears(0, "ack 0");
}

/* Its row is older than the batch. */
static void a_read_that_began_before_a_store_shows_no_new_feed(void **state)
{
    unsigned loads = host.loads;
    (void)state;
    host.reads_held = true;
    connect_to(0);
    connect_to(1);
    header(1, "nothing", 0, 1); /* the feeds are read again */
    UNTIL(host.loads > loads);
    send_batch(0, 5);
    hears(0, "ack 5");
    host.reads_held = false;
    host.row.last = 4;
    feed_room_rows(host.room, &host.row, 1);
    hears(1, "end INVALID_REQUEST -1 (there is no such feed at this relay)");
    send_batch(0, 6);
    hears(0, "ack 6");
}

/* It has committed, and its answer is on the way. */
static void a_read_in_the_middle_of_a_store_shows_no_new_feed(void **state)
{
    (void)state;
    connect_to(0);
    host.unanswered = true;
    send_batch(0, 5);
    UNTIL(host.take);
    host.cursor = 5;
    connect_to(1);
    header(1, "nothing", 0, 1); /* the feeds are read */
    hears(1, "end INVALID_REQUEST -1 (there is no such feed at this relay)");
    assert_string_equal(said(0), "");
    answer_take(NULL);
    hears(0, "ack 5");
}

static void a_key_that_was_taken_away_publishes_no_more(void **state)
{
    (void)state;
    host.row.publisher_count = 1;
    row_changed();
    connect_to(1);
    header(1, "prices", 5, 1);
    hears(1, "end INVALID_REQUEST 4 (the key is none of the feed's publishers: txrelay feed "
             "publishers)");
}

/* The database allows at most FEED_PUBLISHERS_MAX keys; if a row has more, the first ones count. */
static void of_too_many_keys_the_first_count(void **state)
{
    static uint8_t keys[(FEED_PUBLISHERS_MAX + 8) * FEED_KEY];
    uint8_t *last = keys + (size_t)(FEED_PUBLISHERS_MAX - 1) * FEED_KEY;
    (void)state;
    memcpy(last, host.publishers, FEED_KEY);
    memcpy(last + FEED_KEY, host.publishers + FEED_KEY, FEED_KEY);
    host.row.publishers = keys;
    host.row.publisher_count = FEED_PUBLISHERS_MAX + 8;
    row_changed();
    connect_to(1);
    header(1, "prices", 5, 1);
    hears(1, "end INVALID_REQUEST 4 (the key is none of the feed's publishers: txrelay feed "
             "publishers)");
    connect_to(0);
    send_batch(0, 5);
    hears(0, "ack 5");
}

static void on_drained(void *arg)
{
    (void)arg;
    host.drained = true;
}

static void issue16_5_a_drain_lets_the_batch_end(void **state)
{
    (void)state;
    connect_to(0);
    host.unanswered = true;
    send_batch(0, 5);
    UNTIL(host.take);
    feed_room_drain(host.room, on_drained);
    turn();
    assert_false(host.drained);
    answer_take(NULL);
    hears(0, "ack 5, end NOT_LEADER 5 at 10.0.0.9:9944");
    UNTIL(host.drained);
}

/* A feed that is left lets the copy that is being verified end, whatever the reason is. */
static void issue16_5_a_batch_that_is_verified_ends_too(void **state)
{
    (void)state;
    host.metadata_away = true;
    connect_to(0);
    send_batch(0, 5);
    host.row.paused = true;
    host.cursor = 9; /* in the row: that is another relay's, and this one no longer serves */
    connect_to(1);
    header(1, "nothing", 0, 1); /* the feeds are read */
    hears(1, "end INVALID_REQUEST -1 (there is no such feed at this relay)");
    assert_string_equal(said(0), "");
    host.cursor = 4;
    host.metadata_away = false;
    hears(0, "ack 5, end ERROR 5 (the feed is paused)");
    gone(0);
    host.row.paused = false;
    row_changed();
    connect_to(0);
    host.metadata_away = true;
    send_batch(0, 6);
    feed_room_drain(host.room, on_drained);
    host.metadata_away = false;
    hears(0, "ack 6, end NOT_LEADER 6 at 10.0.0.9:9944");
    UNTIL(host.drained);
}

/* A publisher may have asked for one more feed meanwhile; it is gone. */
static void it_closes_while_the_feeds_are_read(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        host.reads_held = true;
        unsigned loads = host.loads;
        connect_to(0);
        header(0, "nothing", 5, 0);
        UNTIL(host.loads == loads + 1);
        connect_to(1);
        if (more)
            header(1, "nothing", 5, 0);
        gone(0);
        gone(1);
        feed_room_close(host.room, on_closed);
        for (int i = 0; i < 3; i++)
            turn();
        assert_false(host.closed);
        feed_room_rows(host.room, &host.row, 1);
        UNTIL(host.closed);
        assert_int_equal(host.loads, loads + 1);
        host.closed = host.reads_held = false;
        host.room = feed_room_new(host.loop, &ops, NULL);
        UNTIL(host.loads == loads + 2 && !list_linked(&host.task.node));
    }
}

/* Its publisher is gone, its feed is left, and the chain's metadata does not come. */
static void it_closes_while_a_copy_waits_for_the_chain(void **state)
{
    (void)state;
    host.metadata_away = true;
    connect_to(0);
    send_batch(0, 5);
    UNTIL(host.checks >= 1); /* teardown closes the room at once */
}

/* The feed is gone before the database has answered about its last batch. */
static void a_removed_feed_waits_for_its_last_answer(void **state)
{
    (void)state;
    connect_to(0);
    host.unanswered = true;
    send_batch(0, 5);
    UNTIL(host.take);
    feed_room_lead(host.room, ACCOUNT, 0);
    hears(0, "end NOT_LEADER 4 at 10.0.0.9:9944");
    gone(0);
    host.gone = true;
    connect_to(1);
    header(1, "nothing", 5, 0); /* the feeds are read */
    hears(1, "end INVALID_REQUEST -1 (there is no such feed at this relay)");
    answer_take(NULL);
    assert_string_equal(buf_str(&host.taken), "prices 5: 0a/0/-/-1 0a/9/5/1234\n");
}

static void it_closes_while_a_batch_is_verified(void **state)
{
    (void)state;
    connect_to(0);
    send_batch_of(0, 5, 10000, 0x0a, NONE);
    gone(0); /* teardown closes the room at once */
}

static void to_b55_the_metrics_are_those_of_the_page(void **state)
{
    (void)state;
    struct buf text = {0}, rows = {0};
    connect_to(0);
    send_batch(0, 5);
    hears(0, "ack 5");
    header(0, "prices", 9, 0);
    hears(0, "end BEHIND 5");
    feed_room_metrics(host.room, &text);
    static const char *const lines[] = {
        "txrelay_active_publish_sessions 1\n",
        "txrelay_publish_items_processed_total{feed=\"prices\"} 2\n",
        "txrelay_publish_blocks_received_total{feed=\"prices\",status=\"primary\"} 1\n",
        "txrelay_publish_blocks_received_total{feed=\"prices\",status=\"future_block\"} 1\n",
        "txrelay_publish_responses_sent_total{feed=\"prices\",type=\"acknowledgement\"} 1\n",
        "txrelay_publish_responses_sent_total{feed=\"prices\",type=\"BEHIND\"} 1\n",
        "txrelay_blocks_acknowledged_total{feed=\"prices\"} 1\n",
        "txrelay_feed_last_number{feed=\"prices\"} 5\n",
        "duration_seconds_count{feed=\"prices\",outcome=\"acknowledged\"} 1\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        if (!strstr(buf_str(&text), lines[i]))
            fail_msg("no %s in:\n%s", lines[i], buf_str(&text));
    static const char *const types[] = {"gauge", "counter", "histogram"};
    const struct metric *m;
    for (size_t i = 0; (m = feed_metric(i)); i++) {
        buf_clear(&rows);
        buf_printf(&rows, "| `%s` | %s | ", m->name, types[m->type]);
        page_shows(FEEDS_MD, buf_str(&rows));
        buf_clear(&rows);
        buf_printf(&rows, " | %s |\n", m->help);
        page_shows(FEEDS_MD, buf_str(&rows));
    }
    buf_done(&rows);
    buf_done(&text);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_batch_is_verified_stored_and_acknowledged),
        TEST(what_is_not_valid_never_reaches_the_database),
        TEST(a_large_copy_is_verified_too),
        TEST(options_are_checked),
        TEST(tc_fv_001_a_bad_copy_is_followed_by_a_good_one),
        TEST(who_does_not_begin_with_a_header_is_refused),
        TEST(after_an_end_nothing_counts),
        TEST(a_client_ends_its_stream),
        TEST(a_batch_has_a_cap),
        TEST(issue16_4_a_large_batch_does_not_stop_the_loop),
        TEST(without_the_chain_a_batch_waits),
        TEST(what_the_database_refuses_names_its_reason),
        TEST(a_store_without_an_answer_is_read_again),
        TEST(a_copy_is_kept_until_its_answer_comes),
        TEST(issue16_5_another_relay_is_named),
        TEST(issue16_3_a_new_feed_is_found_at_once),
        TEST(few_sessions_wait_for_a_feed_that_is_not_known),
        TEST(issue16_3_a_read_that_began_before_shows_no_absence),
        TEST(issue16_5_a_relay_that_starts_knows_its_feeds_soon),
        TEST(a_stale_epoch_ends_the_sessions),
        TEST(a_reason_is_for_its_sender),
        TEST(issue16_5_a_lost_lead_waits_for_no_answer),
        TEST(issue16_5_a_paused_feed_of_another_relay_is_led),
        TEST(a_paused_or_removed_feed_takes_nothing),
        TEST(a_feed_that_is_created_again_begins_anew),
        TEST(a_read_that_began_before_a_store_shows_no_new_feed),
        TEST(a_read_in_the_middle_of_a_store_shows_no_new_feed),
        TEST(a_key_that_was_taken_away_publishes_no_more),
        TEST(of_too_many_keys_the_first_count),
        TEST(issue16_5_a_drain_lets_the_batch_end),
        TEST(issue16_5_a_batch_that_is_verified_ends_too),
        TEST(it_closes_while_the_feeds_are_read),
        TEST(it_closes_while_a_copy_waits_for_the_chain),
        TEST(a_removed_feed_waits_for_its_last_answer),
        TEST(it_closes_while_a_batch_is_verified),
        TEST(to_b55_the_metrics_are_those_of_the_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
