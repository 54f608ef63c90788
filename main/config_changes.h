/* What differs between two configurations, and what one holds. Private to config.c. */
#ifndef MAIN_CONFIG_CHANGES_H
#define MAIN_CONFIG_CHANGES_H

#include <cyaml/cyaml.h>

/* Calls `each` with "section.key" for each field whose values differ; a list is one field. */
void config__changes(const char *section, const cyaml_schema_field_t *fields, const void *from,
                     const void *to, void (*each)(void *arg, const char *key), void *arg);

/* config_values. */
void config__values(const char *section, const cyaml_schema_field_t *fields, const void *record,
                    void (*each)(void *arg, const char *key, const char *text), void *arg);

#endif
