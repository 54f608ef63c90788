/* Signing keys. Secrets live in locked memory (sodium_malloc), are wiped, never logged.
 * sr25519 follows schnorrkel (STROBE/Merlin over ristretto255, context "substrate"); ed25519 is RFC 8032;
 * ecdsa signs blake2b-256 of the message (Substrate), ethereum signs keccak-256 of it (AccountId20). */
#ifndef CHAIN_KEYS_KEYS_H
#define CHAIN_KEYS_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "chain/codec/key_scheme.h"

struct keypair;

/* From a secret URI: PHRASE-or-0xSEED [/soft] [//hard]... [///password]. An empty phrase is the well-known
 * development phrase ("//Alice"). BIP39 phrases of 12..24 words use Substrate's mini secret (PBKDF2 over
 * the entropy, not over the text). Junctions as in schnorrkel/ed25519/ecdsa HDKD; soft junctions for
 * sr25519 only. For KEY_ETHEREUM a 0x seed is the key itself and a phrase needs a BIP32 path, which takes
 * the place of the junctions: PHRASE/m/44'/60'/0'/0/0. The caller wipes its own copy of uri. */
int keypair_from_uri(const char *uri, enum key_scheme scheme, struct keypair **ret_key, struct err *err);
/* From a key file: a secret URI in the first line, or Substrate's keystore form (the URI as a JSON string).
 * It must be a regular file of ours or root's without permissions for group and others, at most 4096 bytes
 * long; ERR_KEY names the file and what mends it, never its content. */
int keypair_from_file(const char *path, enum key_scheme scheme, struct keypair **ret_key, struct err *err);
/* Write a fresh random seed into a new file of mode 0600 that keypair_from_file reads. ERR_KEY if it exists.
 */
int key_file_new(const char *path, struct err *err);
struct keypair *keypair_free(struct keypair *key); /* wipes; NULL allowed; returns NULL */

enum key_scheme keypair_scheme(const struct keypair *key);
/* Made from the development phrase that everybody knows ("//Alice", or the phrase itself). */
bool keypair_is_development(const struct keypair *key);
/* false: the memory of some secret could not be locked (RLIMIT_MEMLOCK), so it may reach the swap. */
bool keys_are_locked(void);
const uint8_t *keypair_public(const struct keypair *key, size_t *ret_len);
const uint8_t *keypair_account_id(const struct keypair *key, size_t *ret_len); /* 32, or 20 for ethereum */
/* sig has room for KEY_SIG_MAX; returns the length. sr25519 signatures are randomised: sign once, store. */
size_t keypair_sign(const struct keypair *key, const void *msg, size_t len, uint8_t sig[KEY_SIG_MAX]);

/* Verify against a public key, or (ecdsa, ethereum: by recovery) against an account id. */
bool key_verify(enum key_scheme scheme, const uint8_t *public_key, const void *msg, size_t len,
                const uint8_t *sig);
bool key_verify_account(enum key_scheme scheme, const uint8_t *account_id, size_t id_len, const void *msg,
                        size_t len, const uint8_t *sig);

#endif
