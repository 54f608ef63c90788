/* Results of statements on standard output. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli.h"
#include "command.h"

enum { CELL_MAX = 66 };

/* An application's text must not reach the terminal as escape sequences. */
static void put_cell(struct buf *out, const struct conn_result *r, int row, int col)
{
    int len = 1;
    const char *text = conn_result_is_null(r, row, col) ? "-" : conn_result_get(r, row, col, &len);
    buf_clear(out);
    buf_put_plain(out, text, (size_t)(len > CELL_MAX ? CELL_MAX : len));
}

static void column_widths(const struct conn_result *r, struct buf *cell, int *width)
{
    for (int c = 0; c < conn_result_columns(r); c++) {
        width[c] = (int)strlen(conn_result_name(r, c));
        for (int i = 0; i < conn_result_rows(r); i++) {
            put_cell(cell, r, i, c);
            if ((int)cell->len > width[c])
                width[c] = (int)cell->len;
        }
    }
}

void cli_print_table(const struct conn_result *r)
{
    int columns = conn_result_columns(r);
    int *width = xcalloc((size_t)columns, sizeof(int));
    struct buf cell = {0};
    column_widths(r, &cell, width);
    for (int c = 0; c < columns; c++)
        printf("%-*s%s", width[c], conn_result_name(r, c), c + 1 < columns ? "  " : "\n");
    for (int i = 0; i < conn_result_rows(r); i++)
        for (int c = 0; c < columns; c++) {
            put_cell(&cell, r, i, c);
            printf("%-*s%s", width[c], buf_str(&cell), c + 1 < columns ? "  " : "\n");
        }
    buf_done(&cell);
    free(width);
}

void cli_print_value(void *arg, const struct conn_result *r)
{
    struct buf cell = {0};
    int len;
    (void)arg;
    if (conn_result_rows(r) && !conn_result_is_null(r, 0, 0)) {
        const char *text = conn_result_get(r, 0, 0, &len);
        buf_put_plain(&cell, text, (size_t)len);
        puts(buf_str(&cell));
    }
    buf_done(&cell);
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
        /* ASCII: terminals take some characters beyond it for the begin of a sequence. */
        char *text = json_dumps(line, JSON_COMPACT | JSON_ENSURE_ASCII);
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
