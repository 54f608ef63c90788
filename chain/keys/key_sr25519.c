/* The scheme sr25519: adapts sr25519.c to struct key_scheme_ops. */
#include <sodium.h>
#include <string.h>

#include "keys_scheme.h"
#include "sr25519.h"

_Static_assert(sizeof(struct sr25519_secret) == KEY_SECRET_MAX,
               "the secret fills the place of a secret");

static bool expand(const uint8_t seed[KEY_SEED_LEN], uint8_t *secret)
{
    keys__sr25519_expand(seed, (struct sr25519_secret *)secret);
    return true;
}

static bool derive(uint8_t *secret, const struct key_junction *junction)
{
    struct sr25519_secret *s = (struct sr25519_secret *)secret;
    if (!junction->hard)
        return keys__sr25519_derive_soft(s, junction->chain_code);
    keys__sr25519_derive_hard(s, junction->chain_code);
    return true;
}

static bool public_of(const uint8_t *secret, uint8_t *ret_public)
{
    return keys__sr25519_public((const struct sr25519_secret *)secret, ret_public);
}

static void account_of(const uint8_t *public_key, uint8_t *ret_id)
{
    memcpy(ret_id, public_key, 32);
}

static void sign(const uint8_t *secret, const uint8_t *public_key, const void *msg, size_t len,
                 uint8_t *sig)
{
    uint8_t random[32];
    randombytes_buf(random, sizeof(random));
    keys__sr25519_sign((const struct sr25519_secret *)secret, public_key, msg, len, random, sig);
    sodium_memzero(random, sizeof(random));
}

const struct key_scheme_ops keys__key_sr25519 = {
    .scheme = KEY_SR25519,
    .has_soft = true,
    .expand = expand,
    .derive = derive,
    .public_of = public_of,
    .account_of = account_of,
    .sign = sign,
    .verify = keys__sr25519_verify,
    .verify_account = keys__sr25519_verify, /* the account id is the public key */
};
