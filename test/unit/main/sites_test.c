/* The sites of accounts in the configuration: what becomes of them in the service's values, and
 * which mistakes are refused with which words. */
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

#include "base/check.h"
#include "site/serve.h"

static char path[] = "/tmp/txsites-XXXXXX";

static const char good[] = "database:\n  url: host=h\n"
                           "sites:\n"
                           "  name: frankfurt\n"
                           "  listen: tcp:127.0.0.1:9946\n"
                           "  cert_file: /site.pem\n"
                           "  key_file: /site.key\n"
                           "  ca_file: /ca.pem\n"
                           "  range_blocks: 50\n"
                           "  approvals: 1\n"
                           "  era_blocks: 128\n"
                           "  silence_is_down: true\n"
                           "  peers:\n"
                           "    - name: dublin\n"
                           "      targets: [d1:1, d2:1]\n"
                           "    - name: oslo\n"
                           "      targets: [o1:1]\n"
                           "accounts:\n"
                           "  - alias: alice\n"
                           "    scheme: sr25519\n"
                           "    sites: [oslo, frankfurt, dublin]\n"
                           "    sites_policy: sticky\n"
                           "  - alias: bob\n"
                           "    scheme: sr25519\n"
                           "  - alias: carol\n"
                           "    scheme: sr25519\n"
                           "    sites: [frankfurt, dublin]\n";

struct loaded {
    struct config config;
    struct service_config service;
    struct site_serve sites;
};

/* `good` with `from` in place of `to`. */
static int load(const char *from, const char *to, struct loaded *ret, struct err *err)
{
    struct buf text = {0};
    const char *at = strstr(good, from);
    assert_non_null(at);
    buf_put(&text, good, (size_t)(at - good));
    buf_puts(&text, to);
    buf_puts(&text, at + strlen(from));
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(buf_str(&text), f) >= 0);
    assert_int_equal(fclose(f), 0);
    buf_done(&text);
    *ret = (struct loaded){0};
    *err = (struct err){0};
    int rc = config_load(&(struct config_flags){.path = path}, &ret->config, err);
    return rc ? rc : site_serve_fill(&ret->sites, ret->config.file, &ret->service, err);
}

static void unload(struct loaded *l)
{
    site_serve_done(&l->sites);
    if (l->config.file)
        config_done(&l->config);
}

static void each_key_has_its_place(void **state)
{
    (void)state;
    struct loaded l;
    struct err err;
    assert_int_equal(load("", "", &l, &err), 0);
    const struct sites_config *c = l.service.sites;
    assert_string_equal(c->self, "frankfurt");
    assert_string_equal(c->listen, "tcp:127.0.0.1:9946");
    assert_null(c->address);
    assert_string_equal(c->cert_file, "/site.pem");
    assert_string_equal(c->key_file, "/site.key");
    assert_string_equal(c->ca_file, "/ca.pem");
    assert_int_equal(c->peer_count, 2);
    assert_string_equal(c->peers[0].name, "dublin");
    assert_int_equal(c->peers[0].target_count, 2);
    assert_string_equal(c->peers[0].targets[1], "d2:1");
    assert_int_equal(c->account_count, 2); /* bob has no sites */
    const struct sites_account *a = &c->accounts[0];
    static const char *const names[] = {"dublin", "frankfurt", "oslo"};
    assert_string_equal(a->account, "alice");
    assert_int_equal(a->count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(a->names[i], names[i]);
    assert_true(a->sticky && a->silence_is_down && !c->accounts[1].sticky);
    assert_int_equal(a->range_blocks, 50);
    assert_int_equal(a->approvals, 1);
    assert_int_equal(a->era_blocks, 128);
    assert_string_equal(c->accounts[1].account, "carol");
    unload(&l);
}

static void mistakes_are_refused(void **state)
{
    (void)state;
    static const char *const mistakes[][3] = {
        {"database:\n  url: host=h\n", "", "there is no database"},
        {"  name: frankfurt\n", "", "give sites.name"},
        {"  listen: tcp:127.0.0.1:9946\n", "", "give sites.name"},
        {"name: frankfurt", "name: \"a b\"", "'a b' is no name of a site"},
        {"name: frankfurt", "name: -a", "'-a' is no name of a site"},
        {"name: dublin", "name: \"d\\xfcblin\"", "is no name of a site"},
        {"  cert_file: /site.pem\n", "", "cert_file, key_file and ca_file are all needed"},
        {"  key_file: /site.key\n", "", "cert_file, key_file and ca_file are all needed"},
        {"  ca_file: /ca.pem\n", "", "cert_file, key_file and ca_file are all needed"},
        {"name: oslo", "name: frankfurt", "frankfurt is this site itself"},
        {"name: oslo", "name: dublin", "two sites have the name dublin"},
        {"[oslo, frankfurt, dublin]", "[oslo, dublin]", "frankfurt, is among them"},
        {"[oslo, frankfurt, dublin]", "[oslo, frankfurt, bergen]", "site bergen is not"},
        {"[oslo, frankfurt, dublin]", "[oslo, frankfurt, oslo]", "each once"},
        {"[frankfurt, dublin]", "[frankfurt]", "approvals is 1"},
        {"approvals: 1", "approvals: 32", "from 0 to 31"},
        {"range_blocks: 50", "range_blocks: 0", "from 1 to 1000000"},
        {"range_blocks: 50", "range_blocks: 5m", "is not a whole number"},
        {"era_blocks: 128", "era_blocks: 15", "from 16 to 4096"},
        {"silence_is_down: true", "silence_is_down: yes", "must be true or false"},
        {"sites_policy: sticky", "sites_policy: ring", "is not one of: rotate, sticky"},
        {"      targets: [o1:1]\n", "", "targets"},
    };
    for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
        struct loaded l;
        struct err err;
        if (load(mistakes[i][0], mistakes[i][1], &l, &err) != ERR_CONFIG)
            fail_msg("'%s' in place of '%s' is accepted", mistakes[i][1], mistakes[i][0]);
        if (!strstr(err.text, mistakes[i][2]))
            fail_msg("'%s' is refused with '%s'", mistakes[i][1], err.text);
        assert_null(l.service.sites);
        unload(&l);
    }
}

/* Nobody would see that a section has no effect. */
static void a_section_without_accounts_is_refused(void **state)
{
    (void)state;
    struct loaded l;
    struct err err;
    const char *sites = strstr(good, "accounts:");
    assert_int_equal(load(sites, "", &l, &err), ERR_CONFIG);
    assert_non_null(strstr(err.text, "no account has them"));
    unload(&l);
    struct config_file none = {0};
    struct site_serve s;
    struct service_config service = {0};
    assert_int_equal(site_serve_fill(&s, &none, &service, &err), 0);
    assert_null(service.sites);
    site_serve_done(&s);
}

static int make_file(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_key_has_its_place),
        cmocka_unit_test(mistakes_are_refused),
        cmocka_unit_test(a_section_without_accounts_is_refused),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
