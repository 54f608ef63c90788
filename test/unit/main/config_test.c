/* The configuration file, and leadership in it: what each key becomes, and what is refused with
 * which words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "cli.h"
#include "config_scalars.h"
#include "store/conn_info.h"
#include "warnings.h"

static char dir[] = "/tmp/txconfig-XXXXXX";
static char yaml_path[64], key_path[64];

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, 0600), 0);
}

static int setup(void **state)
{
    (void)state;
    if (!mkdtemp(dir))
        return -1;
    snprintf(yaml_path, sizeof(yaml_path), "%s/relay.yaml", dir);
    snprintf(key_path, sizeof(key_path), "%s/alice.key", dir);
    write_file(key_path, "//Alice\n");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(yaml_path);
    unlink(key_path);
    return rmdir(dir);
}

/* Loads a file whose leadership section is this; as a relay that starts does. */
static const char *account_more = ""; /* lines of the account */

static int load(const char *leadership, struct config *config, struct service_config *service,
                struct err *err)
{
    char text[1024];
    snprintf(text, sizeof(text),
             "chain:\n  endpoints:\n    - ws://127.0.0.1:1\n"
             "accounts:\n  - alias: alice\n    scheme: sr25519\n    key_file: %s\n%s"
             "%s%s",
             key_path, account_more, *leadership ? "leadership:\n" : "", leadership);
    write_file(yaml_path, text);
    *service = (struct service_config){0};
    int rc = config_load(&(struct config_flags){.path = yaml_path}, config, err);
    if (rc)
        return rc;
    rc = cli_service_config(config, service, err);
    if (rc)
        config_done(config);
    return rc;
}

static struct service_config accepted(const char *leadership)
{
    struct config config;
    struct service_config service;
    struct err err = {0};
    if (load(leadership, &config, &service, &err))
        fail_msg("%s is refused: %s", leadership, err.text);
    struct service_config copy = service;
    copy.elector = elector_config_defaults(&service.elector);
    cli_service_config_done(&service);
    config_done(&config);
    return copy; /* its pointers are not looked at */
}

static void refused(const char *leadership, const char *words)
{
    struct config config;
    struct service_config service;
    struct err err = {0};
    assert_int_equal(load(leadership, &config, &service, &err), ERR_CONFIG);
    if (!strstr(err.text, words))
        fail_msg("%s\nis refused with '%s', which does not say '%s'", leadership, err.text, words);
    cli_service_config_done(&service); /* what it had read of the keys is freed already */
}

/* The table of docs/config.md. */
static void defaults(void **state)
{
    (void)state;
    struct service_config c = accepted("");
    assert_true(c.verify_blocks);
    assert_true(c.elector.use_lock);
    assert_int_equal(c.elector.heartbeat_ms, 1000);
    assert_int_equal(c.elector.expiry_1_ms, 5000);
    assert_int_equal(c.elector.expiry_2_ms, 20000);
    assert_int_equal(c.elector.margin_ms, 1000);
    assert_int_equal(c.elector.bid_min_ms, 150);
    assert_int_equal(c.elector.bid_max_ms, 450);
    assert_false(c.elector.ring);
    assert_false(c.elector.rotate);
    assert_int_equal(c.rotate_blocks, 0);
    assert_int_equal(c.handover_ms, 0); /* the service's own */
}

static void each_key_has_its_place(void **state)
{
    (void)state;
    struct service_config c = accepted(
        "  heartbeat_ms: 701\n  expiry_1_ms: 7001\n  expiry_2_ms: 30001\n  margin_ms: 1301\n"
        "  bid_min_ms: 101\n  bid_max_ms: 203\n  placement: ring\n  rotate_blocks: 17\n"
        "  handover_ms: 4001\n");
    assert_int_equal(c.elector.heartbeat_ms, 701);
    assert_int_equal(c.elector.expiry_1_ms, 7001);
    assert_int_equal(c.elector.expiry_2_ms, 30001);
    assert_int_equal(c.elector.margin_ms, 1301);
    assert_int_equal(c.elector.bid_min_ms, 101);
    assert_int_equal(c.elector.bid_max_ms, 203);
    assert_true(c.elector.ring);
    assert_true(c.elector.rotate);
    assert_int_equal(c.rotate_blocks, 17);
    assert_int_equal(c.handover_ms, 4001);
}

static void placements(void **state)
{
    (void)state;
    assert_false(accepted("  placement: sticky\n").elector.ring);
    assert_true(accepted("  placement: ring\n").elector.ring);
    assert_false(accepted("  placement: ring\n").elector.rotate);
    assert_true(accepted("  rotate_blocks: 1\n").elector.rotate);
    refused("  placement: rings\n", "leadership.placement 'rings' is not one of: sticky, ring");
    refused("  placement: ' '\n", "leadership.placement ' ' is not one of: sticky, ring");
    assert_false(accepted("  heartbeat_ms: 1000\n").manager.lost_search);
    assert_false(accepted("  lost_commits: wait\n").manager.lost_search);
    assert_true(accepted("  lost_commits: search\n").manager.lost_search);
    refused("  lost_commits: none\n", "leadership.lost_commits 'none' is not one of: wait, search");
}

/* The file of load names one endpoint. */
static void a_quorum_that_nobody_can_reach(void **state)
{
    (void)state;
    static char one[] = "ws://127.0.0.1:1", two[] = "ws://127.0.0.1:2";
    char *endpoints[] = {one, two};
    for (uint32_t count = 1; count <= 2; count++) {
        struct config_file file = {
            .chain = {.endpoints = endpoints, .endpoints_count = count, .quorum = 2}};
        struct service_config service;
        struct err err = {0};
        assert_int_equal(cli_service_config(&(struct config){.file = &file}, &service, &err),
                         ERR_CONFIG);
        assert_non_null(strstr(err.text, count == 1 ? "chain.quorum is 2 and there are 1 endpoints"
                                                    : "no account is given"));
        assert_int_equal(service.quorum, 2);
    }
}

/* The token is one thing: half of it would make another metadata hash. */
static void the_token(void **state)
{
    (void)state;
    static char dot[] = "DOT";
    static uint32_t ten = 10;
    char *endpoint = (char[]){"ws://127.0.0.1:1"};
    for (unsigned given = 0; given < 4; given++) {
        struct config_file file = {.chain = {.endpoints = &endpoint,
                                             .endpoints_count = 1,
                                             .metadata_hash = given & 1,
                                             .token_symbol = given & 1 ? dot : NULL,
                                             .token_decimals = given & 2 ? &ten : NULL}};
        struct config_account account = {.alias = dot, .scheme = dot};
        struct service_config service;
        struct err err = {0};
        file.accounts = &account;
        file.accounts_count = 1;
        assert_int_equal(cli_service_config(&(struct config){.file = &file}, &service, &err),
                         ERR_CONFIG);
        assert_int_equal(service.metadata_hash, given & 1);
        bool half = given == 1 || given == 2;
        assert_true(half == (strstr(err.text, "chain.token_decimals belong together") != NULL));
        assert_true(given != 3 || (service.token.symbol == dot && service.token.decimals == 10));
        assert_true(given == 3 || !service.token.symbol);
        cli_service_config_done(&service);
    }
}

/* A default moves with what it depends on, so that one key alone can be set. */
static void defaults_fit_what_is_set(void **state)
{
    (void)state;
    assert_int_equal(accepted("  expiry_1_ms: 30000\n").elector.expiry_2_ms, 30000);
    assert_int_equal(accepted("  bid_min_ms: 600\n").elector.bid_max_ms, 600);
    struct service_config single = accepted("  expiry_1_ms: 6000\n  expiry_2_ms: 6000\n");
    assert_int_equal(single.elector.expiry_1_ms, single.elector.expiry_2_ms);
}

static void times_that_do_not_fit(void **state)
{
    (void)state;
    refused("  expiry_1_ms: 6000\n  expiry_2_ms: 5999\n",
            "expiry_2 = 5999 ms is shorter than expiry_1 = 6000 ms: make it at least as long");
    refused("  expiry_2_ms: 10999\n", "expiry_2 = 10999 ms is shorter than a submission may take "
                                      "(chain.call_timeout_ms = 10000 ms and "
                                      "margin = 1000 ms): make it at least 11000 ms, or the call's "
                                      "time shorter, or both expiries equal");
    assert_int_equal(accepted("  expiry_2_ms: 11000\n").elector.expiry_2_ms, 11000);
    assert_int_equal(accepted("  expiry_2_ms: 5000\n").elector.expiry_2_ms, 5000);
    refused("  expiry_2_ms: 4000\n", "expiry_2 = 4000 ms is shorter than expiry_1 = 5000 ms");
    refused("  margin_ms: 5000\n", "margin = 5000 ms leaves nothing of expiry_1 = 5000 ms: the "
                                   "gate would never open; make the margin smaller");
    refused("  expiry_1_ms: 900\n", "margin = 1000 ms leaves nothing of expiry_1 = 900 ms");
    refused(
        "  heartbeat_ms: 3000\n",
        "heartbeat = 3000 ms is too long for expiry_1 = 5000 ms less margin = 1000 ms: one lost "
        "renewal would end the leadership; use at most 1666 ms");
    refused("  bid_min_ms: 451\n  bid_max_ms: 450\n",
            "bid_min = 451 ms is longer than bid_max = 450 ms");
    /* What the last message but one allows is accepted. */
    assert_int_equal(accepted("  heartbeat_ms: 1666\n").elector.heartbeat_ms, 1666);
    assert_int_equal(accepted("  bid_min_ms: 450\n  bid_max_ms: 450\n").elector.bid_min_ms, 450);
    assert_int_equal(accepted("  margin_ms: 2600\n").elector.margin_ms, 2600);
    refused("  margin_ms: 2601\n", "heartbeat = 1000 ms is too long");
}

/* With file, line and column. */
static void values_that_are_none(void **state)
{
    (void)state;
    static const char *const keys[] = {"heartbeat_ms",  "expiry_1_ms", "expiry_2_ms",
                                       "margin_ms",     "bid_min_ms",  "bid_max_ms",
                                       "rotate_blocks", "handover_ms"};
    static const char *const values[] = {"soon", "-1", "4294967296"};
    for (size_t k = 0; k < ARRAY_LEN(keys); k++)
        for (size_t v = 0; v < ARRAY_LEN(values); v++) {
            char text[64];
            snprintf(text, sizeof(text), "  %s: %s\n", keys[k], values[v]);
            refused(text, "line: 9, column: ");
        }
    /* libcyaml alone would take the digits and leave the rest. */
    static const char *const tails[] = {"5s", "1.5", "010", "0x10", "1e3", "1_000"};
    for (size_t k = 0; k < ARRAY_LEN(keys); k++)
        for (size_t v = 0; v < ARRAY_LEN(tails); v++) {
            char text[64], words[96];
            snprintf(text, sizeof(text), "  %s: %s\n", keys[k], tails[v]);
            snprintf(words, sizeof(words), "leadership.%s '%s' is not a whole number", keys[k],
                     tails[v]);
            refused(text, words);
        }
    refused("  heartbeat_ms: 1000\nmanager:\n  era_period: 64 blocks\n",
            "manager.era_period '64 blocks'");
    assert_int_equal(accepted("  rotate_blocks: 0\n  heartbeat_ms: '900'\n").elector.heartbeat_ms,
                     900);
    refused("  heartbeat: 1000\n", "heartbeat");
    refused("  heartbeat: 1000\n", "docs/config.md lists every key");
}

static int load_lines(const char *lines, struct err *err)
{
    struct config config;
    write_file(yaml_path, lines);
    *err = (struct err){0};
    int rc = config_load(&(struct config_flags){.path = yaml_path}, &config, err);
    if (rc == 0)
        config_done(&config);
    return rc;
}

static bool out_of_range(const struct config_range *r, uint64_t value)
{
    struct err err;
    char lines[120];
    snprintf(lines, sizeof(lines), "%s:\n  %s: %llu\n%s", r->section, r->key,
             (unsigned long long)value, !strcmp(r->section, "database") ? "  url: x\n" : "");
    if (load_lines(lines, &err) == 0)
        return false;
    assert_int_equal(err.code, ERR_CONFIG);
    return strstr(err.text, "it must be from") != NULL && strstr(err.text, r->key) != NULL;
}

/* Every number at its bounds, and one beyond: a value is refused, never replaced by the default. */
static void numbers_out_of_their_range(void **state)
{
    (void)state;
    size_t count = 0;
    for (const struct config_range *r; (r = config__range(count)); count++) {
        assert_true(r->least < r->most && r->most < UINT32_MAX);
        assert_false(out_of_range(r, r->least));
        assert_false(out_of_range(r, r->most));
        assert_true(out_of_range(r, (uint64_t)r->most + 1));
        if (r->least > 0)
            assert_true(out_of_range(r, r->least - 1));
    }
    assert_int_equal(count, 24);
}

/* A file in which only this key has a value of ours. */
static int load_key(const struct config_key *k, const char *value, struct err *err)
{
    static const char *const needed[][3] = {{"database", "url", "host=h"},
                                            {"accounts", "alias", "alice"},
                                            {"accounts", "scheme", "sr25519"}};
    struct buf text = {0};
    const char *indent = !*k->section ? "" : !strcmp(k->section, "accounts") ? "    " : "  ";
    buf_printf(&text, "%s%s", k->section, *k->section ? ":\n" : "");
    buf_puts(&text, strlen(indent) == 4 ? "  -\n" : "");
    buf_printf(&text, "%s%s: %s\n", indent, k->key, value);
    for (size_t i = 0; i < ARRAY_LEN(needed); i++)
        if (!strcmp(needed[i][0], k->section) && strcmp(needed[i][1], k->key) != 0)
            buf_printf(&text, "%s%s: %s\n", indent, needed[i][1], needed[i][2]);
    int rc = load_lines(buf_str(&text), err);
    buf_done(&text);
    return rc;
}

struct seen_keys {
    size_t all, booleans;
};

static void one_boolean(void *arg, const struct config_key *k)
{
    static const char *const values[] = {"flase", "yes", "on", "1", "0", "True", "TRUE", "' '"};
    struct seen_keys *seen = arg;
    struct err err;
    char words[80];
    if (!k->boolean)
        return;
    seen->booleans++;
    snprintf(words, sizeof(words), "%s.%s is '", k->section, k->key);
    for (size_t v = 0; v < ARRAY_LEN(values); v++) {
        assert_int_equal(load_key(k, values[v], &err), ERR_CONFIG);
        assert_non_null(strstr(err.text, words));
        assert_non_null(strstr(err.text, "it must be true or false"));
    }
    assert_int_equal(load_key(k, "false", &err), 0);
}

static void booleans_that_are_none(void **state)
{
    (void)state;
    struct seen_keys seen = {0};
    config_keys(one_boolean, &seen);
    assert_true(seen.booleans >= 2);
}

static void assert_refused(const struct config_key *k, const char *value, const char *secret)
{
    struct err err;
    if (load_key(k, value, &err) == 0)
        fail_msg("%s.%s: %.20s is accepted", k->section, k->key, value);
    if (!strstr(err.text, "(line: ") && !strstr(err.text, k->key))
        fail_msg("%s.%s: %.20s is refused with '%s'", k->section, k->key, value, err.text);
    if (secret && strstr(err.text, secret))
        fail_msg("%s.%s is shown: '%s'", k->section, k->key, err.text);
}

/* No value, a value of another kind, an endless one: refused with its place, and never shown. */
static void one_key(void *arg, const struct config_key *k)
{
    char endless[5000] = "";
    struct err err;
    ((struct seen_keys *)arg)->all++;
    memset(endless, 'x', sizeof(endless) - 1);
    assert_refused(k, endless, k->boolean || k->number ? NULL : "xxxx");
    assert_refused(k, "", NULL);
    assert_refused(k, "''", NULL);
    assert_refused(k, "{hunter2: 1}", "hunter2");
    assert_refused(k, "!!binary [", NULL);
    assert_refused(k, "*nowhere", NULL);
    if (!k->list)
        assert_refused(k, "[hunter2]", "hunter2");
    assert_int_equal(load_key(k, "a\xff", &err), ERR_CONFIG); /* no UTF-8: libyaml gives no place */
    if (load_key(k, "\"a\\e[2J%n%s\"", &err) != 0 && !strstr(err.text, "(line: "))
        assert_non_null(strstr(err.text, k->key));
}

static void every_key_at_its_worst(void **state)
{
    (void)state;
    struct seen_keys seen = {0};
    config_keys(one_key, &seen);
    assert_true(seen.all >= 35);
}

static void collect(void *arg, const char *what, const char *text)
{
    buf_printf(arg, "%s: %s\n", what, text);
}

/* A password in a file that others can read is refused; as a flag it always is. */
static void passwords(void **state)
{
    (void)state;
    static const char *const with[] = {"host=h password = hunter2",
                                       "host=h password='two words'",
                                       "host=h password=a\\ b",
                                       "postgresql://u:hunter2@h/db",
                                       "postgresql://h/db?password=hunter2",
                                       "host=h sslpassword=hunter2"};
    struct config config;
    struct err err;
    for (size_t i = 0; i < ARRAY_LEN(with); i++) {
        struct conn_info info;
        conn_info_read(with[i], &info);
        assert_true(info.has_password);
        const char *shown = buf_str(&info.text);
        assert_null(strstr(shown, "hunter2"));
        assert_null(strstr(shown, "two"));
        assert_null(strstr(shown, "a b"));
        assert_non_null(strstr(shown, "host=h"));
        conn_info_done(&info);
        char lines[160];
        snprintf(lines, sizeof(lines), "database:\n  url: |-\n    %s\n", with[i]);
        assert_int_equal(load_lines(lines, &err), 0);
        assert_int_equal(chmod(yaml_path, 0640), 0);
        assert_int_equal(config_load(&(struct config_flags){.path = yaml_path}, &config, &err), 0);
        config_done(&config);
        assert_int_equal(chmod(yaml_path, 0644), 0);
        assert_int_equal(config_load(&(struct config_flags){.path = yaml_path}, &config, &err),
                         ERR_CONFIG);
        assert_non_null(strstr(err.text, "holds a database password, and its mode 644"));
        err = (struct err){0};
        assert_int_equal(config_load(&(struct config_flags){.database = with[i]}, &config, &err),
                         ERR_CONFIG);
        assert_non_null(strstr(err.text, "--database holds a password"));
        assert_null(strstr(err.text, "hunter2"));
    }
    assert_int_equal(load_lines("database:\n  url: host=h user=u\n", &err), 0);
    assert_int_equal(chmod(yaml_path, 0644), 0);
    assert_int_equal(config_load(&(struct config_flags){.path = yaml_path}, &config, &err), 0);
    config_done(&config);
}

/* libpq ends a password where it should not, or quotes what it cannot parse: no part is shown. */
static void broken_urls(void **state)
{
    (void)state;
    static const struct {
        const char *url, *says;
    } cases[] = {
        {"postgresql://u:hun@ter2@h:1/db", "write %40 or %2F"},
        {"postgres://u:hun/ter2@h:1/db", "write %40 or %2F"},
        {"postgresql://u:hun/ter2@h:1/db?sslmode=disable", "write %40 or %2F"},
        {"postgresql://u:hun%zzter2@h:1/db", "does not parse"},
        {"host=h password=hun ter2", "does not parse"},
        {"host=h password='hunter2", "does not parse"},
        {"host=h password=hun ter2=x", "does not parse"},
        {"postgres//u:hunter2@h/db", "does not parse"},
        {"host=h pass=hunter2", "invalid connection option \"pass\""},
    };
    static const char *const keys[] = {"url", "work_url", "listen_url"};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
            struct err err;
            char lines[160], words[40];
            snprintf(lines, sizeof(lines), "database:\n%s  %s: |-\n    %s\n",
                     k ? "  url: host=h\n" : "", keys[k], cases[i].url);
            snprintf(words, sizeof(words), "database.%s: connection string", keys[k]);
            assert_int_equal(load_lines(lines, &err), ERR_CONFIG);
            if (!strstr(err.text, words) || !strstr(err.text, cases[i].says) ||
                strstr(err.text, "hun") || strstr(err.text, "ter2"))
                fail_msg("%s is refused with '%s'", cases[i].url, err.text);
            struct conn_info info;
            conn_info_read(cases[i].url, &info);
            assert_string_equal(buf_str(&info.text), "");
            conn_info_done(&info);
        }
    struct err err;
    assert_int_equal(conn_info_check("postgresql://u:h%40%2F@[::1]:1/db?options=a%3Db@c", &err), 0);
    assert_int_equal(conn_info_check("postgresql:///db?host=/run/a@b", &err), 0);
    assert_int_equal(conn_info_check("host=@abstract user=a@b", &err), 0);
}

/* A service names the host where the string does not. */
static void services(void **state)
{
    (void)state;
    char file[80];
    struct conn_info info;
    snprintf(file, sizeof(file), "%s/service.conf", dir);
    write_file(file, "[far]\nhost=db\npassword=hunter2\n[safe]\nhost=db\nsslmode=verify-full\n"
                     "[near]\nhost=/run/pg\n");
    assert_int_equal(setenv("PGSERVICEFILE", file, 1), 0);
    assert_int_equal(setenv("PGSERVICE", "near", 1), 0);
    conn_info_read("service=far", &info);
    assert_true(info.leaves_host && !info.verifies_server && !info.has_password);
    assert_string_equal(buf_str(&info.text), "service=far");
    conn_info_done(&info);
    conn_info_read("service=safe", &info);
    assert_true(info.leaves_host && info.verifies_server);
    conn_info_done(&info);
    conn_info_read("service=far host=127.0.0.1", &info);
    assert_false(info.leaves_host);
    conn_info_done(&info);
    conn_info_read("dbname=x", &info);
    assert_false(info.leaves_host);
    conn_info_done(&info);
    assert_string_equal(getenv("PGSERVICE"), "near");
    assert_int_equal(unsetenv("PGSERVICE"), 0);
    conn_info_read("service=far", &info);
    conn_info_done(&info);
    assert_null(getenv("PGSERVICE"));
    assert_int_equal(unsetenv("PGSERVICEFILE"), 0);
    unlink(file);
}

/* In a process that may lock no page: root may lock any. Sanitizers replace mlock. */
static void unlocked_memory(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct buf text = {0};
        struct rlimit none = {0, 0};
        struct keypair *key = NULL;
        struct err err;
        bool ready = setrlimit(RLIMIT_MEMLOCK, &none) == 0 && (getuid() != 0 || setuid(65534) == 0);
        if (ready && mlock(dir, sizeof(dir)) == 0)
            _exit(2);
        ready = ready && keypair_from_uri("//Alice", KEY_SR25519, &key, &err) == 0;
        warnings_each(&(struct config_file){0}, &(struct service_config){0}, collect, &text);
        _exit(ready && strstr(buf_str(&text), "secrets are not locked in memory") ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 2)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Every warning, and a configuration that has none. */
static void warnings(void **state)
{
    (void)state;
    static const struct {
        const char *database, *endpoint, *genesis, *wants;
        bool insecure;
    } cases[] = {
        {"host=/run/pg", "ws://127.0.0.1:1", "0x11", "", false},
        {"host=localhost", "ws://localhost:1", "0x11", "", false},
        {"host=127.0.0.5 sslmode=disable", "wss://h:1", "0x11", "", false},
        {"host=db sslmode=verify-full", "ws://[::1]:1", "0x11", "", false},
        {"host=db", "wss://h:1", "0x11", "database.url: sslmode=prefer does not verify", false},
        {"host=/run/pg,db sslmode=require", "wss://h:1", "0x11", "sslmode=require does not verify",
         false},
        {"postgresql://db/x", "wss://h:1", "0x11", "sslmode=prefer does not verify", false},
        {NULL, "ws://203.0.113.7:1", "0x11", "ws://203.0.113.7:1 is not encrypted", false},
        {NULL, "ws://localhost.evil.example:1", "0x11", "is not encrypted", false},
        {NULL, "ws://127.evil.example:1", "0x11", "is not encrypted", false},
        {"host=127.evil.example", "wss://h:1", "0x11", "does not verify the server", false},
        {NULL, "wss://h:1", NULL, "chain.genesis is not set", false},
        {NULL, "wss://h:1", "0x11", "chain.insecure accepts every certificate", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *endpoints[] = {(char *)(uintptr_t)cases[i].endpoint};
        struct config_file f = {.database.url = (char *)(uintptr_t)cases[i].database,
                                .chain = {.endpoints = endpoints,
                                          .endpoints_count = 1,
                                          .genesis = (char *)(uintptr_t)cases[i].genesis,
                                          .insecure = cases[i].insecure}};
        struct service_config service = {0};
        struct buf text = {0};
        warnings_each(&f, &service, collect, &text);
        if (!*cases[i].wants)
            assert_string_equal(buf_str(&text), "");
        else if (!strstr(buf_str(&text), cases[i].wants))
            fail_msg("case %zu: '%s' lacks '%s'", i, buf_str(&text), cases[i].wants);
        buf_done(&text);
    }
    struct config config;
    struct service_config service;
    struct buf text = {0};
    struct err err;
    assert_int_equal(load("", &config, &service, &err), 0);
    warnings_each(config.file, &service, collect, &text);
    assert_non_null(
        strstr(buf_str(&text), "account alice: its key comes from the development phrase"));
    buf_done(&text);
    cli_service_config_done(&service);
    config_done(&config);
}

static void lock_keys(void **state)
{
    (void)state;
    static const char *const none[] = {"5s",
                                       "1.5",
                                       "010",
                                       "0x10",
                                       "-0",
                                       "-01",
                                       "1e3",
                                       "-",
                                       " ",
                                       "+1",
                                       "9223372036854775808",
                                       "-9223372036854775809"};
    char text[64], words[96];
    account_more = text;
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        snprintf(text, sizeof(text), "    lock_key: '%s'\n", none[i]);
        snprintf(words, sizeof(words), "lock_key '%s' of 'alice' is not a whole number", none[i]);
        refused("", words);
    }
    static const struct {
        const char *text;
        int64_t key;
    } good[] = {{"0", 0},
                {"7", 7},
                {"-7", -7},
                {"9223372036854775807", INT64_MAX},
                {"-9223372036854775808", INT64_MIN}};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct config config;
        struct service_config service;
        struct err err = {0};
        snprintf(text, sizeof(text), "    lock_key: %s\n", good[i].text);
        assert_int_equal(load("", &config, &service, &err), 0);
        assert_true(service.accounts[0].has_lock_key);
        assert_true(service.accounts[0].lock_key == good[i].key);
        cli_service_config_done(&service);
        config_done(&config);
    }
    account_more = "";
}

static void files_that_are_none(void **state)
{
    (void)state;
    static const char *const files[][2] = {
        {"", "is empty"},
        {"# a comment\n", "is empty"},
        {"- a\n", "must be a section with keys"},
        {"name: caf\xe9\n", "the byte 0xe9 is no text in UTF-8 (line: 1, column: 10)"},
        {"name: a\n# \xff\n", "the byte 0xff is no text in UTF-8 (line: 2, column: 3)"},
        {"name: a\nlog_level: \x01\n", "the byte 0x01 is no text in UTF-8 (line: 2, column: 12)"},
        {"\xff\xfe", "the byte 0xff is no text in UTF-8 (line: 1, column: 1)"},
        {"name: a\n---\nname: b\n", "a second document begins here (line: 2,"},
        {"---\nname: a\n---\n", "a second document begins here (line: 3,"},
        {"--- # x\r\nname: a\r\n---\r\nname: b\r\n", "a second document begins here (line: 3,"},
        {"name: a\n...\n# c\nname: b\n", "a second document begins here (line: 4,"},
        {"name: >\n  a\n--- b\n", "a second document begins here (line: 3,"}};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct config config;
        struct err err = {0};
        write_file(yaml_path, files[i][0]);
        assert_int_equal(config_load(&(struct config_flags){.path = yaml_path}, &config, &err),
                         ERR_CONFIG);
        if (!strstr(err.text, files[i][1]))
            fail_msg("'%s' is refused with '%s'", files[i][0], err.text);
    }
    struct config config;
    struct err err = {0};
    assert_int_equal(config_load(&(struct config_flags){.path = dir}, &config, &err), ERR_CONFIG);
    assert_non_null(strstr(err.text, "cannot be read"));
}

/* Marks of one document, and texts that look like a second one. */
static void one_document(void **state)
{
    (void)state;
    static const char *const files[] = {"%YAML 1.1\n---\nname: a\n...\n# the end\n\n",
                                        "# c\n---\nname: \"a\"\n", "name: a # ---\n",
                                        "name: >\n  a\n  ---\n", "\xef\xbb\xbfname: \xc3\xa9\n"};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct config config;
        struct err err = {0};
        write_file(yaml_path, files[i]);
        if (config_load(&(struct config_flags){.path = yaml_path}, &config, &err))
            fail_msg("'%s' is refused with '%s'", files[i], err.text);
        config_done(&config);
    }
}

/* ---- the installed example ---- */

/* Its lines; `all`: with those that "#: " hides. */
static char *example(bool all)
{
    struct buf text = {0};
    char line[400];
    FILE *f = fopen(EXAMPLE, "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        buf_puts(&text, all && !strncmp(line, "#: ", 3) ? line + 3 : line);
    fclose(f);
    char *copy = xstrdup(buf_str(&text));
    buf_done(&text);
    return copy;
}

static void load_text(const char *text, struct config *ret)
{
    struct err err = {0};
    write_file(yaml_path, text);
    if (config_load(&(struct config_flags){.path = yaml_path}, ret, &err))
        fail_msg("%s", err.text);
}

static void in_example(void *arg, const struct config_key *k)
{
    char key[60];
    snprintf(key, sizeof(key), " %s:", k->key);
    const char *text = arg;
    if (!strstr(text, key) && strncmp(text, key + 1, strlen(key) - 1) != 0)
        fail_msg("the example has no %s.%s", k->section, k->key);
}

static void count_change(void *arg, const char *key)
{
    buf_printf(arg, "%s ", key);
}

/* It is read as it is and with every key, and has every key. */
static void the_example(void **state)
{
    (void)state;
    struct config as_is, whole;
    struct buf spaced = {0};
    char *text = example(false), *all = example(true);
    load_text(text, &as_is);
    load_text(all, &whole);
    for (const char *at = all; *at; at++) /* a key at the top begins a line */
        buf_put(&spaced, *at == '\n' ? "\n " : at, *at == '\n' ? 2 : 1);
    config_keys(in_example, (void *)buf_str(&spaced));
    assert_string_equal(whole.file->accounts[0].alias, "payouts");
    config_done(&as_is);
    config_done(&whole);
    buf_done(&spaced);
    free(text);
    free(all);
}

/* A reload names each value that differs, and only those. */
static void changes(void **state)
{
    (void)state;
    static const char *const pairs[][3] = {
        {"log_level: info", "log_level: debug", "log_level "},
        {"window: 256", "window: 128", "manager.window "},
        {"insecure: false", "insecure: true", "chain.insecure "},
        {"use_lock: true", "use_lock: false", "database.use_lock "},
        {"era_period: 64\n", "era_period: 32\n", "manager.era_period "},
        {"    - ws://127.0.0.1:9944\n", "    - ws://127.0.0.1:9945\n", "chain.endpoints "},
        {"    - ws://127.0.0.1:9944\n", "    - ws://127.0.0.1:9944\n    - ws://b\n",
         "chain.endpoints "},
        {"explicit: \"0x00\"", "explicit: \"0x01\"", "chain.extensions "},
        {"alias: payouts", "alias: orders", "accounts "},
        {"    lock_key: \"4711\"\n", "", "accounts "},
        {"  placement: sticky\n", "", "leadership.placement "},
        {"sites: [dublin, frankfurt]", "sites: [frankfurt]", "accounts "},
        {"targets: [relay-1.dublin", "targets: [relay-3.dublin", "sites.peers "},
        {"approvals: 0", "approvals: 1", "sites.approvals "},
        {"window: 256", "window: 256", ""},
    };
    char *all = example(true);
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        const char *at = strstr(all, pairs[i][0]);
        struct config from, to;
        struct buf text = {0}, found = {0};
        assert_non_null(at);
        buf_put(&text, all, (size_t)(at - all));
        buf_puts(&text, pairs[i][1]);
        buf_puts(&text, at + strlen(pairs[i][0]));
        load_text(all, &from);
        load_text(buf_str(&text), &to);
        config_changes(&from, &to, count_change, &found);
        assert_string_equal(buf_str(&found), pairs[i][2]);
        buf_clear(&found);
        config_changes(&to, &from, count_change, &found);
        assert_string_equal(buf_str(&found), pairs[i][2]);
        config_done(&from);
        config_done(&to);
        buf_done(&text);
        buf_done(&found);
    }
    free(all);
    log_set_level(LOG_LEVEL_INFO);
}

/* What is warned of with this text behind the accounts, of which one has sites or none has. */
static void warned(const char *sites, const char *more, struct buf *ret)
{
    static const char *const certificates =
        "  cert_file: /c\n  key_file: /k\n  ca_file: /a\n  listen: tcp:127.0.0.1:1\n";
    struct config config;
    struct err err;
    char text[1024];
    snprintf(text, sizeof(text),
             "database:\n  url: host=/run/pg\nchain:\n  endpoints:\n    - ws://127.0.0.1:1\n"
             "sites:\n  name: north\n%s  peers:\n    - name: south\n      targets: [a:1]\n"
             "accounts:\n  - alias: alice\n    scheme: sr25519\n    key_file: %s\n%s%s",
             certificates, key_path, sites, more);
    write_file(yaml_path, text);
    if (config_load(&(struct config_flags){.path = yaml_path}, &config, &err))
        fail_msg("%s: %s", more, err.text);
    warnings_each(config.file, &(struct service_config){0}, collect, ret);
    config_done(&config);
}

/* Every key of managers: accounts that have sites have none. A new one fails until it is there. */
static void without_effect_at_sites(void **state)
{
    (void)state;
    static const char *const sites = "    sites: [north, south]\n";
    const struct config_range *r;
    size_t count = 0;
    for (size_t i = 0; (r = config__range(i)); i++) {
        char more[80], wants[80];
        struct buf text = {0};
        if (strcmp(r->section, "manager") != 0)
            continue;
        snprintf(more, sizeof(more), "manager:\n  %s: 64\n", r->key);
        snprintf(wants, sizeof(wants), "manager.%s has no effect on account alice", r->key);
        warned("", more, &text);
        assert_null(strstr(buf_str(&text), "has no effect"));
        warned(sites, more, &text);
        if (!strstr(buf_str(&text), wants))
            fail_msg("%s: '%s'", wants, buf_str(&text));
        buf_done(&text);
        count++;
    }
    assert_int_equal(count, 6);
    struct buf text = {0};
    warned(sites, "leadership:\n  lost_commits: wait\n", &text);
    assert_null(strstr(buf_str(&text), "has no effect"));
    warned(sites, "leadership:\n  lost_commits: search\n", &text);
    assert_non_null(strstr(buf_str(&text), "leadership.lost_commits has no effect on account"));
    buf_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example),
        cmocka_unit_test(changes),
        cmocka_unit_test(defaults),
        cmocka_unit_test(each_key_has_its_place),
        cmocka_unit_test(placements),
        cmocka_unit_test(defaults_fit_what_is_set),
        cmocka_unit_test(times_that_do_not_fit),
        cmocka_unit_test(values_that_are_none),
        cmocka_unit_test(a_quorum_that_nobody_can_reach),
        cmocka_unit_test(the_token),
        cmocka_unit_test(numbers_out_of_their_range),
        cmocka_unit_test(booleans_that_are_none),
        cmocka_unit_test(every_key_at_its_worst),
        cmocka_unit_test(passwords),
        cmocka_unit_test(broken_urls),
        cmocka_unit_test(services),
        cmocka_unit_test(warnings),
        cmocka_unit_test(without_effect_at_sites),
        cmocka_unit_test(unlocked_memory),
        cmocka_unit_test(lock_keys),
        cmocka_unit_test(files_that_are_none),
        cmocka_unit_test(one_document),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
