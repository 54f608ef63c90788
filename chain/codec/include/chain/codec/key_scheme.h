/* The signature schemes of Substrate's chains: what extrinsics need to know of them.
 * chain/keys/keys.h signs. */
#ifndef CHAIN_CODEC_KEY_SCHEME_H
#define CHAIN_CODEC_KEY_SCHEME_H

#include <stdbool.h>
#include <stddef.h>

/* The first three values are MultiSignature's variant indices. */
enum key_scheme { KEY_ED25519 = 0, KEY_SR25519 = 1, KEY_ECDSA = 2, KEY_ETHEREUM = 3 };
enum { KEY_SIG_MAX = 65, KEY_PUBLIC_MAX = 33 };

const char *key_scheme_name(enum key_scheme scheme); /* "ed25519", "sr25519", "ecdsa", "ethereum" */
bool key_scheme_parse(const char *name, enum key_scheme *ret_scheme);
size_t key_signature_len(enum key_scheme scheme);  /* 64, or 65 for ecdsa and ethereum */
size_t key_public_len(enum key_scheme scheme);     /* 32, or 33 compressed for ecdsa and ethereum */
size_t key_account_id_len(enum key_scheme scheme); /* 32, or 20 for ethereum */

#endif
