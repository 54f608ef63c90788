/* Private to json_*.c: the characters of strings. */
#ifndef CHAIN_NODE_JSON_INTERNAL_H
#define CHAIN_NODE_JSON_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* p is after the opening quote. Returns the closing quote, with *ret_why NULL; or the refused
 * character, with the reason in *ret_why. */
const char *json__string_end(const char *p, const char *end, bool *ret_escaped,
                             const char **ret_why);
/* The next piece of a string that json__string_end accepted: a run of plain text, or one escape
 * decoded into out. PRE: *p is before the end. */
const char *json__piece(const char **p, const char *end, char out[4], size_t *ret_len);

#endif
