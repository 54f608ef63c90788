/* sr25519: Schnorr signatures over ristretto255 as schnorrkel makes them, signing context
 * "substrate". */
#ifndef CHAIN_KEYS_SR25519_H
#define CHAIN_KEYS_SR25519_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sr25519_secret {
    uint8_t scalar[32]; /* below the group order */
    uint8_t nonce[32];  /* seeds the witness; not part of the public key */
};

void keys__sr25519_expand(const uint8_t seed[32], struct sr25519_secret *ret_secret);
/* False: the scalar is zero, which no honest seed gives. */
bool keys__sr25519_public(const struct sr25519_secret *secret, uint8_t ret_public[32]);
void keys__sr25519_derive_hard(struct sr25519_secret *secret, const uint8_t chain_code[32]);
bool keys__sr25519_derive_soft(struct sr25519_secret *secret, const uint8_t chain_code[32]);

/* random: fresh bytes for every call. It is a parameter so that a test can repeat a signature. */
void keys__sr25519_sign(const struct sr25519_secret *secret, const uint8_t public_key[32],
                        const void *msg, size_t len, const uint8_t random[32], uint8_t sig[64]);
bool keys__sr25519_verify(const uint8_t public_key[32], const void *msg, size_t len,
                          const uint8_t sig[64]);

#endif
