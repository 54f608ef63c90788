/* BIP32 private derivation on secp256k1, for phrases of Ethereum wallets. */
#include <sodium.h>
#include <string.h>

#include "keys_scheme.h"
#include "secp256k1_ctx.h"

#define HARDENED UINT32_C(0x80000000)

struct node {
    uint8_t key[32];
    uint8_t chain_code[32];
};

static void hmac(const void *key, size_t key_len, const void *data, size_t len, uint8_t out[64])
{
    crypto_auth_hmacsha512_state state;
    crypto_auth_hmacsha512_init(&state, key, key_len);
    crypto_auth_hmacsha512_update(&state, data, len);
    crypto_auth_hmacsha512_final(&state, out);
    sodium_memzero(&state, sizeof(state));
}

static bool master(const uint8_t seed[64], struct node *n)
{
    uint8_t out[64];
    hmac("Bitcoin seed", 12, seed, 64, out);
    memcpy(n->key, out, 32);
    memcpy(n->chain_code, out + 32, 32);
    sodium_memzero(out, sizeof(out));
    return secp256k1_ec_seckey_verify(keys__secp256k1(), n->key) == 1;
}

static bool child(struct node *n, uint32_t index)
{
    uint8_t data[33 + 4];
    uint8_t out[64];
    if (index & HARDENED) {
        data[0] = 0;
        memcpy(data + 1, n->key, 32);
    } else if (!keys__key_ethereum.public_of(n->key, data)) {
        return false;
    }
    for (unsigned i = 0; i < 4; i++)
        data[33 + i] = (uint8_t)(index >> (24 - 8 * i));
    hmac(n->chain_code, 32, data, sizeof(data), out);
    bool ok = secp256k1_ec_seckey_tweak_add(keys__secp256k1(), n->key, out) == 1;
    memcpy(n->chain_code, out + 32, 32);
    sodium_memzero(data, sizeof(data));
    sodium_memzero(out, sizeof(out));
    return ok;
}

/* Read one "/44'" or "/0" at *at. */
static bool next_index(const char **at, const char *end, uint32_t *ret_index)
{
    const char *p = *at;
    uint32_t v = 0;
    if (p == end || *p++ != '/' || p == end || *p < '0' || *p > '9')
        return false;
    for (; p < end && *p >= '0' && *p <= '9'; p++) {
        if (v > (HARDENED - 1 - (uint32_t)(*p - '0')) / 10)
            return false;
        v = v * 10 + (uint32_t)(*p - '0');
    }
    if (p < end && *p == '\'') {
        v |= HARDENED;
        p++;
    }
    *ret_index = v;
    *at = p;
    return true;
}

static int walk(struct node *n, const char *path, size_t len, struct err *err)
{
    const char *end = path + len, *at = path + 2;
    if (len < 2 || memcmp(path, "/m", 2) != 0)
        return err_set(err, ERR_KEY, "the path of scheme ethereum must be as /m/44'/60'/0'/0/0");
    for (int step = 1; at < end; step++) {
        uint32_t index;
        if (!next_index(&at, end, &index))
            return err_set(
                err, ERR_KEY,
                "step %d of the path is no BIP32 index: write it as in /m/44'/60'/0'/0/0", step);
        if (!child(n, index))
            return err_set(err, ERR_KEY,
                           "step %d of the path gives no valid key: use another index", step);
    }
    return 0;
}

int keys__bip32_derive(const uint8_t seed[64], const char *path, size_t len, uint8_t key[32],
                       struct err *err)
{
    struct node n;
    int rc =
        master(seed, &n)
            ? walk(&n, path, len, err)
            : err_set(err, ERR_KEY, "the phrase gives no valid secp256k1 key: generate another");
    if (rc == 0)
        memcpy(key, n.key, 32);
    sodium_memzero(&n, sizeof(n));
    return rc;
}
