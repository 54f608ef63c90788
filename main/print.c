/* Results of statements on standard output. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "cli.h"
#include "command.h"

static int cell_width(const struct conn_result *r, int row, int col)
{
    int len = 1;
    if (!conn_result_is_null(r, row, col))
        conn_result_get(r, row, col, &len);
    return len > 66 ? 66 : len;
}

void cli_print_table(const struct conn_result *r)
{
    int columns = conn_result_columns(r), rows = conn_result_rows(r);
    int *width = xcalloc((size_t)columns, sizeof(int));
    for (int c = 0; c < columns; c++) {
        width[c] = (int)strlen(conn_result_name(r, c));
        for (int i = 0; i < rows; i++)
            if (cell_width(r, i, c) > width[c])
                width[c] = cell_width(r, i, c);
        printf("%-*s%s", width[c], conn_result_name(r, c), c + 1 < columns ? "  " : "\n");
    }
    for (int i = 0; i < rows; i++)
        for (int c = 0; c < columns; c++) {
            int len = 1;
            const char *text = conn_result_is_null(r, i, c) ? "-" : conn_result_get(r, i, c, &len);
            printf("%-*.*s%s", width[c], len > 66 ? 66 : len, text, c + 1 < columns ? "  " : "\n");
        }
    free(width);
}

void cli_print_value(void *arg, const struct conn_result *r)
{
    int len;
    (void)arg;
    if (conn_result_rows(r) && !conn_result_is_null(r, 0, 0))
        puts(conn_result_get(r, 0, 0, &len));
}

void cli_print_json(const struct conn_result *r)
{
    for (int i = 0; i < conn_result_rows(r); i++) {
        json_t *line = json_object();
        for (int c = 0; c < conn_result_columns(r); c++) {
            int len;
            const char *text = conn_result_is_null(r, i, c) ? NULL : conn_result_get(r, i, c, &len);
            json_object_set_new(line, conn_result_name(r, c),
                                text ? json_stringn(text, (size_t)len) : json_null());
        }
        char *text = json_dumps(line, JSON_COMPACT);
        puts(text);
        free(text);
        json_decref(line);
    }
}

void cli_print_rows(void *arg, const struct conn_result *r)
{
    const struct arguments *a = arg;
    if (a->json)
        cli_print_json(r);
    else
        cli_print_table(r);
}
