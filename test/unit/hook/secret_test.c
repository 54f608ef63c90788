/* Secrets of webhooks: as RFC 4231 and Standard Webhooks say, and from a file that is nobody
 * else's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/hex.h"
#include "chain/codec/hash.h"
#include "hook/hooks.h"

static void test_hmac(void **state)
{
    static const uint8_t mac[32] = {0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e,
                                    0x6a, 0x04, 0x24, 0x26, 0x08, 0x95, 0x75, 0xc7,
                                    0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27, 0x39, 0x83,
                                    0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43};
    static const char data[] = "what do ya want for nothing?";
    uint8_t out[32];
    (void)state;
    hash_hmac_sha256("Jefe", 4, data, strlen(data), out);
    assert_memory_equal(out, mac, sizeof(mac));
}

static void test_a_secret_depends_on_all_that_it_is_made_of(void **state)
{
    char texts[4][HOOKS_SECRET_MAX];
    (void)state;
    hooks_secret("key", "shop", "00", texts[0]);
    hooks_secret("kez", "shop", "00", texts[1]);
    hooks_secret("key", "shoq", "00", texts[2]);
    hooks_secret("key", "shop", "01", texts[3]);
    for (int i = 0; i < 4; i++) {
        assert_memory_equal(texts[i], "whsec_", 6);
        assert_int_equal(strlen(texts[i]), 6 + 44);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(texts[i], texts[k]);
    }
}

static void test_key_files(void **state)
{
    static const char good[] = "0123456789012345678901234567890123456789";
    const struct {
        const char *text;
        mode_t mode;
        const char *why; /* NULL: it is taken */
    } cases[] = {{"0123456789012345678901234567890123456789\n", 0600, NULL},
                 {"0123456789012345678901234567890123456789", 0400, NULL},
                 {"0123456789012345678901234567890123456789\n", 0640, "chmod 600"},
                 {"short\n", 0600, "at least 32"},
                 {"", 0600, "at least 32"},
                 {"0123456789012345678901234567890123456789\nb\n", 0600, "one line"}};
    char path[] = "/tmp/hook_secret_XXXXXX";
    struct err err;
    int fd = mkstemp(path);
    (void)state;
    assert_true(fd >= 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t len = strlen(cases[i].text);
        assert_int_equal(fchmod(fd, 0600) | ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, cases[i].text, len, 0), len);
        assert_int_equal(fchmod(fd, cases[i].mode), 0);
        err = (struct err){0};
        char *key = hooks_key_read(path, &err);
        if (cases[i].why) {
            assert_null(key);
            assert_non_null(strstr(err.text, cases[i].why));
        } else {
            assert_string_equal(key, good);
        }
        free(key);
    }
    close(fd);
    unlink(path);
    assert_null(hooks_key_read(path, &err));
    assert_non_null(strstr(err.text, "No such file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hmac),
        cmocka_unit_test(test_a_secret_depends_on_all_that_it_is_made_of),
        cmocka_unit_test(test_key_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
