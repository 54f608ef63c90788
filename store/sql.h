/* The statements, by name: store/sql/<verb_noun>.sql is SQL_VERB_NOUN, embedded by CMake, which
 * also writes the list of names (cmake/embed.cmake). Private to store/. */
#ifndef STORE_SQL_H
#define STORE_SQL_H

#include "store_sql_ids.h" /* enum sql_id */

const char *sql__text(enum sql_id id);
const char *sql__name(enum sql_id id); /* also the name under which it is prepared */

#endif
