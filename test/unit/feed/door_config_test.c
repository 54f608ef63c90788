/* What an operator or a program gives the door and the publisher's client: what can never be right
 * is refused before anything is opened. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "chain/keys/keys.h"
#include "feed/client/client.h"
#include "feed/door/door.h"

static void test_each_value_of_the_door(void **state)
{
    static const char others[] = "publishers need certificates (feeds.ca_file) or a token";
    static const struct {
        struct feed_door_config config;
        const char *why; /* NULL: it may be right */
    } rows[] = {
        {{.listen = "tcp:127.0.0.1:0"}, NULL},
        {{.listen = "unix:/run/feeds"}, NULL},
        {{.listen = "nowhere"}, "nowhere"},
        {{.listen = "unix:/run/feeds", .cert_file = "c"}, "belong together"},
        {{.listen = "unix:/run/feeds", .key_file = "k"}, "belong together"},
        {{.listen = "unix:/run/feeds", .ca_file = "a"}, "feeds.ca_file needs feeds.cert_file"},
        {{.listen = "tcp:0.0.0.0:1"}, others},
        {{.listen = "tcp:0.0.0.0:1", .cert_file = "c", .key_file = "k"}, others},
        {{.listen = "tcp:0.0.0.0:1", .token_file = "t"}, "give a certificate and a key"},
        {{.listen = "tcp:0.0.0.0:1", .cert_file = "c", .key_file = "k", .ca_file = "a"}, NULL},
        {{.listen = "tcp:0.0.0.0:1", .cert_file = "c", .key_file = "k", .token_file = "t"}, NULL},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = {0};
        int rc = feed_door_values(&rows[i].config, &err);
        assert_int_equal(rc != 0, rows[i].why != NULL);
        if (rows[i].why && !strstr(err.text, rows[i].why))
            fail_msg("row %zu: %s", i, err.text);
    }
}

/* ---- the token ---- */

static struct {
    char path[40];
    struct buf shown, cautions;
} token;

static void on_caution(void *arg, const char *text)
{
    (void)arg;
    buf_puts(&token.cautions, text);
}

static int check_token(const char *path, struct err *err)
{
    const struct feed_door_config config = {.listen = "unix:/run/feeds", .token_file = path};
    buf_clear(&token.shown);
    buf_clear(&token.cautions);
    return feed_door_check(&config, &token.shown, on_caution, NULL, err);
}

static void write_token(const void *text, size_t len)
{
    snprintf(token.path, sizeof(token.path), "/tmp/txrelay-token-XXXXXX");
    int fd = mkstemp(token.path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, len), len);
    close(fd);
}

static void test_a_token_has_1_to_1000_characters(void **state)
{
    static char text[1001];
    static const struct {
        const char *text;
        size_t len;
        bool good;
    } rows[] = {{"", 0, false},      {"\n", 1, false},   {"\r\nsesame", 8, false}, {"x", 1, true},
                {"x\r\ny", 4, true}, {text, 1000, true}, {text, 1001, false}};
    (void)state;
    memset(text, 'x', sizeof(text));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = {0};
        write_token(rows[i].text, rows[i].len);
        assert_int_equal(check_token(token.path, &err), rows[i].good ? 0 : ERR_CONFIG);
        if (rows[i].good)
            assert_string_equal(buf_str(&token.shown),
                                "unix:/run/feeds takes publishers with the token");
        else
            assert_non_null(strstr(err.text, "its first line must be the token"));
        assert_int_equal(token.cautions.len, 0);
        unlink(token.path);
    }
    struct err err = {0};
    assert_int_equal(check_token(token.path, &err), ERR_CONFIG);
    assert_non_null(strstr(err.text, "No such file"));
}

static void test_a_token_that_everybody_reads_is_told(void **state)
{
    struct err err = {0};
    (void)state;
    write_token("sesame\n", 7);
    assert_int_equal(chmod(token.path, 0640), 0);
    assert_int_equal(check_token(token.path, &err), 0);
    assert_int_equal(token.cautions.len, 0);
    assert_int_equal(chmod(token.path, 0604), 0);
    assert_int_equal(check_token(token.path, &err), 0);
    assert_non_null(
        strstr(buf_str(&token.cautions), "has mode 604, open to every user: chmod 600"));
    assert_null(strstr(buf_str(&token.cautions), "sesame"));
    unlink(token.path);
    buf_done(&token.shown);
    buf_done(&token.cautions);
}

/* ---- the publisher's client ---- */

static struct loop *loop;

static void refuse_client(const struct feed_client_config *config, const char *why)
{
    struct err err = {0};
    assert_null(feed_client_new(loop, config, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    if (!strstr(err.text, why))
        fail_msg("%s", err.text);
}

static void test_each_value_of_a_publisher(void **state)
{
    static const char *const good[] = {"127.0.0.1:1"}, *const bad[] = {"127.0.0.1:1", "nowhere"};
    char name[202];
    struct keypair *key, *other;
    struct err err = {0};
    (void)state;
    loop = loop_new();
    assert_int_equal(keypair_from_uri("//Alice", KEY_ED25519, &key, &err), 0);
    assert_int_equal(keypair_from_uri("//Alice", KEY_SR25519, &other, &err), 0);
    memset(name, 'x', sizeof(name));
    name[201] = 0;
    struct feed_client_config config = {
        .feed = "prices", .targets = good, .target_count = 1, .key = other};
    refuse_client(&config, "a publisher signs with an ed25519 key");
    config.key = key;
    config.feed = "";
    refuse_client(&config, "a feed's name has 1 to 200 bytes");
    config.feed = name;
    refuse_client(&config, "a feed's name has 1 to 200 bytes");
    config.feed = name + 1;
    config.target_count = 0;
    refuse_client(&config, "no relay is named");
    config.targets = bad;
    config.target_count = 2;
    refuse_client(&config, "nowhere");
    config.target_count = 1;
    struct feed_client *client = feed_client_new(loop, &config, &err);
    assert_non_null(client);

    uint8_t *much = xcalloc(1, FEED_WIRE_REQUEST_MAX);
    struct feed_wire_call calls[] = {{.call = much, .call_len = 10},
                                     {.call = much, .call_len = FEED_WIRE_REQUEST_MAX - 1023}};
    assert_int_equal(feed_client_put(client, 7, calls, 2, &err), ERR_ARGUMENT);
    assert_string_equal(err.text, "batch 7, call 1: it has 1047553 bytes, at most 1047552");
    assert_int_equal(feed_client_kept(client), 0);
    calls[1].call_len--;
    assert_int_equal(feed_client_put(client, 7, calls, 2, &err), 0);
    assert_int_equal(feed_client_kept(client), 1);
    feed_client_close(client);
    free(much);
    keypair_free(key);
    keypair_free(other);
    loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_value_of_the_door),
        cmocka_unit_test(test_a_token_has_1_to_1000_characters),
        cmocka_unit_test(test_a_token_that_everybody_reads_is_told),
        cmocka_unit_test(test_each_value_of_a_publisher),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
