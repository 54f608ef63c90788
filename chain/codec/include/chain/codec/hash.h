/* The hashes that Substrate uses. */
#ifndef CHAIN_CODEC_HASH_H
#define CHAIN_CODEC_HASH_H

#include <stddef.h>
#include <stdint.h>

enum { HASH_LEN = 32 };

void hash_blake2b_256(const void *data, size_t len, uint8_t out[32]);
void hash_blake2b_128(const void *data, size_t len, uint8_t out[16]);
void hash_blake2b_512(const void *data, size_t len, uint8_t out[64]);
void hash_twox_128(const void *data, size_t len, uint8_t out[16]);
void hash_keccak_256(const void *data, size_t len, uint8_t out[32]);
void hash_sha256(const void *data, size_t len, uint8_t out[32]);
void hash_hmac_sha256(const void *key, size_t key_len, const void *data, size_t len,
                      uint8_t out[32]);

#endif
