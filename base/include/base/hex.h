/* Hexadecimal text, with or without 0x in, without in the raw form and with 0x in the _0x form
 * out. */
#ifndef BASE_HEX_H
#define BASE_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

void hex_put(struct buf *b, const void *data, size_t n);    /* "0aff" */
void hex_put_0x(struct buf *b, const void *data, size_t n); /* "0x0aff" */

/* Decode text of len characters (optional 0x, an even count of digits, either case) onto b.
 * false: not hexadecimal, b unchanged. */
bool hex_decode(const char *text, size_t len, struct buf *b);

/* Exactly n bytes into out. false: wrong length or not hexadecimal, out untouched. */
bool hex_decode_fixed(const char *text, size_t len, uint8_t *out, size_t n);

/* Text of up to 32 bytes for log lines, in one of eight rotating static buffers. */
const char *hex_log(const void *data, size_t n);

#endif
