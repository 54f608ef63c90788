/* Private to main/config*.c. */
#ifndef MAIN_CONFIG_NUMBERS_H
#define MAIN_CONFIG_NUMBERS_H

#include <cyaml/cyaml.h>

#include "base/buf.h"
#include "base/error.h"

/* ERR_CONFIG unless every number in the sections of a text that was read without an error is one to its end.
 */
int config__numbers(const char *path, const struct buf *text, const cyaml_config_t *config,
                    const cyaml_schema_field_t *sections, struct err *err);

#endif
