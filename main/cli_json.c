/* Results as JSON lines. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"

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
