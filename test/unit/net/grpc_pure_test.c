/* Frames and headers of gRPC: every split gives the same messages, a length is judged before memory
 * is taken, and texts survive their escapes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "grpc_internal.h"

/* ---- frames ---- */

static size_t count_messages(struct grpc_frames *f, const uint8_t *data, size_t len, size_t piece,
                             size_t *ret_bytes)
{
    size_t count = 0;
    *ret_bytes = 0;
    for (size_t at = 0; at < len; at += piece) {
        size_t n = len - at < piece ? len - at : piece;
        uint8_t *exact = xmalloc(n);
        memcpy(exact, data + at, n);
        const uint8_t *p = exact, *message = NULL;
        size_t left = n, message_len = 0;
        while (left) {
            enum grpc_frame_result r = grpc__frames_take(f, &p, &left, &message, &message_len);
            if (r == GRPC_FRAME_MORE)
                break;
            assert_int_equal(r, GRPC_FRAME_MESSAGE);
            for (size_t i = 0; i < message_len; i++)
                assert_int_equal(message[i], (uint8_t)message_len);
            *ret_bytes += message_len;
            count++;
        }
        free(exact);
    }
    return count;
}

/* Also a head that ends exactly at the end of a piece, before a longer message. */
static void test_every_split_gives_the_same_messages(void **state)
{
    (void)state;
    struct buf wire = {0};
    static const size_t lens[] = {0, 1, 5, 300, 0, 3, 0};
    size_t total = 0, bytes = 0;
    for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
        uint8_t body[300];
        memset(body, (int)(uint8_t)lens[i], sizeof(body));
        grpc__frame_put(&wire, body, lens[i]);
        total += lens[i];
    }
    for (size_t piece = 1; piece <= wire.len; piece++) {
        struct grpc_frames f;
        grpc__frames_init(&f, 1000);
        assert_int_equal(count_messages(&f, wire.data, wire.len, piece, &bytes), ARRAY_LEN(lens));
        assert_int_equal(bytes, total);
        assert_int_equal(grpc__frames_partial(&f), 0);
        grpc__frames_done(&f);
    }
    buf_done(&wire);
}

static enum grpc_frame_result result_of(const char *head, uint32_t max, size_t *ret_cap)
{
    struct grpc_frames f;
    const uint8_t *p = (const uint8_t *)head, *message = NULL;
    size_t left = 5, len = 0;
    grpc__frames_init(&f, max);
    enum grpc_frame_result r = grpc__frames_take(&f, &p, &left, &message, &len);
    *ret_cap = f.body.cap;
    grpc__frames_done(&f);
    return r;
}

static void test_a_bad_head_takes_no_memory(void **state)
{
    (void)state;
    size_t cap = 0;
    assert_int_equal(result_of("\0\0\0\3\350", 1000, &cap), GRPC_FRAME_MORE);
    assert_int_equal(cap, 0);
    assert_int_equal(result_of("\0\0\0\3\351", 1000, &cap), GRPC_FRAME_TOO_LONG);
    assert_int_equal(result_of("\0\377\377\377\377", 1 << 22, &cap), GRPC_FRAME_TOO_LONG);
    assert_int_equal(result_of("\1\0\0\0\0", 1000, &cap), GRPC_FRAME_COMPRESSED);
    assert_int_equal(result_of("\2\0\0\0\0", 1000, &cap), GRPC_FRAME_BAD);
    assert_int_equal(cap, 0);
}

/* ---- headers ---- */

static void test_timeouts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
        uint64_t ms;
    } rows[] = {
        {"1H", true, 3600000},
        {"2M", true, 120000},
        {"3S", true, 3000},
        {"200m", true, 200},
        {"1u", true, 1},
        {"1n", true, 1},
        {"99999999H", true, UINT64_C(359999996400000)},
        {"999999999m", false, 0},
        {"m", false, 0},
        {"", false, 0},
        {"1", false, 0},
        {"-1S", false, 0},
        {"1x", false, 0},
        {"0x1S", false, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t ms = 0;
        assert_int_equal(grpc__timeout_parse(rows[i].text, strlen(rows[i].text), &ms),
                         rows[i].good);
        assert_int_equal(ms, rows[i].ms);
    }
    char text[16];
    uint64_t ms = 0;
    static const uint64_t times[] = {1, 99999999, 100000000, 86400000000};
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        grpc__timeout_text(times[i], text);
        assert_true(grpc__timeout_parse(text, strlen(text), &ms));
        assert_true(ms <= times[i] && ms + 1000 > times[i]);
    }
}

static void test_texts_survive_their_escapes(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "plain", "100 %", "two\nlines", "gr\303\274n", "\x7f"};
    char wire[64], back[64];
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        grpc__percent_encode(texts[i], wire, sizeof(wire));
        for (const char *c = wire; *c; c++)
            assert_true(*c >= 0x20 && *c <= 0x7e);
        grpc__percent_decode(wire, strlen(wire), back, sizeof(back));
        assert_string_equal(back, texts[i]);
    }
    grpc__percent_decode("%zz%4", 5, back, sizeof(back)); /* broken ones stay */
    assert_string_equal(back, "%zz%4");
    grpc__percent_decode("abcdef", 6, back, 4); /* cut */
    assert_string_equal(back, "abc");
    grpc__percent_encode("\n\n\n", wire, 8); /* no half escape at the end */
    assert_string_equal(wire, "%0A%0A");
}

static void test_statuses(void **state)
{
    (void)state;
    enum grpc_status s = GRPC_OK;
    assert_true(grpc__status_parse("16", 2, &s));
    assert_int_equal(s, GRPC_UNAUTHENTICATED);
    assert_true(grpc__status_parse("99", 2, &s));
    assert_int_equal(s, GRPC_UNKNOWN);
    assert_false(grpc__status_parse("100", 3, &s));
    assert_false(grpc__status_parse("-1", 2, &s));
    assert_int_equal(grpc__status_of_reset(7), GRPC_UNAVAILABLE);
    assert_int_equal(grpc__status_of_reset(8), GRPC_CANCELLED);
    assert_int_equal(grpc__status_of_reset(11), GRPC_RESOURCE_EXHAUSTED);
    assert_int_equal(grpc__status_of_reset(2), GRPC_INTERNAL);
    assert_int_equal(grpc__status_of_http(503), GRPC_UNAVAILABLE);
    assert_string_equal(grpc_status_name(GRPC_OK), "OK");
    assert_string_equal(grpc_status_name(GRPC_UNAUTHENTICATED), "UNAUTHENTICATED");
    assert_true(grpc__type_is_grpc("application/grpc", 16));
    assert_true(grpc__type_is_grpc("application/grpc+proto", 22));
    assert_false(grpc__type_is_grpc("application/grpcx", 17));
    assert_false(grpc__type_is_grpc("application/json", 16));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_split_gives_the_same_messages),
        cmocka_unit_test(test_a_bad_head_takes_no_memory),
        cmocka_unit_test(test_timeouts),
        cmocka_unit_test(test_texts_survive_their_escapes),
        cmocka_unit_test(test_statuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
