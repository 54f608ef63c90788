/* The database schema as it is compiled in (schema/README.md):
 *
 *   migrations   schema/migrations/NNNN_name.sql, roles, types, tables and indexes: each is applied
 *                once
 *   functions    schema/functions/NN_subject.sql, functions, views, triggers and rights: all are
 *                applied at each version
 *
 * Each text runs as one multi-statement query inside one transaction. store/ applies them and keeps
 * the tables txrelay.schema_version and txrelay.schema_functions. Nothing here allocates; all
 * pointers live as long as the program. */
#ifndef SCHEMA_SCHEMA_H
#define SCHEMA_SCHEMA_H

#include <stddef.h>

struct schema_file {
    const char *name;     /* "0001_init.sql" */
    const char *sql;      /* NUL-terminated */
    size_t len;           /* without the NUL */
    const char *checksum; /* SHA-256 of the text, in hex */
};

struct schema_set {
    const struct schema_file *migrations; /* migrations[i] is version i + 1 */
    size_t count;
    const struct schema_file *functions; /* in the order in which they are applied */
    size_t functions_count;
    const char *functions_checksum; /* of all of them, in hex */
};

const struct schema_set *schema_set(void);

#endif
