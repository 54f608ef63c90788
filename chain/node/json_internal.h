/* Private to json_*.c: the characters of strings. */
#ifndef CHAIN_NODE_JSON_INTERNAL_H
#define CHAIN_NODE_JSON_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From behind the opening quote to the closing one; or to what is refused, and *ret_why (else NULL). */
const char *json__string_end(const char *p, const char *end, bool *ret_escaped, const char **ret_why);
/* The next piece of a string that was read, not at its end: what stands there, or one escape decoded into
 * out. */
const char *json__piece(const char **p, const char *end, char out[4], size_t *ret_len);

#endif
