/* The database schema as it is compiled in: schema/migrations/NNNN_name.sql, in the order of their numbers.
 * Each text runs as one multi-statement query inside one transaction; who applies them (store/) keeps
 * txrelay.schema_version. Nothing here allocates, all pointers live as long as the program. */
#ifndef SCHEMA_SCHEMA_H
#define SCHEMA_SCHEMA_H

#include <stddef.h>

struct schema_migration {
    int version;      /* 1, 2, 3...: no number is left out */
    const char *name; /* "0001_init.sql" */
    const char *sql;  /* NUL-terminated */
    size_t len;       /* without the NUL */
};

size_t schema_count(void);
struct schema_migration schema_migration(size_t index); /* index < schema_count() */
int schema_latest(void);                                /* version of the last one */

#endif
