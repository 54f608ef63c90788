/* The scheme ed25519: RFC 8032. The secret has libsodium's form: seed, then public key. */
#include <sodium.h>
#include <string.h>

#include "keys_scheme.h"

static bool expand(const uint8_t seed[KEY_SEED_LEN], uint8_t *secret)
{
    uint8_t public_key[32];
    return crypto_sign_seed_keypair(public_key, secret, seed) == 0;
}

static bool derive(uint8_t *secret, const struct key_junction *junction)
{
    uint8_t seed[KEY_SEED_LEN];
    memcpy(seed, secret, sizeof(seed));
    keys__derive_hard_seed("Ed25519HDKD", seed, junction->chain_code);
    bool ok = expand(seed, secret);
    sodium_memzero(seed, sizeof(seed));
    return ok;
}

static bool public_of(const uint8_t *secret, uint8_t *ret_public)
{
    memcpy(ret_public, secret + KEY_SEED_LEN, 32);
    return true;
}

static void account_of(const uint8_t *public_key, uint8_t *ret_id)
{
    memcpy(ret_id, public_key, 32);
}

static void sign(const uint8_t *secret, const uint8_t *public_key, const void *msg, size_t len,
                 uint8_t *sig)
{
    (void)public_key;
    crypto_sign_detached(sig, NULL, msg, len, secret);
}

static bool verify(const uint8_t *public_key, const void *msg, size_t len, const uint8_t *sig)
{
    return crypto_sign_verify_detached(sig, msg, len, public_key) == 0;
}

const struct key_scheme_ops keys__key_ed25519 = {
    .scheme = KEY_ED25519,
    .has_soft = false,
    .expand = expand,
    .derive = derive,
    .public_of = public_of,
    .account_of = account_of,
    .sign = sign,
    .verify = verify,
    .verify_account = verify, /* the account id is the public key */
};
