/* The installed schema against the one that is compiled in. A program calls functions by name and
 * position, and relies on what they do: only the very same schema will do. */
#include "store/schema_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "schema/schema.h"
#include "sql.h"

enum { SHOWN = 16 /* characters of a checksum that a message shows */ };

const char *schema_check_sql(void)
{
    return sql__text(SQL_CHECK_SCHEMA);
}

/* One entry of the list of migrations. */
struct entry {
    int version;
    int name_len, checksum_len;
    const char *name, *checksum;
};

/* Returns what is behind it; NULL: there is none. */
static const char *next_entry(const char *list, struct entry *ret)
{
    if (!list || !*list)
        return NULL;
    char *end;
    ret->version = (int)strtol(list, &end, 10);
    ret->name = *end == ':' ? end + 1 : end;
    ret->name_len = (int)strcspn(ret->name, ":,");
    ret->checksum = ret->name + ret->name_len + (ret->name[ret->name_len] == ':');
    ret->checksum_len = (int)strcspn(ret->checksum, ",");
    const char *rest = ret->checksum + ret->checksum_len;
    return *rest == ',' ? rest + 1 : rest;
}

int schema_installed(const struct schema_found *found)
{
    struct entry e = {0};
    for (const char *at = found->text[SCHEMA_COL_MIGRATIONS]; (at = next_entry(at, &e));)
        continue;
    return e.version;
}

static bool same(const struct entry *e, const struct schema_file *file)
{
    return (size_t)e->checksum_len == strlen(file->checksum) &&
           !memcmp(e->checksum, file->checksum, (size_t)e->checksum_len);
}

static enum schema_fit left_out(const struct schema_file *missing, const struct schema_file *file,
                                struct err *err)
{
    err_set(err, ERR_DB_SCHEMA,
            "migration %s: the database does not have it, and has %s: the database was installed "
            "from another build of txrelay. Use that build, or migrate a new database",
            missing->name, file->name);
    return SCHEMA_FOREIGN;
}

/* Every migration that both know must have one text, and none may be left out below the last
 * one. */
static enum schema_fit check_migrations(const struct schema_set *set,
                                        const struct schema_found *found, struct err *err)
{
    struct entry e = {0}, unknown = {0};
    size_t known = 0;
    for (const char *at = found->text[SCHEMA_COL_MIGRATIONS]; (at = next_entry(at, &e));) {
        if (e.version < 1 || (size_t)e.version > set->count) {
            unknown = e;
            continue;
        }
        const struct schema_file *file = &set->migrations[e.version - 1];
        if (same(&e, file) && (size_t)e.version == known + 1) {
            known++;
            continue;
        }
        if (same(&e, file))
            return left_out(&set->migrations[known], file, err);
        err_set(
            err, ERR_DB_SCHEMA,
            "migration %s: the database has checksum %.*s, this program %.*s: the database was "
            "installed from another build of txrelay. Use that build, or migrate a new database",
            file->name, e.checksum_len < SHOWN ? e.checksum_len : SHOWN, e.checksum, SHOWN,
            file->checksum);
        return SCHEMA_FOREIGN;
    }
    if (unknown.version) {
        err_set(err, ERR_DB_SCHEMA,
                "database schema is version %d (%.*s), newer than this program's %zu: upgrade "
                "txrelay on this host",
                unknown.version, unknown.name_len, unknown.name, set->count);
        return SCHEMA_NEWER;
    }
    if (known < set->count) {
        err_set(err, ERR_DB_SCHEMA,
                "database schema is version %zu, this program needs %zu: run txrelay migrate",
                known, set->count);
        return SCHEMA_OUTDATED;
    }
    return SCHEMA_FITS;
}

enum schema_fit schema_check(const struct schema_set *set, const struct schema_found *found,
                             struct err *err)
{
    PRE(set->count > 0 && set->functions_count > 0);
    const char *functions = found->text[SCHEMA_COL_FUNCTIONS];
    const char *recorded = found->text[SCHEMA_COL_RECORDED], *now = found->text[SCHEMA_COL_FOUND];
    enum schema_fit fit = check_migrations(set, found, err);
    if (fit != SCHEMA_FITS)
        return fit;
    if (!functions || strcmp(functions, set->functions_checksum) != 0) {
        err_set(err, ERR_DB_SCHEMA,
                "the functions of the database schema have checksum %.*s, this program's %.*s: run "
                "txrelay migrate of the newer build, and use that build on every host",
                SHOWN, functions ? functions : "none", SHOWN, set->functions_checksum);
        return SCHEMA_OUTDATED;
    }
    if (recorded && now && strcmp(recorded, now) != 0) {
        err_set(err, ERR_DB_SCHEMA,
                "functions, views, triggers or rights of the database schema were changed by hand "
                "(digest %.*s now, %.*s when they were installed): run txrelay migrate",
                SHOWN, now, SHOWN, recorded);
        return SCHEMA_OUTDATED;
    }
    return SCHEMA_FITS;
}

/* What is denied may be another object than the schema or its tables (schema_version); names are in
 * no language. */
void schema_check_failed(struct err *err, const char *login)
{
    if (!strcmp(err->sqlstate, "42P01") || !strcmp(err->sqlstate, "3F000"))
        err_set(err, ERR_DB_SCHEMA, "database has no txrelay schema: run txrelay migrate");
    else if (!strcmp(err->sqlstate, "42501") && strstr(err->text, "schema"))
        err_set(err, ERR_DB_DENIED,
                "login %.63s may not read the txrelay schema: GRANT txrelay_relay TO %.63s, or run "
                "txrelay migrate if it has that role",
                login, login);
}
