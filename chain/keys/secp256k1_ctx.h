#ifndef CHAIN_KEYS_SECP256K1_CTX_H
#define CHAIN_KEYS_SECP256K1_CTX_H

#include <secp256k1.h>

/* One context for the process, blinded with fresh randomness when it is made, read-only afterwards
 * and so free to use from every thread. It lives as long as the process. */
const secp256k1_context *keys__secp256k1(void);

#endif
