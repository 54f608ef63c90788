/* The hashes that Substrate uses, with libsodium (blake2b, sha256), xxhash (twox) and nettle's
 * Keccak permutation (keccak256 has Keccak's original padding, not that of SHA-3). */
#include "chain/codec/hash.h"

#include <nettle/sha3.h>
#include <sodium.h>
#include <string.h>
#include <xxhash.h>

#include "chain/codec/crypto_init.h"

static void blake2b(const void *data, size_t len, uint8_t *out, size_t out_len)
{
    crypto_init();
    crypto_generichash(out, out_len, data, len, NULL, 0);
}

void hash_blake2b_256(const void *data, size_t len, uint8_t out[32])
{
    blake2b(data, len, out, 32);
}

void hash_blake2b_128(const void *data, size_t len, uint8_t out[16])
{
    blake2b(data, len, out, 16);
}

void hash_blake2b_512(const void *data, size_t len, uint8_t out[64])
{
    blake2b(data, len, out, 64);
}

/* twox_N is the concatenation of XXH64 with the seeds 0, 1, ..., each in little endian. */
static void twox(const void *data, size_t len, uint8_t *out, unsigned words)
{
    for (unsigned seed = 0; seed < words; seed++) {
        XXH64_hash_t word = XXH64(data, len, seed);
        for (unsigned i = 0; i < 8; i++)
            out[8 * seed + i] = (uint8_t)(word >> (8 * i));
    }
}

void hash_twox_128(const void *data, size_t len, uint8_t out[16])
{
    twox(data, len, out, 2);
}

enum { KECCAK_256_RATE = 136 };

static void keccak_absorb(struct sha3_state *state, const uint8_t block[KECCAK_256_RATE])
{
    for (unsigned i = 0; i < KECCAK_256_RATE; i++)
        state->a[i / 8] ^= (uint64_t)block[i] << (8 * (i % 8));
    sha3_permute(state);
}

void hash_keccak_256(const void *data, size_t len, uint8_t out[32])
{
    struct sha3_state state = {0};
    const uint8_t *p = data;
    for (; len >= KECCAK_256_RATE; p += KECCAK_256_RATE, len -= KECCAK_256_RATE)
        keccak_absorb(&state, p);
    uint8_t last[KECCAK_256_RATE] = {0};
    if (len)
        memcpy(last, p, len);
    last[len] = 0x01;
    last[KECCAK_256_RATE - 1] |= 0x80;
    keccak_absorb(&state, last);
    for (unsigned i = 0; i < 32; i++)
        out[i] = (uint8_t)(state.a[i / 8] >> (8 * (i % 8)));
}

void hash_sha256(const void *data, size_t len, uint8_t out[32])
{
    crypto_init();
    crypto_hash_sha256(out, data, len);
}

void hash_hmac_sha256(const void *key, size_t key_len, const void *data, size_t len,
                      uint8_t out[32])
{
    crypto_auth_hmacsha256_state state;
    crypto_init();
    crypto_auth_hmacsha256_init(&state, key, key_len);
    crypto_auth_hmacsha256_update(&state, data, len);
    crypto_auth_hmacsha256_final(&state, out);
    sodium_memzero(&state, sizeof(state));
}
