/* The embedded statements. */
#include "sql.h"

#include "base/check.h"
#include "embedded.h"

extern const struct embedded_file store_sql_files[];
extern const size_t store_sql_count;

const char *sql__name(enum sql_id id)
{
    PRE(id < SQL_COUNT);
    return sql__names[id];
}

const char *sql__text(enum sql_id id)
{
    PRE(id < SQL_COUNT);
    INVARIANT(store_sql_count == SQL_COUNT);
    return store_sql_files[id]
        .text; /* sorted by name, as the ids are; the embedding ends each with NUL */
}
