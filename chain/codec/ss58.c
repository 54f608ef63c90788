/* SS58: base58(prefix || account id || the first two bytes of blake2b-512("SS58PRE" || prefix ||
 * id)). Prefixes up to 63 take one byte, larger ones two, whose first has its upper bits 01. */
#include "chain/codec/ss58.h"

#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "chain/codec/hash.h"

enum {
    ID_LEN = 32,
    CHECK_LEN = 2,
    RAW_MAX = 2 + ID_LEN + CHECK_LEN,
    RAW_MIN = RAW_MAX - 1,
    PREFIX_ONE_BYTE_MAX = 63,
};

static const char alphabet[] = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

static void checksum(const uint8_t *body, size_t len, uint8_t out[64])
{
    uint8_t text[7 + RAW_MAX] = {'S', 'S', '5', '8', 'P', 'R', 'E'};
    memcpy(text + 7, body, len);
    hash_blake2b_512(text, 7 + len, out);
}

static size_t prefix_put(uint16_t prefix, uint8_t out[2])
{
    if (prefix <= PREFIX_ONE_BYTE_MAX) {
        out[0] = (uint8_t)prefix;
        return 1;
    }
    out[0] = (uint8_t)(0x40 | (prefix & 0xfc) >> 2);
    out[1] = (uint8_t)(prefix >> 8 | (prefix & 3) << 6);
    return 2;
}

/* The length of the prefix; 0: invalid, which includes a small prefix written in two bytes. */
static size_t prefix_get(const uint8_t *raw, uint16_t *ret_prefix)
{
    if (raw[0] <= PREFIX_ONE_BYTE_MAX) {
        *ret_prefix = raw[0];
        return 1;
    }
    if (raw[0] > 127)
        return 0;
    *ret_prefix = (uint16_t)((raw[0] & 0x3f) << 2 | raw[1] >> 6 | (raw[1] & 0x3f) << 8);
    return *ret_prefix > PREFIX_ONE_BYTE_MAX ? 2 : 0;
}

static void base58_encode(const uint8_t *raw, size_t len, char out[SS58_TEXT_MAX])
{
    uint8_t digits[SS58_TEXT_MAX] = {0}; /* little endian, base 58 */
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned carry = raw[i];
        for (size_t j = 0; j < n; j++, carry /= 58) {
            carry += (unsigned)digits[j] << 8;
            digits[j] = (uint8_t)(carry % 58);
        }
        for (; carry; carry /= 58)
            digits[n++] = (uint8_t)(carry % 58);
    }
    size_t at = 0;
    for (size_t i = 0; i < len && raw[i] == 0; i++)
        out[at++] = alphabet[0];
    INVARIANT(at + n < SS58_TEXT_MAX);
    while (n)
        out[at++] = alphabet[digits[--n]];
    out[at] = 0;
}

/* The number of bytes; 0: the text is not base58, or has more than RAW_MAX bytes. */
static size_t base58_decode(const char *text, uint8_t raw[RAW_MAX])
{
    uint8_t bytes[RAW_MAX] = {0}; /* little endian */
    size_t n = 0;
    size_t zeros = 0;
    for (const char *c = text; *c; c++) {
        const char *digit = strchr(alphabet, *c);
        if (!digit)
            return 0;
        unsigned carry = (unsigned)(digit - alphabet);
        if (carry == 0 && n == 0 && ++zeros > RAW_MAX)
            return 0;
        for (size_t j = 0; j < n; j++, carry >>= 8) {
            carry += 58u * bytes[j];
            bytes[j] = (uint8_t)carry;
        }
        if (carry) {
            if (n + zeros >= RAW_MAX)
                return 0;
            bytes[n++] = (uint8_t)carry; /* below 58, so one byte */
        }
    }
    if (zeros + n > RAW_MAX)
        return 0;
    memset(raw, 0, zeros);
    for (size_t i = 0; i < n; i++)
        raw[zeros + i] = bytes[n - 1 - i];
    return zeros + n;
}

void ss58_encode(const uint8_t id[32], uint16_t prefix, char out[SS58_TEXT_MAX])
{
    PRE(prefix <= SS58_PREFIX_MAX);
    uint8_t raw[RAW_MAX];
    uint8_t sum[64];
    size_t len = prefix_put(prefix, raw);
    memcpy(raw + len, id, ID_LEN);
    len += ID_LEN;
    checksum(raw, len, sum);
    memcpy(raw + len, sum, CHECK_LEN);
    base58_encode(raw, len + CHECK_LEN, out);
}

bool ss58_decode(const char *text, uint8_t ret_id[32], uint16_t *ret_prefix)
{
    uint8_t raw[RAW_MAX];
    uint8_t sum[64];
    uint16_t prefix;
    size_t len = base58_decode(text, raw);
    if (len < RAW_MIN)
        return false;
    size_t head = prefix_get(raw, &prefix);
    if (head == 0 || len != head + ID_LEN + CHECK_LEN)
        return false;
    checksum(raw, len - CHECK_LEN, sum);
    if (memcmp(sum, raw + len - CHECK_LEN, CHECK_LEN) != 0)
        return false;
    memcpy(ret_id, raw + head, ID_LEN);
    *ret_prefix = prefix;
    return true;
}

bool account_id_parse(const char *text, uint8_t ret_id[ACCOUNT_ID_MAX], size_t *ret_len)
{
    if (text[0] == '0' && text[1] == 'x') {
        size_t len = strlen(text);
        size_t bytes = len == 2 + 2 * 20 ? 20 : 32;
        if (!hex_decode_fixed(text, len, ret_id, bytes))
            return false;
        *ret_len = bytes;
        return true;
    }
    uint16_t prefix;
    if (!ss58_decode(text, ret_id, &prefix))
        return false;
    *ret_len = ID_LEN;
    return true;
}
