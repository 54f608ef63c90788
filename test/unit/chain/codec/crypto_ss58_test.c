/* SS58 texts agree with @polkadot/util-crypto for one and two byte prefixes, and nothing but the
 * right text is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "chain/codec/ss58.h"

static const char alice_hex[] =
    "0xd43593c715fdd31c61141abd04a99fd6822c8558854ccde39a5684e7a56da27d";

static const struct {
    uint16_t prefix;
    const char *alice;
    const char *zero; /* the account id of 32 zero bytes */
} rows[] = {
    {0, "15oF4uVJwmo4TdGW7VfQxNLavjCXviqxT9S1MgbjMNHr6Sp5", "111111111111111111111111111111111HC1"},
    {2, "HNZata7iMYWmk5RvZRTiAsSDhV8366zq2YGb3tLH5Upf74F",
     "CaKWz5omakTK7ovp4m3koXrHyHb7NG3Nt7GENHbviByZpKp"},
    {42, "5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY",
     "5C4hrfjw9DjXZTzV3MwzrrAr9P1MJhSrvWGWqi1eSuyUpnhM"},
    {63, "7NPoMQbiA6trJKkjB35uk96MeJD4PGWkLQLH7k7hXEkZpiba",
     "7HbZHW7QDL6nqhVE4YRVnmkmia1XTYfntFuGm4WyAsTijUu7"},
    {64, "cEaNSpz4PxFcZ7nT1VEKrKewH67rfx6MfcM6yKojyyPz7qaqp",
     "cEVaCm5a61UpVfABWNjfSNHbhAPf92NWiACfxy89Fd2hGkJAc"},
    {69, "cnWHXYTKQwMV96ZuTKbqTA23FuPcmWjrDyLNzCXYL92G9tmtm",
     "cnRVHUYq6zah5dwdxD7B3CehfyfREb21GXBwyqqwbneyJoTRq"},
    {127, "jAtW53781ZL18rTbRPuMcq3EcxYSHF3AJAnnMwgoxs5UAaELH",
     "jAohpyCdhcZD5PqKvHQhCsfu32pEkKKKLieMMb1DEWiBKUpre"},
    {128, "jHGtHabmp9wyerDV7Myf8ziFpKbb6kmTcEzEmKRyEVoXNb1pm",
     "jHC63WhHWDBBbPbDcFUzj3LvEPsPZq3cenqokxkNW9SEXVVdC"},
    {255, "yGHXkYLYqxijLKKfd9Q2CB9shRVu8rPNBS53wvwGTutYg4zTg",
     "yGCjWUS4Y1wwGrhQ82uMnDnY7VmhbvfXDyvcwaFfjZXFpyjCq"},
    {256, "VByeGLMtP8r8BYQpNX1sb2VtAW8GYCbtFAeXJwsA2ur3MNRdq",
     "VBtr2GTQ5C5L85nYsQXDB58YaaQ51Gt3HiW6JbBZJZUkWHGhE"},
    {1284, "VdvKmYJfD4VXA9fzz1SbmCo2eYHSzUFbaDCZSuaNKJAe8YNg6",
     "VdqXXUQAu7ij6h3jUtwwMFRh4cZFTYXkcm48SYtmawoMHT536"},
    {16383, "yNa8JpqfFB3q8A29rCwSgxvdU94ufJw2yKKxDgznS5m1PoFvn",
     "yNVL4kwAwEH34hPtM6SnH1ZHtDLi8PDC1sBXDLKBhjPiYiEY9"},
};

/* Accounts of the other schemes, from the reference vectors. */
static const struct {
    const char *hex;
    uint16_t prefix;
    const char *text;
} others[] = {

    {"0x88dc3417d5058ec4b4503e0c12ea1a0a89be200fe98922423d4334014fa6b0ee", 42,
     "5FA9nQDVg267DEd8m1ZypXLBnvN7SFxYwV7ndqSYGiN9TTpu"},
    {"0x88dc3417d5058ec4b4503e0c12ea1a0a89be200fe98922423d4334014fa6b0ee", 0,
     "146SvjUZXoMaemdeiecyxgALeYMm8ZWh1yrGo8RtpoPfe7WL"},
    {"0x88dc3417d5058ec4b4503e0c12ea1a0a89be200fe98922423d4334014fa6b0ee", 2,
     "FfmSiZNJP72xtSaXiP2iUhBwWeMEvmjPrxY2ViVkWaeChDC"},
    {"0x01e552298e47454041ea31273b4b630c64c104e4514aa3643490b8aaca9cf8ed", 42,
     "5C7C2Z5sWbytvHpuLTvzKunnnRwQxft1jiqrLD5rhucQ5S9X"},
    {"0x01e552298e47454041ea31273b4b630c64c104e4514aa3643490b8aaca9cf8ed", 0,
     "13VAtLwNPFNMpqRJ6yzU4cwe3w4eyS9pDaLVW5DFzdvFwWa"},
    {"0x01e552298e47454041ea31273b4b630c64c104e4514aa3643490b8aaca9cf8ed", 2,
     "CcogsRk8xzpfweM7Ak3Ds9nw2DemLhCC6gbisMpBhptpgcr"},
};

static void check(const uint8_t id[32], uint16_t prefix, const char *text)
{
    char out[SS58_TEXT_MAX];
    uint8_t back[ACCOUNT_ID_MAX];
    uint16_t got;
    size_t len;
    ss58_encode(id, prefix, out);
    assert_string_equal(out, text);
    assert_true(ss58_decode(text, back, &got));
    assert_int_equal(got, prefix);
    assert_memory_equal(back, id, 32);
    memset(back, 0xee, sizeof(back));
    assert_true(account_id_parse(text, back, &len));
    assert_int_equal(len, 32);
    assert_memory_equal(back, id, 32);
}

static void test_reference_texts(void **state)
{
    (void)state;
    uint8_t alice[32], other[32];
    const uint8_t zero[32] = {0};
    assert_true(hex_decode_fixed(alice_hex, strlen(alice_hex), alice, 32));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        check(alice, rows[i].prefix, rows[i].alice);
        check(zero, rows[i].prefix, rows[i].zero);
    }
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        assert_true(hex_decode_fixed(others[i].hex, strlen(others[i].hex), other, 32));
        check(other, others[i].prefix, others[i].text);
    }
}

static void test_every_prefix(void **state)
{
    (void)state;
    uint8_t id[32], back[32];
    char text[SS58_TEXT_MAX];
    for (unsigned prefix = 0; prefix <= 16383; prefix++) {
        uint16_t got;
        memset(id, (int)(prefix & 255), sizeof(id));
        ss58_encode(id, (uint16_t)prefix, text);
        assert_true(ss58_decode(text, back, &got));
        assert_int_equal(got, prefix);
        assert_memory_equal(back, id, 32);
    }
}

static void test_changed_characters(void **state)
{
    (void)state;
    uint8_t id[32];
    uint16_t prefix;
    size_t len = strlen(rows[2].alice);
    for (size_t i = 0; i < len; i++) {
        char text[SS58_TEXT_MAX];
        memcpy(text, rows[2].alice, len + 1);
        text[i] = text[i] == 'x' ? 'y' : 'x';
        assert_false(ss58_decode(text, id, &prefix));
        memcpy(text, rows[2].alice, len + 1);
        text[i] = 0;
        assert_false(ss58_decode(text, id, &prefix));
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "1",
        "0",
        "5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY ",
        " 5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY",
        "5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKut0Y",
        "15GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY",
        "1111111111111111111111111111111111111111111111111111111111111111111111111111",
        "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz",
        "0x",
        "0xd43593c715fdd31c61141abd04a99fd6822c8558854ccde39a5684e7a56da2",
        "0xd43593c715fdd31c61141abd04a99fd6822c8558854ccde39a5684e7a56da27g",
        "d43593c715fdd31c61141abd04a99fd6822c8558854ccde39a5684e7a56da27d",
        "0xf24FF3a9CF04c71Dbc94D0b566f7A27B94566ca",
    };
    uint8_t id[ACCOUNT_ID_MAX];
    size_t len;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(account_id_parse(bad[i], id, &len));
}

static void test_hex_accounts(void **state)
{
    (void)state;
    uint8_t id[ACCOUNT_ID_MAX];
    size_t len;
    assert_true(account_id_parse(alice_hex, id, &len));
    assert_int_equal(len, 32);
    assert_true(account_id_parse("0xf24FF3a9CF04c71Dbc94D0b566f7A27B94566cac", id, &len));
    assert_int_equal(len, 20);
    assert_memory_equal(id, "\xf2\x4f\xf3", 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference_texts),    cmocka_unit_test(test_every_prefix),
        cmocka_unit_test(test_changed_characters), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_hex_accounts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
