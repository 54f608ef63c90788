/* sr25519 is schnorrkel: byte for byte with the same randomness (@scure/sr25519 2.3.0), its
 * signatures and those of wasm-crypto (@polkadot/wasm-crypto 7.5, schnorrkel itself) are accepted,
 * and no others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "chain/keys/keys.h"
#include "merlin.h"
#include "sr25519.h"

enum { MSG_MAX = 301 }; /* one more than the longest */

/* The development phrase's own key. */
static const char dev_public[] =
    "0x46ebddef8cd9bb167dc30878d7113b7e168e6f0646beffd77d69d39bad76b47a";
/* The mini secret of the development phrase: public knowledge. */
static const char dev_seed[] = "0xfac7959dbfe72f052e5a0c3c8d6530f202b02fd8f9f5ca3580ec8deb7797479e";

static void pattern(uint8_t msg[MSG_MAX])
{
    for (size_t i = 0; i < MSG_MAX; i++)
        msg[i] = (uint8_t)i;
}

static void unhex(const char *hex, uint8_t *out, size_t n)
{
    assert_true(hex_decode_fixed(hex, strlen(hex), out, n));
}

/* The published vector of Merlin (merlin.cool, equivalence test of a simple protocol). */
static void test_merlin(void **state)
{
    (void)state;
    struct merlin t;
    uint8_t out[32], want[32];
    unhex("0xd5a21972d0d5fe320c0d263fac7fffb8145aa640af6e9bca177c03c7efcf0615", want, 32);
    keys__merlin_init(&t, "test protocol");
    keys__merlin_append(&t, "some label", "some data", 9);
    keys__merlin_challenge(&t, "challenge", out, sizeof(out));
    assert_memory_equal(out, want, 32);
}

/* Over the random bytes i ^ 0xa5, the message of len bytes counts from 0. */
static const struct {
    size_t len;
    const char *sig;
} fixed[] = {
    {0, "0x0442c93432bc05d4eca447fb25c2530b732b25ecc97bfc082c5d6feaffee4366c0dc9f1c0d553487b9d690a1"
        "f363eac30107c5b294031417a1d0ba9121546b8c"},
    {1, "0x1453324ca756d38cedd4b66891e54658aae3f539f36dc5574efee9fbf8fe0a3d749b37f4e14963d99b9483af"
        "90e038c0981fb1f9bcfa2e678a257eca6e086d87"},
    {87, "0xb4194ab2aeb8671eff28052999fd722e075e3ac6498aacdd3f01fae9864ad65c9ad4e4a075d575e8f394a8e"
         "11c30f498c0d1512b67404bbac36c8d3fa29d5480"},
    {163, "0x6e5ae6987403039c978bfe7219d9c29352590d2b3297c8d0330a84b71f38b23af5d0de59ee7a07a2e65d09"
          "a69a672ca9d6a4809a0d85614f0148f8e885ef5986"},
    {164, "0xa2d5d013ff4165ef76bc3a9d7e8fb82a0025d444311e08ae302bfa98fbe499195ca90c03c89979d20f8d4b"
          "a166b136c87a7c13693371a0223234a84e4a4fba8e"},
    {165, "0x94159fc05cbf90d29917f88951fea758c18067ce796d00005665aed0929559648cf87027a7757ee0f69b90"
          "ba2a054e07f5a89f8150588e8253e244053f812886"},
    {166, "0x1a40036be3712c1ac54541d33a1e4acec892a4cc833bf5c5833775bf5a184c788a57d54214e28b9d382c67"
          "8279ed5f25d432be059af6d8fffe9e75230c33e38a"},
    {167, "0xf05ffba39b174f5e200eb935e2ee179ef0f0c8f3e7a4e886c38876490f44b41b5ef171f81d426bc55501f8"
          "ff8139e35b519e68016f507c5a3ce0f0764459a285"},
    {168, "0x3eac6bce437335ff161a896ec185c557bd60d3ce211541ac6de827ea60a6997bfd0408caf60832183cb58b"
          "c7bfabfdb5c29fe010f627db063f37c2984dfbe686"},
    {300, "0x0c04947d5f77cd552cc4dbd7c2983f72b3a512bb92c5c9991e68d10c6b6a9d67d1f8956174b1efd674ec79"
          "94dd8752731b5bc2025a18a04002db4e874109538a"},
};

static void dev_key(struct sr25519_secret *secret, uint8_t public_key[32])
{
    uint8_t seed[32], want[32];
    unhex(dev_seed, seed, 32);
    unhex(dev_public, want, 32);
    keys__sr25519_expand(seed, secret);
    assert_true(keys__sr25519_public(secret, public_key));
    assert_memory_equal(public_key, want, 32);
}

static void test_fixed_randomness(void **state)
{
    (void)state;
    struct sr25519_secret secret;
    uint8_t public_key[32], random[32], msg[MSG_MAX], sig[64], want[64];
    dev_key(&secret, public_key);
    pattern(msg);
    for (size_t i = 0; i < sizeof(random); i++)
        random[i] = (uint8_t)(i ^ 0xa5);
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
        unhex(fixed[i].sig, want, 64);
        keys__sr25519_sign(&secret, public_key, msg, fixed[i].len, random, sig);
        assert_memory_equal(sig, want, 64);
        assert_true(keys__sr25519_verify(public_key, msg, fixed[i].len, sig));
    }
}

/* Made by schnorrkel (wasm-crypto), also with lengths around a STROBE block of 166 bytes. */
static const struct {
    size_t len;
    const char *sig;
} foreign[] = {
    {0, "0x3404220d9e3e195e5a40731c8b81416973bbad4d7ba87a893fa9b8f29f016d6c451dc5e4343ec1d39e77e751"
        "d423dd6a10229ffaa4de7d4fcd2e6969a44d8285"},
    {1, "0x020412d4062866cf2c32f4ac3a75a2c2d02abc1d9981f1c011ae623b3de7fd15ee0b85583f36e1a4f9088e51"
        "e1c2cbfdc94626a03e6e400ba999498272f2cd8f"},
    {86, "0x2041d61b1ab74c8a7e8aa84df5a2920bdc7cfb17f23db6837d97355c0e827b5d9a9c5c9fc698df0f5323ed1"
         "9179f9e0d99ccb950f1f25050055e9e1b2b9a3284"},
    {164, "0x64d267e5d9e84e3b5e2b778d68063586eb631d5f79e5f49ce6646ef29e23f57d849b577ad4a7db99623b8c"
          "9c9f712d8bbd013936e49b907d905dee43fee60e86"},
    {165, "0xd69bab6590d67e74a496a93426159c55f96bc1fc0c3ad13a2fc94b35c8e58703ab09a338f5e8e060723a1f"
          "4a6e652e044dfbc17a9f6c32c7637e588479203d84"},
    {166, "0xd81422cffaad543fd5f0afb1fc8029450f8cb325cd8877ccadeac4c9c3f6ab10212e3752627d197ddeb430"
          "e0c52731acfe8f79ff9102d9147816b5a3f2328d86"},
    {167, "0x141d13a83336db20fca0c65f43fa7d09f1c032cfb9498fbb61c571fe0160483ae4ed7a637185ace3f7ee23"
          "2801a8c0f04566bf1cbcf9d71945c0451d243fdc8f"},
    {168, "0x90b33a3d9b53c9f40bee665666a358905d2a04a6859190e22bd78ae24d67aa29bc74123698fb04d44551bb"
          "30a3b646119a24ad2ad6cc76e64e92f7ec1e389680"},
    {300, "0xf8388318377f73722f43db61ba19066773b073c26e5152b8cb17cb1f5cc29409b8dbbf4d03565330caee5e"
          "cc0c620add2c5d6e3483d2b37e12ab18522ed39480"},
};

static void test_foreign_signatures(void **state)
{
    (void)state;
    uint8_t public_key[32], msg[MSG_MAX], sig[64];
    pattern(msg);
    unhex(dev_public, public_key, 32);
    for (size_t i = 0; i < ARRAY_LEN(foreign); i++) {
        unhex(foreign[i].sig, sig, 64);
        assert_true(key_verify(KEY_SR25519, public_key, msg, foreign[i].len, sig));
        assert_true(key_verify_account(KEY_SR25519, public_key, 32, msg, foreign[i].len, sig));
        assert_false(key_verify(KEY_SR25519, public_key, msg, foreign[i].len + 1, sig));
    }
}

static void test_every_length(void **state)
{
    (void)state;
    struct keypair *key = NULL;
    size_t len;
    uint8_t msg[MSG_MAX], sig[KEY_SIG_MAX], again[KEY_SIG_MAX];
    pattern(msg);
    assert_int_equal(keypair_from_uri("//Alice/soft", KEY_SR25519, &key, NULL), 0);
    const uint8_t *public_key = keypair_public(key, &len);
    for (size_t n = 0; n <= MSG_MAX; n += n < 150 || n > 180 ? 10 : 1) {
        assert_int_equal(keypair_sign(key, msg, n, sig), 64);
        keypair_sign(key, msg, n, again);
        assert_memory_not_equal(sig, again, 64); /* randomised */
        assert_true(key_verify(KEY_SR25519, public_key, msg, n, sig));
        assert_true(key_verify(KEY_SR25519, public_key, msg, n, again));
    }
    keypair_free(key);
}

/* The same s, written above the group order L, and signatures without schnorrkel's mark. */
static void test_malleable_forms(void **state)
{
    (void)state;
    static const uint8_t order[32] = {0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58,
                                      0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
                                      0,    0,    0,    0,    0,    0,    0,    0,
                                      0,    0,    0,    0,    0,    0,    0,    0x10};
    uint8_t public_key[32], msg[MSG_MAX], sig[64];
    pattern(msg);
    unhex(dev_public, public_key, 32);
    unhex(foreign[2].sig, sig, 64);
    assert_true(keys__sr25519_verify(public_key, msg, foreign[2].len, sig));

    sig[63] &= 0x7f;
    assert_false(keys__sr25519_verify(public_key, msg, foreign[2].len, sig));
    unsigned carry = 0;
    for (size_t i = 0; i < 32; i++, carry >>= 8) {
        carry += (unsigned)sig[32 + i] + order[i];
        sig[32 + i] = (uint8_t)carry;
    }
    sig[63] |= 0x80;
    assert_false(keys__sr25519_verify(public_key, msg, foreign[2].len, sig));
    memcpy(sig + 32, order, 32);
    sig[63] |= 0x80;
    assert_false(keys__sr25519_verify(public_key, msg, foreign[2].len, sig));
}

static void test_degenerate_inputs(void **state)
{
    (void)state;
    uint8_t public_key[32], zero[32] = {0}, sig[64] = {0};
    unhex(dev_public, public_key, 32);
    sig[63] = 0x80; /* R and s are zero */
    assert_false(keys__sr25519_verify(public_key, "", 0, sig));
    assert_false(keys__sr25519_verify(zero, "", 0, sig));
    sig[32] = 1;
    assert_false(keys__sr25519_verify(zero, "", 0, sig));
    memset(public_key, 0xff, sizeof(public_key)); /* no point at all */
    assert_false(keys__sr25519_verify(public_key, "", 0, sig));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merlin),
        cmocka_unit_test(test_fixed_randomness),
        cmocka_unit_test(test_foreign_signatures),
        cmocka_unit_test(test_every_length),
        cmocka_unit_test(test_malleable_forms),
        cmocka_unit_test(test_degenerate_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
