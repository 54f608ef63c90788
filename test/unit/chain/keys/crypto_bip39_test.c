/* Phrases of every length give Substrate's mini secret, as @polkadot/util-crypto computes it, and
 * the seed of BIP39. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "keys_scheme.h"

static const struct {
    const char *phrase, *password, *seed;
} rows[] = {
    {"awake print paper end page another thumb raccoon pond guide easily isolate", "",
     "0xc1dfd30865656392adb171eb9e2f399f480d8eaf2cd1d602b5c8e9dcaddd24d6"},
    {"awake print paper end page another thumb raccoon pond guide easily isolate", "Substrate",
     "0x0d0b4853852fbc1b17c7d8ccce27320a3afcddda5c44d5c451a9d0c4acef04ba"},
    {"before slab path face tennis argue various cotton profit marble educate learn embrace "
     "student excess",
     "", "0x1c65a2a8eba51f8b8de503e25b92c78c591de24d3b84da0b6df3efb75e724391"},
    {"before slab path face tennis argue various cotton profit marble educate learn embrace "
     "student excess",
     "Substrate", "0x5282fc8f0cae5bed3127a54133fa2a7af6cb9b3d22118dacb0bc71721f62aada"},
    {"blouse twelve peanut fluid buyer asset account rally quit pond elegant man match sunny "
     "garment loud edit front",
     "", "0x94c6f681ebeebc519b0cc89e5b7125fe59b47dea8e2b72b63a220a4dbb07d409"},
    {"blouse twelve peanut fluid buyer asset account rally quit pond elegant man match sunny "
     "garment loud edit front",
     "Substrate", "0x3d46b9f307c372ac68dacd95a7a3c756dbed893fdd820d8e1876cf7693fb5865"},
    {"brisk arctic pepper giant garden autumn balance crack record side embrace mom simple swarm "
     "hire again engine lake common rose crawl",
     "", "0xbc356853f350b05b71b3b3fdc18024cae156d3b55cc0dd34f600129eb6ac24c5"},
    {"brisk arctic pepper giant garden autumn balance crack record side embrace mom simple swarm "
     "hire again engine lake common rose crawl",
     "Substrate", "0x0d53cbaa0be7a449ddf7b3945953b7c5297c7dd61c9951a3bfce7b4b09cd685a"},
    {"cake clip physical have paper balance canvas rather result theme end notice announce talent "
     "lab lunch example orphan control series index chunk surprise high",
     "", "0xd7f2b1b9d1ed2b49dddff1895e6c343d73915d848eaaba5e6016d2672c47b30a"},
    {"cake clip physical have paper balance canvas rather result theme end notice announce talent "
     "lab lunch example orphan control series index chunk surprise high",
     "Substrate", "0x73d87203951c174b1557f41a79306609548b4059e0c6ac940633d1ef1ade8f8b"},
};

static void assert_hex(const uint8_t *data, size_t len, const char *hex)
{
    struct buf text = {0};
    hex_put_0x(&text, data, len);
    assert_string_equal(buf_str(&text), hex);
    buf_done(&text);
}

static void test_mini_secrets(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint8_t seed[32];
        struct err err = {0};
        const char *phrase = rows[i].phrase;
        assert_int_equal(
            keys__bip39_mini_secret(phrase, strlen(phrase), rows[i].password, seed, &err), 0);
        assert_hex(seed, sizeof(seed), rows[i].seed);
    }
}

/* The entropy behind phrase i counts in steps of 37 from its own length. */
static void test_entropy(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint8_t entropy[32];
        size_t len = 0;
        assert_int_equal(
            keys__bip39_entropy(rows[i].phrase, strlen(rows[i].phrase), entropy, &len, NULL), 0);
        assert_int_equal(len, 16 + 4 * (i / 2));
        for (size_t k = 0; k < len; k++)
            assert_int_equal(entropy[k], (k * 37 + len) & 255);
    }
}

/* BIP39's own test vector for zero entropy and the password TREZOR. */
static void test_bip39_seed(void **state)
{
    (void)state;
    static const char phrase[] = "abandon abandon abandon abandon abandon abandon abandon abandon "
                                 "abandon abandon abandon about";
    uint8_t seed[64];
    assert_int_equal(keys__bip39_seed(phrase, strlen(phrase), "TREZOR", seed, NULL), 0);
    assert_hex(seed, sizeof(seed),
               "0xc55257c360c07c72029aebc1b53c05ed0362ada38ead3e3e9efa3708e53495531f09a6987599d1826"
               "4c1e1c92f2cf141630c7a3c4ab7c81b2f001698e7463b04");
}

/* One wrong word is found whatever the count of checksum bits, unless it happens to fit them. */
static void test_wrong_phrases(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i += 2) {
        char text[300];
        uint8_t entropy[32];
        size_t len;
        struct err err = {0};
        int wrong = 0;
        static const char *const words[] = {"able ", "zoo ", "about ", "acid "};
        for (size_t w = 0; w < ARRAY_LEN(words); w++) {
            const char *rest = strchr(rows[i].phrase, ' ') + 1;
            int n = snprintf(text, sizeof(text), "%s%s", words[w], rest);
            wrong += keys__bip39_entropy(text, (size_t)n, entropy, &len, &err) == ERR_KEY;
        }
        assert_in_range(wrong, 3, 4);
        assert_non_null(strstr(err.text, "checksum"));
        int n = snprintf(text, sizeof(text), "%s zoo", rows[i].phrase);
        assert_int_equal(keys__bip39_entropy(text, (size_t)n, entropy, &len, &err), ERR_KEY);
        assert_non_null(strstr(err.text, "words"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mini_secrets),
        cmocka_unit_test(test_entropy),
        cmocka_unit_test(test_bip39_seed),
        cmocka_unit_test(test_wrong_phrases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
