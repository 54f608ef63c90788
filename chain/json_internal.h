/* Private to json_*.c: the characters of strings. */
#ifndef CHAIN_JSON_INTERNAL_H
#define CHAIN_JSON_INTERNAL_H

#include <stdint.h>

/* One escape at p, which is behind its backslash: the code point and where it ends. NULL: not an escape, or
 * of NUL, or half of a pair. */
const char *json__escape(const char *p, const char *end, uint32_t *ret_code);

#endif
