/* Every hash agrees with reference values, also around the block lengths of Keccak. The values were
 * made with @polkadot/util-crypto. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "chain/codec/hash.h"

/* The message of len bytes counts 0, 1, ..., 255, 0, ... */
static const struct {
    size_t len;
    const char *blake2b_256, *blake2b_128, *blake2b_512, *twox_128, *keccak_256, *sha256;
} rows[] = {
    {0, "0x0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8",
     "0xcae66941d9efbd404e4d88758ea67670",
     "0x786a02f742015903c6c6fd852552d272912f4740e15847618a86e217f71f5419d25e1031afee585313896444934"
     "eb04b903a685b1448b755d56f701afe9be2ce",
     "0x99e9d85137db46ef4bbea33613baafd5",
     "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470",
     "0xe3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {135, "0xf7c4efacc0a4cb5836f170ea0bf5dc5ce36fe2d88e76a9f259eaab71aef0ff13",
     "0x0f8728afbb04ecf9bd984e7a30f76529",
     "0x0602185d8c3a78738b99164b8bc6ffb21c7debebbf806372e0da44d121545597b9c662a255dc31542cf995ecbe6"
     "a50fb5e6e0ee4ef240fe557eded1188087e86",
     "0xe622d53393c35d68a37c651b53a40d95",
     "0xcbdfd9dee5faad3818d6b06f95a219fd290b0e1706f6a82e5a595b9ce9faca62",
     "0x6a053848cfe83c0fc8c8a81dd84f6b946c63193cd25cdd5dad45f08be8019e89"},
    {136, "0x6a35d3dadc62dfe7819519f92181b2f8d38f5e0ed3d51a22cf8a133ab628d6f4",
     "0x557e7ac34424eef3b943e09f79203af6",
     "0xc08afa5b927bf08097afc5fff9ca4e7800125c1f52f2af3553fa2b89e1e3015c4f87d5e0a48956ad31450b083da"
     "d147ffb5ec03434a26830cf37d103ab50c5da",
     "0xa76ac35de6bbe553761117c3701dadcc",
     "0x7ce759f1ab7f9ce437719970c26b0a66ff11fe3e38e17df89cf5d29c7d7f807e",
     "0xffc555203945df4e81d75f316e4c25fdc0bc4e96412f4f469349eb716f001a7d"},
    {137, "0xbacecc2948c41beb73c815ca7cee6c7dbf2e4219190936edac5e4680500dd4d2",
     "0x077b2c13b6fcc248f53a78a85cf0161e",
     "0x36f1e1c11d6ef6bc3b536d505d544a871522c5c2a253067ec9933b6ec25464daf985525f5b9560a16d890259ac1"
     "bb5cc67c0c469cde133def000ea1d686f4f5d",
     "0x55bf51c0a98c58026daa96c5f2b83a9a",
     "0xac73d4fae68b8453f764007c1a20ce95994187861f0c3227a3a8e99a73a3b1db",
     "0x81d45be06329d63a2d8a8599d445676933bea1678fc586795b4ecbb838d4d158"},
    {300, "0x3a486e3fe3ee414853000269ac020030aeef748cb05cd62ba85939ec298ef25c",
     "0x15f53a13900056879b859fc1bcea544d",
     "0xd9cf5983dc6b34c0fa1f0226926855ad3eccd2bcdcd8f8053b9a80664d33b5afcc32fd21c70ea14f4ef50ca97c3"
     "203c4d1803159f0e01bb6cb1d1c83db52b63c",
     "0x5a155b16e06d1d4f5d1365f84b9a1cda",
     "0xa679e749a6af300c36e7ff2255d220864eab27b382f9cfdc5aa4d13563ba36ff",
     "0x7728ae2f2c36e2aaafbe79ca14c87ae2f89e7c88c4390ecbbf82dce88706958d"},
};

static void assert_hex(const uint8_t *data, size_t len, const char *hex)
{
    struct buf text = {0};
    hex_put_0x(&text, data, len);
    assert_string_equal(buf_str(&text), hex);
    buf_done(&text);
}

static void test_reference_values(void **state)
{
    (void)state;
    uint8_t msg[300], out[64];
    for (size_t i = 0; i < sizeof(msg); i++)
        msg[i] = (uint8_t)i;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        hash_blake2b_256(msg, rows[i].len, out);
        assert_hex(out, 32, rows[i].blake2b_256);
        hash_blake2b_128(msg, rows[i].len, out);
        assert_hex(out, 16, rows[i].blake2b_128);
        hash_blake2b_512(msg, rows[i].len, out);
        assert_hex(out, 64, rows[i].blake2b_512);
        hash_twox_128(msg, rows[i].len, out);
        assert_hex(out, 16, rows[i].twox_128);
        hash_keccak_256(msg, rows[i].len, out);
        assert_hex(out, 32, rows[i].keccak_256);
        hash_sha256(msg, rows[i].len, out);
        assert_hex(out, 32, rows[i].sha256);
    }
}

/* The prefix of every storage key of pallet System. */
static void test_storage_prefix(void **state)
{
    (void)state;
    uint8_t out[16];
    hash_twox_128("System", 6, out);
    assert_hex(out, 16, "0x26aa394eea5630e07c48ae0c9558cef7");
}

static void test_no_data(void **state)
{
    (void)state;
    uint8_t out[32];
    hash_keccak_256(NULL, 0, out);
    assert_hex(out, 32, rows[0].keccak_256);
    hash_blake2b_256(NULL, 0, out);
    assert_hex(out, 32, rows[0].blake2b_256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference_values),
        cmocka_unit_test(test_storage_prefix),
        cmocka_unit_test(test_no_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
