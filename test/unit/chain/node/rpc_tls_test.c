/* wss: whose certificate is taken and whose is not. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "support_rpc.h"

/* ---- TLS ---- */

static char tls_dir[] = "/tmp/txrelay-rpc-test-XXXXXX";

static void shell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void shell(const char *fmt, ...)
{
    char *line = NULL;
    va_list ap;
    va_start(ap, fmt);
    INVARIANT(vasprintf(&line, fmt, ap) > 0);
    va_end(ap);
    int rc = system(line);
    if (rc)
        fail_msg("%s: %d", line, rc);
    free(line);
}

static int make_certificates(void **state)
{
    (void)state;
    if (!mkdtemp(tls_dir))
        return -1;
    const char *new_key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    shell(
        "cd %s && openssl req -x509 %s -keyout ca.key -out ca.pem -subj /CN=test-ca -days 2 2>log",
        tls_dir, new_key);
    const char *names[][2] = {
        {"name", "DNS:localhost"}, {"address", "IP:127.0.0.1"}, {"other", "DNS:elsewhere"}};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        shell("cd %s && openssl req %s -keyout %s.key -out %s.csr -subj /CN=node 2>log && echo "
              "subjectAltName=%s >ext && openssl x509 -req -in %s.csr -CA ca.pem -CAkey ca.key "
              "-CAcreateserial -days 2 -extfile ext -out %s.pem 2>log",
              tls_dir, new_key, names[i][0], names[i][0], names[i][1], names[i][0], names[i][0]);
    return 0;
}

static int remove_certificates(void **state)
{
    (void)state;
    shell("rm -r %s", tls_dir);
    return 0;
}

/* true: it opened; false: it was refused, rig.why says why. */
static bool tls_try(struct rig *rig, const char *cert, const char *host, bool with_ca,
                    bool insecure)
{
    char *cert_file = xasprintf("%s/%s.pem", tls_dir, cert);
    char *key_file = xasprintf("%s/%s.key", tls_dir, cert);
    char *ca_file = xasprintf("%s/ca.pem", tls_dir);
    *rig = (struct rig){.loop = loop_new()};
    server_start(rig, cert_file, key_file, 0);
    snprintf(rig->url, sizeof(rig->url), "wss://%s:%d/", host, ws_server_port(rig->server));
    struct rpc_config config = rpc_rig_config(rig);
    config.ca_file = with_ca ? ca_file : NULL;
    config.insecure = insecure;
    client_start(rig, &config);
    bool over = false;
    while (!over)
        over = run_until(rig->loop, is_open, rig, 50) || rig->lost;
    bool opened = rig->opened > 0;
    if (opened) {
        struct ask a = {0}, b = {0};
        ask(rig, &a, "echo", "[\"tls\"]", 0);
        await(rig, &a);
        assert_string_equal(a.result, "[\"tls\"]");
        ask_done(&a);
        ask(rig, &b, "big", "[1000000]", 0);
        await(rig, &b);
        assert_int_equal(b.call.err.code, 0);
        assert_int_equal(strlen(b.result), 1000002);
        ask_done(&b);
    }
    rpc_rig_done(rig);
    free(cert_file);
    free(key_file);
    free(ca_file);
    return opened;
}

static void test_tls(void **state)
{
    (void)state;
    struct rig rig;
    assert_true(tls_try(&rig, "name", "localhost", true, false));
    assert_true(tls_try(&rig, "address", "127.0.0.1", true, false));
    assert_false(tls_try(&rig, "other", "localhost", true, false));
    assert_non_null(strstr(rig.why.text, "ostname mismatch"));
    assert_false(tls_try(&rig, "other", "127.0.0.1", true, false));
    assert_non_null(strstr(rig.why.text, "not for the address 127.0.0.1"));
    assert_false(
        tls_try(&rig, "name", "localhost", false, false)); /* the system does not know our CA */
    assert_non_null(strstr(rig.why.text, "certificate is refused"));
    assert_true(tls_try(&rig, "other", "localhost", false, true));
    assert_true(tls_try(&rig, "other", "127.0.0.1", false, true));
}

static void test_tls_against_a_plain_server(void **state)
{
    (void)state;
    struct rig rig;
    rpc_rig_open(&rig);
    snprintf(rig.url, sizeof(rig.url), "wss://127.0.0.1:%d", ws_server_port(rig.server));
    struct rpc_config config = rpc_rig_config(&rig);
    config.connect_timeout_ms = 300;
    client_start(&rig, &config);
    assert_true(run_until(rig.loop, has_lost, &rig, LIMIT_MS));
    assert_int_equal(rig.opened, 0);
    rpc_rig_done(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tls),
        cmocka_unit_test(test_tls_against_a_plain_server),
    };
    return cmocka_run_group_tests(tests, make_certificates, remove_certificates);
}
