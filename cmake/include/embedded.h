/* What embed_text (cmake/embed.cmake) compiles in: text files that stay files. A target that embeds
 * PREFIX has
 *   extern const struct embedded_file PREFIX_files[];  sorted by name
 *   extern const size_t PREFIX_count;
 *   extern const char PREFIX_sha256[];                 of all of them with their names, in hex */
#ifndef EMBEDDED_H
#define EMBEDDED_H

#include <stddef.h>

struct embedded_file {
    const char *name; /* without the folder */
    const char *text; /* NUL-terminated */
    size_t len;
    const char *sha256; /* of the text, in hex */
};

#endif
