/* Every value of the configuration of sites that can never be right is refused, by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/check.h"
#include "relay/sites_config.h"

static const char *const targets[] = {"127.0.0.1:1"};
static const char *const names[] = {"a", "b"};
static struct sites_peer peers[2];
static struct sites_account accounts[2];

static struct sites_config good(void)
{
    peers[0] = (struct sites_peer){"b", targets, 1};
    peers[1] = (struct sites_peer){"c", targets, 1};
    accounts[0] = (struct sites_account){.account = "alice", .names = names, .count = 2};
    accounts[1] = (struct sites_account){.account = "bob", .names = names, .count = 2};
    return (struct sites_config){.self = "a",
                                 .listen = "tcp:127.0.0.1:1",
                                 .cert_file = "a.pem",
                                 .key_file = "a.key",
                                 .ca_file = "ca.pem",
                                 .peers = peers,
                                 .peer_count = 2,
                                 .accounts = accounts,
                                 .account_count = 2};
}

static void refuses(const struct sites_config *c, const char *words)
{
    struct err err = {0};
    assert_int_equal(sites_config_check(c, &err), ERR_CONFIG);
    if (!strstr(err.text, words))
        fail_msg("'%s' does not say '%s'", err.text, words);
}

static void test_a_good_one_is_taken(void **state)
{
    struct err err = {0};
    struct sites_config c = good();
    (void)state;
    assert_int_equal(sites_config_check(&c, &err), 0);
}

static void test_what_is_missing(void **state)
{
    struct sites_config c = good();
    (void)state;
    c.listen = NULL;
    refuses(&c, "where it takes messages");
    c = good();
    c.self = NULL;
    refuses(&c, "this site's name");
    const char **files[] = {&c.cert_file, &c.key_file, &c.ca_file};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        c = good();
        *files[i] = NULL;
        refuses(&c, "cert_file, key_file and ca_file");
    }
}

static void test_peers(void **state)
{
    struct sites_config c = good();
    (void)state;
    peers[1].name = "a";
    refuses(&c, "site a is this site itself");
    c = good();
    peers[1].name = "b";
    refuses(&c, "two sites have the name b");
    c = good();
    peers[1].target_count = 0;
    refuses(&c, "site c has no address");
}

static void test_members(void **state)
{
    static const char *const stranger[] = {"a", "x"}, *const unordered[] = {"b", "a"},
                             *const others[] = {"b", "c"};
    struct sites_config c = good();
    (void)state;
    accounts[1].names = stranger;
    refuses(&c, "account bob: site x is not in the list");
    c = good();
    accounts[1].names = unordered;
    refuses(&c, "account bob: site a: the names are in order");
    c = good();
    accounts[1].names = others;
    refuses(&c, "this one, a, is among them");
    c = good();
    accounts[1].account = "alice";
    refuses(&c, "account alice is there twice");
}

static void test_policies(void **state)
{
    static const uint32_t eras[] = {15, 4097};
    struct sites_config c = good();
    (void)state;
    accounts[0].approvals = 2;
    refuses(&c, "approvals is 2, and there are 1 other sites");
    for (size_t i = 0; i < ARRAY_LEN(eras); i++) {
        c = good();
        accounts[0].era_blocks = eras[i];
        refuses(&c, "it must be 16 to 4096");
    }
    c = good();
    accounts[0].range_blocks = 1000001;
    refuses(&c, "it must be 1 to 1000000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_good_one_is_taken),
        cmocka_unit_test(test_what_is_missing),
        cmocka_unit_test(test_peers),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_policies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
