/* schnorrkel on libsodium's ristretto255. Three things are easy to get wrong and do not show when
 * one only signs and verifies with this code: the seed is expanded as for ed25519, and the clamped
 * scalar is divided by the cofactor; the transcript of a derivation is not a signing context; the
 * last bit of a signature marks it as schnorrkel's. */
#include "sr25519.h"

#include <sodium.h>
#include <string.h>

#include "base/check.h"
#include "merlin.h"

enum { MARKER = 0x80 };

static void signing_transcript(struct merlin *t, const uint8_t public_key[32], const void *msg,
                               size_t len)
{
    keys__merlin_init(t, "SigningContext");
    keys__merlin_append(t, "", "substrate", 9);
    keys__merlin_append(t, "sign-bytes", msg, len);
    keys__merlin_append(t, "proto-name", "Schnorr-sig", 11);
    keys__merlin_append(t, "sign:pk", public_key, 32);
}

static void challenge_scalar(struct merlin *t, const char *label, uint8_t out[32])
{
    uint8_t wide[64];
    keys__merlin_challenge(t, label, wide, sizeof(wide));
    crypto_core_ristretto255_scalar_reduce(out, wide);
    sodium_memzero(wide, sizeof(wide));
}

static void divide_by_cofactor(uint8_t scalar[32])
{
    for (unsigned i = 0; i < 31; i++)
        scalar[i] = (uint8_t)(scalar[i] >> 3 | scalar[i + 1] << 5);
    scalar[31] >>= 3;
}

void keys__sr25519_expand(const uint8_t seed[32], struct sr25519_secret *ret_secret)
{
    uint8_t hash[64];
    crypto_hash_sha512(hash, seed, 32);
    hash[0] &= 248;
    hash[31] &= 63;
    hash[31] |= 64;
    divide_by_cofactor(hash);
    memcpy(ret_secret->scalar, hash, 32);
    memcpy(ret_secret->nonce, hash + 32, 32);
    sodium_memzero(hash, sizeof(hash));
}

bool keys__sr25519_public(const struct sr25519_secret *secret, uint8_t ret_public[32])
{
    return crypto_scalarmult_ristretto255_base(ret_public, secret->scalar) == 0;
}

static void derivation_transcript(struct merlin *t, const uint8_t chain_code[32])
{
    keys__merlin_init(t, "SchnorrRistrettoHDKD");
    keys__merlin_append(t, "sign-bytes", "", 0);
    keys__merlin_append(t, "chain-code", chain_code, 32);
}

void keys__sr25519_derive_hard(struct sr25519_secret *secret, const uint8_t chain_code[32])
{
    struct merlin t;
    uint8_t seed[32];
    derivation_transcript(&t, chain_code);
    keys__merlin_append(&t, "secret-key", secret->scalar, 32);
    keys__merlin_challenge(&t, "HDKD-hard", seed, sizeof(seed));
    keys__sr25519_expand(seed, secret);
    sodium_memzero(&t, sizeof(t));
    sodium_memzero(seed, sizeof(seed));
}

/* The new public key is the old one plus scalar times the base point, so it can be computed without
 * the secret. The new nonce is random and differs each time. */
bool keys__sr25519_derive_soft(struct sr25519_secret *secret, const uint8_t chain_code[32])
{
    struct merlin t;
    uint8_t public_key[32], scalar[32], random[32], nonce[32];
    if (!keys__sr25519_public(secret, public_key))
        return false;
    derivation_transcript(&t, chain_code);
    keys__merlin_append(&t, "public-key", public_key, 32);
    challenge_scalar(&t, "HDKD-scalar", scalar);
    randombytes_buf(random, sizeof(random));
    keys__merlin_witness(&t, "HDKD-nonce", secret, sizeof(*secret), random, nonce, sizeof(nonce));
    crypto_core_ristretto255_scalar_add(secret->scalar, secret->scalar, scalar);
    memcpy(secret->nonce, nonce, sizeof(nonce));
    sodium_memzero(&t, sizeof(t));
    sodium_memzero(scalar, sizeof(scalar));
    sodium_memzero(nonce, sizeof(nonce));
    return true;
}

void keys__sr25519_sign(const struct sr25519_secret *secret, const uint8_t public_key[32],
                        const void *msg, size_t len, const uint8_t random[32], uint8_t sig[64])
{
    struct merlin t;
    uint8_t wide[64], r[32], k[32], s[32];
    signing_transcript(&t, public_key, msg, len);
    keys__merlin_witness(&t, "signing", secret->nonce, sizeof(secret->nonce), random, wide,
                         sizeof(wide));
    crypto_core_ristretto255_scalar_reduce(r, wide);
    int zero = crypto_scalarmult_ristretto255_base(sig, r);
    INVARIANT(zero == 0); /* fails if r = 0: a chance of 2^-252 */
    keys__merlin_append(&t, "sign:R", sig, 32);
    challenge_scalar(&t, "sign:c", k);
    crypto_core_ristretto255_scalar_mul(s, k, secret->scalar);
    crypto_core_ristretto255_scalar_add(sig + 32, s, r);
    sig[63] |= MARKER;
    sodium_memzero(wide, sizeof(wide));
    sodium_memzero(r, sizeof(r));
    sodium_memzero(s, sizeof(s));
}

/* A scalar at or above the group order equals one below it: accepting it would make signatures
 * malleable. */
static bool scalar_is_canonical(const uint8_t s[32])
{
    uint8_t wide[64] = {0};
    uint8_t reduced[32];
    memcpy(wide, s, 32);
    crypto_core_ristretto255_scalar_reduce(reduced, wide);
    return memcmp(reduced, s, 32) == 0;
}

bool keys__sr25519_verify(const uint8_t public_key[32], const void *msg, size_t len,
                          const uint8_t sig[64])
{
    struct merlin t;
    uint8_t s[32], k[32], sb[32], ka[32], r[32];
    if (!(sig[63] & MARKER))
        return false;
    memcpy(s, sig + 32, 32);
    s[31] &= (uint8_t)~MARKER;
    if (!scalar_is_canonical(s))
        return false;
    signing_transcript(&t, public_key, msg, len);
    keys__merlin_append(&t, "sign:R", sig, 32);
    challenge_scalar(&t, "sign:c", k);
    /* Both fail for a zero scalar and for an invalid or zero point; no honest signature has one. */
    if (crypto_scalarmult_ristretto255_base(sb, s) != 0 ||
        crypto_scalarmult_ristretto255(ka, k, public_key) != 0)
        return false;
    return crypto_core_ristretto255_sub(r, sb, ka) == 0 && memcmp(r, sig, 32) == 0;
}
