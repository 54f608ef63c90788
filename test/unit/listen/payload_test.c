/* Payloads in, lines out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/rng.h"
#include "listen/payload.h"

#define ID32  "0x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define ID20  "0x000102030405060708090a0b0c0d0e0f10111213"
#define HASH  "0xffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"
#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define ROW(more)                                                                                  \
    "{\"account_id\" : \"" ID32 "\", \"nonce\" : 5, \"hash\" : \"" HASH                            \
    "\", \"state\" : \"in_block\", "                                                               \
    "\"creator_id\" : \"app\", \"updated_at\" : \"2026-11-27T22:00:00.000123Z\", \"id\" : 7" more  \
    "}"

static bool row(const char *text, enum listen_kind kind, struct listen_payload *p)
{
    return listen_payload_row(text, strlen(text), kind, p);
}

static void row_as_the_trigger_writes_it(void **state)
{
    (void)state;
    struct listen_payload p;
    assert_true(row(ROW(", \"block_hash\" : \"" HASH "\", \"traceparent\" : \"" TRACE "\""),
                    LISTEN_UPDATE, &p));
    assert_string_equal(p.event.trace, TRACE);
    assert_int_equal(p.event.kind, LISTEN_UPDATE);
    assert_int_equal(p.event.id, 7);
    assert_int_equal(p.event.nonce, 5);
    assert_int_equal(p.event.account, 0);
    assert_int_equal(p.event.account_id_len, 32);
    assert_int_equal(p.event.account_id[31], 0x1f);
    assert_int_equal(p.event.hash[1], 0xee);
    assert_true(p.event.has_block);
    assert_int_equal(p.event.block_hash[31], 0x00);
    assert_string_equal(p.event.state, "in_block");
    assert_string_equal(p.event.creator, "app");
    assert_int_equal(p.event.updated_at_us, 1795816800000123);
    listen_payload_done(&p);

    assert_true(row(ROW(", \"account\" : 3, \"more\" : [1]"), LISTEN_NEW,
                    &p)); /* a newer schema may say more */
    assert_int_equal(p.event.account, 3);
    assert_false(p.event.has_block);
    assert_string_equal(p.event.trace, "");
    listen_payload_done(&p);

    assert_true(row("{\"account_id\":\"" ID20 "\",\"nonce\":5,\"id\":null,\"outcome\":\"ok\"}",
                    LISTEN_REMOVED, &p));
    assert_int_equal(p.event.account_id_len, 20);
    assert_int_equal(p.event.id, 0);
    assert_string_equal(p.event.outcome, "ok");
    listen_payload_done(&p);

    assert_true(row("{\"account_id\":\"" ID32 "\",\"nonce\":null,\"id\":9}", LISTEN_REMOVED, &p));
    assert_int_equal(p.event.nonce, -1);
    assert_string_equal(p.event.outcome, "");
    listen_payload_done(&p);
}

/* Anybody may NOTIFY. */
static void bad_rows(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "nonsense",
        "[]",
        "{}",
        "{\"account_id\":\"" ID32 "\"}",
        ROW("") "x",
        "{\"account_id\":\"0x00\",\"nonce\":5,\"id\":7}",
        "{\"account_id\":7,\"nonce\":5,\"id\":7}",
        "{\"account_id\":\"" ID32 "\",\"nonce\":-1,\"id\":7}",
        "{\"account_id\":\"" ID32 "\",\"nonce\":5.5,\"id\":7}",
        "{\"account_id\":\"" ID32 "\",\"nonce\":99999999999999999999,\"id\":7}",
        "{\"account_id\":\"" ID32 "\",\"nonce\":5,\"nonce\":6,\"id\":7}",
        "{\"account_id\":\"" ID32 "\",\"nonce\":5,\"id\":7,\"outcome\":\"\\u001b[2J\"}",
        "{\"account_id\":\"" ID32
        "\",\"nonce\":5,\"id\":7,\"outcome\":\"a_word_that_is_too_long_to_be_one\"}",
        "{\"account_id\":\"" ID32 "\",\"nonce\":5,\"id\":7,\"hash\":\"0x12\"}",
        "{\"account_id\":\"" ID32 "\",\"nonce\":5,\"id\":7,\"account\":0}",
        "{\"account_id\":\"" ID32 "\",\"nonce\":null,\"id\":null}",
        "{\"account_id\":\"" ID32
        "\",\"nonce\":5,\"id\":7,\"updated_at\":\"2026-13-27T22:00:00Z\"}",
        "{\"account_id\":\"" ID32 "\",\"nonce\":5,\"id\":7,\"updated_at\":\"2026-11-27 22:00:00\"}",
    };
    struct listen_payload p;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (row(bad[i], LISTEN_REMOVED, &p))
            fail_msg("taken: %s", bad[i]);
    assert_false(row("{\"account_id\":\"" ID32 "\",\"nonce\":5,\"id\":7}", LISTEN_NEW,
                     &p)); /* no hash, no state */
    char *big = malloc(LISTEN_PAYLOAD_MAX + 2);
    memset(big, ' ', LISTEN_PAYLOAD_MAX + 1);
    big[0] = '{';
    big[LISTEN_PAYLOAD_MAX] = '}';
    assert_false(listen_payload_row(big, LISTEN_PAYLOAD_MAX + 1, LISTEN_REMOVED, &p));
    free(big);
}

static void signals(void **state)
{
    (void)state;
    struct listen_payload p;
    const char *text = "{\"account\" : 3, \"account_id\" : \"" ID32
                       "\", \"holder\" : \"h\", \"address\" : \"a:1\", "
                       "\"epoch\" : 12}";
    assert_true(listen_payload_leader(text, strlen(text), &p));
    assert_int_equal(p.leader.account, 3);
    assert_int_equal(p.leader.epoch, 12);
    assert_string_equal(p.leader.holder, "h");
    assert_string_equal(p.leader.address, "a:1");
    listen_payload_done(&p);
    text = "{\"account\" : 3, \"holder\" : null, \"address\" : null, \"epoch\" : 12}";
    assert_true(listen_payload_leader(text, strlen(text), &p));
    assert_string_equal(p.leader.holder, "");
    listen_payload_done(&p);
    text = "{\"account\" : \"3\", \"epoch\" : 12}";
    assert_false(listen_payload_leader(text, strlen(text), &p));

    int32_t account = 0;
    assert_true(listen_payload_wake("17", 2, &account));
    assert_int_equal(account, 17);
    static const char *const bad[] = {"", "0", "-1", "1 ", "x", "99999999999", "2147483648"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(listen_payload_wake(bad[i], strlen(bad[i]), &account));
}

static void lines(void **state)
{
    (void)state;
    struct buf b = {0};
    struct listen_event ev = {.kind = LISTEN_FINISHED,
                              .account = 1,
                              .alias = "alice",
                              .account_id_len = 20,
                              .id = 7,
                              .nonce = 5,
                              .has_hash = true,
                              .has_block = true,
                              .block_number = 99,
                              .state = "finalized",
                              .outcome = "dispatch_error",
                              .error = "Balances \"x\"\n\x1b[2J",
                              .creator = "\xc2\x9b"
                                         "app",
                              .trace = TRACE,
                              .updated_at_us = 951782400000001,
                              .from_scan = true};
    listen_format_json(&ev, &b);
    assert_string_equal(
        buf_str(&b),
        "{\"event\":\"finished\",\"account\":\"alice\",\"account_id\":"
        "\"0x0000000000000000000000000000000000000000\",\"id\":7,\"nonce\":5,\"state\":"
        "\"finalized\",\"outcome\":\"dispatch_error\",\"hash\":"
        "\"0x0000000000000000000000000000000000000000000000000000000000000000\",\"block_hash\":"
        "\"0x0000000000000000000000000000000000000000000000000000000000000000\",\"block_number\":"
        "99,"
        "\"error\":\"Balances \\\"x\\\"\\u000a\\u001b[2J\",\"creator_id\":\"\\u009b"
        "app\",\"traceparent\":\"" TRACE "\","
        "\"updated_at\":\"2000-02-29T00:00:00.000001Z\",\"from_scan\":true}");
    buf_clear(&b);
    listen_format_human(&ev, &b);
    assert_string_equal(
        buf_str(&b),
        "2000-02-29T00:00:00.000001Z alice id=7 nonce=5 finished finalized outcome=dispatch_error "
        "hash=0x0000000000000000000000000000000000000000000000000000000000000000 "
        "block=0x0000000000000000000000000000000000000000000000000000000000000000 height=99 "
        "creator=?app trace=" TRACE " error=\"Balances \"x\"??[2J\"");
    ev.position_us = 1;
    buf_clear(&b);
    listen_format_json(&ev, &b);
    assert_non_null(
        strstr(buf_str(&b), ",\"position\":\"1970-01-01T00:00:00.000001Z\",\"from_scan\":true}"));
    ev = (struct listen_event){.kind = LISTEN_REMOVED,
                               .alias = "",
                               .nonce = 3,
                               .block_number = -1,
                               .state = "",
                               .outcome = "",
                               .error = "",
                               .creator = ""};
    buf_clear(&b);
    listen_format_json(&ev, &b);
    assert_string_equal(buf_str(&b), "{\"event\":\"removed\",\"nonce\":3,\"from_scan\":false}");
    buf_clear(&b);
    listen_format_human(&ev, &b);
    assert_string_equal(buf_str(&b), "- filler nonce=3 removed");
    ev.creator = "a\xc2\x9b[2J \xc3\xa9 \xc2"; /* a C1 control, a letter, half of one */
    buf_clear(&b);
    listen_format_json(&ev, &b);
    assert_non_null(strstr(buf_str(&b), "\"creator_id\":\"a\\u009b[2J \xc3\xa9 \xc2\""));
    buf_done(&b);
}

static void states(void **state)
{
    (void)state;
    struct buf b = {0};
    struct err err;
    listen_format_state_json(951782400000001, 77, NULL, &b);
    assert_string_equal(buf_str(&b),
                        "{\"event\":\"live\",\"position\":\"2000-02-29T00:00:00.000001Z\"}");
    buf_clear(&b);
    err_set(&err, ERR_TIMEOUT, "no \"answer\"");
    listen_format_state_json(0, 12345, &err, &b);
    assert_string_equal(buf_str(&b), "{\"event\":\"stale\",\"age_ms\":12345,\"code\":\"TIMEOUT\","
                                     "\"text\":\"no \\\"answer\\\"\"}");
    buf_done(&b);
}

static void positions_and_times_of_a_command_line(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t us;
    } good[] = {{"2000-02-29T00:00:00.000001Z", 951782400000001},
                {"2000-02-29T00:00:00Z", 951782400000000},
                {"951782400", 951782400000000},
                {"951782400.5", 951782400500000},
                {"1970-01-01T00:00:00Z", 1},
                {"1", 1000000}};
    static const char *const bad[] = {"",    "0",   "-1",   "x",          "1x",
                                      "nan", "inf", "1e99", "2000-02-29", "2000-02-29T00:00:00"};
    int64_t us = 0;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(listen_since_parse(good[i].text, &us));
        assert_int_equal(us, good[i].us);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(listen_since_parse(bad[i], &us));
}

/* Times survive the way out and in again, over four centuries. */
static void times(void **state)
{
    (void)state;
    struct rng rng = {.state = 5};
    for (int i = 0; i < 20000; i++) {
        struct buf b = {0};
        struct listen_payload p;
        int64_t us = (int64_t)rng_below(&rng, 400LL * 366 * 86400 * 1000000);
        struct listen_event ev = {.kind = LISTEN_NEW,
                                  .alias = "",
                                  .nonce = 3,
                                  .block_number = -1,
                                  .state = "",
                                  .outcome = "",
                                  .error = "",
                                  .creator = "",
                                  .updated_at_us = us + 1};
        listen_format_json(&ev, &b);
        const char *at = strstr(buf_str(&b), "updated_at");
        char text[300];
        snprintf(text, sizeof(text), "{\"account_id\":\"" ID32 "\",\"nonce\":5,\"id\":7,\"%.41s}",
                 at);
        assert_true(row(text, LISTEN_REMOVED, &p));
        assert_int_equal(p.event.updated_at_us, us + 1);
        listen_payload_done(&p);
        buf_done(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(row_as_the_trigger_writes_it),
        cmocka_unit_test(bad_rows),
        cmocka_unit_test(signals),
        cmocka_unit_test(lines),
        cmocka_unit_test(states),
        cmocka_unit_test(positions_and_times_of_a_command_line),
        cmocka_unit_test(times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
