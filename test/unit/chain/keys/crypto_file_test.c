/* A key file is read in both of its forms, and refused when others could read or change it. */
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
#include "base/check.h"
#include "chain/keys/keys.h"

struct place {
    char dir[64];
    char path[96];
};

static int setup(void **state)
{
    struct place *p = xcalloc(1, sizeof(*p));
    snprintf(p->dir, sizeof(p->dir), "/tmp/txrelay-key-XXXXXX");
    if (!mkdtemp(p->dir))
        return -1;
    snprintf(p->path, sizeof(p->path), "%s/key", p->dir);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;
    unlink(p->path);
    int rc = rmdir(p->dir);
    free(p);
    return rc;
}

static void put(const struct place *p, const char *text, size_t len)
{
    unlink(p->path);
    FILE *f = fopen(p->path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(p->path, 0600), 0);
}

static void assert_alice(const struct place *p)
{
    struct keypair *key = NULL, *alice = NULL;
    struct err err = {0};
    size_t len;
    if (keypair_from_file(p->path, KEY_SR25519, &key, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(keypair_from_uri("//Alice", KEY_SR25519, &alice, &err), 0);
    assert_memory_equal(keypair_public(key, &len), keypair_public(alice, &len), 32);
    keypair_free(key);
    keypair_free(alice);
}

static void assert_refused(const struct place *p, const char *says)
{
    struct keypair *key = NULL;
    struct err err = {0};
    assert_int_equal(keypair_from_file(p->path, KEY_SR25519, &key, &err), ERR_KEY);
    assert_null(key);
    if (!strstr(err.text, says))
        fail_msg("\"%s\" does not say \"%s\"", err.text, says);
    assert_non_null(strstr(err.text, p->path));
    assert_null(strstr(err.text, "Alice"));
}

static void test_forms(void **state)
{
    static const char *const texts[] = {
        "//Alice",
        "//Alice\n",
        "//Alice\r\n",
        "//Alice\nsecond line\n",
        "bottom drive obey lake curtain smoke basket hold race lonely fit walk//Alice\n",
        "\"//Alice\"",
        "\"//Alice\"\n",
        "\"bottom drive obey lake curtain smoke basket hold race lonely fit walk\\/\\/Alice\" \n",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        put(*state, texts[i], strlen(texts[i]));
        assert_alice(*state);
    }
}

static void test_bad_content(void **state)
{
    char big[5000];
    memset(big, 'a', sizeof(big));
    put(*state, "", 0);
    assert_refused(*state, "empty first line");
    put(*state, "\n//Alice\n", 9);
    assert_refused(*state, "empty first line");
    put(*state, "\"\"", 2);
    assert_refused(*state, "empty first line");
    put(*state, "//Alice\0x", 9);
    assert_refused(*state, "is not text");
    put(*state, big, sizeof(big));
    assert_refused(*state, "longer than 4096 bytes");
    static const char *const quoted[] = {
        "\"//Alice", "\"//Alice\" x", "\"//Al\\u0069ce\"", "\"//Alice\\", "\"", "\"//Alice\\\""};
    for (size_t i = 0; i < ARRAY_LEN(quoted); i++) {
        put(*state, quoted[i], strlen(quoted[i]));
        assert_refused(*state, "no keystore string");
    }
}

/* A blank at an end would make another key without a word. */
static void test_blanks(void **state)
{
    static const char *const texts[] = {"//Alice \n", " //Alice", "//Alice\t", "\"//Alice \"",
                                        "\t//Alice\n"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        put(*state, texts[i], strlen(texts[i]));
        assert_refused(*state, "a blank at an end of its first line");
    }
}

static void test_development(void **state)
{
    static const struct {
        const char *text;
        bool development;
    } cases[] = {{"//Alice", true},
                 {"bottom drive obey lake curtain smoke basket hold race lonely fit walk//x", true},
                 {"0x398f0c28f98885e046333d4a41c19cee4c37368a9832c6502f6cfd182e2aef89", false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct keypair *key = NULL;
        struct err err = {0};
        put(*state, cases[i].text, strlen(cases[i].text));
        assert_int_equal(keypair_from_file(((struct place *)*state)->path, KEY_SR25519, &key, &err),
                         0);
        assert_int_equal(keypair_is_development(key), cases[i].development);
        keypair_free(key);
    }
}

/* What is wrong in the URI is said with the file's name. */
static void test_bad_uri(void **state)
{
    put(*state, "//Alice//\n", 10);
    assert_refused(*state, "step 2 of the secret is empty");
}

static void test_permissions(void **state)
{
    const struct place *p = *state;
    static const mode_t open_modes[] = {0640, 0604, 0620, 0601, 0666};
    char cure[160];
    put(p, "//Alice", 7);
    snprintf(cure, sizeof(cure), "chmod 600 %s", p->path);
    for (size_t i = 0; i < ARRAY_LEN(open_modes); i++) {
        assert_int_equal(chmod(p->path, open_modes[i]), 0);
        assert_refused(p, cure);
    }
    assert_int_equal(chmod(p->path, 0400), 0);
    assert_alice(p);
    if (geteuid() == 0) { /* only root can give a file away */
        assert_int_equal(chown(p->path, 12345, 0), 0);
        assert_refused(p, "belongs to user 12345");
    }
}

static void test_other_kinds(void **state)
{
    struct place p = *(struct place *)*state;
    unlink(p.path);
    assert_refused(&p, "No such file");
    assert_int_equal(mkfifo(p.path, 0600), 0);
    assert_refused(&p, "not a regular file");
    unlink(p.path);
    assert_int_equal(mkdir(p.path, 0700), 0);
    assert_refused(&p, "not a regular file");
    assert_int_equal(rmdir(p.path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_forms, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_content, setup, teardown),
        cmocka_unit_test_setup_teardown(test_blanks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_development, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_uri, setup, teardown),
        cmocka_unit_test_setup_teardown(test_permissions, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_kinds, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
