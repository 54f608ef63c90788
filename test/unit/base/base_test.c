/* The containers, texts and numbers that everything else stands on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/backoff.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/host.h"
#include "base/list.h"
#include "base/log.h"
#include "base/shared.h"
#include "base/sm.h"
#include "base/tx.h"
#include "base/utf8.h"

/* Every sequence of one to four bytes out of the ones at a border, against a table of ranges. */
static void only_well_formed_utf8_is_a_character(void **state)
{
    static const struct {
        uint8_t first[2], second[2];
        size_t len;
    } forms[] = {{{0x00, 0x7f}, {0x00, 0xff}, 1}, {{0xc2, 0xdf}, {0x80, 0xbf}, 2},
                 {{0xe0, 0xe0}, {0xa0, 0xbf}, 3}, {{0xe1, 0xec}, {0x80, 0xbf}, 3},
                 {{0xed, 0xed}, {0x80, 0x9f}, 3}, {{0xee, 0xef}, {0x80, 0xbf}, 3},
                 {{0xf0, 0xf0}, {0x90, 0xbf}, 4}, {{0xf1, 0xf3}, {0x80, 0xbf}, 4},
                 {{0xf4, 0xf4}, {0x80, 0x8f}, 4}};
    static const uint8_t tails[] = {0x00, 0x7f, 0x80, 0xbf, 0xc0, 0xff};
    (void)state;
    for (unsigned pair = 0; pair < 0x10000; pair++)
        for (size_t tail = 0; tail < sizeof(tails) * sizeof(tails); tail++)
            for (size_t left = 1; left <= 4; left++) {
                uint8_t at[] = {(uint8_t)(pair >> 8), (uint8_t)pair, tails[tail % sizeof(tails)],
                                tails[tail / sizeof(tails)]};
                size_t want = 0;
                for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
                    if (at[0] >= forms[i].first[0] && at[0] <= forms[i].first[1] &&
                        at[1] >= forms[i].second[0] && at[1] <= forms[i].second[1])
                        want = forms[i].len;
                for (size_t i = 2; i < want; i++)
                    if (at[i] < 0x80 || at[i] > 0xbf)
                        want = 0;
                if (utf8_len(at, left) != (want <= left ? want : 0))
                    fail_msg("%02x %02x %02x %02x of %zu", at[0], at[1], at[2], at[3], left);
            }
}

static void shared_bytes_stay_until_the_last_owner_goes(void **state)
{
    (void)state;
    struct shared *s = shared_new(3);
    memcpy(s->data, "abc", s->len);
    assert_ptr_equal(shared_take(s), s);
    assert_null(shared_drop(s));
    assert_memory_equal(s->data, "abc", 3);
    assert_null(shared_drop(s));
    assert_null(shared_drop(NULL));
}

static void buf_grows_and_keeps(void **state)
{
    (void)state;
    struct buf b = {0};
    for (int i = 0; i < 10000; i++)
        buf_put_u8(&b, (uint8_t)i);
    assert_int_equal(b.len, 10000);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(b.data[i], (uint8_t)i);
    buf_clear(&b);
    buf_printf(&b, "%s-%d", "abc", 42);
    buf_puts(&b, "!");
    assert_string_equal(buf_str(&b), "abc-42!");
    assert_int_equal(b.len, 7);
    buf_done(&b);
    assert_null(b.data);
}

static void hex_both_ways(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {0, 1, 0x7f, 0x80, 0xff};
    struct buf b = {0};
    hex_put_0x(&b, bytes, sizeof(bytes));
    assert_string_equal(buf_str(&b), "0x00017f80ff");
    struct buf back = {0};
    assert_true(hex_decode("0x00017F80fF", 12, &back));
    assert_int_equal(back.len, 5);
    assert_memory_equal(back.data, bytes, 5);
    assert_true(hex_decode("", 0, &back));
    assert_int_equal(back.len, 5);
    assert_false(hex_decode("0x123", 5, &back));
    assert_false(hex_decode("zz", 2, &back));
    assert_int_equal(back.len, 5);
    uint8_t out[4] = {9, 9, 9, 9};
    assert_false(hex_decode_fixed("0x010203", 8, out, 4));
    assert_false(hex_decode_fixed("0102030g", 8, out, 4));
    assert_int_equal(out[0], 9);
    assert_true(hex_decode_fixed("01020304", 8, out, 4));
    assert_int_equal(out[3], 4);
    assert_string_equal(hex_log(out, 4), "0x01020304");
    buf_done(&b);
    buf_done(&back);
}

static void errors_have_one_table(void **state)
{
    (void)state;
    struct err e = {0};
    assert_int_equal(err_set(&e, ERR_TIMEOUT, "call %d", 7), ERR_TIMEOUT);
    assert_int_equal(e.code, ERR_TIMEOUT);
    assert_string_equal(e.text, "call 7");
    assert_int_equal(err_set(&e, ERR_NET, "lost: %s", e.text), ERR_NET);
    assert_string_equal(e.text, "lost: call 7");
    assert_int_equal(err_set(NULL, ERR_NET, "nobody listens"), ERR_NET);
    err_set(&e, ERR_NET, "%0*d", (int)sizeof(e.text) - 1, 7);
    assert_string_equal(&e.text[sizeof(e.text) - 4], "007");
    err_set(&e, ERR_NET, "%0*d", (int)sizeof(e.text), 7);
    assert_string_equal(&e.text[sizeof(e.text) - 4], "0.."); /* it was cut, and says so */
    char cut[8];
    plain_text(cut, sizeof(cut), "a\tfit..");
    assert_string_equal(cut, "a?fit..");
    plain_text(cut, sizeof(cut), "is too long");
    assert_string_equal(cut, "is to..");
    assert_int_equal(err_class(ERR_LOST_LEADERSHIP), ERR_CLASS_LOST_LEADERSHIP);
    assert_int_equal(err_class(ERR_DB_UNKNOWN_OUTCOME), ERR_CLASS_RETRY);
    assert_int_equal(err_class(0), ERR_CLASS_OK);
    assert_int_equal(err_class(-9999), ERR_CLASS_BUG);
    assert_false(err_is_refused(0) || err_is_refused(ERR_DB_UNKNOWN_OUTCOME));
    assert_true(err_is_refused(ERR_BUG) && err_is_refused(ERR_DB_DENIED));
    assert_string_equal(err_name(ERR_DB_CONFLICT), "DB_CONFLICT");
#define X(name, value, class, text) assert_string_equal(err_name(value), #name);
    ERR_TABLE(X)
#undef X
}

struct item {
    struct list node;
    int n;
};

static void list_keeps_order(void **state)
{
    (void)state;
    struct list head;
    struct item items[3] = {{.n = 1}, {.n = 2}, {.n = 3}};
    list_init(&head);
    assert_true(list_empty(&head));
    for (int i = 0; i < 3; i++)
        list_append(&head, &items[i].node);
    list_remove(&items[1].node);
    list_remove(&items[1].node); /* allowed: it is on no list */
    assert_false(list_linked(&items[1].node));
    int sum = 0, last = 0;
    LIST_EACH (n, &head) {
        struct item *it = CONTAINER_OF(n, struct item, node);
        assert_true(it->n > last);
        last = it->n;
        sum += it->n;
    }
    assert_int_equal(sum, 4);
}

/* The next attempt comes soon after the end of an outage. */
static void backoff_grows_slowly_above_its_knee(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 50; seed++) {
        struct backoff b = {.base_ms = 100, .cap_ms = 5000, .knee_ms = 500};
        struct rng rng = {seed};
        uint64_t away = 0, longest = 0;
        for (int i = 0; i < 400; i++) {
            uint64_t d = backoff_next(&b, &rng);
            assert_true(d <= 500 + away / 16);
            assert_in_range(d, 50, 5000);
            away += d;
            longest = d > longest ? d : longest;
        }
        assert_in_range(longest, 4500, 5000); /* it reaches its cap all the same */
    }
}

static void backoff_grows_to_its_cap(void **state)
{
    (void)state;
    struct backoff b = {.base_ms = 50, .cap_ms = 1000};
    struct rng rng = {7};
    uint64_t ceiling = 50;
    for (int i = 0; i < 40; i++) {
        uint64_t d = backoff_next(&b, &rng);
        assert_in_range(d, ceiling / 2, ceiling);
        ceiling = ceiling * 2 > 1000 ? 1000 : ceiling * 2;
    }
    backoff_reset(&b);
    assert_in_range(backoff_next(&b, &rng), 25, 50);
}

static void rng_repeats_by_seed(void **state)
{
    (void)state;
    struct rng a = {42}, b = {42}, c = {43};
    bool differs = false;
    for (int i = 0; i < 1000; i++) {
        uint64_t x = rng_next(&a);
        assert_int_equal(x, rng_next(&b));
        differs |= x != rng_next(&c);
        assert_in_range(rng_between(&a, 10, 20), 10, 20);
        assert_in_range(rng_between(&b, 10, 20), 10, 20);
    }
    assert_true(differs);
}

/* A peer's text must not forge a log line, and a long one is cut, not spilled. */
static void log_lines_stay_lines(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    int saved = dup(STDERR_FILENO);
    dup2(fds[1], STDERR_FILENO);
    char big[5000];
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = 0;
    log_info("test.line", "text=\"%s\"", "a\n<3>forged b");
    log_info("test.quote", "text=\"%s\" n=%d", "x\" level=error y=\"\\", 7);
    log_info("test.escape", "text=\"%.*s\" bare=%s", 7, "\x1b[31m\xc2\x9bred", "\a");
    log_info("test.types", "a=%lld b=%llu c=%zu d=%u e=%d f=%ld g=%d%% h=%03d i=%x j=%g", -1LL,
             2ULL, (size_t)3, 4u, -5, 6L, 9, 7, 255, 0.5);
    log_info("test.bare", "a=%s b=%s c=%s/%u d=%s e=\"x\"", "two words", "", "node", 4u, "k=v");
    log_info("test.long", "text=%s n=%d", big, 1);
    log_debug("test.debug", "text=%s", "info");
    log_set_format(LOG_FORMAT_JSON);
    log_info("test.json", "text=\"%s\" n=%d f=%.2f id=%s h=%03d x=%x", "a \"b\" \\ \xc3\xa9 \xff\n",
             -7, 0.25, "17", 7, 255);
    log_info("test.json_long", "text=\"%s\"", big);
    log_set_format(LOG_FORMAT_LOGFMT);
    struct stat st; /* as systemd names the socket of the journal */
    char journal[64];
    assert_int_equal(fstat(STDERR_FILENO, &st), 0);
    snprintf(journal, sizeof(journal), "%llu:%llu", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino);
    setenv("JOURNAL_STREAM", journal, 1);
    log_warn("test.journal", "n=%d", 1);
    unsetenv("JOURNAL_STREAM");
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(fds[1]);
    char out[16384];
    size_t n = 0;
    for (ssize_t got; (got = read(fds[0], out + n, sizeof(out) - 1 - n)) > 0;)
        n += (size_t)got;
    out[n] = 0;
    close(fds[0]);
    int lines = 0;
    for (char *p = out; (p = strchr(p, '\n')); p++)
        lines++;
    assert_int_equal(lines, 9);
    assert_int_equal(strncmp(out, "time=2", 6), 0); /* no journald: no prefix */
    assert_non_null(strstr(out, "Z level=info event=test.line text=\"a?<3>forged b\"\n"));
    assert_non_null(strstr(out, "test.quote text=\"x\\\" level=error y=\\\"\\\\\" n=7\n"));
    assert_non_null(strstr(out, "test.escape text=\"?[31m?\" bare=?\n"));
    assert_non_null(strstr(out, "test.types a=-1 b=2 c=3 d=4 e=-5 f=6 g=9% h=007 i=ff j=0.5\n"));
    assert_non_null(strstr(out, "test.bare a=\"two words\" b=\"\" c=node/4 d=\"k=v\" e=\"x\"\n"));
    assert_non_null(strstr(out, "xxx...\""));
    assert_non_null(strstr(out, "\n<4>time=2"));
    assert_null(strstr(out, "test.debug"));
    assert_non_null(strstr(out, "Z\",\"level\":\"info\",\"event\":\"test.json\","
                                "\"text\":\"a \\\"b\\\" \\\\ \xc3\xa9 ??\",\"n\":-7,\"f\":0.25,"
                                "\"id\":\"17\",\"h\":\"007\",\"x\":\"ff\"}\n"));
    assert_non_null(strstr(out, "xxx...\"}\n"));
    for (const char *p = out, *end; (end = strchr(p, '\n')); p = end + 1)
        assert_true(end - p < 2048);
    enum log_level level;
    assert_true(log_parse_level("debug", &level));
    assert_int_equal(level, LOG_LEVEL_DEBUG);
    assert_false(log_parse_level("loud", &level));
}

/* A table has the moves that it lists, in their order, and no others. */
static void table_of_moves(void **state)
{
    (void)state;
    static const char *const names[] = {"WAITING", "DONE"};
    static const struct sm_move moves[] = {{SM_OUTSIDE, 0, "asked"},
                                           {0, 0, "asked again"},
                                           {0, 1, "answered"},
                                           {1, SM_OUTSIDE, "read"}};
    static const struct sm sm = {names, 2, SM_OUTSIDE, moves, ARRAY_LEN(moves)};
    assert_int_equal(sm_find(&sm, SM_OUTSIDE, 0), 0);
    assert_int_equal(sm_find(&sm, 0, 1), 2);
    assert_int_equal(sm_find(&sm, 1, 0), -1);
    assert_int_equal(sm_find(&sm, SM_OUTSIDE, 1), -1);
    assert_string_equal(sm_name(&sm, 1), "DONE");
    struct buf b = {0};
    sm_missing(&sm, 0xd, &b);
    assert_string_equal(buf_str(&b), "WAITING --> WAITING: asked again\n");
    buf_clear(&b);
    sm_dump(&sm, &b);
    assert_string_equal(buf_str(&b), "stateDiagram-v2\n"
                                     "    [*] --> WAITING: asked\n"
                                     "    WAITING --> WAITING: asked again\n"
                                     "    WAITING --> DONE: answered\n"
                                     "    DONE --> [*]: read\n");
    buf_done(&b);

    /* The first forbidden move is named once; that there was one stays known. */
    struct sm_trace trace = {0};
    char text[SM_BUG_MAX];
    assert_true(sm_take(&sm, &trace, 0, 1));
    assert_false(sm_bug(&sm, &trace, text));
    assert_false(sm_take(&sm, &trace, 1, 0) || sm_take(&sm, &trace, 0, SM_OUTSIDE));
    assert_true(sm_bug(&sm, &trace, text));
    assert_string_equal(text, "DONE -> WAITING is not in the table of moves");
    assert_false(sm_bug(&sm, &trace, text));
    assert_true(trace.made == 4 && trace.illegal_ever == 2);
}

/* Asserts stay on: a broken one ends the process, also in release. */
static void checks_abort(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        close(STDERR_FILENO);
        INVARIANT(1 + 1 == 3);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
}

static void hosts(void **state)
{
    (void)state;
    static const char *const here[] = {"localhost", "LocalHost", "127.0.0.1",      "127.255.0.9",
                                       "::1",       "[::1]",     "0:0:0:0:0:0:0:1"};
    static const char *const there[] = {"",
                                        "127.evil.example",
                                        "localhost.evil.example",
                                        "127.0.0.1.evil.example",
                                        "128.0.0.1",
                                        "127.1",
                                        "::",
                                        "[::1",
                                        "::ffff:10.0.0.1"};
    for (size_t i = 0; i < ARRAY_LEN(here); i++)
        if (!host_is_loopback(here[i], strlen(here[i])))
            fail_msg("%s is this machine", here[i]);
    for (size_t i = 0; i < ARRAY_LEN(there); i++)
        if (host_is_loopback(there[i], strlen(there[i])))
            fail_msg("%s is another machine", there[i]);
    static const char *const private[] = {"0.0.0.0",
                                          "10.1.2.3",
                                          "100.64.0.1",
                                          "100.127.255.255",
                                          "127.0.0.1",
                                          "169.254.1.1",
                                          "172.16.0.1",
                                          "172.31.255.255",
                                          "192.0.0.1",
                                          "192.168.0.1",
                                          "198.19.0.1",
                                          "224.0.0.1",
                                          "255.255.255.255",
                                          "192.0.2.1",
                                          "203.0.113.9",
                                          "::",
                                          "::1",
                                          "fc00::1",
                                          "fdff::1",
                                          "fe80::1",
                                          "ff02::1",
                                          "::ffff:10.0.0.1",
                                          "64:ff9b::10.0.0.1",
                                          "2002:a00:1::",
                                          "2001:db8::1",
                                          "2001::1",
                                          "::10.0.0.1",
                                          "",
                                          "localhost",
                                          "example.org"};
    static const char *const public[] = {
        "1.1.1.1",         "9.255.255.255", "11.0.0.0",       "100.63.255.255", "100.128.0.0",
        "172.15.255.255",  "172.32.0.0",    "192.167.0.1",    "198.20.0.1",     "223.255.255.255",
        "2606:4700::1111", "2a00::1",       "2002:808:808::", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"};
    for (size_t i = 0; i < ARRAY_LEN(private); i++)
        if (host_address_is_public(private[i]))
            fail_msg("%s is not public", private[i]);
    for (size_t i = 0; i < ARRAY_LEN(public); i++)
        if (!host_address_is_public(public[i]))
            fail_msg("%s is public", public[i]);
    static const char *const urls[][2] = {{"ws://h:1/x", "h"},
                                          {"wss://[::1]:9944", "::1"},
                                          {"ws://h?key=a@b", "h"},
                                          {"ws://127.0.0.1", "127.0.0.1"},
                                          {"ws://localhost@evil:1", "evil"},
                                          {"ws://", ""},
                                          {"h:1", ""},
                                          {"ws://[::1", ""}};
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        size_t len;
        const char *host = host_of_url(urls[i][0], &len);
        if (len != strlen(urls[i][1]) || memcmp(host, urls[i][1], len))
            fail_msg("the host of %s is not %.*s", urls[i][0], (int)len, host);
    }
}

static void urls_without_secrets(void **state)
{
    (void)state;
    static const char *const urls[][2] = {{"ws://h:1", "ws://h:1"},
                                          {"wss://[::1]:9944/", "wss://[::1]:9944/"},
                                          {"wss://h/KEY", "wss://h/***"},
                                          {"wss://h?key=KEY", "wss://h/***"},
                                          {"wss://h#KEY", "wss://h/***"},
                                          {"ws://user:KEY@h:1/KEY", "ws://***@h:1/***"},
                                          {"ws://user:K@KEY@h:1", "ws://***@h:1"},
                                          {"ws://user:KEY/KEY@h", "ws://***"},
                                          {"ws://h?a=KEY@KEY", "ws://***"},
                                          {"user:KEY@h:1/KEY", "***@h:1/***"},
                                          {"h/KEY", "h/***"},
                                          {"h?to=ws://KEY", "***"},
                                          {"KEY@h://x", "***"},
                                          {"", ""}};
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        char *shown = host_url_shown(urls[i][0]);
        assert_string_equal(shown, urls[i][1]);
        free(shown);
    }
}

/* As check_trace of schema/functions/02_arguments.sql (test/schema/test_traces.py). */
static void trace_contexts(void **state)
{
    (void)state;
    static const char *const good[] = {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                                       "cc-00000000000000000000000000000001-0000000000000001-00"};
    static const char *const bad[] = {"",
                                      "00",
                                      "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
                                      "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-010",
                                      "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                                      "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g",
                                      "0x-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                                      "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                                      "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                                      "00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01",
                                      "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331_01",
                                      "00-00000000000000000000000000000000-b7ad6b7169203331-01",
                                      "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_true(tx_trace_is_valid(good[i]));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (tx_trace_is_valid(bad[i]))
            fail_msg("'%s' is taken", bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trace_contexts),
        cmocka_unit_test(hosts),
        cmocka_unit_test(urls_without_secrets),
        cmocka_unit_test(only_well_formed_utf8_is_a_character),
        cmocka_unit_test(shared_bytes_stay_until_the_last_owner_goes),
        cmocka_unit_test(buf_grows_and_keeps),
        cmocka_unit_test(hex_both_ways),
        cmocka_unit_test(errors_have_one_table),
        cmocka_unit_test(list_keeps_order),
        cmocka_unit_test(backoff_grows_to_its_cap),
        cmocka_unit_test(backoff_grows_slowly_above_its_knee),
        cmocka_unit_test(rng_repeats_by_seed),
        cmocka_unit_test(log_lines_stay_lines),
        cmocka_unit_test(table_of_moves),
        cmocka_unit_test(checks_abort),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
