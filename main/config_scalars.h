/* Numbers and booleans of the configuration file, read as the text that they are. Private to
 * config.c. */
#ifndef MAIN_CONFIG_SCALARS_H
#define MAIN_CONFIG_SCALARS_H

#include <cyaml/cyaml.h>

#include "base/buf.h"
#include "base/error.h"

/* ERR_CONFIG names the file, the key, its value and what is allowed, where a number is not a whole
 * number in its range, or a boolean is neither true nor false. `sections`: the file's mappings;
 * every number in them must have a range in config_scalars.c. */
int config__scalars(const char *path, const struct buf *text, const cyaml_config_t *config,
                    const cyaml_schema_field_t *sections, struct err *err);

/* The ranges, for tests: the i-th, or NULL after the last one. */
struct config_range {
    const char *section, *key;
    uint32_t least, most;
};
const struct config_range *config__range(size_t i);

#endif
