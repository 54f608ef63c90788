#ifndef CHAIN_CODEC_CRYPTO_INIT_H
#define CHAIN_CODEC_CRYPTO_INIT_H

void crypto_init(void); /* cheap after the first call, from any thread */

#endif
