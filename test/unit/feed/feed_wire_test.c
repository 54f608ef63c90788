/* The messages of feed.proto: each part has its bounds, whoever wrote it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/check.h"
#include "feed/wire/wire.h"

enum { LENGTH_DELIMITED = 2, TEXT_MAX = 400 };

/* ---- protobuf by hand ---- */

static void put_varint(struct buf *out, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        buf_put_u8(out, (uint8_t)(v | 0x80));
    buf_put_u8(out, (uint8_t)v);
}

static void put_number(struct buf *out, unsigned field, uint64_t v)
{
    put_varint(out, field << 3);
    put_varint(out, v);
}

static void put_bytes(struct buf *out, unsigned field, const void *data, size_t len)
{
    put_varint(out, field << 3 | LENGTH_DELIMITED);
    put_varint(out, len);
    buf_put(out, data, len);
}

/* The message in `inside` as a field; `inside` is empty after that. */
static void put_message(struct buf *out, unsigned field, struct buf *inside)
{
    put_bytes(out, field, inside->data, inside->len);
    buf_clear(inside);
}

static void put_filled(struct buf *out, unsigned field, char with, size_t len)
{
    char text[TEXT_MAX];
    PRE(len <= sizeof(text));
    memset(text, with, len);
    put_bytes(out, field, text, len);
}

/* ---- requests ---- */

struct parts {
    size_t name;
    int64_t number;
    size_t key, digest, signature;
    const char *why; /* it is refused; NULL: it is taken */
};

/* Header, call and trailer in one request. */
static void make_request(const struct parts *p, struct buf *out)
{
    struct buf part = {0}, item = {0}, items = {0};
    put_filled(&part, 1, 'a', p->name);
    put_number(&part, 2, (uint64_t)p->number);
    put_filled(&part, 3, 'k', p->key);
    put_message(&item, 1, &part);
    put_message(&items, 1, &item);
    put_filled(&item, 2, 'c', 10);
    put_message(&items, 1, &item);
    put_number(&part, 1, 1);
    put_filled(&part, 2, 'd', p->digest);
    put_filled(&part, 3, 's', p->signature);
    put_message(&item, 3, &part);
    put_message(&items, 1, &item);
    put_message(out, 1, &items);
    buf_done(&part);
    buf_done(&item);
    buf_done(&items);
}

static void test_each_part_of_a_request_has_its_bounds(void **state)
{
    static const char name[] = "a feed's name has 1 to 200 bytes";
    static const char key[] = "a publisher is named by its public key of 32 bytes";
    static const char trailer[] = "a trailer has a digest of 32 bytes and a signature of 64";
    static const struct parts rows[] = {
        {1, 0, 32, 32, 64, NULL},    {200, INT64_MAX, 32, 32, 64, NULL},
        {0, 0, 32, 32, 64, name},    {201, 0, 32, 32, 64, name},
        {1, 0, 31, 32, 64, key},     {1, 0, 33, 32, 64, key},
        {1, 0, 0, 32, 64, key},      {1, -1, 32, 32, 64, "a batch's number is 0 or more"},
        {1, 0, 32, 31, 64, trailer}, {1, 0, 32, 33, 64, trailer},
        {1, 0, 32, 0, 64, trailer},  {1, 0, 32, 32, 63, trailer},
        {1, 0, 32, 32, 65, trailer}, {1, 0, 32, 32, 0, trailer},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf out = {0};
        struct err err = {0};
        make_request(&rows[i], &out);
        struct feed_wire_request *r = feed_wire_request_read(out.data, out.len, &err);
        assert_int_equal(r == NULL, rows[i].why != NULL);
        if (rows[i].why)
            assert_string_equal(err.text, rows[i].why);
        else
            assert_int_equal(feed_wire_request_count(r), 3);
        feed_wire_request_free(r);
        buf_done(&out);
    }
}

static void refused(const struct buf *bytes, const char *why)
{
    struct err err = {0};
    assert_null(feed_wire_request_read(bytes->data, bytes->len, &err));
    assert_int_equal(err.code, ERR_PROTOCOL);
    assert_non_null(strstr(err.text, why));
}

static void test_an_item_is_of_a_kind(void **state)
{
    struct buf item = {0}, items = {0}, out = {0};
    (void)state;
    put_filled(&item, 2, 'c', 10);
    put_message(&items, 1, &item);
    put_filled(&item, 9, 'c', 10); /* of another version */
    put_message(&items, 1, &item);
    put_message(&out, 1, &items);
    refused(&out, "an item is a header, a call or a trailer");
    buf_clear(&out);
    put_filled(&out, 9, 'c', 10);
    refused(&out, "a request has one item or more, or it ends the stream");
    buf_done(&item);
    buf_done(&items);
    buf_done(&out);
}

/* The memory of a message is bounded by its length. */
static void test_short_items_are_few(void **state)
{
    struct buf items = {0}, out = {0};
    (void)state;
    for (int i = 0; i < 200000; i++)
        buf_put(&items, "\x0a\x02\x12", 4); /* a call without bytes */
    put_message(&out, 1, &items);
    refused(&out, "too many short items");
    buf_done(&items);
    buf_done(&out);
}

static void test_the_end_of_a_stream(void **state)
{
    static const struct feed_wire_item end = {
        .kind = FEED_WIRE_END_STREAM,
        .end = {.code = FEED_WIRE_END_TOO_FAR_BEHIND, .earliest = INT64_MAX, .latest_acked = -1}};
    struct buf out = {0};
    struct err err = {0};
    (void)state;
    feed_wire_request_write(&out, &end, 1);
    struct feed_wire_request *r = feed_wire_request_read(out.data, out.len, &err);
    assert_non_null(r);
    assert_int_equal(feed_wire_request_count(r), 1);
    struct feed_wire_item item = feed_wire_request_item(r, 0);
    assert_int_equal(item.kind, FEED_WIRE_END_STREAM);
    assert_int_equal(item.end.code, FEED_WIRE_END_TOO_FAR_BEHIND);
    assert_true(item.end.earliest == INT64_MAX && item.end.latest_acked == -1);
    feed_wire_request_free(r);
    buf_done(&out);
}

/* ---- answers ---- */

static void test_every_answer_reads_as_it_was_written(void **state)
{
    (void)state;
    for (int answer = FEED_WIRE_ACK; answer <= FEED_WIRE_END; answer++) {
        struct feed_wire_response r = {.answer = (enum feed_wire_answer)answer,
                                       .number = FEED_WIRE_NUMBER_MAX};
        struct feed_wire_response back;
        struct buf out = {0};
        struct err err = {0};
        if (answer == FEED_WIRE_END) {
            r.status = FEED_WIRE_NOT_LEADER;
            memset(r.leader, 'l', sizeof(r.leader) - 1);
            memset(r.detail, 'd', sizeof(r.detail) - 1);
        }
        feed_wire_response_write(&out, &r);
        assert_int_equal(feed_wire_response_read(out.data, out.len, &back, &err), 0);
        assert_int_equal(back.answer, r.answer);
        assert_true(back.number == r.number);
        assert_int_equal(back.status, r.status);
        assert_string_equal(back.leader, r.leader);
        assert_string_equal(back.detail, r.detail);
        buf_done(&out);
    }
}

/* The publisher computes with them, and goes back to them. */
static void test_a_relay_s_numbers_have_bounds(void **state)
{
    static const int64_t numbers[] = {
        -1, 0, FEED_WIRE_NUMBER_MAX, -2, INT64_MIN, FEED_WIRE_NUMBER_MAX + 1, INT64_MAX};
    (void)state;
    for (int answer = FEED_WIRE_ACK; answer <= FEED_WIRE_END; answer++)
        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
            struct feed_wire_response r = {.answer = (enum feed_wire_answer)answer,
                                           .number = numbers[i],
                                           .status = FEED_WIRE_DUPLICATE_BLOCK};
            struct buf out = {0};
            struct err err = {0};
            feed_wire_response_write(&out, &r);
            assert_int_equal(feed_wire_response_read(out.data, out.len, &r, &err),
                             i < 3 ? 0 : ERR_PROTOCOL);
            buf_done(&out);
        }
}

static void test_a_relay_s_texts_are_cut(void **state)
{
    struct feed_wire_response r;
    struct buf end = {0}, out = {0};
    struct err err = {0};
    (void)state;
    put_number(&end, 1, FEED_WIRE_NOT_LEADER);
    put_filled(&end, 3, 'l', TEXT_MAX);
    put_filled(&end, 4, 'd', TEXT_MAX);
    put_message(&out, 5, &end);
    assert_int_equal(feed_wire_response_read(out.data, out.len, &r, &err), 0);
    assert_int_equal(strlen(r.leader), sizeof(r.leader) - 1);
    assert_int_equal(strlen(r.detail), sizeof(r.detail) - 1);
    buf_clear(&out);
    put_filled(&out, 9, 'x', 1); /* of another version */
    assert_int_equal(feed_wire_response_read(out.data, out.len, &r, &err), ERR_PROTOCOL);
    buf_clear(&out);
    put_filled(&out, 5, '\xff', 10);
    assert_int_equal(feed_wire_response_read(out.data, out.len, &r, &err), ERR_PROTOCOL);
    buf_done(&end);
    buf_done(&out);
}

static void test_every_status_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(feed_wire_status_name(-1), "?");
    assert_string_equal(feed_wire_status_name(0), "UNKNOWN");
    assert_string_equal(feed_wire_status_name(FEED_WIRE_NOT_LEADER), "NOT_LEADER");
    assert_string_equal(feed_wire_status_name(FEED_WIRE_NOT_LEADER + 1), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_part_of_a_request_has_its_bounds),
        cmocka_unit_test(test_an_item_is_of_a_kind),
        cmocka_unit_test(test_short_items_are_few),
        cmocka_unit_test(test_the_end_of_a_stream),
        cmocka_unit_test(test_every_answer_reads_as_it_was_written),
        cmocka_unit_test(test_a_relay_s_numbers_have_bounds),
        cmocka_unit_test(test_a_relay_s_texts_are_cut),
        cmocka_unit_test(test_every_status_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
