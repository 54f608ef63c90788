/* Signing keys. Secrets are in locked memory (sodium_malloc), are wiped, and are never logged.
 *
 *   ed25519    RFC 8032
 *   sr25519    as schnorrkel: STROBE and Merlin over ristretto255, signing context "substrate"
 *   ecdsa      secp256k1 over blake2b-256 of the message, as Substrate
 *   ethereum   secp256k1 over keccak-256 of the message; account ids of 20 bytes */
#ifndef CHAIN_KEYS_KEYS_H
#define CHAIN_KEYS_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/key_scheme.h"

struct keypair;

/* Make a key pair from a secret URI: PHRASE-or-0xSEED [/soft] [//hard]... [///password].
 *   An empty phrase is the well-known development phrase, as in "//Alice". BIP39 phrases of 12..24
 *   words give Substrate's mini secret: PBKDF2 over the entropy, not over the text. Junctions
 *   derive as schnorrkel, ed25519 and ecdsa HDKD; soft ones work for sr25519 only. KEY_ETHEREUM: a
 *   0x seed is the key itself; a phrase needs a BIP32 path in place of junctions, as in
 *   PHRASE/m/44'/60'/0'/0/0.
 * ERR_KEY: err names the position of the fault, never the content. The caller wipes its own copy of
 * uri. */
int keypair_from_uri(const char *uri, enum key_scheme scheme, struct keypair **ret_key,
                     struct err *err);
/* Make a key pair from a key file: a secret URI in its first line, or Substrate's keystore form
 * (the URI as a JSON string). It must be a regular file of at most 4096 bytes that belongs to us or
 * to root and gives no permissions to group and others. ERR_KEY: err names the file and how to
 * repair it, never its content. */
int keypair_from_file(const char *path, enum key_scheme scheme, struct keypair **ret_key,
                      struct err *err);
/* Write a random seed into a new file of mode 0600, in the form that keypair_from_file reads.
 * ERR_KEY: the file exists or cannot be created. */
int key_file_new(const char *path, struct err *err);
struct keypair *keypair_free(struct keypair *key); /* wipes; NULL allowed; returns NULL */

enum key_scheme keypair_scheme(const struct keypair *key);
/* Was it made from the public development phrase ("//Alice", or the phrase itself)? */
bool keypair_is_development(const struct keypair *key);
/* false: the memory of some secret could not be locked (RLIMIT_MEMLOCK), so it may reach the
 * swap. */
bool keys_are_locked(void);
const uint8_t *keypair_public(const struct keypair *key, size_t *ret_len);
const uint8_t *keypair_account_id(const struct keypair *key,
                                  size_t *ret_len); /* 32, or 20 for ethereum */
/* Sign; returns the length of the signature. sr25519 signatures are randomised: two of one message
 * differ. */
size_t keypair_sign(const struct keypair *key, const void *msg, size_t len,
                    uint8_t sig[KEY_SIG_MAX]);

/* Verify against a public key, or against an account id (ecdsa and ethereum recover the public
 * key). The signature has key_signature_len bytes. */
bool key_verify(enum key_scheme scheme, const uint8_t *public_key, const void *msg, size_t len,
                const uint8_t *sig);
bool key_verify_account(enum key_scheme scheme, const uint8_t *account_id, size_t id_len,
                        const void *msg, size_t len, const uint8_t *sig);

#endif
