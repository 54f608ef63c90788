/* Characters of well-formed UTF-8: no overlong form, no surrogate, nothing above U+10FFFF. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* The length in bytes of the character that begins at `at`, of which `left` (> 0) can be read;
 * 0: it is none. */
size_t utf8_len(const uint8_t *at, size_t left);

/* How many characters a text has. */
int utf8_count(const char *text);

#endif
