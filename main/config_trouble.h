/* What libcyaml reports of a file that it refuses, in words that name the key, the value, the place
 * and the way out. */
#ifndef MAIN_CONFIG_TROUBLE_H
#define MAIN_CONFIG_TROUBLE_H

#include <cyaml/cyaml.h>

#include "base/buf.h"
#include "base/error.h"

struct config_trouble {
    char cause[160];
    char key[160];         /* "chain.endpoints[0]": where it was, from the backtrace */
    char entry[16];        /* "[0]" of the list whose key comes next */
    unsigned line, column; /* of the innermost part; 0: none was reported */
};

/* A cyaml_log_fn_t; ctx: struct config_trouble. */
void config__trouble_log(cyaml_log_t level, void *ctx, const char *fmt, va_list args)
    __attribute__((format(printf, 3, 0)));
/* Returns ERR_CONFIG. `path` and `text` of the file; `code` is what libcyaml returned. */
int config__trouble_err(const struct config_trouble *t, const char *path, const struct buf *text,
                        cyaml_err_t code, struct err *err);

#endif
