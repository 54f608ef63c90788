/* Does the schema of a database fit this program? Asked by every session of the store before it is
 * used, by `txrelay check` and by `txrelay migrate`. A difference is named with both values and the
 * way out. */
#ifndef STORE_SCHEMA_CHECK_H
#define STORE_SCHEMA_CHECK_H

#include "base/error.h"

struct schema_set; /* schema/schema.h */

/* The first columns of schema_check_sql(); NULL: SQL NULL. */
enum schema_column {
    SCHEMA_COL_MIGRATIONS, /* "1:0001_init.sql:<checksum>,2:..." */
    SCHEMA_COL_FUNCTIONS,  /* checksum of the functions as they were applied last */
    SCHEMA_COL_RECORDED,   /* digest of what these made; NULL: another major version of Postgres
                              computed it */
    SCHEMA_COL_FOUND,      /* digest of what is there now */
    SCHEMA_COL_CATALOG,    /* which rows of the catalog that is */
    SCHEMA_COLUMNS
};
struct schema_found {
    const char *text[SCHEMA_COLUMNS];
};
const char *schema_check_sql(void);

enum schema_fit {
    SCHEMA_FITS,
    SCHEMA_OUTDATED, /* migrations are missing, or functions, views, triggers or rights differ:
                        migrate mends it */
    SCHEMA_NEWER,    /* the database has migrations that this program does not know */
    SCHEMA_FOREIGN,  /* a migration was applied with another text: no build can mend that */
};

/* err: only changed where it does not fit (ERR_DB_SCHEMA). */
enum schema_fit schema_check(const struct schema_set *set, const struct schema_found *found,
                             struct err *err);
int schema_installed(const struct schema_found *found); /* the highest version; 0: none */
/* schema_check_sql() ended with err: says "not installed" or "not allowed" where that is why. */
void schema_check_failed(struct err *err, const char *login);

#endif
