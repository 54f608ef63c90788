/* Characters of UTF-8, by their length alone: overlong forms and surrogates are not looked for. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* The length in bytes of the character that begins at `at`, of which `left` (> 0) can be read;
 * 0: it is none. */
size_t utf8_len(const uint8_t *at, size_t left);

#endif
