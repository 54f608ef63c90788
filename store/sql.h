/* The statements, by name: store/sql/<verb_noun>.sql, embedded by CMake. Private to store/. */
#ifndef STORE_SQL_H
#define STORE_SQL_H

/* X(id, file without .sql) */
#define SQL_TABLE(X) X(PROBE_SESSION, "probe_session")

enum sql_id {
#define X(id, file) SQL_##id,
    SQL_TABLE(X)
#undef X
        SQL_COUNT
};

const char *sql__text(enum sql_id id);
const char *sql__name(enum sql_id id); /* also the name under which it is prepared */

#endif
