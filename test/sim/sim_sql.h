/* Statements as texts, and their rows (sim_sql.c). */
#ifndef TEST_SIM_SIM_SQL_H
#define TEST_SIM_SIM_SQL_H

#include "sim.h"
#include "store/conn.h"

/* Rows of the answer to a statement, text or binary as it was asked. */
struct cell {
    char *data; /* NULL: SQL NULL */
    int len;
};
struct conn_result {
    int rows, columns, cap; /* cap: cells that are written */
    struct cell *cells;
};

/* A statement that is sent as text with parameters. */
struct query {
    struct message message;
    const char *sql;
    int count, format;
    struct cell params[12];
    struct conn_result *result;
};
struct query *query_new(const char *sql, int count, const struct conn_param *params, int format);
void query_heard(struct world *w, const struct query *q);

#endif
