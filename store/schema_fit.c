/* The installed schema against the one that is compiled in: a function that this program calls must have the
 * form that it knows, so only the very same version will do. */
#include "schema_fit.h"

#include <string.h>

#include "schema/schema.h"

void schema__fit(int64_t installed, struct err *err)
{
    if (installed < schema_latest())
        err_set(err, ERR_DB_SCHEMA,
                "database schema is version %lld, this program needs %d: run txrelay migrate",
                (long long)installed, schema_latest());
    else if (installed > schema_latest())
        err_set(err, ERR_DB_SCHEMA,
                "database schema is version %lld, newer than this program's %d: update txrelay on this host",
                (long long)installed, schema_latest());
}

void schema__not_installed(struct err *err)
{
    if (!strcmp(err->sqlstate, "42P01") || !strcmp(err->sqlstate, "3F000"))
        err_set(err, ERR_DB_SCHEMA, "database has no txrelay schema: run txrelay migrate");
    else if (!strcmp(err->sqlstate, "42501"))
        err_set(err, ERR_DB_DENIED,
                "database user may not read the txrelay schema: GRANT txrelay_relay to it");
}
