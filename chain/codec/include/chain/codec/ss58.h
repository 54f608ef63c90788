/* SS58 account addresses (base58 with prefix and blake2b-512 checksum), and 0x addresses of 20
 * bytes. */
#ifndef CHAIN_CODEC_SS58_H
#define CHAIN_CODEC_SS58_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SS58_TEXT_MAX = 64, ACCOUNT_ID_MAX = 32, SS58_PREFIX_MAX = 16383 };

/* PRE: prefix <= SS58_PREFIX_MAX. */
void ss58_encode(const uint8_t id[32], uint16_t prefix, char out[SS58_TEXT_MAX]);
/* False: wrong alphabet, length or checksum, or not an id of 32 bytes. */
bool ss58_decode(const char *text, uint8_t ret_id[32], uint16_t *ret_prefix);

/* Parse SS58 text, or 0x with 64 or 40 digits. *ret_len is 32 or 20. */
bool account_id_parse(const char *text, uint8_t ret_id[ACCOUNT_ID_MAX], size_t *ret_len);

#endif
