#include "schema_fit.h"

#include <string.h>

int schema__version(void)
{
    return 5;
}

void schema__fit(int64_t installed, struct err *err)
{
    if (installed < schema__version())
        err_set(err, ERR_DB_SCHEMA,
                "database schema is version %lld, this program needs %d: run txrelay migrate",
                (long long)installed, schema__version());
    else if (installed > schema__version())
        err_set(err, ERR_DB_SCHEMA,
                "database schema is version %lld, newer than this program's %d: update this program on every "
                "host",
                (long long)installed, schema__version());
}

void schema__not_installed(struct err *err)
{
    if (!strcmp(err->sqlstate, "42P01") || !strcmp(err->sqlstate, "3F000"))
        err_set(err, ERR_DB_SCHEMA, "database has no txrelay schema: run txrelay migrate");
    else if (!strcmp(err->sqlstate, "42501"))
        err_set(err, ERR_DB_DENIED,
                "database user may not read the txrelay schema: GRANT txrelay_relay to it");
}
