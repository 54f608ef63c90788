/* The signature schemes of Substrate's chains: names and lengths. chain/keys/keys.h signs. */
#ifndef BASE_KEY_SCHEME_H
#define BASE_KEY_SCHEME_H

#include <stdbool.h>
#include <stddef.h>

/* X(scheme, name, bytes of a public key, of an account id, of a signature). The first three are in
 * the order of MultiSignature's variants. A compressed public key has 33 bytes. */
#define KEY_SCHEMES(X)                                                                             \
    X(KEY_ED25519, "ed25519", 32, 32, 64)                                                          \
    X(KEY_SR25519, "sr25519", 32, 32, 64)                                                          \
    X(KEY_ECDSA, "ecdsa", 33, 32, 65)                                                              \
    X(KEY_ETHEREUM, "ethereum", 33, 20, 65)

enum key_scheme {
#define X(scheme, name, public_len, account_id_len, signature_len) scheme,
    KEY_SCHEMES(X)
#undef X
};
enum { KEY_SIG_MAX = 65, KEY_PUBLIC_MAX = 33 };

const char *key_scheme_name(enum key_scheme scheme); /* "ed25519" */
const char *key_scheme_names(void);                  /* "ed25519, sr25519, ..." */
bool key_scheme_parse(const char *name, enum key_scheme *ret_scheme);
size_t key_signature_len(enum key_scheme scheme);
size_t key_public_len(enum key_scheme scheme);
size_t key_account_id_len(enum key_scheme scheme);

#endif
