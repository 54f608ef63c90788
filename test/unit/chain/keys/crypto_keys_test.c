/* Secret URIs give the keys that other implementations give, signatures of the deterministic
 * schemes are theirs byte for byte, and no error text contains a part of a secret. References:
 * @polkadot/keyring and @polkadot/util-crypto 14.0.3; m/44'/60'/0'/0/0 of the development phrase is
 * "Alith". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "chain/keys/keys.h"

enum { MSG_MAX = 300 };

static void pattern(uint8_t msg[MSG_MAX])
{
    for (size_t i = 0; i < MSG_MAX; i++)
        msg[i] = (uint8_t)i;
}

static struct keypair *open_key(enum key_scheme scheme, const char *uri)
{
    struct keypair *key = NULL;
    struct err err = {0};
    if (keypair_from_uri(uri, scheme, &key, &err) != 0)
        fail_msg("%s: %s", uri, err.text);
    return key;
}

static void assert_hex(const uint8_t *data, size_t len, const char *hex)
{
    struct buf text = {0};
    hex_put_0x(&text, data, len);
    assert_string_equal(buf_str(&text), hex);
    buf_done(&text);
}

static const struct {
    enum key_scheme scheme;
    const char *uri, *public_key, *account_id;
} keys[] = {
    {KEY_SR25519, "bottom drive obey lake curtain smoke basket hold race lonely fit walk",
     "0x46ebddef8cd9bb167dc30878d7113b7e168e6f0646beffd77d69d39bad76b47a",
     "0x46ebddef8cd9bb167dc30878d7113b7e168e6f0646beffd77d69d39bad76b47a"},
    {KEY_SR25519, "//Alice", "0xd43593c715fdd31c61141abd04a99fd6822c8558854ccde39a5684e7a56da27d",
     "0xd43593c715fdd31c61141abd04a99fd6822c8558854ccde39a5684e7a56da27d"},
    {KEY_SR25519, "//Alice//stash",
     "0xbe5ddb1579b72e84524fc29e78609e3caf42e85aa118ebfe0b0ad404b5bdd25f",
     "0xbe5ddb1579b72e84524fc29e78609e3caf42e85aa118ebfe0b0ad404b5bdd25f"},
    {KEY_SR25519, "/foo", "0x40b9675df90efa6069ff623b0fdfcf706cd47ca7452a5056c7ad58194d23440a",
     "0x40b9675df90efa6069ff623b0fdfcf706cd47ca7452a5056c7ad58194d23440a"},
    {KEY_SR25519, "//Alice/soft/7",
     "0x741c532a1110e54ad58eb124ebcbb26a6cc8bcb98c10790581239034aa9aed26",
     "0x741c532a1110e54ad58eb124ebcbb26a6cc8bcb98c10790581239034aa9aed26"},
    {KEY_SR25519, "//0", "0x2afba9278e30ccf6a6ceb3a8b6e336b70068f045c666f2e7f4f9cc5f47db8972",
     "0x2afba9278e30ccf6a6ceb3a8b6e336b70068f045c666f2e7f4f9cc5f47db8972"},
    {KEY_SR25519, "//18446744073709551615/1",
     "0xa4d07e8fe0a63ed091b7bd774d6371552f8600e68623a8c1de81d4654f7ac31c",
     "0xa4d07e8fe0a63ed091b7bd774d6371552f8600e68623a8c1de81d4654f7ac31c"},
    {KEY_SR25519, "//Alice///secret",
     "0x08a5e583f74f54f3811cb5f7d74e686d473e3a466fd0e95738707a80c3183b15",
     "0x08a5e583f74f54f3811cb5f7d74e686d473e3a466fd0e95738707a80c3183b15"},
    {KEY_SR25519, "///secret", "0xe828382f645685df1e292bb59c5cef182ad88be0be56568e24c73a69f8a7094e",
     "0xe828382f645685df1e292bb59c5cef182ad88be0be56568e24c73a69f8a7094e"},
    {KEY_SR25519, "0x0101010101010101010101010101010101010101010101010101010101010102",
     "0x002374b3dfce49d7626b369be96f6e69672fce02922a2a77af0f4efa41d9915d",
     "0x002374b3dfce49d7626b369be96f6e69672fce02922a2a77af0f4efa41d9915d"},
    {KEY_SR25519, "0x0101010101010101010101010101010101010101010101010101010101010102//a/b//c",
     "0x943d12cbd954336538059d41751393526aca6f921ff50f88187d5cd7a15f671e",
     "0x943d12cbd954336538059d41751393526aca6f921ff50f88187d5cd7a15f671e"},
    {KEY_SR25519, "//xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
     "0x168a82d8ac8b89ee03baac3ca96d8f147dab2135c54f38ef08e0f8877ecdb004",
     "0x168a82d8ac8b89ee03baac3ca96d8f147dab2135c54f38ef08e0f8877ecdb004"},
    {KEY_SR25519, "//yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy",
     "0xd6e28aa3c5e8a61726055c9a092452474e140c00bd01b8bf949db81e5dc40259",
     "0xd6e28aa3c5e8a61726055c9a092452474e140c00bd01b8bf949db81e5dc40259"},
    {KEY_ED25519, "bottom drive obey lake curtain smoke basket hold race lonely fit walk",
     "0x345071da55e5dccefaaa440339415ef9f2663338a38f7da0df21be5ab4e055ef",
     "0x345071da55e5dccefaaa440339415ef9f2663338a38f7da0df21be5ab4e055ef"},
    {KEY_ED25519, "//Alice", "0x88dc3417d5058ec4b4503e0c12ea1a0a89be200fe98922423d4334014fa6b0ee",
     "0x88dc3417d5058ec4b4503e0c12ea1a0a89be200fe98922423d4334014fa6b0ee"},
    {KEY_ED25519, "//Alice//stash",
     "0x451781cd0c5504504f69ceec484cc66e4c22a2b6a9d20fb1a426d91ad074a2a8",
     "0x451781cd0c5504504f69ceec484cc66e4c22a2b6a9d20fb1a426d91ad074a2a8"},
    {KEY_ED25519, "//Bob//3///pw",
     "0xc9bf708cadf4841e1808f3b83f09b3a85f83dbb6ee74019562ee98ba671f78a9",
     "0xc9bf708cadf4841e1808f3b83f09b3a85f83dbb6ee74019562ee98ba671f78a9"},
    {KEY_ED25519, "0x0101010101010101010101010101010101010101010101010101010101010102",
     "0x2654bf46fd7a6c5c04a4351265233fa932102042617661f2825a7b88dcf71271",
     "0x2654bf46fd7a6c5c04a4351265233fa932102042617661f2825a7b88dcf71271"},
    {KEY_ED25519,
     "0x0101010101010101010101010101010101010101010101010101010101010102//"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
     "0x1fc5610209de6f69ff4b168968cda03fd13aa0e68faf79f93fbfb1bed67728e8",
     "0x1fc5610209de6f69ff4b168968cda03fd13aa0e68faf79f93fbfb1bed67728e8"},
    {KEY_ECDSA, "bottom drive obey lake curtain smoke basket hold race lonely fit walk",
     "0x035b26108e8b97479c547da4860d862dc08ab2c29ada449c74d5a9a58a6c46a8c4",
     "0xbc9539b36a87a586b1aa20fbe23a1db3ef3edcd65b44a2dc4444cc552687633f"},
    {KEY_ECDSA, "//Alice", "0x020a1091341fe5664bfa1782d5e04779689068c916b04cb365ec3153755684d9a1",
     "0x01e552298e47454041ea31273b4b630c64c104e4514aa3643490b8aaca9cf8ed"},
    {KEY_ECDSA, "//Alice//stash",
     "0x03c6a1c2194fa966d30bc4b9c4d5140e9a899d456372dae0e4ef230fd7d2197e72",
     "0x0dcdff87f204fcf502c4cdd417ca73df9d06bf640d2f50af5fbe8225fe026b4b"},
    {KEY_ECDSA, "0x0101010101010101010101010101010101010101010101010101010101010102//9",
     "0x02c545ac0f0c50d63a875a1b5561f515e89e140a20d3030678a0a4ded6d797463b",
     "0x4ba13724d35cb8c4addf361ced53f1d7635d68e7411d536a55e2f43435c7ca4b"},
    {KEY_ECDSA, "//Bob///pw",
     "0x02a7e1be3f7ca992ef4e8e4a228d1f675f877aa11819429f190320939f7a5be18b",
     "0xd0c43dfba30f338bceaa42bc18d6f3320c09d6fa4fbdc9d1aac232b4da6f9c97"},
    {KEY_ETHEREUM, "/m/44'/60'/0'/0/0",
     "0x02509540919faacf9ab52146c9aa40db68172d83777250b28e4679176e49ccdd9f",
     "0xf24ff3a9cf04c71dbc94d0b566f7a27b94566cac"},
    {KEY_ETHEREUM, "/m/44'/60'/0'/0/1",
     "0x033bc19e36ff1673910575b6727a974a9abd80c9a875d41ab3e2648dbfb9e4b518",
     "0x3cd0a705a2dc65e5b1e1205896baa2be8a07c6e0"},
    {KEY_ETHEREUM, "/m", "0x03a9a46a7552b91ff55d994efb2138ac003379f85af2178775d255d57209834891",
     "0x7c4de272d0091ef8115067c4067f40b6df3647af"},
    {KEY_ETHEREUM, "0x5fb92d6e98884f76de468fa3f6278f8807c48bebc13595d45af5bdc4da702133",
     "0x02509540919faacf9ab52146c9aa40db68172d83777250b28e4679176e49ccdd9f",
     "0xf24ff3a9cf04c71dbc94d0b566f7a27b94566cac"},
};

static void test_uris(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        struct keypair *key = open_key(keys[i].scheme, keys[i].uri);
        size_t len;
        const uint8_t *data = keypair_public(key, &len);
        assert_int_equal(len, key_public_len(keys[i].scheme));
        assert_hex(data, len, keys[i].public_key);
        data = keypair_account_id(key, &len);
        assert_int_equal(len, keys[i].scheme == KEY_ETHEREUM ? 20 : 32);
        assert_hex(data, len, keys[i].account_id);
        assert_int_equal(keypair_scheme(key), keys[i].scheme);
        assert_null(keypair_free(key));
    }
}

static void assert_same_key(enum key_scheme scheme, const char *a, const char *b, bool same)
{
    struct keypair *ka = open_key(scheme, a);
    struct keypair *kb = open_key(scheme, b);
    size_t len;
    const uint8_t *pa = keypair_public(ka, &len);
    const uint8_t *pb = keypair_public(kb, &len);
    assert_int_equal(memcmp(pa, pb, len) == 0, same);
    keypair_free(ka);
    keypair_free(kb);
}

static void test_equal_uris(void **state)
{
    (void)state;
    static const char dev[] =
        "bottom drive obey lake curtain smoke basket hold race lonely fit walk";
    static const char seed[] = "0x0101010101010101010101010101010101010101010101010101010101010102";
    char text[200];
    assert_same_key(KEY_SR25519, "", dev, true);
    assert_same_key(KEY_SR25519, "",
                    "  bottom drive obey  lake curtain smoke basket hold race lonely fit walk ",
                    true);
    assert_same_key(KEY_ETHEREUM, "/m/1",
                    "bottom  drive obey lake curtain smoke basket hold race lonely fit walk/m/1",
                    true);
    assert_same_key(KEY_SR25519, "///", dev, true);
    assert_same_key(KEY_SR25519, "//7", "//007", true); /* a number, as Rust reads it */
    assert_same_key(KEY_SR25519, "//7", "//+7", true);
    assert_same_key(KEY_SR25519, "//7", "//7x", false);
    assert_same_key(KEY_SR25519, "//7", "/7", false);
    assert_same_key(KEY_SR25519, "//18446744073709551615", "//018446744073709551615", true);
    assert_same_key(KEY_SR25519, "//18446744073709551616", "//018446744073709551616",
                    false); /* a text */
    assert_same_key(KEY_SR25519, "//a////b", "//a", false);
    snprintf(text, sizeof(text), "%s///password", seed);
    assert_same_key(KEY_ED25519, seed, text, true);
}

static const struct {
    enum key_scheme scheme;
    size_t len;
    const char *sig;
} deterministic[] = {
    {KEY_ED25519, 0,
     "0x892e02e7083ca93105ccc6a32ffed614643c521265cb00e2ec5f39e343949348affc0d5dec33d80ddeb90710c57"
     "256722c40777617053c42036ae1d24090d406"},
    {KEY_ED25519, 1,
     "0x36ba36e8868640a69571e8bd7d941e73db27004b3ed27402debb08cf0761c5e685f461328b87ef25484d09ea963"
     "47d752129320269d6ea6a6f130f98f5a99606"},
    {KEY_ED25519, 86,
     "0xe4613818ca1e1ebe2b5b7c7801e73e9e54e108769924f6afc3354e6b284e53a7b8b3f5b80df79d966e223677917"
     "c51624804df04d83997a3098991634a10590a"},
    {KEY_ED25519, 300,
     "0x72abdc37e675d18053624bc3f4f7fb3f388596d24eeafae35abc177f3fa807785a631a2b5b88f16e3c795d35c93"
     "2fbee0160bd530fd078657206f6d470da2f01"},
    {KEY_ECDSA, 0,
     "0xf433a0d53dd4de2907d261d472ab9a93677d4a5a31c30e85cc09d376531d52ff66db0a01e09a4193f7571a17148"
     "1acd05d36adc59fffc17ad6dc23b6647295b501"},
    {KEY_ECDSA, 1,
     "0x824bf4db891dd0bb4a250eea8a468ae3893dbada19d50f30eef568c98051b7c24b5a65d570926668d7424c56190"
     "32d76a2b4ad07ccf7ca02ae39bb452bd0b65c01"},
    {KEY_ECDSA, 86,
     "0xeaf7cacc0eb570de5ca396b16655b7bf9db3e8873dfb9e506f723420cfe08a6f1a056d411352d3ec31dff912d16"
     "3131fae074f7065800ca6eb62492a1353a95700"},
    {KEY_ECDSA, 300,
     "0xc79e65c3caed1d2d18edec4cfd948c6583cc182b755917af9db82836338f5fcc7d051393e4d8f589f7df27bc967"
     "0f6f133fcdc03a2ac384807ba9e4725ec5b3e01"},
    {KEY_ETHEREUM, 0,
     "0xef30b76860fc7dba9fabe4cdfcbbfd193ba96c633f8a558daf36022b741233654ab3a8a3eebaa48e9158d1441c9"
     "7e50c49c031e303b21bcc57907db1fddb0d0c00"},
    {KEY_ETHEREUM, 1,
     "0xa00988fdd827bcdfd539aa6c9832e9b0e3f7c71c265d6d19a02d8d63f2c93b4e6fae5b9bd768fe612264dce6c2c"
     "9e5a6a10257efe5b3d5fa8d3bf4ff6425fe9301"},
    {KEY_ETHEREUM, 86,
     "0xb27468b133cde27fe4bbeb9d055bbb55a93e88c8f87e2181520edd29819f354f0ed0a66be6803b8a94d884b9e90"
     "0e947fcb8f6792f7ba5a13ebf18a3b66ec00f01"},
    {KEY_ETHEREUM, 300,
     "0xff1d65cc71b952d999ee667c75f8649e63819f239e93842d5bb5f48109631db620b8e4053c692cbeb4e88bf49f1"
     "1fbf25852e9843ee99284aac22cd399e3b6c200"},
};

static const char *alice_uri(enum key_scheme scheme)
{
    return scheme == KEY_ETHEREUM ? "/m/44'/60'/0'/0/0" : "//Alice";
}

static void test_deterministic_signatures(void **state)
{
    (void)state;
    uint8_t msg[MSG_MAX], sig[KEY_SIG_MAX];
    pattern(msg);
    for (size_t i = 0; i < ARRAY_LEN(deterministic); i++) {
        struct keypair *key = open_key(deterministic[i].scheme, alice_uri(deterministic[i].scheme));
        size_t len = keypair_sign(key, msg, deterministic[i].len, sig);
        assert_int_equal(len, key_signature_len(deterministic[i].scheme));
        assert_hex(sig, len, deterministic[i].sig);
        keypair_free(key);
    }
}

/* Signed messages of extrinsics, from the reference vectors. */
static const struct {
    enum key_scheme scheme;
    const char *msg, *sig;
} extrinsics[] = {
    {KEY_ED25519,
     "0x00001448656c6c6f9503141c00000c0100000200000091b171bb158e2d3848fa23a9f1c25182fb8e20313b2c1eb"
     "49219da7a70ce90c3222222222222222222222222222222222222222222222222222222222222222200",
     "0x9f9a4733ea892456630484e71a1be8c8969c61c6a85b6eb7ad90dc78436179e9fbcc6afa6159b2c5843faf470d7"
     "849fe458288f029ec88c443283e5efcbdb104"},
    {KEY_SR25519,
     "0x00001448656c6c6f9503141c00000c0100000200000091b171bb158e2d3848fa23a9f1c25182fb8e20313b2c1eb"
     "49219da7a70ce90c3222222222222222222222222222222222222222222222222222222222222222200",
     "0x680fafa350955b08e8234a259063c80c2141af33d1f2dd3c3854ca1d2d5bc77bc9505f6b6f0665dd04557044688"
     "af75b71cf463fec16bbf9a94fca20a7056e8d"},
    {KEY_ECDSA,
     "0x00001448656c6c6f9503141c00000c0100000200000091b171bb158e2d3848fa23a9f1c25182fb8e20313b2c1eb"
     "49219da7a70ce90c3222222222222222222222222222222222222222222222222222222222222222200",
     "0xe6fea5498cada2d2c52263f3e2532e83988d0d1f1db31f9a79de3cd7590f4f00548a4326f482ff57044d3083dfc"
     "d75337475e3028e069ddc86ab80bd5e7336a100"},
    {KEY_ED25519, "0xfeaf1bdfd26758bf7ce4d3a414321e479efb0ed7e4f01afe97b861f0e38036b2",
     "0xf40310e9a0e298921c69b88c98c8c5576dc05a5f71c8fbec9de4b836c3f991d67a070433a11c49734511b862027"
     "7f078e64904d4e58bde0c8d4c1895ff8fb000"},
    {KEY_SR25519, "0xfeaf1bdfd26758bf7ce4d3a414321e479efb0ed7e4f01afe97b861f0e38036b2",
     "0x0cef793818612dd27a6b01729c1cc2f0ade4cd2fc9cc1d20ec230a8a039de364bfed95d7a82dc76224dcfe41233"
     "f69d11290f90e1fc199be27aa86b631b3208a"},
    {KEY_ECDSA, "0xfeaf1bdfd26758bf7ce4d3a414321e479efb0ed7e4f01afe97b861f0e38036b2",
     "0x675a5d3182fc808fd6d4afe8d2f3136f0a1544965459c5e02cd68d5916dfd04658aedd36df9e501ec78c0cbffa6"
     "5f4f9d38239705b4d2ff757c455aa9b6b38de00"},
    {KEY_ETHEREUM,
     "0x00001448656c6c6f9503141c00010000000100000091b171bb158e2d3848fa23a9f1c25182fb8e20313b2c1eb49"
     "219da7a70ce90c3222222222222222222222222222222222222222222222222222222222222222200",
     "0x52b6522ecbb8fe2e548c85cf1bb36fc5e577c4b7e59e3dc883516c736f0cd32438e7aaff12a44c54ea3aff9356d"
     "7ed0d2d3fd3c208281bf5ce6b7fe69ebc6bfb00"},
    {KEY_ETHEREUM, "0xe5142cc9badae521da4d7e34fc889c82e627892530841a5680b7ad9e1ac71eb2",
     "0x4fa279dce8eaf421cec9933ca68a52b1da950bc73699b4edd3d36fc87862d2342778be43da80e7e540a663992d5"
     "d748c9ec1225cacb1b7d384b67153694dbb2001"},
};

static void unhex(const char *hex, struct buf *b)
{
    buf_clear(b);
    assert_true(hex_decode(hex, strlen(hex), b));
}

static void test_extrinsic_signatures(void **state)
{
    (void)state;
    struct buf msg = {0}, sig = {0};
    for (size_t i = 0; i < ARRAY_LEN(extrinsics); i++) {
        enum key_scheme scheme = extrinsics[i].scheme;
        struct keypair *key = open_key(scheme, alice_uri(scheme));
        size_t public_len, id_len;
        const uint8_t *public_key = keypair_public(key, &public_len);
        const uint8_t *id = keypair_account_id(key, &id_len);
        uint8_t made[KEY_SIG_MAX];
        unhex(extrinsics[i].msg, &msg);
        unhex(extrinsics[i].sig, &sig);
        assert_int_equal(sig.len, key_signature_len(scheme));
        assert_true(key_verify(scheme, public_key, msg.data, msg.len, sig.data));
        assert_true(key_verify_account(scheme, id, id_len, msg.data, msg.len, sig.data));
        assert_int_equal(keypair_sign(key, msg.data, msg.len, made), sig.len);
        if (scheme != KEY_SR25519)
            assert_memory_equal(made, sig.data, sig.len);
        keypair_free(key);
    }
    buf_done(&msg);
    buf_done(&sig);
}

/* Of each scheme: what it signs it accepts, and nothing that differs in a bit. */
static void test_changed_bits(void **state)
{
    (void)state;
    uint8_t msg[MSG_MAX], sig[KEY_SIG_MAX];
    pattern(msg);
    for (int s = KEY_ED25519; s <= KEY_ETHEREUM; s++) {
        enum key_scheme scheme = (enum key_scheme)s;
        struct keypair *key = open_key(scheme, alice_uri(scheme));
        size_t public_len, id_len;
        const uint8_t *public_key = keypair_public(key, &public_len);
        const uint8_t *id = keypair_account_id(key, &id_len);
        size_t len = keypair_sign(key, msg, 100, sig);
        for (size_t bit = 0; bit < 8 * len; bit++) {
            sig[bit / 8] ^= (uint8_t)(1 << bit % 8);
            assert_false(key_verify(scheme, public_key, msg, 100, sig));
            assert_false(key_verify_account(scheme, id, id_len, msg, 100, sig));
            sig[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        for (size_t bit = 0; bit < 800; bit += 7) {
            msg[bit / 8] ^= (uint8_t)(1 << bit % 8);
            assert_false(key_verify(scheme, public_key, msg, 100, sig));
            msg[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        assert_false(key_verify(scheme, public_key, msg, 99, sig));
        assert_false(key_verify_account(scheme, id, id_len - 1, msg, 100, sig));
        assert_true(key_verify(scheme, public_key, msg, 100, sig));
        assert_true(key_verify_account(scheme, id, id_len, msg, 100, sig));
        uint8_t other[KEY_PUBLIC_MAX];
        memcpy(other, public_key, public_len);
        other[public_len - 1] ^= 1;
        assert_false(key_verify(scheme, other, msg, 100, sig));
        keypair_free(key);
    }
}

static void test_ethereum_recovery_id(void **state)
{
    (void)state;
    struct keypair *key = open_key(KEY_ETHEREUM, "/m/44'/60'/0'/0/0");
    struct keypair *ecdsa = open_key(KEY_ECDSA, "//Alice");
    size_t len;
    uint8_t sig[KEY_SIG_MAX];
    keypair_sign(key, "abc", 3, sig);
    sig[64] = (uint8_t)(sig[64] + 27); /* Ethereum's own way of writing it */
    assert_true(key_verify(KEY_ETHEREUM, keypair_public(key, &len), "abc", 3, sig));
    keypair_sign(ecdsa, "abc", 3, sig);
    sig[64] = (uint8_t)(sig[64] + 27);
    assert_false(key_verify(KEY_ECDSA, keypair_public(ecdsa, &len), "abc", 3, sig));
    keypair_free(key);
    keypair_free(ecdsa);
}

static void test_schemes(void **state)
{
    (void)state;
    enum key_scheme got;
    for (int s = KEY_ED25519; s <= KEY_ETHEREUM; s++) {
        assert_true(key_scheme_parse(key_scheme_name((enum key_scheme)s), &got));
        assert_int_equal(got, s);
    }
    assert_false(key_scheme_parse("", &got));
    assert_false(key_scheme_parse("SR25519", &got));
    assert_false(key_scheme_parse("ed2551", &got));
    assert_int_equal(key_signature_len(KEY_ED25519), 64);
    assert_int_equal(key_signature_len(KEY_ECDSA), KEY_SIG_MAX);
    assert_int_equal(key_public_len(KEY_SR25519), 32);
    assert_int_equal(key_public_len(KEY_ETHEREUM), KEY_PUBLIC_MAX);
    assert_null(keypair_free(NULL));
}

/* SECRET stands in each URI where a part of a secret would be: it must not come back. */
static const struct {
    enum key_scheme scheme;
    const char *uri, *says;
} refused[] = {
    {KEY_SR25519, "0xSECRET", "64 hexadecimal digits"},
    {KEY_SR25519, "0x", "64 hexadecimal digits"},
    {KEY_SR25519, "0x010101010101010101010101010101010101010101010101010101010101010",
     "64 hexadecimal digits"},
    {KEY_SR25519, "0x01010101010101010101010101010101010101010101010101010101010101021",
     "64 hexadecimal digits"},
    {KEY_SR25519, "0x0101010101010101010101010101010101010101010101010101010101010g02",
     "64 hexadecimal digits"},
    {KEY_SR25519, "SECRET", "word 1 of the secret phrase"},
    {KEY_SR25519, "bottom drive SECRET lake", "word 3 of the secret phrase"},
    {KEY_SR25519, "Bottom drive obey lake curtain smoke basket hold race lonely fit walk",
     "word 1"},
    {KEY_SR25519, "bottom\tdrive obey lake curtain smoke basket hold race lonely fit walk",
     "word 1"},
    {KEY_SR25519, "bottom drive obey lake", "has 4 words"},
    {KEY_SR25519, " ", "has 0 words"},
    {KEY_SR25519, "bottom drive obey lake curtain smoke basket hold race lonely fit fit",
     "checksum"},
    {KEY_SR25519, "drive bottom obey lake curtain smoke basket hold race lonely fit walk",
     "checksum"},
    {KEY_SR25519, "/", "step 1 of the secret is empty"},
    {KEY_SR25519, "//", "step 1 of the secret is empty"},
    {KEY_SR25519, "//SECRET/", "step 2 of the secret is empty"},
    {KEY_SR25519, "//SECRET//", "step 2 of the secret is empty"},
    {KEY_ED25519, "//a/SECRET", "step 2 of the secret is soft"},
    {KEY_ECDSA, "/SECRET", "ecdsa does not have"},
    {KEY_ECDSA, "0x0000000000000000000000000000000000000000000000000000000000000000",
     "not a valid ecdsa key"},
    {KEY_ECDSA, "0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141",
     "not a valid ecdsa key"},
    {KEY_ETHEREUM, "0x0000000000000000000000000000000000000000000000000000000000000000",
     "not a valid ethereum key"},
    {KEY_ETHEREUM, "0x0101010101010101010101010101010101010101010101010101010101010102/m/0",
     "remove the derivation path"},
    {KEY_ETHEREUM, "", "append /m/44'/60'/0'/0/0"},
    {KEY_ETHEREUM, "//SECRET", "must be as /m/44'/60'/0'/0/0"},
    {KEY_ETHEREUM, "/m/44'/SECRET", "step 2 of the path"},
    {KEY_ETHEREUM, "/m/44''", "step 2 of the path"},
    {KEY_ETHEREUM, "/m//44", "step 1 of the path"},
    {KEY_ETHEREUM, "/m44", "step 1 of the path"},
    {KEY_ETHEREUM, "/m/2147483648", "step 1 of the path"},
    {KEY_ETHEREUM, "/m/44'/60'/0'/0/0///SECRET\xc3\xa9", "plain ASCII"},
};

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct keypair *key = NULL;
        struct err err = {0};
        assert_int_equal(keypair_from_uri(refused[i].uri, refused[i].scheme, &key, &err), ERR_KEY);
        assert_null(key);
        assert_int_equal(err.code, ERR_KEY);
        if (!strstr(err.text, refused[i].says))
            fail_msg("\"%s\" does not say \"%s\"", err.text, refused[i].says);
        assert_null(strstr(err.text, "SECRET"));
        assert_int_equal(keypair_from_uri(refused[i].uri, refused[i].scheme, &key, NULL), ERR_KEY);
    }
}

static void test_long_junctions(void **state)
{
    (void)state;
    char uri[300];
    struct keypair *key = NULL;
    struct err err;
    memset(uri, 'j', sizeof(uri));
    memcpy(uri, "//", 2);
    uri[2 + 255] = 0;
    key = open_key(KEY_ED25519, uri);
    keypair_free(key);
    uri[2 + 255] = 'j';
    uri[2 + 256] = 0;
    assert_int_equal(keypair_from_uri(uri, KEY_ED25519, &key, &err), ERR_KEY);
    assert_non_null(strstr(err.text, "longer than 255 characters"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_uris),
        cmocka_unit_test(test_equal_uris),
        cmocka_unit_test(test_deterministic_signatures),
        cmocka_unit_test(test_extrinsic_signatures),
        cmocka_unit_test(test_changed_bits),
        cmocka_unit_test(test_ethereum_recovery_id),
        cmocka_unit_test(test_schemes),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_long_junctions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
