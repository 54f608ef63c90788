/* 256-bit numbers of EVM chains: the bytes of a U256 (little endian) and their text. */
#ifndef CHAIN_CODEC_U256_H
#define CHAIN_CODEC_U256_H

#include <stdbool.h>
#include <stdint.h>

enum { U256_BYTES = 32, U256_TEXT = 80 };

/* Parse decimal digits, or 0x and at most 64 big-endian digits. False: neither, or the value is too
 * large. */
bool u256__parse(const char *text, uint8_t ret[U256_BYTES]);
const char *u256__text(const uint8_t value[U256_BYTES], char out[U256_TEXT]); /* decimal */

#endif
