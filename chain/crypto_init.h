#ifndef CHAIN_CRYPTO_INIT_H
#define CHAIN_CRYPTO_INIT_H

void chain__crypto_init(void); /* cheap after the first call, from any thread */

#endif
