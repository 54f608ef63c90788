/* libsodium must be initialised before any other of its functions runs. */
#ifndef CHAIN_CODEC_CRYPTO_INIT_H
#define CHAIN_CODEC_CRYPTO_INIT_H

/* Initialise libsodium once. Any thread may call it; after the first call it is cheap. */
void crypto_init(void);

#endif
