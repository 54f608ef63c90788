/* The operations of a signature scheme, which key_<scheme>.c implement and keys.c and keys_uri.c
 * use. */
#ifndef CHAIN_KEYS_KEYS_SCHEME_H
#define CHAIN_KEYS_KEYS_SCHEME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "chain/keys/keys.h"

enum { KEY_SEED_LEN = 32, KEY_SECRET_MAX = 64 };

struct key_junction {
    uint8_t chain_code[32];
    bool hard;
};

struct key_scheme_ops {
    enum key_scheme scheme;
    bool has_soft;
    /* secret has room for KEY_SECRET_MAX bytes; each scheme has its own form of it. False: the seed
     * (or the derived seed) is not a secret of this curve. The chance of that is negligible for a
     * random seed. */
    bool (*expand)(const uint8_t seed[KEY_SEED_LEN], uint8_t *secret);
    /* NULL: the scheme uses BIP32 paths. */
    bool (*derive)(uint8_t *secret, const struct key_junction *junction);
    bool (*public_of)(const uint8_t *secret, uint8_t *ret_public);
    void (*account_of)(const uint8_t *public_key, uint8_t *ret_id);
    void (*sign)(const uint8_t *secret, const uint8_t *public_key, const void *msg, size_t len,
                 uint8_t *sig);
    bool (*verify)(const uint8_t *public_key, const void *msg, size_t len, const uint8_t *sig);
    bool (*verify_account)(const uint8_t *id, const void *msg, size_t len, const uint8_t *sig);
};

extern const struct key_scheme_ops keys__key_ed25519;
extern const struct key_scheme_ops keys__key_sr25519;
extern const struct key_scheme_ops keys__key_ecdsa;
extern const struct key_scheme_ops keys__key_ethereum;

const struct key_scheme_ops *keys__key_ops(enum key_scheme scheme);

/* Locked, zeroed memory that is left out of core dumps. sodium_free wipes and frees it. */
void *keys__secret_alloc(size_t n);

/* Hard derivation for the schemes that have none of their own: blake2b-256 of the SCALE text of
 * `name`, the old seed and the chain code. */
void keys__derive_hard_seed(const char *name, uint8_t seed[KEY_SEED_LEN],
                            const uint8_t chain_code[32]);

/* Does the URI use the well-known development phrase? */
bool keys__is_development(const char *uri);

/* Turn a secret URI into the scheme's secret. */
int keys__secret_from_uri(const char *uri, enum key_scheme scheme, uint8_t *secret,
                          struct err *err);

/* The entropy of a BIP39 phrase, which needs no terminating NUL. entropy has room for 32 bytes. */
int keys__bip39_entropy(const char *phrase, size_t len, uint8_t *entropy, size_t *ret_len,
                        struct err *err);
/* Substrate's mini secret (PBKDF2 over the entropy), 32 bytes, and BIP39's own seed (PBKDF2 over
 * the words), 64 bytes. */
int keys__bip39_mini_secret(const char *phrase, size_t len, const char *password, uint8_t seed[32],
                            struct err *err);
int keys__bip39_seed(const char *phrase, size_t len, const char *password, uint8_t seed[64],
                     struct err *err);

/* BIP32 on secp256k1: the key of a BIP39 seed at a path such as "/m/44'/60'/0'/0/0". */
int keys__bip32_derive(const uint8_t seed[64], const char *path, size_t len, uint8_t key[32],
                       struct err *err);

#endif
