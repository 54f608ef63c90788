/* The context of libsecp256k1. */
#ifndef CHAIN_KEYS_SECP256K1_CTX_H
#define CHAIN_KEYS_SECP256K1_CTX_H

#include <secp256k1.h>

/* One context for the process. It is blinded with random bytes when it is made and read-only
 * afterwards, so every thread may use it. It is never freed. */
const secp256k1_context *keys__secp256k1(void);

#endif
