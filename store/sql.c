/* Finds the embedded statements once; a file that is missing is a bug of the build. */
#include "sql.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "embedded.h"

extern const struct embedded_file store_sql_files[];
extern const size_t store_sql_count;

static const char *const names[] = {
#define X(id, file) [SQL_##id] = file,
    SQL_TABLE(X)
#undef X
};

const char *sql__name(enum sql_id id)
{
    PRE(id < SQL_COUNT);
    return names[id];
}

static const char *find(const char *name)
{
    char file[64];
    snprintf(file, sizeof(file), "%s.sql", name);
    for (size_t i = 0; i < store_sql_count; i++)
        if (!strcmp(store_sql_files[i].name, file))
            return store_sql_files[i].text; /* the embedding ends each text with NUL */
    return NULL;
}

const char *sql__text(enum sql_id id)
{
    static const char *texts[SQL_COUNT];
    PRE(id < SQL_COUNT);
    if (!texts[id])
        texts[id] = find(names[id]);
    INVARIANT(texts[id]);
    return texts[id];
}
